"""Divergences against their plain formulas, and the inequalities that coresets rest on."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import assume, given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.divergences import (
    Divergence,
    ItakuraSaito,
    KullbackLeibler,
    SquaredMahalanobis,
)
from tests.tools.divergences import ALL, gamma

each_divergence = pytest.mark.parametrize(
    "divergence", ALL, ids=["euclidean", "full", "diagonal", "kl", "itakura_saito"]
)


each_positive = pytest.mark.parametrize("divergence", ALL[3:], ids=lambda one: str(one.name))
ENTRY = st.floats(1e-3, 1e3)
ROW = arrays(np.float64, 3, elements=ENTRY)


def plain(divergence: Divergence, x: FloatArray, y: FloatArray) -> Any:
    """Table of divergences by the formula that the textbooks print."""
    if isinstance(divergence, KullbackLeibler):
        return scipy.special.kl_div(x[:, None], y).sum(axis=2)
    if isinstance(divergence, ItakuraSaito):
        ratio = x[:, None] / y
        return (ratio - np.log(ratio) - 1.0).sum(axis=2)
    if isinstance(divergence, SquaredMahalanobis):
        matrix = divergence.precision
        return cdist(x, y, "mahalanobis", VI=np.diag(matrix) if matrix.ndim == 1 else matrix) ** 2
    return cdist(x, y, "sqeuclidean")


def gradient(divergence: Divergence, y: FloatArray) -> FloatArray:
    if isinstance(divergence, KullbackLeibler):
        return np.log(y) + 1.0
    if isinstance(divergence, ItakuraSaito):
        return -1.0 / y
    if isinstance(divergence, SquaredMahalanobis):
        matrix = divergence.precision
        return np.asarray(2.0 * (y * matrix if matrix.ndim == 1 else y @ matrix))
    return 2.0 * y


@each_divergence
def test_divergence__is_the_plain_formula(divergence: Divergence) -> None:
    x, y = gamma(40, 3), gamma(7, 3, seed=1)

    table = divergence.divergence(x, y)

    np.testing.assert_allclose(table, plain(divergence, x, y), rtol=1e-9)
    for j in range(7):
        np.testing.assert_allclose(divergence.to_mean(x, y[j]), table[:, j], rtol=1e-10)
    np.testing.assert_allclose(divergence.between(x[:7], y), table[:7].diagonal(), rtol=1e-10)


@each_divergence
def test_generator__defines_the_divergence(divergence: Divergence) -> None:
    x, y = gamma(20, 3), gamma(20, 3, seed=1)
    by_definition = divergence.generator(x) - divergence.generator(y)
    by_definition -= (gradient(divergence, y) * (x - y)).sum(axis=1)

    np.testing.assert_allclose(divergence.between(x, y), by_definition, rtol=1e-9, atol=1e-12)


def in_many_digits(divergence: Divergence, x: float, y: float) -> Decimal:
    with decimal.localcontext() as context:
        context.prec = 80
        a, b = Decimal(x), Decimal(y)
        if isinstance(divergence, KullbackLeibler):
            return a * (a / b).ln() - a + b
        return a / b - (a / b).ln() - 1


@each_positive
@given(
    y=st.floats(1e-150, 1e150),
    step=st.floats(1e-15, 3.0),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_between__cancels_no_digits(
    divergence: Divergence, y: float, step: float, sign: float
) -> None:
    x = y * np.exp(sign * step)
    assume(x != y)

    found = float(divergence.between(np.array([[x]]), np.array([y]))[0])

    assert found == pytest.approx(float(in_many_digits(divergence, x, y)), rel=2e-11)


@each_positive
@pytest.mark.parametrize(("x", "y"), [(1e-300, 1e10), (1e10, 1e-290), (1.0, 1e-20), (1e-20, 1.0)])
def test_between__holds_values_of_any_size(divergence: Divergence, x: float, y: float) -> None:
    found = float(divergence.between(np.array([[x]]), np.array([y]))[0])

    assert found == pytest.approx(float(in_many_digits(divergence, x, y)), rel=1e-12)


@each_divergence
def test_divergence__is_exact_where_the_expansion_cancels(divergence: Divergence) -> None:
    """One center far away moves the origin, so that the product form loses every digit."""
    x = gamma(30, 3)
    centers = np.vstack([x[:5] * (1.0 + 1e-9), x[5:8], [[1e8, 1e9, 1e10]]])
    expected = np.stack([divergence.between(x, center) for center in centers], axis=1)

    table = divergence.divergence(x, centers)

    np.testing.assert_allclose(table, expected, rtol=1e-11)
    assert (table[[5, 6, 7], [5, 6, 7]] == 0.0).all()


@pytest.mark.parametrize("divergence", ALL[:3], ids=["euclidean", "full", "diagonal"])
def test_divergence__loses_nothing_to_an_offset_in_float32(divergence: Divergence) -> None:
    # Steps of 1/16 are what float32 holds at 1e6, so both data sets are the same.
    near = np.round(np.random.default_rng(0).normal(size=(50, 3)) * 16) / 16
    far = (near + 1e6).astype(np.float32)
    assert (far.astype(np.float64) - 1e6 == near).all()

    table = divergence.divergence(far, near[:4] + 1e6)

    np.testing.assert_allclose(table, plain(divergence, near, near[:4]), rtol=1e-9, atol=1e-12)
    mean = near.mean(axis=0)
    np.testing.assert_allclose(
        divergence.to_mean(far, mean + 1e6), divergence.to_mean(near, mean), rtol=1e-8
    )


@each_divergence
@given(x=ROW, y=ROW)
def test_divergence__is_positive_and_zero_only_for_equal_rows(
    divergence: Divergence, x: FloatArray, y: FloatArray
) -> None:
    table = divergence.divergence(x[None], np.stack([x, y]))[0]

    assert table[0] == 0.0
    assert (table[1] > 0.0) == (x != y).any()


@each_divergence
@given(data=st.data())
def test_divergence__to_the_mean_and_from_it_make_up_the_sum(
    divergence: Divergence, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, 8))
    x = data.draw(arrays(np.float64, (n, 3), elements=ENTRY))
    u = data.draw(arrays(np.float64, n, elements=st.floats(1e-2, 1e2)))
    c = data.draw(ROW)
    mean = u @ x / u.sum()

    of_rows = u @ divergence.to_mean(x, c)
    to_mean = u @ divergence.to_mean(x, mean)
    from_mean = u.sum() * divergence.between(mean[None], c)[0]

    # Where rows and mean agree to rounding, c is all that is left.
    assert of_rows == pytest.approx(to_mean + from_mean, rel=1e-9, abs=1e-9 * u.sum())
    assert to_mean <= of_rows * (1 + 1e-9) + 1e-9


@each_positive
@given(data=st.data())
def test_dominating__bounds_the_divergence_on_a_box(
    divergence: Divergence, data: st.DataObject
) -> None:
    low = data.draw(ROW)
    high = low * (1.0 + data.draw(ROW))
    shares = data.draw(arrays(np.float64, (6, 3), elements=st.floats(0.0, 1.0)))
    rows = np.clip(low + shares * (high - low), low, high)

    distance = divergence.dominating(low, high).between(rows[:3], rows[3:])
    found = divergence.between(rows[:3], rows[3:])
    mu = divergence.similarity(low, high)

    assert mu.shape == (3,)
    assert ((mu > 0) & (mu <= 1)).all()
    assert (found <= distance * (1 + 1e-12)).all()
    assert (found >= mu.min() * distance * (1 - 1e-12)).all()


@each_positive
def test_dominating__bounds_each_column_by_its_own_factor(divergence: Divergence) -> None:
    low, high = np.array([0.1, 1.0, 5.0]), np.array([7.0, 1.5, 5.0])
    rng = np.random.default_rng(0)
    x, y = rng.uniform(low, high, (200, 3)), rng.uniform(low, high, (200, 3))
    weight = divergence.dominating(low, high).precision  # type: ignore[attr-defined]
    for j, mu in enumerate(divergence.similarity(low, high)):
        found = divergence.between(x[:, [j]], y[:, [j]])
        distance = weight[j] * (x[:, j] - y[:, j]) ** 2
        assert (found <= distance * (1 + 1e-12)).all()
        assert (found >= mu * distance * (1 - 1e-12)).all()


@each_positive
def test_dominating__is_tight(divergence: Divergence) -> None:
    """At the low corner the divergence reaches d_A, at the high corner mu d_A."""
    low, high = np.array([0.5]), np.array([2.0])
    distance = divergence.dominating(low, high)
    nearly = np.array([1.0 + 1e-6])

    at_low = divergence.between(low[None] * nearly, low) / distance.between(low[None] * nearly, low)
    at_high = divergence.between(high[None] / nearly, high) / distance.between(
        high[None] / nearly, high
    )

    assert at_low[0] == pytest.approx(1.0, rel=1e-5)
    assert at_high[0] == pytest.approx(divergence.similarity(low, high)[0], rel=1e-5)


@each_positive
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_check_domain__finds_the_first_bad_row(divergence: Divergence, bad: float) -> None:
    points = np.ones((200_000, 2), dtype=np.float32)  # more than one tile
    assert divergence.check_domain(points) == -1
    points[[150_001, 170_000], [1, 0]] = bad

    assert divergence.check_domain(points) == 150_001
    problem = divergence.find_invalid_row(points)
    assert problem is not None
    assert str(problem.error(10)).startswith(f"X is {bad} in column 1 at row 150011, and the ")
    assert "positive, finite entries" in str(problem.error(0))


@each_divergence
def test_nearest__is_the_smallest_of_the_table(divergence: Divergence) -> None:
    x, centers = gamma(30_000, 3), gamma(9, 3, seed=1)
    table = plain(divergence, x, centers)

    labels, smallest = divergence.nearest(x, centers)

    np.testing.assert_array_equal(labels, table.argmin(axis=1))
    np.testing.assert_allclose(smallest, table.min(axis=1), rtol=1e-7, atol=1e-13)
    assert divergence.nearest(x, np.repeat(centers, 2, axis=0))[0].tolist() == (labels * 2).tolist()
