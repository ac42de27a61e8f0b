r"""EM for Gaussian mixtures of weighted rows, as coresets give them.

Maximises :math:`\sum_i u_i \log \sum_k \pi_k \mathcal N(x_i; \mu_k, \Sigma_k)`, which is what
scikit-learn's GaussianMixture does if all weights are one. Parameters, iterations and stopping are
the same. A weight of two counts as two equal rows. Rows are taken about their weighted mean in
float64, so that float32 data with a large offset lose nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense, one_thread
from daskcoreset.core.moments import moments_of
from daskcoreset.core.points import deduplicate
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    count_spikes,
    mixture_from_covariances,
    posterior,
    singular_error,
    squared_lengths,
    variances_of,
)

Judge: TypeAlias = Callable[[MixtureModel], float]
InitParams: TypeAlias = Literal["kmeans", "k-means++"]

# Starts of ``n_init="auto"``. Of more components than the second number there are fewer.
_N_STARTS, _MANY_COMPONENTS = 8, 50

# Steps of each start, and how many of them go on.
_FIRST_STEPS, _KEPT = 15, 2

# Share of a component below which its sums are rounding of subnormal numbers.
_NO_WEIGHT = 1e-200

# Relative error that a component's mean may have.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A fitted mixture, and the course of EM.

    Attributes
    ----------
    mixture : MixtureModel
        Parameters after the last M step.
    converged : bool
        Whether the last change of the bound was below `tol`.
    lower_bounds : tuple of float
        Weighted mean log-likelihood at every E step, before its M step, as in scikit-learn.
    """

    mixture: MixtureModel
    converged: bool = False
    lower_bounds: tuple[float, ...] = ()

    @property
    def n_iter(self) -> int:
        """Iterations."""
        return len(self.lower_bounds)

    @property
    def lower_bound(self) -> float:
        """The last of the lower bounds. Minus infinity if no iteration was made."""
        return self.lower_bounds[-1] if self.lower_bounds else -np.inf


@one_thread()
def fit_mixture(
    X: Any,
    sample_weight: FloatArray,
    *,
    n_components: int,
    covariance_type: CovarianceType = "full",
    tol: float = 1e-3,
    reg_covar: float = 1e-6,
    max_iter: int = 100,
    n_init: int | Literal["auto"] = 1,
    init_params: InitParams | None = None,
    random_state: RandomState = None,
    judge: Judge | None = None,
) -> MixtureFit:
    r"""Fit a Gaussian mixture to weighted rows by expectation maximisation.

    Parameters
    ----------
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
        Rows in memory, such as the points of a coreset. Finite if their weight is not zero.
    sample_weight : ndarray of shape (n,), float64
        Weights that are not negative. Only their ratios matter.
    n_components : int
        Number of components k, at most the number of distinct rows.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
    tol : float, default=1e-3
        EM stops when the weighted mean log-likelihood changes by less.
    reg_covar : float, default=1e-6
        Added to all variances, so that a component on one point keeps a density.
    max_iter : int, default=100
        With 0 the starting point is returned.
    n_init : int or "auto", default=1
        Starts. The best two after 15 steps go on, and the best is kept. "auto" makes eight. Starts
        that fail are left out as long as others do not.
    init_params : {"kmeans", "k-means++"} or None, default=None
        Start of a run: clusters of k-means, or rows drawn by k-means++. None takes them in turns.
    random_state : int, Generator, RandomState or None, default=None
    judge : callable, optional
        Criterion for the best of several starts, such as the likelihood of rows held out. None
        takes the bound. A mixture never wins against one with fewer components whose least variance
        in any direction is that of `reg_covar`.

    Returns
    -------
    MixtureFit

    Raises
    ------
    InvalidInputError
        If X has fewer distinct rows than components, or if a covariance is singular in spite of
        `reg_covar`.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the best start did not converge within `max_iter` iterations.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [9.0], [9.5]])
    >>> fit = fit_mixture(rows, np.array([1.0, 1.0, 2.0, 2.0]), n_components=2, random_state=0)
    >>> np.sort(fit.mixture.weights).round(3)
    array([0.333, 0.667])

    References
    ----------
    Dempster, Laird and Rubin (1977). Biernacki, Celeux and Govaert (2003) for short runs.
    """
    rows, weights, _ = deduplicate(X, sample_weight)
    if len(weights) < n_components:
        raise InvalidInputError(
            f"n_components={n_components}, but X has only {len(weights)} distinct rows of positive "
            "weight",
            argument="n_components",
            remedy="pass a smaller n_components",
        )
    points, weights = dense(rows), weights / weights.max()  # their sum may overflow
    center = moments_of(points, weights).mean
    points = points - center
    fewer = max(2, _N_STARTS * _MANY_COMPONENTS // n_components)
    count = min(_N_STARTS, fewer) if n_init == "auto" else n_init
    rng = np.random.default_rng(resolve_seed(random_state))
    begin = partial(_begun, points, weights, n_components, covariance_type, reg_covar, rng)
    ways: tuple[InitParams, ...] = (init_params,) if init_params else ("kmeans", "k-means++")

    def go_on(fit: MixtureFit, limit: int, tol: float) -> MixtureFit:
        return iterate(points, weights, fit, min(limit, max_iter), tol=tol, reg_covar=reg_covar)

    def rank(fit: MixtureFit) -> tuple[int, float]:
        """Sort by the components that are spikes, and only then by a likelihood."""
        mixture = _moved(fit.mixture, center)
        return -count_spikes(mixture, reg_covar), judge(mixture) if judge else fit.lower_bound

    fits = _possible(partial(begin, ways[i % len(ways)]) for i in range(count))
    if len(fits) > _KEPT:
        # Components of few rows come near by less than tol in a step.
        short = _possible(partial(go_on, fit, _FIRST_STEPS, 0.1 * tol) for fit in fits)
        fits = sorted(short, key=rank, reverse=True)[:_KEPT]
    fits = _possible(partial(go_on, fit, max_iter, tol) for fit in fits)
    best = max(fits, key=rank) if len(fits) > 1 else fits[0]
    if max_iter > 0 and not best.converged:
        _warn_not_converged(max_iter, tol)
    return replace(best, mixture=_moved(best.mixture, center))


def _warn_not_converged(max_iter: int, tol: float) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        # As scikit-learn says it, to those who filter its warnings.
        f"Best performing initialization did not converge. Try different init parameters, or "
        f"increase max_iter, tol, or check for degenerate data. EM took max_iter={max_iter} "
        f"iterations, and tol={tol}.",
        ConvergenceWarning,
        stacklevel=4,
    )


def _possible(runs: Iterable[Callable[[], MixtureFit]]) -> list[MixtureFit]:
    """Return the fits of the runs that do not fail. Raise the first error if all do."""
    fits, errors = [], []
    for run in runs:
        try:
            fits.append(run())
        except InvalidInputError as error:
            errors.append(error)
    if not fits:
        raise errors[0]
    return fits


def iterate(
    points: FloatArray,
    weights: FloatArray,
    fit: MixtureFit,
    max_iter: int,
    *,
    tol: float,
    reg_covar: float,
) -> MixtureFit:
    """Go on until the bound, the weighted mean log-likelihood, changes by less than `tol`."""
    mixture, bounds, converged = fit.mixture, [*fit.lower_bounds], fit.converged
    while len(bounds) < max_iter and not converged:
        check_time("a mixture was being fitted", "pass a smaller size")
        densities, shares = expectation(mixture, points, weights)
        mixture = maximisation(points, shares, mixture.covariance_type, mixture, reg_covar)
        bounds.append(float(weights @ densities) / float(weights.sum()))
        converged = len(bounds) > 1 and abs(bounds[-1] - bounds[-2]) < tol
    return MixtureFit(mixture, converged, tuple(bounds))


def expectation(
    mixture: MixtureModel, points: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""E step. Return log-densities (n,), and shares :math:`u_i r_{ik}` of components, (k, n).

    Examples
    --------
    >>> start = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> expectation(start, np.array([[0.0], [3.0]]), np.array([2.0, 1.0]))[1]
    array([[2., 1.]])

    References
    ----------
    Dempster, Laird and Rubin (1977). Lucic, Faulkner, Krause and Feldman (2017) for the weights.
    """
    densities, shares = posterior(mixture, squared_lengths(mixture, points))
    shares *= weights
    return densities, shares


def maximisation(
    points: FloatArray,
    shares: FloatArray,
    kind: CovarianceType,
    previous: MixtureModel | None,
    reg_covar: float,
) -> MixtureModel:
    r"""M step: the mixture of the largest expected likelihood.

    Parameters
    ----------
    points : ndarray of shape (n, d), float64
    shares : ndarray of shape (k, n), float64
        Responsibilities times weights.
    kind : {"full", "tied", "diag", "spherical"}
    previous : MixtureModel or None
        Whose mean and covariance a component keeps if no weight is left in it. Its own weight is
        then zero. None at the start, where every component has some.
    reg_covar : float
        Added to all variances.

    Raises
    ------
    InvalidInputError
        If a covariance is singular in float64. The remedy names `reg_covar`.

    Examples
    --------
    >>> rows, shares = np.array([[0.0], [2.0]]), np.full((1, 2), 5.0)
    >>> mixture = maximisation(rows, shares, "diag", None, reg_covar=0.5)
    >>> mixture.weights, mixture.means, mixture.covariances
    (array([1.]), array([[1.]]), array([[1.5]]))
    """
    is_matrix = kind in ("full", "tied")
    sums = shares.sum(axis=1)
    weights = sums / sums.sum()
    gone = weights < _NO_WEIGHT
    divisors = np.where(sums > 0.0, sums, 1.0)
    means = (shares @ points) / divisors[:, np.newaxis]
    scatters = []
    for mean, share in zip(means, shares, strict=True):
        gaps = points - mean
        if is_matrix:
            # With the roots of the weights on either side the product is symmetric to the bit.
            gaps *= np.sqrt(share)[:, np.newaxis]
            scatters.append(gaps.T @ gaps)
        else:
            scatters.append(share @ np.square(gaps))
    # What the rounding of its mean alone leaves of the variance of a component on one point.
    floor = np.square(_ROUNDING * np.where(gone[:, np.newaxis], 0.0, means))
    if kind == "tied":
        covariances, floor = np.sum(scatters, axis=0) / sums.sum(), floor.max(axis=0)
    else:
        covariances = (np.stack(scatters).T / np.where(gone, 1.0, divisors)).T
    if kind == "spherical":
        covariances, floor = covariances.mean(axis=1), floor.mean(axis=1)
    covariances += reg_covar * np.eye(len(points.T)) if is_matrix else reg_covar
    if (variances_of(kind, covariances) < floor).any():
        raise singular_error(kind, covariances)
    if previous is not None and gone.any():
        means[gone] = previous.means[gone]
        if kind != "tied":
            covariances[gone] = previous.covariances[gone]
    return mixture_from_covariances(kind, weights, means, covariances)


def _begun(  # noqa: PLR0917 - all of them are always given
    points: FloatArray,
    weights: FloatArray,
    k: int,
    kind: CovarianceType,
    reg_covar: float,
    rng: np.random.Generator,
    init_params: InitParams,
) -> MixtureFit:
    """Return a start, from clusters or from k rows.

    Rows have the variance `reg_covar` and the weight 1/k each. The first E step then gives the
    others to the nearest.
    """
    from sklearn.cluster import KMeans, kmeans_plusplus

    seed = int(rng.integers(2**32))
    if init_params == "kmeans":
        labels = KMeans(k, n_init=1, random_state=seed).fit(points, sample_weight=weights).labels_
        shares = np.where(labels == np.arange(k)[:, np.newaxis], weights, 0.0)
    else:
        rows = kmeans_plusplus(points, k, sample_weight=weights, random_state=seed)[1]
        points, shares = points[rows], np.eye(k)
    return MixtureFit(maximisation(points, shares, kind, None, reg_covar))


def _moved(mixture: MixtureModel, by: FloatArray) -> MixtureModel:
    return replace(mixture, means=mixture.means + by)
