"""Gaussian mixtures: rows, parameters, and plain formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    mixture_from_covariances,
)


def blobs(seed: int = 0, n: int = 400, d: int = 3, k: int = 4, spread: float = 3.0) -> FloatArray:
    """Correlated, overlapping clusters of uneven size."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, size=n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    shapes = rng.normal(size=(k, d, d)) + np.eye(d)
    noise = np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, d)))
    return np.asarray(rng.normal(size=(k, d))[labels] * spread + noise)


def precisions_of(kind: CovarianceType, k: int, d: int, seed: int = 0) -> FloatArray:
    """Positive definite precisions that are not diagonal."""
    rng = np.random.default_rng(seed)
    roots = np.eye(d) + 0.3 * rng.normal(size=(k, d, d))
    full = roots @ roots.swapaxes(1, 2)
    diagonals = np.diagonal(full, axis1=1, axis2=2)
    choices = {"full": full, "tied": full[0], "diag": diagonals, "spherical": diagonals[:, 0]}
    return np.array(choices[kind])


def mixture_from_precisions(
    kind: CovarianceType, weights: FloatArray, means: FloatArray, precisions: FloatArray
) -> MixtureModel:
    """Return a mixture with inverse covariances, as ``precisions_init`` states them."""
    inverse: Any = np.linalg.inv if kind in ("full", "tied") else np.reciprocal
    return mixture_from_covariances(kind, weights, means, inverse(precisions))


def mixture_of(kind: CovarianceType, k: int = 3, d: int = 2) -> MixtureModel:
    rng = np.random.default_rng(5)
    weights = np.arange(1.0, k + 1) / (k * (k + 1) / 2)
    return mixture_from_precisions(
        kind, weights, rng.normal(size=(k, d)) * 3, precisions_of(kind, k, d)
    )


def dense_covariances(mixture: MixtureModel) -> FloatArray:
    k, d = mixture.means.shape
    covariances = mixture.covariances
    if mixture.covariance_type == "spherical":
        covariances = covariances[:, np.newaxis] * np.ones(d)
    if mixture.covariance_type in ("diag", "spherical"):
        covariances = covariances[:, :, np.newaxis] * np.eye(d)
    return np.broadcast_to(covariances, (k, d, d))


def assert_same_mixture(a: MixtureModel, b: Any, tolerance: float) -> None:
    underscore = "_" if isinstance(b, GaussianMixture) else ""
    for name in ("weights", "means", "covariances", "precisions_cholesky", "precisions"):
        expected = getattr(b, name + underscore)
        np.testing.assert_allclose(
            getattr(a, name), expected, rtol=tolerance, atol=tolerance, err_msg=name
        )
