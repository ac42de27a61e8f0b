"""The compiled loops agree with plain NumPy and with the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from daskcoreset.core import moments
from daskcoreset.core.linalg import first_nonfinite_row, squared_distances
from daskcoreset.core.moments import column_moments
from daskcoreset.core.sampling import systematic_walk
from daskcoreset.core.typing import AnyArray, FloatArray
from tests.tools.plain_loops import use_plain_loops

KINDS = ["compiled", "numpy"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the compiled loops and with plain NumPy, on tiles of a few rows."""
    if request.param == "numpy":
        use_plain_loops(monkeypatch)
    monkeypatch.setattr(moments, "_TILE_NUMBERS", 8)
    return str(request.param)


both = pytest.mark.usefixtures("kind")


# The fixture holds for all examples of a property alike.
shared_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def weighted_rows(draw: st.DrawFn) -> tuple[AnyArray, FloatArray]:
    """Rows with an offset, in float32 and float64, and weights of which some are zero."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_features = draw(st.integers(1, 70)), draw(st.integers(1, 9))
    offset = draw(st.sampled_from([0.0, -3.0, 1e6, 1e8]))
    points = rng.normal(size=(n_rows, n_features)) + offset
    points[:, 0] = offset
    u = rng.lognormal(size=n_rows) * (rng.random(n_rows) < draw(st.sampled_from([0.5, 1.0])))
    return points.astype(draw(st.sampled_from([np.float32, np.float64]))), u


def plain_moments(points: AnyArray, u: FloatArray) -> tuple[Any, Any, Any]:
    """Two passes in long double, about a row of the data."""
    wide = points.astype(np.longdouble)
    gap = wide - wide[0]
    weight = u.astype(np.longdouble).sum()
    shift = (u[:, np.newaxis] * gap).sum(axis=0) / weight
    return weight, wide[0] + shift, (u[:, np.newaxis] * (gap - shift) ** 2).sum(axis=0)


@given(rows=weighted_rows())
@shared_fixture
@both
def test_column_moments__equal_plain_formulas(rows: tuple[AnyArray, FloatArray]) -> None:
    points, u = rows
    if not u.any():
        u = np.ones(len(u))
    weight, mean, m2 = column_moments(points, u)

    exact = plain_moments(points, u)
    scale = np.abs(points).max()
    np.testing.assert_allclose(weight, float(exact[0]), rtol=1e-13)
    np.testing.assert_allclose(mean, exact[1].astype(float), rtol=0, atol=1e-14 * scale + 1e-14)
    # Means of tiles are rounded as the offset demands, and their differences enter M2.
    rounding = 8 * np.finfo(float).eps * scale * np.sqrt(weight * exact[2].astype(float))
    error = np.abs(m2 - exact[2].astype(float))
    assert (error <= 1e-12 * exact[2].astype(float) + rounding).all()
    assert m2[0] == 0.0
    assert mean[0] == points[0, 0]


@pytest.mark.parametrize("offset", [1e6, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@both
def test_column_moments__offset_costs_no_digits_in_many_tiles(
    offset: float, dtype: type[np.floating[Any]]
) -> None:
    # float32 steps by 8 at 1e8: spreads that it can hold.
    rng = np.random.default_rng(0)
    points = (rng.normal(scale=100.0, size=(5000, 3)) + offset).astype(dtype)
    _, mean, m2 = column_moments(points, np.ones(5000))

    _, exact_mean, exact_m2 = plain_moments(points, np.ones(5000))
    np.testing.assert_allclose(mean, exact_mean.astype(float), rtol=1e-14)
    np.testing.assert_allclose(m2, exact_m2.astype(float), rtol=1e-9)


@both
def test_column_moments__rows_without_weight_may_hold_anything() -> None:
    rng = np.random.default_rng(0)
    points, u = rng.normal(size=(100, 2)), rng.integers(0, 2, 100).astype(float)
    u[0] = 0.0
    expected = column_moments(points[u > 0], u[u > 0])
    points[u == 0] = 1e20
    # The first rows of tiles among them: they are what sums are taken about.
    assert (u[::8] == 0).any()
    assert u[0] == 0

    for found, exact in zip(column_moments(points, u), expected, strict=True):
        assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("n_rows", [0, 5])
@both
def test_column_moments__no_weight_at_all(n_rows: int) -> None:
    weight, mean, m2 = column_moments(np.ones((n_rows, 2), dtype=np.float32), np.zeros(n_rows))

    assert weight == 0.0
    assert mean.tolist() == m2.tolist() == [0.0, 0.0]


@given(rows=weighted_rows())
@shared_fixture
@both
def test_squared_distances__equal_plain_formula(rows: tuple[AnyArray, FloatArray]) -> None:
    points, _ = rows
    center = points[-1].astype(float) + 0.37
    found = squared_distances(points, center)

    exact = ((points.astype(np.longdouble) - center) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, exact.astype(float), rtol=1e-13)
    assert found.dtype == np.float64


@pytest.mark.parametrize("n_rows", [1, 3, 4, 9])
def test_squared_distances__of_any_center_that_can_be_float64(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n_rows, 5))
    centers = np.arange(15.0).reshape(5, 3)
    expected = squared_distances(points, centers[:, 1].copy())
    column: Any = centers[:, 1]
    for center in (column, column[::-1].copy()[::-1], column.astype(np.float32)):
        assert np.array_equal(squared_distances(points, center), expected)
    with pytest.raises(ValueError, match="shape"):
        squared_distances(points, np.zeros(4))


@both
def test_squared_distances__float32_does_not_overflow() -> None:
    points = np.array([[3e38, -3e38]], dtype=np.float32)
    expected = 2 * float(np.float32(3e38)) ** 2

    assert squared_distances(points, np.zeros(2))[0] == pytest.approx(expected, rel=1e-15)


@given(
    points=arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.integers(0, 40), st.integers(1, 5)),
        elements=st.one_of(
            st.just(0.0),
            st.floats(-(2.0**100), 2.0**100, width=32),
            st.sampled_from([np.nan, np.inf, -np.inf]),
        ),
        fill=st.just(1.0),
    )
)
@shared_fixture
@both
def test_first_nonfinite_row__equals_a_search(points: AnyArray) -> None:
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))

    assert first_nonfinite_row(points) == (bad[0] if len(bad) else -1)


@both
def test_systematic_walk__one_row_at_the_point_of_every_unit() -> None:
    # Quarters: units hold four rows each, and no row lies across two.
    uniforms = np.array([0.1, 0.3, 0.6, 0.9])
    assert systematic_walk(np.full(16, 0.25), uniforms).tolist() == [0, 5, 10, 15]


@both
@pytest.mark.parametrize(
    ("first", "second", "rows"),
    [
        (0.7, 0.0, [1, 2]),  # taken by the first unit: the second one draws behind it
        (0.7, 0.99, [1, 2]),
        (0.2, 0.49, [0, 1]),  # not taken, then with probability 0.2 / (1 - 0.4) = 1 / 3
        (0.2, 0.33, [0, 1]),
        (0.2, 0.34, [0, 2]),
    ],
)
def test_systematic_walk__a_row_across_two_units(
    first: float, second: float, rows: list[int]
) -> None:
    inclusion = np.array([0.6, 0.6, 0.8])
    if second == 0.49:
        inclusion = np.array([0.6, 0.7, 0.7])  # 0.3 / (1 - 0.4) = 1 / 2
    assert systematic_walk(inclusion, np.array([first, second, 0.5])).tolist() == rows


@both
def test_systematic_walk__certain_rows_are_all_taken() -> None:
    for uniform in (0.0, 0.1, 0.5, 1.0 - 1e-12):
        for lead in ([], [0.3], [0.3, 0.0, 0.3]):
            inclusion = np.array([*lead, *np.ones(50)])
            rows = systematic_walk(inclusion, np.full(52, uniform))
            assert set(range(len(lead), len(inclusion))) <= set(rows.tolist())


@both
def test_systematic_walk__no_row_without_a_share_where_rounding_ends_a_unit() -> None:
    # From the second row on they add up to a little less than one, and with a certain row to two.
    inclusion = np.array([1.0, 0.3, 0.3, 0.1, 0.2, 0.1, 1.0, 0.0, 0.2, 0.7, 0.0])
    assert inclusion[1:6].cumsum()[-1] < 1.0
    assert inclusion[1:7].cumsum()[-1] == 2.0
    uniforms = np.array([0.75, np.nextafter(1.0, 0.0), 0.25, 0.5])
    assert systematic_walk(inclusion, uniforms).tolist() == [0, 6, 8, 9]


@both
@pytest.mark.parametrize(
    ("inclusion", "uniforms", "rows"),
    [
        ([0.5, 0.5 - 1e-12], [1.0 - 1e-13], [1]),  # a whole number, but for rounding
        ([0.5, 0.5 + 1e-12], [0.1, 0.0], [0]),
        ([0.5, 0.5 + 1e-12], [0.1], [0]),
        ([0.5, 0.25], [0.8], []),
        ([0.0, 0.0], [0.0], []),
        ([], [0.0], []),
    ],
)
def test_systematic_walk__ends(
    inclusion: list[float], uniforms: list[float], rows: list[int]
) -> None:
    assert systematic_walk(np.array(inclusion), np.array(uniforms)).tolist() == rows


@both
def test_loops__read_only_arrays() -> None:
    points, u = np.ones((3, 2)), np.full(3, 0.5)
    points.flags.writeable = u.flags.writeable = False

    assert column_moments(points, u)[0] == 1.5
    assert squared_distances(points, np.zeros(2)).tolist() == [2.0, 2.0, 2.0]
    assert first_nonfinite_row(points) == -1
    assert systematic_walk(u, np.array([0.25, 0.25])).tolist() == [0, 2]
