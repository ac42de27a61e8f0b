"""The bisection of weighted rows, compiled by numba when it is first called."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.rowwise_numba import IN_ORDER, ROW_SUMS, WHOLE_UNIT, jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Values that are looked for at a time where a cut is moved.
_AT_A_TIME = 8


@jit(IN_ORDER)
def _divide_by_largest(axis: FloatArray) -> None:
    largest = 0.0
    for j in range(axis.shape[0]):
        largest = max(largest, abs(axis[j]))
    for j in range(axis.shape[0]):
        axis[j] /= largest


@jit(IN_ORDER)
def _principal_axis(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    rows: IndexArray,
    mean: FloatArray,
    axis: FloatArray,
    variance: FloatArray,
) -> float:
    """Fill `mean` and `axis`, the covariances with the widest column; return the mass of the rows.

    0 if no column varies. `variance` is scratch.
    """
    d = points.shape[1]
    first = rows[0]
    total = 0.0
    for j in range(d):
        mean[j] = axis[j] = 0.0
    for i in range(rows.shape[0]):
        row = rows[i]
        u = mass[row]
        total += u
        for j in range(d):
            gap = np.float64(points[row, j]) - points[first, j]
            mean[j] += u * gap
            axis[j] += u * gap * gap
    for j in range(d):
        shift = mean[j] / total
        variance[j] = axis[j] / total - shift * shift
        mean[j] = shift + points[first, j]
    widest, spread = -1, 0.0
    for j in range(d):
        if variance[j] > spread and variance[j] > 1e-12 * axis[j] / total:  # more than rounding
            widest, spread = j, variance[j]
        axis[j] = 0.0
    if widest < 0:
        return 0.0
    for i in range(rows.shape[0]):
        row = rows[i]
        u = mass[row] * (points[row, widest] - mean[widest])
        for j in range(d):
            axis[j] += u * (points[row, j] - mean[j])
    _divide_by_largest(axis)
    return total


@jit(IN_ORDER)
def _nearest_values(  # noqa: PLR0917 - numba takes arguments by position
    value: FloatArray,
    weight: FloatArray,
    beyond: float,
    sign: float,
    values: FloatArray,
    weights: FloatArray,
) -> int:
    """Fill in the least distinct `sign` times value above `beyond`, and what they weigh in all.

    Returns how many there are, up to the length of `values`.
    """
    count, limit = 0, np.inf
    for i in range(value.shape[0]):
        v = sign * value[i]
        if beyond < v <= limit:
            k = count
            while k > 0 and values[k - 1] > v:
                k -= 1
            if k > 0 and values[k - 1] == v:
                weights[k - 1] += weight[i]
                continue
            count = min(count + 1, values.shape[0])
            for j in range(count - 1, k, -1):
                values[j], weights[j] = values[j - 1], weights[j - 1]
            values[k], weights[k] = v, weight[i]
            if count == values.shape[0]:
                limit = values[count - 1]
    return count


@jit(IN_ORDER)
def _moved_cut(  # noqa: PLR0917 - numba takes arguments by position
    value: FloatArray,
    weight: FloatArray,
    before: float,
    target: float,
    cut: float,
    high: float,
    sign: float,
    values: FloatArray,
    weights: FloatArray,
) -> float:
    """Move a cut up (1) or down (-1) past values while that brings `before` nearer to `target`.

    Of cuts as near, the lowest. Few values are passed, and looked for a few at a time.
    """
    smallest_gap, moved = abs(before - target), cut
    # Downwards the rows at the cut itself are the first to be passed, to that at the next value.
    beyond = cut if sign > 0.0 else np.nextafter(-cut, -np.inf)
    is_first = True
    while True:
        count = _nearest_values(value, weight, beyond, sign, values, weights)
        for k in range(count):
            if sign > 0.0:
                if values[k] == high:  # some row must be beyond the cut
                    return moved
                before += weights[k]
            if sign > 0.0 or not is_first:
                gap = abs(before - target)
                if gap > smallest_gap:
                    return moved
                if gap < smallest_gap or sign < 0.0:
                    smallest_gap, moved = gap, sign * values[k]
            if sign < 0.0:
                before -= weights[k]
            is_first = False
        if count < values.shape[0]:
            return moved
        beyond = values[count - 1]


@jit(IN_ORDER)
def _cut_between_draws(  # noqa: PLR0917 - numba takes arguments by position
    value: FloatArray,
    weight: FloatArray,
    total: float,
    placed: float,
    cut: float,
    before: float,
    high: float,
    values: FloatArray,
    weights: FloatArray,
) -> float:
    """Move a cut to where the mass before it, `placed` and on, is nearest to a whole number."""
    after = placed + total - WHOLE_UNIT
    if not np.floor(placed + WHOLE_UNIT) + 1.0 < after:
        return cut  # below one draw there is no place for a cut
    before += placed
    target = np.floor(before + 0.5)
    if not placed + WHOLE_UNIT < target < after:
        return cut
    moved = cut
    if before < target:
        moved = _moved_cut(value, weight, before, target, cut, high, 1.0, values, weights)
    if moved == cut:
        moved = _moved_cut(value, weight, before, target, cut, high, -1.0, values, weights)
    return moved


@jit(ROW_SUMS)
def _project(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    rows: IndexArray,
    mean: FloatArray,
    axis: FloatArray,
    value: FloatArray,
    weight: FloatArray,
) -> tuple[float, float, float]:
    """Fill in where rows lie along the axis, and their masses.

    Returns the cut, what is below it, and where the last row lies.
    """
    d = points.shape[1]
    low, high, before = np.inf, -np.inf, 0.0
    for i in range(rows.shape[0]):
        row = rows[i]
        along = 0.0
        for j in range(d):
            along += axis[j] * (points[row, j] - mean[j])
        value[i], weight[i] = along, mass[row]
        before += weight[i] if along <= 0.0 else 0.0
        low, high = min(low, along), max(high, along)
    if low <= 0.0 < high:
        return 0.0, before, high
    before = 0.0  # rounding may put the mean outside
    for i in range(rows.shape[0]):
        before += weight[i] if value[i] <= low else 0.0
    return low, before, high


@jit(IN_ORDER)
def _part(
    rows: IndexArray, value: FloatArray, weight: FloatArray, cut: float, spare: IndexArray
) -> tuple[int, float]:
    """Move the rows up to the cut to the front; return how many they are, and what they weigh."""
    near = far = 0
    before = 0.0
    for i in range(rows.shape[0]):
        row, is_near = rows[i], value[i] <= cut
        rows[near] = spare[far] = row  # both, without a branch
        near += is_near
        far += not is_near
        before += weight[i] if is_near else 0.0
    for i in range(far):
        rows[near + i] = spare[i]
    return near, before


@jit(IN_ORDER)
def _turn(axis: FloatArray, mean: FloatArray, last: FloatArray) -> None:
    """Turn the axis so that the half nearer to the rows placed last comes first."""
    toward = 0.0
    for j in range(axis.shape[0]):
        toward += axis[j] * (last[j] - mean[j])
    if toward > 0.0:
        for j in range(axis.shape[0]):
            axis[j] *= -1.0


@jit(IN_ORDER)
def bisection_order(points: AnyArray, mass: FloatArray, max_aligned: float) -> IndexArray:
    """Return the order of the rows; see `daskcoreset.core.ordering`."""
    n, d = points.shape
    order = np.arange(n)
    spare = np.empty(n, np.int64)
    value, weight = np.empty(n), np.empty(n)
    mean, axis, last, variance = np.empty(d), np.empty(d), np.zeros(d), np.empty(d)
    found = np.empty(_AT_A_TIME), np.empty(_AT_A_TIME)
    # Depth first, so that leaves come in their final order; ranges on the stack are disjoint.
    starts, stops, totals = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1)
    starts[0], stops[0], totals[0], top = 0, n, mass.sum(), 1
    placed = 0.0
    while top > 0:
        top -= 1
        start, stop, total = starts[top], stops[top], totals[top]
        rows, count = order[start:stop], stop - start
        near, before = 0, 0.0
        if count > 1 and total > 1.0 + WHOLE_UNIT:
            total = _principal_axis(points, mass, rows, mean, axis, variance)
            if total > 0.0:
                _turn(axis, mean, last)
                v, u = value[:count], weight[:count]
                cut, before, high = _project(points, mass, rows, mean, axis, v, u)
                if total <= max_aligned:  # of so many draws few are cut in two
                    cut = _cut_between_draws(v, u, total, placed, cut, before, high, *found)
                near, before = _part(rows, v, u, cut, spare)
        if 0 < near < count:
            starts[top], stops[top], totals[top] = start + near, stop, total - before
            starts[top + 1], stops[top + 1], totals[top + 1] = start, start + near, before
            top += 2
        else:  # one row, equal rows, or those of one draw, in any order
            for j in range(d):
                last[j] = points[rows[0], j]
            for i in range(start, stop):
                placed += mass[order[i]]
    return order
