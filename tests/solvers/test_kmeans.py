"""Rough k-means solutions against plain NumPy and against the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.solvers.kmeans import (
    Clusters,
    center_distances,
    lloyd_step,
    merge_clusters,
    nearest,
    nearest_labels,
    plus_plus,
    seed_cells,
)


def blobs(seed: int, n: int = 400, d: int = 3) -> tuple[AnyArray, FloatArray]:
    rng = np.random.default_rng(seed)
    centers = 20 * rng.standard_normal((5, d))
    points = centers[rng.integers(0, 5, n)] + rng.standard_normal((n, d))
    return points, rng.integers(0, 4, n).astype(np.float64)


def brute_distances(points: AnyArray, centers: FloatArray) -> FloatArray:
    gaps = points[:, None, :].astype(np.float64) - centers
    return np.asarray((gaps**2).sum(axis=2))


def test_cells__means_weights_and_costs() -> None:
    points, weights = blobs(2)
    centers = points[[0, 100, 200]]

    found = lloyd_step(points, weights, centers)

    labels = brute_distances(points, centers).argmin(axis=1)
    for i in range(3):
        u, x = weights[labels == i], points[labels == i]
        mean = np.average(x, axis=0, weights=u)
        np.testing.assert_allclose(found.centers[i], mean, rtol=1e-12)
        np.testing.assert_allclose(found.weights[i], u.sum())
        np.testing.assert_allclose(found.costs[i], (u * ((x - mean) ** 2).sum(axis=1)).sum())


@pytest.mark.statistical
def test_seed_cells__draws_by_squared_distance() -> None:
    """Second seeds follow u d^2; chi-square at a false-alarm rate of 1e-6."""
    points = np.array([[0.0], [1.0], [3.0], [6.0]])
    weights = np.array([1.0, 3.0, 1.0, 0.5])
    counts, expected = np.zeros((4, 4)), np.zeros((4, 4))
    n_seeds = 20_000
    for seed in range(n_seeds):
        labels, distances = np.zeros(4, dtype=np.int64), np.full(4, np.inf)
        coins = np.random.default_rng(seed).random(2)
        first, second = plus_plus(points, weights, coins, labels, distances)
        counts[first, second] += 1
    for first in range(4):
        mass = weights * ((points - points[first]) ** 2).ravel()
        expected[first] = n_seeds * weights[first] / weights.sum() * mass / mass.sum()

    able = expected > 0
    assert not counts[~able].any()
    statistic = ((counts - expected)[able] ** 2 / expected[able]).sum()
    assert statistic < chi2.isf(1e-6, able.sum() - 1)


def test_seed_cells__rows_without_weight_are_never_seeds() -> None:
    points, weights = blobs(4)
    weights[:] = 0
    weights[[5, 6, 7]] = 1

    found = seed_cells(points, weights, 10, np.random.default_rng(0)).clusters

    assert len(found) == 3
    assert found.weight == 3


def test_merge_clusters__drops_a_center_without_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last move of rough centers is not followed by an assignment."""
    moved = Clusters(np.array([[0.0], [50.0], [9.0]]), np.ones(3), np.zeros(3))
    monkeypatch.setattr("daskcoreset.solvers.kmeans.rough_kmeans", lambda *_: moved)
    cells = Clusters(np.array([[-1.0], [1.0], [8.0], [10.0]]), np.arange(1.0, 5.0), np.ones(4))

    found = merge_clusters(cells, 3, np.random.default_rng(0))

    np.testing.assert_array_equal(found.centers, [[0.0], [9.0]])
    np.testing.assert_array_equal(found.weights, [3.0, 7.0])
    np.testing.assert_array_equal(found.costs, [2.0 + 3.0, 2.0 + 7.0])


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_nearest__agrees_with_plain_numpy(
    threads: bool, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskcoreset.core.linalg._TILE_NUMBERS", 256)
    X = np.random.default_rng(0).normal(size=(1000, 3))
    centers = X[:7].copy()
    rows: Any = sp.csr_array(X) if sparse else X
    wanted = ((X[:, None] - centers) ** 2).sum(axis=2)
    labels, distances = nearest(rows, centers, threads=threads)
    np.testing.assert_array_equal(labels, wanted.argmin(axis=1))
    np.testing.assert_allclose(distances, wanted.min(axis=1), atol=1e-14)
    all_of_them = center_distances(rows, centers, threads=threads)
    np.testing.assert_allclose(all_of_them, np.sqrt(wanted), atol=1e-7)
    np.testing.assert_array_equal(nearest_labels(rows, centers), labels)
    np.testing.assert_array_equal(center_distances(rows, centers), all_of_them)
