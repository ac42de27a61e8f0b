"""What an SVM coreset is worth for other problems than the one that it was calibrated for.

The default of `SVM` refines a pilot's solution of one problem: it draws by the activity of rows at
that solution, and rakes the weights until loss and gradient there are those of the data, which is
a step of Newton's method from the pilot towards the optimum of that problem. Nine families of
queries show what is left of it elsewhere: the problem itself, two other C, other class weights,
half of the features, two other losses, for which the error is that of the classifier trained on
the rows, by the cost on all the data; and random and poor classifiers, for which it is that of the
estimated cost (root mean square over thirty of them).

    DASKCORESET_DATA=... python benchmarks/svm_queries.py --trials 10

The families are in the spirit of Lu, Raff and Holt (2023), A coreset learning reality check. Times
are seconds of the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import common
import numpy as np
from scipy.optimize import minimize
from svm_offline import BUDGET, METHODS, SGD, Model, averaged_sgd, budget_of, data_of, drawn
from threadpoolctl import threadpool_limits

from daskcoreset.sensitivities import SVM
from daskcoreset.solvers.linear import solve_svm

NAME = "svm_queries"
SIZES = {"htru2": 1000, "credit": 1000, "skin": 1000, "cod_rna": 1000, "w8a": 1632}
VARIANTS: dict[str, dict[str, Any]] = {
    "uniform": METHODS["uniform"],
    BUDGET: METHODS[BUDGET],
    "Algorithm 1": METHODS["Algorithm 1"],
    "systematic": {"method": SVM(variant="systematic")},
    "calibrated": {"method": SVM(variant="calibrated")},
    "default": METHODS["default"],
}
N_CLASSIFIERS = 30


def hinge(margins: np.ndarray) -> np.ndarray:
    """Return 1 - z, or zero."""
    return np.maximum(1 - margins, 0)


def squared_hinge(margins: np.ndarray) -> np.ndarray:
    """Return the square of the hinge."""
    return hinge(margins) ** 2


def logistic(margins: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(-z))."""
    return np.logaddexp(0, -margins)


SLOPES: dict[Any, Callable[[np.ndarray], np.ndarray]] = {
    squared_hinge: lambda margins: -2 * hinge(margins),
    logistic: lambda margins: -1 / (1 + np.exp(np.minimum(margins, 500))),
}
SGD_LOSS = {hinge: "hinge", squared_hinge: "squared_hinge", logistic: "log_loss"}


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

    def solve(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray, tol: float) -> Model:
        """Train on weighted rows."""
        rows = self.columns(X)
        if self.loss is hinge:
            fit = solve_svm(rows, y, weights, self.lam, tol=tol)
            return fit.coef, fit.intercept
        slope = SLOPES[self.loss]

        def value(w: np.ndarray) -> tuple[float, np.ndarray]:
            margins = y * (rows @ w[:-1] + w[-1])
            pulls = self.lam * weights * slope(margins) * y
            loss = self.cost(X, y, weights, (w[:-1], w[-1]))
            return loss, np.append(w[:-1] + rows.T @ pulls, pulls.sum())

        options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-13, "gtol": 1e-9}
        found = minimize(
            value, np.zeros(rows.shape[1] + 1), jac=True, method="L-BFGS-B", options=options
        )
        return found.x[:-1], float(found.x[-1])


def judged(
    problem: Problem, positives: float, rows: np.ndarray, y: np.ndarray, model: Model
) -> float:
    """Return the cost of a classifier on rows that have only the features of the problem."""
    weights = problem.factors(y, positives)
    return replace(problem, half=False).cost(rows, y, weights, model)


PROBLEMS = {
    "the same problem": Problem(),
    "C = 0.001": Problem(lam=0.001),
    "C = 100": Problem(lam=100.0),
    "balanced classes": Problem(balanced=True),
    "half of the features": Problem(half=True),
    "squared hinge": Problem(loss=squared_hinge),
    "logistic loss": Problem(loss=logistic),
}
FAMILIES = (*PROBLEMS, "random w", "poor w")


def classifiers(family: str, X: np.ndarray, y: np.ndarray) -> list[Model]:
    """Return classifiers whose cost is to be estimated, the same for every method."""
    rng = np.random.default_rng(0)
    n, d = X.shape
    if family == "random w":
        drawn_ones = rng.normal(size=(N_CLASSIFIERS, d + 1)) / np.sqrt(d)
        return [(w[:-1], float(w[-1])) for w in drawn_ones]
    found = []
    for _ in range(N_CLASSIFIERS):
        rows = np.append(
            rng.choice(n, 60), [rng.choice(np.flatnonzero(y == sign)) for sign in (-1, 1)]
        )
        fit = solve_svm(X[rows], y[rows].astype(float), np.full(62, n / 62), tol=1e-3)
        found.append((fit.coef, fit.intercept))
    return found


def run(name: str, trials: int) -> dict[str, Any]:
    """Measure one set."""
    X, labels = data_of(name)
    y, n, size = labels.astype(float), len(labels), SIZES[name]
    positives = float(np.mean(y > 0))
    ones = np.ones(n)
    best: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for family, problem in PROBLEMS.items():
        with threadpool_limits(1), common.timed() as clock:
            weights = problem.factors(y, positives)
            best[family] = problem.cost(X, y, weights, problem.solve(X, y, weights, 1e-6))
        seconds[f"{family}|everything"] = clock.cpu
    print(name, X.shape, {k: round(v, 2) for k, v in seconds.items()}, flush=True)
    given = {family: classifiers(family, X, labels) for family in FAMILIES[len(PROBLEMS) :]}
    truths = {
        family: np.array([Problem().cost(X, y, ones, model) for model in models])
        for family, models in given.items()
    }
    errors: dict[str, list[float]] = {}
    spent: dict[str, list[float]] = {}
    few = slice(None, None, max(1, n // 2000))
    for method in VARIANTS:
        drawn(method, X[few], labels[few], 100, seed=0, methods=VARIANTS)  # compiles what it needs
    for seed in range(trials):
        for method in VARIANTS:
            with threadpool_limits(1), common.timed() as drawing:
                rows, signs, weights = drawn(method, X, labels, size, seed=seed, methods=VARIANTS)
            for family, problem in PROBLEMS.items():
                with threadpool_limits(1), common.timed() as clock:
                    scaled = weights * problem.factors(signs, positives)
                    model = problem.solve(rows, signs, scaled, 1e-5)
                found = problem.cost(X, y, problem.factors(y, positives), model) / best[family] - 1
                errors.setdefault(f"{family}|{method}", []).append(found)
                spent.setdefault(f"{family}|{method}", []).append(drawing.cpu + clock.cpu)
            for family, models in given.items():
                costs = [Problem().cost(rows, signs, weights, model) for model in models]
                rms = float(np.sqrt(np.mean((np.array(costs) / truths[family] - 1) ** 2)))
                errors.setdefault(f"{family}|{method}", []).append(rms)
        for family, problem in PROBLEMS.items():
            with threadpool_limits(1), common.timed() as clock:
                weight = {-1: 0.5 / (1 - positives), 1: 0.5 / positives}
                judge = partial(judged, problem, positives)
                model = averaged_sgd(
                    problem.columns(X), labels, seed, judge, problem.lam,
                    loss=SGD_LOSS[problem.loss], class_weight=weight if problem.balanced else None,
                )  # fmt: skip
            found = problem.cost(X, y, problem.factors(y, positives), model) / best[family] - 1
            errors.setdefault(f"{family}|{SGD}", []).append(found)
            spent.setdefault(f"{family}|{SGD}", []).append(clock.cpu)
    seconds |= {key: float(np.median(times)) for key, times in spent.items()}
    return {
        "set": name, "shape": X.shape, "size": size, "trials": trials,
        "errors": errors, "seconds": seconds,
    }  # fmt: skip


def means_of(result: dict[str, Any], family: str) -> dict[str, float]:
    """Return the mean error of every method."""
    return {
        method: float(np.mean(result["errors"][f"{family}|{method}"]))
        for method in (*VARIANTS, SGD)
        if f"{family}|{method}" in result["errors"]
    }


def is_everything(result: dict[str, Any]) -> bool:
    """Whether the budget of the default is all rows."""
    n = result["shape"][0]
    return budget_of(result["size"], n) == n


def report(data: dict[str, Any]) -> str:
    """Return all tables as Markdown."""
    lines = [
        "# Nine families of queries to SVM coresets",
        "",
        *(__doc__ or "").splitlines()[2:9],
        "",
        "Mean errors in %; the least one of a row is bold. " + common.stamped(data),
    ]
    heads = ["queries", *VARIANTS, SGD]
    timed = [*heads[1:], "everything"]
    for result in data["results"]:
        n, d = result["shape"]
        trials = common.counted([result["trials"]], "trial")
        title = f"## {result['set']}: {n:,} x {d}, size {result['size']}, {trials}"
        rows = []
        for family in FAMILIES:
            means = means_of(result, family)
            if is_everything(result):
                del means[BUDGET]
            least = min(means, key=lambda method: means[method])
            cells = {m: f"**{common.cell(e)}**" if m == least else common.cell(e)
                     for m, e in means.items()}  # fmt: skip
            if is_everything(result):
                cells[BUDGET] = "all rows"
            rows.append([family, *(cells.get(method, "-") for method in heads[1:])])
        lines += ["", title, "", *common.table(heads, rows)]
        rows = [
            [family, *(f"{result['seconds'][f'{family}|{m}']:.3g}" for m in timed)]
            for family in PROBLEMS
        ]
        lines += ["", "Seconds of the processor to draw and to train:", ""]
        lines += common.table([*heads, "everything"], rows)
    return "\n".join(lines) + "\n"


def readme(data: dict[str, Any]) -> str:
    """Return the table of the README."""
    results, shown = data["results"], ("Algorithm 1", "calibrated", "default")
    rows = []
    for family in FAMILIES:
        cells = []
        for result in results:
            means = means_of(result, family)
            others = [m for m in ("uniform", BUDGET, SGD) if m in means]
            if is_everything(result):
                others.remove(BUDGET)
            peer = min(means[m] for m in others)
            cells.append(" / ".join(common.cell(e) for e in [*(means[m] for m in shown), peer]))
        rows.append([family, *cells])
    sizes = {f"{r['size']:,}" + (f" ({r['set']})" if r["set"] == "w8a" else "") for r in results}
    trials = common.counted((result["trials"] for result in results), "trial")
    return "\n".join(
        [
            f"Errors in % for nine families of queries, of {' / '.join(shown)} / the best of",
            "uniform rows, uniform rows as many as the default looks at (where these are not all)",
            f"and one pass of averaged SGD; sizes {' and '.join(sorted(sizes))}, means of",
            f"{trials} (`benchmarks/svm_queries.py`; every method,",
            f"and seconds, in `benchmarks/results/svm_queries.md`). {common.stamped(data)}",
            "",
            *common.table(["queries", *(result["set"] for result in results)], rows),
        ]
    )


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, tuple(SIZES))
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--w8a-trials", type=int, help="of w8a, which takes long")
    args = parser.parse_args()
    names = common.loadable(args.sets)
    if not names:
        return
    data: dict[str, Any] = {"stamp": common.stamp(), "results": []}
    for name in names:
        few = name == "w8a" and args.w8a_trials
        data["results"].append(run(name, args.w8a_trials if few else args.trials))
        common.write(NAME, data, args.out, report)
    print(report(data))


if __name__ == "__main__":
    main()
