"""Rough cells of a long block, judged by NumPy alone."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.sensitivities.kmeans import rough_cells


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
