"""The commands of ``daskcoreset``, which `daskcoreset.cli.main` starts."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

import daskcoreset
from daskcoreset.cli.cluster import cluster_for
from daskcoreset.cli.files import (
    check_target,
    file_to_write,
    labels_to_write,
    write_labels,
    write_store,
)
from daskcoreset.cli.options import (
    Building,
    Chunks,
    Clusters,
    In,
    Json,
    OnInvalid,
    Overwrite,
    Progress,
    Reading,
    Running,
    SampleWeight,
    Seed,
    StorageOptions,
    Store,
    TimeLimit,
    Y,
    expanded,
    facts_of,
    read_pairs,
    show,
)
from daskcoreset.cli.trees import trees
from daskcoreset.core.block import Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.deadline import time_limit
from daskcoreset.core.messages import import_optional
from daskcoreset.core.typing import AnyArray
from daskcoreset.execution.engine import map_rows
from daskcoreset.execution.progress import show_progress
from daskcoreset.metrics.costs import data_of
from daskcoreset.solvers.kmeans import nearest_labels
from daskcoreset.storage.atomic import new_file
from daskcoreset.storage.locations import clean_url

# Clusters of `predict` for a coreset that is for any number of them, as of `CoresetKMeans`.
_CLUSTERS = 8

app = typer.Typer(
    pretty_exceptions_enable=False,
    help="Coresets of data larger than memory: small weighted subsets with a guarantee.",
    epilog="Results are a table on a terminal, and lines of key, tab and value in a pipe.",
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
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error. Works after any command."),
    ] = False,
) -> None:
    """Take the options that belong to every command."""
    del version, debug  # `_print_version` and `daskcoreset.cli.main.main` act on them


@app.command()
@expanded
def build(
    source: In,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Zarr store to create.")],
    reading: Reading,
    building: Building,
    running: Running,
    *,
    y: Y = None,
    sample_weight: SampleWeight = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Double the size until costs differ by at most this share.")
    ] = None,
    overwrite: Overwrite = False,
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan, and build nothing.")] = False,
) -> None:
    """Build a coreset of IN and save it as OUT."""
    if running.scheduler is not None and running.workers is not None:
        raise typer.BadParameter("--scheduler and --workers exclude each other; pass one.")
    if epsilon is not None and (building.size is not None or building.n_clusters is None or plan):
        raise typer.BadParameter("--epsilon needs --n-clusters; leave out --size and --plan.")
    check_target(out, overwrite=overwrite)
    rows = reading.open(source)
    progress = running.progress
    given = {**building.arguments, "sample_weight": sample_weight}
    planned = epsilon is None and building.method != "coverage"
    start = time.perf_counter()
    with time_limit(running.limit):
        # Defined before processes start, because wrong input shows here.
        lazy = daskcoreset.plan(rows, y, size=building.size, **given) if planned else None
        with cluster_for(running.scheduler, running.workers):
            if plan and lazy is not None:  # the workers decide how much memory is taken
                if sys.stdout.isatty():
                    typer.echo(str(lazy.forecast))
                else:
                    show("plan", asdict(lazy.forecast))
                return
            if lazy is not None:
                with show_progress(progress, lazy):
                    coreset = lazy.compute()
            elif epsilon is not None:
                coreset = daskcoreset.grow(rows, y, epsilon=epsilon, progress=progress, **given)
            else:
                coreset = daskcoreset.build(rows, y, size=building.size, progress=progress, **given)
        coreset.to_zarr(out, overwrite=overwrite, storage_options=reading.told(out))
    made = {"store": clean_url(out), **facts_of(coreset)}
    shown = ("store", "method", "rows", "n", "features", "dtype", "labels", "weight", "seed")
    seconds = round(time.perf_counter() - start, 2)
    show("coreset", {key: made[key] for key in shown if key in made} | {"seconds": seconds})


@app.command()
@expanded
def store(
    source: In,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Zarr store to create.")],
    reading: Reading,
    *,
    y: Y = None,
    sample_weight: SampleWeight = None,
    chunks: Chunks = None,
    progress: Progress = None,
) -> None:
    """Write the rows of IN as a Zarr store OUT, which build reads fast.

    OUT has the array X. It also has y and sample_weight if IN has them, or if options name them.
    """
    start = time.perf_counter()
    known = {"y": "y", "sample_weight": "sample_weight"}
    rows, keys = reading.open_as(known, source, y=y, sample_weight=sample_weight)
    written = write_store(
        rows, out, keys["y"], keys["sample_weight"], rows_per_chunk=chunks, progress=progress
    )
    shapes = {name: " x ".join(map(str, shape)) for name, shape in written.items()}
    seconds = round(time.perf_counter() - start, 2)
    show("store", {"store": clean_url(out), **shapes, "seconds": seconds})


@app.command()
def info(path: Store, *, storage_options: StorageOptions = None, as_json: Json = False) -> None:
    """Show the size, method, seed and source of the coreset STORE."""
    told = read_pairs("--storage-options", storage_options) or None
    coreset = Coreset.from_zarr(path, storage_options=told)
    show("coreset", {"store": clean_url(path), **facts_of(coreset)}, as_json=as_json)


@app.command()
@expanded
def predict(
    path: Store,
    source: In,
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="Labels to write: .parquet, .csv, .npy or .zarr.")
    ],
    reading: Reading,
    *,
    n_clusters: Clusters = None,
    random_state: Seed = None,
    on_invalid: OnInvalid = None,
    chunks: Chunks = None,
    overwrite: Overwrite = False,
    limit: TimeLimit = None,
    progress: Progress = None,
) -> None:
    """Solve k-means on the coreset STORE, and write the cluster of every row of IN.

    OUT has one number per row of IN, in the same order. Dropped rows have -1. The default number of
    clusters is that of STORE, or 8 if STORE has none.
    """
    from daskcoreset.estimators.kmeans import CoresetKMeans

    target = labels_to_write(out, source, overwrite=overwrite)
    rule: Any = on_invalid
    start = time.perf_counter()
    with time_limit(limit):
        coreset = Coreset.from_zarr(path, storage_options=reading.told(path))
        known = coreset.provenance.get("objective") or {}
        k = n_clusters or known.get("n_clusters") or known.get("n_components") or _CLUSTERS
        # Opened before the clusters are sought, because wrong input shows here.
        rows, _ = reading.open_as(coreset.provenance, source)
        blocks = data_of(coreset, rows, None, None, chunks=chunks or "auto", on_invalid=rule)
        model = CoresetKMeans(k, metric=coreset.metric, random_state=random_state).fit(coreset)
        work = partial(_nearest, centers=model.cluster_centers_)
        labels = map_rows(blocks, work, dtype=np.int32, missing=-1)
        made = write_labels(labels, target, overwrite=overwrite, progress=progress)
    facts = {"labels": out, **made, "n_clusters": k, "cost on coreset": model.coreset_inertia_}
    show("labels", {**facts, "seconds": round(time.perf_counter() - start, 2)})


def _nearest(block: Block, centers: AnyArray) -> AnyArray:
    return nearest_labels(block.points, centers)


@app.command()
@expanded
def audit(
    path: Store,
    source: In,
    reading: Reading,
    *,
    y: Y = None,
    sample_weight: SampleWeight = None,
    n_clusters: Clusters = None,
    random_state: Seed = None,
    on_invalid: OnInvalid = None,
    limit: TimeLimit = None,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Compare costs on the coreset STORE with those on all of IN, in one pass.

    By default, columns, labels and weights have the names with which STORE was built.
    """
    with time_limit(limit):
        coreset = Coreset.from_zarr(path, storage_options=reading.told(path))
        rows, keys = reading.open_as(coreset.provenance, source, y=y, sample_weight=sample_weight)
        found = coreset.audit(
            rows,
            **keys,
            n_clusters=n_clusters,
            random_state=random_state,
            on_invalid=on_invalid,
            progress=progress,
        )
    if sys.stdout.isatty() and not as_json:
        typer.echo(repr(found))
        return
    facts: dict[str, Any] = {"distortion": found.distortion}
    for name, ours, true in zip(found.names, found.on_coreset, found.on_data, strict=True):
        facts[name] = {"on coreset": float(ours), "on data": float(true)}
    show("audit", {**facts, "rows": found.n_rows, "seed": found.seed}, as_json=as_json)


@app.command()
@expanded
def plot(
    path: Store,
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="Picture to write: .png, .svg or .pdf.")
    ],
    reading: Reading,
    source: Annotated[
        str | None, typer.Argument(metavar="[IN]", help="Data of the coreset, drawn behind it.")
    ] = None,
    *,
    sample_weight: SampleWeight = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw the rows of the coreset STORE, sized by weight."""
    target = file_to_write(out, (".png", ".svg", ".pdf"), overwrite=overwrite)
    import_optional("matplotlib").use("agg")  # no window is wanted, and none may be possible
    coreset = Coreset.from_zarr(path, storage_options=reading.told(path))
    rows: Any = None
    keys: dict[str, Any] = {}
    if source is not None:
        rows, keys = reading.open_as(coreset.provenance, source, sample_weight=sample_weight)
    drawing: Any = coreset.plot(rows, **keys).figure
    try:
        with new_file(target) as scratch:
            drawing.savefig(scratch, dpi=150)
    finally:
        import_optional("matplotlib.pyplot").close(drawing)  # who calls this may go on
    show("picture", {"picture": out, "rows": len(coreset)})


@app.command()
def demo(
    folder: Annotated[
        str | None, typer.Option(help="Folder of the store. Default: a new one.")
    ] = None,
    random_state: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
) -> None:
    """Compare k-means on random rows and on coresets, on synthetic data that stay on the disk."""
    from daskcoreset.cli.demo import run_demo

    run_demo(folder, random_state=random_state)
