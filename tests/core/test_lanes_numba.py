"""Rows in vectors, and centers that meet them, give bit by bit what a plain loop gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from daskcoreset.core import lanes_numba as lanes
from daskcoreset.core import rowwise_numba
from daskcoreset.core.jit_numba import IN_ORDER, jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.solvers.kmeans_numba import nearest_center

# Parts of loops, which are compiled for loops alone, as loops of their own.
lay_out = jit(IN_ORDER)(lanes.lay_out)
gap_sums = jit(IN_ORDER)(rowwise_numba._gap_sums)


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
@given(some_rows(), st.sampled_from(["whole", "ones", "apart"]), st.data())
def test_sums_of_gaps__are_those_of_all_rows_and_columns(
    points: AnyArray, kind: str, data: st.DataObject
) -> None:
    """Numbers of few digits have exact sums, in whatever order they are added."""
    points = points.round().astype(points.dtype)
    n, d = points.shape
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weights = np.ones(n) if kind == "ones" else np.asarray(rng.integers(4, size=n), np.float64)
    if kind == "apart":  # not side by side
        weights = np.repeat(weights, 2)[::2]
    center, sums, squares = (np.full(d + lanes.COLUMNS - 1, np.nan) for _ in range(3))
    center[:d] = rng.integers(-9, 9, size=d)
    before = points.copy()
    gap_sums(points, weights, start, stop, kind == "ones", center, sums, squares)

    gaps = points[start:stop].astype(np.float64) - center[:d]
    assert_array_equal(sums[:d], weights[start:stop] @ gaps)
    assert_array_equal(squares[:d], weights[start:stop] @ gaps**2)
    assert_array_equal(points, before)


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


@jit(IN_ORDER)
def products_with(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    rows: IndexArray,
    center: FloatArray,
    vector: FloatArray,
    out: FloatArray,
    place: int,
) -> None:
    """Call what only compiled loops can call."""
    a, b, c, e = rows
    lanes.sum_products(points, (a, b, c, e), center, vector, out, place)


@pytest.mark.nightly
@given(some_rows(), st.integers(0, 2**32 - 1))
def test_sum_products__of_any_rows_and_columns(points: AnyArray, seed: int) -> None:
    """Numbers of few digits have exact sums; what lies beside them in `out` stays."""
    points = np.ascontiguousarray(points.round(), np.float32)
    rng = np.random.default_rng(seed)
    (n, d), place = points.shape, int(rng.integers(3))
    rows = rng.integers(n, size=lanes.AT_ONCE)
    center, vector = rng.integers(-9, 9, size=(2, d)).astype(np.float64)
    out = np.full(9, -77.0)
    products_with(points, tuple(rows.tolist()), center, vector, out, place)
    expected = np.full(9, -77.0)
    expected[place : place + lanes.AT_ONCE] = (points[rows] - center) @ vector
    assert_array_equal(out, expected)


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


@jit(IN_ORDER)
def along_row(  # noqa: PLR0917 - numba takes arguments by position
    source: AnyArray,
    center: FloatArray,
    beside: FloatArray,
    factor: float,
    target: FloatArray,
    is_sum: bool,
) -> None:
    """Call what only compiled loops can call, for every row."""
    for i in range(source.shape[0]):
        if is_sum:
            lanes.add_row(source, i, center, beside, factor, target, i)
        else:
            lanes.subtract_from_row(source, i, center, beside, factor, target, i)


@pytest.mark.nightly
@given(some_rows(), st.booleans(), st.integers(0, 2**32 - 1))
def test_rows__less_a_center_and_added(points: AnyArray, is_sum: bool, seed: int) -> None:
    """Numbers of few digits have exact products; what is beside a row stays as it is."""
    rng = np.random.default_rng(seed)
    points = points.round()
    points = points if points.dtype.kind == "f" else points.astype(np.float64)
    n, d = points.shape
    (center, beside), target = (
        np.round(9.0 * rng.normal(size=(2, d))), np.round(9.0 * rng.normal(size=(n, d + 3))),
    )  # fmt: skip
    before = target.copy()
    along_row(points, center, beside, 3.0, target, is_sum)
    expected = before[:, :d] + 3.0 * points if is_sum else 3.0 * (points - center - beside)
    assert_array_equal(target[:, :d], expected)
    assert_array_equal(target[:, d:], before[:, d:])
