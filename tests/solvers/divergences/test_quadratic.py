"""Squared distances: precisions, whitening, covariances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from daskcoreset.core.linalg import dense
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.solvers.divergences import (
    KullbackLeibler,
    SquaredEuclidean,
    SquaredMahalanobis,
)
from tests.tools.divergences import ALL, PRECISION, gamma


def test_divergence__of_an_ill_conditioned_precision() -> None:
    """Columns that nearly agree: the small eigenvalue must survive the products."""
    basis = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2.0)
    distance = SquaredMahalanobis(basis @ np.diag([1.0, 1e10]) @ basis)
    x = np.array([[3.0, 4.0], [1.0, 1.0]])

    table = distance.divergence(x, np.array([[1.0, 1.0], [100.0, 100.0], [0.0, 1.0]]))

    gaps = x[:, None] - np.array([[1.0, 1.0], [100.0, 100.0], [0.0, 1.0]])
    expected = (gaps @ basis) ** 2 @ np.array([1.0, 1e10])
    np.testing.assert_allclose(table, expected, rtol=1e-5)


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


def test_mahalanobis__does_not_mind_the_units_of_columns() -> None:
    scale = np.array([1e-9, 1.0, 1e9])

    distance = SquaredMahalanobis(PRECISION * scale * scale[:, None])

    x, y = gamma(5, 3), gamma(4, 3, seed=1)
    np.testing.assert_allclose(
        distance.divergence(x / scale, y / scale),
        SquaredMahalanobis(PRECISION).divergence(x, y),
        rtol=1e-9,
    )


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
