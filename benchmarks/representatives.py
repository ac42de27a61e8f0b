"""Coresets for k-means whose points are rows against those of weighted centroids, at equal size.

`CoresetKMeans` as it comes, but for `representatives`: by how much the cost of its centers over all
rows is above that of k-means on all rows, how far `coreset_inertia_` is from the cost of these
centers, and processor seconds of the fit. Real sets, and hostile ones.

    python benchmarks/representatives.py
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import common
import numpy as np
from scipy import stats

from daskcoreset.core.points import deduplicate
from daskcoreset.datasets import load
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.solvers.kmeans import solve

REAL = ("cod_rna", "credit", "kdd_bio")
# Clusters, points of the coreset, seeds.
SETTINGS = ((100, 1000, 8), (10, 1000, 8), (100, 10_000, 4))


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
    "more columns than rows": lambda rng: rng.normal(size=(1500, 2000)),
}


def rows_of(name: str) -> np.ndarray:
    """Return the rows of a set."""
    if name in HOSTILE:
        return np.ascontiguousarray(HOSTILE[name](np.random.default_rng(0)))
    return common.dense(load(name).X, np.float64)


def compare(X: np.ndarray, k: int, size: int, seeds: int) -> dict[str, Any]:
    """Fit on rows and on centroids in turns."""
    # As fits do: where rows repeat, k-means++ and Lloyd's steps end elsewhere without it.
    rows, counts, _ = deduplicate(X, np.ones(len(X)))
    whole = solve(
        rows,
        counts,
        k,
        init="k-means++",
        n_init=1,
        max_iter=100,
        tol=1e-4,
        seed=0,
    ).centers
    best = float(kmeans_cost(X, whole))
    found: dict[str, Any] = {}
    for kind in ("rows", "centroids"):
        found[kind] = {"cost": [], "off": [], "seconds": [], "points": [], "inner": []}
    for seed in range(seeds):
        for kind, each in found.items():
            model = CoresetKMeans(k, size=size, representatives=kind, random_state=seed)
            start = time.process_time()
            model.fit(X)
            each["seconds"].append(time.process_time() - start)
            cost = float(model.inertia_)
            each["cost"].append(cost)
            each["off"].append(model.coreset_inertia_ / cost - 1)
            each["points"].append(len(model.coreset_))
            each["inner"].append(model.coreset_.constant / cost)
    return {"whole": best, **found}


HEADS = (
    "set",
    "k",
    "m",
    "rows: cost",
    "centroids: cost",
    "gain",
    "rows: estimate off",
    "centroids: estimate off",
    "in cells",
    "seconds",
)


def _mean(values: Any, factor: float = 100.0) -> str:
    values = factor * np.asarray(values, dtype=float)
    width = float(stats.t.ppf(0.975, len(values) - 1)) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.2f} ± {width:.2f}"


def report(data: dict[str, Any]) -> str:
    """Write the table."""
    lines = [
        "# Rows against centroids, at equal size",
        "",
        "Cost of the centers of `CoresetKMeans` over all rows, in % above one run of k-means on",
        "all rows (below zero where that run ended in a poorer optimum); difference of",
        "`coreset_inertia_` from the cost of these centers in %; the cost in the cells in % of",
        "it; median processor seconds of a fit, with the build, the solver and the costs of all",
        "rows. Means with intervals of 95 % over seeds. Negative gains are losses.",
        "",
        f"| {' | '.join(HEADS)} |",
        "|" + " --- |" * len(HEADS),
    ]
    for one in data["results"]:
        rows, cells, whole = one["rows"], one["centroids"], one["whole"]
        gains = (np.array(rows["cost"]) - np.array(cells["cost"])) / whole
        seconds = " → ".join(f"{np.median(each['seconds']):.2f}" for each in (rows, cells))
        lines.append(
            f"| {one['set']} | {one['k']} | {one['size']:,} | "
            f"{_mean(np.array(rows['cost']) / whole - 1)} | "
            f"{_mean(np.array(cells['cost']) / whole - 1)} | {_mean(gains)} | "
            f"{_mean(rows['off'])} | {_mean(cells['off'])} | "
            f"{100 * np.mean(cells['inner']):.1f} | {seconds} |"
        )
    return "\n".join([*lines, "", common.stamped(data), ""])


def main() -> None:
    """Run and write the results."""
    parser = common.arguments(__doc__, (*REAL, *HOSTILE))
    parser.add_argument("--settings", nargs="+", type=int, default=range(len(SETTINGS)))
    options = parser.parse_args()
    results = []
    for name in common.loadable(options.sets, *HOSTILE):
        X = rows_of(name)
        for number in options.settings:
            k, size, seeds = SETTINGS[number]
            if size >= len(X) or (name in HOSTILE and size > 1000):
                continue
            if name in HOSTILE and X.size < 1_000_000:  # cheap, and solutions of few starts vary
                seeds *= 3
            one = {"set": name, "k": k, "size": size, **compare(X, k, size, seeds)}
            results.append(one)
            print(report({"stamp": common.stamp(), "results": [one]}).splitlines()[-3], flush=True)
            common.write(
                Path(__file__).stem,
                {"stamp": common.stamp(), "results": results},
                options.out,
                report,
            )


if __name__ == "__main__":
    main()
