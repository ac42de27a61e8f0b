"""The two steps of EM, of blocks and of all rows."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from daskcoreset.solvers.mixture.model import CovarianceType, responsibilities
from daskcoreset.solvers.mixture.steps import expectation, maximisation
from tests.tools.gaussian_mixtures import blobs, mixture_of

KINDS: tuple[CovarianceType, ...] = get_args(CovarianceType)
kinds = pytest.mark.parametrize("kind", KINDS)


@kinds
def test_maximisation__is_the_weighted_mean_and_covariance(kind: CovarianceType) -> None:
    X, u = blobs(d=2), np.random.default_rng(0).random(400)
    start = mixture_of(kind)
    fitted = maximisation(expectation(start, X, u), kind, start, reg_covar=0.5)

    r = u[:, np.newaxis] * responsibilities(start, X)
    shares = r.sum(axis=0) / u.sum()
    means = np.stack([np.average(X, axis=0, weights=w) for w in r.T])
    full = np.stack([np.cov(X.T, aweights=w, ddof=0) for w in r.T])
    covariances = {
        "full": full + 0.5 * np.eye(2),
        "tied": np.tensordot(shares, full, 1) + 0.5 * np.eye(2),
        "diag": np.diagonal(full, axis1=1, axis2=2) + 0.5,
        "spherical": np.diagonal(full, axis1=1, axis2=2).mean(axis=1) + 0.5,
    }
    np.testing.assert_allclose(fitted.weights, shares, rtol=1e-12)
    np.testing.assert_allclose(fitted.means, means, rtol=1e-10)
    np.testing.assert_allclose(fitted.covariances, covariances[kind], rtol=1e-10)


@kinds
def test_expectation__of_many_tiles_is_that_of_one(
    kind: CovarianceType, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, u = blobs(d=3) + 100.0, np.random.default_rng(0).random(400)
    mixture = mixture_of(kind, k=3, d=3)  # d = k: the shapes of diag and tied are the same
    whole = expectation(mixture, X, u)
    monkeypatch.setattr("daskcoreset.core.linalg._TILE_NUMBERS", 100)
    parts = expectation(mixture, X, u)
    for name in ("log_likelihood", "weight", "mean", "scatter"):
        found, expected = getattr(parts, name), getattr(whole, name)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)
