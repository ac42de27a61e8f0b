"""Parameters chosen on a coreset against those chosen on a uniform sample taken as all rows.

The penalties C of a logistic regression and of an SVM with a Gaussian kernel by 5-fold
cross-validation, and a number of components by BIC. Regret is how much worse the choice does than
the best of the grid when it is fitted to all rows: the excess of the log-loss, of the share of
errors, or of the mean negative log-density on rows held out, relative to the gain of the best of
the grid on the worst. Writes ``results/search.json`` and ``results/search.md``.

    python benchmarks/search.py
    python benchmarks/search.py --rows 20_000 --repeats 2 --out /tmp/search
"""

from __future__ import annotations

import warnings
from typing import Any

import common
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.svm import SVC

import daskcoreset
from daskcoreset.estimators import (
    CoresetEstimator,
    CoresetGaussianMixture,
    CoresetLogisticRegression,
    coreset_search,
)

NAME = "search"
SAMPLE = 3000
PENALTIES = [float(c) for c in 10.0 ** np.arange(-7, 3)]
COMPONENTS = [2, 4, 6, 8, 10, 12]
KERNEL_PENALTIES = [0.01, 0.1, 1.0, 10.0, 100.0]
# Of the SVM with a kernel, whose fit to all rows takes time with their square.
KERNEL_ROWS = 12_000


def negative_log_loss(model: Any, X: Any, y: Any, weights: Any) -> float:
    """Score a classifier on weighted rows."""
    shares = model.estimator_.predict_proba(X)
    return -float(log_loss(y, shares, sample_weight=weights, labels=[0, 1]))


def classes(rows: int, seed: int) -> tuple[Any, Any]:
    """Noisy labels of correlated columns of different scales, so that C matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 40)) * np.geomspace(1.0, 0.05, 40)
    truth = rng.normal(size=40) / np.geomspace(1.0, 0.05, 40) ** 0.5
    return X, (X @ truth + 3.0 * rng.logistic(size=rows) > 0).astype(int)


def squares(rows: int, seed: int) -> tuple[Any, Any]:
    """Squares of a board, with every sixth label wrong, so that a large C learns the noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 2))
    return X, (np.floor(6 * X).sum(axis=1) % 2 != (rng.random(rows) < 1 / 6)).astype(int)


def clusters(rows: int, seed: int) -> Any:
    """Ten Gaussian components, a few of them rare."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01])
    return rng.normal(scale=5.0, size=(10, 4))[rng.choice(10, rows, p=shares)] + rng.normal(
        size=(rows, 4)
    )


def as_all(X: Any, y: Any, rows: Any) -> daskcoreset.Coreset:
    """Return sampled rows with weights of one: as if they were all."""
    labels = None if y is None else y[rows]
    return daskcoreset.Coreset(X[rows], np.ones(len(rows)), rows, labels)


def chosen(kind: str, rows: int, seed: int) -> dict[str, Any]:
    """Return the choice of each way, and the regret of it on all rows."""
    rng = np.random.default_rng(100 + seed)
    rows = min(rows, KERNEL_ROWS) if kind == "C of a kernel SVM" else rows
    sample = np.sort(rng.choice(rows, SAMPLE, replace=False))
    if kind == "C of a kernel SVM":
        X, y = squares(2 * rows, seed)
        X, y, held, truth = X[:rows], y[:rows], X[rows:], y[rows:]
        inner = SVC(gamma=60.0, cache_size=500)
        model: Any = CoresetEstimator(inner, method="svm", random_state=0)
        grid, method = {"estimator__C": KERNEL_PENALTIES}, daskcoreset.SVM()
        values = KERNEL_PENALTIES
        full = [1.0 - inner.set_params(C=c).fit(X, y).score(held, truth) for c in values]
        options: dict[str, Any] = {}
    elif kind == "C of logistic regression":
        X, y = classes(2 * rows, seed)
        X, y, held, truth = X[:rows], y[:rows], X[rows:], y[rows:]
        model = CoresetLogisticRegression(random_state=0)
        grid, method = {"C": PENALTIES}, daskcoreset.Logistic()
        values = PENALTIES
        full = [
            log_loss(truth, LogisticRegression(C=c, max_iter=500).fit(X, y).predict_proba(held))
            for c in values
        ]
        options = {"scoring": negative_log_loss}
    else:
        X, y = clusters(rows, seed), None
        model = CoresetGaussianMixture(n_init=3, random_state=0)
        grid, method = {"n_components": COMPONENTS}, daskcoreset.MixtureCoreset(max(COMPONENTS))
        values = COMPONENTS
        held = clusters(2 * rows, seed)[rows:]
        full = [-GaussianMixture(k, n_init=3, random_state=0).fit(X).score(held) for k in values]
        options = {"criterion": "bic"}
    portfolio = daskcoreset.build(
        X, y, size=SAMPLE, method={"coreset": method, "weighted": "uniform"}, random_state=seed
    )
    ways = {
        "uniform sample as all rows": as_all(X, y, sample),
        "uniform sample with weights": portfolio["weighted"],
        "coreset": portfolio["coreset"],
    }
    best, worst = min(full), max(full)
    found = {}
    for way, rows_of_it in ways.items():
        result = coreset_search(model, rows_of_it, parameters=grid, random_state=0, **options)
        (value,) = result.best_parameters.values()
        print(kind, seed, way, result, flush=True)
        regret = (full[values.index(value)] - best) / (worst - best)
        found[way] = {"choice": value, "regret": regret}
    found["best"] = {"choice": values[int(np.argmin(full))], "regret": 0.0}
    return found


def report(data: dict[str, Any]) -> str:
    """Return the table of the results."""
    rows = []
    for kind, runs in data["results"].items():
        for way in runs[0]:
            regrets = [100 * run[way]["regret"] for run in runs]
            choices = ", ".join(f"{run[way]['choice']:g}" for run in runs)
            rows.append((kind, way, choices, f"{np.mean(regrets):.2f}", f"{max(regrets):.2f}"))
    heads = ("parameter", "searched on", "chosen", "mean regret, %", "largest, %")
    title = f"# Parameters chosen on {SAMPLE:,} rows"
    return "\n".join([title, "", *common.table(heads, rows), "", common.stamped(data), ""])


def main() -> None:
    """Run all searches."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {
        kind: [chosen(kind, options.rows, seed) for seed in range(options.repeats)]
        for kind in ("C of a kernel SVM", "C of logistic regression", "components by BIC")
    }
    data = {"stamp": common.stamp(rows=options.rows), "results": results}
    common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
