"""Strong k-means coresets: the formula, the rough solutions, and the hard instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset import Mixture, StrongKMeans, build
from daskcoreset.core.block import Block
from daskcoreset.errors import CoresetWarning
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
