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


@pytest.mark.parametrize("kind", ["normal", "rare", "tails"])
def test_interval__holds_as_often_as_it_says(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each misses with probability 0.1 at most; more than eight of twelve do so below 1e-6."""
    monkeypatch.setattr("daskcoreset.constructions.portfolio.summaries.SAMPLE_ROWS", 400)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 2))
    if kind == "rare":
        X[::4000] += 300.0  # most of the cost is theirs, and samples have none of them
    elif kind == "tails":
        X = rng.standard_t(2.1, size=(N, 2))
    centers = np.array([[0.5, 0.0], [-0.5, 0.0]])
    true = float(kmeans_cost(X, centers))
    missed = 0
    for seed in range(12):
        found = portfolio_of(X, seed=seed)
        checked = audit(found, solutions=[centers], confidence=0.9, random_state=seed)
        interval = checked["lightweight"].interval(centers)
        missed += not interval.low <= true <= interval.high
        assert interval.low <= interval.estimate <= interval.high
        if kind == "rare":
            assert interval.high < 100 * true  # wide, and no wider than the ranges
    assert missed <= 8


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
