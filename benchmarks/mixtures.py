"""Gaussian mixtures fitted on coresets for mixtures against uniform rows of the same number.

`CoresetGaussianMixture` as it comes, but for `size` and `method`: mean log-likelihood of all rows,
in nats a row, and how far `lower_bound_` and `expected_score()` lie above it. Eight seeds; real
sets, brought to one scale, and sets with rare components.

    python benchmarks/mixtures.py
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import common
import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from daskcoreset.datasets import load
from daskcoreset.estimators import CoresetGaussianMixture

# Components, type of covariance.
REAL = {
    "cod_rna": (10, "full"),
    "htru2": (8, "full"),
    "magic04": (8, "full"),
    "skin": (8, "full"),
    "credit": (10, "diag"),
    "kdd_bio": (10, "diag"),
}
MADE = {"rare components": (5, "full"), "uneven components": (10, "full")}
METHODS = ("mixture", "uniform")
MAX_ROWS = 40_000


def rows_of(name: str) -> np.ndarray:
    """Return at most 40,000 rows of a set, each column with mean zero and variance one."""
    rng = np.random.default_rng(0)
    if name == "rare components":
        parts = [(40_000, 0.0, 1.0), (200, 20.0, 1.0), (40, -30.0, 5.0)]
        X = np.vstack([at + s * rng.normal(size=(n, 6)) for n, at, s in parts])
    elif name == "uneven components":
        at = 8.0 * rng.normal(size=(10, 6))
        X = at[np.minimum(rng.zipf(2.0, 40_000) - 1, 9)] + rng.normal(size=(40_000, 6))
    else:
        X = common.dense(load(name).X, np.float64)
    X = X[np.sort(rng.permutation(len(X))[:MAX_ROWS])]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def compare(X: np.ndarray, k: int, kind: str, size: Any, seeds: int) -> dict[str, Any]:
    """Fit by both methods in turns."""
    found: dict[str, Any] = {
        name: {"score": [], "above": [], "expected": [], "seconds": []} for name in METHODS
    }
    for seed in range(seeds):
        for name, each in found.items():
            model = CoresetGaussianMixture(
                k, covariance_type=kind, size=size, method=name, reg_covar=1e-3, random_state=seed
            )
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X)
            each["seconds"].append(time.process_time() - start)
            score = model.score(X)
            each["score"].append(score)
            each["above"].append(model.lower_bound_ - score)
            each["expected"].append(model.expected_score() - score)
    return found


def _mean(values: Any) -> str:
    values = np.asarray(values, dtype=float)
    width = float(stats.t.ppf(0.975, len(values) - 1)) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3f} ± {width:.3f}"


HEADS = (
    "set",
    "components",
    "rows of the coreset",
    "coreset",
    "uniform",
    "gain",
    "seeds won",
    "bound above, coreset",
    "expected score above, coreset",
    "bound above, uniform",
    "expected score above, uniform",
    "seconds",
)


def report(data: dict[str, Any]) -> str:
    """Write the table."""
    rows = []
    for one in data["results"]:
        first, other = (one[name] for name in METHODS)
        gains = np.array(first["score"]) - np.array(other["score"])
        rows.append(
            (
                one["set"],
                f"{one['k']} {one['kind']}",
                f"{one['size']:,}",
                _mean(first["score"]),
                _mean(other["score"]),
                _mean(gains),
                f"{(gains > 0).sum()} of {len(gains)}",
                _mean(first["above"]),
                _mean(first["expected"]),
                _mean(other["above"]),
                _mean(other["expected"]),
                f"{np.median(first['seconds']):.2f}, {np.median(other['seconds']):.2f}",
            )
        )
    lines = [
        "# Mixtures on coresets and on uniform rows",
        "",
        "Mean log-likelihood of all rows in nats a row, the gain of the coreset over as many",
        "uniform rows, how far `lower_bound_` and `expected_score()` lie above the likelihood, and",
        "median processor seconds of a fit. Means with intervals of 95 % over seeds. Negative",
        "gains are losses.",
        "",
        *common.table(HEADS, rows),
        "",
        common.stamped(data),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run and write the results."""
    parser = common.arguments(__doc__, (*REAL, *MADE))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000])
    options = parser.parse_args()
    results = []
    for name in common.loadable(options.sets, *MADE):
        X = rows_of(name)
        k, kind = {**REAL, **MADE}[name]
        for size in options.sizes:
            one = {"set": name, "k": k, "kind": kind, "size": size}
            results.append(one | compare(X, k, kind, size, options.seeds))
            data = {"stamp": common.stamp(seeds=options.seeds), "results": results}
            print(report(data).splitlines()[-3], flush=True)
            common.write(Path(__file__).stem, data, options.out, report)


if __name__ == "__main__":
    main()
