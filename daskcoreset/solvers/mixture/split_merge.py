r"""Exchanges of components: what EM cannot do from a poor optimum.

EM ends with too many components in one part of the data and too few in another, and moves none
across what lies between. An exchange merges two that share rows, and puts the one that becomes
free where it raises the likelihood most. Both are foretold from densities, without an iteration
of EM: a merged component has the moments of the two, and a new one is fitted to half of the rows of
another against the mixture as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from daskcoreset.core.moments import moments_of
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.solvers.mixture.model import (
    Mixture,
    component_densities,
    mixture_from_covariances,
    posterior,
    variances_of,
)
from daskcoreset.solvers.mixture.steps import (
    ComponentMoments,
    maximisation,
    merge_components,
    moments_of_components,
)

# Pairs of rows that halve a component, for each component and in all. With three, fits ended in
# poorer optima on two of three sets; of hundreds of components some are halved in every round.
_HALVINGS = 5
_MAX_HALVINGS = 100

# Steps of EM of new components alone; without them fits ended in poorer optima on five of five
# sets.
_PARTIAL_STEPS = 3

# Share of the data that a new component has, at least and at most.
_LEAST_SHARE, _LARGEST_SHARE = 1e-7, 0.9

# The most promising merged and new components, of which all combinations are compared.
_BEST_MERGED, _BEST_NEW = 6, 20

# Added to the variances of new components at least, in those of the columns.
_REGULARISATION = 1e-6

# Numbers in the covariances of new components, 128 MiB.
_MAX_NUMBERS = 2**24

# Densities of rows have this logarithm at least, ratios that one at most; and what is added to
# what logarithms are taken of.
_LOWEST, _LARGEST_LOG = -1e30, 700.0
_TINY = float(np.finfo(np.float64).tiny)


class _Rows(NamedTuple):
    """Rows with weights of sum one, and what a mixture says of them.

    Attributes
    ----------
    X : ndarray of shape (n, d), float64
    shares, density : ndarray of shape (n,), float64
        Weights, and log-densities.
    posterior : ndarray of shape (k, n), float64
        Responsibilities.
    """

    X: FloatArray
    shares: FloatArray
    density: FloatArray
    posterior: FloatArray


@dataclass(frozen=True, eq=False)
class _Components:
    """Components in place of others, or beside them.

    Attributes
    ----------
    weights : ndarray of shape (c,), float64
        Shares of the data.
    means : ndarray of shape (c, d), float64
    covariances : ndarray, float64
        Of the shape that belongs to c components of the type.
    of : ndarray of shape (c, 2) or (c,), int64
        The components of the mixture that were merged, or that were halved.
    ratios : ndarray of shape (c, n), float64
        Their densities over those of the mixture.
    gains : ndarray of shape (c,), float64
        Mean log-likelihood with one of them, less that of the mixture.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    of: IndexArray
    ratios: FloatArray
    gains: FloatArray

    def best(self, count: int) -> IndexArray:
        """Return the places of those with the largest gains."""
        places: IndexArray = np.argsort(-self.gains, kind="stable")[:count]
        return places


def exchanges(
    mixture: Mixture,
    X: FloatArray,
    shares: FloatArray,
    count: int,
    *,
    reg_covar: float,
    rng: np.random.Generator,
) -> list[Mixture]:
    r"""Propose mixtures of as many components in which one has moved.

    Parameters
    ----------
    mixture : Mixture
        Of two components at least.
    X : ndarray of shape (n, d), float64
        Rows in memory; arrays of shape (c, n) are made, with c up to 200.
    shares : ndarray of shape (n,), float64
        Weights of sum one.
    count : int
        Mixtures to be proposed at most.
    reg_covar : float
        Added to the variances of new components.
    rng : numpy.random.Generator
        Draws the pairs of rows that halve components.

    Returns
    -------
    list of Mixture
        The most promising first: by the likelihood before any iteration of EM.

    Raises
    ------
    InvalidInputError
        If a covariance is singular.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0], [50.0], [90.0]], 20, axis=0) + rng.normal(size=(60, 1))
    >>> means = np.array([[-1.0], [1.0], [70.0]])  # two for one cluster, one for two of them
    >>> start = mixture_from_covariances(
    ...     "spherical", np.full(3, 1 / 3), means, np.array([1.0, 1.0, 400.0])
    ... )
    >>> best = exchanges(start, X, np.full(60, 1 / 60), 1, reg_covar=1e-6, rng=rng)[0]
    >>> np.sort(best.means.ravel()) > 10
    array([False,  True,  True])

    References
    ----------
    Ueda, Nakano, Ghahramani and Hinton (2000), SMEM Algorithm for Mixture Models, for the idea and
    the pairs that are merged; Verbeek, Vlassis and Kröse (2003), Efficient Greedy Learning of
    Gaussian Mixture Models, for new components and their partial EM.
    """
    density, responsibility = posterior(mixture, X)
    rows = _Rows(X, shares, np.maximum(density, _LOWEST), responsibility)
    new = _new(mixture, rows, reg_covar, rng)
    merged = _merged(mixture, rows)
    found: list[tuple[float, int, int]] = []
    for pair in merged.best(_BEST_MERGED).tolist():
        rest = _rest(rows, merged.of[pair]) + merged.weights[pair] * merged.ratios[pair]
        gains = _mixed(new.weights, rest, new.ratios) @ shares
        found += [(gain, pair, one) for one, gain in enumerate(gains)]
    proposed: dict[tuple[int, int], Mixture] = {}
    for _, pair, one in sorted(found, reverse=True):
        key = (pair, int(new.of[one]))  # halves of one component are much the same
        if len(proposed) < count and key not in proposed:
            proposed[key] = _exchanged(mixture, merged, pair, new, one)
    return list(proposed.values())


def _new(mixture: Mixture, rows: _Rows, reg_covar: float, rng: np.random.Generator) -> _Components:
    """Halves of components, after some steps of EM in which the mixture stays as it is."""
    n_halvings = _MAX_HALVINGS
    if mixture.covariance_type == "full":
        n_halvings = max(1, min(n_halvings, _MAX_NUMBERS // (2 * mixture.covariances[0].size)))
    alive = np.flatnonzero(rows.posterior @ rows.shares > _LEAST_SHARE)
    halved = np.sort(rng.permutation(alive)[:n_halvings])
    halved = np.repeat(halved, max(1, min(_HALVINGS, n_halvings // len(halved))))
    X = rows.X
    pulls = np.empty((2 * len(halved), len(X)))
    for place, component in enumerate(halved.tolist()):
        own = rows.shares * rows.posterior[component]
        seeds = rng.choice(len(X), 2, p=own / own.sum())
        nearer = _nearer(X / _scale(mixture, component), *seeds.tolist())
        pulls[2 * place], pulls[2 * place + 1] = own * nearer, own * (1.0 - nearer)
    of = np.repeat(halved, 2)
    spread = moments_of(X, rows.shares)
    # So that one of few rows does not fail all where `reg_covar` is too small for the data.
    reg = np.maximum(reg_covar, _REGULARISATION * spread.m2 / spread.weight)
    found = _fitted(mixture, rows, of, pulls, reg)
    for step in range(_PARTIAL_STEPS):
        some = found.best(_BEST_NEW if step > 0 else len(of))  # the others are not proposed
        weights = found.weights[some, np.newaxis]
        parts = weights * found.ratios[some]
        pulls = rows.shares * parts / (1.0 - weights + parts)
        found = _fitted(mixture, rows, found.of[some], pulls, reg)
    return found


def _fitted(
    mixture: Mixture, rows: _Rows, of: IndexArray, pulls: FloatArray, reg: FloatArray
) -> _Components:
    """Components of rows with these weights in each, where these are not next to nothing."""
    weights = pulls.sum(axis=1)
    kept = weights > min(_LEAST_SHARE, 0.5 * weights.max())  # one at least
    of, pulls, weights = of[kept], pulls[kept], np.minimum(weights[kept], _LARGEST_SHARE)
    kind = "spherical" if mixture.covariance_type == "tied" else mixture.covariance_type
    fitted = _with_moments(mixture, moments_of_components(rows.X, pulls, kind), reg)
    ratios = _ratios(fitted, rows)
    gains = _mixed(weights, np.ones(len(rows.X)), ratios) @ rows.shares
    return _Components(weights, fitted.means, fitted.covariances, of, ratios, gains)


def _scale(mixture: Mixture, component: int) -> FloatArray:
    variances = variances_of(mixture.covariance_type, mixture.covariances)
    tied = mixture.covariance_type == "tied"
    return np.asarray(np.sqrt(variances if tied else variances[component]))


def _nearer(scaled: FloatArray, first: int, second: int) -> FloatArray:
    """Whether rows are nearer to the first of two, one or zero; where these are equal, none is."""
    to_first, to_second = (((scaled - scaled[seed]) ** 2).sum(axis=1) for seed in (first, second))
    return np.asarray(to_first < to_second, dtype=np.float64)


def _merged(mixture: Mixture, rows: _Rows) -> _Components:
    """Every component and the one that shares most of its rows, in one of the same moments."""
    overlap = (rows.posterior * rows.shares) @ rows.posterior.T
    overlap /= np.maximum(np.sqrt(np.diagonal(overlap)), _TINY)
    np.fill_diagonal(overlap, -1.0)
    pairs = np.column_stack([np.arange(len(overlap)), overlap.argmax(axis=1)])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    pairs = pairs[mixture.weights[pairs].sum(axis=1) > 0.0]
    first, second = (_moments(mixture, some) for some in pairs.T)
    moments = merge_components(first, second)
    fitted = _with_moments(mixture, moments, 0.0)
    ratios = _ratios(fitted, rows)
    rest = np.array([_rest(rows, pair) for pair in pairs])
    gains = np.log(rest + moments.weight[:, np.newaxis] * ratios + _TINY) @ rows.shares
    return _Components(moments.weight, fitted.means, fitted.covariances, pairs, ratios, gains)


def _rest(rows: _Rows, pair: IndexArray) -> FloatArray:
    """Share of the density of rows that others than these two components have."""
    return np.asarray(np.maximum(1.0 - rows.posterior[pair].sum(axis=0), 0.0))


def _moments(mixture: Mixture, some: IndexArray) -> ComponentMoments:
    """Moments of rows of which some components are the fit."""
    kind, weight, mean = mixture.covariance_type, mixture.weights[some], mixture.means[some]
    if kind == "tied":
        return ComponentMoments("spherical", 0.0, weight, mean, np.zeros_like(mean))
    covariances = mixture.covariances[some]
    if kind == "spherical":
        covariances = covariances[:, np.newaxis] * np.ones(mean.shape[1])
    expand = (slice(None), *[np.newaxis] * (covariances.ndim - 1))
    return ComponentMoments(kind, 0.0, weight, mean, weight[expand] * covariances)


def _with_moments(
    mixture: Mixture, moments: ComponentMoments, reg_covar: float | FloatArray
) -> Mixture:
    """Components of these moments; a tied covariance is that of the mixture."""
    if mixture.covariance_type == "tied":
        return replace(mixture, weights=moments.weight, means=moments.mean)
    return maximisation(moments, None, reg_covar)


def _ratios(components: Mixture, rows: _Rows) -> FloatArray:
    """Densities of rows in each component over those in the mixture."""
    logs = component_densities(components, rows.X) - rows.density
    return np.asarray(np.exp(np.minimum(logs, _LARGEST_LOG)))


def _mixed(weights: FloatArray, rest: FloatArray, ratios: FloatArray) -> FloatArray:
    """Logarithms of ratios of densities, with each of some components beside a rest."""
    each = weights[:, np.newaxis]
    return np.asarray(np.log((1.0 - each) * rest + each * ratios + _TINY))


def _exchanged(
    mixture: Mixture, merged: _Components, pair: int, new: _Components, one: int
) -> Mixture:
    """Return the mixture with a merged and a new component in place of a pair."""
    first, second = merged.of[pair]
    weights, means = mixture.weights.copy(), mixture.means.copy()
    weights[first], means[first] = merged.weights[pair], merged.means[pair]
    weights *= 1.0 - new.weights[one]
    weights[second], means[second] = new.weights[one], new.means[one]
    covariances = mixture.covariances
    if mixture.covariance_type != "tied":
        covariances = covariances.copy()
        covariances[first], covariances[second] = merged.covariances[pair], new.covariances[one]
    kind = mixture.covariance_type
    return mixture_from_covariances(kind, weights / weights.sum(), means, covariances)
