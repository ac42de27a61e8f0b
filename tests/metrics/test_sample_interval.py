"""Intervals from a uniform sample and the ranges of columns: they hold, whatever the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset import SVM, audit
from daskcoreset.metrics import kmeans_cost

N = 12_000


def portfolio_of(X: Any, y: Any = None, *, methods: Any = ("lightweight",), seed: int = 0) -> Any:
    return daskcoreset.build(
        X, y, size=300, method=list(methods), summaries=["sample"], random_state=seed, chunks=3000
    )


def test_audit__of_a_portfolio_is_of_every_member_against_its_sample() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    y = (X[:, 0] + rng.logistic(size=N) > 0).astype(int)
    portfolio = portfolio_of(X, y, methods=[SVM(), "lightweight"])
    found = audit(portfolio, n_clusters=3, random_state=1)
    assert list(found) == ["svm", "lightweight"]
    exact = audit(portfolio, X, y, n_clusters=3, random_state=1)
    for name, of_member in found.items():
        assert of_member.sample_errors is not None
        assert exact[name].sample_errors is None
        for one, interval in zip(exact[name].on_data, of_member.intervals, strict=True):
            assert interval.low <= one <= interval.high < 2.0 * one
    whole = audit(portfolio["svm"], portfolio, random_state=1)
    np.testing.assert_array_equal(whole.on_data, found["svm"].on_data)


def test_interval__of_a_sample_of_all_rows_is_exact() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 2))
    found = audit(portfolio_of(X), n_clusters=2, random_state=0)["lightweight"]
    for interval, cost, solution in zip(
        found.intervals, found.on_data, found.solutions, strict=True
    ):
        assert interval.low == interval.high
        assert cost == pytest.approx(kmeans_cost(X, solution))
