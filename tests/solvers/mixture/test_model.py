"""Mixtures: parameters, densities, and rows drawn from them."""

from __future__ import annotations

import tracemalloc
from typing import Any, get_args

import numpy as np
import pytest
import scipy.stats

from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    assign,
    mixture_from_covariances,
    responsibilities,
    sample,
    score_samples,
)
from tests.tools.gaussian_mixtures import (
    assert_same_mixture,
    blobs,
    dense_covariances,
    mixture_from_precisions,
    mixture_of,
    precisions_of,
)

KINDS: tuple[CovarianceType, ...] = get_args(CovarianceType)
kinds = pytest.mark.parametrize("kind", KINDS)


def plain_log_densities(mixture: MixtureModel, X: FloatArray) -> FloatArray:
    """The same by SciPy, which knows nothing of Cholesky factors of precisions."""
    normals = zip(mixture.means, dense_covariances(mixture), strict=True)
    return np.stack([scipy.stats.multivariate_normal(m, c).logpdf(X) for m, c in normals], axis=1)


@kinds
def test_score_samples__is_that_of_scipy(kind: CovarianceType) -> None:
    X, mixture = blobs(d=2), mixture_of(kind)
    plain = plain_log_densities(mixture, X)
    joint = plain + np.log(mixture.weights)

    np.testing.assert_allclose(
        score_samples(mixture, X), np.logaddexp.reduce(joint, axis=1), rtol=1e-10
    )
    np.testing.assert_allclose(responsibilities(mixture, X), scipy.special.softmax(joint, axis=1))
    np.testing.assert_array_equal(assign(mixture, X), joint.argmax(axis=1))


@kinds
def test_mixture__precisions_are_inverse_covariances(kind: CovarianceType) -> None:
    mixture = mixture_of(kind)
    again = mixture_from_covariances(kind, mixture.weights, mixture.means, mixture.covariances)

    np.testing.assert_allclose(mixture.precisions, precisions_of(kind, 3, 2), rtol=1e-10)
    assert_same_mixture(again, mixture, 1e-9)


def test_score_samples__holds_tiles_only() -> None:
    n, d, k = 20_000, 5, 200  # n k d numbers are 160 MB, n k are 32 MB, X is 0.8 MB
    X = np.random.default_rng(0).normal(size=(n, d))
    start = mixture_from_covariances("diag", np.full(k, 1 / k), X[:k], np.ones((k, d)))

    def peak(f: Any) -> float:
        tracemalloc.start()
        try:
            f()
            return tracemalloc.get_traced_memory()[1] / 2**20
        finally:
            tracemalloc.stop()

    assert peak(lambda: score_samples(start, X)) < 12
    assert peak(lambda: assign(start, X)) < 12


@kinds
def test_responsibilities__of_rows_beyond_float64_are_the_weights(kind: CovarianceType) -> None:
    mixture = mixture_of(kind)
    X = np.array([[0.0, 0.0], [1e200, -1e200], [1e308, 1e308], [1e140, 0.0]])

    shares = responsibilities(mixture, X)
    np.testing.assert_array_equal(shares[1:3], np.tile(mixture.weights, (2, 1)))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isneginf(score_samples(mixture, X)).tolist() == [False, True, True, False]


def test_score_samples__overflow_of_either_sign_is_no_nan() -> None:
    precisions = np.array([[[100.0, -99.0], [-99.0, 100.0]]])
    mixture = mixture_from_precisions("full", np.ones(1), np.zeros((1, 2)), precisions)
    X = np.full((1, 2), 1e308)  # its product with the factor is inf - inf

    assert score_samples(mixture, X) == -np.inf
    assert responsibilities(mixture, X) == 1.0


@kinds
def test_sample__has_the_moments_of_the_mixture(kind: CovarianceType) -> None:
    mixture, n = mixture_of(kind), 60_000
    X, labels = sample(mixture, n, random_state=1)

    assert X.shape == (n, 2)
    assert labels.dtype == np.int64
    np.testing.assert_allclose(np.bincount(labels) / n, mixture.weights, atol=5 * 0.5 / n**0.5)
    for k, covariance in enumerate(dense_covariances(mixture)):
        rows = X[labels == k]
        error = 6 * np.trace(covariance) / len(rows) ** 0.5
        np.testing.assert_allclose(np.cov(rows.T), covariance, atol=error)
        error = 6 * (np.trace(covariance) / len(rows)) ** 0.5
        np.testing.assert_allclose(rows.mean(axis=0), mixture.means[k], atol=error)
