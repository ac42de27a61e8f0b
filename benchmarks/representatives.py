"""Coresets for k-means whose points are rows against those of weighted centroids, at equal size.

`CoresetKMeans` as it comes, but for `representatives`: by how much the cost of its centers over all
rows is above that of k-means on all rows, how far `coreset_inertia_` is from the cost of these
centers, and processor seconds of the fit. Then how far the costs of other queries on the coresets
are from those on all rows: of random rows, and of a solution on uniform rows. Real sets, and
hostile ones.

    python benchmarks/representatives.py
"""

from __future__ import annotations

import time
from typing import Any

import common
import numpy as np
from sets import load

from daskcoreset.core.points import deduplicate
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.solvers.kmeans import solve

NAME = "representatives"
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


RANDOM = (10, 100, 300)
QUERIES = (*(f"{count} random rows" for count in RANDOM), "solution on uniform rows")

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


def queries(X: np.ndarray, k: int, size: int, seed: int) -> dict[str, np.ndarray]:
    """Return centers that no coreset has seen: random rows, and those of k-means on others."""
    rng = np.random.default_rng([seed, 5])
    few = X[rng.choice(len(X), size, replace=False)]
    options: dict[str, Any] = {"n_init": 1, "max_iter": 100, "tol": 1e-4, "seed": seed}
    found = [X[rng.choice(len(X), count, replace=False)] for count in RANDOM]
    found.append(solve(few, np.ones(size), k, init="k-means++", **options).centers)
    return dict(zip(QUERIES, found, strict=True))


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
        found[kind] |= {"others": {name: [] for name in QUERIES}}
    for seed in range(seeds):
        others = queries(X, k, size, seed)
        true = np.asarray(kmeans_cost(X, list(others.values())))
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
            off = model.coreset_.cost(list(others.values())) / true - 1
            for name, value in zip(QUERIES, off, strict=True):
                each["others"][name].append(float(value))
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


def _mean(values: Any) -> str:
    values = 100 * np.asarray(values, dtype=float)
    return f"{values.mean():.2f} ± {common.interval(values):.2f}"


def _both(values: Any) -> str:
    """Return the mean, and how far single coresets are off."""
    return f"{_mean(values)} ({100 * np.sqrt(np.mean(np.square(values))):.2f})"


def _of_solutions(one: dict[str, Any]) -> list[str]:
    """Return the cells of the first table."""
    rows, cells, whole = one["rows"], one["centroids"], one["whole"]
    gains = (np.array(rows["cost"]) - np.array(cells["cost"])) / whole
    return [
        _mean(np.array(rows["cost"]) / whole - 1),
        _mean(np.array(cells["cost"]) / whole - 1),
        _mean(gains),
        _mean(rows["off"]),
        _mean(cells["off"]),
        _mean(cells["inner"]),
        " → ".join(f"{np.median(each['seconds']):.2f}" for each in (rows, cells)),
    ]


def report(data: dict[str, Any]) -> str:
    """Write the tables."""
    named = [([one["set"], one["k"], f"{one['size']:,}"], one) for one in data["results"]]
    lines = [
        "# Rows against centroids, at equal size",
        "",
        "Cost of the centers of `CoresetKMeans` over all rows, in % above one run of k-means on",
        "all rows (below zero where that run ended in a poorer optimum); difference of",
        "`coreset_inertia_` from the cost of these centers in %; the cost in the cells in % of",
        "it; median processor seconds of a fit, with the build, the solver and the costs of all",
        "rows. A build reads the data once. Means with intervals of 95 % over seeds. Negative",
        "gains are losses.",
        "",
        *common.table(HEADS, [[*names, *_of_solutions(one)] for names, one in named]),
        "",
    ]
    if all("others" in one["rows"] for one in data["results"]):
        kinds = ("rows", "centroids")
        heads = [f"{kind}: {name}" for name in QUERIES for kind in kinds]
        cells = [[_both(one[kind]["others"][name]) for name in QUERIES for kind in kinds]
                 for _, one in named]  # fmt: skip
        lines += [
            "## Costs of other queries",
            "",
            "Costs of centers that were not found on the coreset, by the same coresets: how far",
            "they are from the costs over all rows, in %: the mean over seeds, its interval, and",
            "in brackets the root of the mean square. The solution is that of k-means on m uniform",
            "rows.",
            "",
            *common.table(
                (*HEADS[:3], *heads),
                [[*names, *own] for (names, _), own in zip(named, cells, strict=True)],
            ),
            "",
        ]
    return "\n".join([*lines, common.stamped(data), ""])


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
            if name in HOSTILE and X.size < 1_000_000:  # cheap, and solutions of few starts vary
                seeds *= 3
            one = {"set": name, "k": k, "size": size, **compare(X, k, size, seeds)}
            results.append(one)
            common.printed([name, k, size, *_of_solutions(one)])
            data = {"stamp": {**stamp, "load": common.stamp()["load"]}, "results": results}
            common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
