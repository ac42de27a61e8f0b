"""Weighted centroids in place of the rows of a coreset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset import build
from daskcoreset.core.coreset import Coreset
from daskcoreset.errors import InvalidInputError
from daskcoreset.metrics.costs import kmeans_cost

RNG = np.random.default_rng(0)

CENTERS = 10.0 * RNG.normal(size=(20, 4))

X = CENTERS[RNG.integers(20, size=20_000)] + RNG.normal(size=(20_000, 4))


def of_rows(rows: Any, weights: Any) -> Coreset:
    return Coreset(rows, weights, np.arange(len(rows)))


@pytest.mark.parametrize("k", [1, 20])
def test_compress__keeps_weights_means_and_costs(k: int) -> None:
    weights = RNG.uniform(0.5, 2.0, len(X))
    small: Any = of_rows(X, weights).compress(200, k, random_state=0)
    assert 190 <= len(small) <= 200
    assert small.weights.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(small.weights @ small.points, weights @ X, atol=1e-6 * len(X))
    nearest = np.square(X[small.indices] - small.points).sum(axis=1)
    assert np.median(nearest) < 1.0
    for centers in (X[:1], CENTERS, X[:60]):
        on_rows = kmeans_cost(X, centers, weights)
        on_points = kmeans_cost(small.points, centers, small.weights) + small.constant
        assert on_points >= on_rows * (1.0 - 1e-9)
        if len(centers) == 1:
            assert on_points == pytest.approx(on_rows)
        elif k == 20 and len(centers) == 20:
            assert on_points < 1.01 * on_rows


def test_compress__few_distinct_rows_stay_as_they_are() -> None:
    rows, weights = np.repeat(np.eye(3), [5, 1, 3], axis=0), np.ones(9)
    weights[5] = 0.0
    small: Any = of_rows(rows, weights).compress(5, 2)
    np.testing.assert_array_equal(small.points, [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(small.weights, [3.0, 5.0])
    np.testing.assert_array_equal(small.indices, [6, 0])
    assert small.constant == 0.0


def test_compress__refuses_fewer_points_than_clusters() -> None:
    with pytest.raises(InvalidInputError, match="n_points is 3"):
        build(X, size=100, random_state=0).compress(3, 4)
    with pytest.raises(InvalidInputError, match="n_clusters"):
        build(X, size=100, random_state=0).compress(3, 0)
