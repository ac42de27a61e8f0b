"""The bisection of weighted rows, compiled by numba when it is first called."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Draws of a range up to which its rows stay as they are. To cut more lowers errors little.
_DRAWS = 0.9

# Rows of a range whose spread is looked at, at most. Of fewer it is all of them.
_SAMPLE = 32

# Variance up to which rows are equal: squares of it vanish.
_LEAST_SPREAD = 1e-280


@jit
def bisect(  # noqa: C901, PLR0912, PLR0917 - a step a loop, without calls
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
    top, last = 0, order[start]
    while top >= 0:
        stop, total, first = stops[top], totals[top], order[start]
        # The column of the largest variance.
        step, weight = 1 + (stop - start) // _SAMPLE, 0.0
        widest, most = -1, _LEAST_SPREAD
        while total > _DRAWS:
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
        if widest < 0:  # few draws, or equal rows
            start, last = stop, first
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
        cut, left = start, 0.0
        for i in range(start, stop):
            row, is_near = order[i], value[i] < 0.0
            order[i], order[cut] = order[cut], row
            left += mass[row] * is_near
            cut += is_near
        if not start < cut < stop:  # nothing but rounding
            cut, left = start + 1, mass[order[start]]
        stops[top], totals[top] = stop, total - left
        stops[top + 1], totals[top + 1] = cut, left
        top += 1
