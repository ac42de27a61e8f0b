"""Summaries of all rows: against pandas and scikit-learn, on the whole data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Ridge

import daskcoreset
from daskcoreset.core.data_summary import DataSummary
from daskcoreset.core.errors import InvalidInputError
from tests.pairs import each

ROWS = 12_000


def make_summary(**options: Any) -> tuple[Any, Any, DataSummary]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 4)) @ rng.normal(size=(4, 4)) + [1e5, 0, -3, 7]
    y = X @ [1.0, 0.0, -2.0, 0.5] + rng.normal(size=ROWS)
    portfolio = daskcoreset.build_many(X, y, sizes=100, methods=["uniform"], chunks=1000, **options)
    assert portfolio.moments is not None
    return X, y, portfolio.moments


def test_ridge__of_columns_that_say_the_same_has_a_solution() -> None:
    X = np.random.default_rng(0).normal(size=(500, 1)) @ [[1.0, 1.0]]
    portfolio = daskcoreset.build_many(X, X[:, 0], sizes=100, methods=["uniform"])
    assert portfolio.moments is not None
    np.testing.assert_allclose(portfolio.moments.ridge(0.0).coef_, np.array([0.5, 0.5]))


def make_units() -> tuple[Any, Any, DataSummary]:
    """Rows of a time in nanoseconds, a share and a mass in kilograms of what weighs micrograms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3)) * [3e16, 0.3, 1e-9] + [1.6e18, 0.5, 0.0]
    y = 3 * X[:, 1] + 1e9 * X[:, 2] + 0.1 * rng.normal(size=ROWS)
    portfolio = daskcoreset.build_many(X, y, sizes=100, methods=["uniform"], chunks=1000)
    assert portfolio.moments is not None
    return X, y, portfolio.moments


@each(alpha=[0.0, 1e-9, 1.0], fit_intercept=[False, True])
@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
def test_ridge__leaves_out_no_column_of_small_units(alpha: float, fit_intercept: bool) -> None:
    X, y, summary = make_units()
    found = summary.ridge(alpha, fit_intercept=fit_intercept)
    # The cholesky solver of scikit-learn is the one that no units confuse.
    expected = Ridge(alpha, solver="cholesky", fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(found.coef_[1:], expected.coef_[1:], rtol=1e-5)
    assert abs(found.score(X, y) - expected.score(X, y)) < 1e-3


@pytest.mark.parametrize("times", [2.0, 1e6])
def test_ridge__without_a_penalty_is_the_shortest_solution(times: float) -> None:
    x, z = np.random.default_rng(0).normal(size=(2, 500))
    X = np.column_stack([x, np.full(500, 7.0), times * x, 1e9 * z])
    y = x + z
    portfolio = daskcoreset.build_many(X, y, sizes=100, methods=["uniform"])
    assert portfolio.moments is not None
    found = portfolio.moments.ridge(0.0).coef_
    expected = [1 / (1 + times**2), 0.0, times / (1 + times**2), 1e-9]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-14)


# Whether it converges to 1e-8 in these units depends on the rounding of the processor.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_elastic_net__leaves_out_no_column_of_small_units() -> None:
    X, y, summary = make_units()
    found = summary.elastic_net(1e-9, tol=1e-8).coef_
    # Scikit-learn may not converge in the units of the first column, whose penalty is negligible.
    X = np.column_stack([(X[:, 0] - X[:, 0].mean()) / 3e16, X[:, 1:]])
    np.testing.assert_allclose(found[1:], ElasticNet(1e-9, tol=1e-8).fit(X, y).coef_[1:], rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda summary: summary.ridge(-1.0), "alpha is -1.0"),
        (lambda summary: summary.ridge(np.inf), "alpha is inf"),
        (
            lambda summary: DataSummary.from_stored(
                {**summary.to_stored()[0], "mean": np.ones(2)}, summary.to_stored()[1]
            ),
            "shapes",
        ),
    ],
)
def test_summary__says_what_cannot_be_asked(call: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        call(make_summary()[2])
