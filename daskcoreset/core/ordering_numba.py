"""The bisection of weighted rows, compiled by numba when it is first called."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import jit
from daskcoreset.core.loops_numba import WHOLE_UNIT
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Draws of a range up to which its rows stay as they are: to cut one draw and a little more changed
# no error, and is a tenth of the time.
_ONE_DRAW = 1.3

# Rows of a range whose spread is looked at, at most. Of fewer it is all of them.
_SAMPLE = 128

# Draws of a range up to which it is cut between draws. With more, a cut at the mean is as good.
_FEW_DRAWS = 64.0

# Variance up to which rows are equal: squares of it vanish.
_LEAST_SPREAD = 1e-280


@jit
def bisect(  # noqa: C901, PLR0912, PLR0915, PLR0917 - a step a loop, without calls
    points: AnyArray,
    mass: FloatArray,
    order: IndexArray,
    start: int,
    stops: IndexArray,
    totals: FloatArray,
    value: FloatArray,
    mean: FloatArray,
    axis: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Bring the rows from `start` on into their order, depth first.

    Functions such as `max` are not called: each takes numba a twentieth of a second to compile.

    Parameters
    ----------
    points : ndarray of shape (n, d), float32 or float64
    mass : ndarray of shape (n,), float64
    order : ndarray of shape (n,), uint64
        Row numbers, which are moved. Signed ones would be looked at each time: do they count from
        the end?
    start : int
    stops, totals : ndarray of shape (n + 1,), int64 and float64
        Room for a stack of ranges: where they end, and the mass in them. The first is given.
    value : ndarray of shape (n,), float64
        Room for the places of rows along an axis.
    mean, axis : ndarray of shape (d,), float64
        Room for a center and an axis.
    """
    d = points.shape[1]
    top, placed, last = 0, 0.0, order[start]
    while top >= 0:
        stop, total, first = stops[top], totals[top], order[start]
        # The column of the largest variance.
        step, weight = 1 + (stop - start) // _SAMPLE, 0.0
        widest, most = -1, _LEAST_SPREAD
        while total > _ONE_DRAW:
            weight = 0.0
            for j in range(d):
                mean[j] = axis[j] = 0.0
            for i in range(start, stop, step):
                row = order[i]
                u = mass[row]
                weight += u
                for j in range(d):
                    gap = np.float64(points[row, j]) - points[first, j]
                    mean[j] += u * gap
                    axis[j] += u * gap * gap
            for j in range(d):
                gap, square = mean[j] / weight, axis[j] / weight
                mean[j], axis[j] = points[first, j] + gap, 0.0
                variance = square - gap * gap
                if variance > most and variance > 1e-12 * square:  # more than rounding
                    widest, most = j, variance
            if widest >= 0 or step == 1:
                break
            step = 1
        if widest < 0:  # one draw, or equal rows
            start, last = stop, first
            placed += total
            top -= 1
            continue
        # The covariances of all columns with this one, as shares of its variance: none is above it.
        for i in range(start, stop, step):
            row = order[i]
            along = mass[row] / weight * ((points[row, widest] - mean[widest]) / most)
            for j in range(d):
                axis[j] += along * (points[row, j] - mean[j])
        # The half that is nearer to the last row comes first.
        toward, sign = 0.0, 1.0
        for j in range(d):
            toward += axis[j] * (points[last, j] - mean[j])
        if toward > 0.0:
            sign = -1.0
        for i in range(start, stop):
            row = order[i]
            product = 0.0
            for j in range(d):
                product += (points[row, j] - mean[j]) * axis[j]
            value[i] = sign * product
        # Rows are parted at a pivot, first at the mean, until the cut is found.
        target, with_equal = -1.0, False
        low, high, before, pivot = start, stop, 0.0, 0.0
        while True:
            cut, left = low, before
            for i in range(low, high):
                v, row = value[i], order[i]
                value[i], order[i] = value[cut], order[cut]
                value[cut], order[cut] = v, row
                is_near = (v < pivot) | (with_equal & (v == pivot))
                left += mass[row] * is_near
                cut += is_near
            if target < 0.0:  # the cut is there, or at the nearest whole draw
                target = int(placed + left + 0.5) - placed
                if total > _FEW_DRAWS or not WHOLE_UNIT < target < total - WHOLE_UNIT:
                    break
            if left > target and with_equal:
                # Equal rows stay together, on the side that is nearer to a whole draw.
                if cut == stop or (low > start and target - before < left - target):
                    cut, left = low, before
                break
            if left > target:
                high = cut
            else:
                low, before = cut, left
            with_equal = left <= target and not with_equal
            if not with_equal:
                pivot = value[low + (5 * (high - low) >> 3)]
        if not start < cut < stop:  # nothing but rounding
            cut, left = start + 1, mass[order[start]]
        stops[top], totals[top] = stop, total - left
        stops[top + 1], totals[top + 1] = cut, left
        top += 1
