"""The bisection of weighted rows, compiled by numba when it is first called."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import IN_ORDER, ROW_SUMS, jit, part
from daskcoreset.core.rowwise_numba import WHOLE_UNIT
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Draws of a range up to which its rows stay as they are: to cut one draw and a little more changed
# no error, and is a tenth of the time.
_ONE_DRAW = 1.3

# Rows of a range up to which all of them decide its axis. Of more a sample does: with four times
# as many errors were the same.
_MAX_ROWS = 128
_SAMPLE = 64

# Rows and draws on each side of the mean, about, where a cut is looked for first.
_NEAR_ROWS = 10.0
_NEAR_DRAWS = 2.0

_GOLDEN_RATIO = 0.6180339887498949


@part(IN_ORDER)
def _fill_sample(rows: IndexArray, sample: IndexArray) -> None:
    """Fill in rows at multiples of the golden ratio, which no period of the rows meets."""
    for i in range(sample.shape[0]):
        turns = 0.5 + i * _GOLDEN_RATIO
        sample[i] = rows[int((turns - np.floor(turns)) * rows.shape[0])]


@part(IN_ORDER)
def _fill_means(
    points: AnyArray, mass: FloatArray, rows: IndexArray, mean: FloatArray, square: FloatArray
) -> float:
    """Fill in sums of gaps from the first row, and of their squares; return the mass.

    Four rows at once, so that sums are loaded and stored once for these.
    """
    n, d, first, total = rows.shape[0], points.shape[1], rows[0], 0.0
    for j in range(d):
        mean[j] = square[j] = 0.0
    for i in range(0, n - 3, 4):
        a, b, c, e = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        ua, ub, uc, ue = mass[a], mass[b], mass[c], mass[e]
        total += ua + ub + uc + ue
        for j in range(d):
            x = np.float64(points[first, j])
            ga, gb = points[a, j] - x, points[b, j] - x
            gc, ge = points[c, j] - x, points[e, j] - x
            mean[j] += ua * ga + ub * gb + uc * gc + ue * ge
            square[j] += ua * ga * ga + ub * gb * gb + uc * gc * gc + ue * ge * ge
    for i in range(n - n % 4, n):
        row = rows[i]
        u = mass[row]
        total += u
        for j in range(d):
            gap = points[row, j] - np.float64(points[first, j])
            mean[j] += u * gap
            square[j] += u * gap * gap
    return total


@part(IN_ORDER)
def _fill_covariances(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    rows: IndexArray,
    mean: FloatArray,
    widest: int,
    axis: FloatArray,
) -> None:
    """Fill `axis` with the covariances of columns with the widest one, the longest of length 1."""
    n, d, middle = rows.shape[0], points.shape[1], mean[widest]
    for j in range(d):
        axis[j] = 0.0
    for i in range(0, n - 3, 4):
        a, b, c, e = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        ua, ub = mass[a] * (points[a, widest] - middle), mass[b] * (points[b, widest] - middle)
        uc, ue = mass[c] * (points[c, widest] - middle), mass[e] * (points[e, widest] - middle)
        for j in range(d):
            x = mean[j]
            axis[j] += ua * (points[a, j] - x) + ub * (points[b, j] - x)
            axis[j] += uc * (points[c, j] - x) + ue * (points[e, j] - x)
    for i in range(n - n % 4, n):
        row = rows[i]
        along = mass[row] * (points[row, widest] - middle)
        for j in range(d):
            axis[j] += along * (points[row, j] - mean[j])
    largest = 0.0
    for j in range(d):
        largest = max(largest, abs(axis[j]))
    for j in range(d):
        axis[j] *= 1.0 / largest if largest > 0.0 else 0.0


@part(IN_ORDER)
def _fill_axis(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    rows: IndexArray,
    mean: FloatArray,
    square: FloatArray,
    axis: FloatArray,
) -> bool:
    """Fill `mean` and `axis` of some rows; return whether they vary."""
    total = _fill_means(points, mass, rows, mean, square)
    share, widest, most = 1.0 / total if total > 0.0 else 0.0, 0, 0.0
    for j in range(mean.shape[0]):
        mean[j] *= share
        spread = square[j] * share - mean[j] * mean[j]
        if spread > most and spread > 1e-12 * square[j] * share:  # else nothing but rounding
            widest, most = j, spread
        mean[j] += points[rows[0], j]
    _fill_covariances(points, mass, rows, mean, widest, axis)
    return most > 0.0


@part(ROW_SUMS)
def _along(points: AnyArray, row: int, mean: FloatArray, axis: FloatArray) -> float:
    """Return where a row lies along the axis."""
    total = 0.0
    for j in range(axis.shape[0]):
        total += (points[row, j] - mean[j]) * axis[j]
    return total


@part(IN_ORDER)
def _cut_at(  # noqa: PLR0917 - numba takes arguments by position
    values: FloatArray, weights: FloatArray, count: int, before: float, cut: float, target: float
) -> float:
    """Return the value up to which the mass is nearest to a target; moves values and weights.

    `before` is the mass up to `cut`, below all values; of these the largest is no cut from `count`
    on. A selection by pivots: what lies beyond one is not looked at again.
    """
    low, high = 0, values.shape[0]
    smallest_gap = target - before if before > 0.0 else np.inf
    while low < high:
        pivot, near, mass = values[(low + high) // 2], low, 0.0
        for i in range(low, high):
            if values[i] <= pivot:
                values[i], values[near] = values[near], values[i]
                weights[i], weights[near] = weights[near], weights[i]
                mass += weights[near]
                near += 1
        gap = abs(before + mass - target)
        if near < count and gap < smallest_gap:
            cut, smallest_gap = pivot, gap
        if before + mass < target:
            low, before = near, before + mass
            continue
        high = low
        for i in range(low, near):
            if values[i] < pivot:
                values[i], values[high] = values[high], values[i]
                weights[i], weights[high] = weights[high], weights[i]
                high += 1
    return cut


@part(IN_ORDER)
def _part(
    rows: IndexArray, value: FloatArray, cut: float, weight: FloatArray, spare: IndexArray
) -> tuple[int, float]:
    """Move the rows up to the cut to the front; return how many they are, and what they weigh."""
    near, before = 0, 0.0
    for i in range(rows.shape[0]):
        row, is_near = rows[i], value[i] <= cut
        rows[near] = spare[i - near] = row  # both, without a branch
        near += is_near
        before += weight[i] * is_near
    for i in range(near, rows.shape[0]):
        rows[i] = spare[i - near]
    return near, before


@part(ROW_SUMS)
def _below_mean(value: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return what the rows up to the mean weigh, and the deviation of all."""
    before, squares = 0.0, 0.0
    for i in range(value.shape[0]):
        before += weight[i] if value[i] <= 0.0 else 0.0
        squares += value[i] * value[i]
    return before, np.sqrt(squares / value.shape[0])


@part(IN_ORDER)
def _fill_near(
    value: FloatArray, weight: FloatArray, width: float, values: FloatArray, weights: FloatArray
) -> tuple[int, float, float]:
    """Fill in what is near the mean; return how many they are, their mass, and that before."""
    free, mass, before = 0, 0.0, 0.0
    for i in range(value.shape[0]):
        v, u = value[i], weight[i]
        is_near = abs(v) <= width
        values[free], weights[free] = v, u  # without a branch
        free += is_near
        mass += u * is_near
        before += u * (v < -width)
    return free, mass, before


@part(IN_ORDER)
def _halve(  # noqa: PLR0917 - numba takes arguments by position
    rows: IndexArray,
    value: FloatArray,
    weight: FloatArray,
    total: float,
    placed: float,
    max_aligned: float,
    values: FloatArray,
    weights: FloatArray,
    spare: IndexArray,
) -> tuple[int, float]:
    """Part rows at the mean, or beside it, so that the mass placed before is a whole number."""
    cut = 0.0
    if total <= max_aligned:
        before, width = _below_mean(value, weight)
        target = np.floor(placed + before + 0.5)
        if placed + WHOLE_UNIT < target < placed + total - WHOLE_UNIT:
            target -= placed
            # Where some rows and a draw or so are on each side, of a Gaussian.
            width *= _NEAR_ROWS / rows.shape[0] + _NEAR_DRAWS / total
            count, mass, before = _fill_near(value, weight, width, values, weights)
            if not before < target < before + mass:
                width = np.inf
                count, mass, before = _fill_near(value, weight, width, values, weights)
            some, n = values[:count], rows.shape[0]
            cut = _cut_at(some, weights[:count], n, before, -width, target)
    near, before = _part(rows, value, cut, weight, spare)
    if not 0 < near < rows.shape[0]:  # rounding may put the mean outside
        near, before = _part(rows, value, value.min(), weight, spare)
    return near, before


@part(IN_ORDER)
def _certain_first(mass: FloatArray, order: IndexArray) -> tuple[int, float]:
    """Fill in the rows, those that are certain first; return how many, and the mass of others."""
    certain, others = 0, 0.0
    for i in range(order.shape[0]):
        if mass[i] >= 1.0:
            order[certain] = i
            certain += 1
    place = certain
    for i in range(order.shape[0]):
        if not mass[i] >= 1.0:
            order[place] = i
            others += mass[i]
            place += 1
    return certain, others


@part(ROW_SUMS)
def _project(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    rows: IndexArray,
    mean: FloatArray,
    axis: FloatArray,
    last: FloatArray,
    value: FloatArray,
    weight: FloatArray,
) -> None:
    """Fill in where rows lie along the axis, those nearer to the rows placed last first."""
    toward = 0.0
    for j in range(axis.shape[0]):
        toward += axis[j] * (last[j] - mean[j])
    sign = -1.0 if toward > 0.0 else 1.0
    n = rows.shape[0]
    for i in range(0, n - 3, 4):
        a, b, c, e = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        ta, tb, tc, te = 0.0, 0.0, 0.0, 0.0
        for j in range(axis.shape[0]):
            m, x = mean[j], axis[j]
            ta += (points[a, j] - m) * x
            tb += (points[b, j] - m) * x
            tc += (points[c, j] - m) * x
            te += (points[e, j] - m) * x
        value[i], value[i + 1] = sign * ta, sign * tb
        value[i + 2], value[i + 3] = sign * tc, sign * te
    for i in range(n - n % 4, n):
        value[i] = sign * _along(points, rows[i], mean, axis)
    for i in range(n):
        weight[i] = mass[rows[i]]


@jit(IN_ORDER)
def bisection_order(points: AnyArray, mass: FloatArray, max_aligned: float) -> IndexArray:
    """Return the order of the rows; see `daskcoreset.core.ordering`."""
    n, d = points.shape
    order, spare, sample = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(_SAMPLE, np.int64)
    value, weight, values, weights = np.empty(n), np.empty(n), np.empty(n + 1), np.empty(n + 1)
    mean, square, axis, last = np.empty(d), np.empty(d), np.empty(d), np.zeros(d)
    # Depth first, so that leaves come in their final order; ranges on the stack are disjoint.
    starts, stops, totals = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1)
    certain, others = _certain_first(mass, order)
    starts[0], stops[0], totals[0] = certain, n, others
    top, placed = int(certain < n), 0.0
    while top > 0:
        top -= 1
        start, stop, total = starts[top], stops[top], totals[top]
        rows = order[start:stop]
        count, near, before, varies = stop - start, 0, 0.0, False
        if count > 1 and total > _ONE_DRAW:
            if count > _MAX_ROWS:
                _fill_sample(rows, sample)
                varies = _fill_axis(points, mass, sample, mean, square, axis)
            if not varies:
                varies = _fill_axis(points, mass, rows, mean, square, axis)
        if varies:
            _project(points, mass, rows, mean, axis, last, value, weight)
            near, before = _halve(
                rows, value[:count], weight[:count], total, placed, max_aligned, values, weights,
                spare,
            )  # fmt: skip
        if 0 < near < count:
            starts[top], stops[top], totals[top] = start + near, stop, total - before
            starts[top + 1], stops[top + 1], totals[top + 1] = start, start + near, before
            top += 2
        else:  # one row, equal rows, or those of one draw, in any order
            first = rows[0]
            for j in range(d):
                last[j] = points[first, j]
            for i in range(count):
                placed += mass[rows[i]]
    return order
