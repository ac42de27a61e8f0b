"""Loops over the rows of a block, compiled by numba when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = [
    "IN_ORDER",
    "ROW_SUMS",
    "bisection_order",
    "cell_means",
    "column_moments",
    "first_beyond",
    "inner_products",
    "jit",
    "kmeans_plus_plus",
    "nearest_center",
    "own_distances",
    "squared_distances",
    "walk",
]


# NaN and infinity keep their meaning in both.
ROW_SUMS = {"reassoc", "contract", "nsz"}  # the sum along a row may be vectorised

IN_ORDER = {"contract"}  # sums along columns are vectorised as they stand

WHOLE_UNIT = 1e-7

"""Rounding of a sum of inclusion probabilities: so near to a whole number it is one."""

_LANES = 128

"""Rows beside one another in `nearest_center`."""


def jit(fastmath: set[str]) -> Callable[..., Any]:
    """Compile loops when they are first called; the one way of doing so in the package.

    Parameters
    ----------
    fastmath : set of str
        `ROW_SUMS` or `IN_ORDER`.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder for the cache can be written
            return numba.njit(**options)(function)

    return decorate


@jit(IN_ORDER)
def _first_weighted(
    weights: FloatArray, start: int, stop: int
) -> int:  # pragma: no cover - runs compiled
    """Return the first row with a weight: without one it may hold anything, such as 1e20."""
    for i in range(start, stop):
        if weights[i] > 0.0:
            return i
    return start


@jit(IN_ORDER)
def column_moments(
    points: AnyArray, weights: FloatArray, tile_rows: int, mean: FloatArray, m2: FloatArray
) -> float:  # pragma: no cover - runs compiled
    """Fill `mean` and `m2`, zeros at first, and return the total weight."""
    n, d = points.shape
    total = 0.0
    center = np.empty(d)
    shift = np.empty(d)
    spread = np.empty(d)
    for start in range(0, n, tile_rows):
        stop = min(n, start + tile_rows)
        weight = 0.0
        first = _first_weighted(weights, start, stop)
        for j in range(d):
            center[j] = points[first, j]
            shift[j] = 0.0
            spread[j] = 0.0
        for i in range(start, stop):
            u = weights[i]
            weight += u
            for j in range(d):
                shift[j] += u * (points[i, j] - center[j])
        if weight == 0.0:
            continue
        for j in range(d):
            center[j] += shift[j] / weight
        for i in range(start, stop):
            u = weights[i]
            for j in range(d):
                gap = points[i, j] - center[j]
                spread[j] += u * gap * gap
        share = weight / (total + weight)
        for j in range(d):
            delta = center[j] - mean[j]
            mean[j] += delta * share
            m2[j] += spread[j] + delta * delta * total * share
        total += weight
    return total


@jit(ROW_SUMS)
def squared_distances(
    points: AnyArray, center: FloatArray, out: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Fill `out` with squared distances to `center`."""
    n, d = points.shape
    for i in range(n):
        total = 0.0
        for j in range(d):
            gap = points[i, j] - center[j]
            total += gap * gap
        out[i] = total


@jit(IN_ORDER)
def first_beyond(values: AnyArray, most: Any) -> int:  # pragma: no cover - runs compiled
    """Return where the first value is that is NaN or longer than `most`, or -1."""
    for start in range(0, values.shape[0], 4096):
        stop = min(start + 4096, values.shape[0])
        beyond = 0
        for i in range(start, stop):
            beyond += not (abs(values[i]) <= most)
        if beyond > 0:
            for i in range(start, stop):
                if not (abs(values[i]) <= most):
                    return i
    return -1


@jit(IN_ORDER)
def walk(
    inclusion: FloatArray, uniforms: FloatArray
) -> IndexArray:  # pragma: no cover - runs compiled
    """Select one row in every unit of the cumulative inclusion; see `kernels.systematic_walk`."""
    rows = np.empty(uniforms.shape[0] + 1, np.int64)
    count, before = 0, 0  # rows taken: in all, and before the current unit
    position = 0.0  # within the current unit
    target = uniforms[0]  # where the row of this unit lies
    taken, unit = False, 0
    last = -1
    for i in range(inclusion.shape[0]):
        share = inclusion[i]
        if not share > 0.0:
            continue
        position += share
        if not taken and (position > target or position >= 1.0):
            rows[count] = i
            count += 1
            taken = True
        last = i
        if position < 1.0:
            continue
        # The row crosses into the next unit, with the part `position` of its share.
        position -= 1.0
        unit += 1
        if unit == uniforms.shape[0]:  # rounding: the sum was a whole number
            return rows[:count].copy()
        crossed = taken and rows[count - 1] == i
        before, taken = count, False
        uniform = uniforms[unit]
        if not crossed:
            # Given that it was not taken, its chance in this unit makes `share` of both.
            chance = position / (1.0 - share + position)
            if uniform < chance:
                rows[count] = i
                count += 1
                taken = True
            else:
                uniform = (uniform - chance) / (1.0 - chance)
        target = position + uniform * (1.0 - position)
    if position < WHOLE_UNIT:  # nothing but rounding lies in the last unit
        count = before
    elif position > 1.0 - WHOLE_UNIT and not taken and (count == 0 or rows[count - 1] != last):
        rows[count] = last
        count += 1
    return rows[:count].copy()


@jit(IN_ORDER)
def _principal_axis(  # noqa: C901 - one loop a column statistic; split, it would be no clearer
    points: AnyArray,
    mass: FloatArray,
    rows: IndexArray,
    mean: FloatArray,
    axis: FloatArray,
) -> bool:  # pragma: no cover - runs compiled
    """Fill `mean` and `axis`, the covariances with the widest column; False if none varies."""
    d = points.shape[1]
    first = rows[0]
    total = 0.0
    for j in range(d):
        mean[j] = 0.0
        axis[j] = 0.0
    for i in range(rows.shape[0]):
        u = mass[rows[i]]
        total += u
        for j in range(d):
            gap = np.float64(points[rows[i], j]) - points[first, j]
            mean[j] += u * gap
            axis[j] += u * gap * gap
    widest, spread = -1, 0.0
    for j in range(d):
        shift = mean[j] / total
        variance = axis[j] / total - shift * shift
        if variance > spread and variance > 1e-12 * axis[j] / total:  # more than rounding
            widest, spread = j, variance
        mean[j] = shift + points[first, j]
        axis[j] = 0.0
    if widest < 0:
        return False
    for i in range(rows.shape[0]):
        u = mass[rows[i]] * (points[rows[i], widest] - mean[widest])
        for j in range(d):
            axis[j] += u * (points[rows[i], j] - mean[j])
    largest = 0.0
    for j in range(d):
        largest = max(largest, abs(axis[j]))
    for j in range(d):
        axis[j] /= largest
    return True


@jit(IN_ORDER)
def _cut_between_draws(  # noqa: PLR0917 - numba takes arguments by position
    mass: FloatArray,
    placed: float,
    rows: IndexArray,
    value: FloatArray,
    cut: float,
    most_aligned: float,
) -> float:  # pragma: no cover - runs compiled
    """Move a cut to where the mass before it, `placed` and on, is nearest to a whole number."""
    before = total = 0.0
    for i in range(rows.shape[0]):
        total += mass[rows[i]]
        if value[i] <= cut:
            before += mass[rows[i]]
    target = np.floor(placed + before + 0.5)
    # Of so many draws few are cut in two; and below one draw there is no place for a cut.
    if total > most_aligned or not placed + WHOLE_UNIT < target < placed + total - WHOLE_UNIT:
        return cut
    by_value = np.argsort(value)
    least, running = np.inf, placed
    for i in range(rows.shape[0] - 1):
        running += mass[rows[by_value[i]]]
        gap = abs(running - target)
        if gap < least and value[by_value[i]] < value[by_value[i + 1]]:
            least, cut = gap, value[by_value[i]]
    return cut


@jit(ROW_SUMS)
def _split(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    placed: float,
    rows: IndexArray,
    mean: FloatArray,
    axis: FloatArray,
    value: FloatArray,
    spare: IndexArray,
    most_aligned: float,
) -> int:  # pragma: no cover - runs compiled
    """Move the rows on the near side of the cut to the front; return how many they are."""
    d = points.shape[1]
    low, high = np.inf, -np.inf
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(d):
            total += axis[j] * (points[rows[i], j] - mean[j])
        value[i] = total
        low, high = min(low, total), max(high, total)
    cut = 0.0 if low <= 0.0 < high else low  # rounding may put the mean outside
    cut = _cut_between_draws(mass, placed, rows, value[: rows.shape[0]], cut, most_aligned)
    near = far = 0
    for i in range(rows.shape[0]):
        if value[i] <= cut:
            rows[near] = rows[i]
            near += 1
        else:
            spare[far] = rows[i]
            far += 1
    rows[near:] = spare[:far]
    return near


@jit(IN_ORDER)
def _ties(
    mass: FloatArray, rows: IndexArray, near: int, coin_mass: float
) -> bool:  # pragma: no cover - runs compiled
    """Whether the halves weigh the same, and less than `coin_mass` together."""
    first = second = 0.0
    for i in range(near):
        first += mass[rows[i]]
    for i in range(near, rows.shape[0]):
        second += mass[rows[i]]
        if first + second >= coin_mass:
            return False
    return abs(first - second) <= 1e-9 * (first + second)


@jit(IN_ORDER)
def bisection_order(  # noqa: C901 - one loop; split, it would be no clearer
    points: AnyArray, mass: FloatArray, coin_mass: float, most_aligned: float
) -> IndexArray:  # pragma: no cover - runs compiled
    """Return the order of the rows; see `daskcoreset.core.ordering`."""
    n, d = points.shape
    order = np.arange(n)
    spare = np.empty(n, np.int64)
    value, mean, axis, last = np.empty(n), np.empty(d), np.empty(d), np.zeros(d)
    # Depth first, so that leaves come in their final order; ranges on the stack are disjoint.
    starts, stops = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    starts[0], stops[0], top = 0, n, 1
    state, placed = np.uint64(0x9E3779B97F4A7C15), 0.0
    while top > 0:
        top -= 1
        start, stop = starts[top], stops[top]
        rows = order[start:stop]
        near = 0
        if stop - start > 1 and _principal_axis(points, mass, rows, mean, axis):
            toward = 0.0
            for j in range(d):
                toward += axis[j] * (last[j] - mean[j])
            if toward > 0.0:  # the half nearer to the rows placed last comes first
                for j in range(d):
                    axis[j] = -axis[j]
            near = _split(points, mass, placed, rows, mean, axis, value, spare, most_aligned)
            if _ties(mass, rows, near, coin_mass):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                if state >> np.uint64(63):
                    spare[:near] = rows[:near]
                    rows[: rows.shape[0] - near] = rows[near:].copy()
                    near = rows.shape[0] - near
                    rows[near:] = spare[: rows.shape[0] - near]
        if 0 < near < stop - start:
            starts[top], stops[top] = start + near, stop
            starts[top + 1], stops[top + 1] = start, start + near
            top += 2
        else:  # one row, or equal rows, in any order
            for j in range(d):
                last[j] = points[rows[0], j]
            for i in range(rows.shape[0]):
                placed += mass[rows[i]]
    return order


@jit(IN_ORDER)
def nearest_center(  # noqa: C901 - one loop a step; split, it would be no clearer
    points: AnyArray,
    centers: AnyArray,
    first: int,
    labels: IndexArray,
    distances: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Let rows nearer to one of `centers` than `distances` change over; numbered from `first`.

    In the dtype of `centers`. Rows lie beside one another, so that a center meets many at once.
    """
    n, d = points.shape
    tile = np.empty((d, _LANES + 16), centers.dtype)  # no power of two: columns share no cache set
    total, least = np.empty(_LANES, centers.dtype), np.empty(_LANES, centers.dtype)
    label = np.empty(_LANES, np.int64)
    for start in range(0, n, _LANES):
        rows = min(_LANES, n - start)
        for i in range(rows):
            for j in range(d):
                tile[j, i] = points[start + i, j]
            least[i] = distances[start + i]
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
                if total[i] < least[i]:
                    least[i] = total[i]
                    label[i] = c
        for i in range(rows):
            if label[i] >= 0:
                labels[start + i] = first + label[i]
                distances[start + i] = least[i]


@jit(ROW_SUMS)
def _approach(
    points: AnyArray, row: int, label: int, labels: IndexArray, distances: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Let rows that are nearer to a new center change over to it."""
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
    known: int,
    labels: IndexArray,
    distances: FloatArray,
) -> IndexArray:  # pragma: no cover - runs compiled
    """Return the rows chosen, `coins` being one uniform number for each.

    `distances` are those to the centers that are known; without any they start infinite.
    """
    n = points.shape[0]
    rows = np.empty(coins.shape[0], np.int64)
    for c in range(coins.shape[0]):
        fresh = known + c == 0
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
        _approach(points, chosen, known + c, labels, distances)
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


@jit(ROW_SUMS)
def inner_products(
    points: AnyArray, vectors: FloatArray, out: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Fill `out` with the product of every row with every vector, in float64."""
    for i in range(points.shape[0]):
        for k in range(vectors.shape[0]):
            total = 0.0
            for j in range(points.shape[1]):
                total += points[i, j] * vectors[k, j]
            out[i, k] = total
