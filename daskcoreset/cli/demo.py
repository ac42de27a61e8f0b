"""The main job in one command: k-means on coresets of a store, against k-means on all of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from daskcoreset import datasets
from daskcoreset.build import build
from daskcoreset.cli.convert import write_store
from daskcoreset.core.errors import DataUnavailableError, InvalidInputError, MissingDependencyError
from daskcoreset.core.typing import FloatArray
from daskcoreset.datasets import Dataset
from daskcoreset.execution.progress import count_reads
from daskcoreset.metrics.costs import kmeans_cost, relative_error
from daskcoreset.metrics.plot import label_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The set that is made on the spot: each of its clusters is half as common as the one before,
# farther out, and costs as much, so that what misses one is wrong by the cost of many. They are so
# far apart that several starts of k-means always find them: chance decides nothing.
_MADE, _MADE_CLUSTERS = "scales", 16

# Least chunks and most rows of one: the sets here are small beside a chunk of good size.
_CHUNKS, _CHUNK_ROWS = 12, 2**16


@dataclass(frozen=True)
class Contender:
    """One way to choose rows, and how the picture shows it without colours."""

    name: str
    options: dict[str, Any]
    line: dict[str, Any]


CONTENDERS = (
    Contender(
        "uniform",
        {"method": "uniform", "sampling": "multinomial"},
        {"color": "0.55", "linestyle": "--", "marker": "o", "markerfacecolor": "white"},
    ),
    Contender(
        "lightweight, paper",
        {"method": "lightweight", "sampling": "multinomial"},
        {"color": "0.25", "linestyle": ":", "marker": "s"},
    ),
    Contender(
        "lightweight, default",
        {"method": "lightweight"},
        {"color": "black", "linestyle": "-", "marker": "^"},
    ),
    Contender(
        "strong",
        {"method": "kmeans"},
        {"color": "black", "linestyle": "-.", "marker": "D", "markerfacecolor": "white"},
    ),
)


@dataclass(frozen=True)
class Scale:
    """Sizes and repetitions of the demonstration; `n_rows` of the set that is made."""

    sizes: tuple[int, ...]
    n_seeds: int
    n_clusters: int
    n_rows: int


FULL = Scale(sizes=(500, 1000, 2000, 5000), n_seeds=3, n_clusters=50, n_rows=1_000_000)
QUICK = Scale(sizes=(250, 1000), n_seeds=3, n_clusters=30, n_rows=300_000)

# Starts of k-means on a coreset, which is small enough for that; on all rows there is one.
_STARTS = 8


@dataclass(frozen=True, eq=False)
class Cell:
    """Results of one contender at one size, an entry for every seed.

    Errors are costs above `Comparison.best`, in parts of it.
    """

    size: int
    contender: Contender
    errors: FloatArray
    build_seconds: FloatArray
    solve_seconds: FloatArray


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything the table and the picture show."""

    name: str
    shape: tuple[int, int]
    scale: Scale
    best: float
    full_error: float
    full_seconds: float
    cells: list[Cell]


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
        A set of `daskcoreset.datasets.load` or `load_bundled`; by default a million rows in
        clusters at all scales, which are made on the spot, in sixteen chunks.
    folder : str, optional
        Where the store and the picture go; by default a new temporary folder, which stays.
    seed : int, default=0
        First of the seeds.
    quick : bool, default=False
        Fewer rows, clusters, sizes and seeds: seconds instead of half a minute.
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
    if name is None:
        scale = replace(scale, n_clusters=_MADE_CLUSTERS)
    dataset = _load(name, scale)
    n = dataset.X.shape[0]
    # A coreset of most rows would be no coreset.
    sizes = tuple(size for size in scale.sizes if 2 * size <= n)
    if not sizes:
        raise InvalidInputError(
            f"data {dataset.name!r} has {n} rows; choose a set of at least {2 * scale.sizes[0]}."
        )
    scale = replace(scale, sizes=sizes)
    target = Path(folder or tempfile.mkdtemp(prefix="daskcoreset-demo-"))
    store, picture = target / f"{dataset.name}.zarr", target / f"{dataset.name}.png"
    rows = min(_CHUNK_ROWS, -(-n // _CHUNKS))
    write_store(dataset.X, store, rows_per_chunk=rows, progress=False)
    comparison = _compare(dataset.name, str(store), rows, scale=scale, seed=seed, progress=progress)
    _draw(comparison).savefig(picture)
    Console().print(_table(comparison))
    # Not by rich, which breaks long lines, and nobody could copy a broken path.
    typer.echo(f"store\t{store}\npicture\t{picture}")
    return comparison


def _load(name: str | None, scale: Scale) -> Dataset:
    if name is None:
        rows, _ = datasets.make_geometric(
            scale.n_rows, 10, n_clusters=_MADE_CLUSTERS, chunks=_CHUNK_ROWS, random_state=0
        )
        return datasets.Dataset(_MADE, rows.compute(scheduler="threads"))
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
    name: str, store: str, rows: int, *, scale: Scale, seed: int, progress: bool | None
) -> Comparison:
    import zarr

    X: Any = zarr.open_group(store, mode="r")["X"]
    seeds = range(seed, seed + scale.n_seeds)
    cells, solutions = [], []
    with count_reads(progress, 2 + len(scale.sizes) * len(CONTENDERS), unit="step") as advance:
        everything = np.asarray(X[:])
        start = time.perf_counter()
        full = _solve(everything, None, scale, seed, starts=1)
        full_seconds = time.perf_counter() - start
        advance(1)
        for size in scale.sizes:
            for contender in CONTENDERS:
                times, centers = _try(store, rows, size, contender, scale=scale, seeds=seeds)
                cells.append((size, contender, times))
                solutions += centers
                advance(1)
        # One read of the data for all solutions.
        costs = kmeans_cost(store, [full, *solutions])
        advance(1)
    best = float(costs.min())
    errors = relative_error(costs[1:], best).reshape(len(cells), len(seeds))
    return Comparison(
        name,
        tuple(X.shape),
        scale,
        best,
        float(costs[0]) / best - 1,
        full_seconds,
        [
            Cell(size, contender, error, times[:, 0], times[:, 1])
            for (size, contender, times), error in zip(cells, errors, strict=True)
        ],
    )


def _try(
    store: str, rows: int, size: int, contender: Contender, *, scale: Scale, seeds: Sequence[int]
) -> tuple[FloatArray, list[FloatArray]]:
    """Build and solve once for every seed; return seconds, (n_seeds, 2), and solutions."""
    times, solutions = np.empty((len(seeds), 2)), []
    options: dict[str, Any] = {"size": size, "chunks": rows, **contender.options}
    if options["method"] == "kmeans":
        options["n_clusters"] = scale.n_clusters
    for i, seed in enumerate(seeds):
        start = time.perf_counter()
        coreset = build(store, random_state=seed, progress=False, **options)
        built = time.perf_counter()
        solutions.append(_solve(coreset.points, coreset.weights, scale, seed, starts=_STARTS))
        times[i] = built - start, time.perf_counter() - built
    return times, solutions


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
    table = Table(
        title=f"k-means with {scale.n_clusters} clusters on {comparison.name}, {n:,} x {d}",
        caption=f"Error: cost on all rows above that of the best solution found here, mean ± "
        f"deviation over {scale.n_seeds} seeds. Times: medians, in seconds; k-means starts "
        f"{_STARTS} times on a coreset, and once on all rows.",
    )
    for heading in ("size", "method", "error %", "build", "solve", "speed-up"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for i, cell in enumerate(comparison.cells):
        build_seconds = np.median(cell.build_seconds)
        solve_seconds = np.median(cell.solve_seconds)
        table.add_row(
            f"{cell.size:,}",
            cell.contender.name,
            f"{100 * cell.errors.mean():.2f} ± {100 * cell.errors.std(ddof=1):.2f}",
            f"{build_seconds:.3f}",
            f"{solve_seconds:.3f}",
            f"{comparison.full_seconds / (build_seconds + solve_seconds):.0f} x",
            end_section=(i + 1) % len(CONTENDERS) == 0,
        )
    table.add_row(
        f"{n:,}",
        "all rows",
        f"{100 * comparison.full_error:.2f}",
        "",
        f"{comparison.full_seconds:.3f}",
        "1 x",
    )
    return table


def _draw(comparison: Comparison) -> Figure:
    """Draw error against size; without pyplot, which would choose a window system."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for i, contender in enumerate(CONTENDERS):
        cells = [cell for cell in comparison.cells if cell.contender is contender]
        mean = np.array([cell.errors.mean() for cell in cells])
        spread = np.array([cell.errors.std(ddof=1) for cell in cells])
        # Side by side, so that the bars of one method do not hide those of another.
        sizes = np.array([cell.size for cell in cells]) * 1.04 ** (i - 1)
        # A logarithm has no place for zero: the best solution of all may be one of these.
        shown = np.maximum(mean, 1e-6)
        axes.errorbar(sizes, shown, spread, label=contender.name, capsize=3, **contender.line)
    label_errors(axes, np.array(comparison.scale.sizes))
    axes.set_ylabel("cost above that of the best solution")
    n, d = comparison.shape
    axes.set_title(f"{comparison.name}: {n:,} x {d}, {comparison.scale.n_clusters} clusters")
    axes.legend()
    return figure
