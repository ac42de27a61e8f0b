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
from tests.pairs import each


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


@given(coded_rows(), st.booleans())
def test_lengths_and_products_and_sum_gaps__are_plain_products(
    rows: tuple[AnyArray, FloatArray, IndexArray], no_root: bool
) -> None:
    points, u, _ = rows
    n, d = points.shape
    rng = np.random.default_rng(n)
    center = np.nan_to_num(points[0].astype(np.float64))
    root, vectors = np.triu(rng.normal(size=(d, d))), rng.normal(size=(3, d))
    root = root[:, :0] if no_root else root
    factors, sums = rng.normal(size=(n, 3)), np.ones((3, d))
    squares, products = loops.lengths_and_products(points, u, center, root, vectors)
    loops.sum_gaps(points, u, center, factors, sums)

    gaps = np.where(u[:, None] > 0.0, points.astype(np.float64) - center, 0.0)
    size = np.abs(gaps).max(initial=0.0)
    exact = np.square(gaps @ root).sum(axis=1)
    np.testing.assert_allclose(squares, exact, rtol=1e-9, atol=1e-12 * size**2)
    np.testing.assert_allclose(products, gaps @ vectors.T, atol=1e-12 * size)
    np.testing.assert_allclose(sums - 1.0, factors.T @ gaps, atol=1e-12 * (1.0 + size))


@each(far=[1, 128, 200, 400], weight=[1e-30, 1e-12, 1.0])
def test_class_scatter__light_rows_far_away_cost_no_digits(far: int, weight: float) -> None:
    """Wherever they are: before others, after them, or alone in a tile."""
    rng = np.random.default_rng(0)
    n, distance = 700, 1e3 / np.sqrt(weight)  # they do not hold the scatter
    points, codes = rng.normal(size=(n, 3)), rng.integers(2, size=n)
    weights = np.ones(n)
    points[:far] += distance
    weights[:far] = weight
    for rows in (slice(None), slice(None, None, -1)):
        x, u, c = points[rows].copy(), weights[rows].copy(), codes[rows].copy()
        masses, means, mean = np.zeros(2), np.zeros((2, 3)), np.zeros(3)
        matrix = np.zeros((3, 3))
        loops.class_scatter(x, u, c, masses, means, mean, matrix)
        wide, v = x.astype(np.longdouble), u.astype(np.longdouble)
        exact = v @ wide / v.sum()
        gaps = wide - exact
        np.testing.assert_allclose(mean, exact.astype(float), atol=1e-12, rtol=1e-12)
        scatter = (gaps.T * v @ gaps).astype(float)
        np.testing.assert_allclose(matrix, scatter, atol=1e-12 * scatter.max(), rtol=0.0)
        for code in range(2):
            own = v[c == code] @ wide[c == code] / v[c == code].sum()
            np.testing.assert_allclose(means[code], own.astype(float), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e10])
def test_class_scatter__sorted_rows_far_from_the_origin(offset: float) -> None:
    """A mean that is rounded at the offset, tile by tile, goes astray."""
    rng = np.random.default_rng(0)
    points = np.sort(rng.normal(size=(50_000, 3)), axis=0) + offset
    n = len(points)
    masses, means, mean = np.zeros(1), np.zeros((1, 3)), np.zeros(3)
    matrix = np.zeros((3, 3))
    loops.class_scatter(points, np.ones(n), np.zeros(n, np.int64), masses, means, mean, matrix)
    wide = points.astype(np.longdouble)
    gaps = wide - wide.mean(axis=0)
    scatter = (gaps.T @ gaps).astype(float)
    np.testing.assert_allclose(matrix, scatter, atol=1e-12 * scatter.max(), rtol=0.0)
    np.testing.assert_allclose(mean, wide.mean(axis=0).astype(float), rtol=3e-16)


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
