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
    """Assign rows to a new center if it is nearer."""
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
    """Return what a row counts in a draw. A row without weight may lie at any distance."""
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

    `distances` are those to the centers that are known. Without any they start infinite.
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
    """Fill `distances` with those of rows to the centers of their cells."""
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
    """Add up by cell the costs of rows. One without weight may lie at any distance."""
    for i in range(labels.shape[0]):
        if weights[i] > 0.0:
            costs[labels[i]] += weights[i] * distances[i]


# Part of what a row costs that a move has to gain: less is rounding.
_LEAST_GAIN = 1e-9


@jit(IN_ORDER)
def move_rows(  # noqa: PLR0917 - numba takes arguments by position
    points: FloatArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    counts: IndexArray,
) -> tuple[int, float]:  # pragma: no cover - runs compiled
    """Move rows to the cells where they cost least. Return how many moved, and the gain.

    Centers, masses and counts of rows follow every move.
    """
    (n, d), k = points.shape, centers.shape[0]
    columns = np.ascontiguousarray(centers.T)  # so that distances are formed beside one another
    squares, moved, gain = np.empty(k), 0, 0.0
    for i in range(n):
        own, weight = labels[i], weights[i]
        rest = mass[own] - weight
        # Of a row that outweighs the others of its cell they are what may move: no digit of `rest`
        # is certain.
        if counts[own] < 2 or rest <= 1e-6 * mass[own]:
            continue
        squares[:] = 0.0
        for j in range(d):
            x, column = points[i, j], columns[j]
            for c in range(k):
                squares[c] += (x - column[c]) ** 2
        saved = mass[own] / rest * weight * squares[own]
        squares[own] = np.inf
        least, to = saved * (1.0 - _LEAST_GAIN), -1
        for c in range(k):
            added = mass[c] / (mass[c] + weight) * weight * squares[c]
            if added < least:
                least, to = added, c
        if to < 0:
            continue
        mass[own] = rest
        mass[to] += weight
        counts[own] -= 1
        counts[to] += 1
        out, into = weight / rest, weight / mass[to]
        for j in range(d):
            columns[j, own] -= out * (points[i, j] - columns[j, own])
            columns[j, to] += into * (points[i, j] - columns[j, to])
        labels[i] = to
        moved += 1
        gain += saved - least
    centers[:] = columns.T
    return moved, gain
