"""Coresets for k-means of few rows against as many centroids by `Coreset.compress`.

How far the cost of the centers of k-means on them is above that of k-means on all rows. The rows
are drawn for their number. The centroids stand for 20,000 rows, which are shown as well. With how
far the cost on the centroids is above the cost on the rows that they stand for, the cost in the
cells, and processor seconds. Real sets, and hostile ones.

    python benchmarks/representatives.py
"""

from __future__ import annotations

import time
from typing import Any

import common
import numpy as np
from sets import load

from daskcoreset import build
from daskcoreset.core.points import WeightedPoints, deduplicate
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.solvers.kmeans import auto_starts, solve

NAME = "representatives"
REAL = ("cod_rna", "credit", "kdd_bio")
# Clusters, points, seeds.
SETTINGS = ((100, 1000, 5), (10, 1000, 5), (100, 10_000, 5))
# Rows that centroids stand for.
DRAWN = 20_000
KINDS = ("rows", "centroids", f"{DRAWN:,} rows")


def _outlier(rng: np.random.Generator) -> np.ndarray:
    rows = rng.normal(size=(50_000, 8))
    rows[-1] = 1e7  # one row has all the cost of few centers
    return rows


def _five_far(rng: np.random.Generator) -> np.ndarray:
    rows = rng.normal(size=(50_000, 8))
    rows[-5:] += 300.0
    return rows


HOSTILE: dict[str, Any] = {
    "one row far out": _outlier,
    "five rows apart": _five_far,
    "heavy tails": lambda rng: rng.standard_t(1.5, size=(50_000, 8)),
    "500 values, repeated": lambda rng: rng.normal(size=(500, 8))[rng.integers(0, 500, 50_000)],
    "categories in one-hot form": lambda rng: np.eye(150)[
        np.minimum(rng.zipf(1.5, 50_000) - 1, 149)
    ],
    "offset of 1e8": lambda rng: rng.normal(size=(50_000, 8)) + 1e8,
    "uneven clusters": lambda rng: (
        rng.normal(size=(50_000, 8)) + 30.0 * rng.normal(size=(100, 8))[rng.zipf(1.5, 50_000) % 100]
    ),
}


def rows_of(name: str) -> np.ndarray:
    """Return the rows of a set."""
    if name in HOSTILE:
        return np.ascontiguousarray(HOSTILE[name](np.random.default_rng(0)))
    return common.dense(load(name).X, np.float64)


def centers_of(rows: WeightedPoints, k: int, seed: int) -> np.ndarray:
    """Return centers of k-means on weighted rows, found as `CoresetKMeans` finds them."""
    points, weights, _ = deduplicate(rows.points, rows.weights)
    if len(points) <= k:
        return points
    options: dict[str, Any] = {"n_init": auto_starts(k), "max_iter": 300, "tol": 1e-4}
    return solve(points, weights, k, init="k-means++", seed=seed, **options).centers


def compare(X: np.ndarray, k: int, size: int, seeds: int) -> dict[str, Any]:
    """Solve on rows and on centroids in turns."""
    rows, counts, _ = deduplicate(X, np.ones(len(X)))
    options: dict[str, Any] = {"n_init": 1, "max_iter": 100, "tol": 1e-4, "seed": 0}
    whole = solve(rows, counts, k, init="k-means++", **options).centers
    found: dict[str, Any] = {kind: {"cost": [], "seconds": [], "points": []} for kind in KINDS}
    inner, above, compressing = [], [], []
    for seed in range(seeds):
        drawn = build(X, size=DRAWN, method="kmeans", n_clusters=k, random_state=seed)
        start = time.process_time()
        small = drawn.compress(size, k, random_state=seed)
        compressing.append(time.process_time() - start)
        few = build(X, size=size, method="kmeans", n_clusters=k, random_state=seed)
        for kind, points in zip(KINDS, (few, small, drawn), strict=True):
            start = time.process_time()
            centers = centers_of(points, k, seed)
            found[kind]["seconds"].append(time.process_time() - start)
            found[kind]["cost"].append(float(kmeans_cost(X, centers)))
            found[kind]["points"].append(len(points))
            if points is small:
                on_centroids = float(kmeans_cost(small.points, centers, small.weights))
                above.append((on_centroids + small.constant) / drawn.cost(centers) - 1.0)
                inner.append(small.constant / drawn.cost(centers))
    whole_cost = float(kmeans_cost(X, whole))
    return {"whole": whole_cost, "inner": inner, "above": above, "compress": compressing, **found}


HEADS = (
    "set", "k", "m", *(f"{kind}: cost" for kind in KINDS), "gain over rows", "cost above rows",
    "in cells", "seconds to compress", "seconds to solve",
)  # fmt: skip


def _mean(values: Any) -> str:
    values = 100 * np.asarray(values, dtype=float)
    return f"{values.mean():.2f} ± {common.interval(values):.2f}"


def _of_solutions(one: dict[str, Any]) -> list[str]:
    """Return the cells of the table."""
    costs = [np.array(one[kind]["cost"]) / one["whole"] for kind in KINDS]
    return [
        *(_mean(cost - 1) for cost in costs),
        _mean(costs[0] - costs[1]),
        _mean(one["above"]),
        _mean(one["inner"]),
        f"{np.median(one['compress']):.2f}",
        " → ".join(f"{np.median(one[kind]['seconds']):.2f}" for kind in KINDS),
    ]


def report(data: dict[str, Any]) -> str:
    """Write the table."""
    cells = [
        [one["set"], one["k"], f"{one['size']:,}", *_of_solutions(one)] for one in data["results"]
    ]
    return "\n".join(
        [
            "# Rows against centroids, at equal size",
            "",
            "Cost of the centers of k-means over all rows, in % above one run of k-means on all",
            "rows (below zero where that run ended in a poorer optimum): on m rows, on m centroids",
            f"of {DRAWN:,} rows, and on these rows. How far the cost on the centroids, with",
            "`constant`, is above that on the rows, in %. The cost in the cells, in % of the",
            "latter. Median processor seconds of `Coreset.compress`, and of the solver on each.",
            "Means with intervals of 95 % over seeds. Negative gains are losses.",
            "",
            *common.table(HEADS, cells),
            "",
            common.stamped(data),
            "",
        ]
    )


def main() -> None:
    """Run and write the results."""
    parser = common.arguments(__doc__, (*REAL, *HOSTILE))
    parser.add_argument("--settings", nargs="+", type=int, default=range(len(SETTINGS)))
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    stamp = common.stamp()
    for name in common.loadable(options.sets, *HOSTILE):
        X = rows_of(name)
        for number in options.settings:
            k, size, seeds = SETTINGS[number]
            if size >= len(X) or (name in HOSTILE and size > 1000):
                continue
            one = {"set": name, "k": k, "size": size, **compare(X, k, size, seeds)}
            results.append(one)
            common.printed([name, k, size, *_of_solutions(one)])
            data = {"stamp": {**stamp, "load": common.stamp()["load"]}, "results": results}
            common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
