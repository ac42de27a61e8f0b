"""Few weighted centroids in the place of many weighted rows."""

from __future__ import annotations

import math
from collections.abc import Callable
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

# Rough solutions whose clusters the cells lie in, and Lloyd steps of each: of few clusters three,
# for one alone would draw the solver to itself. Of more clusters than the last number none, for
# their steps would take longer than the read.
_FEW, _SEVERAL, _STEPS_OF_SEVERAL = 16, 3, 4
_MOST_CLUSTERS, _STEPS_OF_ONE = 256, 8


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
    points: Points,
    weights: FloatArray,
    count: int,
    rng: np.random.Generator,
    n_clusters: int | None = None,
) -> Centroids:
    r"""Reduce weighted rows to about `count` weighted centroids of small cells.

    k-means++ with `count` seeds and three Lloyd steps. Of more than 64 this is done in two levels,
    :math:`\sqrt{\mathrm{count}}` parts first and then seeds in each in proportion to its cost, so
    that the work grows as n times the root of `count`.

    For solutions of `n_clusters` the parts are the clusters of a rough one: what a cell costs too
    much is what rows of it are nearer to another center than its centroid is, and no cell of
    such parts has any of these for the centers of the rough solution. Up to 16 clusters, the parts
    are what the clusters of three rough solutions have in common; of more than 256 clusters
    they are as above.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
        Positive.
    count : int
    rng : numpy.random.Generator
    n_clusters : int or None, default=None
        Clusters of the solutions that will be looked for, where they are known.

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
    if n_clusters is not None and 1 < n_clusters <= min(_MOST_CLUSTERS, count // 2):
        found = _cells_of_solutions(points, weights, count, n_clusters, rng)
    else:
        found = _small_cells(points, weights, count, rng)
    return _ordered(cells_of(points, weights, *found))


def _small_cells(
    points: Points, weights: FloatArray, count: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    """Return the cell of every row, and where their centers are about."""
    if count <= _DIRECT:
        return _cells(points, weights, count, rng)
    seeds = seed_cells(points, weights, math.isqrt(count), rng).clusters.centers
    parts = cells_of(points, weights, assign(points, seeds)[0], seeds)
    return _cells_in_parts(points, weights, count, parts, _cells, rng)


def _cells_of_solutions(
    points: Points, weights: FloatArray, count: int, n_clusters: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    """Return cells that lie each in one cluster of every rough solution."""
    few = n_clusters <= _FEW
    n_solutions, steps = (_SEVERAL, _STEPS_OF_SEVERAL) if few else (1, _STEPS_OF_ONE)
    labels = np.zeros(points.shape[0], dtype=np.int64)
    for _ in range(n_solutions):
        centers = seed_cells(points, weights, n_clusters, rng).clusters.centers
        for _ in range(steps):
            centers = lloyd_step(points, weights, centers).centers
        both = labels * n_clusters + assign(points, centers)[0]
        _, firsts, finer = np.unique(both, return_index=True, return_inverse=True)
        if labels.any() and len(firsts) > count // 2:
            break
        labels, starts = finer.astype(np.int64), dense_rows(points[firsts]).astype(np.float64)
    parts = cells_of(points, weights, labels, starts)
    return _cells_in_parts(points, weights, count, parts, _small_cells, rng)


def _cells_in_parts(  # noqa: PLR0917 - all of them are always given
    points: Points,
    weights: FloatArray,
    count: int,
    parts: Partition,
    cells: Callable[..., tuple[IndexArray, FloatArray]],
    rng: np.random.Generator,
) -> tuple[IndexArray, FloatArray]:
    """Return the cells that `cells` finds in each of the parts."""
    sizes = np.bincount(parts.labels, minlength=len(parts.clusters))
    order = np.argsort(parts.labels, kind="stable")
    shares = _shares(parts.clusters.costs, sizes, count)
    labels, centers, total = np.empty(len(order), dtype=np.int64), [], 0
    for rows, share in zip(np.split(order, np.cumsum(sizes)[:-1]), shares.tolist(), strict=True):
        local, found = cells(points[rows], weights[rows], share, rng)
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
