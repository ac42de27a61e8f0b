"""Error of linear SVMs on coresets of a stream, against the SVM on everything.

The rows of every set come in batches, in random order, into `CoresetStream` with leaves of
32, 8 and 4 times its size, into Algorithm 2 as published (leaves of twice the size, nodes of the
size, independent draws by the scores of Algorithm 1), and into two uniform reservoirs: of the
same size, and of as many rows as the first stream holds at most. After the last row a classifier
is fitted on either and its objective is evaluated on all rows. Features are standardised,
lambda = 1. Writes the raw errors.

    DASKCORESET_DATA=... python benchmarks/svm_streaming.py --trials 30

Tukan, Baykal, Feldman and Rus (2020), On Coresets for Support Vector Machines, section 6 and
Algorithm 2. Times are seconds of the processor.
"""

from __future__ import annotations

import math
from typing import Any

import common
import numpy as np
from svm_offline import SETS, cost, data_of
from threadpoolctl import threadpool_limits

from daskcoreset import SVM, CoresetStream, MergeReduce
from daskcoreset.solvers.linear import solve_svm

NAME = "svm_streaming"
SMALL, LARGE = "reservoir", "reservoir, same memory"
STREAMS = {"stream": 32, "stream, leaves of 8": 8, "stream, leaves of 4": 4, "Algorithm 2": 2}
"""Rows of a leaf for every row of the coreset."""

METHODS = (SMALL, LARGE, *STREAMS)
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
        common.write(NAME, data, args.out)


if __name__ == "__main__":
    main()
