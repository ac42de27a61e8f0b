"""Exchanges of components: what they promise before any iteration of EM, and where they lead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.mixture import split_merge
from daskcoreset.solvers.mixture.em import fit_before_steps, fit_mixture
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    Mixture,
    component_densities,
    mixture_from_covariances,
    responsibilities,
    score_samples,
)
from daskcoreset.solvers.mixture.split_merge import exchanges
from daskcoreset.solvers.mixture.steps import moments_of_components
from tests.tools.gaussian_mixtures import blobs, dense_covariances, mixture_of

KINDS: tuple[CovarianceType, ...] = get_args(CovarianceType)
kinds = pytest.mark.parametrize("kind", KINDS)


def shares_of(X: FloatArray, seed: int = 0) -> FloatArray:
    shares = np.random.default_rng(seed).lognormal(size=len(X))
    return np.asarray(shares / shares.sum())


def proposed(mixture: Mixture, X: FloatArray, count: int = 6, **options: Any) -> list[Mixture]:
    shares = options.pop("shares", shares_of(X))
    given: dict[str, Any] = {"reg_covar": 1e-6, "rng": np.random.default_rng(0)} | options
    return exchanges(mixture, X, shares, count, **given)


def likelihood(mixture: Mixture, X: FloatArray, shares: FloatArray) -> float:
    return float(shares @ score_samples(mixture, X))


@kinds
def test_component_densities__are_those_of_the_formula(kind: CovarianceType) -> None:
    mixture, X = mixture_of(kind), blobs(d=2)
    expected = [
        multivariate_normal(mean, covariance).logpdf(X)
        for mean, covariance in zip(mixture.means, dense_covariances(mixture), strict=True)
    ]
    found = component_densities(mixture, X)
    np.testing.assert_allclose(found, expected)
    logs = np.log(mixture.weights)[:, np.newaxis]
    np.testing.assert_allclose(logsumexp(found + logs, axis=0), score_samples(mixture, X))


@kinds
def test_exchanges__come_in_the_order_of_their_likelihoods(kind: CovarianceType) -> None:
    X = blobs(n=300, d=2, k=5)
    mixture = fit_mixture(X, n_components=4, covariance_type=kind, random_state=0).mixture
    shares = shares_of(X)
    found = [likelihood(one, X, shares) for one in proposed(mixture, X, 20, shares=shares)]
    assert len(found) > 5
    assert found == sorted(found, reverse=True)


@pytest.mark.nightly
@kinds
def test_exchanges__merge_two_and_leave_the_others(kind: CovarianceType) -> None:
    X, mixture = blobs(n=300, d=2), mixture_of(kind, k=5)
    for one in proposed(mixture, X, 20):
        kept = (one.means == mixture.means).all(axis=1)
        assert kept.sum() == 3
        merged, new = np.flatnonzero(~kept)
        # Of all others the shares are scaled alike, to make room for the new component.
        scale = 1.0 - one.weights[new]
        np.testing.assert_allclose(one.weights[kept], scale * mixture.weights[kept])
        pair = mixture.weights[[merged, new]]
        np.testing.assert_allclose(one.weights[merged], scale * pair.sum())
        mean = pair @ mixture.means[[merged, new]] / pair.sum()
        np.testing.assert_allclose(one.means[merged], mean)
        if kind == "tied":
            assert one.covariances is mixture.covariances
            continue
        before, after = dense_covariances(mixture), dense_covariances(one)
        np.testing.assert_array_equal(after[kept], before[kept])
        gaps = mixture.means[[merged, new]] - mean
        spread = before[[merged, new]] + gaps[:, :, np.newaxis] * gaps[:, np.newaxis]
        expected = np.einsum("p,pij->ij", pair / pair.sum(), spread)
        if kind == "spherical":
            expected = np.eye(2) * np.trace(expected) / 2
        elif kind == "diag":
            expected = np.diag(np.diag(expected))
        np.testing.assert_allclose(after[merged], expected, atol=1e-12)


@pytest.mark.nightly
def test_merged_components__are_those_that_share_most_of_their_rows() -> None:
    X, mixture = blobs(n=300, d=2), mixture_of("diag", k=5)
    shares, posterior = shares_of(X), responsibilities(mixture, X).T
    rows = split_merge._Rows(X, shares, score_samples(mixture, X), posterior)
    found = split_merge._merged(mixture, rows)
    roots = posterior * np.sqrt(shares)
    cosines = roots @ roots.T / np.linalg.norm(roots, axis=1)
    expected = set()
    for one in range(5):
        overlap = cosines[one] / np.linalg.norm(roots, axis=1)[one]
        nearest = max(set(range(5)) - {one}, key=overlap.__getitem__)
        expected.add((min(one, nearest), max(one, nearest)))
    assert sorted(map(tuple, found.of.tolist())) == sorted(expected)
    for (first, second), gain, mean in zip(found.of, found.gains, found.means, strict=True):
        weights = np.delete(mixture.weights, second)
        weights[first] = mixture.weights[[first, second]].sum()
        means, variances = (
            np.delete(each, second, axis=0) for each in (mixture.means, mixture.covariances)
        )
        part = mixture.weights[[first, second]] / weights[first]
        means[first] = part @ mixture.means[[first, second]]
        between = (mixture.means[[first, second]] - means[first]) ** 2
        variances[first] = part @ (mixture.covariances[[first, second]] + between)
        np.testing.assert_allclose(mean, means[first])
        less = mixture_from_covariances("diag", weights, means, variances)
        fall = likelihood(less, X, shares) - likelihood(mixture, X, shares)
        assert gain == pytest.approx(fall)


@pytest.mark.nightly
def test_merged_components__are_two_where_none_share_rows() -> None:
    X = np.repeat([[0.0], [1e3], [2e3]], 20, axis=0)
    means = np.array([[0.0], [1e3], [2e3]])
    mixture = mixture_from_covariances("diag", np.full(3, 1 / 3), means, np.ones((3, 1)))
    rows = split_merge._Rows(
        X, np.full(60, 1 / 60), score_samples(mixture, X), responsibilities(mixture, X).T
    )
    pairs = split_merge._merged(mixture, rows).of
    assert (pairs[:, 0] < pairs[:, 1]).all()


@pytest.mark.nightly
def test_new_components__are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of a component, and EM of one component beside a mixture that stays as it is."""
    monkeypatch.setattr(split_merge, "_HALVINGS", 1)
    X, mixture = blobs(n=200, d=2), mixture_of("full")
    shares = shares_of(X)
    density, posterior = score_samples(mixture, X), responsibilities(mixture, X).T
    rows = split_merge._Rows(X, shares, density, posterior)
    found = split_merge._new(mixture, rows, 1e-3, np.random.default_rng(3))

    rng, expected = np.random.default_rng(3), []
    order = np.sort(rng.permutation(3))
    for component in order:
        own = shares * posterior[component]
        first, second = X[rng.choice(len(X), 2, p=own / own.sum())]
        scale = np.sqrt(np.diag(mixture.covariances[component]))
        near = (((X - first) / scale) ** 2).sum(1) < (((X - second) / scale) ** 2).sum(1)
        for half in (near, ~near):
            pull = own * half
            for step in range(4):
                weight = pull.sum()
                mean = pull @ X / weight
                covariance = (X - mean).T @ ((X - mean) * pull[:, None]) / weight
                covariance += 1e-3 * np.eye(2)
                ratio = multivariate_normal(mean, covariance).pdf(X) / np.exp(density)
                total = 1.0 - weight + weight * ratio
                gain = shares @ np.log(total)
                if step < 3:
                    pull = shares * weight * ratio / total
            expected.append((weight, *mean, *covariance.ravel(), gain))
    ours = np.column_stack(
        [found.weights, found.means, found.covariances.reshape(-1, 4), found.gains]
    )
    ordered = sorted(expected, key=lambda one: -one[-1])
    np.testing.assert_allclose(ours[np.argsort(-found.gains)], ordered, rtol=1e-7)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@kinds
def test_exchanges__lead_out_of_an_optimum_in_which_em_stays(kind: CovarianceType) -> None:
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [60.0, 0.0], [60.0, 15.0]], 60, axis=0) + rng.normal(size=(180, 2))
    options: dict[str, Any] = {"n_components": 3, "covariance_type": kind}
    # Two components for the first cluster, one for the others.
    means = np.array([[-1.0, 0.0], [1.0, 0.0], [60.0, 7.5]])
    stuck = fit_mixture(X, means_init=means, **options)
    for extra in (5, 50):
        again = fit_mixture(X, warm_start=stuck, max_iter=extra, tol=0.0, **options)
        assert (again.mixture.means[:, 0] < 30).sum() == 2
    shares = np.full(len(X), 1 / len(X))
    best = proposed(stuck.mixture, X, 1, shares=shares)[0]
    assert (best.means[:, 0] < 30).sum() == 1
    fit = fit_mixture(X, warm_start=fit_before_steps(best), **options)
    assert fit.lower_bound > stuck.lower_bound + 0.3
    gaps = np.abs(fit.mixture.means - np.array([[[0, 0]], [[60, 0]], [[60, 15]]])).max(axis=2)
    assert (gaps.min(axis=1) < 0.6).all()


@pytest.mark.nightly
@kinds
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 6), d=st.integers(1, 4))
def test_exchanges__are_mixtures(kind: CovarianceType, seed: int, k: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy(size=(60, d)).round(1)  # some are equal, some far out
    scale = np.abs(X).mean()
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[kind]
    matrix = np.eye(d) if kind in ("full", "tied") else 1.0
    weights = rng.dirichlet(np.full(k, 0.3))
    mixture = mixture_from_covariances(
        kind, weights, rng.normal(size=(k, d)) * scale, np.broadcast_to(scale**2 * matrix, shape)
    )
    for one in proposed(mixture, X, rng=rng):
        assert one.covariance_type == kind
        assert one.means.shape == (k, d)
        assert one.covariances.shape == shape
        assert (one.weights >= 0.0).all()
        assert one.weights.sum() == pytest.approx(1.0)
        assert np.isfinite(likelihood(one, X, shares_of(X)))


@pytest.mark.nightly
@kinds
def test_exchanges__of_hostile_rows(kind: CovarianceType) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[0] = 1e80  # its density is zero: the square overflows no float, its product does
    mixture = mixture_of(kind, k=4)
    dead = replace(mixture, weights=np.array([0.0, 0.5, 0.5, 0.0]))
    for some in (mixture, dead):
        found = proposed(some, X, shares=np.full(40, 1 / 40))
        assert found
        for one in found:
            assert np.isfinite(one.means).all()
            assert np.isfinite(one.covariances).all()
    assert proposed(mixture, np.ones((40, 2)))  # all rows are equal
    assert len(proposed(mixture_of(kind, k=2), X, 3)) <= 3


@pytest.mark.nightly
@kinds
def test_exchanges__need_no_regularisation(kind: CovarianceType) -> None:
    """Halves of few rows have singular covariances."""
    X = np.random.default_rng(0).normal(size=(30, 4)) * 1e6
    options: dict[str, Any] = {"n_components": 3, "covariance_type": kind, "reg_covar": 1e6}
    mixture = fit_mixture(X, random_state=0, **options).mixture
    assert proposed(mixture, X, reg_covar=0.0)


@pytest.mark.nightly
def test_exchanges__of_many_components_halve_some(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    mixture = mixture_from_covariances(
        "full", np.full(130, 1 / 130), X[:130], np.broadcast_to(np.eye(2) * 0.1, (130, 2, 2))
    )
    sizes = []

    def recorded(tile: FloatArray, shares: FloatArray, kind: Any) -> Any:
        sizes.append(len(shares))
        return moments_of_components(tile, shares, kind)

    monkeypatch.setattr(split_merge, "moments_of_components", recorded)
    assert len(proposed(mixture, X)) == 6
    assert sizes[0] <= 200
    assert sizes[2:] == [20, 20]  # of those that gain most
    sizes.clear()
    monkeypatch.setattr(split_merge, "_MAX_NUMBERS", 80)  # of ten matrices in two rows each
    assert proposed(mixture, X)
    assert sizes[0] <= 20
