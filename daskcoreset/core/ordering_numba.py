"""The bisection of weighted rows, compiled by numba when it is first called."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.rowwise_numba import IN_ORDER, ROW_SUMS, WHOLE_UNIT, jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray


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
def _sink(heap: IndexArray, count: int, i: int, value: FloatArray, sign: float) -> None:
    """Let an entry of a heap of positions, the least `sign` times value on top, sink."""
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and sign * value[heap[child + 1]] < sign * value[heap[child]]:
            child += 1
        if sign * value[heap[i]] <= sign * value[heap[child]]:
            return
        heap[i], heap[child] = heap[child], heap[i]
        i = child


@jit(IN_ORDER)
def _moved_cut(  # noqa: PLR0917 - numba takes arguments by position
    mass: FloatArray,
    before: float,
    target: float,
    rows: IndexArray,
    value: FloatArray,
    cut: float,
    sign: float,
    heap: IndexArray,
) -> float:
    """Move a cut up (1) or down (-1) past values while that brings `before` nearer to `target`.

    Of cuts as near, the lowest. A heap, since few values are passed.
    """
    count = 0
    for i in range(rows.shape[0]):
        heap[count] = i
        count += (value[i] > cut) == (sign > 0.0)
    for i in range(count // 2 - 1, -1, -1):
        _sink(heap, count, i, value, sign)
    smallest_gap, moved = abs(before - target), cut
    while count > 0:
        passed = value[heap[0]]
        while count > 0 and value[heap[0]] == passed:
            before += sign * mass[rows[heap[0]]]
            count -= 1
            heap[0] = heap[count]
            _sink(heap, count, 0, value, sign)
        gap = abs(before - target)
        if count == 0 or gap > smallest_gap:
            break
        if sign < 0.0:
            smallest_gap, moved = gap, value[heap[0]]
        elif gap < smallest_gap:
            smallest_gap, moved = gap, passed
    return moved


@jit(IN_ORDER)
def _cut_between_draws(  # noqa: PLR0917 - numba takes arguments by position
    mass: FloatArray,
    total: float,
    placed: float,
    rows: IndexArray,
    value: FloatArray,
    cut: float,
    heap: IndexArray,
) -> float:
    """Move a cut to where the mass before it, `placed` and on, is nearest to a whole number."""
    after = placed + total - WHOLE_UNIT
    if not np.floor(placed + WHOLE_UNIT) + 1.0 < after:
        return cut  # below one draw there is no place for a cut
    before = 0.0
    for i in range(rows.shape[0]):
        if value[i] <= cut:
            before += mass[rows[i]]
    before += placed
    target = np.floor(before + 0.5)
    if not placed + WHOLE_UNIT < target < after:
        return cut
    moved = cut
    if before < target:
        moved = _moved_cut(mass, before, target, rows, value, cut, 1.0, heap)
    if moved == cut:
        moved = _moved_cut(mass, before, target, rows, value, cut, -1.0, heap)
    return moved


@jit(ROW_SUMS)
def _split(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    total: float,
    placed: float,
    rows: IndexArray,
    mean: FloatArray,
    axis: FloatArray,
    value: FloatArray,
    spare: IndexArray,
    max_aligned: float,
) -> int:
    """Move the rows on the near side of the cut to the front; return how many they are."""
    d = points.shape[1]
    low, high = np.inf, -np.inf
    for i in range(rows.shape[0]):
        along = 0.0
        for j in range(d):
            along += axis[j] * (points[rows[i], j] - mean[j])
        value[i] = along
        low, high = min(low, along), max(high, along)
    cut = 0.0 if low <= 0.0 < high else low  # rounding may put the mean outside
    if total <= max_aligned:  # of so many draws few are cut in two
        cut = _cut_between_draws(mass, total, placed, rows, value[: rows.shape[0]], cut, spare)
    near = far = 0
    for i in range(rows.shape[0]):
        row, is_near = rows[i], value[i] <= cut
        rows[near] = spare[far] = row  # both, without a branch
        near += is_near
        far += not is_near
    for i in range(far):
        rows[near + i] = spare[i]
    return near


@jit(IN_ORDER)
def _ties(mass: FloatArray, rows: IndexArray, near: int, coin_mass: float) -> bool:
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
def _turn(axis: FloatArray, mean: FloatArray, last: FloatArray) -> None:
    """Turn the axis so that the half nearer to the rows placed last comes first."""
    toward = 0.0
    for j in range(axis.shape[0]):
        toward += axis[j] * (last[j] - mean[j])
    if toward > 0.0:
        for j in range(axis.shape[0]):
            axis[j] *= -1.0


@jit(IN_ORDER)
def _exchange(rows: IndexArray, near: int, spare: IndexArray) -> Any:
    """Put the far rows before the `near` ones; return how many they are."""
    far = rows.shape[0] - near
    for i in range(near):
        spare[i] = rows[i]
    for i in range(far):
        rows[i] = rows[near + i]
    for i in range(near):
        rows[far + i] = spare[i]
    return far


@jit(IN_ORDER)
def bisection_order(
    points: AnyArray, mass: FloatArray, coin_mass: float, max_aligned: float
) -> IndexArray:
    """Return the order of the rows; see `daskcoreset.core.ordering`."""
    n, d = points.shape
    order = np.arange(n)
    spare = np.empty(n, np.int64)
    value, mean, axis, last = np.empty(n), np.empty(d), np.empty(d), np.zeros(d)
    variance = np.empty(d)
    # Depth first, so that leaves come in their final order; ranges on the stack are disjoint.
    starts, stops = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    starts[0], stops[0], top = 0, n, 1
    state, placed = np.uint64(0x9E3779B97F4A7C15), 0.0
    while top > 0:
        top -= 1
        start, stop = starts[top], stops[top]
        rows = order[start:stop]
        near = 0
        total = 0.0
        if stop - start > 1:
            total = _principal_axis(points, mass, rows, mean, axis, variance)
        if total > 0.0:
            _turn(axis, mean, last)
            near = _split(points, mass, total, placed, rows, mean, axis, value, spare, max_aligned)
            if total < 1.01 * coin_mass and _ties(mass, rows, near, coin_mass):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                if state >> np.uint64(63):
                    near = _exchange(rows, near, spare)
        if 0 < near < stop - start:
            starts[top], stops[top] = start + near, stop
            starts[top + 1], stops[top + 1] = start, start + near
            top += 2
        else:  # one row, or equal rows, in any order
            for j in range(d):
                last[j] = points[rows[0], j]
            for i in range(start, stop):
                placed += mass[order[i]]
    return order
