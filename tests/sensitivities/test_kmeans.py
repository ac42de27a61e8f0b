"""Strong k-means coresets: the formula, the rough solutions, and the hard instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset import Mixture, StrongKMeans, build
from daskcoreset.core.block import Block
from daskcoreset.errors import CoresetWarning
from daskcoreset.sensitivities.kmeans import rough_cells
from daskcoreset.solvers.kmeans import Clusters
from tests.pairs import each


def test_scores__rough_solution_without_cost_leaves_the_cells() -> None:
    X = np.repeat([[0.0], [1.0]], [9, 1], axis=0)
    summary = Clusters(np.array([[0.0], [1.0]]), np.array([9.0, 1.0]), np.zeros(2))

    scores = StrongKMeans(2).scores(Block(X, np.ones(10)), summary)

    np.testing.assert_allclose(scores, 40 / np.repeat([9.0, 1.0], [9, 1]))
    between = StrongKMeans(2).scores(Block(np.array([[0.4]]), np.ones(1)), summary)
    np.testing.assert_allclose(between, [40 / 9])


def test_build__size_below_the_number_of_clusters_is_warned_of() -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))

    with pytest.warns(CoresetWarning, match="size=5 is below n_clusters=9"):
        coreset = build(X, size=5, method=StrongKMeans(9), random_state=0)

    assert len(coreset) == 5


@each(construction=[StrongKMeans(5), Mixture(3)], n=[2_000, 20_000])
def test_build__rows_without_weight_may_hold_anything(construction: Any, n: int) -> None:
    """Squares of 1e200 overflow: such rows made every later seed the last row of a block."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 3)) + 9.0 * rng.integers(5, size=n)[:, np.newaxis]
    weights = rng.lognormal(size=n)
    weights[::100] = 0.0
    options: dict[str, Any] = {"size": 300, "random_state": 0, "sample_weight": weights}
    rows[::100] = rows[1]
    expected = build(rows, method=construction, **options)
    rows[::100] = 1e200
    found = build(rows, method=construction, **options)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.weights, expected.weights)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("offset", [0, 2**16])
def test_rough_cells__hold_every_row_of_a_long_block(dtype: str, offset: int) -> None:
    rng = np.random.default_rng(0)
    X = (rng.integers(-40, 40, size=(30_000, 3)) / 8 + offset).astype(dtype)
    u = rng.integers(0, 3, 30_000).astype(np.float64)

    found = rough_cells(X, u, 20, np.random.default_rng(1))

    table, labels = found.clusters, found.labels
    assert 24 <= len(table) <= 80
    assert table.weight == u.sum()
    for c in range(len(table)):
        own = (labels == c) & (u > 0)
        mean = np.average(X[own].astype(np.float64), axis=0, weights=u[own])
        np.testing.assert_allclose(table.centers[c], mean, rtol=1e-12)
        gaps = ((X[own] - mean) ** 2).sum(axis=1)
        np.testing.assert_allclose(found.distances[own], gaps, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(table.costs[c], (u[own] * gaps).sum(), rtol=1e-9)
