"""Few weighted centroids in the place of many weighted rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.typing import FloatArray, IndexArray, Points
from daskcoreset.solvers.kmeans import (
    Partition,
    assign,
    cells_of,
    lloyd_step,
    own_distances,
    plus_plus,
    seed_cells,
)

# Lloyd steps after the seeds: further ones were measured to lower the cost in the cells by less
# than a hundredth each.
STEPS = 3

# Centroids up to which all rows meet all of them; of more, those of their own part.
_DIRECT = 64


class Centroids(NamedTuple):
    """Weighted means of the cells of rows.

    Attributes
    ----------
    points : ndarray of shape (m, d), float64
    weights : ndarray of shape (m,), float64
        Of the cells.
    rows : ndarray of shape (m,), int64
        Position of the row nearest to each of them, of those in its cell; increasing.
    labels : ndarray of shape (n,), int64
        Cell of every row.
    costs : ndarray of shape (m,), float64
        Weighted sums of squared distances in the cells.
    """

    points: FloatArray
    weights: FloatArray
    rows: IndexArray
    labels: IndexArray
    costs: FloatArray


def centroids(
    points: Points, weights: FloatArray, count: int, rng: np.random.Generator
) -> Centroids:
    r"""Reduce weighted rows to about `count` weighted centroids of small cells.

    k-means++ with `count` seeds and three Lloyd steps. Of more than 64 this is done in two levels,
    :math:`\sqrt{\mathrm{count}}` parts first and then seeds in each in proportion to its cost, so
    that the work grows as n times the root of `count`.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
        Positive.
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    Centroids
        Fewer than `count` where fewer rows are distinct; equal rows share one.

    Notes
    -----
    For any cells :math:`\sum_x u\,|x - q|^2 = \sum_i U_i\,|c_i - q|^2 + \phi` with the cost
    :math:`\phi` in the cells: the cost of one center is kept to rounding, and so is the mean.

    Examples
    --------
    >>> rows = np.array([[0.0], [2.0], [10.0]])
    >>> found = centroids(rows, np.array([1.0, 1.0, 3.0]), 2, np.random.default_rng(0))
    >>> found.points.ravel().tolist(), found.weights.tolist(), found.costs.tolist()
    ([1.0, 10.0], [2.0, 3.0], [2.0, 0.0])

    References
    ----------
    Arthur and Vassilvitskii (2007), k-means++: the advantages of careful seeding.
    """
    cells = _cells if count <= _DIRECT else _cells_in_parts
    labels, centers = cells(points, weights, count, rng)
    return _ordered(cells_of(points, weights, labels, centers))


def _cells_in_parts(
    points: Points, weights: FloatArray, count: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    seeds = seed_cells(points, weights, math.isqrt(count), rng).clusters.centers
    parts = cells_of(points, weights, assign(points, seeds)[0], seeds)
    sizes = np.bincount(parts.labels, minlength=len(parts.clusters))
    order = np.argsort(parts.labels, kind="stable")
    shares = _shares(parts.clusters.costs, sizes, count)
    labels, centers, total = np.empty(len(order), dtype=np.int64), [], 0
    for rows, share in zip(np.split(order, np.cumsum(sizes)[:-1]), shares.tolist(), strict=True):
        local, found = _cells(points[rows], weights[rows], share, rng)
        labels[rows] = total + local
        centers.append(found)
        total += len(found)
    all_centers = np.concatenate(centers)
    if total == count:
        return labels, all_centers
    # Parts of few distinct rows have left seeds over.
    dense = dense_rows(points)
    distances = own_distances(dense, labels, all_centers)
    coins = rng.random(min(count, len(dense)) - total)
    further = plus_plus(dense, weights, coins, labels, distances, n_earlier=total)
    return labels, np.concatenate([all_centers, dense[further].astype(np.float64)])


def _cells(
    points: Points, weights: FloatArray, count: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    """Return the cell of every row, and where their centers are about."""
    rows = dense_rows(points)
    labels, distances = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), np.inf)
    seeds = plus_plus(rows, weights, rng.random(min(count, len(rows))), labels, distances)
    centers = rows[seeds].astype(np.float64)
    if len(centers) == len(rows) or not (weights * distances).any():
        return labels, centers  # every row is its own center
    for _ in range(STEPS):
        centers = lloyd_step(rows, weights, centers).centers
    return assign(rows, centers)[0], centers


def _shares(costs: FloatArray, sizes: IndexArray, count: int) -> IndexArray:
    """Split `count` seeds by the costs of parts: one for each at least, its rows at most."""
    left, shares = float(count), np.ones(len(sizes))
    shares = np.minimum(shares, sizes)
    while True:
        free = (shares < sizes) & (costs > 0.0)
        left = count - shares.sum()
        if left < 1.0 or not free.any():
            break
        wanted = np.where(free, costs / costs[free].max(), 0.0)
        before, shares = shares, np.minimum(shares + left * wanted / wanted.sum(), sizes)
        if shares.sum() - before.sum() < 0.5:
            break
    # Rounded together, so that what is lost in one part is there for the next.
    whole = np.diff(np.floor(np.cumsum(shares) + 1e-6), prepend=0.0)
    return np.clip(whole, 1, sizes).astype(np.int64)


def _ordered(cells: Partition) -> Centroids:
    """Order the cells by the rows nearest to their centroids."""
    clusters, labels, distances = cells
    order = np.lexsort((distances, labels))
    nearest = order[np.flatnonzero(np.diff(labels[order], prepend=-1))]
    ranks = np.argsort(nearest)
    number = np.empty(len(ranks), dtype=np.int64)
    number[ranks] = np.arange(len(ranks))
    return Centroids(
        clusters.centers[ranks],
        clusters.weights[ranks],
        nearest[ranks],
        number[labels],
        clusters.costs[ranks],
    )
