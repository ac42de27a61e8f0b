"""The commands of ``daskcoreset``; `daskcoreset.cli.main` starts them and reports their errors."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import daskcoreset
from daskcoreset.cli.convert import find_members, write_store
from daskcoreset.core.contents import HEADER
from daskcoreset.core.coreset import Coreset, thaw
from daskcoreset.core.deadline import time_limit
from daskcoreset.core.errors import StoreError
from daskcoreset.core.locations import locate
from daskcoreset.core.plain_files import hold_folder
from daskcoreset.core.secrets import without_secrets
from daskcoreset.execution.cluster import cluster_for
from daskcoreset.execution.progress import show_progress
from daskcoreset.inputs.options import ReadOptions, reading
from daskcoreset.sensitivities import CONSTRUCTIONS, resolve_method

# Of what a coreset says about itself: far more than provenance takes.
_HEADER_BYTES = 2**24

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Coresets of data larger than memory: small weighted subsets with a guarantee.",
    epilog="Progress is shown on a terminal only. Results are key-tab-value lines in a pipe.",
)


def _choice(*names: str, text: str) -> Any:
    """Return an option whose value is one of `names`."""

    def check(value: str) -> str:
        if value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}.")
        return value

    return typer.Option(metavar="|".join(names), callback=check, help=text)


In = Annotated[str, typer.Argument(metavar="IN", help="Zarr, Parquet, HDF5, .npy or .npz.")]
Out = Annotated[str, typer.Argument(metavar="OUT", help="Zarr store to make.")]
Labels = Annotated[str | None, typer.Option(metavar="KEY", help="Member of IN to keep as labels.")]
Weights = Annotated[str | None, typer.Option(metavar="KEY", help="Member of IN that weighs rows.")]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="For IN and OUT that are URLs; may be repeated. Values that are JSON are read so.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="NAME", help="Feature to read; may be repeated."),
]
MissingChunks = Annotated[
    Any, _choice("raise", "fill", text="Zarr chunks that are not stored: an error, or filled.")
]
Rows = Annotated[int | None, typer.Option(min=1, metavar="ROWS", help="Rows per block.")]
Progress = Annotated[
    bool | None, typer.Option(help="Show a bar; by default only on a terminal.", show_default=False)
]


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"daskcoreset {daskcoreset.__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show it.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")
    ] = False,
) -> None:
    """Take the options that belong to every command."""
    del version, debug  # `_print_version` and `daskcoreset.cli.main.main` act on them


@app.command()
def build(
    source: In,
    out: Out,
    *,
    size: Annotated[
        int | None, typer.Option(min=1, help="Rows wanted; 10,000 by default, or 100 a cluster.")
    ] = None,
    method: Annotated[str, _choice(*CONSTRUCTIONS, text="Construction.")] = "lightweight",
    clusters: Annotated[
        int | None, typer.Option(min=1, help="Clusters k, for the methods that need it.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the result repeatable.")] = None,
    sampling: Annotated[
        str, _choice("systematic", "multinomial", text="How rows are drawn.")
    ] = "systematic",
    passes: Annotated[int, typer.Option(min=1, max=2, help="Reads of the data.")] = 1,
    labels: Labels = None,
    weights: Weights = None,
    columns: Columns = None,
    storage_option: StorageOptions = None,
    missing_chunks: MissingChunks = "raise",
    chunks: Rows = None,
    on_invalid: Annotated[
        str, _choice("raise", "drop", text="What becomes of rows with NaN or infinity.")
    ] = "raise",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Run on so many processes of this machine.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="End the work after so long.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a coreset.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan; do nothing.")] = False,
    progress: Progress = None,
) -> None:
    """Build a coreset of IN and save it as OUT."""
    if scheduler is not None and workers is not None:
        raise typer.BadParameter("--scheduler and --workers exclude each other; give one.")
    _check_target(out, overwrite=overwrite)
    construction = resolve_method(method, n_clusters=clusters)
    options: dict[str, Any] = {"size": size, "method": construction, "random_state": seed}
    options |= {"sampling": sampling, "passes": passes, "on_invalid": on_invalid}
    options |= {"sample_weight": weights, "chunks": chunks or "auto"}
    told, to_url = _mapping(storage_option), "://" in out
    told_in = told if "://" in source or not to_url else None
    options |= {"storage_options": told_in, "columns": columns or None}
    options["missing_chunks"] = missing_chunks
    source = _absolute(source)
    if dry_run:
        with cluster_for(scheduler, workers):  # its workers decide how much memory is taken
            plan = daskcoreset.build(source, labels, dry_run=True, timeout=timeout, **options)
            _show("plan", asdict(plan))
        return
    start = time.perf_counter()
    with time_limit(timeout):
        # Defined before processes start, for this is where wrong input shows.
        lazy = daskcoreset.build(source, labels, compute=False, **options)
        with cluster_for(scheduler, workers), show_progress(progress, lazy):
            coreset = lazy.compute()
        coreset.to_zarr(out, overwrite=overwrite, storage_options=told if to_url else None)
    made = {"store": without_secrets(out, out), **_facts(coreset)}
    shown = ("store", "method", "rows", "n", "features", "dtype", "labels", "weight", "seed")
    seconds = round(time.perf_counter() - start, 2)
    _show("coreset", {key: made[key] for key in shown} | {"seconds": seconds})


@app.command()
def store(
    source: In,
    out: Out,
    labels: Labels = None,
    weights: Weights = None,
    chunks: Annotated[
        int | None, typer.Option(min=1, metavar="ROWS", help="Rows per chunk; 16 MiB by default.")
    ] = None,
    *,
    columns: Columns = None,
    storage_option: StorageOptions = None,
    missing_chunks: MissingChunks = "raise",
    progress: Progress = None,
) -> None:
    """Write the rows of IN as a Zarr store OUT, which build reads fast.

    OUT has the arrays X and, where IN has or names them, y and sample_weight.
    """
    start = time.perf_counter()
    X = reading(source, ReadOptions(_mapping(storage_option), columns or None, missing_chunks))
    members = find_members(X)
    y = labels or ("y" if "y" in members else None)
    sample_weight = weights or ("sample_weight" if "sample_weight" in members else None)
    written = write_store(X, out, y, sample_weight, rows_per_chunk=chunks, progress=progress)
    shapes = {name: " x ".join(map(str, shape)) for name, shape in written.items()}
    seconds = round(time.perf_counter() - start, 2)
    _show("store", {"store": without_secrets(out, out), **shapes, "seconds": seconds})


@app.command()
def info(
    path: Annotated[str, typer.Argument(metavar="STORE", help="A coreset made by build.")],
    *,
    storage_option: StorageOptions = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what a saved coreset holds and where it comes from."""
    coreset = Coreset.from_zarr(path, storage_options=_mapping(storage_option))
    facts = {"store": without_secrets(path, path), **_facts(coreset)}
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    _show("coreset", facts)


@app.command()
def demo(
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A set of DASKCORESET_DATA or scikit-learn; made on the spot by default.",
        ),
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="Where the store and the picture go; a new one by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="First of the seeds.")] = 0,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything.")] = False,
    progress: Progress = None,
) -> None:
    """Compare k-means on coresets of a store with k-means on all of it."""
    from daskcoreset.cli.demo import run_demo

    run_demo(data, folder=folder, seed=seed, quick=quick, progress=progress)


def _absolute(source: str) -> str:
    # For workers in another folder, and for the provenance, which outlives this one.
    path = Path(source).expanduser()
    return str(path.resolve()) if "://" not in source and path.exists() else source


def _mapping(pairs: list[str] | None) -> dict[str, Any] | None:
    """Return storage options; no message shows a value, which may be a password."""
    if not pairs:
        return None
    mapping: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise typer.BadParameter("--storage-option has no name or no =; give KEY=VALUE.")
        try:
            mapping[key] = json.loads(value)
        except ValueError:
            mapping[key] = value
    return mapping


def _facts(coreset: Coreset) -> dict[str, Any]:
    """Return size, weight and provenance of a coreset as plain JSON values."""
    provenance = thaw(coreset.provenance)
    # `m` and `d` are there already, under the names that need no explanation.
    further = {key: value for key, value in provenance.items() if key not in ("m", "d")}
    return {
        "rows": len(coreset),
        "features": coreset.n_features,
        "dtype": str(coreset.points.dtype),
        "labels": None if coreset.labels is None else str(coreset.labels.dtype),
        "weight": coreset.total_weight,
        **further,
    }


def _show(title: str, facts: Mapping[str, Any]) -> None:
    """Print a table for a reader, or lines of key, tab and value for a program."""
    if not sys.stdout.isatty():
        for key, value in facts.items():
            typer.echo(f"{key}\t{value if isinstance(value, str) else json.dumps(value)}")
        return
    table = Table(title=title, show_header=False, title_justify="left")
    for key, value in facts.items():
        # As Text, for in a plain string brackets would be markup.
        table.add_row(Text(key.replace("_", " "), style="bold"), Text(_readable(value)))
    Console().print(table)


def _readable(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        # A seed may have 39 digits, which commas would not make easier to copy.
        return f"{value:,}" if value < 10**15 else str(value)
    return f"{value:,.10g}" if isinstance(value, float) else json.dumps(value)


def _check_target(out: str, *, overwrite: bool) -> None:
    """Check, before the work, that the result can be saved."""
    path = locate("out", out)
    if isinstance(path, str):
        return  # asked when saving: a question to a remote store may cost as much
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        if not overwrite:
            raise StoreError(f"{out} exists; pass --overwrite or choose another path")
        if _kind_of(path) != "coreset":
            raise StoreError(f"{out} is not a coreset, so it is never overwritten; choose another")
    parent = next(parent for parent in path.parents if parent.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise StoreError(f"{out}: nothing can be written in {parent}; choose another path")


def _kind_of(path: Path) -> str | None:
    try:
        with hold_folder(path) as folder, os.fdopen(folder.open("zarr.json"), "rb") as file:
            kind: str | None = json.loads(file.read(_HEADER_BYTES))["attributes"][HEADER]["kind"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return kind
