"""The commands of ``daskcoreset``; `daskcoreset.cli.main` starts them and reports their errors."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import daskcoreset
from daskcoreset.cli.convert import find_members, write_store
from daskcoreset.cli.labels import FILES, KIND, labels_of, write_labels
from daskcoreset.cli.parameters import (
    Clusters,
    Column,
    Columns,
    In,
    Json,
    Labels,
    Metric,
    MissingChunks,
    OnInvalid,
    Out,
    Overwrite,
    Progress,
    Rows,
    Seed,
    StorageOptions,
    Store,
    Timeout,
    Weights,
    absolute,
    as_built,
    choice,
    facts_of,
    for_url,
    free_file,
    mapping,
    names_of,
    read_options,
    report,
    show,
    size_of,
)
from daskcoreset.cli.trees import trees
from daskcoreset.constructions.draws import Draw
from daskcoreset.core.atomic import new_file
from daskcoreset.core.contents import HEADER
from daskcoreset.core.coreset import Coreset, n_clusters_of
from daskcoreset.core.deadline import time_limit
from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.core.locations import clean_url, local_path, locate
from daskcoreset.core.optional import need_matplotlib
from daskcoreset.core.tables import counted
from daskcoreset.core.validation import unused_name
from daskcoreset.execution.cluster import cluster_for
from daskcoreset.execution.progress import show_progress
from daskcoreset.inputs.options import ReadOptions, Rows as OpenedRows
from daskcoreset.metrics.costs import data_of
from daskcoreset.sensitivities import CONSTRUCTIONS

# Methods of `build` that decide after a read what to do next, so that nothing can be lazy.
_BY_SEVERAL_READS = ("coverage",)

# What the program makes as Zarr stores and may replace, in words.
_KINDS = {"coreset": "a coreset", KIND: "an array of labels"}

app = typer.Typer(
    pretty_exceptions_enable=False,
    help="Coresets of data larger than memory: small weighted subsets with a guarantee.",
    epilog="Progress is shown on a terminal only. Results are key-tab-value lines in a pipe.",
)
app.add_typer(trees, name="tree")


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
        str | None,
        typer.Option(
            metavar="ROWS|auto",
            help="Rows wanted; 10,000 by default, or 100 a cluster. auto grows it until two agree.",
        ),
    ] = None,
    method: Annotated[
        str,
        choice(
            *CONSTRUCTIONS,
            *_BY_SEVERAL_READS,
            text="Construction; coverage takes core points.",
        ),
    ] = "lightweight",
    clusters: Clusters = None,
    diameter: Annotated[
        float | None,
        typer.Option(
            help="For --method coverage: rows lie within half of it of a core point; by default "
            "one is found for --size."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Makes the result repeatable; --method coverage draws nothing, and needs none.",
        ),
    ] = None,
    sampling: Annotated[
        str, choice("systematic", "multinomial", text="How rows are drawn.")
    ] = "systematic",
    passes: Annotated[
        int, typer.Option(min=1, max=2, metavar="READS", help="Reads of the data.")
    ] = 1,
    metric: Metric = "euclidean",
    labels: Labels = None,
    weights: Weights = None,
    column: Column = None,
    columns: Columns = None,
    storage_option: StorageOptions = None,
    missing_chunks: MissingChunks = "raise",
    chunks: Rows = None,
    on_invalid: OnInvalid = "raise",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Run on so many processes of this machine."),
    ] = None,
    timeout: Timeout = None,
    overwrite: Overwrite = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan; do nothing.")] = False,
    progress: Progress = None,
) -> None:
    """Build a coreset of IN and save it as OUT."""
    if scheduler is not None and workers is not None:
        raise typer.BadParameter("--scheduler and --workers exclude each other; give one.")
    wanted = size_of(size)
    _check_target(out, overwrite=overwrite)
    options: dict[str, Any] = {"random_state": seed, "n_clusters": clusters}
    options |= {"on_invalid": on_invalid, "sample_weight": weights, "chunks": chunks or "auto"}
    options["draw"] = Draw(sampling, passes)  # type: ignore[arg-type] # both are choices
    told, to_url = mapping(storage_option), "://" in out
    told_in = told if "://" in source or not to_url else None
    read = read_options(source, told_in, names_of(column, columns), missing_chunks)
    X = OpenedRows(absolute(source), replace(read, unit_length=metric == "cosine"))
    if method in _BY_SEVERAL_READS:
        options |= {"method": daskcoreset.Coverage(diameter, wanted)}
    elif wanted == "auto":
        options["method"] = method
    else:
        options |= {"method": method, "size": wanted}
    if dry_run:
        with cluster_for(scheduler, workers):  # its workers decide how much memory is taken
            plan = daskcoreset.plan(X, labels, **options)
            show("plan", asdict(plan.forecast))
        return
    start = time.perf_counter()
    with time_limit(timeout):
        # A search for the size decides after every read whether to go on, too.
        if wanted == "auto" or method in _BY_SEVERAL_READS:
            search = daskcoreset.grow if wanted == "auto" else daskcoreset.build
            with cluster_for(scheduler, workers):
                coreset = search(X, labels, progress=progress, **options)
        else:
            # Defined before processes start, for this is where wrong input shows.
            lazy = daskcoreset.plan(X, labels, **options)
            with cluster_for(scheduler, workers), show_progress(progress, lazy):
                coreset = lazy.compute()
        coreset.to_zarr(out, overwrite=overwrite, storage_options=told if to_url else None)
    made = {"store": clean_url(out), **facts_of(coreset)}
    shown = ("store", "method", "rows", "n", "features", "dtype", "labels", "weight", "seed")
    seconds = round(time.perf_counter() - start, 2)
    # Core points are not drawn, and have no seed.
    show("coreset", {key: made[key] for key in shown if key in made} | {"seconds": seconds})


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
    column: Column = None,
    columns: Columns = None,
    storage_option: StorageOptions = None,
    missing_chunks: MissingChunks = "raise",
    progress: Progress = None,
) -> None:
    """Write the rows of IN as a Zarr store OUT, which build reads fast.

    OUT has the arrays X and, where IN has or names them, y and sample_weight.
    """
    start = time.perf_counter()
    missing: Any = missing_chunks
    options = ReadOptions(mapping(storage_option), names_of(column, columns), missing)
    X = OpenedRows(source, options)
    members = find_members(X)
    y = labels or ("y" if "y" in members else None)
    sample_weight = weights or ("sample_weight" if "sample_weight" in members else None)
    written = write_store(X, out, y, sample_weight, rows_per_chunk=chunks, progress=progress)
    shapes = {name: " x ".join(map(str, shape)) for name, shape in written.items()}
    seconds = round(time.perf_counter() - start, 2)
    show("store", {"store": clean_url(out), **shapes, "seconds": seconds})


@app.command()
def info(
    path: Store,
    *,
    storage_option: StorageOptions = None,
    as_json: Json = False,
) -> None:
    """Show what a saved coreset holds and where it comes from."""
    coreset = Coreset.from_zarr(path, storage_options=mapping(storage_option))
    facts = {"store": clean_url(path), **facts_of(coreset)}
    report("coreset", facts, as_json=as_json)


@app.command()
def rows(
    path: Store,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Table: .parquet or .csv.")],
    *,
    overwrite: Overwrite = False,
    storage_option: StorageOptions = None,
) -> None:
    """Write the rows of the coreset STORE as a table, with columns "weight", "index" and "label".

    These have underscores at the end where the data have columns of these names.
    """
    target = free_file(out, ".parquet", ".csv", overwrite=overwrite)
    coreset = Coreset.from_zarr(path, storage_options=mapping(storage_option))
    taken = {*(coreset.provenance.get("columns") or ())}
    table = coreset.to_dataframe(
        weight=unused_name("weight", taken),
        index=unused_name("index", taken),
        label=unused_name("label", taken),
    )
    write = table.to_parquet if target.suffix == ".parquet" else table.to_csv
    with new_file(target) as scratch:
        write(scratch, index=False)
    show("table", {"table": out, "rows": len(table), "columns": [*map(str, table.columns)]})


@app.command()
def predict(
    path: Store,
    source: In,
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="Labels: .parquet, .csv, .npy or .zarr.")
    ],
    *,
    clusters: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="Clusters k; by default those that STORE was built for."
        ),
    ] = None,
    seed: Seed = None,
    column: Column = None,
    columns: Columns = None,
    storage_option: StorageOptions = None,
    missing_chunks: MissingChunks = "raise",
    on_invalid: Annotated[
        str | None,
        choice(
            "raise",
            "drop",
            text="Rows with NaN or infinity: an error, or -1; by default as STORE was built.",
        ),
    ] = None,
    chunks: Rows = None,
    overwrite: Overwrite = False,
    timeout: Timeout = None,
    progress: Progress = None,
) -> None:
    """Solve k-means on the coreset STORE, and write the cluster of every row of IN.

    OUT has one number a row, from 0, in the order of IN: a column "cluster", or an array.
    """
    from daskcoreset.estimators.kmeans import CoresetKMeans

    target = _labels_target(out, source, overwrite=overwrite)
    start = time.perf_counter()
    told = mapping(storage_option)
    read = read_options(source, told, names_of(column, columns), missing_chunks)
    rule: Any = on_invalid
    with time_limit(timeout):
        coreset = Coreset.from_zarr(path, storage_options=for_url(path, told))
        k = _clusters_for(coreset, clusters)
        # Opened before the clusters are sought, for this is where wrong input shows.
        data = OpenedRows(absolute(source), as_built(coreset.provenance, source, read)[0])
        blocks = data_of(coreset, data, None, None, chunks=chunks or "auto", on_invalid=rule)
        model = CoresetKMeans(k, metric=coreset.metric, random_state=seed).fit(coreset)
        made = write_labels(
            labels_of(model, blocks),
            target,
            may_replace=lambda: _check_target(out, overwrite=overwrite, kind=KIND),
            progress=progress,
        )
    facts = {"labels": out, **made, "clusters": k, "cost on coreset": model.coreset_inertia_}
    show("labels", {**facts, "seconds": round(time.perf_counter() - start, 2)})


@app.command()
def audit(
    path: Store,
    source: In,
    *,
    labels: Labels = None,
    weights: Weights = None,
    clusters: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Centers of the solutions that are compared."),
    ] = None,
    seed: Seed = None,
    column: Column = None,
    columns: Columns = None,
    storage_option: StorageOptions = None,
    missing_chunks: MissingChunks = "raise",
    on_invalid: OnInvalid = "raise",
    as_json: Json = False,
    timeout: Timeout = None,
    progress: Progress = None,
) -> None:
    """Compare costs on the coreset STORE with those on all of IN, in one read.

    Columns, labels and weights are by default those that STORE was built from, by their names.
    """
    told = mapping(storage_option)
    read = read_options(source, told, names_of(column, columns), missing_chunks)
    with time_limit(timeout):
        coreset = Coreset.from_zarr(path, storage_options=for_url(path, told))
        read, keys = as_built(coreset.provenance, source, read, y=labels, sample_weight=weights)
        found = coreset.audit(
            OpenedRows(absolute(source), read),
            **keys,
            n_clusters=clusters,
            random_state=seed,
            on_invalid=on_invalid,
            progress=progress,
        )
    facts: dict[str, Any] = {"distortion": found.distortion}
    for name, ours, true in zip(found.names, found.on_coreset, found.on_data, strict=True):
        facts[name] = {"on coreset": float(ours), "on data": float(true)}
    if sys.stdout.isatty() and not as_json:
        typer.echo(repr(found))
    else:
        report("audit", {**facts, "rows": found.n_rows, "seed": found.seed}, as_json=as_json)


@app.command()
def plot(
    path: Store,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Picture: .png, .svg or .pdf.")],
    source: Annotated[
        str | None, typer.Argument(metavar="[IN]", help="Its data, drawn behind it.")
    ] = None,
    *,
    weights: Weights = None,
    column: Column = None,
    columns: Columns = None,
    storage_option: StorageOptions = None,
    missing_chunks: MissingChunks = "raise",
    overwrite: Overwrite = False,
) -> None:
    """Draw the rows of the coreset STORE, sized by weight."""
    target = free_file(out, ".png", ".svg", ".pdf", overwrite=overwrite)
    need_matplotlib().use("agg")  # no window is wanted, and none may be possible
    told = mapping(storage_option)
    coreset = Coreset.from_zarr(path, storage_options=for_url(path, told))
    options: dict[str, Any] = {}
    X = None
    if source is not None:
        read = read_options(source, told, names_of(column, columns), missing_chunks)
        read, options = as_built(coreset.provenance, source, read, sample_weight=weights)
        X = OpenedRows(absolute(source), read)
    drawing: Any = coreset.plot(X, **options).figure
    try:
        with new_file(target) as scratch:
            drawing.savefig(scratch, dpi=150)
    finally:
        need_matplotlib("matplotlib.pyplot").close(drawing)  # who calls this may go on
    show("picture", {"picture": out, "rows": len(coreset)})


@app.command()
def demo(
    folder: Annotated[
        str | None, typer.Option(help="Where the store goes; a new folder by default.")
    ] = None,
    random_state: Annotated[int, typer.Option(min=0, help="First of the seeds.")] = 0,
) -> None:
    """Show what k-means finds on coresets of a store that stays on the disk."""
    from daskcoreset.cli.demo import run_demo

    run_demo(folder, random_state=random_state)


def _clusters_for(coreset: Coreset, clusters: int | None) -> int:
    """Return the number of clusters to find: the one asked for, or that of the coreset."""
    known = n_clusters_of(coreset) if clusters is None else clusters
    if known is None:
        raise InvalidInputError("STORE was built for any number of clusters; pass --clusters.")
    if known > len(coreset):
        raise InvalidInputError(
            f"--clusters is {known}, and STORE has {counted(len(coreset), 'row')}; pass fewer "
            f"clusters, or build a larger coreset."
        )
    return known


def _labels_target(out: str, source: str, *, overwrite: bool) -> Path:
    """Check, before the work, that labels can be saved; return where."""
    place = local_path("OUT", out)
    if place.suffix == ".zarr":
        _check_target(out, overwrite=overwrite, kind=KIND)
    else:
        free_file(out, *FILES, ".zarr", overwrite=overwrite)
    data = locate("IN", source)
    if data == place or data in place.parents:
        raise StoreError(f"{out} is a part of IN, which is only read; choose another path")
    return place


def _check_target(out: str, *, overwrite: bool, kind: str = "coreset") -> bool:
    """Check, before the work, that the result can be saved; return whether it replaces one."""
    path = locate("out", out)
    if isinstance(path, str):
        return False  # asked when saving: a question to a remote store may cost as much
    if path.is_dir() and not any(path.iterdir()):
        return False
    if path.exists():
        if not overwrite:
            raise StoreError(f"{out} exists; pass --overwrite or choose another path")
        if _kind_of(path) != kind:
            what = _KINDS[kind]
            raise StoreError(f"{out} is not {what}, so it is never overwritten; choose another")
        return True
    parent = next(parent for parent in path.parents if parent.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise StoreError(f"{out}: nothing can be written in {parent}; choose another path")
    return False


def _kind_of(path: Path) -> str | None:
    try:
        text = (path / "zarr.json").read_text()
        kind: str | None = json.loads(text)["attributes"][HEADER]["kind"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return kind
