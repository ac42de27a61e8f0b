"""Coresets for logistic regression: the contract, the formula, and models fitted on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from daskcoreset import build
from tests.pairs import few

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 4)) * RNG.lognormal(size=(4000, 1))
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + RNG.logistic(size=4000) > 1, "b", "a")


def _excess(size: int, method: Any, rows: Any, y: Any, seeds: range, **options: Any) -> list[float]:
    """Excess costs of models that are fitted on coresets."""
    signs = np.where(y == np.unique(y)[-1], 1, -1)

    def loss(model: Any) -> float:
        penalty = model.coef_[0] @ model.coef_[0] / 2
        return float(np.logaddexp(0, -signs * model.decision_function(rows)).sum() + penalty)

    def solver() -> LogisticRegression:
        return LogisticRegression(solver="newton-cholesky", tol=1e-8)

    full, found = loss(solver().fit(rows, y)), []
    for seed in seeds:
        few = build(rows, y, size=size, method=method, random_state=seed, **options)
        found.append(loss(solver().fit(few.points, few.labels, few.weights)) / full - 1)
    return found


@few("order", ["periodic", "sorted", "mixed"], always=1)
def test_logistic__a_hundredth_of_the_error_of_uniform_rows_in_any_order(order: str) -> None:
    rows, y = X, Y
    if order == "sorted":
        places = np.lexsort((X[:, 0], Y))
        rows, y = X[places], Y[places]
    elif order == "periodic":
        rows = X + np.sin(np.arange(4000) / 20 * 2 * np.pi)[:, np.newaxis]
    uniform, own = (
        _excess(200, method, rows, y, range(5), chunks=500) for method in ("uniform", "logistic")
    )
    assert np.mean(own) < 0.02 * np.mean(uniform)
    assert max(own) < 0.01


def test_logistic__a_class_of_five_rows_in_one_block() -> None:
    rows, y = X.copy(), np.full(4000, "a")
    y[2000:2005], rows[2000:2005, 0] = "b", rows[2000:2005, 0] + 1.0
    assert max(_excess(200, "logistic", rows, y, range(5), chunks=500)) < 0.05


def pilot_too_small(rng: np.random.Generator) -> tuple[Any, Any, int]:
    """Rows of many columns, a twentieth of one class."""
    rows = (rng.random((6000, 190)) < 0.1).astype(float)
    score = rows @ rng.normal(size=190) * 2.0 + rng.logistic(size=6000)
    return rows, score > np.quantile(score, 0.95), 300


def separable(rng: np.random.Generator) -> tuple[Any, Any, int]:
    """Rows of tails that a plane nearly separates."""
    rows = rng.laplace(size=(4000, 60))
    return rows, rows @ rng.normal(size=60) + rng.logistic(size=4000) > 0, 100


def rare_class(rng: np.random.Generator) -> tuple[Any, Any, int]:
    """Rows of forty columns, a fiftieth of one class."""
    rows = rng.normal(size=(12_000, 40))
    z = rows @ (rng.normal(size=40) / np.sqrt(40)) + rng.logistic(size=12_000)
    return rows, z > np.quantile(z, 0.98), 126


@pytest.mark.nightly
@pytest.mark.parametrize("make", [pilot_too_small, separable, rare_class])
def test_logistic__of_wide_rows_is_no_worse_than_uniform_rows(make: Any) -> None:
    rows, y, size = make(np.random.default_rng(4))
    uniform, own = (
        np.array(_excess(size, method, rows, y, range(8))) for method in ("uniform", "logistic")
    )
    gaps = own - uniform
    assert gaps.mean() < 2 * gaps.std(ddof=1) / np.sqrt(8) + 0.05 * uniform.mean()
