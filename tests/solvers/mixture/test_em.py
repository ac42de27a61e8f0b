"""Weighted EM for Gaussian mixtures: scikit-learn where weights are one, repetition elsewhere."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.solvers.mixture.em import (
    MixtureFit,
    expectation,
    fit_mixture,
    iterate,
    maximisation,
)
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    responsibilities,
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


def parts_of(kind: CovarianceType, X: FloatArray, k: int = 3) -> tuple[FloatArray, ...]:
    """Weights, means and precisions of a start, so that no random number matters."""
    weights = np.arange(1.0, k + 1) / (k * (k + 1) / 2)
    return weights, X[:k], precisions_of(kind, k, X.shape[1])


def fit_from(
    kind: CovarianceType,
    X: FloatArray,
    u: FloatArray,
    max_iter: int = 500,
    *,
    tol: float = 0.0,
    reg_covar: float = 1e-6,
    first: FloatArray | None = None,
) -> MixtureFit:
    """Fit from a start in the first rows."""
    start = mixture_from_precisions(kind, *parts_of(kind, X if first is None else first))
    return iterate(X, u, MixtureFit(start), max_iter, tol=tol, reg_covar=reg_covar)


@pytest.mark.usefixtures("quiet")
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32 - 1))
def test_fit_mixture__integer_weights_equal_repeated_rows(kind: CovarianceType, seed: int) -> None:
    X = blobs(seed, n=80)
    counts = np.random.default_rng(seed).integers(0, 5, size=len(X))
    # Precisions of a component on two or three rows would show the rounding of its variances.
    fit = partial(fit_from, kind, max_iter=8, reg_covar=0.1, first=X[:3])
    weighted = fit(X, counts.astype(float))
    rows = np.repeat(X, counts, axis=0)
    repeated = fit(rows, np.ones(len(rows)))

    assert_same_mixture(weighted.mixture, repeated.mixture, 1e-9)
    np.testing.assert_allclose(weighted.lower_bounds, repeated.lower_bounds, rtol=1e-9)


def test_fit_mixture__rows_without_weight_may_hold_anything() -> None:
    X = blobs()
    bad = np.array([[np.nan] * 3, [np.inf] * 3])
    u = np.random.default_rng(0).random(len(X)) + 0.1
    expected = fit_mixture(X, u, n_components=3, random_state=0)
    both = np.vstack([bad, X]), np.concatenate([[0.0, 0.0], u])
    fit = fit_mixture(*both, n_components=3, random_state=0)

    np.testing.assert_array_equal(fit.mixture.means, expected.mixture.means)


@pytest.mark.usefixtures("quiet")
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 4),
    uneven=st.floats(0, 3),
)
def test_fit_mixture__likelihood_never_decreases(
    kind: CovarianceType, seed: int, k: int, uneven: float
) -> None:
    X = blobs(seed, n=120, d=2)
    u = np.exp(uneven * np.random.default_rng(seed).normal(size=len(X)))
    try:
        fit = fit_mixture(
            X,
            u,
            n_components=k,
            covariance_type=kind,
            init_params="k-means++" if seed % 2 else "kmeans",
            reg_covar=0.0,  # with it, EM ascends something else
            tol=0.0,
            max_iter=20,
            random_state=seed,
        )
    except InvalidInputError as error:
        assert "reg_covar" in str(error)  # noqa: PT017  # the example is given up, not passed
        assume(False)
    # Nor is a component on its way to a single point: its likelihood has no bound, and its
    # density no digits.
    assume(np.linalg.eigvalsh(dense_covariances(fit.mixture)).min() > 1e-6)

    scale = 1.0 + np.abs(fit.lower_bounds).max()
    assert (np.diff(fit.lower_bounds) >= -1e-12 * scale).all()
    total = float(u.sum())
    last = float(u @ score_samples(fit.mixture, X))
    assert last / total >= fit.lower_bound - 1e-12 * scale


@pytest.mark.usefixtures("quiet")
def test_fit_mixture__keeps_the_best_of_its_starts() -> None:
    X = blobs(k=6, spread=8.0)
    fit = partial(fit_mixture, X, np.ones(len(X)), n_components=6, max_iter=20)
    tried = []

    def judge(mixture: Any) -> float:
        tried.append(-float(mixture.means[0, 0]))
        return tried[-1]

    best = fit(random_state=0, n_init=2, judge=judge).mixture
    assert len(set(tried)) > 1, "the starts are all alike: the test shows nothing"
    assert -float(best.means[0, 0]) == max(tried)
    assert fit(random_state=0, n_init=6).lower_bound >= fit(random_state=0).lower_bound


@kinds
def test_fit_mixture__float32_with_an_offset_loses_nothing(kind: CovarianceType) -> None:
    # Multiples of 1/8: exact in float32 at 1e6, so that the offset alone can do harm.
    near = np.round(blobs() * 8) / 8
    far = (near + 1e6).astype(np.float32)
    options: Any = {"n_components": 3, "covariance_type": kind, "random_state": 0}
    expected = fit_mixture(near, np.ones(len(near)), **options)
    fit = fit_mixture(far, np.ones(len(near)), **options)

    np.testing.assert_allclose(fit.mixture.means - 1e6, expected.mixture.means, atol=1e-6)
    np.testing.assert_allclose(fit.mixture.covariances, expected.mixture.covariances, rtol=1e-6)
    np.testing.assert_allclose(
        score_samples(fit.mixture, far), score_samples(expected.mixture, near), atol=1e-6
    )


@kinds
def test_fit_mixture__narrow_clusters_far_apart_keep_their_covariance(
    kind: CovarianceType,
) -> None:
    rng = np.random.default_rng(0)
    near, gap = rng.normal(size=(300, 2)), np.array([1e7, 0.0])
    X = np.vstack([near, near + gap])
    fit = fit_mixture(
        X, np.ones(600), n_components=2, covariance_type=kind, reg_covar=0.0, random_state=0
    )

    expected = np.cov(near.T, ddof=0)
    for covariance in dense_covariances(fit.mixture):
        if kind in ("full", "tied"):
            np.testing.assert_allclose(covariance, expected, atol=1e-7)
        assert np.trace(covariance) == pytest.approx(np.trace(expected), rel=1e-7)


@kinds
def test_fit_mixture__duplicated_points_get_the_variance_of_reg_covar(
    kind: CovarianceType,
) -> None:
    centers = np.array([[0.0, 0.0], [1e6, 3.0], [7.0, -1e6]])
    fit = fit_mixture(
        centers,
        np.array([5.0, 1.0, 9.0]),
        n_components=3,
        covariance_type=kind,
        reg_covar=1e-3,
        random_state=0,
    )

    order = np.lexsort(centers.T)
    np.testing.assert_allclose(
        fit.mixture.means[np.lexsort(fit.mixture.means.T)], centers[order], atol=1e-6
    )
    np.testing.assert_allclose(dense_covariances(fit.mixture), 1e-3 * np.eye(2)[None].repeat(3, 0))
    np.testing.assert_allclose(np.sort(fit.mixture.weights), np.array([1, 5, 9]) / 15)


@kinds
def test_iterate__component_that_loses_its_weight_stays_put(kind: CovarianceType) -> None:
    X = blobs(k=1, d=2)
    far = np.array([1e4, 0.0])
    precisions = np.abs(precisions_of(kind, 3, 2))
    precisions = precisions + (0 if kind in ("diag", "spherical") else 5 * np.eye(2))
    start = mixture_from_precisions(kind, np.full(3, 1 / 3), np.vstack([X[:2], far]), precisions)
    fit = iterate(X, np.ones(len(X)), MixtureFit(start), 5, tol=0.0, reg_covar=1e-6)

    assert fit.mixture.weights[2] == 0.0
    np.testing.assert_allclose(fit.mixture.means[2], far)
    if kind != "tied":
        np.testing.assert_array_equal(fit.mixture.covariances[2], start.covariances[2])
    shares = responsibilities(fit.mixture, X)
    assert (shares[:, 2] == 0.0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isfinite(score_samples(fit.mixture, X)).all()


@pytest.mark.parametrize("distinct", [1, 2, 4])
def test_fit_mixture__refuses_more_components_than_distinct_rows(distinct: int) -> None:
    X = np.arange(300.0)[:, np.newaxis] % distinct
    u = np.ones(300)
    X, u = np.append(X, [[99.0]], axis=0), np.append(u, 0.0)  # without a weight it does not count
    with pytest.raises(InvalidInputError, match=f"X has only {distinct} distinct rows"):
        fit_mixture(X, u, n_components=distinct + 1)

    fit = fit_mixture(X, u, n_components=distinct, init_params="k-means++", random_state=0)
    np.testing.assert_allclose(np.sort(fit.mixture.means[:, 0]), np.arange(distinct), atol=1e-6)


@kinds
def test_fit_mixture__singular_covariance_names_reg_covar(kind: CovarianceType) -> None:
    fit = partial(fit_mixture, np.zeros((20, 2)) + 0.1, np.ones(20), n_components=1)
    with pytest.raises(InvalidInputError, match=f"type '{kind}'.*Increase reg_covar"):
        fit(reg_covar=0.0, covariance_type=kind)
    assert np.isfinite(fit(covariance_type=kind).lower_bound)


@kinds
def test_fit_mixture__variance_that_is_rounding_counts_as_zero(kind: CovarianceType) -> None:
    # One point of its own: its weighted mean is rounded, so that its variance is not quite zero.
    one = np.array([1e3 / 3, 1e5 / 7])
    X = np.vstack([blobs(d=2, k=1, spread=0.0), one, one * (1 + 1e-15)])
    u = np.random.default_rng(0).random(len(X))
    fit = partial(fit_mixture, X, u, n_components=2, covariance_type=kind, random_state=0)
    if kind == "tied":  # the other rows keep it from being singular
        assert fit(reg_covar=0.0).converged
    else:
        with pytest.raises(InvalidInputError, match="Increase reg_covar"):
            fit(reg_covar=0.0)
    assert fit().converged


@kinds
def test_maximisation__is_the_weighted_mean_and_covariance(kind: CovarianceType) -> None:
    X, u = blobs(d=2), np.random.default_rng(0).random(400)
    start = mixture_of(kind)
    shares = expectation(start, X, u)[1]
    fitted = maximisation(X, shares, kind, start, reg_covar=0.5)

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
