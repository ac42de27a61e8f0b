r"""EM for Gaussian mixtures of weighted rows, as coresets give them.

Maximises :math:`\sum_i u_i \log \sum_k \pi_k \mathcal N(x_i; \mu_k, \Sigma_k)`, which is what
scikit-learn's GaussianMixture does when all weights are one: parameters, iterations and
stopping are the same. A row of weight two counts as two equal rows. Rows are taken about
their weighted mean in float64, so that float32 data with a large offset lose nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import first_nonfinite_row, one_thread
from daskcoreset.core.moments import moments_of
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import is_choice, is_int
from daskcoreset.solvers.mixture.init import (
    InitParams,
    check_initial,
    legacy_random_state,
    start_mixture,
)
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    as_covariance_type,
    count_spikes,
)
from daskcoreset.solvers.mixture.search import Judge, Steps, best_starts, possible
from daskcoreset.solvers.mixture.steps import expectation, maximisation

# Share of the total weight that no sum in float64 can notice.
_NEGLIGIBLE = 1e-200

# Beyond it, squares times a precision come near the end of float64.
_LARGEST_SPREAD = 1e100


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
        scikit-learn; minus infinity when no iteration was made.
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
    weights_init: Any = None,
    means_init: Any = None,
    precisions_init: Any = None,
    random_state: RandomState = None,
    warm_start: MixtureFit | None = None,
    judge: Judge | None = None,
    screen: Judge | None = None,
) -> MixtureFit:
    r"""Fit a Gaussian mixture to weighted rows by expectation maximisation.

    Parameters
    ----------
    X : array-like of shape (n, d) or scipy.sparse.csr_array
        Rows in memory, such as the points of a coreset; finite where their weight is not
        zero. One float64 copy is made, and tiles of a few MiB.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights u, ones by default; positive in total. Only their ratios
        matter. Rows with less than 1e-200 of the total are left out.
    n_components : int, default=1
        Number of components k, at most the number of distinct rows.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
    tol : float, default=1e-3
        EM stops when the weighted mean log-likelihood changes by less.
    reg_covar : float, default=1e-6
        Added to all variances, so that a component on one point keeps a density. It is in
        squared units of the data: where their variance is 1e12, for instance, the default
        is lost in rounding, and 1e-6 times the variance does what is meant. With a value
        that is not negligible the likelihood may fall a little between iterations.
    max_iter : int, default=100
        With 0 the starting point is returned.
    n_init : int or "auto", default=1
        Starts, of which the one with the largest bound is kept, or see `judge`. One is made when
        the start is given in full, and by "auto" of one component. "auto" makes eight short runs on
        a sample of 3,000 rows, by `init_params` and by "k-means++" in turns, and goes on from the
        best two. Runs that fail are left out as long as others do not. Of more than fifty
        components fewer runs are made, in proportion. A mixture never wins against one with fewer
        components whose least variance in any direction is that of `reg_covar`.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        How the first responsibilities are found; see `start_mixture`. The default is that
        of scikit-learn.
    weights_init : array-like of shape (k,), optional
    means_init : array-like of shape (k, d), optional
    precisions_init : array-like, optional
        Inverse covariances, of shape (k, d, d), (d, d), (k, d) or (k,) in the order of the
        types. Each of the three takes the place of what `init_params` finds.
    random_state : int, Generator, RandomState or None, default=None
        With unit weights an int gives the starting point that it gives scikit-learn, except
        for "random_from_data", whose rows are drawn by weight, and for a tied covariance
        with "k-means++" (see `start_mixture`).
    warm_start : MixtureFit, optional
        Go on from this fit, whose type and number of components must be those asked for;
        `n_init`, `init_params` and the initial parameters are not used.
    judge : callable, optional
        What the best of several starts is large by, such as the likelihood of other rows; None
        takes the bound, in favour of mixtures that have learned single rows by heart. Short runs
        of "auto" keep a third of the sample apart then, which judges until EM goes on with all.
    screen : callable, optional
        What takes less time than `judge`, by which "auto" makes the first choice of its many
        starts; `judge` by default.

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

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> fit = fit_mixture(X, [1, 1, 3, 3], n_components=2, random_state=0)
    >>> order = fit.mixture.weights.argsort()
    >>> fit.mixture.weights[order].round(3), fit.mixture.means[order].round(3)
    (array([0.25, 0.75]), array([[ 0.5], [10.5]]))

    References
    ----------
    Dempster, Laird and Rubin (1977), Maximum Likelihood from Incomplete Data via the EM
    Algorithm; Biernacki, Celeux and Govaert (2003), Choosing starting values for the EM algorithm,
    for short runs; Lucic, Faulkner, Krause and Feldman (2017), Training Gaussian Mixture
    Models at Scale via Coresets, for weighted rows; Pedregosa et al. (2011) for the
    parametrisation.
    """
    from sklearn.exceptions import ConvergenceWarning

    kind = as_covariance_type(covariance_type)
    auto = is_choice(n_init, ("auto",))
    _check_integers(n_components=n_components, max_iter=max_iter, n_init=1 if auto else n_init)
    _check_choices(tol, reg_covar, init_params)
    points, u, center = _weighted_rows(X, sample_weight)
    k, d = int(n_components), points.shape[1]
    initial = check_initial(
        kind, k, d, weights=weights_init, means=means_init, precisions=precisions_init
    )
    _check_distinct(points, k)
    run = partial(_iterate, points, u, tol=tol, reg_covar=reg_covar)
    if warm_start is not None:
        start = _moved(_check_warm(warm_start.mixture, kind, k, d), -center)
        begun = replace(warm_start, mixture=start, n_iter=0, lower_bounds=np.zeros(0))
        best = run(replace(begun, converged=False), max_iter)
    else:
        if initial.means is not None:
            initial = replace(initial, means=initial.means - center)
        rng = legacy_random_state(random_state)
        begin = partial(
            start_mixture,
            n_components=k,
            covariance_type=kind,
            initial=initial,
            reg_covar=reg_covar,
            rng=rng,
        )

        def starting(
            rows: FloatArray, weights: FloatArray, init: InitParams | None
        ) -> MixtureModel:
            return begin(rows, weights, init_params=init or init_params)

        def iterated(
            rows: FloatArray, weights: FloatArray, one: MixtureModel, n_steps: int
        ) -> MixtureModel:
            begun, limit = fit_before_steps(one), min(n_steps, max_iter)
            # Components of few rows come near by less than tol in a step.
            few = {"tol": 0.1 * tol, "reg_covar": reg_covar}
            return _iterate(rows, weights, begun, limit, **few).mixture

        def rank(value: Judge) -> Callable[[MixtureModel], tuple[int, float]]:
            """Sort by the components that are spikes, and only then by a likelihood."""
            return lambda one: (-count_spikes(one, reg_covar), value(one))

        judge, screen = _about(center, judge), _about(center, screen)
        if auto and not initial.complete and k > 1:
            steps = Steps(starting, iterated, rank, judge, screen or judge, k)
            search_rng = np.random.default_rng(resolve_seed(rng))
            found = best_starts(points, u, steps, search_rng)
            runs = possible([partial(run, fit_before_steps(one), max_iter) for one in found])
        else:
            # By default these are fits of one component, which end in the same.
            n_starts = 1 if auto or initial.complete else int(n_init)
            found = [starting(points, u, None) for _ in range(n_starts)]
            runs = [run(fit_before_steps(one), max_iter) for one in found]
        best = runs[0]
        if len(runs) > 1:
            value = judge or {fit.mixture: fit.lower_bound for fit in runs}.__getitem__
            best = max(runs, key=lambda fit: rank(value)(fit.mixture))
    if max_iter > 0 and not best.converged:
        warnings.warn(
            # As scikit-learn says it, to those who filter its warnings.
            f"Best performing initialization did not converge. Try different init parameters, or "
            f"increase max_iter, tol, or check for degenerate data. EM took max_iter={max_iter} "
            f"iterations, and tol={tol}.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return replace(best, mixture=_moved(best.mixture, center))


def fit_before_steps(mixture: MixtureModel) -> MixtureFit:
    """Return the fit before the first iteration."""
    return MixtureFit(mixture, False, 0, -np.inf, np.zeros(0))


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


def _check_integers(**numbers: Any) -> None:
    for name, value in numbers.items():
        minimum = 0 if name == "max_iter" else 1
        if not is_int(value) or value < minimum:
            raise InvalidInputError(
                f"{name} must be an integer of at least {minimum}, got {value!r}."
            )


def _check_choices(tol: float, reg_covar: float, init_params: str) -> None:
    for name, value in {"tol": tol, "reg_covar": reg_covar}.items():
        if not 0.0 <= value < np.inf:
            raise InvalidInputError(f"{name} must be finite and not negative, got {value!r}.")
    if not is_choice(init_params, get_args(InitParams)):
        raise InvalidInputError(
            f"init_params must be one of {', '.join(get_args(InitParams))}, got {init_params!r}."
        )


def _weighted_rows(X: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows about their weighted mean, weights of at most one, and that mean."""
    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if rows.ndim != 2 or not rows.shape[1] or not np.can_cast(rows.dtype, np.float64, "same_kind"):
        raise InvalidInputError(
            f"X must be a real matrix with at least one column, got shape {rows.shape} and dtype "
            f"{rows.dtype}; a single column is X.reshape(-1, 1)."
        )
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weights.shape != (len(rows),):
        raise InvalidInputError(
            f"sample_weight must have shape ({len(rows)},), one for each row of X, got "
            f"{weights.shape}."
        )
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and (weights > 0.0).any()):
        raise InvalidInputError(
            "sample_weight must be finite, not negative, and positive for at least one row."
        )
    weights = weights / weights.max()  # the sum of what is given may overflow
    counted = weights > _NEGLIGIBLE * weights.sum()
    numbers = np.flatnonzero(counted)
    # A row without weight may hold anything, such as NaN for a missing value.
    points = rows[counted].astype(np.float64)
    bad = first_nonfinite_row(points)
    if bad >= 0:
        raise InvalidInputError(
            f"X holds a NaN or an infinity in row {numbers[bad]}; remove or impute such rows."
        )
    u = weights[counted]
    center = moments_of(points, u).mean
    points -= center
    spread = abs(points).max()
    if not spread < _LARGEST_SPREAD:
        raise InvalidInputError(
            f"X reaches {spread:.3g} from its mean, so that squares overflow; scale its columns."
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
            f"weight; pass a smaller n_components."
        )


def _check_warm(mixture: MixtureModel, kind: CovarianceType, k: int, d: int) -> MixtureModel:
    if mixture.covariance_type != kind or mixture.means.shape != (k, d):
        raise InvalidInputError(
            f"warm_start has {len(mixture.means)} components of type "
            f"{mixture.covariance_type!r} in {mixture.means.shape[1]} columns, but {k} of type "
            f"{kind!r} in {d} columns were asked for; pass a fit of the same model."
        )
    return mixture


def _about(center: FloatArray, by: Judge | None) -> Judge | None:
    """Return what judges mixtures of rows from which a center was taken."""
    return None if by is None else lambda mixture: by(_moved(mixture, center))


def _moved(mixture: MixtureModel, by: FloatArray) -> MixtureModel:
    return replace(mixture, means=mixture.means + by)
