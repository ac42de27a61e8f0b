"""Gaussian mixtures fitted on coresets against those on as many uniform rows.

`CoresetGaussianMixture` with `size` and `method`: the mean log-likelihood of all rows, in nats per
row. Real sets, brought to one scale, sets with rare components, and heavy tails. Beside them stand
fits to uniform rows alone, by our estimator and by `GaussianMixture` of scikit-learn, and
scikit-learn's on all rows, the better of two with four starts each.

    DASKCORESET_DATA=... python benchmarks/mixtures.py
    DASKCORESET_DATA=... python benchmarks/mixtures.py --keep-all-rows
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import common
import numpy as np
from sets import load
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from daskcoreset.estimators import CoresetGaussianMixture

NAME = "mixtures"

# Components, type of covariance.
REAL = {
    "cod_rna": (10, "full"),
    "htru2": (8, "full"),
    "magic04": (8, "full"),
    "skin": (8, "full"),
    "credit": (10, "diag"),
    "kdd_bio": (10, "diag"),
}
MADE = {
    "rare components": (5, "full"),
    "uneven components": (10, "full"),
    "heavy tails": (8, "full"),
}
METHODS = ("mixture", "uniform")
PEER, ALONE = "scikit-learn", "alone"
MAX_ROWS = 40_000


def rows_of(name: str) -> np.ndarray:
    """Return 40,000 rows of a set at most, 400,000 of heavy tails, on one scale."""
    rng = np.random.default_rng(0)
    if name == "rare components":
        parts = [(40_000, 0.0, 1.0), (200, 20.0, 1.0), (40, -30.0, 5.0)]
        X = np.vstack([at + s * rng.normal(size=(n, 6)) for n, at, s in parts])
    elif name == "uneven components":
        at = 8.0 * rng.normal(size=(10, 6))
        X = at[np.minimum(rng.zipf(2.0, 40_000) - 1, 9)] + rng.normal(size=(40_000, 6))
    elif name == "heavy tails":
        wide = rng.standard_t(2.5, size=(10 * MAX_ROWS, 6))
        return wide / wide.std(axis=0)
    else:
        X = common.dense(load(name).X, np.float64)
    X = X[np.sort(rng.permutation(len(X))[:MAX_ROWS])]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def compare(X: np.ndarray, k: int, kind: str, size: int, seeds: int) -> dict[str, list[float]]:
    """Return scores of all rows by every method, one a seed."""
    found: dict[str, list[float]] = {name: [] for name in (*METHODS, PEER, ALONE)}
    for seed in range(seeds):
        some = _some(X, size, seed)
        for name in METHODS:
            found[name].append(_score(_ours(k, kind, size, name, seed), X, X))
        found[ALONE].append(_score(_ours(k, kind, size, "uniform", seed), some, X))
        found[PEER].append(_score(_theirs(k, kind, seed), some, X))
    return found


def _some(X: np.ndarray, size: int, seed: int) -> np.ndarray:
    return X[np.random.default_rng(seed).permutation(len(X))[:size]]


def _ours(k: int, kind: str, size: int, method: str, seed: int) -> CoresetGaussianMixture:
    return CoresetGaussianMixture(
        k, covariance_type=kind, size=size, method=method, reg_covar=1e-3, random_state=seed
    )


def _theirs(k: int, kind: str, seed: int) -> GaussianMixture:
    return GaussianMixture(k, covariance_type=kind, reg_covar=1e-3, n_init=4, random_state=seed)


def _score(model: Any, rows: np.ndarray, X: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(model.fit(rows).score(X))


def main() -> None:
    """Run and write the results."""
    parser = common.arguments(__doc__, (*REAL, *MADE))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000])
    parser.add_argument(
        "--keep-all-rows",
        action="store_true",
        help="take fits of scikit-learn on all rows, on which nothing of ours bears, from results",
    )
    options = parser.parse_args()
    results = []
    known: dict[str, float] = {}
    if options.keep_all_rows:
        known = {one["set"]: one["all"] for one in common.read(NAME, options.out)["results"]}
    names = common.loadable(options.sets, *MADE)
    for size, name in product(options.sizes, names):
        X = rows_of(name)
        k, kind = {**REAL, **MADE}[name]
        if name not in known:
            known[name] = max(_score(_theirs(k, kind, seed), X, X) for seed in range(2))
        one = {"set": name, "k": k, "kind": kind, "size": size, "all": known[name]}
        results.append(one | compare(X, k, kind, size, options.seeds))
        print(name, size, {key: np.mean(results[-1][key]) for key in METHODS}, flush=True)
        stamp = common.stamp(seeds=options.seeds)
        common.write(NAME, {"stamp": stamp, "results": results}, options.out)


if __name__ == "__main__":
    main()
