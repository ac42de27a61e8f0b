r"""EM for Gaussian mixtures of weighted rows, as coresets give them.

Maximises :math:`\sum_i u_i \log \sum_k \pi_k \mathcal N(x_i; \mu_k, \Sigma_k)`, which is what
scikit-learn's GaussianMixture does when all weights are one: parameters, iterations and
stopping are the same. Weight two counts as two equal rows. Rows are taken about
their weighted mean in float64, so that float32 data with a large offset lose nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import first_nonfinite_row, one_thread
from daskcoreset.core.moments import moments_of
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import as_int, is_choice
from daskcoreset.errors import InvalidInputError
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    as_covariance_type,
    count_spikes,
    tiles,
)
from daskcoreset.solvers.mixture.steps import (
    ComponentMoments,
    expectation,
    maximisation,
    merge_components,
    moments_of_components,
)

_Found = TypeVar("_Found")
Judge: TypeAlias = Callable[[MixtureModel], float]
InitParams: TypeAlias = Literal["kmeans", "k-means++", "random_from_data"]

# Share of the total weight that no sum in float64 can notice.
_NEGLIGIBLE = 1e-200

# Beyond it, squares times a precision come near the end of float64.
_LARGEST_SPREAD = 1e100

# Starts of ``n_init="auto"``, steps after which the best go on, and how many do. Of more components
# than the last number fewer starts are made, in proportion.
_STARTS: tuple[InitParams, ...] = ("kmeans", "k-means++") * 4
_FIRST_STEPS, _KEPT = 15, 2
_MANY_COMPONENTS = 50


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A fitted mixture, and the course of EM.

    Attributes
    ----------
    mixture : MixtureModel
        Parameters after the last M step of the best start.
    converged : bool
        Whether the last change of the bound was below `tol`.
    n_iter : int
        Iterations of the best start.
    lower_bound : float
        Weighted mean log-likelihood at the last E step, before the last M step, as in
        scikit-learn. Minus infinity when no iteration was made.
    lower_bounds : ndarray of shape (n_iter,), float64
        The same at every iteration of the best start.
    """

    mixture: MixtureModel
    converged: bool
    n_iter: int
    lower_bound: float
    lower_bounds: FloatArray


@one_thread()
def fit_mixture(
    X: Any,
    sample_weight: Any = None,
    *,
    n_components: int = 1,
    covariance_type: CovarianceType = "full",
    tol: float = 1e-3,
    reg_covar: float = 1e-6,
    max_iter: int = 100,
    n_init: int | Literal["auto"] = 1,
    init_params: InitParams = "kmeans",
    start: MixtureModel | None = None,
    random_state: RandomState = None,
    judge: Judge | None = None,
) -> MixtureFit:
    r"""Fit a Gaussian mixture to weighted rows by expectation maximisation.

    Parameters
    ----------
    X : array-like of shape (n, d) or scipy.sparse.csr_array
        Rows in memory, such as the points of a coreset. Finite if their weight is not zero.
    sample_weight : array-like of shape (n,), optional
        Weights that are not negative, ones by default. Positive in total. Only their ratios
        matter. Rows with less than 1e-200 of the total are left out.
    n_components : int, default=1
        Number of components k, at most the number of distinct rows.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
    tol : float, default=1e-3
        EM stops when the weighted mean log-likelihood changes by less.
    reg_covar : float, default=1e-6
        Added to all variances, so that a component on one point keeps a density.
    max_iter : int, default=100
        With 0 the starting point is returned.
    n_init : int or "auto", default=1
        Starts, of which the best is kept. "auto" makes eight starts, and goes on from the best two
        after 15 steps. Starts that fail are left out as long as others do not.
    init_params : {"kmeans", "k-means++", "random_from_data"}, default="kmeans"
        Start of a run: clusters of k-means, or rows drawn by k-means++ or by weight. "auto" takes
        the first two in turns.
    start : MixtureModel, optional
        Start of the only run, in place of these.
    random_state : int, Generator, RandomState or None, default=None
    judge : callable, optional
        Criterion for the best of several starts, such as the likelihood of other rows. None
        takes the bound. A mixture never wins against one with fewer components whose least
        variance in any direction is that of `reg_covar`.

    Returns
    -------
    MixtureFit

    Raises
    ------
    InvalidInputError
        If an argument is out of range or of the wrong shape, if X has fewer distinct rows
        than components, or if a covariance is singular in spite of `reg_covar`.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the best start did not converge within `max_iter` iterations.

    References
    ----------
    Dempster, Laird and Rubin (1977). Biernacki, Celeux and Govaert (2003) for short runs.
    """
    kind, auto = as_covariance_type(covariance_type), is_choice(n_init, ("auto",))
    k, limit = as_int("n_components", n_components), as_int("max_iter", max_iter, 0)
    count = 1 if auto else as_int("n_init", n_init)
    for name, value in {"tol": tol, "reg_covar": reg_covar}.items():
        if not 0.0 <= value < np.inf:
            raise InvalidInputError(
                f"{name} must be finite and not negative, got {value!r}",
                argument=name,
                remedy="pass such a number",
            )
    points, u, center = _weighted_rows(X, sample_weight)
    _check_distinct(points, k)
    rng = np.random.default_rng(resolve_seed(random_state))

    def begun(params: InitParams) -> MixtureFit:
        return _before_steps(start_mixture(points, u, k, kind, params, reg_covar, rng))

    def rank(fit: MixtureFit) -> tuple[int, float]:
        """Sort by the components that are spikes, and only then by a likelihood."""
        value = fit.lower_bound if judge is None else judge(_moved(fit.mixture, center))
        return -count_spikes(fit.mixture, reg_covar), value

    if start is not None:
        fits = [_before_steps(_moved(start, -center))]
    elif auto and k > 1:
        n_starts = min(len(_STARTS), max(2, len(_STARTS) * _MANY_COMPONENTS // k))
        fits = _possible([partial(begun, params) for params in _STARTS[:n_starts]])
        # Components of few rows come near by less than tol in a step.
        step = partial(_iterate, points, u, tol=0.1 * tol, reg_covar=reg_covar)
        short = _possible([partial(step, fit, min(_FIRST_STEPS, limit)) for fit in fits])
        best = sorted(short, key=rank, reverse=True)[:_KEPT]
        fits = [_before_steps(fit.mixture) for fit in best]
    else:
        fits = _possible([partial(begun, init_params)] * count)
    run = partial(_iterate, points, u, tol=tol, reg_covar=reg_covar)
    fits = _possible([partial(run, fit, limit) for fit in fits])
    best_fit = max(fits, key=rank) if len(fits) > 1 else fits[0]
    if limit > 0 and not best_fit.converged:
        _warn_not_converged(max_iter, tol)
    return replace(best_fit, mixture=_moved(best_fit.mixture, center))


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


def _before_steps(mixture: MixtureModel) -> MixtureFit:
    """Return the fit before the first iteration."""
    return MixtureFit(mixture, False, 0, -np.inf, np.zeros(0))


def _possible(runs: Sequence[Callable[[], _Found]]) -> list[_Found]:
    """Return what came of the runs that did not fail. An error where all do."""
    found, errors = [], []
    for run in runs:
        try:
            found.append(run())
        except InvalidInputError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return found


def _iterate(
    points: FloatArray,
    u: FloatArray,
    begun: MixtureFit,
    max_iter: int,
    *,
    tol: float,
    reg_covar: float,
) -> MixtureFit:
    """Go on until the bound, the weighted mean log-likelihood, changes by less than tol."""
    mixture, bound, converged = begun.mixture, begun.lower_bound, begun.converged
    bounds: list[float] = begun.lower_bounds.tolist()
    while len(bounds) < max_iter and not converged:
        check_time("a mixture was being fitted", "pass a smaller size")
        moments = expectation(mixture, points, u)
        mixture = maximisation(moments, mixture, reg_covar)
        before, bound = bound, moments.log_likelihood / float(u.sum())
        bounds.append(bound)
        converged = abs(bound - before) < tol
    return MixtureFit(mixture, converged, len(bounds), bound, np.array(bounds))


def start_mixture(  # noqa: PLR0917 - all of them are always given
    X: FloatArray,
    u: FloatArray,
    k: int,
    kind: CovarianceType,
    init_params: InitParams,
    reg_covar: float,
    rng: np.random.Generator,
) -> MixtureModel:
    """Return parameters that EM starts from, of k clusters or rows.

    Rows have the variance `reg_covar` and the weight 1/k each. The first E step then gives the
    others to the nearest.

    Raises
    ------
    InvalidInputError
        If fewer than k clusters can be told apart, or a covariance is singular.
    """
    from sklearn.cluster import KMeans, kmeans_plusplus

    seed = int(rng.integers(2**32))
    if init_params == "kmeans":
        labels = KMeans(k, n_init=1, random_state=seed).fit(X, sample_weight=u).labels_
        moments = _moments_of_clusters(X, u, k, kind, labels)
    else:
        rows = (
            kmeans_plusplus(X, k, sample_weight=u, random_state=seed)[1]
            if init_params == "k-means++"
            else _distinct_rows(X, u, k, rng)
        )
        moments = moments_of_components(X[rows], np.eye(k), kind)
    n_distinct = int((moments.weight > 0.0).sum())
    if n_distinct < k:
        raise InvalidInputError(
            f"n_components={k}, but X has only {n_distinct} distinct clusters",
            argument="n_components",
            remedy="pass a smaller n_components",
        )
    return maximisation(moments, None, reg_covar)


def _moments_of_clusters(
    X: FloatArray, u: FloatArray, k: int, kind: CovarianceType, labels: IndexArray
) -> ComponentMoments:
    def of_tile(rows: slice, tile: FloatArray) -> ComponentMoments:
        shares = np.zeros((k, len(tile)))
        shares[labels[rows], np.arange(len(tile))] = u[rows]
        return moments_of_components(tile, shares, kind)

    return reduce(merge_components, (of_tile(*part) for part in tiles(X, k)))


def _distinct_rows(X: FloatArray, u: FloatArray, k: int, rng: np.random.Generator) -> IndexArray:
    # Equal rows would start two components that stay equal for ever.
    _, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    totals = np.bincount(inverse.ravel(), weights=u)
    chosen = rng.choice(len(first), size=k, replace=False, p=totals / totals.sum())
    return np.asarray(first[chosen], dtype=np.int64)


def _weighted_rows(X: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows about their weighted mean, weights of at most one, and that mean."""
    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if rows.ndim != 2 or not rows.shape[1] or not np.can_cast(rows.dtype, np.float64, "same_kind"):
        raise InvalidInputError(
            f"X must be a real matrix with at least one column, got shape {rows.shape} and dtype "
            f"{rows.dtype}",
            argument="X",
            remedy="pass rows of numbers; a single column is X.reshape(-1, 1)",
        )
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weights.shape != (len(rows),):
        raise InvalidInputError(
            f"sample_weight must have shape ({len(rows)},), got {weights.shape}",
            argument="sample_weight",
            remedy="pass one weight for each row of X",
        )
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and (weights > 0.0).any()):
        raise InvalidInputError(
            "sample_weight must be finite, not negative, and positive for at least one row",
            argument="sample_weight",
            remedy="correct the weights",
        )
    weights = weights / weights.max()  # the sum of what is given may overflow
    counted = weights > _NEGLIGIBLE * weights.sum()
    numbers = np.flatnonzero(counted)
    # A row without weight may hold anything, such as NaN for a missing value.
    points = rows[counted].astype(np.float64)
    bad = first_nonfinite_row(points)
    if bad >= 0:
        raise InvalidInputError(
            f"X holds a NaN or an infinity in row {numbers[bad]}",
            argument="X",
            remedy="remove or impute such rows",
        )
    u = weights[counted]
    center = moments_of(points, u).mean
    points -= center
    spread = abs(points).max()
    if not spread < _LARGEST_SPREAD:
        raise InvalidInputError(
            f"X reaches {spread:.3g} from its mean, so that squares overflow",
            argument="X",
            remedy="scale its columns",
        )
    return points, u, center


def _check_distinct(points: FloatArray, n_components: int) -> None:
    # The first rows nearly always settle it: sorting all of them would cost more than EM.
    length, n_distinct = 2 * n_components, 0
    while n_distinct < n_components:
        n_distinct = len(np.unique(points[:length], axis=0))
        if length >= len(points):
            break
        length *= 4
    if n_distinct < n_components:
        raise InvalidInputError(
            f"n_components={n_components}, but X has only {n_distinct} distinct rows of positive "
            "weight",
            argument="n_components",
            remedy="pass a smaller n_components",
        )


def _moved(mixture: MixtureModel, by: FloatArray) -> MixtureModel:
    return replace(mixture, means=mixture.means + by)
