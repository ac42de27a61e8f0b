from typing import Any

import numpy as np
import pytest

from daskcoreset.solvers.centroids import centroids
from daskcoreset.solvers.kmeans import nearest, solve
from tests.pairs import each


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
