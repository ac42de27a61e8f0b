"""The sample of an audit, and the bound on its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.metrics.poisson_sample import upper_bound
from daskcoreset.testing import assert_mean
from tests.pairs import few
from tests.tools.heavy_tails import X

CORESET = daskcoreset.build(X, size=200, method="kmeans", n_clusters=6, random_state=1)


@pytest.mark.parametrize("chunks", ["auto", 100])
def test_audit__row_of_weight_zero_may_overflow(chunks: Any) -> None:
    """A row of weight zero changes no bit, even where its squared distances are infinite."""
    weights = np.ones(400)
    weights[7] = 0.0
    small, large = X[:400].copy(), X[:400].copy()
    large[7] = 1e200
    coreset = daskcoreset.build(
        large, sample_weight=weights, size=60, method="kmeans", n_clusters=3, random_state=1
    )
    first, second = (
        coreset.audit(rows, sample_weight=weights, random_state=1, sample_size=50, chunks=chunks)
        for rows in (small, large)
    )
    np.testing.assert_array_equal(first.on_data, second.on_data)
    assert first.interval(X[20:23]) == second.interval(X[20:23])


def test_interval__is_the_bound_by_the_book() -> None:
    """Of one row that is drawn or not, and any theta, in plain words."""
    x, limit, level = np.array([0.5, 2.0, 0.0]), 4.0, np.log(40.0)
    for theta in (0.01, 0.2, 3.0):
        found = upper_bound(x, limit, theta, level)
        tried = [
            (np.log(40.0 / share) - np.log(1 - each * x).sum()) / each
            for share, factor in zip(
                (0.0625, 0.125, 0.625, 0.125, 0.0625), (0.0625, 0.25, 1, 4, 16), strict=True
            )
            for each in [min(theta * factor, 1 / limit)]
        ]
        assert found == pytest.approx(min(tried), rel=1e-6)
    # Nothing seen: what may be hidden is ln(1 / alpha) times what one row may be, and a little.
    assert level * limit < upper_bound(np.zeros(0), limit, 3.0, level) < 1.2 * level * limit
    assert upper_bound(x, np.inf, 1.0, level) == np.inf
    assert upper_bound(np.zeros(3), 0.0, 0.0, level) == 0.0
    assert upper_bound(np.array([5.0]), limit, 1.0, level) == np.inf  # a bound that is none


@pytest.mark.statistical
@few("chunks", ["auto", 250], always=1)
def test_sample__inclusion_probabilities_are_right(chunks: Any) -> None:
    """Weights of one over them add up to the rows, and costs to the cost: rate 1e-6 a case."""
    totals = np.zeros((100, 2))
    for seed in range(len(totals)):
        found = CORESET.audit(X, random_state=seed, sample_size=300, chunks=chunks)
        reading = found._estimates.sample
        assert reading.rows is not None
        costs = ((reading.rows.points - 1.0) ** 2).sum(axis=1)
        totals[seed] = [(1 / reading.inclusion).sum(), (costs / reading.inclusion).sum()]
    assert_mean(totals, np.array([len(X), kmeans_cost(X, np.ones((1, 3)))]))
