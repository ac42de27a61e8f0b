"""The main job in one command: k-means on coresets of rows that do not fit into memory.

The rows are made block by block and stored, and no more of them than a limit allows may be in
memory. A set of one's own is clustered in full as well, for comparison.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from daskcoreset import datasets
from daskcoreset.build import build
from daskcoreset.cli.convert import write_store
from daskcoreset.cli.demo_picture import draw
from daskcoreset.cli.demo_results import Cell, Comparison, Contender, Scale
from daskcoreset.cli.demo_rows import LimitedRows, write_made
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import DataUnavailableError, InvalidInputError, MissingDependencyError
from daskcoreset.core.typing import FloatArray
from daskcoreset.datasets import Dataset
from daskcoreset.execution.progress import count_reads
from daskcoreset.metrics.costs import kmeans_cost

# The set that is made on the spot: each of its clusters is half as common as the one before,
# farther out, and costs as much, so that what misses one is wrong by the cost of many. They are so
# far apart that several starts of k-means always find them: chance decides nothing.
_MADE, _MADE_CLUSTERS = "scales", 16

# Least chunks and most rows of one: the sets here are small beside a chunk of good size.
_CHUNKS, _CHUNK_ROWS = 12, 2**16


# Bytes of the rows made on the spot that may be in memory: a fraction of all, whatever the machine.
_LIMIT_SHARE = 0.3

# Threads that read them: each holds a block or two.
_THREADS = 2

CONTENDERS = (
    Contender("uniform", {"method": "uniform", "sampling": "multinomial"}),
    Contender("lightweight", {"method": "lightweight"}),
    Contender("kmeans", {"method": "kmeans"}),
)

FULL = Scale(sizes=(500, 1000, 2000), n_seeds=3, n_clusters=50, n_rows=1_200_000)
QUICK = Scale(sizes=(250, 1000), n_seeds=3, n_clusters=30, n_rows=300_000)

# Starts of k-means on a coreset, which is small enough for that; on all rows there is one.
_STARTS = 8


def run_demo(
    name: str | None = None,
    *,
    folder: str | None = None,
    seed: int = 0,
    quick: bool = False,
    progress: bool | None = None,
) -> Comparison:
    """Compare solutions found on coresets with the one found on all rows, and print and draw it.

    What they are compared by is the best solution that was found at all: k-means from one
    start on all rows ends in a local optimum too.

    Parameters
    ----------
    name : str, optional
        A set of `daskcoreset.datasets.load` or `load_bundled`; by default 1.2 million rows in
        clusters at all scales, made block by block, of which no more than 30 % may be in memory.
    folder : str, optional
        Where the store and the picture go; by default a new temporary folder, which stays.
    seed : int, default=0
        First of the seeds.
    quick : bool, default=False
        Fewer rows, clusters, sizes and seeds: a first look.
    progress : bool or None, default=None
        As in `daskcoreset.build`.

    Returns
    -------
    Comparison
    """
    if find_spec("matplotlib") is None:
        raise MissingDependencyError(
            'the demo draws with matplotlib; pip install "daskcoreset[plot]" brings it.'
        )
    scale = QUICK if quick else FULL
    dataset = None if name is None else _load(name)
    if dataset is None:
        scale = replace(scale, n_clusters=_MADE_CLUSTERS)
    n = scale.n_rows if dataset is None else dataset.X.shape[0]
    # A coreset of most rows would be no coreset.
    sizes = tuple(size for size in scale.sizes if 2 * size <= n)
    if not sizes:
        raise InvalidInputError(
            f"data {name or _MADE!r} has {n} rows; choose a set of at least {2 * scale.sizes[0]}."
        )
    scale = replace(scale, sizes=sizes)
    target = Path(folder or tempfile.mkdtemp(prefix="daskcoreset-demo-"))
    title = _MADE if dataset is None else dataset.name
    store, picture = target / f"{title}.zarr", target / f"{title}.png"
    rows = min(_CHUNK_ROWS, -(-n // _CHUNKS))
    typer.echo(_INTRODUCTION)
    if dataset is None:
        with _step(1, f"{n:,} rows x 10 columns, {n * 40 / 1e6:.0f} MB, made block by block"):
            write_made(store, n, _MADE_CLUSTERS, rows)
    else:
        with _step(1, f"{n:,} rows of {title}, written as chunks of {rows:,}"):
            write_store(dataset.X, store, rows_per_chunk=rows, progress=False)
    comparison = _compare(
        title, str(store), rows, scale=scale, seed=seed, progress=progress, limited=dataset is None
    )
    draw(comparison).savefig(picture)
    Console().print(_table(comparison))
    # Not by rich, which breaks long lines, and nobody could copy a broken path.
    typer.echo(f"store\t{store}\npicture\t{picture}")
    return comparison


_INTRODUCTION = """\
k-means on few rows of data that stay on the disk: on a uniform sample, and on two
coresets, whose rows have weights. In four steps."""


@contextmanager
def _step(number: int, text: str) -> Iterator[None]:
    """Say what is done, before it is, and how long it took."""
    typer.echo(f"{number} of 4  {text} ... ", nl=False)
    start = time.perf_counter()
    yield
    typer.echo(f"{time.perf_counter() - start:.1f} s")


def _load(name: str) -> Dataset:
    stored = datasets.available()
    if name in stored:
        return datasets.load(name)
    if name in datasets.BUNDLED:
        return datasets.load_bundled(name)
    where = f"DASKCORESET_DATA has {', '.join(stored)}" if stored else "DASKCORESET_DATA is not set"
    raise DataUnavailableError(
        f"data {name!r} is unknown; scikit-learn has {', '.join(datasets.BUNDLED)}, and {where}."
    )


def _compare(
    name: str,
    store: str,
    rows: int,
    *,
    scale: Scale,
    seed: int,
    progress: bool | None,
    limited: bool,
) -> Comparison:
    import dask
    import dask.array as da
    import zarr

    array: Any = zarr.open_group(store, mode="r")["X"]
    seeds = range(seed, seed + scale.n_seeds)
    found: list[tuple[int, Contender, FloatArray]] = []
    solutions: list[FloatArray] = []
    examples: dict[str, tuple[Coreset, FloatArray]] = {}
    full_seconds, X, held = None, store, None
    with dask.config.set(scheduler="threads", num_workers=_THREADS):
        if limited:
            held = LimitedRows(array, int(_LIMIT_SHARE * array.nbytes))
            X = da.from_array(held, chunks=(rows, -1), asarray=False, name=False)
            with _step(2, "k-means on all rows"):
                typer.echo(f"no: {_refusal(held)} ... ", nl=False)
        else:
            with _step(2, "k-means on all rows, from one start"):
                start = time.perf_counter()
                solutions.append(_solve(np.asarray(array[:]), None, scale, seed, starts=1))
                full_seconds = time.perf_counter() - start
        builds = len(scale.sizes) * len(CONTENDERS)
        words = f"{builds * len(seeds)} coresets, and k-means on each"
        with _step(3, words), count_reads(progress, builds, unit="step") as advance:
            for size in scale.sizes:
                for contender in CONTENDERS:
                    times, tried = _try(X, rows, size, contender, scale=scale, seeds=seeds)
                    found.append((size, contender, times))
                    examples.setdefault(contender.name, tried[0])
                    solutions += [centers for _, centers in tried]
                    advance(1)
        with _step(4, f"what all {len(solutions)} solutions cost on all rows, in one read"):
            costs = kmeans_cost(X, solutions)
    if held is not None:
        typer.echo(f"        at most {held.most / 1e6:.0f} MB of rows were in memory")
    best = float(costs.min())
    errors = costs[len(costs) - len(found) * len(seeds) :] / best - 1
    errors = errors.reshape(len(found), len(seeds))
    return Comparison(
        name,
        tuple(array.shape),
        scale,
        best,
        solutions[int(np.argmin(costs))],
        None if limited else float(costs[0]) / best - 1,
        full_seconds,
        [
            Cell(size, contender, error, times[:, 0], times[:, 1])
            for (size, contender, times), error in zip(found, errors, strict=True)
        ],
        examples,
    )


def _refusal(held: LimitedRows) -> str:
    """Try to hold all rows, and return what is said to that."""
    try:
        held[:]
    except MemoryError as error:
        return str(error)
    raise AssertionError("all rows are within the limit")  # pragma: no cover


def _try(
    X: Any, rows: int, size: int, contender: Contender, *, scale: Scale, seeds: Sequence[int]
) -> tuple[FloatArray, list[tuple[Coreset, FloatArray]]]:
    """Build and solve once for every seed; return seconds, (n_seeds, 2), coresets and solutions."""
    times, tried = np.empty((len(seeds), 2)), []
    options: dict[str, Any] = {"size": size, "chunks": rows, **contender.options}
    if options["method"] == "kmeans":
        options["n_clusters"] = scale.n_clusters
    for i, seed in enumerate(seeds):
        start = time.perf_counter()
        coreset = build(X, random_state=seed, progress=False, **options)
        built = time.perf_counter()
        centers = _solve(coreset.points, coreset.weights, scale, seed, starts=_STARTS)
        tried.append((coreset, centers))
        times[i] = built - start, time.perf_counter() - built
    return times, tried


def _solve(
    points: Any, weights: FloatArray | None, scale: Scale, seed: int, *, starts: int
) -> FloatArray:
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped] # no annotations

    model = KMeans(scale.n_clusters, n_init=starts, random_state=seed)
    # A few thousand rows take longer on several threads than on one.
    with threadpool_limits(1 if weights is not None else None):
        centers: FloatArray = model.fit(points, sample_weight=weights).cluster_centers_
    return centers


def _table(comparison: Comparison) -> Table:
    scale, (n, d) = comparison.scale, comparison.shape
    full = comparison.full_seconds
    table = Table(
        title=f"k-means with {scale.n_clusters} clusters on {comparison.name}, {n:,} x {d}",
        caption=f"Error: cost on all rows above that of the best solution found here, mean ± "
        f"deviation over {scale.n_seeds} seeds. Times: medians, in seconds; k-means starts "
        f"{_STARTS} times on a coreset{'' if full is None else ', and once on all rows'}.",
    )
    headings = ["size", "method", "error %", "build", "solve"]
    for heading in headings if full is None else [*headings, "speed-up"]:
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for i, cell in enumerate(comparison.cells):
        build_seconds = float(np.median(cell.build_seconds))
        solve_seconds = float(np.median(cell.solve_seconds))
        values = [
            f"{cell.size:,}",
            cell.contender.name,
            f"{100 * cell.errors.mean():.2f} ± {100 * cell.errors.std(ddof=1):.2f}",
            f"{build_seconds:.3f}",
            f"{solve_seconds:.3f}",
        ]
        if full is not None:
            values.append(f"{full / (build_seconds + solve_seconds):.0f} x")
        table.add_row(*values, end_section=(i + 1) % len(CONTENDERS) == 0)
    if comparison.full_error is None or full is None:
        table.add_row(f"{n:,}", "all rows", "too large", "", "")
    else:
        error = f"{100 * comparison.full_error:.2f}"
        table.add_row(f"{n:,}", "all rows", error, "", f"{full:.3f}", "1 x")
    return table
