"""The loops of k-means, compiled by numba when they are first called."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import IN_ORDER, ROW_SUMS, jit, part
from daskcoreset.core.lanes_numba import CENTERS, lanes, lay_out, meet_centers
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Rows that are laid out at once: few, so that they are in the nearest cache.
_ROWS = 64


@jit(IN_ORDER)
def nearest_center(
    points: AnyArray,
    centers: AnyArray,
    first: int,
    labels: IndexArray,
    distances: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Assign rows to `centers`, numbered from `first`, where these are nearer.

    In the dtype of `centers`. Squares are added column by column: the bits of a distance depend on
    its row and center alone.
    """
    (n, d), width = points.shape, lanes(centers)
    tile = np.empty(_ROWS * d, centers.dtype)
    smallest, label = np.empty(_ROWS, centers.dtype), np.empty(_ROWS, np.int32)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        lay_out(points, start, stop, tile)
        for i in range(stop - start):
            smallest[i] = distances[start + i]
        label[:] = -1
        for row in range(0, stop - start, width):
            for c in range(0, centers.shape[0], CENTERS):
                meet_centers(tile, row * d, centers, c, smallest, label, row)
        for i in range(stop - start):
            if label[i] >= 0:
                labels[start + i] = first + label[i]
                distances[start + i] = smallest[i]


@part(ROW_SUMS)
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


@part(IN_ORDER)
def _share(weight: float, distance: float, fresh: bool) -> float:
    """Return what a row counts in a draw; a row without weight may lie at any distance."""
    return weight if fresh or not weight > 0.0 else weight * distance


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
            total += _share(weights[i], distances[i], fresh)
        if total == 0.0:  # every row is a center already
            return rows[:c]
        running, chosen = 0.0, -1
        for i in range(n):
            share = _share(weights[i], distances[i], fresh)
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
        c, weight = labels[i], weights[i]
        mass[c] += weight
        row, center, sums = points[i], centers[c], shift[c]
        for j in range(d):
            sums[j] += weight * (row[j] - center[j])


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


@jit(IN_ORDER)
def cell_costs(
    weights: FloatArray, labels: IndexArray, distances: FloatArray, costs: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Add up by cell the costs of rows; one without weight may lie at any distance."""
    for i in range(labels.shape[0]):
        if weights[i] > 0.0:
            costs[labels[i]] += weights[i] * distances[i]


# Rows of a part from which they lie beside one another: of fewer, most lanes would be empty.
_FEW_ROWS = 48


@part(ROW_SUMS)
def _nearest_of_few(
    points: AnyArray, centers: FloatArray, labels: IndexArray
) -> None:  # pragma: no cover - runs compiled
    """Fill `labels` with the nearest center of every row."""
    n, d = points.shape
    for i in range(n):
        smallest = np.inf
        for c in range(centers.shape[0]):
            total = 0.0
            for j in range(d):
                gap = points[i, j] - centers[c, j]
                total += gap * gap
            if total < smallest:
                smallest = total
                labels[i] = c


@part(IN_ORDER)
def _moved(
    points: AnyArray, weights: FloatArray, labels: IndexArray, centers: FloatArray
) -> int:  # pragma: no cover - runs compiled
    """Move centers to the means of their cells, those without any out; return their number."""
    k = centers.shape[0]
    mass, shift = np.zeros(k), np.zeros(centers.shape)
    cell_means(points, weights, labels, centers, mass, shift)
    count = 0
    for c in range(k):
        if mass[c] > 0.0:
            for j in range(centers.shape[1]):
                centers[count, j] = centers[c, j] + shift[c, j] / mass[c]
            count += 1
    return count


@jit(IN_ORDER)
def cells_of_parts(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    weights: FloatArray,
    starts: IndexArray,
    coins: FloatArray,
    coin_starts: IndexArray,
    n_steps: int,
) -> tuple[IndexArray, FloatArray, IndexArray]:  # pragma: no cover - runs compiled
    """Return cells of every part of the rows: k-means++, and steps of Lloyd.

    Parts are ranges of rows between `starts`, with seeds by the coins between `coin_starts`.

    Returns
    -------
    labels : ndarray of shape (n,), int64
        Cell of every row among those of its part.
    centers : ndarray of shape (k, d), float64
        Where those of the parts are about, one part after another.
    counts : ndarray, int64
        Cells of every part.
    """
    n, d = points.shape
    labels, distances = np.zeros(n, np.int64), np.empty(n)
    distances[:] = np.inf
    no_cell = np.int64(0)  # no constant, for which loops would be compiled once more
    all_centers, counts = np.empty((coins.shape[0], d)), np.empty(starts.shape[0] - 1, np.int64)
    total = 0
    for which in range(counts.shape[0]):
        first, stop = starts[which], starts[which + 1]
        rows, u = points[first:stop], weights[first:stop]
        own, gaps = labels[first:stop], distances[first:stop]
        some = coins[coin_starts[which] : coin_starts[which + 1]]
        seeds = kmeans_plus_plus(rows, u, some, no_cell, own, gaps)
        k = seeds.shape[0]
        centers = all_centers[total : total + k]
        cost = 0.0
        for c in range(k):
            for j in range(d):
                centers[c, j] = rows[seeds[c], j]
        for i in range(stop - first):
            cost += _share(u[i], gaps[i], False)
        if k < stop - first and cost > 0.0:  # else every row is its own center
            for _ in range(n_steps):
                k = _moved(rows, u, own, centers[:k])
                if stop - first < _FEW_ROWS:
                    _nearest_of_few(rows, centers[:k], own)
                else:
                    gaps[:] = np.inf
                    nearest_center(rows, centers[:k], no_cell, own, gaps)
        counts[which] = k
        total += k
    return labels, all_centers[:total], counts
