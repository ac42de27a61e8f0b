"""Loops over gaps agree with plain sums in long double, whatever the offset and the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset.core import gaps_numba as loops
from daskcoreset.core.linalg import inverse_root
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray


@st.composite
def coded_rows(draw: st.DrawFn) -> tuple[AnyArray, FloatArray, IndexArray]:
    """Rows far from the origin, in order or not, and weights; NaN where there is none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.sampled_from([1, 2, 127, 128, 129, 300])), draw(st.integers(1, 9))
    scales = [(1e-150, 1.0), (1.0, 1.0), (1e140, 1.0), (1.0, 1e-300), (1e140, 1e-300)]
    scale, heaviness = draw(st.sampled_from(scales))
    points = rng.normal(size=(n, d)) * scale
    points += draw(st.sampled_from([0.0, 1.0, 1e8])) * abs(points).max()
    if draw(st.booleans()):
        points = np.sort(points, axis=0)
    weights = rng.lognormal(size=n) * heaviness
    weights[rng.random(n) < draw(st.sampled_from([0.0, 0.5]))] = 0.0
    if abs(points).max() < 1e30 and draw(st.booleans()):
        points = points.astype(np.float32)
    points[weights == 0.0] = np.nan
    return points, weights, rng.integers(draw(st.integers(1, 5)), size=n)


@given(coded_rows())
def test_class_scatter__is_that_of_long_double(
    rows: tuple[AnyArray, FloatArray, IndexArray],
) -> None:
    points, u, codes = rows
    n_classes, d = 5, points.shape[1]
    masses, means = np.zeros(n_classes), np.zeros((n_classes, d))
    mean, matrix = np.zeros(d), np.zeros((d, d))
    weight = loops.class_scatter(points, u, codes, masses, means, mean, matrix)

    used = np.flatnonzero(u)
    wide, v = points[used].astype(np.longdouble), u[used].astype(np.longdouble)
    np.testing.assert_allclose(weight, float(v.sum()), rtol=1e-13)
    if not len(used):
        assert not mean.any()
        assert not matrix.any()
        return
    exact = v @ wide / v.sum()
    size = np.abs(wide).max()
    np.testing.assert_allclose((mean - exact).astype(float), 0.0, atol=float(size * 1e-15))
    gaps = wide - exact
    spread = np.sqrt(v @ gaps**2) + np.sqrt(v.sum()) * size * 1e-15
    missed = np.abs(matrix - (gaps * v[:, None]).T @ gaps)
    # Means far from the origin are known to a part of the spread.
    assert (missed <= 1e-6 * np.outer(spread, spread)).all()
    np.testing.assert_array_equal(matrix, matrix.T)
    for code in range(n_classes):
        own = codes[used] == code
        np.testing.assert_allclose(masses[code], float(v[own].sum()), rtol=1e-13)
        if own.any():
            of_class = v[own] @ wide[own] / v[own].sum()
            np.testing.assert_allclose(
                (means[code] - of_class).astype(float), 0.0, atol=float(size * 1e-15)
            )


@given(coded_rows())
def test_whiten_and_sum_gaps__are_plain_products(
    rows: tuple[AnyArray, FloatArray, IndexArray],
) -> None:
    points, u, _ = rows
    n, d = points.shape
    rng = np.random.default_rng(n)
    center = np.nan_to_num(points[0].astype(np.float64))
    triangle, vectors = np.tril(rng.normal(size=(d, d))), rng.normal(size=(3, d))
    factors, squares, products = rng.normal(size=(n, 3)), np.empty(n), np.empty((n, 3))
    sums = np.ones((3, d))
    padded = np.pad(triangle, ((0, -d % 4), (0, 3)))
    loops.whiten(points, u, center, padded, vectors, squares, products)
    loops.sum_gaps(points, u, center, factors, sums)

    gaps = np.where(u[:, None] > 0.0, points.astype(np.float64) - center, 0.0)
    size = np.abs(gaps).max(initial=0.0)
    exact = np.square(gaps @ triangle.T).sum(axis=1)
    np.testing.assert_allclose(squares, exact, rtol=1e-9, atol=1e-12 * size**2)
    np.testing.assert_allclose(products, gaps @ vectors.T, atol=1e-12 * size)
    np.testing.assert_allclose(sums - 1.0, factors.T @ gaps, atol=1e-12 * (1.0 + size))


@pytest.mark.parametrize("d", [1, 4, 30])
def test_inverse_root__is_a_triangle_and_a_root(d: int) -> None:
    rows: Any = np.random.default_rng(d).normal(size=(50, d)) * 10.0 ** np.arange(-d, d, 2)[:d]
    matrix = rows.T @ rows
    root = inverse_root(matrix)
    np.testing.assert_array_equal(root, np.triu(root))
    scale = np.sqrt(np.diagonal(matrix))
    shape = matrix / np.outer(scale, scale) + 1e-6 * np.eye(d)
    whole = scale[:, None] * (root @ root.T) * scale @ shape
    np.testing.assert_allclose(whole, np.eye(d), atol=1e-8)
