"""What coresets for logistic regression are worth, beside uniform rows, for nine families.

`Logistic` refines a pilot's solution of one problem. Nine families of queries
show what is left of it elsewhere, on the protocol of Lu, Raff and Holt (2023), A coreset learning
reality check, which found many coresets no better than uniform rows: the problem itself, two other
C, other class weights, half of the features, two other losses, for which the error is that of the
model trained on the rows, by the cost on all the data; and random and poor models, for which it is
that of the estimated cost (root mean square over thirty of them).

    DASKCORESET_DATA=... python benchmarks/logistic.py --trials 10

Sets that are made here are hostile: sorted, periodic, a class of five rows in long blocks, heavy
tails of all columns and of half of them, columns of unlike units, a row 10,000 times as long as
others, and few rows of forty columns, nearly separable. All others are standardised.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import common
import dask.array as da
import numpy as np
from svm_offline import data_of
from threadpoolctl import threadpool_limits

import daskcoreset
from daskcoreset import SVM, Logistic
from daskcoreset.errors import CoresetWarning
from daskcoreset.solvers.linear import solve_svm

NAME = "logistic"
SETS = ("htru2", "credit", "cod_rna", "skin", "magic04", "ijcnn1", "w8a", "a9a")
MADE = (
    "sorted", "periodic", "rare", "heavy tails", "heavy half", "units", "long row", "many columns",
)  # fmt: skip
METHODS: dict[str, Any] = {
    "uniform": "uniform",
    "uniform by class": None,
    "svm": SVM(),
    "logistic": Logistic(),
}
FEW = {"few positives, 40 columns": (40, 0.01), "few positives, 190 columns": (190, 0.02)}
"""Columns, and the share of one class."""

N_CLASSIFIERS = 30

Model = tuple[np.ndarray, float]
"""Coefficients and intercept."""


def hinge(margins: np.ndarray) -> np.ndarray:
    """Return 1 - z, or zero."""
    return np.maximum(1 - margins, 0)


def squared_hinge(margins: np.ndarray) -> np.ndarray:
    """Return the square of the hinge."""
    return hinge(margins) ** 2


def logistic(margins: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(-z))."""
    return np.logaddexp(0, -margins)


@dataclass(frozen=True)
class Problem:
    """A classifier that is looked for."""

    loss: Callable[[np.ndarray], np.ndarray] = hinge
    lam: float = 1.0
    balanced: bool = False
    half: bool = False

    def columns(self, X: np.ndarray) -> np.ndarray:
        """Return the features of the problem: all, or every second one."""
        return X[:, 1::2] if self.half else X

    def factors(self, y: np.ndarray, positives: float) -> np.ndarray:
        """Return the factors of the weights; `positives` is their share of all the data."""
        if not self.balanced:
            return np.ones(len(y))
        return np.where(y > 0, 0.5 / positives, 0.5 / (1 - positives))

    def cost(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray, model: Model) -> float:
        """Return the cost of a classifier."""
        coef, intercept = model
        margins = y * (self.columns(X) @ coef + intercept)
        return float(coef @ coef / 2 + self.lam * weights @ self.loss(margins))


BASE = Problem(loss=logistic)
PROBLEMS = {
    "the same problem": BASE,
    "C = 0.001": replace(BASE, lam=0.001),
    "C = 100": replace(BASE, lam=100.0),
    "balanced classes": replace(BASE, balanced=True),
    "half of the features": replace(BASE, half=True),
    "hinge": Problem(loss=hinge),
    "squared hinge": Problem(loss=squared_hinge),
}
FAMILIES = (*PROBLEMS, "random w", "poor w")


def made(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a hostile set of 40,000 rows, or of 5,500 with many columns."""
    if name == "many columns":
        return many_columns()
    rng = np.random.default_rng(0)
    n, d = 40_000, 8
    X = rng.normal(size=(n, d))
    if name == "heavy half":
        X[:, ::2] = rng.standard_cauchy(size=(n, d // 2))
    if name == "heavy tails":
        X *= rng.standard_t(1.5, size=(n, 1))
        X = X.clip(-1e4, 1e4)
    score = X @ np.linspace(1.5, -1.0, d) + rng.logistic(size=n) - 1.0
    y = np.where(score > 0, 1, -1)
    if name == "sorted":
        order = np.lexsort((X[:, 0], y))
        X, y = X[order], y[order]
    elif name == "periodic":
        place = np.arange(n) % 40
        X += 3.0 * np.sin(place[:, np.newaxis] * np.arange(1, d + 1) / 40 * 2 * np.pi)
        score = X @ np.linspace(1.5, -1.0, d) + rng.logistic(size=n)
        y = np.where(score > 0, 1, -1)
    elif name == "rare":
        X[:5] += 3.0
        y = np.full(n, -1)
        y[20_000:20_005] = 1
        X[20_000:20_005] += 1.0
    elif name == "units":
        X = X * 10.0 ** np.linspace(-4, 4, d) + 1e5
    elif name == "long row":
        X[123] *= 1e4
    return X, y


def few_positives(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return 20,000 rows of many columns, of which one class has few."""
    d, share = FEW[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, d))
    score = X @ rng.normal(size=d) + rng.logistic(size=len(X))
    return X, np.where(score > np.quantile(score, 1 - share), 1, -1)


def many_columns() -> tuple[np.ndarray, np.ndarray]:
    """Return rows along few directions of many columns, whose classes are nearly separable."""
    rng = np.random.default_rng(0)
    n, d = 5500, 40
    X = rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) * np.geomspace(1, 0.02, d)[:, None])
    X /= X.std(axis=0)
    score = X @ np.where(np.arange(d) < d // 2, 1.0, -1.0) + 2 * X[:, 0] * X[:, 1]
    return X, np.where(score > 0.3 * score.std(), 1, -1)


def drawn(
    method: str, X: np.ndarray, y: np.ndarray, size: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows by a method, from Dask arrays of eight blocks."""
    if method == "uniform by class":
        rng = np.random.default_rng(seed)
        chosen, weights = [], []
        for label in np.unique(y):
            rows = np.flatnonzero(y == label)
            count = min(len(rows), max(2, round(size * len(rows) / len(y))))
            chosen.append(rng.choice(rows, count, replace=False))
            weights.append(np.full(count, len(rows) / count))
        places = np.concatenate(chosen)
        return X[places], y[places].astype(float), np.concatenate(weights)
    rows = -(-len(y) // 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoresetWarning)
        coreset = daskcoreset.build(
            da.from_array(X, chunks=(rows, X.shape[1])),
            da.from_array(y, chunks=rows),
            size=size, method=METHODS[method], random_state=seed, progress=False,
        )  # fmt: skip
    return np.asarray(coreset.points), coreset.labels.astype(float), coreset.weights


def models(family: str, X: np.ndarray, y: np.ndarray) -> list[Any]:
    """Return models whose cost is to be estimated, the same for every method."""
    rng = np.random.default_rng(0)
    n, d = X.shape
    if family == "random w":
        spread = X.std(axis=0)
        ones = rng.normal(size=(N_CLASSIFIERS, d + 1)) / np.sqrt(d)
        found = []
        for w in ones:
            coef = w[:-1] / np.where(spread > 0, spread, 1.0)
            found.append((coef, float(w[-1] - X.mean(axis=0) @ coef)))
        return found
    found = []
    for _ in range(N_CLASSIFIERS):
        rows = np.append(
            rng.choice(n, 60), [rng.choice(np.flatnonzero(y == sign)) for sign in (-1, 1)]
        )
        fit = solve_svm(X[rows], y[rows].astype(float), np.full(62, n / 62), tol=1e-3)
        found.append((fit.coef, fit.intercept))
    return found


def solved(problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray, tol: float) -> Any:
    """Train on weighted rows, about their mean and in units of their spread but for the penalty."""
    if problem.loss is not hinge:
        return newton(problem, X, y, weights)
    fit = solve_svm(problem.columns(X), y, weights, problem.lam, tol=tol)
    return fit.coef, fit.intercept


def newton(problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Any:
    """Minimise a smooth problem by Newton's method with a line search."""
    rows = problem.columns(X)
    center = np.average(rows, axis=0, weights=weights)
    A = np.column_stack([rows - center, np.ones(len(rows))])
    penalty = np.append(np.ones(rows.shape[1]), 0.0)
    w = np.zeros(A.shape[1])

    def value(w: np.ndarray) -> float:
        return float(w[:-1] @ w[:-1] / 2 + problem.lam * weights @ problem.loss(y * (A @ w)))

    now = value(w)
    for _ in range(100):
        z = y * (A @ w)
        if problem.loss is logistic:
            slope = -np.exp(-np.logaddexp(0, z))
            curve = -slope * (1 + slope)
        else:
            slope, curve = -2 * hinge(z), 2.0 * (z < 1)
        gradient = penalty * w + A.T @ (problem.lam * weights * slope * y)
        hessian = (A * (problem.lam * weights * curve)[:, None]).T @ A + np.diag(penalty)
        scale = 1 / np.sqrt(np.diag(hessian) + 1e-300)
        step = (
            -scale
            * np.linalg.lstsq(hessian * scale[:, None] * scale, scale * gradient, rcond=1e-14)[0]
        )
        decrease, length = -gradient @ step, 1.0
        while length > 1e-10 and not value(w + length * step) <= now - 1e-4 * length * decrease:
            length /= 2
        w = w + length * step
        before, now = now, value(w)
        if before - now <= 1e-11 * now:
            break
    return w[:-1], float(w[-1] - w[:-1] @ center)


class Truth:
    """What models cost on all rows of a set, and the least of it."""

    def __init__(self, name: str) -> None:
        self.X, self.labels = data_and_labels(name)
        X, y = self.X, self.labels.astype(float)
        self.y, self.positives = y, float(np.mean(y > 0))
        self.best: dict[str, float] = {}
        for family, problem in PROBLEMS.items():
            weights = problem.factors(y, self.positives)
            self.best[family] = problem.cost(X, y, weights, solved(problem, X, y, weights, 1e-6))
        self.given = {
            family: models(family, X, self.labels) for family in FAMILIES[len(PROBLEMS) :]
        }
        ones = np.ones(len(y))
        self.costs = {
            family: np.array([BASE.cost(X, y, ones, model) for model in found])
            for family, found in self.given.items()
        }

    def errors(self, rows: np.ndarray, signs: np.ndarray, weights: np.ndarray) -> dict[str, float]:
        """Return the error of weighted rows for every family."""
        found = {}
        for family, problem in PROBLEMS.items():
            scaled = weights * problem.factors(signs, self.positives)
            model = solved(problem, rows, signs, scaled, 1e-5)
            factors = problem.factors(self.y, self.positives)
            found[family] = problem.cost(self.X, self.y, factors, model) / self.best[family] - 1
        for family, given in self.given.items():
            costs = np.array([BASE.cost(rows, signs, weights, model) for model in given])
            found[family] = float(np.sqrt(np.mean((costs / self.costs[family] - 1) ** 2)))
        return found


def run(name: str, size: int, trials: int, methods: tuple[str, ...]) -> dict[str, Any]:
    """Measure one set."""
    with threadpool_limits(1):
        truth = Truth(name)
        errors: dict[str, list[float]] = {}
        spent: dict[str, list[float]] = {}
        for seed in range(trials):
            for method in methods:
                with common.timed() as clock:
                    found = drawn(method, truth.X, truth.labels, size, seed)
                spent.setdefault(method, []).append(clock.cpu)
                for family, error in truth.errors(*found).items():
                    errors.setdefault(f"{family}|{method}", []).append(error)
    seconds = {method: float(np.median(times)) for method, times in spent.items()}
    return {
        "set": name, "shape": truth.X.shape, "size": size, "trials": trials,
        "errors": errors, "seconds": seconds,
    }  # fmt: skip


def data_and_labels(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set and their labels."""
    if name in FEW:
        return few_positives(name)
    return made(name) if name in MADE else data_of(name)


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, (*SETS, *MADE))
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    args = parser.parse_args()
    data: dict[str, Any] = {"stamp": common.stamp(), "methods": args.methods, "results": []}
    for name in common.loadable(args.sets, *MADE):
        for size in args.sizes:
            data["results"].append(run(name, size, args.trials, tuple(args.methods)))
            common.write(NAME, data, args.out)
            print(name, size, flush=True)


if __name__ == "__main__":
    main()
