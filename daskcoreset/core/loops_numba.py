"""The loops that touch every number of a block, compiled by numba when they are first called.

All sums are float64 whatever the dtype of the points. The loops release the GIL, use one thread
each and call no BLAS: their bits depend neither on the number of threads nor on the scheduler.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Rounding of a sum of inclusion probabilities: so near to a whole number it is one.
WHOLE_UNIT = 1e-7


@jit
def add_gaps(  # noqa: PLR0917 - compiled
    points: AnyArray,
    weights: FloatArray,
    center: FloatArray,
    gaps: FloatArray,
    squares: FloatArray,
    costs: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Add up weighted gaps between rows and a center, and their squares, of every column.

    Fill `costs` with the weighted squared distances of the rows to the center.
    """
    for i in range(points.shape[0]):
        u, cost = weights[i], 0.0
        for j in range(points.shape[1]):
            gap = points[i, j] - center[j]
            weighted = u * gap
            square = weighted * gap
            gaps[j] += weighted
            squares[j] += square
            cost += square
        costs[i] = cost


@jit
def squared_distances(
    points: AnyArray, center: FloatArray, out: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Fill `out` with squared distances to a center."""
    for i in range(points.shape[0]):
        total = 0.0
        for j in range(points.shape[1]):
            gap = points[i, j] - center[j]
            total += gap * gap
        out[i] = total


@jit
def walk(
    inclusion: FloatArray, uniforms: FloatArray, rows: IndexArray
) -> int:  # pragma: no cover - runs compiled
    """Fill in one row in every unit of the cumulative inclusion, and return how many they are.

    There is room for one more than there are units. See `sampling.systematic_walk`.
    """
    count = before = 0  # rows taken: in all, and before the current unit
    position, unit, last = 0.0, 0, -1
    target, taken = uniforms[0], False  # where the row of this unit lies
    for i in range(inclusion.shape[0]):
        share = inclusion[i]
        if not share > 0.0:
            continue
        position += share
        last = i
        crosses = position >= 1.0
        chosen = not taken and (crosses or position > target)
        if chosen:
            rows[count] = i
            count += 1
            taken = True
        if not crosses:
            continue
        # The row crosses into the next unit, with the part `position` of its share.
        position -= 1.0
        unit += 1
        if unit == uniforms.shape[0]:  # rounding: the sum was a whole number
            return count
        before, taken = count, False
        uniform, others = uniforms[unit], 1.0 - share + position
        if not chosen:
            # The chance position / others in this unit makes `share` of both.
            if uniform * others < position:
                rows[count] = i
                count += 1
                taken = True
            # Uniform again, given that the row is not taken here either.
            uniform = (uniform * others - position) / (1.0 - share)
        target = position + uniform * (1.0 - position)
    if position < WHOLE_UNIT:  # nothing but rounding lies in the last unit
        return before
    if position > 1.0 - WHOLE_UNIT and not taken and (count == 0 or rows[count - 1] != last):
        rows[count] = last
        count += 1
    return count


@jit
def inner_products(
    points: AnyArray, vectors: FloatArray, out: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Fill `out` with the product of every row with every vector."""
    for i in range(points.shape[0]):
        for k in range(vectors.shape[0]):
            total = 0.0
            for j in range(points.shape[1]):
                total += points[i, j] * vectors[k, j]
            out[i, k] = total


@jit
def unit_rows(
    values: FloatArray, bounds: IndexArray, slack: float, lengths: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Divide rows, which lie one after another, by their lengths, and fill these in.

    Rows of zeros, of length one, and with NaN or infinity stay as they are.
    """
    for i in range(lengths.shape[0]):
        row = values[bounds[i] : bounds[i + 1]]
        scale, total = 1.0, 0.0
        for j in range(row.shape[0]):
            total += row[j] * row[j]
        if not 1e-280 < total < 1e280:  # squares vanish or overflow
            largest = 0.0
            for j in range(row.shape[0]):
                largest = max(largest, abs(row[j]))
            if largest > 0.0:
                scale, total = largest, 0.0
                for j in range(row.shape[0]):
                    ratio = row[j] / scale
                    total += ratio * ratio
        length = np.sqrt(total)
        lengths[i] = scale * length
        if 0.0 < length < np.inf and (scale != 1.0 or abs(total - 1.0) > slack):
            for j in range(row.shape[0]):
                row[j] = row[j] / scale / length
