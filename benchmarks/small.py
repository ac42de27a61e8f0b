"""Small data in memory: `build` and `CoresetKMeans` beside scikit-learn's KMeans on all rows.

All run as they come, with no size given, on rows of a mixture of 50 Gaussians in float64. They take
turns with the same seeds in one process, after a first turn that is not timed. The ratios are those
of the seconds within a turn. A cold run is a new process that imports, makes 10,000 rows and fits.

    python benchmarks/small.py
    python benchmarks/small.py --rows 1000 10000 --turns 3 --out /tmp/small

Results are written to ``results/small.json``.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np

NAME = "small"
ROWS, COLUMNS, CLUSTERS = (1_000, 10_000, 30_000, 100_000), (2, 20, 100), (2, 8, 100)
PEER = "KMeans"
COLD = (10_000, 20, 8)


def contestant(name: str) -> Callable[[np.ndarray, int, int], Any]:
    """Return a fit as a function of rows, clusters and seed. It imports what it needs alone."""
    if name == PEER:
        from sklearn.cluster import KMeans

        return lambda X, k, seed: KMeans(k, random_state=seed).fit(X)
    if name == "build":
        from daskcoreset import build

        return lambda X, k, seed: build(X, n_clusters=k, random_state=seed)
    from daskcoreset.estimators import CoresetKMeans

    return lambda X, k, seed: CoresetKMeans(k, random_state=seed).fit(X)


CONTESTANTS = (PEER, "build", "CoresetKMeans")


def compete(n: int, d: int, k: int, turns: int) -> dict[str, Any]:
    """Return the seconds of all contestants, and the ratios to the peer, on one kind of rows."""
    X = common.mixture(d)(n).astype(np.float64)
    fits = {name: contestant(name) for name in CONTESTANTS}
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    costs = []
    for turn in range(turns + 1):
        made = {}
        for name, fit in fits.items():
            start = time.perf_counter()
            made[name] = fit(X, k, turn)
            if turn:
                seconds[name].append(time.perf_counter() - start)
        costs.append(made["CoresetKMeans"].inertia_ / made[PEER].inertia_)
    ratios = {
        name: statistics.median(a / b for a, b in zip(found, seconds[PEER], strict=True))
        for name, found in seconds.items()
    }
    return {
        "shape": [n, d, k],
        "seconds": {name: statistics.median(found) for name, found in seconds.items()},
        "ratios": ratios,
        "cost": statistics.median(costs),
        "rows": [len(made["build"]), len(made["CoresetKMeans"].coreset_)],
    }


def cold(turns: int) -> dict[str, float]:
    """Return the seconds of processes that import and fit once, medians of turns."""
    seconds: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _, (name, found) in itertools.product(range(turns), seconds.items()):
        start = time.perf_counter()
        common.in_child(__file__, "--cold", name)
        found.append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in seconds.items()}


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--cold", help="of the processes of cold runs")
    args = parser.parse_args()
    if args.cold:
        n, d, k = COLD
        contestant(args.cold)(np.random.default_rng(0).normal(size=(n, d)), k, 0)
        print("{}")
        return
    results = []
    for n, d, k in itertools.product(args.rows, COLUMNS, CLUSTERS):
        # Long fits vary less.
        turns = args.turns if n * d * k <= 10**8 else max(3, args.turns // 5)
        results.append(compete(n, d, k, turns))
        print(results[-1], flush=True)
    stamp = common.stamp(turns=args.turns)
    data = {"stamp": stamp, "results": results, "cold": cold(max(3, args.turns // 3))}
    common.write(NAME, data, args.out)


if __name__ == "__main__":
    main()
