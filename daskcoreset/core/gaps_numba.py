"""Loops over gaps, rows less a center, compiled by numba when they are first called.

Some rows at a time stand beside one another in float64, so that sums over pairs of columns need no
copy of the data; rows of weight zero, which may hold anything, have gaps of zero. Up to some
hundred columns that is faster than BLAS in pieces for one thread. As in `rowwise_numba` bits depend
neither on the number of threads nor on the scheduler.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import IN_ORDER, ROW_SUMS, jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Rows beside one another, and the length of a column of their tile: no power of two, so that
# columns share no cache set.
_LANES = 128
_COLUMN = _LANES + 16


@jit(IN_ORDER)
def _four_of(values: AnyArray, row: int, j: int) -> tuple[float, float, float, float]:
    """Return four neighbouring numbers of a row, for a loop that keeps them in registers."""
    return values[row, j], values[row, j + 1], values[row, j + 2], values[row, j + 3]


@jit(ROW_SUMS)
def _tile_for(d: int) -> FloatArray:  # pragma: no cover - runs compiled
    """Return room for gaps; more of it stays zero, so that four columns at a time are whole."""
    # The compiler knows the step of what is reshaped, and stores columns in less time.
    return np.zeros((d + 3) * _COLUMN).reshape(d + 3, _COLUMN)


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
    products = np.empty((d + 3, d + 3))
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
        for j in range(0, d, 4):
            for k in range(0, j + 4, 2):
                _fill_products(tile, j, k, products)
        # What was before has its mean at `center`, of which the tile's lies apart by `gaps`.
        for j in range(d):
            for k in range(j + 1):
                matrix[j, k] += products[j, k] + gaps[j] * gaps[k] * (total * share)
        total += weight
        for j in range(d):
            center[j] += gaps[j] * share
    for j in range(d):
        mean[j] = center[j] if total > 0.0 else 0.0
        for k in range(j):
            matrix[k, j] = matrix[j, k]
    return total


@jit(ROW_SUMS)
def _fill_products(
    tile: FloatArray, j: int, k: int, out: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Fill in products of four columns from `j` on with two from `k` on, each loaded once."""
    total, total_1, total_2, total_3 = 0.0, 0.0, 0.0, 0.0
    next_total, next_1, next_2, next_3 = 0.0, 0.0, 0.0, 0.0
    for i in range(_LANES):
        a, b, e, f = tile[j, i], tile[j + 1, i], tile[j + 2, i], tile[j + 3, i]
        x, y = tile[k, i], tile[k + 1, i]
        total += a * x
        total_1 += b * x
        total_2 += e * x
        total_3 += f * x
        next_total += a * y
        next_1 += b * y
        next_2 += e * y
        next_3 += f * y
    out[j, k], out[j, k + 1] = total, next_total
    out[j + 1, k], out[j + 1, k + 1] = total_1, next_1
    out[j + 2, k], out[j + 2, k + 1] = total_2, next_2
    out[j + 3, k], out[j + 3, k + 1] = total_3, next_3


@jit(ROW_SUMS)
def whiten(  # noqa: C901, PLR0917 - a loop a step; numba wants no names
    points: AnyArray,
    weights: FloatArray,
    center: FloatArray,
    triangle: FloatArray,
    vectors: FloatArray,
    squares: FloatArray,
    products: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Fill squared lengths of gaps times a triangle, and products of gaps with vectors.

    The triangle is a lower one with three more columns, of zeros, and rows of zeros up to a
    multiple of four: four rows at a time meet four columns of gaps.
    """
    n, d = points.shape
    tile, square, forms = _tile_for(d), np.empty(_LANES), np.empty((4, _LANES))
    form, form_1, form_2, form_3 = forms[0], forms[1], forms[2], forms[3]
    for start in range(0, n, _LANES):
        rows = _lay_out(points, weights, center, start, tile)
        square[:] = 0.0
        for k in range(0, triangle.shape[0], 4):
            forms[:] = 0.0
            for j in range(0, k + 4, 4):
                first, second = _four_of(triangle, k, j), _four_of(triangle, k + 1, j)
                third, fourth = _four_of(triangle, k + 2, j), _four_of(triangle, k + 3, j)
                for i in range(_LANES):
                    gaps = tile[j, i], tile[j + 1, i], tile[j + 2, i], tile[j + 3, i]
                    form[i] += _times(first, gaps)
                    form_1[i] += _times(second, gaps)
                    form_2[i] += _times(third, gaps)
                    form_3[i] += _times(fourth, gaps)
            for i in range(_LANES):
                square[i] += form[i] ** 2 + form_1[i] ** 2 + form_2[i] ** 2 + form_3[i] ** 2
        squares[start : start + rows] = square[:rows]
        for k in range(vectors.shape[0]):
            form[:] = 0.0
            for j in range(0, d - 3, 4):
                vector = _four_of(vectors, k, j)
                for i in range(_LANES):
                    gaps = tile[j, i], tile[j + 1, i], tile[j + 2, i], tile[j + 3, i]
                    form[i] += _times(vector, gaps)
            for j in range(d - d % 4, d):
                number = vectors[k, j]
                for i in range(_LANES):
                    form[i] += number * tile[j, i]
            for i in range(rows):
                products[start + i, k] = form[i]


@jit(ROW_SUMS)
def _times(
    first: tuple[float, float, float, float], second: tuple[float, float, float, float]
) -> float:
    """Return the product of two vectors of length four."""
    products = first[0] * second[0] + first[1] * second[1]
    return products + (first[2] * second[2] + first[3] * second[3])


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
    part = np.empty(out.shape)  # a sum of sums, which many rows leave exact
    for start in range(0, n, _LANES):
        part[:] = 0.0
        for i in range(start, min(start + _LANES, n)):
            if not weights[i] > 0.0:
                continue
            for k in range(factors.shape[1]):
                factor = factors[i, k]
                for j in range(d):
                    part[k, j] += factor * (points[i, j] - center[j])
        out += part
