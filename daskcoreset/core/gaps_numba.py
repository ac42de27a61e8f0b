"""Loops over gaps, rows less a center, compiled by numba when they are first called.

Some rows at a time stand beside one another in float64, so that sums over pairs of columns need no
copy of the data; rows of weight zero, which may hold anything, have gaps of zero. Up to some
hundred columns that is faster than BLAS in pieces for one thread. As in `rowwise_numba` bits depend
neither on the number of threads nor on the scheduler.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.core.rowwise_numba import ROW_SUMS, jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Rows beside one another.
_LANES = 128


@jit(ROW_SUMS)
def _tile_for(d: int) -> FloatArray:  # pragma: no cover - runs compiled
    """Return room for gaps; more of it stays zero, so that four columns at a time are whole."""
    return np.zeros((d + 3, _LANES + 16))  # no power of two: columns share no cache set


@jit(ROW_SUMS)
def _lay_out(
    points: AnyArray, weights: FloatArray, center: FloatArray, start: int, tile: FloatArray
) -> int:  # pragma: no cover - runs compiled
    """Fill `tile` with the gaps of the rows from `start` on, and return how many these are."""
    n, d = points.shape
    for i in range(_LANES):
        if start + i < n and weights[start + i] > 0.0:
            for j in range(d):
                tile[j, i] = points[start + i, j] - center[j]
        else:
            for j in range(d):
                tile[j, i] = 0.0
    return int(min(_LANES, n - start))


@jit(ROW_SUMS)
def class_scatter(  # noqa: C901, PLR0912, PLR0917 - a loop a step; numba wants no names
    points: AnyArray,
    weights: FloatArray,
    codes: IndexArray,
    masses: FloatArray,
    means: FloatArray,
    mean: FloatArray,
    matrix: FloatArray,
) -> float:  # pragma: no cover - runs compiled
    """Fill weights and means of classes, and mean and scatter of all rows; all are zeros at first.

    Returns the total weight.

    References
    ----------
    Chan, Golub and LeVeque (1983), equation 2.1, tiles merged in order.
    """
    n, d = points.shape
    tile, roots, total = _tile_for(d), np.empty(_LANES), 0.0
    center, gaps = np.empty(d), np.empty(d)
    mass, shift = np.zeros(len(masses)), np.zeros((len(masses), d))
    for start in range(0, n, _LANES):
        # Sums about the mean of the rows before; at first, about the first row of all.
        for i in range(start, min(start + _LANES, n)):
            if total == 0.0 and weights[i] > 0.0:
                for j in range(d):
                    center[j] = points[i, j]
                break
        weight = 0.0
        for i in range(_LANES):
            u = weights[start + i] if start + i < n else 0.0
            roots[i] = np.sqrt(u)
            if not u > 0.0:
                for j in range(d):
                    tile[j, i] = 0.0
                continue
            c = codes[start + i]
            weight += u
            mass[c] += u
            for j in range(d):
                gap = points[start + i, j] - center[j]
                tile[j, i] = gap
                shift[c, j] += u * gap
        if weight == 0.0:
            continue
        for j in range(d):
            gaps[j] = 0.0
        for c in range(len(masses)):
            if mass[c] > 0.0:
                masses[c] += mass[c]
                for j in range(d):
                    gaps[j] += shift[c, j] / weight
                    of_class = center[j] + shift[c, j] / mass[c]
                    means[c, j] += (of_class - means[c, j]) * (mass[c] / masses[c])
                    shift[c, j] = 0.0
                mass[c] = 0.0
        share = weight / (total + weight)
        for j in range(d):
            for i in range(_LANES):
                tile[j, i] = (tile[j, i] - gaps[j]) * roots[i]
            # What was before has its mean at `center`, of which the tile's lies apart by `gaps`.
            for k in range(j + 1):
                products = 0.0
                for i in range(_LANES):
                    products += tile[j, i] * tile[k, i]
                matrix[j, k] += products + gaps[j] * gaps[k] * (total * share)
        total += weight
        for j in range(d):
            center[j] += gaps[j] * share
    for j in range(d):
        mean[j] = center[j] if total > 0.0 else 0.0
        for k in range(j):
            matrix[k, j] = matrix[j, k]
    return total


@jit(ROW_SUMS)
def whiten(  # noqa: C901, PLR0912, PLR0917 - a loop a step; numba wants no names
    points: AnyArray,
    weights: FloatArray,
    center: FloatArray,
    triangle: FloatArray,
    vectors: FloatArray,
    squares: FloatArray,
    products: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Fill squared lengths of gaps times a triangle, and products of gaps with vectors.

    The triangle is a lower one with three more columns, of zeros.
    """
    n, d = points.shape
    tile, form, square = _tile_for(d), np.empty(_LANES), np.empty(_LANES)
    for start in range(0, n, _LANES):
        rows = _lay_out(points, weights, center, start, tile)
        for i in range(_LANES):
            square[i] = 0.0
        for k in range(triangle.shape[0]):
            for i in range(_LANES):
                form[i] = 0.0
            for j in range(0, k + 1, 4):
                a, b = triangle[k, j], triangle[k, j + 1]
                e, f = triangle[k, j + 2], triangle[k, j + 3]
                for i in range(_LANES):
                    first = a * tile[j, i] + b * tile[j + 1, i]
                    form[i] += first + (e * tile[j + 2, i] + f * tile[j + 3, i])
            for i in range(_LANES):
                square[i] += form[i] * form[i]
        for i in range(rows):
            squares[start + i] = square[i]
        for k in range(vectors.shape[0]):
            for i in range(_LANES):
                form[i] = 0.0
            for j in range(d):
                a = vectors[k, j]
                for i in range(_LANES):
                    form[i] += a * tile[j, i]
            for i in range(rows):
                products[start + i, k] = form[i]


@jit(ROW_SUMS)
def sum_gaps(
    points: AnyArray,
    weights: FloatArray,
    center: FloatArray,
    factors: FloatArray,
    out: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Add gaps times the columns of `factors`, of shape (n, p), to `out`, of shape (p, d)."""
    n, d = points.shape
    tile, factor = _tile_for(d), np.zeros(_LANES)
    for start in range(0, n, _LANES):
        rows = _lay_out(points, weights, center, start, tile)
        for k in range(factors.shape[1]):
            for i in range(_LANES):
                factor[i] = factors[start + i, k] if i < rows else 0.0
            for j in range(d):
                total = 0.0
                for i in range(_LANES):
                    total += factor[i] * tile[j, i]
                out[k, j] += total
