"""Rows in vectors, and centers that meet them, give bit by bit what a plain loop gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from daskcoreset.core import rowwise_numba
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.solvers.kmeans_numba import nearest_center


@st.composite
def some_rows(draw: st.DrawFn) -> AnyArray:
    """Rows of any number and width, in any order of their numbers, with steps of other arrays."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 70)), draw(st.integers(1, 21))
    # A loop is compiled for each dtype and layout: others than C for one of the dtypes.
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int64]))
    layouts = ["C", "F", "steps", "part"] if dtype == np.float64 else ["C", "part"]
    layout = draw(st.sampled_from(layouts))
    wide = (10.0 * rng.normal(size=(2 * n, 2 * d))).round(3).astype(dtype)
    if layout == "steps":
        return wide[::2, ::2]
    if layout == "part":
        return wide[:n]
    return np.array(wide[:n, :d], order=layout)  # type: ignore[call-overload, no-any-return]


@pytest.mark.nightly
@given(some_rows(), st.integers(1, 10), st.booleans(), st.integers(0, 2**32 - 1))
def test_nearest_center__is_the_first_of_the_nearest(
    points: AnyArray, k: int, narrow: bool, seed: int
) -> None:
    """Numbers of few digits have exact squares, so that ties are ties, whatever is rounded."""
    rng = np.random.default_rng(seed)
    points = points.round().astype(points.dtype)
    n, d = points.shape
    dtype = np.float32 if narrow else np.float64
    centers = rng.integers(-12, 13, size=(k, d)).astype(dtype)
    centers[rng.integers(k)] = centers[0]
    labels = np.full(n, 40)
    distances = rng.choice([0.0, 150.0, np.inf], size=n)
    before = distances.copy()
    nearest_center(points, centers, 50, labels, distances)

    gaps = points[:, np.newaxis].astype(np.int64) - centers.astype(np.int64)
    exact = (gaps**2).sum(axis=2)
    nearer = exact.min(axis=1) < before
    assert_array_equal(labels, np.where(nearer, 50 + exact.argmin(axis=1), 40))
    assert_array_equal(distances, np.where(nearer, exact.min(axis=1), before))


@pytest.mark.nightly
def test_nearest_center__rows_that_are_no_numbers_stay_where_they_are() -> None:
    """As in a loop that asks whether a distance is smaller."""
    points = np.zeros((40, 5))
    points[7, 4], points[20, 0] = np.nan, np.inf
    labels, distances = np.full(40, 9), np.full(40, np.inf)
    nearest_center(points, np.ones((3, 5)), 0, labels, distances)
    assert set(np.flatnonzero(labels == 9)) == {7, 20}
    assert set(np.flatnonzero(np.isinf(distances))) == {7, 20}


@pytest.mark.nightly
@given(some_rows(), st.integers(0, 2**32 - 1))
def test_column_moments__of_weights_of_one_have_the_bits_of_other_weights(
    points: AnyArray, seed: int
) -> None:
    """Twice the weights are no ones, and double every sum exactly."""
    points = points.astype(np.float64) + np.random.default_rng(seed).normal()
    n, d = points.shape
    (mean, m2), (other_mean, other_m2) = (np.zeros((2, d)) for _ in range(2))
    rowwise_numba.column_moments(points, np.ones(n), 16, mean, m2)
    rowwise_numba.column_moments(points, np.full(n, 2.0), 16, other_mean, other_m2)
    assert_array_equal(mean, other_mean)
    assert_array_equal(2.0 * m2, other_m2)


@pytest.mark.nightly
@given(some_rows(), st.integers(0, 2**32 - 1))
def test_squared_distances__of_a_row_are_the_same_wherever_it_stands(
    points: AnyArray, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n, d = points.shape
    center = rng.normal(size=d)
    found = np.empty(n)
    rowwise_numba.squared_distances(points, center, found)
    gaps = points.astype(np.float64) - center
    np.testing.assert_allclose(found, (gaps**2).sum(axis=1), rtol=1e-14)
    start = rng.integers(n)
    for others in (points[start:], np.asfortranarray(points)[start:]):
        again = np.empty(n - start)
        rowwise_numba.squared_distances(others, center, again)
        assert_array_equal(again, found[start:])


@pytest.mark.nightly
@given(some_rows(), st.integers(0, 2**32 - 1))
def test_column_moments__whatever_the_layout(points: AnyArray, seed: int) -> None:
    """Rows of another layout give the same bits, by a loop of their own."""
    points = points.astype(np.float64) + 1e6
    weights = np.random.default_rng(seed).lognormal(size=len(points))
    d, found = points.shape[1], []
    for layout in (points, np.ascontiguousarray(points), np.asfortranarray(points)):
        mean, m2 = np.zeros(d), np.zeros(d)
        rowwise_numba.column_moments(layout, weights, 16, mean, m2)
        found.append((mean, m2))
    exact: FloatArray = weights @ points / weights.sum()
    first_mean, first_m2 = found[0]
    np.testing.assert_allclose(first_mean, exact, rtol=1e-14)
    np.testing.assert_allclose(first_m2, weights @ (points - exact) ** 2, rtol=1e-6, atol=1e-8)
    for mean, m2 in found[1:]:
        assert_array_equal(mean, first_mean)
        assert_array_equal(m2, first_m2)
