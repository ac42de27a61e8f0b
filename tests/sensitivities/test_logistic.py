"""Coresets for logistic regression: the contract, the formula, and models fitted on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from daskcoreset import Logistic, build
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
def test_two_reads__a_tenth_of_the_error_of_one_in_any_order(order: str) -> None:
    rows, y = X, Y
    if order == "sorted":
        places = np.lexsort((X[:, 0], Y))
        rows, y = X[places], Y[places]
    elif order == "periodic":
        rows = X + np.sin(np.arange(4000) / 20 * 2 * np.pi)[:, np.newaxis]
    lazy = {"chunks": 500}
    one = _excess(200, Logistic(reads=1), rows, y, range(5), **lazy)
    two = _excess(200, Logistic(), rows, y, range(5), **lazy)
    assert np.mean(two) < 0.1 * np.mean(one)
    assert max(two) < 0.01


def test_two_reads__a_class_of_five_rows_in_one_block() -> None:
    rows, y = X.copy(), np.full(4000, "a")
    y[2000:2005], rows[2000:2005, 0] = "b", rows[2000:2005, 0] + 1.0
    assert max(_excess(200, "logistic", rows, y, range(5), chunks=500)) < 0.05


@pytest.mark.nightly
def test_two_reads__of_a_pilot_too_small_for_its_columns_are_as_good_as_one() -> None:
    """Nearly separable pilots are confident and wrong, and so were the draws by them."""
    rng = np.random.default_rng(0)
    rows = (rng.random((6000, 190)) < 0.1).astype(float)
    score = rows @ rng.normal(size=190) * 2.0 + rng.logistic(size=6000)
    y = score > np.quantile(score, 0.95)  # so few of a class, which only the first read finds out
    excess: dict[Any, Any] = {"uniform": np.mean(_excess(300, "uniform", rows, y, range(3)))}
    for method in (Logistic(reads=1), Logistic()):
        excess[method] = np.mean(_excess(300, method, rows, y, range(3)))
    assert excess[Logistic()] < 1.15 * excess[Logistic(reads=1)]
    assert excess[Logistic()] < 1.15 * excess["uniform"]


@pytest.mark.nightly
def test_two_reads__of_rows_that_a_plane_separates_are_better_than_one_and_uniform() -> None:
    """Rows near the plane of the pilot gave a plane of their own, and 1.3 times the excess."""
    rng = np.random.default_rng(0)
    rows = rng.laplace(size=(4000, 60))
    y = rows @ rng.normal(size=60) + rng.logistic(size=4000) > 0
    methods = ("uniform", Logistic(reads=1), Logistic())
    uniform, one, two = (np.mean(_excess(100, method, rows, y, range(6))) for method in methods)
    assert two < 0.9 * uniform
    assert two < 0.9 * one


@pytest.mark.nightly
def test_two_reads__with_a_rare_class_take_more_rows_for_separable() -> None:
    """Just above two rows a column they had three to six times the excess of uniform rows."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(12_000, 40))
    z = rows @ (rng.normal(size=40) / np.sqrt(40)) + rng.logistic(size=12_000)
    y = z > np.quantile(z, 0.98)
    one, two = (np.mean(_excess(84, Logistic(reads=n), rows, y, range(6))) for n in (1, 2))
    enough = np.mean(_excess(126, Logistic(), rows, y, range(6)))
    assert two < one  # which is as good as uniform rows here, of which some hold one class only
    assert enough < 0.9 * two
