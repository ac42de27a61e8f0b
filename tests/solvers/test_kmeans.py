"""Rough k-means solutions against plain NumPy and against the formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.solvers.kmeans import (
    Clusters,
    assign,
    cells_of,
    concatenate_clusters,
    lloyd_step,
    merge_clusters,
    rough_kmeans,
    seed_cells,
)
from daskcoreset.solvers.kmeans_numba import kmeans_plus_plus
from tests.tools.plain_loops import use_plain_loops


def blobs(seed: int, n: int = 400, d: int = 3, dtype: str = "f8") -> tuple[AnyArray, FloatArray]:
    rng = np.random.default_rng(seed)
    centers = 20 * rng.standard_normal((5, d))
    points = centers[rng.integers(0, 5, n)] + rng.standard_normal((n, d))
    return points.astype(dtype), rng.integers(0, 4, n).astype(np.float64)


def brute_distances(points: AnyArray, centers: FloatArray) -> FloatArray:
    gaps = points[:, None, :].astype(np.float64) - centers
    return np.asarray((gaps**2).sum(axis=2))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_assign__nearest_of_all(
    compiled: bool, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        use_plain_loops(monkeypatch)
    points, _ = blobs(0, dtype=dtype)
    centers = np.random.default_rng(1).standard_normal((7, 3)) * 20

    labels, distances = assign(points, centers)

    every = brute_distances(points, centers)
    np.testing.assert_array_equal(labels, every.argmin(axis=1))
    np.testing.assert_allclose(distances, every.min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_cells__means_weights_and_costs(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        use_plain_loops(monkeypatch)
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


def test_cells__centers_without_rows_are_left_out() -> None:
    points, weights = blobs(2)
    centers = np.concatenate([points[[0]], np.full((1, 3), 1e6), points[[100, 200]]])

    found = lloyd_step(points, weights, centers)

    assert len(found) == 3
    assert found.weight == weights.sum()
    placed = cells_of(points, weights, assign(points, centers)[0], centers)
    np.testing.assert_array_equal(
        np.bincount(placed.labels, weights=weights), placed.clusters.weights
    )


def test_seed_cells__same_in_plain_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    points, weights = blobs(3)
    compiled = seed_cells(points, weights, 6, np.random.default_rng(0)).clusters
    use_plain_loops(monkeypatch)
    plain = seed_cells(points, weights, 6, np.random.default_rng(0)).clusters

    np.testing.assert_allclose(compiled.centers, plain.centers, rtol=1e-10)
    np.testing.assert_allclose(compiled.costs, plain.costs, rtol=1e-10)


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
        first, second = kmeans_plus_plus(points, weights, coins, 0, labels, distances)
        counts[first, second] += 1
    for first in range(4):
        mass = weights * ((points - points[first]) ** 2).ravel()
        expected[first] = n_seeds * weights[first] / weights.sum() * mass / mass.sum()

    able = expected > 0
    assert not counts[~able].any()
    statistic = ((counts - expected)[able] ** 2 / expected[able]).sum()
    assert statistic < chi2.isf(1e-6, able.sum() - 1)


@pytest.mark.parametrize("compiled", [True, False])
def test_seed_cells__fewer_distinct_rows_than_clusters(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        use_plain_loops(monkeypatch)
    points = np.repeat([[1.0, 2.0], [3.0, 4.0]], 10, axis=0)

    found = seed_cells(points, np.ones(20), 5, np.random.default_rng(0)).clusters

    assert len(found) == 2
    assert found.cost == 0
    np.testing.assert_array_equal(found.weights, [10, 10])


def test_seed_cells__rows_without_weight_are_never_seeds() -> None:
    points, weights = blobs(4)
    weights[:] = 0
    weights[[5, 6, 7]] = 1

    found = seed_cells(points, weights, 10, np.random.default_rng(0)).clusters

    assert len(found) == 3
    assert found.weight == 3


def test_seed_cells__empty_block() -> None:
    found = seed_cells(np.empty((0, 2)), np.empty(0), 3, np.random.default_rng(0)).clusters

    assert found.centers.shape == (0, 2)
    assert found.weight == 0


def test_seed_cells__sparse_equals_dense() -> None:
    points, weights = blobs(5)
    dense = seed_cells(points, weights, 4, np.random.default_rng(0)).clusters
    sparse = seed_cells(sp.csr_array(points), weights, 4, np.random.default_rng(0)).clusters

    np.testing.assert_array_equal(dense.centers, sparse.centers)


def test_seed_cells__large_offset() -> None:
    points, weights = blobs(6)
    near = seed_cells(points.astype("f4"), weights, 5, np.random.default_rng(0)).clusters
    moved = (points.astype("f4").astype("f8") + 1e8).astype("f8")
    far = seed_cells(moved, weights, 5, np.random.default_rng(0)).clusters

    np.testing.assert_allclose(far.cost, near.cost, rtol=1e-5)


def test_cluster__finds_separate_blobs() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    points = np.repeat(truth, 50, axis=0) + rng.standard_normal((150, 2))

    found = rough_kmeans(points, np.ones(150), 3, np.random.default_rng(1))

    order = brute_distances(truth, found.centers).argmin(axis=1)
    np.testing.assert_allclose(found.centers[order], truth, atol=1)
    np.testing.assert_array_equal(found.weights, [50, 50, 50])


@given(seed=st.integers(0, 2**32), n_blocks=st.integers(1, 5))
def test_pool__cost_and_weight_add_up(seed: int, n_blocks: int) -> None:
    points, weights = blobs(seed, n=60)
    parts = np.array_split(np.arange(60), n_blocks)
    rng = np.random.default_rng(seed)
    tables = [seed_cells(points[p], weights[p], 4, rng).clusters for p in parts]
    if not sum(len(table) for table in tables):
        return

    found = merge_clusters(concatenate_clusters(tables), 4, np.random.default_rng(seed))

    np.testing.assert_allclose(found.weight, weights.sum())
    # Rows that go with their local center: an upper bound of the cost with free choice.
    free = (weights * brute_distances(points, found.centers).min(axis=1)).sum()
    assert found.cost >= free * (1 - 1e-9)


def test_pool__exact_when_cells_nest() -> None:
    points = np.array([[0.0], [1.0], [10.0], [11.0], [0.5], [10.5]])
    halves = [np.arange(4), np.array([4, 5])]
    rng = np.random.default_rng(0)
    tables = [seed_cells(points[h], np.ones(len(h)), 2, rng).clusters for h in halves]

    found = merge_clusters(concatenate_clusters(tables), 2, np.random.default_rng(1))

    order = np.argsort(found.centers.ravel())
    np.testing.assert_allclose(found.centers[order], [[0.5], [10.5]])
    np.testing.assert_allclose(found.weights[order], [3, 3])
    np.testing.assert_allclose(found.costs[order], [0.5, 0.5])


def test_clusters__totals() -> None:
    table = Clusters(np.zeros((2, 1)), np.array([1.0, 2.0]), np.array([3.0, 4.0]))

    assert (len(table), table.weight, table.cost) == (2, 3.0, 7.0)
