"""Error of linear SVMs on coresets against the SVM on everything, as in the paper's section 6.

For every set, size and trial: build a coreset, solve on it, evaluate the objective on all rows.
Uniform and Algorithm 1 as in the paper (independent draws) stand beside the default of this
library; and beside the default what a referee would ask for: uniform rows as many as the default
holds on its way (its pilot and its candidates), averaged stochastic gradients in one pass over
all rows (the length of the first step is tried on 10,000), and the same solver on all rows.
Features are standardised, lambda = 1, sizes geometric from log n to n^(4/5). Writes the
raw errors and seconds.

    DASKCORESET_DATA=... python benchmarks/svm_offline.py --trials 30

Tukan, Baykal, Feldman and Rus (2020), On Coresets for Support Vector Machines, section 6. Times
are seconds of the processor.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from sets import load
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import daskcoreset
from daskcoreset import Draw
from daskcoreset.constructions.sampling.final_draw import MIN_CANDIDATES, OVERSAMPLING
from daskcoreset.errors import CoresetWarning
from daskcoreset.sensitivities import SVM
from daskcoreset.solvers.linear import solve_svm

NAME = "svm_offline"
SETS = ("htru2", "credit", "pathological", "skin", "cod_rna", "w8a")
INDEPENDENT = {"draw": Draw(sampling="multinomial", passes=2)}
PILOT_ROWS = 4096
"""Rows of the pilot of the default at most."""

BUDGET, SGD = "uniform, same budget", "averaged SGD"
SGD_STEPS, SGD_TRIED = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0), 10_000
METHODS: dict[str, dict[str, Any]] = {
    "uniform": {"method": "uniform", **INDEPENDENT},
    BUDGET: {"method": "uniform", **INDEPENDENT},
    "Algorithm 1": {"method": SVM(variant="paper"), **INDEPENDENT},
    "default": {"method": SVM()},
}

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Points, labels and weights."""

Model = tuple[np.ndarray, float]
"""Coefficients and intercept."""


def pathological(n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Return two far clusters of opposite labels, and two close rows that decide the boundary.

    Tukan, Baykal, Feldman and Rus (2020), section 6.
    """
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, -1, 1)
    X = rng.normal(size=(n, 2))
    X[:, 0] += 10 * y
    X[-2:] = [[0.05, 0.0], [-0.05, 0.0]]
    y[-2:] = [1, -1]
    return X.astype(np.float32), y


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised rows and their labels, -1 and +1."""
    if name == "pathological":
        X, y = pathological()
    else:
        found = load(name)
        X, y = found.X, np.asarray(found.y)
    return StandardScaler().fit_transform(common.dense(X, np.float64)), y


def cost(X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: float) -> float:
    """Return F over all rows."""
    hinge = np.maximum(1.0 - y * (X @ coef + intercept), 0.0)
    return float(coef @ coef / 2 + hinge.sum())


def sizes_of(n: int, count: int) -> list[int]:
    """Return geometric sizes from log n to n^(4/5)."""
    return [round(size) for size in np.geomspace(math.log(n), n**0.8, count)]


def budget_of(size: int, n: int) -> int:
    """Rows that the default looks at more closely: those of its pilot, and its candidates."""
    return min(n, PILOT_ROWS + max(OVERSAMPLING * size, MIN_CANDIDATES))


def drawn(
    method: str,
    X: np.ndarray,
    y: np.ndarray,
    size: int,
    *,
    seed: int,
    methods: dict[str, dict[str, Any]] = METHODS,
) -> Rows:
    """Draw rows by a method."""
    size = budget_of(size, len(y)) if method == BUDGET else min(size, len(y))
    if size == len(y):
        return X, y.astype(float), np.ones(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoresetWarning)
        coreset = daskcoreset.build(X, y, size=size, random_state=seed, **methods[method])
    return np.asarray(coreset.points), coreset.labels.astype(float), coreset.weights


def averaged_sgd(
    X: np.ndarray,
    y: np.ndarray,
    seed: int,
    judge: Callable[[np.ndarray, np.ndarray, Model], float],
    lam: float = 1.0,
    **options: Any,
) -> Model:
    """Train by one pass of averaged stochastic gradients over all rows.

    The length of the first step is the best of six for as many rows as are tried, by `judge`, a
    cost of such rows.
    """
    few = np.random.default_rng(seed).permutation(len(y))[:SGD_TRIED]

    def train(rows: Any, step: float) -> Model:
        points, labels = X[rows], y[rows]
        model = SGDClassifier(
            alpha=1 / (lam * len(y)), max_iter=1, tol=None, average=True, random_state=seed,
            learning_rate="invscaling", power_t=0.5, eta0=step, **options,
        )  # fmt: skip
        model.fit(points, labels)
        return model.coef_[0], float(model.intercept_[0])

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # too long a step overflows
        costs = [judge(X[few], y[few], train(few, step)) for step in SGD_STEPS]
        return train(slice(None), SGD_STEPS[int(np.nanargmin(costs))])


def liblinear(X: np.ndarray, y: np.ndarray) -> None:
    """Train LIBLINEAR on everything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it stops at max_iter on most sets
        LinearSVC(loss="hinge", intercept_scaling=10, random_state=0).fit(X, y)


def seconds_of(work: Callable[[], object]) -> float:
    """Seconds of the processor, on one thread for the algebra."""
    with threadpool_limits(1), common.timed() as clock:
        work()
    return clock.cpu


def run(name: str, trials: int, count: int) -> dict[str, Any]:
    """Measure one set."""
    X, y = data_of(name)
    n = len(y)
    signs = y.astype(float)
    with threadpool_limits(1), common.timed() as clock:
        full = solve_svm(X, signs, np.ones(n), tol=1e-6)
    seconds = {"everything": clock.cpu}
    if name != "w8a":
        seconds["LIBLINEAR"] = seconds_of(lambda: liblinear(X, y))
    print(f"{name}: {X.shape}, F {full.cost:.6g}, {seconds}", flush=True)
    errors: dict[str, list[float]] = {}
    few = slice(None, None, max(1, n // 2000))
    for method in METHODS:
        drawn(method, X[few], y[few], 100, seed=0)  # whatever is compiled at first
    found, spent = [], []
    for seed in range(trials):
        with threadpool_limits(1), common.timed() as clock:
            model = averaged_sgd(X, y, seed, lambda X, y, w: cost(X, y, *w))
        found.append(cost(X, y, *model) / full.cost - 1)
        spent.append(clock.cpu)
    sgd = {"errors": found, "seconds": float(np.median(spent))}
    for size in sizes_of(n, count):
        for method in METHODS:
            whole = method == BUDGET and budget_of(size, n) == n
            found, spent = [], []
            for seed in range(1 if whole else trials):
                with threadpool_limits(1), common.timed() as clock:
                    rows = drawn(method, X, y, size, seed=seed)
                    fit = solve_svm(*rows, tol=1e-5)
                spent.append(clock.cpu)
                found.append(cost(X, y, fit.coef, fit.intercept) / full.cost - 1)
            errors[f"{method}|{size}"] = found
            seconds[f"{method}|{size}"] = float(np.median(spent))
        cells = (np.mean(errors[f"{method}|{size}"]) for method in METHODS)
        print(f"  {size}: " + ", ".join(f"{cell:.3%}" for cell in cells), flush=True)
    return {
        "set": name,
        "shape": X.shape,
        "full": full.cost,
        "bound": full.bound,
        "trials": trials,
        "sgd": sgd,
        "seconds": seconds,
        "errors": errors,
    }


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--sizes", type=int, default=15, help="how many sizes")
    parser.add_argument("--w8a-trials", type=int, help="of w8a, which takes long")
    args = parser.parse_args()
    data: dict[str, Any] = {"stamp": common.stamp(), "results": []}
    for name in common.loadable(args.sets, "pathological"):
        few = name == "w8a" and args.w8a_trials
        trials, sizes = (args.w8a_trials, 5) if few else (args.trials, args.sizes)
        data["results"].append(run(name, trials, sizes))
        common.write(NAME, data, args.out)


if __name__ == "__main__":
    main()
