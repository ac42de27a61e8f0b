"""The commands of ``daskcoreset``, which `daskcoreset.cli.main` starts."""

from __future__ import annotations

import logging
import sys
import time
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from typing import Any

import dask
import numpy as np

import daskcoreset
from daskcoreset.cli import trees
from daskcoreset.cli.files import (
    check_target,
    file_to_write,
    labels_to_write,
    write_labels,
    write_store,
)
from daskcoreset.cli.options import (
    READING,
    Parser,
    add_command,
    draw_of,
    method_of,
    rows_as,
    rows_of,
    storage_of,
)
from daskcoreset.cli.output import facts_of, show
from daskcoreset.core.block import Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.deadline import check_time, deadline, time_limit
from daskcoreset.core.messages import import_optional
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import map_rows
from daskcoreset.metrics.costs import data_of
from daskcoreset.solvers.kmeans import nearest_labels
from daskcoreset.storage.atomic import new_file
from daskcoreset.storage.locations import clean_url

# Clusters of `predict` for a coreset that is for any number of them, as of `CoresetKMeans`.
_CLUSTERS = 8


def parser() -> Parser:
    """Return the parser of the command line."""
    whole = Parser(
        "daskcoreset",
        description="Coresets of data larger than memory: small weighted subsets with a guarantee.",
        epilog="Results are a table on a terminal, and lines of key, tab and value in a pipe. "
        "--debug, after any command, shows the traceback of an error.",
        allow_abbrev=False,
    )
    version = f"daskcoreset {daskcoreset.__version__}"
    whole.add_argument("--version", action="version", version=version)
    commands = whole.add_subparsers(dest="COMMAND", required=True)
    labelled = "--y --sample-weight"
    takes = {
        build: f"IN OUT --size --method --set --n-clusters --random-state {labelled} --chunks "
        f"--on-invalid --sampling --passes --tree --epsilon --plan --scheduler --workers "
        f"--time-limit --progress --overwrite {READING}",
        store: f"IN OUT {labelled} --chunks --progress {READING}",
        info: "STORE --storage-options --json",
        predict: "STORE IN OUT --n-clusters --random-state --on-invalid --chunks --time-limit "
        f"--progress --overwrite {READING}",
        audit: f"STORE IN --n-clusters --random-state {labelled} --on-invalid --time-limit "
        f"--progress --json {READING}",
        plot: f"STORE OUT BEHIND --sample-weight --overwrite {READING}",
        demo: "--folder --random-state",
    }
    for command, options in takes.items():
        add_command(commands, command.__name__, command, options)
    trees.add_commands(commands)
    return whole


def build(given: Namespace) -> None:
    """Build a coreset of IN and save it as OUT."""
    if given.scheduler is not None and given.workers is not None:
        given.error("--scheduler and --workers exclude each other; pass one")
    grows = given.epsilon is not None
    if grows and (given.size is not None or given.n_clusters is None or given.plan):
        given.error("--epsilon needs --n-clusters; leave out --size and --plan")
    check_target(given.OUT, overwrite=given.overwrite)
    rows = rows_of(given, given.IN)
    options: dict[str, Any] = {
        "method": method_of(given),
        "n_clusters": given.n_clusters,
        "sample_weight": given.sample_weight,
        "random_state": given.random_state,
        "chunks": given.chunks or "auto",
        "on_invalid": given.on_invalid or "raise",
        "draw": draw_of(given),
        "progress": given.progress,
    }
    start = time.perf_counter()
    with time_limit(given.time_limit), _client(given):
        if given.plan:  # the workers decide how much memory is taken
            forecast = daskcoreset.plan(rows, given.y, size=given.size, **options).forecast
            print(forecast) if sys.stdout.isatty() else show(asdict(forecast))
            return
        if grows:
            coreset = daskcoreset.grow(rows, given.y, epsilon=given.epsilon, **options)
        else:
            coreset = daskcoreset.build(rows, given.y, size=given.size, **options)
        target = storage_of(given, given.OUT)
        coreset.to_zarr(given.OUT, overwrite=given.overwrite, storage_options=target)
    made = {"store": clean_url(given.OUT), **facts_of(coreset)}
    shown = ("store", "method", "rows", "n", "features", "dtype", "labels", "weight", "seed")
    show({key: made[key] for key in shown if key in made} | _seconds(start))


def _client(given: Namespace) -> AbstractContextManager[Any]:
    """Return a client of the scheduler or of the workers that are asked for, if any."""
    if given.scheduler is None and given.workers is None:
        return nullcontext()
    distributed = import_optional("distributed")
    options: dict[str, Any] = {}
    if given.workers is not None:
        dask.config.set({"scheduler-address": None})  # which would take the place of the workers
        # Any port: the usual one may be taken, which would be a warning on every start. What fails
        # in a task comes back as its error; the log would be of processes that end.
        options = {"n_workers": given.workers, "dashboard_address": "127.0.0.1:0"}
        options["silence_logs"] = logging.CRITICAL
    elif limit := deadline():
        options = {"timeout": limit.left}
    try:
        client: AbstractContextManager[Any] = distributed.Client(given.scheduler, **options)
    except (OSError, ValueError, AssertionError) as error:  # the last one of addresses like [1
        check_time(f"no scheduler had answered at {given.scheduler!r}", "check the address")
        raise InvalidInputError(
            f"no scheduler answers at {given.scheduler!r} ({error})", remedy="check the address"
        ) from None
    return client


def store(given: Namespace) -> None:
    """Write the rows of IN as a Zarr store OUT, which build reads fast.

    OUT has the array X. It also has y and sample_weight if IN has them, or if options name them.
    """
    start = time.perf_counter()
    known = {"y": "y", "sample_weight": "sample_weight"}
    rows, keys = rows_as(known, given, given.IN, *known)
    written = write_store(
        rows, given.OUT, **keys, rows_per_chunk=given.chunks, progress=given.progress
    )
    shapes = {name: " x ".join(map(str, shape)) for name, shape in written.items()}
    show({"store": clean_url(given.OUT), **shapes, **_seconds(start)})


def info(given: Namespace) -> None:
    """Show the size, method, seed and source of the coreset STORE."""
    facts = {"store": clean_url(given.STORE), **facts_of(_saved(given))}
    show(facts, as_json=given.json)


def predict(given: Namespace) -> None:
    """Solve k-means on the coreset STORE, and write the cluster of every row of IN.

    OUT is a .parquet, .csv, .npy or .zarr of one number per row of IN, in the same order. Dropped
    rows have -1. The default number of clusters is that of STORE, or 8 if STORE has none.
    """
    from daskcoreset.estimators import CoresetKMeans

    target = labels_to_write(given.OUT, given.IN, overwrite=given.overwrite)
    start = time.perf_counter()
    with time_limit(given.time_limit):
        coreset = _saved(given)
        known = coreset.provenance.get("objective") or {}
        k = given.n_clusters or known.get("n_clusters") or known.get("n_components") or _CLUSTERS
        # Opened before the clusters are sought, because wrong input shows here.
        rows, _ = rows_as(coreset.provenance, given, given.IN)
        blocks = data_of(
            coreset, rows, None, None, chunks=given.chunks or "auto", on_invalid=given.on_invalid
        )
        model = CoresetKMeans(k, metric=coreset.metric, random_state=given.random_state)
        work = partial(_nearest, centers=model.fit(coreset).cluster_centers_)
        labels = map_rows(blocks, work, dtype=np.int32, missing=-1)
        made = write_labels(labels, target, overwrite=given.overwrite, progress=given.progress)
    cost = {"n_clusters": k, "cost on coreset": model.coreset_inertia_}
    show({"labels": given.OUT, **made, **cost, **_seconds(start)})


def _nearest(block: Block, centers: AnyArray) -> AnyArray:
    return nearest_labels(block.points, centers)


def audit(given: Namespace) -> None:
    """Compare costs on the coreset STORE with those on all of IN, in one pass.

    By default, columns, labels and weights have the names with which STORE was built.
    """
    with time_limit(given.time_limit):
        coreset = _saved(given)
        rows, keys = rows_as(coreset.provenance, given, given.IN, "y", "sample_weight")
        found = coreset.audit(
            rows,
            **keys,
            n_clusters=given.n_clusters,
            random_state=given.random_state,
            on_invalid=given.on_invalid,
            progress=given.progress,
        )
    if sys.stdout.isatty() and not given.json:
        print(repr(found))
        return
    facts: dict[str, Any] = {"distortion": found.distortion}
    for name, ours, true in zip(found.names, found.on_coreset, found.on_data, strict=True):
        facts[name] = {"on coreset": float(ours), "on data": float(true)}
    show({**facts, "rows": found.n_rows, "seed": found.seed}, as_json=given.json)


def plot(given: Namespace) -> None:
    """Draw the rows of the coreset STORE, sized by weight, as a .png, .svg or .pdf."""
    target = file_to_write(given.OUT, (".png", ".svg", ".pdf"), overwrite=given.overwrite)
    import_optional("matplotlib").use("agg")  # no window is wanted, and none may be possible
    coreset = _saved(given)
    rows: Any = None
    keys: dict[str, Any] = {}
    if given.BEHIND is not None:
        rows, keys = rows_as(coreset.provenance, given, given.BEHIND, "sample_weight")
    drawing: Any = coreset.plot(rows, **keys).figure
    try:
        with new_file(target) as scratch:
            drawing.savefig(scratch, dpi=150)
    finally:
        import_optional("matplotlib.pyplot").close(drawing)  # who calls this may go on
    show({"picture": given.OUT, "rows": len(coreset)})


def demo(given: Namespace) -> None:
    """Compare k-means on random rows and on coresets, on synthetic data that stay on the disk."""
    from daskcoreset.cli.demo import run_demo

    run_demo(given.folder, random_state=given.random_state or 0)


def _saved(given: Namespace) -> Coreset:
    return Coreset.from_zarr(given.STORE, storage_options=storage_of(given, given.STORE))


def _seconds(start: float) -> dict[str, float]:
    return {"seconds": round(time.perf_counter() - start, 2)}
