"""The loops of k-means, compiled by numba when they are first called."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.rowwise_numba import IN_ORDER, ROW_SUMS, jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Rows beside one another in `nearest_center`.
_LANES = 128


@jit(IN_ORDER)
def nearest_center(  # noqa: C901 - one loop a step; split, it would be no clearer
    points: AnyArray,
    centers: AnyArray,
    first: int,
    labels: IndexArray,
    distances: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Assign rows to `centers`, numbered from `first`, where these are nearer.

    In the dtype of `centers`. Rows lie beside one another, so that a center meets many at once.
    """
    n, d = points.shape
    tile = np.empty((d, _LANES + 16), centers.dtype)  # no power of two: columns share no cache set
    total, smallest = np.empty(_LANES, centers.dtype), np.empty(_LANES, centers.dtype)
    label = np.empty(_LANES, np.int64)
    for start in range(0, n, _LANES):
        rows = min(_LANES, n - start)
        for i in range(rows):
            for j in range(d):
                tile[j, i] = points[start + i, j]
            smallest[i] = distances[start + i]
        label[:] = -1
        for c in range(centers.shape[0]):
            total[:] = 0.0
            for j in range(0, d - 3, 4):
                a, b = centers[c, j], centers[c, j + 1]
                e, f = centers[c, j + 2], centers[c, j + 3]
                for i in range(_LANES):
                    p, q = tile[j, i] - a, tile[j + 1, i] - b
                    r, s = tile[j + 2, i] - e, tile[j + 3, i] - f
                    total[i] += (p * p + q * q) + (r * r + s * s)
            for j in range(d - d % 4, d):
                a = centers[c, j]
                for i in range(_LANES):
                    p = tile[j, i] - a
                    total[i] += p * p
            for i in range(_LANES):
                if total[i] < smallest[i]:
                    smallest[i] = total[i]
                    label[i] = c
        for i in range(rows):
            if label[i] >= 0:
                labels[start + i] = first + label[i]
                distances[start + i] = smallest[i]


@jit(ROW_SUMS)
def _approach(
    points: AnyArray, row: int, label: int, labels: IndexArray, distances: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Assign rows to a new center where it is nearer."""
    n, d = points.shape
    for i in range(n):
        total = 0.0
        for j in range(d):
            gap = np.float64(points[i, j]) - points[row, j]
            total += gap * gap
        if total < distances[i]:
            distances[i] = total
            labels[i] = label


@jit(IN_ORDER)
def kmeans_plus_plus(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    weights: FloatArray,
    coins: FloatArray,
    n_earlier: int,
    labels: IndexArray,
    distances: FloatArray,
) -> IndexArray:  # pragma: no cover - runs compiled
    """Return the rows chosen, `coins` being one uniform number for each.

    `distances` are those to the centers that are known; without any they start infinite.
    """
    n = points.shape[0]
    rows = np.empty(coins.shape[0], np.int64)
    for c in range(coins.shape[0]):
        fresh = n_earlier + c == 0
        total = 0.0
        for i in range(n):
            total += weights[i] if fresh else weights[i] * distances[i]
        if total == 0.0:  # every row is a center already
            return rows[:c].copy()
        running, chosen = 0.0, -1
        for i in range(n):
            share = weights[i] if fresh else weights[i] * distances[i]
            running += share
            if share > 0.0:
                chosen = i
                if running > coins[c] * total:
                    break
        rows[c] = chosen
        _approach(points, chosen, n_earlier + c, labels, distances)
    return rows


@jit(IN_ORDER)
def cell_means(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    shift: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Add up by cell the weights of rows, and their weighted gaps to the center."""
    n, d = points.shape
    for i in range(n):
        c = labels[i]
        mass[c] += weights[i]
        for j in range(d):
            shift[c, j] += weights[i] * (points[i, j] - centers[c, j])


@jit(ROW_SUMS)
def own_distances(
    points: AnyArray, labels: IndexArray, centers: FloatArray, distances: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Fill `distances` with those of rows to the centers of their own cells."""
    n, d = points.shape
    for i in range(n):
        c = labels[i]
        total = 0.0
        for j in range(d):
            gap = points[i, j] - centers[c, j]
            total += gap * gap
        distances[i] = total
