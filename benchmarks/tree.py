"""What the levels of merge and reduce cost in error.

The relative error of weighted costs on coresets of a stream and of a tree, for k-means on real and
synthetic sets and, if labels are there, for the SVM, beside a coreset drawn from all the data.

    DASKCORESET_DATA=... python benchmarks/tree.py --seeds 20
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import dask
import numpy as np
from sets import available, load
from sklearn.cluster import KMeans

import daskcoreset
from daskcoreset import MergeReduce
from daskcoreset.datasets import make_mixture
from daskcoreset.metrics.costs import kmeans_cost

NAME = "tree"
N_BLOCKS = 64

Cost = Callable[[np.ndarray, "np.ndarray | None", "np.ndarray | None"], np.ndarray]


def kmeans_costs(X: np.ndarray, k: int) -> Cost:
    """Return costs of twelve solutions: random rows, and k-means on small samples."""
    rng = np.random.default_rng(0)
    solutions = [X[rng.choice(len(X), k, replace=False)].astype(float) for _ in range(6)]
    for seed in range(6):
        few = X[rng.choice(len(X), 2000, replace=False)]
        solutions.append(
            KMeans(k, n_init=1, max_iter=5, random_state=seed).fit(few).cluster_centers_
        )
    return lambda points, weights, _: np.asarray(kmeans_cost(points, solutions, weights))


def hinge_costs(X: np.ndarray, y: np.ndarray) -> Cost:
    """Return sums of hinge losses of SVMs on small samples, and of random directions."""
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    w = [rng.normal(size=X.shape[1] + 1) / np.sqrt(X.shape[1]) for _ in range(4)]
    for seed in range(8):
        few = rng.choice(len(X), 2000, replace=False)
        found = LinearSVC(C=1.0, dual=False, random_state=seed).fit(X[few], y[few])
        w.append(np.append(found.coef_[0], found.intercept_[0]))
    solutions = np.array(w)

    def costs(
        points: np.ndarray, weights: np.ndarray | None, labels: np.ndarray | None
    ) -> np.ndarray:
        margins = (points @ solutions[:, :-1].T + solutions[:, -1]) * np.asarray(labels)[:, None]
        losses = np.maximum(0.0, 1.0 - margins)
        return losses.sum(axis=0) if weights is None else weights @ losses

    return costs


def problems(k: int) -> dict[str, tuple[np.ndarray, np.ndarray | None, object, Cost]]:
    """Return data, labels, method and costs by name."""
    X, _ = make_mixture(200_000, 10, n_clusters=60, imbalance=1000, random_state=0)
    made = np.ascontiguousarray(X.compute())
    sets = {"imbalanced": made}
    if "cod_rna" in available():
        sets["cod_rna"] = np.ascontiguousarray(load("cod_rna").X, dtype=np.float32)
    found: dict[str, tuple[np.ndarray, np.ndarray | None, object, Cost]] = {}
    for name, X in sets.items():
        costs = kmeans_costs(X, k)
        found[f"{name}, lightweight"] = X, None, "lightweight", costs
        found[f"{name}, kmeans"] = X, None, daskcoreset.StrongKMeans(k), costs
    for name in ("skin", "cod_rna"):
        if name in available():
            X, y = (np.asarray(part) for part in (load(name).X, load(name).y))
            X = (X - X.mean(axis=0)) / X.std(axis=0)
            y = np.where(y == y.max(), 1, -1)
            found[f"{name}, svm"] = X, y, "svm", hinge_costs(X, y)
    return found


def measured(
    make: Callable[[int], daskcoreset.Coreset], seeds: int, costs: Cost, full: np.ndarray
) -> list[float]:
    """Return the mean square of the relative errors of every seed."""
    coresets = map(make, range(seeds))
    estimates = (costs(one.points, one.weights, one.labels) for one in coresets)
    return [float(np.mean((estimate / full - 1.0) ** 2)) for estimate in estimates]


def run(name: str, k: int, size: int, seeds: int) -> dict[str, Any]:
    """Return squared errors of all forms for one problem."""
    X, y, method, costs = problems(k)[name]
    full = costs(X, None, y)
    chunks = -(-len(X) // N_BLOCKS)

    def build(seed: int, **options: Any) -> daskcoreset.Coreset:
        return daskcoreset.build(
            X, y, size=size, method=method, random_state=seed, chunks=chunks, **options
        )

    def streamed(seed: int) -> daskcoreset.Coreset:
        stream = daskcoreset.CoresetStream(method, size=size, random_state=seed)
        return stream.partial_fit(X, y).coreset()

    forms: dict[str, Callable[[int], daskcoreset.Coreset]] = {
        "all rows": build,
        "tree": partial(build, draw=MergeReduce()),
        "stream": streamed,
    }
    squares = {form: measured(make, seeds, costs, full) for form, make in forms.items()}
    print(name, {form: f"{np.sqrt(np.mean(one)):.2%}" for form, one in squares.items()}, flush=True)
    return {"set": name, "squares": squares}


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--problems", nargs="+", help="all by default")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=40)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    with dask.config.set(scheduler="sync"):
        for name in args.problems or problems(args.k):
            results.append(run(name, args.k, args.size, args.seeds))
            stamp = common.stamp(k=args.k, size=args.size, seeds=args.seeds, blocks=N_BLOCKS)
            common.write(NAME, {"stamp": stamp, "results": results}, args.out)


if __name__ == "__main__":
    main()
