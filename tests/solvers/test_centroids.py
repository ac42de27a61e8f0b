import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.solvers import centroids as solver
from daskcoreset.solvers import kmeans_numba as loops
from daskcoreset.solvers.centroids import centroids
from daskcoreset.solvers.kmeans import nearest, solve
from tests.pairs import each, pairs


def _rows(kind: str, n: int = 1500) -> np.ndarray:
    rng = np.random.default_rng(1)
    if kind == "offset":
        return rng.normal(size=(n, 3)) + 1e8
    if kind == "wide":  # more columns than rows
        return rng.normal(size=(200, 300))
    if kind == "one row":  # that has all the cost
        return np.vstack([rng.normal(size=(n, 3)), [[1e9, 0.0, 0.0]]])
    if kind == "repeated":
        return np.repeat(rng.normal(size=(130, 3)), 10, axis=0)
    if kind == "five far":
        return np.vstack([rng.normal(size=(n, 3)), 1e4 + rng.normal(size=(5, 3))])
    return rng.normal(size=(n, 3)).astype(np.float32)


@each(count=[20, 100], kind=["plain", "offset", "wide", "one row", "repeated", "five far"])
def test_centroids__keep_weights_means_and_costs_of_one_center(kind: str, count: int) -> None:
    rows = _rows(kind)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 3.0, len(rows))
    found = centroids(rows, weights, count, rng)
    assert count - 1 <= len(found.points) <= count
    np.testing.assert_allclose(found.weights.sum(), weights.sum(), rtol=1e-12)
    about = rows[0].astype(np.float64)  # so that an offset hides nothing
    moment = weights @ (rows - about)
    scale = weights @ abs(rows - about)
    np.testing.assert_allclose(
        found.weights @ (found.points - about), moment, atol=1e-12 * scale.max() + 1e-6
    )
    for center in (about + 3.0, rows[-1].astype(np.float64)):
        on_rows = weights @ ((rows - center) ** 2).sum(axis=1)
        on_cells = found.weights @ ((found.points - center) ** 2).sum(axis=1) + found.costs.sum()
        np.testing.assert_allclose(on_cells, on_rows, rtol=1e-7)


def test_centroids__bound_costs_of_several_centers_from_above() -> None:
    rows = _rows("five far")
    weights = np.random.default_rng(2).uniform(0.5, 3.0, len(rows))
    found = centroids(rows, weights, 80, np.random.default_rng(0))
    inner = found.costs.sum()
    for seed in range(5):
        q = rows[np.random.default_rng(seed).choice(len(rows), 12)]
        on_rows = weights @ nearest(rows, q)[1]
        on_cells = found.weights @ nearest(found.points, q)[1] + inner
        assert on_rows * (1 - 1e-9) <= on_cells
        assert on_cells <= on_rows + 2 * np.sqrt(inner * on_rows) + 2 * inner


def test_centroids__of_far_and_equal_rows() -> None:
    rows = _rows("five far")
    found = centroids(rows, np.ones(len(rows)), 70, np.random.default_rng(0))
    far = found.points[:, 0] > 5e3
    assert found.weights[far].sum() == 5.0  # a cell of none but far rows
    rows = _rows("repeated")
    found = centroids(rows, np.ones(len(rows)), 200, np.random.default_rng(0))
    assert len(found.points) == 130  # one for each distinct row
    assert (found.weights == 10.0).all()
    np.testing.assert_allclose(found.costs, 0.0, atol=1e-20)
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(found.points, axis=0))


@pairs(sparse=[False, True], n_clusters=[None, 5], count=[20, 150, 400])
def test_centroids__of_rows_with_many_copies_are_those_of_distinct_ones(
    count: int, n_clusters: int | None, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    distinct = rng.normal(size=(300, 4))
    copies = rng.permutation(np.arange(3000) % 300)
    weights = rng.lognormal(size=3000)
    X: Any = sp.csr_array(distinct[copies]) if sparse else distinct[copies]
    looked_at: list[int] = []
    found_of = solver._found

    def watched(points: Any, *args: Any) -> Any:
        looked_at.append(points.shape[0])
        return found_of(points, *args)

    monkeypatch.setattr(solver, "_found", watched)
    found = solver.centroids(X, weights, count, np.random.default_rng(1), n_clusters)
    assert looked_at == ([300] if count < 300 else [])
    assert len(found.points) <= min(count, 300)
    assert (np.diff(found.rows) > 0).all()
    for copy in range(300):
        assert len(set(found.labels[copies == copy])) == 1
    for cell in range(len(found.points)):
        own = found.labels == cell
        mean = np.average(distinct[copies[own]], axis=0, weights=weights[own])
        np.testing.assert_allclose(found.points[cell], mean, atol=1e-12)
        assert found.weights[cell] == pytest.approx(weights[own].sum())
        cost = weights[own] @ np.square(distinct[copies[own]] - mean).sum(axis=1)
        assert found.costs[cell] == pytest.approx(cost, abs=1e-12)
        assert own[found.rows[cell]]


def test_centroids__of_rows_with_one_product_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """By chance rows may look equal."""
    monkeypatch.setattr(solver, "inner_products", lambda points, _: np.zeros((len(points), 1)))
    rows = np.arange(50.0)[:, np.newaxis]
    assert solver._equal_rows(rows)[1] is None
    assert len(solver.centroids(rows, np.ones(50), 10, np.random.default_rng(0)).points) == 10


def test_centroids__know_a_row_near_them() -> None:
    rows = _rows("plain")
    found = centroids(rows, np.ones(len(rows)), 100, np.random.default_rng(0))
    assert (np.diff(found.rows) > 0).all()
    for i in range(0, 100, 17):
        cell = np.flatnonzero(found.labels == i)
        gaps = ((rows[cell] - found.points[i]) ** 2).sum(axis=1)
        assert found.rows[i] == cell[gaps.argmin()]
        assert found.weights[i] == len(cell)


def test_centroids__of_sparse_rows_are_those_of_dense_ones() -> None:
    rows = np.where(np.random.default_rng(0).random((400, 8)) < 0.3, 1.0, 0.0) * np.arange(8)
    dense, sparse = (
        centroids(each, np.ones(400), 30, np.random.default_rng(0))
        for each in (rows, sp.csr_array(rows))
    )
    np.testing.assert_array_equal(dense.points, sparse.points)
    np.testing.assert_array_equal(dense.rows, sparse.rows)


@pytest.mark.parametrize("k", [5, 40])
def test_centroids__for_clusters_cost_little_more_than_the_rows(k: int) -> None:
    """Without structure every boundary between clusters runs through cells of other parts."""
    rows = np.random.default_rng(3).normal(size=(6000, 6))
    ones = np.ones(len(rows))
    options: Any = {"init": "k-means++", "n_init": 3, "max_iter": 100, "tol": 1e-4, "seed": 0}
    excess, costs = [], []
    for clusters in (None, k):
        found = centroids(rows, ones, 400, np.random.default_rng(0), clusters)
        assert len(found.points) == 400
        q = solve(found.points, found.weights, k, **options).centers
        costs.append(nearest(rows, q)[1].sum())
        on_cells = found.weights @ nearest(found.points, q)[1] + found.costs.sum()
        excess.append(on_cells / costs[-1] - 1.0)
    assert 0.0 <= excess[1] < 0.6 * excess[0]
    assert costs[1] < 1.003 * costs[0]


def test_centroids__for_clusters_of_few_distinct_rows() -> None:
    rows = _rows("repeated")
    for k, count in ((3, 200), (90, 200), (90, 120), (300, 200)):
        found = centroids(rows, np.ones(len(rows)), count, np.random.default_rng(0), k)
        n_points = len(found.points)
        assert len(np.unique(found.points, axis=0)) == n_points <= min(count, 130)
        assert n_points >= 0.95 * min(count, 130)
        assert found.weights.sum() == len(rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cells_of_parts__are_those_of_every_part_alone(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    sizes, n_seeds = np.array([300, 1, 20, 47, 130]), np.array([9, 1, 20, 5, 3])
    starts, coin_starts = (np.concatenate([[0], np.cumsum(each)]) for each in (sizes, n_seeds))
    rows = rng.normal(size=(sizes.sum(), 5)).astype(dtype)
    weights = rng.uniform(0.5, 3.0, len(rows))
    coins = rng.random(n_seeds.sum())
    labels, centers, counts = loops.cells_of_parts(rows, weights, starts, coins, coin_starts, 3)
    ends = np.cumsum(counts)
    assert len(centers) == ends[-1]
    for part, (start, stop) in enumerate(itertools.pairwise(starts)):
        own, u = rows[start:stop].astype(np.float64), weights[start:stop]
        found = _plain_cells(own, u, coins[coin_starts[part] : coin_starts[part + 1]])
        of_part = centers[ends[part] - counts[part] : ends[part]]
        np.testing.assert_allclose(of_part, found, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(labels[start:stop], nearest(own, of_part)[0])


def _plain_cells(rows: np.ndarray, weights: np.ndarray, coins: np.ndarray) -> np.ndarray:
    """k-means++ by inverting the cumulative costs, and three steps of Lloyd."""
    costs, chosen = weights, []
    for coin in coins:
        chosen.append(int(np.searchsorted(np.cumsum(costs), coin * costs.sum(), side="right")))
        gaps = rows[:, np.newaxis] - rows[chosen]
        costs = weights * (gaps**2).sum(axis=2).min(axis=1)
    centers = rows[chosen]
    for _ in range(3 if len(rows) > len(chosen) else 0):
        labels = ((rows[:, np.newaxis] - centers) ** 2).sum(axis=2).argmin(axis=1)
        cells = [labels == number for number in range(len(centers)) if (labels == number).any()]
        centers = np.array([np.average(rows[c], axis=0, weights=weights[c]) for c in cells])
    return centers
