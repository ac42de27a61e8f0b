"""Error of linear SVMs on coresets of a stream, against the SVM on everything.

The rows of every set come in batches, in random order, into `CoresetStream` with leaves of
32, 8 and 4 times its size, into Algorithm 2 as published (leaves of twice the size, nodes of the
size, independent draws by the scores of Algorithm 1), and into two uniform reservoirs: of the
same size, and of as many rows as the first stream holds at most. After the last row a classifier
is fitted on either and its objective is evaluated on all rows. Features are standardised,
lambda = 1. Writes a table, figures like the paper's 3 and 5, and the raw errors.

    DASKCORESET_DATA=... python benchmarks/svm_streaming.py --trials 30

Tukan, Baykal, Feldman and Rus (2020), On Coresets for Support Vector Machines, section 6 and
Algorithm 2. Times are seconds of the processor.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import common
import numpy as np
from svm_offline import LEAST, SETS, cost, data_of
from threadpoolctl import threadpool_limits

from daskcoreset import SVM, CoresetStream, MergeReduce
from daskcoreset.solvers.linear import solve_svm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "svm_streaming"
SMALL, LARGE = "reservoir", "reservoir, same memory"
STREAMS = {"stream": 32, "stream, leaves of 8": 8, "stream, leaves of 4": 4, "Algorithm 2": 2}
"""Rows of a leaf for every row of the coreset."""

METHODS = (SMALL, LARGE, *STREAMS)
LOOKS = common.looks_of(
    {
        SMALL: "uniform",
        LARGE: "uniform, as many rows",
        "stream": "svm",
        "stream, leaves of 8": "svm, stream",
        "stream, leaves of 4": "svm, tree",
        "Algorithm 2": "svm, paper",
    }
)
BATCH = 5000


def reservoir(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows that a uniform reservoir holds after n rows."""
    held = np.arange(min(size, n))
    for row, place in enumerate(rng.integers(0, np.arange(size, n) + 1), start=size):
        if place < size:
            held[place] = row
    return held


def stream_of(method: str, size: int, seed: int) -> CoresetStream:
    """Return an empty stream."""
    leaf = STREAMS[method] * size
    if method == "Algorithm 2":
        return CoresetStream(
            SVM(variant="paper"),
            size=size,
            leaf_size=leaf,
            random_state=seed,
            draw=MergeReduce(inner_size=size, sampling="multinomial"),
        )
    return CoresetStream(SVM(), size=size, leaf_size=leaf, random_state=seed)


def trial(X: np.ndarray, y: np.ndarray, size: int, seed: int) -> dict[str, list[float]]:
    """Return cost, seconds, and rows held at most, for every method."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    found: dict[str, list[float]] = {}
    for method in STREAMS:
        held = 0
        with threadpool_limits(1), common.timed() as clock:
            stream = stream_of(method, size, seed)
            for first in range(0, len(y), BATCH):
                rows = order[first : first + BATCH]
                stream.partial_fit(X[rows], y[rows])
                held = max(held, stream.n_held)
            coreset = stream.coreset()
            signs = coreset.labels.astype(float)
            fit = solve_svm(coreset.points, signs, coreset.weights)
        found[method] = [cost(X, y, fit.coef, fit.intercept), clock.cpu, held]
    for method, rows_held in ((SMALL, size), (LARGE, int(found["stream"][2]))):
        with threadpool_limits(1), common.timed() as clock:
            rows = order[reservoir(len(y), rows_held, rng)]
            weights = np.full(len(rows), len(y) / len(rows))
            fit = solve_svm(X[rows], y[rows].astype(float), weights)
        found[method] = [cost(X, y, fit.coef, fit.intercept), clock.cpu, len(rows)]
    return found


def run(name: str, trials: int, count: int, least: int) -> dict[str, Any]:
    """Measure one set."""
    X, y = data_of(name)
    n = len(y)
    full = solve_svm(X, y.astype(float), np.ones(n), tol=1e-6).cost
    print(f"{name}: {X.shape}, F {full:.6g}", flush=True)
    result: dict[str, Any] = {"set": name, "shape": X.shape, "full": full, "trials": trials}
    cells: dict[str, dict[str, Any]] = {}
    for size in (round(size) for size in np.geomspace(max(least, math.log(n)), n**0.8, count)):
        found = [trial(X, y, size, seed) for seed in range(trials)]
        for method in METHODS:
            costs, seconds, held = zip(*(one[method] for one in found), strict=True)
            cells[f"{method}|{size}"] = {
                "errors": [one / full - 1 for one in costs],
                "seconds": float(np.median(seconds)),
                "held": max(held),
            }
        means = (np.mean(cells[f"{method}|{size}"]["errors"]) for method in METHODS)
        print(f"  {size}: " + ", ".join(f"{mean:.3%}" for mean in means), flush=True)
    return result | {"cells": cells}


def shown(found: dict[str, Any], n: int) -> str:
    """Return error, rows held and seconds."""
    held = "all rows" if found["held"] >= n else f"{found['held']:,} held"
    return f"{common.cell(float(np.mean(found['errors'])), 3)} ({held}, {found['seconds']:.2f} s)"


def report(data: dict[str, Any]) -> str:
    """Return the Markdown table."""
    lines = [
        "# Linear SVMs on coresets of a stream",
        "",
        "Mean relative error of F in %; in brackets rows held at most and seconds of the processor",
        f"for all rows, classifier included. {common.stamped(data)}",
    ]
    for result in data["results"]:
        n, d = result["shape"]
        sizes = common.sizes_of(result["cells"])
        rows = [
            [size, *(shown(result["cells"][f"{method}|{size}"], n) for method in METHODS)]
            for size in sizes
        ]
        title = f"## {result['set']}: {n:,} x {d}, {common.counted([result['trials']], 'trial')}"
        lines += ["", title, "", *common.table(["size", *METHODS], rows)]
    rows = []
    for method in METHODS[1:]:
        wins = dict.fromkeys((SMALL, LARGE), 0)
        cells = [
            (result["cells"], size)
            for result in data["results"]
            for size in common.sizes_of(result["cells"])
        ]
        for found, size in cells:
            for other in wins:
                means = [np.mean(found[f"{m}|{size}"]["errors"]) for m in (method, other)]
                wins[other] += bool(means[0] < means[1])
        rows.append([method, *(f"{count} of {len(cells)}" for count in wins.values())])
    heads = ["method", f"below the {SMALL}", f"below the {LARGE}"]
    return (
        "\n".join([*lines, "", "How often the mean error is:", "", *common.table(heads, rows)])
        + "\n"
    )


def readme(data: dict[str, Any]) -> str:
    """Return the table of the README."""
    rows = []
    for result in data["results"]:
        n = result["shape"][0]
        sizes = common.sizes_of(result["cells"])
        size = min(sizes, key=lambda size: abs(math.log(size / 1000)))
        cells = [shown(result["cells"][f"{m}|{size}"], n) for m in METHODS if "of 8" not in m]
        rows.append([result["set"], f"{n:,}", size, *cells])
    trials = common.counted((result["trials"] for result in data["results"]), "trial")
    return "\n".join(
        [
            "SVM on a stream: relative error of the cost in %, and in brackets rows held at most",
            f"and seconds of the processor; means of {trials}",
            "(`benchmarks/svm_streaming.py`; all sizes in `benchmarks/results/svm_streaming.md`).",
            common.stamped(data),
            "",
            *common.table(["set", "rows", "size", *(m for m in METHODS if "of 8" not in m)], rows),
        ]
    )


def figure(data: dict[str, Any], value: str) -> Figure:
    """Draw mean errors or seconds against the size, one panel a set."""
    drawing, axes = common.panels(len(data["results"]), 2)
    for ax, result in zip(axes, data["results"], strict=True):
        sizes = common.sizes_of(result["cells"])
        for method, look in LOOKS.items():
            found = [result["cells"][f"{method}|{size}"] for size in sizes]
            values = [100 * np.mean(one["errors"]) for one in found]
            if value == "seconds":
                values = [one["seconds"] for one in found]
            ax.plot(sizes, np.maximum(values, LEAST), **look.line, label=method, ms=5)
        ax.set(xscale="log", yscale="log", title=result["set"])
        common.plain_ticks(ax.xaxis, sizes)
        common.plain_ticks(ax.yaxis)
        if value == "errors":
            common.name_least(ax, LEAST)
    drawing.supxlabel("size of the coreset")
    seconds = "seconds of the processor for all rows"
    drawing.supylabel(seconds if value == "seconds" else "relative error of F, %")
    common.legend(drawing, 3)
    return drawing


def figures(data: dict[str, Any]) -> dict[str, Figure]:
    """Return all figures."""
    return {NAME: figure(data, "errors"), f"{NAME}_seconds": figure(data, "seconds")}


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, SETS[:-1])
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--sizes", type=int, default=8, help="how many sizes")
    parser.add_argument("--least", type=int, default=1, help="the least size")
    args = parser.parse_args()
    data: dict[str, Any] = {"stamp": common.stamp(), "results": []}
    for name in common.loadable(args.sets, "pathological"):
        data["results"].append(run(name, args.trials, args.sizes, args.least))
        common.write(NAME, data, args.out, report, figures)
    print(report(data))


if __name__ == "__main__":
    main()
