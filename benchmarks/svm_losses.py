"""The squared hinge on coresets made for the hinge, against its optimum on all rows.

Rows of `daskcoreset.SVM` and of a uniform sample, 2000 each, are handed to scikit-learn's
``LinearSVC`` with either penalty. The cost of what it finds is taken over all rows. Features are
standardised, C = 1.

    DASKCORESET_DATA=... python benchmarks/svm_losses.py --trials 5
"""

from __future__ import annotations

import warnings
from typing import Any

import common
import numpy as np
from sets import load
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import daskcoreset
from daskcoreset.sensitivities import SVM

NAME = "svm_losses"
SETS = ("htru2", "credit", "ijcnn1")
SIZE = 2000
SOLVERS: dict[str, dict[str, Any]] = {
    "l2": {"penalty": "l2", "dual": False},
    "l1": {"penalty": "l1", "dual": False},
}
METHODS = {"svm": SVM(), "uniform": "uniform"}


def cost(model: LinearSVC, X: np.ndarray, y: np.ndarray) -> float:
    """Return what ``LinearSVC`` minimises, over all rows; the intercept is penalised, too."""
    w = np.append(model.coef_[0], model.intercept_[0] / model.intercept_scaling)
    penalty = np.abs(w).sum() if model.penalty == "l1" else 0.5 * w @ w
    losses = np.maximum(1.0 - y * model.decision_function(X), 0.0)
    return float(penalty + np.square(losses).sum())


def solved(options: dict[str, Any], X: Any, y: Any, weights: Any = None) -> LinearSVC:
    """Fit one of them."""
    return LinearSVC(tol=1e-5, max_iter=20_000, random_state=0, **options).fit(X, y, weights)


def measured(name: str, trials: int) -> dict[str, list[float]]:
    """Return excess costs by penalty and method."""
    found = load(name)
    X = StandardScaler().fit_transform(common.dense(found.X, np.float64))
    y = np.where(np.asarray(found.y) > 0, 1, -1)
    best = {penalty: cost(solved(options, X, y), X, y) for penalty, options in SOLVERS.items()}
    results: dict[str, list[float]] = {}
    for method, construction in METHODS.items():
        for seed in range(trials):
            core = daskcoreset.build(X, y, method=construction, size=SIZE, random_state=seed)
            for penalty, options in SOLVERS.items():
                model = solved(options, core.points, core.labels, core.weights)
                excess = cost(model, X, y) / best[penalty] - 1.0
                results.setdefault(f"{penalty}|{method}", []).append(excess)
    return results


def report(data: dict[str, Any]) -> str:
    """Return the Markdown file."""
    rows = []
    for name, results in data["results"].items():
        for penalty in SOLVERS:
            errors = [results[f"{penalty}|{method}"] for method in METHODS]
            cells = [common.cell(float(take(e))) for e in errors for take in (np.median, np.max)]
            rows.append([name, penalty, *cells])
    heads = ["set", "penalty"]
    heads += [f"{method}, {what}" for method in METHODS for what in ("median", "worst")]
    lines = [
        "# The squared hinge on coresets for the hinge",
        "",
        f"Excess cost of LinearSVC over all rows in per cent, {SIZE} rows of every set,",
        f"{data['stamp']['trials']} trials (`benchmarks/svm_losses.py`).",
        f"{common.stamped(data)}",
        "",
        *common.table(heads, rows),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the results."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = {"stamp": common.stamp(trials=options.trials), "results": {}}
    for name in common.loadable(options.sets):
        data["results"][name] = measured(name, options.trials)
        common.printed(
            [name, {k: round(float(np.median(v)), 5) for k, v in data["results"][name].items()}]
        )
        common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
