"""The loops that touch every number of a block, compiled by numba when they are first called.

All sums are float64 whatever the dtype of the points. Sums of columns are taken about a row of
their own tile, and tiles are merged as in Chan, Golub and LeVeque (1983). So a common offset (mean
1e6, spread 1, float32) costs no digits, and constant columns give exactly zero. The loops release
the GIL, use one thread each and call no BLAS: their bits depend neither on the number of threads
nor on the scheduler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.jit_numba import IN_ORDER, ROW_SUMS, jit, part
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Rounding of a sum of inclusion probabilities: so near to a whole number it is one.
WHOLE_UNIT = 1e-7


# Share of the mean weight below which a row is light: it may lie so far away that gaps from it have
# no digits.
LIGHT = 1e-3


@part(IN_ORDER)
def _row_with_weight(weights: FloatArray, start: int, stop: int, total: float) -> int:
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
def _moments_of_tile(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    weights: FloatArray,
    start: int,
    stop: int,
    weight: float,
    center: FloatArray,
    shift: FloatArray,
    spread: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Fill in the means of columns, `center`, and sums of squares about them, `spread`."""
    d, first = points.shape[1], _row_with_weight(weights, start, stop, weight)
    for j in range(d):
        center[j], shift[j], spread[j] = points[first, j], 0.0, 0.0
    for i in range(start, stop):
        u = weights[i]
        for j in range(d):
            shift[j] += u * (points[i, j] - center[j])
    for j in range(d):
        center[j] += shift[j] / weight
    for i in range(start, stop):
        u = weights[i]
        for j in range(d):
            gap = points[i, j] - center[j]
            spread[j] += u * gap * gap


@jit(IN_ORDER)
def column_moments(
    points: AnyArray, weights: FloatArray, tile_rows: int, mean: FloatArray, m2: FloatArray
) -> float:  # pragma: no cover - runs compiled
    """Fill `mean` and `m2`, zeros at first, and return the total weight."""
    n, d = points.shape
    total = 0.0
    center, shift, spread = np.empty(d), np.empty(d), np.empty(d)
    for start in range(0, n, tile_rows):
        stop = min(n, start + tile_rows)
        weight = 0.0
        for i in range(start, stop):
            weight += weights[i]
        if weight == 0.0:
            continue
        _moments_of_tile(points, weights, start, stop, weight, center, shift, spread)
        share, of_rest = weight / (total + weight), total / (total + weight)
        for j in range(d):
            delta = center[j] - mean[j]
            # From the heavier one on, whose digits the mean has.
            if weight > total:
                mean[j] = center[j] - delta * of_rest
            else:
                mean[j] += delta * share
            m2[j] += spread[j] + delta * delta * total * share
        total += weight
    return total


@jit(ROW_SUMS)
def squared_distances(points: AnyArray, center: FloatArray, out: FloatArray) -> None:
    """Fill `out` with the squared distances of rows, in C order, to `center`, float64."""
    for i in range(points.shape[0]):
        total = 0.0
        for j in range(points.shape[1]):
            gap = points[i, j] - center[j]
            total += gap * gap
        out[i] = total


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

    There is room for one more than there are units; see `sampling.systematic_walk`. Rows below the
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
    """Fill `out` with rows of length one, and `lengths` with what they were; see `linalg`."""
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
