"""What coresets for logistic regression are worth, beside uniform rows, for nine families.

The two-read form of `Logistic` refines a pilot's solution of one problem. Nine families of queries
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
from dataclasses import replace
from typing import Any

import common
import dask.array as da
import numpy as np
from svm_offline import data_of
from svm_queries import N_CLASSIFIERS, Problem, hinge, logistic, squared_hinge
from threadpoolctl import threadpool_limits

import daskcoreset
from daskcoreset import SVM, Logistic
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.solvers.linear import solve_svm

NAME = "logistic"
SETS = ("htru2", "credit", "cod_rna", "skin", "magic04", "ijcnn1", "w8a", "a9a")
MADE = (
    "sorted", "periodic", "rare", "heavy tails", "heavy half", "units", "long row", "many columns",
)  # fmt: skip
METHODS: dict[str, Any] = {
    "uniform": "uniform",
    "uniform by class": None,
    "one read": Logistic(reads=1),
    "svm": SVM(),
    "two reads": Logistic(reads=2),
}
READS = dict(zip(METHODS, (1, 1, 1, 2, 2), strict=True))
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
    return problem.solve(X, y, weights, tol)


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


def run(name: str, size: int, trials: int, methods: tuple[str, ...]) -> dict[str, Any]:
    """Measure one set."""
    X, labels = made(name) if name in MADE else data_of(name)
    y, n = labels.astype(float), len(labels)
    positives = float(np.mean(y > 0))
    ones = np.ones(n)
    with threadpool_limits(1):
        best: dict[str, float] = {}
        for family, problem in PROBLEMS.items():
            weights = problem.factors(y, positives)
            best[family] = problem.cost(X, y, weights, solved(problem, X, y, weights, 1e-6))
        given = {family: models(family, X, labels) for family in FAMILIES[len(PROBLEMS) :]}
        truths = {
            family: np.array([BASE.cost(X, y, ones, model) for model in found])
            for family, found in given.items()
        }
        errors: dict[str, list[float]] = {}
        spent: dict[str, list[float]] = {}
        for seed in range(trials):
            for method in methods:
                with common.timed() as clock:
                    rows, signs, weights = drawn(method, X, labels, size, seed)
                spent.setdefault(method, []).append(clock.cpu)
                for family, problem in PROBLEMS.items():
                    scaled = weights * problem.factors(signs, positives)
                    model = solved(problem, rows, signs, scaled, 1e-5)
                    cost = problem.cost(X, y, problem.factors(y, positives), model)
                    errors.setdefault(f"{family}|{method}", []).append(cost / best[family] - 1)
                for family, found in given.items():
                    costs = [BASE.cost(rows, signs, weights, model) for model in found]
                    rms = float(np.sqrt(np.mean((np.array(costs) / truths[family] - 1) ** 2)))
                    errors.setdefault(f"{family}|{method}", []).append(rms)
    seconds = {method: float(np.median(times)) for method, times in spent.items()}
    return {
        "set": name, "shape": X.shape, "size": size, "trials": trials,
        "errors": errors, "seconds": seconds,
    }  # fmt: skip


def mean_of(result: dict[str, Any], family: str, method: str) -> float:
    """Return the mean error of a method."""
    return float(np.mean(result["errors"][f"{family}|{method}"]))


def lost(results: list[dict[str, Any]], method: str, other: str = "uniform") -> list[str]:
    """Return the cells in which a method is above another one by more than noise."""
    found = []
    for result in results:
        for family in FAMILIES:
            first, second = (
                np.array(result["errors"][f"{family}|{one}"]) for one in (method, other)
            )
            gap = first - second
            if gap.mean() > common.interval(gap):
                a, b = (common.cell(float(part.mean())) for part in (first, second))
                found.append(f"{result['set']}, m = {result['size']}, {family} ({a} against {b})")
    return found


def report(data: dict[str, Any]) -> str:
    """Return all tables as Markdown."""
    results = data["results"]
    cells = len(results) * len(FAMILIES)
    lines = [
        "# Nine families of queries to coresets for logistic regression",
        "",
        *(__doc__ or "").splitlines()[2:8],
        "",
        "Mean errors in % with intervals of 95 % over trials; the least one of a row is bold. With",
        "as many columns as w8a has, what is made for two reads takes one: the other is of no use.",
        common.stamped(data),
        "",
    ]
    for method in data["methods"]:
        if method != "uniform":
            where = lost(results, method)
            what = f"**{method}**: above uniform rows by more than noise (95 %, paired) in "
            what += f"{len(where)} of {cells} cells{': ' if where else '.'}{'; '.join(where)}"
            lines += [
                what,
                "",
            ]
    for result in results:
        n, d = result["shape"]
        trials = common.counted([result["trials"]], "trial")
        rows = []
        for family in FAMILIES:
            means = {m: mean_of(result, family, m) for m in data["methods"]}
            least = min(means, key=lambda method: means[method])
            texts = {
                m: common.mean_cell(result["errors"][f"{family}|{m}"]) for m in data["methods"]
            }
            cells = [f"**{text}**" if m == least else text for m, text in texts.items()]
            rows.append([family, *cells])
        rows.append(["seconds of the processor"]
                    + [f"{result['seconds'][m]:.2g}" for m in data["methods"]])  # fmt: skip
        rows.append(["reads", *(READS[m] for m in data["methods"])])
        lines += [f"## {result['set']}: {n:,} x {d}, size {result['size']}, {trials}", ""]
        lines += [result["remark"], ""] if "remark" in result else []
        lines += [*common.table(["queries", *data["methods"]], rows), ""]
    return "\n".join(lines)


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
            common.write(NAME, data, args.out, report)
            print(name, size, {m: common.cell(mean_of(data["results"][-1], FAMILIES[0], m))
                               for m in args.methods}, flush=True)  # fmt: skip
    print(report(data))


if __name__ == "__main__":
    main()
