"""Loops over gaps, rows less a center, compiled by numba when they are first called.

Some rows at a time lie beside one another in float64, so that sums over pairs of columns need no
copy of the data. Rows of weight zero, which may hold anything, have gaps of zero. Up to some
hundred columns that is faster than BLAS with one thread. As in `rowwise_numba` bits depend
neither on the number of threads nor on the scheduler.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.core import lanes_numba as lanes
from daskcoreset.core.jit_numba import ROW_SUMS, jit
from daskcoreset.core.rowwise_numba import merged_mean, row_with_weight
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Rows in a tile.
_ROWS = 128

_LEFT, _RIGHT = lanes.LEFT, lanes.RIGHT


@jit(ROW_SUMS)
def _tile_for(d: int) -> FloatArray:  # pragma: no cover - runs compiled
    """Return room for gaps. More of it stays zero, so that vectors of columns are whole."""
    return np.zeros((_ROWS, (d + _RIGHT - 1) // _RIGHT * _RIGHT))


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
    """Fill weights and means of classes, and mean and scatter of all rows. All are zeros at first.

    Means are held as what they lie apart from a row that is not light, so that neither an offset
    of all rows nor light ones far away cost digits. Returns the total weight.

    References
    ----------
    Chan, Golub and LeVeque (1983), equation 2.1, tiles merged in order.
    """
    n, d = points.shape
    tile, total = _tile_for(d), 0.0
    width = tile.shape[1]
    products = np.empty((width, width))
    # The mean of the rows before is `base` + `before`. Sums of a tile are about `base` + `center`.
    base, before, center, gaps = np.zeros(d), np.zeros(d), np.zeros(d), np.empty(d)
    mass, shift = np.zeros(len(masses)), np.zeros((len(masses), d))
    for start in range(0, n, _ROWS):
        rows = min(_ROWS, n - start)
        weight = weights[start : start + rows].sum()
        if weight == 0.0:
            continue
        outweighs = weight > total
        heavy = row_with_weight(weights, start, start + rows, weight) if outweighs else start
        for j in range(d):
            center[j] = before[j]
            if outweighs:
                apart = base[j] - points[heavy, j] if total > 0.0 else 0.0
                base[j] = points[heavy, j]
                before[j] += apart
                center[j] = 0.0
                for c in range(len(masses)):
                    means[c, j] += apart
        for i in range(rows):
            u = weights[start + i]
            if u > 0.0:
                c, root = codes[start + i], np.sqrt(u)
                mass[c] += u
                lanes.subtract_from_row(points, start + i, base, center, root, tile, i)
                lanes.add_row(tile, i, base, base, root, shift, c)
            else:
                tile[i] = 0.0
        for j in range(d):
            gaps[j] = 0.0
        for c in range(len(masses)):
            if mass[c] > 0.0:
                for j in range(d):
                    gaps[j] += shift[c, j] / weight
                    of_class = center[j] + shift[c, j] / mass[c]
                    means[c, j] = merged_mean(means[c, j], of_class, masses[c], mass[c])
                    shift[c, j] = 0.0
                masses[c] += mass[c]
                mass[c] = 0.0
        # Products about the mean of the tile, and of all rows together. Where the tile outweighs
        # what was before, little may be left of products about `center`: it is taken off the rows.
        # By quotients alone, for products of two small weights vanish.
        factor = -weight / (1.0 + total / weight)
        if outweighs:
            factor = total / (1.0 + total / weight)
            for i in range(rows):
                root = np.sqrt(weights[start + i]) if weights[start + i] > 0.0 else 0.0
                for j in range(d):
                    tile[i, j] -= root * gaps[j]
        for j in range(0, d, _LEFT):
            for k in range(0, min(j + _LEFT, d), _RIGHT):
                lanes.turned_products(tile, j, tile, k, rows, products)
        for j in range(d):
            of_tile = center[j] + gaps[j]
            gaps[j] = of_tile - before[j]
            before[j] = merged_mean(before[j], of_tile, total, weight)
        for j in range(d):
            for k in range(j + 1):
                matrix[j, k] += products[j, k] + gaps[j] * gaps[k] * factor
        total += weight
    for j in range(d):
        mean[j] = base[j] + before[j]
        for c in range(len(masses)):
            means[c, j] = base[j] + means[c, j] if masses[c] > 0.0 else 0.0
        for k in range(j):
            matrix[k, j] = matrix[j, k]
    return total


def lengths_and_products(
    points: AnyArray,
    weights: FloatArray,
    center: FloatArray,
    root: FloatArray,
    vectors: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return squared lengths of gaps times a triangle, and products of gaps with vectors.

    Parameters
    ----------
    points : ndarray of shape (n, d), float32 or float64
    weights : ndarray of shape (n,), float64
    center : ndarray of shape (d,), float64
    root : ndarray of shape (d, r), float64
        An upper triangle, or of no column: then lengths are zero.
    vectors : ndarray of shape (p, d), float64
    """
    n, (d, r), p = len(points), root.shape, len(vectors)
    factors = np.zeros((d, -(-(r + p) // _RIGHT) * _RIGHT))
    factors[:, :r] = root
    factors[:, r : r + p] = vectors.T
    squares, products = np.empty(n), np.empty((n, p))
    _fill_forms(points, weights, center, factors, r, squares, products)
    return squares, products


@jit(ROW_SUMS)
def _fill_forms(  # noqa: PLR0917 - numba wants no names
    points: AnyArray,
    weights: FloatArray,
    center: FloatArray,
    factors: FloatArray,
    r: int,
    squares: FloatArray,
    products: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Fill what `lengths_and_products` returns. The first `r` columns of factors are a triangle."""
    n, d = points.shape
    tile, forms, nothing = _tile_for(d), np.empty((_ROWS, factors.shape[1])), np.zeros(d)
    for start in range(0, n, _ROWS):
        rows = min(_ROWS, n - start)
        for i in range(rows):
            if weights[start + i] > 0.0:
                lanes.subtract_from_row(points, start + i, center, nothing, 1.0, tile, i)
            else:
                tile[i] = 0.0
        for k in range(0, factors.shape[1], _RIGHT):
            terms = min(d, k + _RIGHT) if k + _RIGHT <= r else d
            for i in range(0, rows, _LEFT):
                lanes.products(tile, i, factors, k, terms, forms)
        for i in range(rows):
            square = 0.0
            for k in range(r):
                square += forms[i, k] ** 2
            squares[start + i] = square
            for k in range(products.shape[1]):
                products[start + i, k] = forms[i, r + k]


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
    for start in range(0, n, _ROWS):
        part[:] = 0.0
        for i in range(start, min(start + _ROWS, n)):
            if not weights[i] > 0.0:
                continue
            for k in range(factors.shape[1]):
                factor = factors[i, k]
                for j in range(d):
                    part[k, j] += factor * (points[i, j] - center[j])
        out += part
