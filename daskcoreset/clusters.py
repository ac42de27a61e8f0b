r"""Rough k-means solutions and what scores need of them: a table of weighted clusters.

Everything here runs on one block or on a table of cluster centers, in compiled loops of one
thread without BLAS, so that its bits are the same wherever it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.kernels import compiled_loops
from daskcoreset.typing import AnyArray, FloatArray, IndexArray, Points

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Clusters", "assign", "cells", "cluster", "dense_rows", "pool", "seed_clusters"]

_LLOYD_STEPS = 10
"""A rough solution is all that scores need; cost falls little after a few steps."""


@dataclass(frozen=True, eq=False)
class Clusters:
    r"""Cells of a rough solution B.

    Attributes
    ----------
    centers : ndarray of shape (k, d), float64
    weights : ndarray of shape (k,), float64
        :math:`U(B_i)`, the weight of each cell.
    costs : ndarray of shape (k,), float64
        :math:`\phi_{B_i}(B)`, its quantization error.
    """

    centers: FloatArray
    weights: FloatArray
    costs: FloatArray

    def __len__(self) -> int:
        return len(self.centers)

    @property
    def weight(self) -> float:
        """Total weight U."""
        return float(self.weights.sum())

    @property
    def cost(self) -> float:
        r"""Total quantization error :math:`\phi_X(B)`."""
        return float(self.costs.sum())


def seed_clusters(
    points: Points, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Clusters:
    """Seed by k-means++ and move the centers to the means of their cells.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
    n_clusters : int
        Centers wanted; fewer come back when fewer rows are distinct.
    rng : numpy.random.Generator
        Asked for `n_clusters` uniform numbers.

    Returns
    -------
    Clusters
        Cells by the seeds, their weighted means as centers, and costs about the means.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [10.0]])
    >>> found = seed_clusters(rows, np.ones(3), 2, np.random.default_rng(0))
    >>> sorted(found.centers.ravel().tolist())
    [0.5, 10.0]

    References
    ----------
    Arthur and Vassilvitskii (2007), k-means++: the advantages of careful seeding.
    """
    dense = dense_rows(points)
    labels = np.zeros(len(dense), dtype=np.int64)
    distances = np.full(len(dense), np.inf)
    coins = rng.random(n_clusters)
    seed = _numpy_seeds if (loops := compiled_loops()) is None else loops.kmeans_plus_plus
    rows = seed(dense, weights, coins, labels, distances)
    return _table(dense, weights, labels, dense[rows].astype(np.float64))


def assign(points: Points, centers: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Nearest center of every row, and the squared distance to it.

    Returns
    -------
    labels : ndarray of shape (n,), int64
    distances : ndarray of shape (n,), float64

    Examples
    --------
    >>> assign(np.array([[0.0], [9.0]]), np.array([[1.0], [10.0]]))
    (array([0, 1]), array([1., 1.]))
    """
    dense = dense_rows(points)
    labels = np.empty(len(dense), dtype=np.int64)
    distances = np.empty(len(dense))
    nearest = _numpy_nearest if (loops := compiled_loops()) is None else loops.nearest_center
    nearest(dense, np.ascontiguousarray(centers.T), labels, distances)
    return labels, distances


def cells(points: Points, weights: FloatArray, centers: FloatArray) -> Clusters:
    """Cells of given centers: each moves to the mean of the rows nearest to it."""
    dense = dense_rows(points)
    labels, _ = assign(dense, centers)
    return _table(dense, weights, labels, np.array(centers, dtype=np.float64))


def cluster(
    points: Points,
    weights: FloatArray,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    tries: int = 3,
) -> Clusters:
    """Solve roughly: k-means++ and a few steps of Lloyd, the best of several tries."""
    dense = dense_rows(points)
    best: Clusters | None = None
    for _ in range(tries):
        found = seed_clusters(dense, weights, n_clusters, rng)
        for _ in range(_LLOYD_STEPS):
            cost = found.cost
            found = cells(dense, weights, found.centers)
            if found.cost >= 0.99 * cost:
                break
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None  # noqa: S101 - tries >= 1
    return best


def pool(parts: Iterable[Clusters], n_clusters: int, rng: np.random.Generator) -> Clusters:
    r"""Cluster the cells of many blocks into cells of all data.

    A block's cell with center c, weight w and cost v that goes to the center b adds weight w
    and cost :math:`v + w |c - b|^2`: exact when all its rows are nearest to b.
    """
    tables = list(parts)
    centers = np.concatenate([part.centers for part in tables])
    weights = np.concatenate([part.weights for part in tables])
    costs = np.concatenate([part.costs for part in tables])
    found = cluster(centers, weights, n_clusters, rng)
    labels, distances = assign(centers, found.centers)
    inner = costs + weights * distances
    k = len(found)
    return Clusters(
        found.centers,
        np.bincount(labels, weights=weights, minlength=k).astype(np.float64),
        np.bincount(labels, weights=inner, minlength=k).astype(np.float64),
    )


def dense_rows(points: Any) -> AnyArray:
    """Return rows as an array in C order, whether they are sparse or not."""
    return np.ascontiguousarray(points if isinstance(points, np.ndarray) else points.toarray())


def _table(
    points: AnyArray, weights: FloatArray, labels: IndexArray, centers: FloatArray
) -> Clusters:
    mass, cost = np.zeros(len(centers)), np.zeros(len(centers))
    table = _numpy_table if (loops := compiled_loops()) is None else loops.cluster_table
    table(points, weights, labels, centers, mass, cost)
    used = mass > 0
    return Clusters(centers[used], mass[used], cost[used])


def _numpy_seeds(
    points: AnyArray,
    weights: FloatArray,
    coins: FloatArray,
    labels: IndexArray,
    distances: FloatArray,
) -> IndexArray:
    rows: list[int] = []
    for label, coin in enumerate(coins):
        running = np.cumsum(weights * distances if rows else weights)
        if running[-1] == 0:
            break
        target = min(coin * running[-1], np.nextafter(running[-1], 0.0))
        row = int(np.searchsorted(running, target, side="right"))
        rows.append(row)
        gaps = points - points[row].astype(np.float64)
        squares = np.einsum("ij,ij->i", gaps, gaps)
        labels[squares < distances] = label
        np.minimum(distances, squares, out=distances)
    return np.array(rows, dtype=np.int64)


def _numpy_nearest(
    points: AnyArray, columns: FloatArray, labels: IndexArray, distances: FloatArray
) -> None:
    distances.fill(np.inf)
    for label, center in enumerate(columns.T):
        gaps = points - center
        squares = np.einsum("ij,ij->i", gaps, gaps)
        nearer = squares < distances
        labels[nearer] = label
        distances[nearer] = squares[nearer]


def _numpy_table(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    cost: FloatArray,
) -> None:
    k = len(centers)
    mass += np.bincount(labels, weights=weights, minlength=k)
    safe = np.where(mass > 0, mass, 1.0)
    for j in range(centers.shape[1]):
        moved = weights * (points[:, j] - centers[labels, j])
        centers[:, j] += np.bincount(labels, weights=moved, minlength=k) / safe
    gaps = points - centers[labels]
    squares = weights * np.einsum("ij,ij->i", gaps, gaps)
    cost += np.bincount(labels, weights=squares, minlength=k)
