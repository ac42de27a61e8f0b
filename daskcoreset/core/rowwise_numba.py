"""The loops that touch every number of a block, compiled by numba when they are first called.

All sums are float64 whatever the dtype of the points. Column sums are taken about a row
of their own tile and tiles are merged as in Chan, Golub and LeVeque (1983), so that a
common offset (mean 1e6, spread 1, float32) costs no digits and constant columns give
exactly zero. The loops release the GIL, use one thread each and call no BLAS: their
bits depend neither on the number of threads nor on the scheduler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.jit_numba import AS_WRITTEN, IN_ORDER, ROW_SUMS, jit, part
from daskcoreset.core.lanes_numba import (
    AT_ONCE,
    COLUMNS,
    ROWS,
    add_gaps,
    add_weighted_gaps,
    can_be_loaded,
    sum_squares,
    whole_rows,
)
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Rounding of a sum of inclusion probabilities: so near to a whole number it is one.
WHOLE_UNIT = 1e-7


# Share of the mean weight below which a row is light: it may lie so far away that gaps from it have
# no digits.
LIGHT = 1e-3


@part(IN_ORDER)
def row_with_weight(weights: FloatArray, start: int, stop: int, total: float) -> int:
    """Return the first row of positive weight, or, if that is light, the heaviest.

    `total` is their weight, which is positive. Rows without weight may hold anything, such as 1e20.
    """
    first = start
    while not weights[first] > 0.0:
        first += 1
    if weights[first] >= LIGHT * (total / (stop - start)):
        return first
    for i in range(first, stop):
        if weights[i] > weights[first]:
            first = i
    return first


@part(IN_ORDER)
def merged_mean(first: float, second: float, first_weight: float, second_weight: float) -> float:
    """Return the mean of two sets of rows, from the heavier one on, whose digits it has."""
    total = first_weight + second_weight
    if second_weight > first_weight:
        return second + (first - second) * (first_weight / total)
    return first + (second - first) * (second_weight / total)


@part(IN_ORDER)
def _gap_sums(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    weights: FloatArray,
    start: int,
    stop: int,
    are_ones: bool,
    center: FloatArray,
    gaps: FloatArray,
    squares: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Fill in sums of weighted gaps between rows and a center, and of their squares.

    `are_ones` says so of the weights. The last three arrays are `COLUMNS` - 1 numbers longer than
    rows.
    """
    gaps[:] = 0.0
    squares[:] = 0.0
    several = whole_rows(points, weights, start, stop)
    for i in range(start, several, ROWS):
        for j in range(0, points.shape[1], COLUMNS):
            if are_ones:
                add_gaps(points, weights, i, center, gaps, squares, j)
            else:
                add_weighted_gaps(points, weights, i, center, gaps, squares, j)
    for i in range(several, stop):
        u = weights[i]
        for j in range(points.shape[1]):
            gap = points[i, j] - center[j]
            gaps[j] += u * gap
            squares[j] += u * gap * gap


@part(ROW_SUMS)
def _sum_of(weights: FloatArray, start: int, stop: int) -> tuple[float, bool]:
    """Return the sum of weights, and whether each of them is one."""
    total, others = 0.0, 0
    for i in range(start, stop):
        total += weights[i]
        others += weights[i] != 1.0
    return total, others == 0


# Share of squared gaps from a center that is left of them about the mean, at least, where that
# center will do: with less, more than two digits would cancel.
_LEFT = 1.0 / 64.0


@jit(IN_ORDER)
def column_moments(
    points: AnyArray, weights: FloatArray, tile_rows: int, mean: FloatArray, m2: FloatArray
) -> float:  # pragma: no cover - runs compiled
    """Fill `mean` and `m2`, zeros at first, and return the total weight.

    Squares of a tile are summed about the mean of the tile before. If that lies far away, about
    a row of its own; and where this one does, about the mean that was found so.
    """
    n, d = points.shape
    total = 0.0
    width = d + COLUMNS - 1
    center, shift, spread = np.zeros(width), np.empty(width), np.empty(width)
    for start in range(0, n, tile_rows):
        stop = min(n, start + tile_rows)
        weight, are_ones = _sum_of(weights, start, stop)
        if weight == 0.0:
            continue
        for attempt in range(0 if total > 0.0 else 1, 3):
            if attempt == 1:
                first = row_with_weight(weights, start, stop, weight)
                for j in range(d):
                    center[j] = points[first, j]
            _gap_sums(points, weights, start, stop, are_ones, center, shift, spread)
            cancelled = 0
            for j in range(d):
                moved = shift[j] / weight
                left = spread[j] - shift[j] * moved
                cancelled += not left >= _LEFT * spread[j]
                center[j] += moved
                spread[j] = max(left, 0.0)
            if cancelled == 0:
                break
        share = weight / (total + weight)
        for j in range(d):
            delta = center[j] - mean[j]
            mean[j] = merged_mean(mean[j], center[j], total, weight)
            m2[j] += spread[j] + delta * delta * total * share
        total += weight
    return total


@jit(IN_ORDER)
def squared_distances(points: AnyArray, center: FloatArray, out: FloatArray) -> None:
    """Fill `out` with squared distances to `center`. Both are float64 in C order.

    A row has the same bits wherever it stands, and in whatever layout.
    """
    n, d = points.shape
    several = n - n % AT_ONCE if can_be_loaded(points, center) else 0
    for i in range(0, several, AT_ONCE):
        sum_squares(points, (i, i + 1, i + 2, i + 3), center, center, out, i)
    few, sums = np.zeros((AT_ONCE, d)), np.empty(AT_ONCE)
    for i in range(several, n, AT_ONCE):
        rows = min(AT_ONCE, n - i)
        for k in range(rows):
            for j in range(d):
                few[k, j] = points[i + k, j]
        sum_squares(few, (0, 1, 2, 3), center, center, sums, 0)
        for k in range(rows):
            out[i + k] = sums[k]


@jit(AS_WRITTEN)
def score_half_uniform(
    distances: FloatArray, weights: FloatArray, uniform: float, double_cost: float
) -> None:
    """Turn squared distances into scores, half by the weights, half by the weighted distances.

    The bits are those of NumPy, which makes both halves one by one (`lightweight.half_uniform`).
    """
    for i in range(distances.shape[0]):
        u = weights[i]
        # Of rows that do not count distances may overflow.
        distances[i] = u * uniform + u * distances[i] / double_cost if u > 0.0 else 0.0


@jit(IN_ORDER)
def largest_bits(bits: AnyArray, magnitude: Any) -> Any:
    """Return the largest of the bits of numbers but for their signs. NaN has the largest."""
    most = magnitude & ~magnitude
    for i in range(bits.shape[0]):
        most = max(most, bits[i] & magnitude)
    return most


@jit(IN_ORDER)
def first_beyond(values: AnyArray, limit: Any) -> int:
    """Return where the first value is that is NaN or longer than `limit`, or -1."""
    for start in range(0, values.shape[0], 4096):
        stop = min(start + 4096, values.shape[0])
        beyond = 0
        for i in range(start, stop):
            beyond += not (abs(values[i]) <= limit)
        if beyond > 0:
            for i in range(start, stop):
                if not (abs(values[i]) <= limit):
                    return i
    return -1


@jit(IN_ORDER)
def walk(inclusion: FloatArray, uniforms: FloatArray, rows: IndexArray) -> int:
    """Fill in one row in every unit of the cumulative inclusion, and return how many they are.

    There is room for one more than there are units. See `sampling.systematic_walk`. Rows below the
    target of a unit are counted, so that only its end, which no processor foresees, is a branch.
    """
    n, count, before = inclusion.shape[0], 0, 0  # rows taken: in all, and before the current unit
    position = 0.0  # within the current unit
    target = uniforms[0]  # where the row of this unit lies
    taken, unit = False, 0
    start, below = 0, 0  # the first row of this unit, and how many are below the target
    for i in range(n):
        share = inclusion[i]
        position += share
        below += position <= target
        if position < 1.0:
            continue
        if not share > 0.0:  # rounding has put the end of the row before at that of this unit
            continue
        # The row crosses into the next unit, with the part `position` of its share.
        position -= 1.0
        chosen = min(start + below, i)  # rounding may put the target at the end of the unit
        rows[count] = chosen
        count += not taken
        crossed = not taken and chosen == i
        unit += 1
        if unit == uniforms.shape[0]:  # rounding: the sum was a whole number
            return count
        before = count
        # If it was not taken, the chance position / others in this unit makes `share` of both.
        uniform, rest = uniforms[unit], 1.0 - share
        others = rest + position
        taken = not crossed and uniform * others < position
        rows[count] = i
        count += taken
        if not crossed:  # uniform again, given that the row is not taken here either
            uniform = (uniform * others - position) / rest
        target = position + uniform * (1.0 - position)
        start, below = i + 1, 0
    if not taken and start + below < n:
        rows[count] = start + below
        count += 1
        taken = True
    last = n - 1
    while last >= 0 and not inclusion[last] > 0.0:
        last -= 1
    if position < WHOLE_UNIT:  # nothing but rounding lies in the last unit
        count = before
    elif position > 1.0 - WHOLE_UNIT and not taken and (count == 0 or rows[count - 1] != last):
        rows[count] = last
        count += 1
    return count


@jit(ROW_SUMS)
def inner_products(points: AnyArray, vectors: FloatArray, out: FloatArray) -> None:
    """Fill `out` with the product of every row with every vector, in float64."""
    for i in range(points.shape[0]):
        for k in range(vectors.shape[0]):
            total = 0.0
            for j in range(points.shape[1]):
                total += points[i, j] * vectors[k, j]
            out[i, k] = total


@part(ROW_SUMS)
def _squares(row: AnyArray, scale: float) -> float:
    """Sum of squares, in units of `scale`."""
    total = 0.0
    for j in range(row.shape[0]):
        ratio = np.float64(row[j]) / scale
        total += ratio * ratio
    return total


@jit(ROW_SUMS)
def unit_rows(
    values: AnyArray, bounds: IndexArray, slack: float, out: AnyArray, lengths: FloatArray
) -> None:
    """Fill `out` with rows of length one, and `lengths` with what they were. See `linalg`."""
    for i in range(lengths.shape[0]):
        # Numbers of a slice, which count from zero, are several at a time.
        row, unit = values[bounds[i] : bounds[i + 1]], out[bounds[i] : bounds[i + 1]]
        scale, total = 1.0, 0.0
        for j in range(row.shape[0]):
            total += np.float64(row[j]) * np.float64(row[j])
        if not 1e-280 < total < 1e280:  # squares that vanish or overflow, zeros, NaN
            largest = 0.0
            for j in range(row.shape[0]):
                largest = max(largest, abs(np.float64(row[j])))
            if largest > 0.0:
                scale, total = largest, _squares(row, largest)
        length = np.sqrt(total)
        lengths[i] = scale * length
        # As it is: of zeros, of length one, and of NaN or infinity, which are found where they are.
        if not 0.0 < length < np.inf or (scale == 1.0 and abs(total - 1.0) <= slack):
            unit[:] = row
            continue
        factor = 1.0 / length
        if scale != 1.0:
            for j in range(row.shape[0]):
                unit[j] = np.float64(row[j]) / scale * factor
            continue
        for j in range(row.shape[0]):
            unit[j] = np.float64(row[j]) * factor
