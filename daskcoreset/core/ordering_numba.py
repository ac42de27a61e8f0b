"""The bisection of weighted rows, compiled by numba when it is first called.

Functions that are called for every range have one way out each: numba counts references to the
arrays of the others, which takes as long as their work on few rows. Places in the innermost loops
are unsigned: of others numba looks each time whether they count from the end.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import IN_ORDER, ROW_SUMS, jit, part
from daskcoreset.core.lanes_numba import AT_ONCE, sum_products
from daskcoreset.core.linalg import read_only
from daskcoreset.core.rowwise_numba import WHOLE_UNIT
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Draws of a range up to which its rows stay as they are: to cut one draw and a little more changed
# no error, and is a tenth of the time.
_ONE_DRAW = 1.3

# Rows of a range up to which all of them are looked at for its mean and its axis; of more those of
# a sample are taken, and all rows are only projected. With four times as many errors were the same.
_MAX_GATHERED = 128
_SAMPLE = 64
_GOLDEN_RATIO = 0.6180339887498949

# Rows that are added to the sums of columns between a load of these and a store.
_AT_ONCE = 4

# Rows of a range up to which they are sorted along its axis.
_MAX_SORTED = 24

_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)

# Where a cut is looked for in larger ranges: within as many deviations of the mean as have so many
# rows of a Gaussian, and so many draws, on each side; then so many times as far, or as near.
_NEAR_ROWS = 4.0
_NEAR_DRAWS = 0.75
_WIDER = 3.0
_MAX_LOOKS = 6

# Rows that are sorted there at most, and how far apart they are compared (Ciura 2001), where there
# are so many times as many of them.
_MAX_NEAR = 1024
_STRIDES = (301, 132, 57, 23, 10, 4, 1)
_PER_STRIDE = 16


@part(IN_ORDER)
def _gather(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    order: IndexArray,
    start: int,
    count: int,
    gaps: FloatArray,
    weight: FloatArray,
    origin: FloatArray,
) -> int:
    """Fill in rows of a range, less its first one, and their masses. Return how many they are.

    All of few; of many a sample, at multiples of the golden ratio, which no period of the rows
    meets. The first one itself is in `origin`.
    """
    first = points[order[start]]
    is_sample = count > _MAX_GATHERED
    size = _SAMPLE if is_sample else count
    for j in range(points.shape[1]):
        origin[j] = first[j]
    for i in range(size):
        turns = 0.5 + i * _GOLDEN_RATIO
        place = int((turns - np.floor(turns)) * count) if is_sample else i
        row = np.uint64(order[np.uint64(start + place)])
        weight[i] = mass[row]
        for j in range(points.shape[1]):
            gaps[i, j] = points[row, j] - origin[j]
    return size


@part(IN_ORDER)
def _spread(
    gaps: FloatArray, weight: FloatArray, count: int, mean: FloatArray, variance: FloatArray
) -> None:
    """Fill `mean` and `variance` of every column. Zero where there is nothing but rounding."""
    d = gaps.shape[1]
    total = 0.0
    for j in range(d):
        mean[j] = variance[j] = 0.0
    several = count - count % _AT_ONCE
    for i in range(0, several, _AT_ONCE):
        for j in range(d):
            first, second = mean[j], variance[j]
            for k in range(_AT_ONCE):
                first += weight[i + k] * gaps[i + k, j]
                second += weight[i + k] * gaps[i + k, j] * gaps[i + k, j]
            mean[j], variance[j] = first, second
    for i in range(several, count):
        for j in range(d):
            mean[j] += weight[i] * gaps[i, j]
            variance[j] += weight[i] * gaps[i, j] * gaps[i, j]
    for i in range(count):
        total += weight[i]
    share = 1.0 / total if total > 0.0 else 0.0
    for j in range(d):
        mean[j] *= share
        square = variance[j] * share
        spread = square - mean[j] * mean[j]
        variance[j] = spread if spread > 1e-12 * square else 0.0


@part(IN_ORDER)
def _add_covariances(
    gaps: FloatArray, along: FloatArray, count: int, mean: FloatArray, axis: FloatArray
) -> None:
    """Add up the products of weighted gaps of a column, `along`, with those of every column."""
    d = gaps.shape[1]
    several = count - count % _AT_ONCE
    for j in range(d):
        axis[j] = 0.0
    for i in range(0, several, _AT_ONCE):
        for j in range(d):
            covariance = axis[j]
            for k in range(_AT_ONCE):
                covariance += along[i + k] * (gaps[i + k, j] - mean[j])
            axis[j] = covariance
    for i in range(several, count):
        for j in range(d):
            axis[j] += along[i] * (gaps[i, j] - mean[j])


@part(IN_ORDER)
def _principal_axis(  # noqa: PLR0917 - numba takes arguments by position
    gaps: FloatArray,
    weight: FloatArray,
    count: int,
    mean: FloatArray,
    axis: FloatArray,
    variance: FloatArray,
    along: FloatArray,
) -> float:
    """Fill `mean` and `axis`, the covariances with the widest column. Return its variance.

    Also `along`, the weighted gaps of the rows in this column.
    """
    _spread(gaps, weight, count, mean, variance)
    d = gaps.shape[1]
    widest, most = 0, 0.0
    for j in range(d):
        if variance[j] > most:
            widest, most = j, variance[j]
    middle = mean[widest]
    for i in range(count):
        along[i] = weight[i] * (gaps[i, widest] - middle)
    _add_covariances(gaps, along, count, mean, axis)
    largest = 0.0
    for j in range(d):
        largest = max(largest, abs(axis[j]))
    scale = 1.0 / largest if largest > 0.0 else 0.0
    for j in range(d):
        axis[j] *= scale
    return most


@part(IN_ORDER)
def _axis_between_two(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    order: IndexArray,
    start: int,
    count: int,
    mean: FloatArray,
    axis: FloatArray,
) -> bool:
    """Fill in the middle and the axis of two rows that differ, where those of a sample do not."""
    first = -1
    for i in range(start, start + count):
        row = order[i]
        if not mass[row] > 0.0:
            continue
        if first < 0:
            first = row
        differs = False
        for j in range(points.shape[1]):
            differs |= points[row, j] != points[first, j]
        if differs:
            for j in range(points.shape[1]):
                axis[j] = np.float64(points[row, j]) - points[first, j]
                mean[j] = np.float64(points[first, j]) - points[order[start], j] + 0.5 * axis[j]
            return True
    return False


@part(IN_ORDER)
def _turn(axis: FloatArray, mean: FloatArray, last: FloatArray, origin: FloatArray) -> None:
    """Turn the axis so that the half nearer to the rows placed last comes first."""
    toward = 0.0
    for j in range(axis.shape[0]):
        toward += axis[j] * (last[j] - origin[j] - mean[j])
    sign = -1.0 if toward > 0.0 else 1.0
    for j in range(axis.shape[0]):
        axis[j] *= sign


@part(IN_ORDER)
def _project_gaps(
    gaps: FloatArray, count: int, mean: FloatArray, axis: FloatArray, value: FloatArray
) -> None:
    """Fill in where rows that were gathered lie along the axis. There is room for a few more."""
    for i in range(0, count, AT_ONCE):
        sum_products(gaps, (i, i + 1, i + 2, i + 3), mean, axis, value, i)


@part(IN_ORDER)
def _project(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    mass: FloatArray,
    order: IndexArray,
    start: int,
    count: int,
    mean: FloatArray,
    axis: FloatArray,
    value: FloatArray,
    weight: FloatArray,
) -> None:
    """Fill in where all rows of a range lie along the axis, and their masses. Moves the mean.

    There are at least `AT_ONCE` rows.
    """
    first = order[start]
    for j in range(points.shape[1]):
        mean[j] += points[first, j]
    for i in range(0, count, AT_ONCE):
        place = min(i, count - AT_ONCE)  # the last ones once more
        at = np.uint64(start + place)
        rows = (order[at], order[at + _ONE], order[at + _TWO], order[at + _THREE])
        sum_products(points, rows, mean, axis, value, place)
    for i in range(count):
        weight[i] = mass[np.uint64(order[np.uint64(start + i)])]


@part(IN_ORDER)
def _whole(placed: float, before: float, total: float) -> tuple[float, bool]:
    """Return the whole number nearest to the mass before a cut, and whether a cut can be there."""
    target = np.floor(placed + before + 0.5)
    return target, placed + WHOLE_UNIT < target < placed + total - WHOLE_UNIT


@part(IN_ORDER)
def _part_few(  # noqa: PLR0917 - numba takes arguments by position
    order: IndexArray,
    start: int,
    count: int,
    value: FloatArray,
    weight: FloatArray,
    total: float,
    placed: float,
) -> tuple[int, float]:
    """Sort few rows along the axis. Return how many are before the cut, and what they weigh.

    The cut is where the mass before it, `placed` and on, is nearest to a whole number: to the one
    nearest to what is before the mean. Below one draw there is none, and the cut is at the mean.
    """
    rows, one = order[start : start + count], np.uint64(1)
    for i in range(1, count):
        v, u, row = value[i], weight[i], rows[i]
        k = np.uint64(i)
        while k > 0 and value[k - one] > v:
            value[k], weight[k], rows[k] = value[k - one], weight[k - one], rows[k - one]
            k -= one
        value[k], weight[k], rows[k] = v, u, row
    near, before, running = 0, 0.0, 0.0
    for i in range(1, count):
        running += weight[i - 1]
        # Rounding may put the mean outside: then those of the lowest value.
        if value[i - 1] < value[i] and (value[i - 1] <= 0.0 or near == 0):
            near, before = i, running
    target, is_within = _whole(placed, before, total)
    running, smallest_gap = 0.0, np.inf if is_within else 0.0
    for i in range(1, count):
        running += weight[i - 1]
        gap = abs(placed + running - target)
        if value[i - 1] < value[i] and gap < smallest_gap:
            near, before, smallest_gap = i, running, gap
    return near, before


@part(ROW_SUMS)
def _below_mean(value: FloatArray, weight: FloatArray, count: int) -> tuple[float, float]:
    """Return what the rows up to the mean weigh, and the deviation of all."""
    before, squares = 0.0, 0.0
    for i in range(count):
        before += weight[i] if value[i] <= 0.0 else 0.0
        squares += value[i] * value[i]
    return before, np.sqrt(squares / count)


@part(IN_ORDER)
def _sort(values: FloatArray, weights: FloatArray, count: int) -> None:
    for stride in _STRIDES:
        # Equal values may end in any order: sums of masses, which are float32, are exact.
        if stride > 1 and count < _PER_STRIDE * stride:
            continue
        step = np.uint64(stride)
        for i in range(stride, count):
            v, u = values[i], weights[i]
            k = np.uint64(i)
            while k >= step and values[k - step] > v:
                values[k], weights[k] = values[k - step], weights[k - step]
                k -= step
            values[k], weights[k] = v, u


@part(IN_ORDER)
def _cut_within(  # noqa: PLR0917 - numba takes arguments by position
    value: FloatArray,
    weight: FloatArray,
    count: int,
    width: float,
    before: float,
    target: float,
    values: FloatArray,
    weights: FloatArray,
) -> tuple[float, float]:
    """Return the cut for which the mass before it is nearest to a target.

    Looked for within `width` of the mean, before which the mass is `before`; and the factor by
    which to look farther (above 1) or nearer (below 1), where it is not found there.
    """
    most = values.shape[0] - 1
    free = np.uint64(0)
    for i in range(count):
        values[free], weights[free] = value[i], weight[i]
        free = min(free + np.uint64(abs(value[i]) <= width), np.uint64(most))
    k, running = np.int64(free), before
    for i in range(k):
        running -= weights[i] * (values[i] <= 0.0)
    _sort(values, weights, k)
    cut, smallest_gap, lowest = 0.0, np.inf, running
    for i in range(k):
        running += weights[i]
        gap = abs(running - target)
        if gap < smallest_gap and (i + 1 == k or values[i] < values[i + 1]):
            cut, smallest_gap = values[i], gap
    is_found = lowest < target < running and smallest_gap <= target - lowest
    factor = 1.0 / _WIDER if k == most else _WIDER
    return cut, 1.0 if is_found and k < most else factor


@part(IN_ORDER)
def _part(  # noqa: PLR0917 - numba takes arguments by position
    order: IndexArray,
    start: int,
    count: int,
    value: FloatArray,
    weight: FloatArray,
    cut: float,
    spare: IndexArray,
) -> tuple[int, float]:
    """Move the rows up to the cut to the front. Return how many they are, and what they weigh."""
    near, before = np.uint64(0), 0.0
    for i in range(count):
        row, is_near = order[start + i], np.uint64(value[i] <= cut)
        order[np.uint64(start) + near] = spare[np.uint64(i) - near] = row  # both, without a branch
        near += is_near
        before += weight[i] * is_near
    kept = int(np.int64(near))
    for i in range(kept, count):
        order[start + i] = spare[i - kept]
    return kept, before


@part(IN_ORDER)
def _part_many(  # noqa: PLR0917 - numba takes arguments by position
    order: IndexArray,
    start: int,
    count: int,
    value: FloatArray,
    weight: FloatArray,
    total: float,
    placed: float,
    max_aligned: float,
    spare: IndexArray,
    values: FloatArray,
    weights: FloatArray,
) -> tuple[int, float]:
    """Part rows at the cut of `_part_few`, or, of so many draws that few are cut, at the mean."""
    cut, looks = 0.0, 0
    before, width = _below_mean(value, weight, count)
    # A Gaussian has a share of 0.4 of its rows in a deviation at the mean.
    width *= 2.5 * (_NEAR_ROWS / count + _NEAR_DRAWS / total)
    target, is_within = _whole(placed, before, total)
    before += placed
    if is_within and total <= max_aligned:
        looks = _MAX_LOOKS
    while looks > 0:
        looks -= 1
        found, factor = _cut_within(value, weight, count, width, before, target, values, weights)
        width *= factor
        if factor == 1.0:
            cut, looks = found, 0
    near, before = _part(order, start, count, value, weight, cut, spare)
    if not 0 < near < count:  # rounding may put the mean outside
        lowest = np.inf
        for i in range(count):
            lowest = min(lowest, value[i])
        near, before = _part(order, start, count, value, weight, lowest, spare)
    return near, before


@part(IN_ORDER)
def _certain_first(mass: FloatArray, order: IndexArray) -> tuple[int, float]:
    """Fill in the rows, those that are certain first. Return how many, and the mass of others."""
    count, others = 0, 0.0
    for i in range(order.shape[0]):
        if mass[i] >= 1.0:
            order[count] = i
            count += 1
    place = count
    for i in range(order.shape[0]):
        if not mass[i] >= 1.0:
            order[place] = i
            others += mass[i]
            place += 1
    return count, others


def bisection_order(points: AnyArray, mass: FloatArray, max_aligned: float) -> IndexArray:
    """Return the order of the rows. See `daskcoreset.core.ordering`.

    Rows are float32 or float64, in C order.
    """
    is_wide = points.dtype == np.float64
    none = np.empty((0, points.shape[1]), np.float32 if is_wide else np.float64)
    narrow, wide = (none, points) if is_wide else (points, none)
    order: IndexArray = _bisect(read_only(narrow), read_only(wide), mass, max_aligned)
    return order


@jit(IN_ORDER)
def _bisect(  # noqa: C901, PLR0912, PLR0915 - a branch a step; numba takes arguments by position
    narrow: AnyArray, wide: AnyArray, mass: FloatArray, max_aligned: float
) -> IndexArray:
    """Return the order of rows of float32 or float64. The array of the other dtype is empty.

    So what needs no row is compiled once for both, which is most of it.
    """
    n, d = mass.shape[0], wide.shape[1]
    is_wide = wide.shape[0] > 0
    order, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    # Rows are projected some at once, and there may be few.
    value, weight = np.empty(n + AT_ONCE), np.empty(n)
    gaps = np.zeros((min(n, _MAX_GATHERED) + AT_ONCE, d))
    mean, axis, last, variance = np.empty(d), np.empty(d), np.zeros(d), np.empty(d)
    origin = np.empty(d)
    values, weights = np.empty(_MAX_NEAR), np.empty(_MAX_NEAR)
    # Depth first, so that leaves come in their final order; ranges on the stack are disjoint.
    starts, stops, totals = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1)
    certain, others = _certain_first(mass, order)
    starts[0], stops[0], totals[0] = certain, n, others
    top = 1 if certain < n else 0
    placed = 0.0
    while top > 0:
        top -= 1
        start, stop, total = starts[top], stops[top], totals[top]
        count = stop - start
        near, before = 0, 0.0
        if count > 1 and total > _ONE_DRAW:
            if is_wide:
                size = _gather(wide, mass, order, start, count, gaps, weight, origin)
            else:
                size = _gather(narrow, mass, order, start, count, gaps, weight, origin)
            varies = _principal_axis(gaps, weight, size, mean, axis, variance, value) > 0.0
            if not varies and size < count:
                if is_wide:
                    varies = _axis_between_two(wide, mass, order, start, count, mean, axis)
                else:
                    varies = _axis_between_two(narrow, mass, order, start, count, mean, axis)
            if varies:
                _turn(axis, mean, last, origin)
                if size < count and is_wide:
                    _project(wide, mass, order, start, count, mean, axis, value, weight)
                elif size < count:
                    _project(narrow, mass, order, start, count, mean, axis, value, weight)
                else:
                    _project_gaps(gaps, count, mean, axis, value)
                if count <= _MAX_SORTED:
                    near, before = _part_few(order, start, count, value, weight, total, placed)
                else:
                    near, before = _part_many(
                        *(order, start, count, value, weight, total, placed),
                        *(max_aligned, spare, values, weights),
                    )
        if 0 < near < count:
            starts[top], stops[top], totals[top] = start + near, stop, total - before
            starts[top + 1], stops[top + 1], totals[top + 1] = start, start + near, before
            top += 2
        else:  # one row, equal rows, or those of one draw, in any order
            first = order[start]
            if is_wide:
                for j in range(d):
                    last[j] = wide[first, j]
            else:
                for j in range(d):
                    last[j] = narrow[first, j]
            for i in range(start, stop):
                placed += mass[order[i]]
    return order
