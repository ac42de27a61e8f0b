"""Error of k-means on coresets against k-means on everything, on real data.

For every set, size and seed: build a coreset, solve k-means on it, evaluate the solution on
all data. Uniform and lightweight coresets as in the paper (independent draws, two reads)
stand beside the default of `build` and rows of `StrongKMeans`, in one read; all with one start of
k-means++ and Lloyd's steps, as FULL. Then `CoresetKMeans`, rows solved from the starts that it
takes by default.
Writes the raw errors into the folder given.

    DASKCORESET_DATA=... python benchmarks/quality.py --seeds 20

Bachem, Lucic and Krause (2018), section 7: k-means++ and Lloyd on everything is FULL, and the
same on each subsample. FULL does not depend on this library: what a run found stays in
``full.json``, and ``--fresh`` finds it again. Times are seconds of the processor, with one
thread for k-means, so that they may be compared on a machine that does other work too; those of
`CoresetKMeans` hold the labels and costs of all rows, which its `fit` returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
from sets import load
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import daskcoreset
from daskcoreset import Draw
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.metrics.costs import kmeans_cost

NAME = "quality"
INDEPENDENT = {"draw": Draw(sampling="multinomial", passes=2)}
DRAWS: dict[str, dict[str, Any]] = {
    "uniform": {"method": "uniform", **INDEPENDENT},
    "lightweight, paper": {"method": "lightweight", **INDEPENDENT},
    "`build`": {},
    "`StrongKMeans`": {"method": "kmeans"},
}
MODELS: dict[str, dict[str, Any]] = {
    "`CoresetKMeans`": {},
}
SETS = ("cod_rna", "kdd_bio", "covtype", "skin", "ijcnn1", "credit")

N_BLOCKS = 20
FULL_RUNS = 3

Draw = Callable[[np.ndarray, int, int], tuple[np.ndarray, np.ndarray, float]]
"""``draw(X, size, seed)`` returns points, weights and seconds spent outside of the call."""

Find = Callable[[np.ndarray, int, int], tuple[np.ndarray, float]]
"""``find(X, size, seed)`` returns centers and seconds spent outside of the call."""


def solve(points: np.ndarray, weights: np.ndarray | None, k: int, seed: int) -> np.ndarray:
    """Return the centers that k-means++ and Lloyd find from one start, on one thread."""
    with threadpool_limits(1):
        model = KMeans(k, n_init=1, random_state=seed).fit(points, sample_weight=weights)
    return model.cluster_centers_


def full_of(name: str, X: np.ndarray, k: int, out: Path, *, fresh: bool) -> dict[str, Any]:
    """Return costs and seconds of k-means on everything, from an earlier run where there is one."""
    place, key = out / "full.json", f"{name}|{k}"
    known = json.loads(place.read_text()) if place.exists() else {}
    if fresh or key not in known:
        costs, seconds = [], []
        for seed in range(FULL_RUNS):
            with common.timed() as clock:
                centers = solve(X, None, k, seed)
            costs.append(float(kmeans_cost(X, centers)))
            seconds.append(clock.cpu)
        known[key] = {"costs": costs, "seconds": seconds}
        out.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(known, indent=1) + "\n")
    return dict(known[key])


def drawn_by(options: dict[str, Any]) -> Draw:
    """Return a way to draw by `daskcoreset.build`."""

    def draw(X: np.ndarray, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
        blocks = -(-len(X) // N_BLOCKS)
        coreset = daskcoreset.build(X, size=size, random_state=seed, chunks=blocks, **options)
        return coreset.points, coreset.weights, 0.0

    return draw


def solved(draw: Draw, k: int) -> Find:
    """Return a way to find centers: by one start on what is drawn."""

    def find(X: np.ndarray, size: int, seed: int) -> tuple[np.ndarray, float]:
        points, weights, outside = draw(X, size, seed)
        return solve(points, weights, k, seed), outside

    return find


def fitted(options: dict[str, Any], k: int) -> Find:
    """Return a way to find centers: by `CoresetKMeans`."""

    def find(X: np.ndarray, size: int, seed: int) -> tuple[np.ndarray, float]:
        with threadpool_limits(1):
            model = CoresetKMeans(k, size=size, random_state=seed, **options).fit(X)
        return model.cluster_centers_, 0.0

    return find


def measure(
    X: np.ndarray, full: float, find: Find, *, size: int, seeds: int
) -> dict[str, list[float]]:
    """Return relative errors, and seconds to build and to solve."""
    solutions, seconds = [], []
    for seed in range(seeds):
        with common.timed() as clock:
            centers, outside = find(X, size, seed)
        solutions.append(centers)
        seconds.append(clock.cpu + outside)
    return {
        "errors": (kmeans_cost(X, solutions) / full - 1).tolist(),
        "seconds": seconds,
    }


def run(
    name: str, ways: dict[str, Find], *, k: int, sizes: list[int], seeds: int, full: dict[str, Any]
) -> dict[str, Any]:
    """Measure one data set."""
    X = np.asarray(load(name).X)
    cost = float(np.mean(full["costs"]))
    cells = {}
    for find in ways.values():
        find(X[::20], sizes[0], len(X))  # whatever is compiled at first
    for method, find in ways.items():
        for size in sizes:
            found = measure(X, cost, find, size=size, seeds=seeds)
            cells[f"{method}|{size}"] = found
            mean, half = np.mean(found["errors"]), common.interval(found["errors"])
            print(f"{name} k={k} {method} {size}: {mean:.1%} +- {half:.1%}", flush=True)
    return {
        "set": name,
        "k": k,
        "shape": X.shape,
        "full": cost,
        "full_seconds": float(np.mean(full["seconds"])),
        "full_spread": [one / cost - 1 for one in full["costs"]],
        "cells": cells,
    }


def keep(earlier: dict[str, Any], data: dict[str, Any]) -> None:
    """Add cells of earlier results to those of methods that were measured alone."""
    data["stamp of others"] = earlier.get("stamp of others", earlier["stamp"])
    known = {one["set"]: one["cells"] for one in earlier["results"]}
    for one in data["results"]:
        sizes = common.sizes_of(one["cells"])
        cells = known.get(one["set"], {}).items()
        own = {key: cell for key, cell in cells if int(key.rsplit("|", 1)[1]) in sizes}
        one["cells"] = own | one["cells"]


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 2000, 5000])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--methods", nargs="+", help="measure these, and keep the others")
    parser.add_argument("--fresh", action="store_true", help="solve on everything again")
    args = parser.parse_args()
    names = common.loadable(args.sets)
    if not names:
        return
    made = common.stamp(k=args.k, seeds=args.seeds, sizes=args.sizes)
    ways = {
        method: solved(
            drawn_by(options | ({"n_clusters": args.k} if "kmeans" in options.values() else {})),
            args.k,
        )
        for method, options in DRAWS.items()
    } | {method: fitted(options, args.k) for method, options in MODELS.items()}
    ways = {method: ways[method] for method in args.methods or ways}
    results = []
    for name in names:
        full = full_of(name, np.asarray(load(name).X), args.k, args.out, fresh=args.fresh)
        results.append(run(name, ways, k=args.k, sizes=args.sizes, seeds=args.seeds, full=full))
    data = {"stamp": made, "results": results}
    if args.methods:
        keep(common.read(NAME, args.out), data)
    common.write(NAME, data, args.out)


if __name__ == "__main__":
    main()
