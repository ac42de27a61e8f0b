"""Divergences against their plain formulas, and the inequalities that coresets rest on."""

from __future__ import annotations

import decimal
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special
from dask.base import tokenize
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.linalg import dense, product
from daskcoreset.core.moments import (
    Box,
    box_of,
    merge_boxes,
    merge_scatters,
    scatter_of,
)
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.divergences import (
    DIVERGENCES,
    Divergence,
    ItakuraSaito,
    KullbackLeibler,
    SquaredEuclidean,
    SquaredMahalanobis,
    resolve_divergence,
)

PRECISION = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 3.0]])

ALL: list[Divergence] = [
    SquaredEuclidean(),
    SquaredMahalanobis(PRECISION),
    SquaredMahalanobis([0.5, 2.0, 1.0]),
    KullbackLeibler(),
    ItakuraSaito(),
]
each_divergence = pytest.mark.parametrize(
    "divergence", ALL, ids=["euclidean", "full", "diagonal", "kl", "itakura_saito"]
)
each_positive = pytest.mark.parametrize("divergence", ALL[3:], ids=lambda one: str(one.name))

ENTRY = st.floats(1e-3, 1e3)
ROW = arrays(np.float64, 3, elements=ENTRY)


def gamma(*shape: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).gamma(2.0, size=shape)


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


# --- the formulas -------------------------------------------------------------------------


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


def test_between__overflows_only_to_infinity() -> None:
    found = ItakuraSaito().between(np.array([[1e300]]), np.array([1e-300]))

    assert found[0] == np.inf


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


def test_divergence__of_an_ill_conditioned_precision() -> None:
    """Columns that nearly agree: the small eigenvalue must survive the products."""
    basis = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2.0)
    distance = SquaredMahalanobis(basis @ np.diag([1.0, 1e10]) @ basis)
    x = np.array([[3.0, 4.0], [1.0, 1.0]])

    table = distance.divergence(x, np.array([[1.0, 1.0], [100.0, 100.0], [0.0, 1.0]]))

    gaps = x[:, None] - np.array([[1.0, 1.0], [100.0, 100.0], [0.0, 1.0]])
    expected = (gaps @ basis) ** 2 @ np.array([1.0, 1e10])
    np.testing.assert_allclose(table, expected, rtol=1e-5)


# --- properties of Bregman divergences ----------------------------------------------------


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


# --- the dominating distance --------------------------------------------------------------


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


def test_dominating__of_known_boxes() -> None:
    low, high = [0.5, 2.0], [1.0, 8.0]

    np.testing.assert_allclose(KullbackLeibler().dominating(low, high).precision, [1.0, 0.25])
    np.testing.assert_allclose(KullbackLeibler().similarity(low, high), [0.5, 0.25])
    np.testing.assert_allclose(ItakuraSaito().dominating(low, high).precision, [2.0, 0.125])
    np.testing.assert_allclose(ItakuraSaito().similarity(low, high), [0.25, 0.0625])


@pytest.mark.parametrize("divergence", ALL[:3], ids=["euclidean", "full", "diagonal"])
def test_dominating__of_a_squared_distance_is_itself(divergence: Divergence) -> None:
    assert divergence.dominating(-np.ones(3), np.ones(3)) == divergence
    assert divergence.similarity([-1, 0, 1], [1, 1, 1]).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([0.0, 1.0], [1.0, 1.0], r"low is 0\.0 and high 1\.0 in column 0"),
        ([1.0, 3.0], [1.0, 2.0], r"low is 3\.0 and high 2\.0 in column 1"),
        ([1.0, np.nan], [1.0, 2.0], "low is nan"),
        ([1.0], [np.inf], "high inf in column 0"),
        ([1.0, 1.0], [1.0], r"low has shape \(2,\) and high \(1,\)"),
        ([[1.0]], [[1.0]], r"low has shape \(1, 1\)"),
        ([1e-200], [1.0], "no float64 holds the factor"),
        ([1e-100], [1e100], "no float64 holds the factor"),
    ],
)
def test_dominating__refuses_a_box_outside_the_domain(low: Any, high: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ItakuraSaito().dominating(low, high)
    with pytest.raises(InvalidInputError, match=message):
        ItakuraSaito().similarity(low, high)


# --- domains ------------------------------------------------------------------------------


@each_positive
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_check_domain__finds_the_first_bad_row(divergence: Divergence, bad: float) -> None:
    points = np.ones((200_000, 2), dtype=np.float32)  # more than one tile
    assert divergence.check_domain(points) == -1
    points[[150_001, 170_000], [1, 0]] = bad

    assert divergence.check_domain(points) == 150_001
    problem = divergence.find_invalid_row(points)
    assert problem is not None
    assert str(problem.error(10)).startswith(f"X is {bad} in column 1 at row 150011; the ")
    assert "positive, finite entries" in str(problem.error(0))


def test_check_domain__of_squared_distances_is_all_finite_rows() -> None:
    points = np.array([[-1.0, 0.0], [0.0, np.nan]])

    assert SquaredEuclidean().check_domain(points) == 1
    assert SquaredEuclidean().check_domain(points[:1]) == -1
    assert SquaredEuclidean().find_invalid_row(points[:1]) is None
    assert SquaredMahalanobis().check_domain(points) == 1


def test_check_domain__counts_the_zeros_of_sparse_rows() -> None:
    points = sp.csr_array(np.array([[1.0, 2.0], [3.0, 0.0]]))

    assert KullbackLeibler().check_domain(points) == 1
    problem = KullbackLeibler().find_invalid_row(points, "points")
    assert problem is not None
    assert str(problem.error(0)).startswith("points is 0.0 in column 1 at row 1; ")


def test_check_domain__of_no_rows() -> None:
    assert KullbackLeibler().check_domain(np.empty((0, 2))) == -1


# --- precisions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], r"not symmetric: entry \(0, 1\) is 0\.5 and entry \(1, 0\) is"),
        ([[1.0, 2.0], [2.0, 1.0]], "not positive definite: .* smallest eigenvalue is -1;"),
        ([[-1.0, 0.0], [0.0, 1.0]], "not positive definite"),
        ([[0.0, 1.0], [1.0, 0.0]], "not positive definite"),
        ([1.0, -2.0], "not positive definite"),
        ([[1.0, 1.0], [1.0, 1.0]], "precision is singular"),
        ([[1.0, 0.0], [0.0, 0.0]], "precision is singular"),
        ([1.0, 0.0], "precision is singular"),
        ([[1.0, np.nan], [np.nan, 1.0]], "precision is not finite"),
        ([[1.0, 0.0]], r"precision has shape \(1, 2\); pass a square matrix"),
        (np.ones((1, 1, 1)), "pass a square matrix"),
        (2.0, "pass a square matrix"),
        ([], "pass a square matrix"),
    ],
)
def test_mahalanobis__refuses_precisions_that_are_no_distance(precision: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SquaredMahalanobis(precision)


@pytest.mark.parametrize("precision", ["full", [[1.0, 2.0], [3.0]]])
def test_mahalanobis__refuses_what_is_no_array(precision: Any) -> None:
    with pytest.raises(InvalidTypeError, match="precision is not an array of numbers"):
        SquaredMahalanobis(precision)


def test_mahalanobis__does_not_mind_the_units_of_columns() -> None:
    scale = np.array([1e-9, 1.0, 1e9])

    distance = SquaredMahalanobis(PRECISION * scale * scale[:, None])

    x, y = gamma(5, 3), gamma(4, 3, seed=1)
    np.testing.assert_allclose(
        distance.divergence(x / scale, y / scale),
        SquaredMahalanobis(PRECISION).divergence(x, y),
        rtol=1e-9,
    )


def test_mahalanobis__keeps_a_copy_of_its_precision() -> None:
    given_precision = PRECISION.copy()
    distance = SquaredMahalanobis(given_precision)
    given_precision[:] = 0.0

    np.testing.assert_array_equal(distance.precision, PRECISION)
    with pytest.raises(ValueError, match="read-only"):
        distance.precision[0, 0] = 1.0


def test_mahalanobis__needs_a_precision_for_distances() -> None:
    with pytest.raises(InvalidInputError, match="precision is not known yet"):
        SquaredMahalanobis().to_mean(np.ones((1, 2)), np.ones(2))


def test_mahalanobis__refuses_rows_of_another_width() -> None:
    message = r"precision has shape \(3, 3\) but the data have 2 columns"
    with pytest.raises(InvalidInputError, match=message):
        SquaredMahalanobis(PRECISION).divergence(np.ones((4, 2)), np.ones((1, 2)))
    with pytest.raises(InvalidInputError, match=r"precision has shape \(1,\) but"):
        SquaredMahalanobis([1.0]).to_mean(np.ones((4, 2)), np.ones(2))


def test_whiten__makes_the_distance_euclidean() -> None:
    x, y = gamma(10, 3), gamma(4, 3, seed=1)
    for distance in ALL[:3]:
        assert isinstance(distance, SquaredEuclidean | SquaredMahalanobis)
        white = dense(distance.whiten(x)), dense(distance.whiten(y))
        expected = cdist(*white, "sqeuclidean")
        np.testing.assert_allclose(distance.divergence(x, y), expected, rtol=1e-9)


def test_estimated__inverts_a_covariance() -> None:
    covariance = np.cov(gamma(100, 4).T) * np.outer([1e-6, 1, 1, 1e6], [1e-6, 1, 1, 1e6])

    distance = SquaredMahalanobis().estimated(covariance)

    scale = np.sqrt(covariance.diagonal())
    unit = distance.precision * scale * scale[:, None] @ (covariance / scale / scale[:, None])
    np.testing.assert_allclose(unit, np.eye(4), atol=1e-12)
    assert SquaredMahalanobis.estimated([4.0, 0.5]).precision.tolist() == [0.25, 2.0]


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]]), "covariance is singular"),
        (np.array([[1.0, 2.0, 0.0], [2.0, 5.0, 1.0]]), "covariance is singular"),
        (np.repeat(gamma(9, 1), 2, axis=1), "covariance is singular"),
    ],
    ids=["constant column", "too few rows", "equal columns"],
)
def test_fitted__refuses_a_singular_covariance(points: FloatArray, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SquaredMahalanobis().fitted(points, np.ones(len(points)))


def test_fitted__takes_the_weighted_covariance() -> None:
    points, weights = gamma(30, 3), gamma(30, seed=1)
    covariance = np.cov(points.T, aweights=weights, ddof=0)

    fitted = SquaredMahalanobis().fitted(points, weights)

    np.testing.assert_allclose(fitted.precision, np.linalg.inv(covariance), rtol=1e-9)
    given_precision = SquaredMahalanobis(PRECISION)
    assert given_precision.fitted(points, weights) is given_precision
    assert KullbackLeibler().fitted(points, weights) == KullbackLeibler()


# --- as values ----------------------------------------------------------------------------


@each_divergence
def test_divergences__survive_pickling_and_have_a_stable_token(divergence: Divergence) -> None:
    divergence.divergence(np.ones((1, 3)), np.ones((1, 3)))  # fills what is cached
    copy = pickle.loads(pickle.dumps(divergence))

    assert copy == divergence
    assert hash(copy) == hash(divergence)
    assert tokenize(copy) == tokenize(divergence)
    other: object = "mahalanobis"
    assert divergence != other


def test_mahalanobis__equality_is_that_of_precisions() -> None:
    assert SquaredMahalanobis() == SquaredMahalanobis()
    assert hash(SquaredMahalanobis()) == hash(SquaredMahalanobis())
    assert SquaredMahalanobis() != SquaredMahalanobis(PRECISION)
    assert SquaredMahalanobis(PRECISION) != SquaredMahalanobis(PRECISION * 2)
    assert SquaredMahalanobis([1.0, 1.0]) != SquaredMahalanobis(np.eye(2))


def test_resolve_divergence__knows_names_and_objects() -> None:
    assert list(DIVERGENCES) == ["squared_euclidean", "mahalanobis", "kl", "itakura_saito"]
    for name, kind in DIVERGENCES.items():
        assert resolve_divergence(name) == kind()
    assert resolve_divergence(ALL[1]) is ALL[1]


def test_resolve_divergence__lists_the_known_names() -> None:
    known = "'squared_euclidean', 'mahalanobis', 'kl', 'itakura_saito'"
    with pytest.raises(InvalidInputError, match=f"'cosine' is unknown; the known ones are {known}"):
        resolve_divergence("cosine")
    with pytest.raises(InvalidTypeError, match=f"got 3; the known names are {known}"):
        resolve_divergence(3)  # type: ignore[arg-type]


# --- tiles, products and summaries --------------------------------------------------------


@each_divergence
def test_nearest__is_the_smallest_of_the_table(divergence: Divergence) -> None:
    x, centers = gamma(30_000, 3), gamma(9, 3, seed=1)
    table = plain(divergence, x, centers)

    labels, smallest = divergence.nearest(x, centers)

    np.testing.assert_array_equal(labels, table.argmin(axis=1))
    np.testing.assert_allclose(smallest, table.min(axis=1), rtol=1e-7, atol=1e-13)
    assert divergence.nearest(x, np.repeat(centers, 2, axis=0))[0].tolist() == (labels * 2).tolist()


def test_divergence__takes_sparse_rows_and_none() -> None:
    x = gamma(6, 3)
    for divergence in ALL:
        np.testing.assert_array_equal(
            divergence.divergence(sp.csr_array(x), x[:2]), divergence.divergence(x, x[:2])
        )
        np.testing.assert_allclose(
            divergence.to_mean(sp.csr_array(x), x[0]), divergence.to_mean(x, x[0]), rtol=1e-12
        )
        assert divergence.divergence(x[:0], x[:2]).shape == (0, 2)
        assert divergence.nearest(x[:0], x[:2])[0].shape == (0,)


@pytest.mark.parametrize(
    ("n", "inner", "width"), [(5000, 20, 100), (129, 20, 100), (33, 700, 700), (3, 9000, 2)]
)
def test_product__has_the_same_bits_on_any_number_of_threads(
    n: int, inner: int, width: int
) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(n, inner)), rng.normal(size=(inner, width))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(product(left, right))

    np.testing.assert_allclose(found[0], left @ right, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(found[0], found[1])


def test_box_of__holds_the_rows_that_count() -> None:
    points, weights = gamma(20, 3), np.arange(20.0)
    points[0] = 1e20  # without weight
    for rows in (points, sp.csr_array(points)):
        merged = merge_boxes(box_of(rows[:7], weights[:7]), box_of(rows[7:], weights[7:]))
        np.testing.assert_array_equal(merged.low, points[1:].min(axis=0))
        np.testing.assert_array_equal(merged.high, points[1:].max(axis=0))


def test_box_of__counts_the_zeros_of_sparse_rows() -> None:
    box = box_of(sp.csr_array(np.array([[0.0, 3.0], [2.0, 4.0]])), np.ones(2))

    assert (box.low.tolist(), box.high.tolist()) == ([0.0, 3.0], [2.0, 4.0])


def test_box_of__no_rows_is_neutral() -> None:
    box, empty = box_of(np.ones((2, 3)), np.ones(2)), box_of(np.ones((1, 3)), np.zeros(1))

    assert isinstance(empty, Box)
    for merged in (merge_boxes(box, empty), merge_boxes(empty, box)):
        assert (merged.low.tolist(), merged.high.tolist()) == ([1.0] * 3, [1.0] * 3)


@pytest.mark.parametrize("sparse", [False, True])
def test_scatter_of__merges_to_the_weighted_covariance(sparse: bool) -> None:
    points, weights = gamma(2000, 4) + 1e6, gamma(2000, seed=1)
    weights[:3] = 0.0
    expected = np.cov(points.T, aweights=weights, ddof=0)
    points[:3] = 1e20
    rows: Any = sp.csr_array(points) if sparse else points

    parts = [scatter_of(rows[i:j], weights[i:j]) for i, j in [(0, 3), (3, 700), (700, 2000)]]

    for merged in (
        merge_scatters(merge_scatters(parts[0], parts[1]), parts[2]),
        merge_scatters(parts[1], merge_scatters(parts[2], parts[0])),
    ):
        assert merged.weight == pytest.approx(weights.sum())
        np.testing.assert_allclose(merged.mean, np.average(points, axis=0, weights=weights))
        np.testing.assert_allclose(merged.covariance, expected, rtol=1e-6, atol=1e-8)
