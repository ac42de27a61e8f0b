"""Few weighted centroids in the place of many weighted rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense_rows, inner_products, read_only
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

# Numbers of the rows of parts that are gathered at a time.
_BATCH_NUMBERS = 2**20

# Rough solutions whose clusters the cells lie in, and Lloyd steps of each: of few clusters three,
# for one alone would draw the solver to itself. Of more clusters than the last number none, for
# their steps would take longer than the read.
_FEW, _SEVERAL, _STEPS_OF_SEVERAL = 16, 3, 4
_MOST_CLUSTERS, _STEPS_OF_ONE = 256, 8

# Rows that a rough solution looks at for each cluster, drawn anew for each: of ten clusters in
# 20,000 rows, solutions on centroids cost as much with 400 as with all, with 100 up to 0.35 % more.
_ROWS_OF_ROUGH = 500


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
    distances : ndarray of shape (n,), float64
        Squared distance of every row to the centroid of its cell.
    costs : ndarray of shape (m,), float64
        Weighted sums of squared distances in the cells.
    """

    points: FloatArray
    weights: FloatArray
    rows: IndexArray
    labels: IndexArray
    distances: FloatArray
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
    if isinstance(points, np.ndarray):
        # The loops work in float64, and are compiled once less.
        points = points.astype(np.float64, copy=False)
    first, groups = _equal_rows(points)
    if groups is None:
        return _ordered(cells_of(points, weights, *_found(points, weights, count, rng, n_clusters)))
    # The work is that of the distinct rows, each of which has the weight of its copies.
    rows, masses = points[first], np.bincount(groups, weights).astype(np.float64)
    if len(first) <= count:
        labels, centers = np.arange(len(first)), dense_rows(rows).astype(np.float64)
    else:
        labels, centers = _found(rows, masses, count, rng, n_clusters)
    return _ordered(cells_of(points, weights, labels[groups], centers))


def _found(
    points: Points,
    weights: FloatArray,
    count: int,
    rng: np.random.Generator,
    n_clusters: int | None,
) -> tuple[IndexArray, FloatArray]:
    """Return the cell of every row, and where their centers are about."""
    if n_clusters is not None and 1 < n_clusters <= min(_MOST_CLUSTERS, count // 2):
        return _cells_of_solutions(points, weights, count, n_clusters, rng)
    return _small_cells(points, weights, count, rng)


def _equal_rows(points: Points) -> tuple[IndexArray, IndexArray | None]:
    """Return the first of every group of equal rows, and the group of every row.

    The latter is None where more than half of the rows are distinct: to merge the others would
    save little. Rows are told apart by one product with random numbers: `deduplicate`, which sorts
    them, goes through all columns of copies one by one.
    """
    n, d = points.shape
    values = inner_products(points, np.random.default_rng(0).normal(size=(1, d)))[:, 0]
    _, first, groups = np.unique(values, return_index=True, return_inverse=True)
    if 2 * len(first) > n:
        return first, None
    apart: Any = points != points[first[groups]]  # by chance a product may be that of another row
    is_apart = apart.any() if isinstance(points, np.ndarray) else apart.nnz > 0
    return first, None if is_apart else groups


def _small_cells(
    points: Points, weights: FloatArray, count: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    """Return the cell of every row, and where their centers are about."""
    if count <= _DIRECT:
        whole = np.arange(points.shape[0])
        labels, centers, _ = _cells(points, weights, [whole], [_coins(whole, count, rng)])
        return labels, centers
    seeds = seed_cells(points, weights, math.isqrt(count), rng).clusters.centers
    parts = cells_of(points, weights, assign(points, seeds)[0], seeds)
    return _cells_in_parts(points, weights, count, parts, rng, most=count)


def _cells_of_solutions(
    points: Points, weights: FloatArray, count: int, n_clusters: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    """Return cells that lie each in one cluster of every rough solution."""
    few = n_clusters <= _FEW
    n_solutions, steps = (_SEVERAL, _STEPS_OF_SEVERAL) if few else (1, _STEPS_OF_ONE)
    n = points.shape[0]
    labels, n_parts = np.zeros(n, dtype=np.int64), 1
    some, u = points, weights
    n_looked_at = _ROWS_OF_ROUGH * n_clusters
    for number in range(n_solutions):
        if n_looked_at < n:
            chosen = np.sort(rng.permutation(n)[:n_looked_at])
            some, u = points[chosen], weights[chosen]
        centers = seed_cells(some, u, n_clusters, rng).clusters.centers
        for _ in range(steps):
            check_time("centroids were being sought", "pass a smaller size")
            centers = lloyd_step(some, u, centers).centers
        both = labels * n_clusters + assign(points, centers)[0]
        # What `np.unique` finds, without sorting the rows.
        used = np.bincount(both, minlength=n_parts * n_clusters) > 0
        if number and used.sum() > count // 2:
            break
        labels, n_parts = (np.cumsum(used) - 1)[both], int(used.sum())
    starts = dense_rows(points[_firsts(labels, np.arange(n), n_parts)]).astype(np.float64)
    parts = cells_of(points, weights, labels, starts)
    return _cells_in_parts(points, weights, count, parts, rng, most=_DIRECT)


def _cells_in_parts(
    points: Points,
    weights: FloatArray,
    count: int,
    parts: Partition,
    rng: np.random.Generator,
    *,
    most: int,
) -> tuple[IndexArray, FloatArray]:
    """Return cells of each of the parts: of more than `most`, found in two levels once more."""
    sizes = np.bincount(parts.labels, minlength=len(parts.clusters))
    order = np.argsort(parts.labels, kind="stable")
    shares = _shares(parts.clusters.costs, sizes, count).tolist()
    rows_of = np.split(order, np.cumsum(sizes)[:-1])
    found: dict[int, tuple[IndexArray, FloatArray]] = {}
    direct, coins = [], []
    for part, (rows, share) in enumerate(zip(rows_of, shares, strict=True)):
        if share <= most:
            direct.append(part)
            coins.append(_coins(rows, share, rng))
        else:
            found[part] = _small_cells(points[rows], weights[rows], share, rng)
    for some in _batches([sizes[part] * points.shape[1] for part in direct]):
        batch = [rows_of[part] for part in direct[some]]
        local, centers, counts = _cells(points, weights, batch, coins[some])
        stops = np.cumsum([len(rows) for rows in batch])[:-1]
        labels_of = np.split(local, stops)
        centers_of = np.split(centers, np.cumsum(counts)[:-1])
        found.update(zip(direct[some], zip(labels_of, centers_of, strict=True), strict=True))
    labels, all_centers, total = np.empty(len(order), dtype=np.int64), [], 0
    for part, rows in enumerate(rows_of):
        local, centers = found[part]
        labels[rows] = total + local
        all_centers.append(centers)
        total += len(centers)
    joined = np.concatenate(all_centers)
    if total == count:
        return labels, joined
    # Parts of few distinct rows have left seeds over.
    dense = dense_rows(points)
    distances = own_distances(dense, labels, joined)
    coins_left = rng.random(min(count, len(dense)) - total)
    further = plus_plus(dense, weights, coins_left, labels, distances, n_earlier=total)
    return labels, np.concatenate([joined, dense[further].astype(np.float64)])


def _coins(rows: IndexArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Return a uniform number for each of `count` seeds, of which no row is two."""
    return rng.random(min(count, len(rows)))


def _batches(numbers: Sequence[int]) -> Iterator[slice]:
    """Return ranges of parts that have about 8 MiB of numbers each, and one part at least."""
    start, total = 0, 0
    for part, count in enumerate(numbers):
        if total and total + count > _BATCH_NUMBERS:
            yield slice(start, part)
            start, total = part, 0
        total += int(count)
    if len(numbers) > start:
        yield slice(start, len(numbers))


def _cells(
    points: Points, weights: FloatArray, parts: Sequence[IndexArray], coins: Sequence[FloatArray]
) -> tuple[IndexArray, FloatArray, IndexArray]:
    """Return the cell of every row in its part, where their centers are about, and how many."""
    from daskcoreset.solvers import kmeans_numba as loops

    order = np.concatenate(parts)
    starts, coin_starts = (np.cumsum([0, *map(len, each)]) for each in (parts, coins))
    # One loop for both dtypes: it works in float64.
    rows = dense_rows(points[order]).astype(np.float64, copy=False)
    found: tuple[IndexArray, FloatArray, IndexArray] = loops.cells_of_parts(
        read_only(rows), weights[order], starts, np.concatenate(coins), coin_starts, STEPS
    )
    return found


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
    smallest = np.full(len(clusters), np.inf)
    np.minimum.at(smallest, labels, distances)
    nearest = _firsts(labels, np.flatnonzero(distances == smallest[labels]), len(clusters))
    ranks = np.argsort(nearest)
    number = np.empty(len(ranks), dtype=np.int64)
    number[ranks] = np.arange(len(ranks))
    return Centroids(
        clusters.centers[ranks],
        clusters.weights[ranks],
        nearest[ranks],
        number[labels],
        distances,
        clusters.costs[ranks],
    )


def _firsts(labels: IndexArray, rows: IndexArray, count: int) -> IndexArray:
    """Return the first of some increasing rows of each label; every label has one."""
    firsts = np.empty(count, dtype=np.int64)
    firsts[labels[rows[::-1]]] = rows[::-1]  # of several values the last one stays
    return firsts
