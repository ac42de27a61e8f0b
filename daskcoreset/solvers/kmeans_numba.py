"""The loops of k-means, compiled by numba when they are first called."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.rowwise_numba import IN_ORDER, ROW_SUMS, four_of, jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Rows beside one another in `nearest_center`, and the length of a column of their tile: no power of
# two, so that columns share no cache set.
_LANES = 128
_COLUMN = _LANES + 16


@jit(IN_ORDER)
def nearest_center(
    points: AnyArray,
    centers: AnyArray,
    first: int,
    labels: IndexArray,
    distances: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Assign rows to `centers`, numbered from `first`, where these are nearer.

    In the dtype of `centers`. Rows lie beside one another, so that a center meets many at once.
    Squares are added column by column: the bits of a distance depend on its row and center alone.
    """
    n, d = points.shape
    # The compiler knows the step of what is reshaped, and stores columns in three quarters of the
    # time.
    tile = np.empty(d * _COLUMN, centers.dtype).reshape(d, _COLUMN)
    totals = np.empty((4, _LANES), centers.dtype)
    smallest, label = np.empty(_LANES, centers.dtype), np.empty(_LANES, np.int32)
    for start in range(0, n, _LANES):
        rows = min(_LANES, n - start)
        for i in range(rows):
            for j in range(d):
                tile[j, i] = points[start + i, j]
            smallest[i] = distances[start + i]
        label[:] = -1
        _meet_centers(tile, centers, totals, smallest, label)
        for i in range(rows):
            if label[i] >= 0:
                labels[start + i] = first + label[i]
                distances[start + i] = smallest[i]


@jit(IN_ORDER)
def _meet_centers(
    tile: AnyArray, centers: AnyArray, totals: AnyArray, smallest: AnyArray, label: AnyArray
) -> None:  # pragma: no cover - runs compiled
    """Let four centers at a time meet all rows of a tile, the last one again where they are fewer.

    Columns of the tile are then loaded once for four centers.
    """
    d, last = tile.shape[0], centers.shape[0] - 1
    total, total_1, total_2, total_3 = totals[0], totals[1], totals[2], totals[3]
    for c in range(0, last + 1, 4):
        c_1, c_2, c_3 = min(c + 1, last), min(c + 2, last), min(c + 3, last)
        totals[:] = 0.0
        for j in range(0, d - 3, 4):
            center, center_1 = four_of(centers, c, j), four_of(centers, c_1, j)
            center_2, center_3 = four_of(centers, c_2, j), four_of(centers, c_3, j)
            for i in range(_LANES):
                row = tile[j, i], tile[j + 1, i], tile[j + 2, i], tile[j + 3, i]
                total[i] = _add_squares(total[i], row, center)
                total_1[i] = _add_squares(total_1[i], row, center_1)
                total_2[i] = _add_squares(total_2[i], row, center_2)
                total_3[i] = _add_squares(total_3[i], row, center_3)
        for j in range(d - d % 4, d):
            x, x_1 = centers[c, j], centers[c_1, j]
            x_2, x_3 = centers[c_2, j], centers[c_3, j]
            for i in range(_LANES):
                total[i] += (tile[j, i] - x) ** 2
                total_1[i] += (tile[j, i] - x_1) ** 2
                total_2[i] += (tile[j, i] - x_2) ** 2
                total_3[i] += (tile[j, i] - x_3) ** 2
        for i in range(_LANES):
            # The one met again is not nearer than before.
            best = _nearer(total[i], c, smallest[i], label[i])
            best = _nearer(total_1[i], c + 1, *best)
            best = _nearer(total_2[i], c + 2, *best)
            smallest[i], label[i] = _nearer(total_3[i], c + 3, *best)


@jit(IN_ORDER)
def _add_squares(
    total: float, row: tuple[float, float, float, float], center: tuple[float, float, float, float]
) -> float:
    """Add the squares of the gaps between four columns of a row and a center, one by one."""
    gap = row[0] - center[0]
    total += gap * gap
    gap = row[1] - center[1]
    total += gap * gap
    gap = row[2] - center[2]
    total += gap * gap
    gap = row[3] - center[3]
    return total + gap * gap


@jit(IN_ORDER)
def _nearer(total: float, center: int, smallest: float, label: Any) -> tuple[float, Any]:
    """Return the distance and the number of the nearer of two centers, the earlier one if equal."""
    return (total, np.int32(center)) if total < smallest else (smallest, label)


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


@jit(ROW_SUMS)
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


@jit(IN_ORDER)
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
            centers[count] = centers[c] + shift[c] / mass[c]
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
    labels, distances = np.zeros(n, np.int64), np.full(n, np.inf)
    all_centers, counts = np.empty((coins.shape[0], d)), np.empty(starts.shape[0] - 1, np.int64)
    total = 0
    for part in range(counts.shape[0]):
        first, stop = starts[part], starts[part + 1]
        rows, u = points[first:stop], weights[first:stop]
        own, gaps = labels[first:stop], distances[first:stop]
        some = coins[coin_starts[part] : coin_starts[part + 1]]
        seeds = kmeans_plus_plus(rows, u, some, 0, own, gaps)
        k = seeds.shape[0]
        centers = all_centers[total : total + k]
        cost = 0.0
        for c in range(k):
            for j in range(d):
                centers[c, j] = rows[seeds[c], j]
        for i in range(stop - first):
            cost += u[i] * gaps[i]
        if k < stop - first and cost > 0.0:  # else every row is its own center
            for _ in range(n_steps):
                k = _moved(rows, u, own, centers[:k])
                if stop - first < _FEW_ROWS:
                    _nearest_of_few(rows, centers[:k], own)
                else:
                    gaps[:] = np.inf
                    nearest_center(rows, centers[:k], 0, own, gaps)
        counts[part] = k
        total += k
    return labels, all_centers[:total].copy(), counts
