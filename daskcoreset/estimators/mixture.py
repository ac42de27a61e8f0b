"""Gaussian mixtures on a coreset, of data of any size."""

from __future__ import annotations

import sys
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskcoreset._build import build_and_hold_out
from daskcoreset.constructions.sampling.held_out import HeldOut, judges
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import warn_user
from daskcoreset.core.points import deduplicate
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import FloatArray, IndexArray, Sampling
from daskcoreset.estimators.base import (
    AUTO_SIZE,
    BUILD_CONSTRAINTS,
    UnlabelledModel,
    check_size,
    coreset_is_all,
    resolve_for,
)
from daskcoreset.estimators.checks import InMemoryData, Rows, count_features
from daskcoreset.estimators.scoring import weighted_sum
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.objectives import MixtureCost
from daskcoreset.sensitivities import Mixture, Sensitivity
from daskcoreset.solvers.mixture.cross_fit import expected_score
from daskcoreset.solvers.mixture.em import MixtureFit, fit_mixture
from daskcoreset.solvers.mixture.init import InitParams, check_initial
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    assign,
    count_parameters,
    log_likelihood,
    responsibilities,
    sample,
    score_samples,
)

# Rows that judge a mixture, at most: as many as are gathered for the draw at least.
_MAX_JUDGES = 20_000

# Numbers in them, of many columns; 64 MB of float64.
_JUDGED_NUMBERS = 2**23


def auto_mixture_size(n_components: int, covariance_type: CovarianceType, n_features: int) -> int:
    """Return the rows of the coreset for ``size="auto"``.

    Ten rows for every free parameter, and ten thousand at least: a maximum of the likelihood
    over m rows with p parameters falls short of the best by about p / 2m a row.

    Examples
    --------
    >>> [auto_mixture_size(k, "full", d) for k, d in ((3, 2), (10, 50))]
    [10000, 132590]
    """
    return max(10_000, 10 * count_parameters(covariance_type, n_components, n_features))


class CoresetGaussianMixture(DensityMixin, UnlabelledModel):  # type: ignore[misc] # scikit-learn has no annotations
    """Gaussian mixture of data of any size: a coreset in one read, and weighted EM on it.

    Parameters
    ----------
    n_components : int, default=1
        Components of the mixture, k.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A matrix for each component, one for all, a diagonal or a variance for each.
    size : int or "auto", default="auto"
        Rows of the coreset; "auto" is ten for every free parameter of the model, and 10,000
        at least (see `auto_mixture_size`).
    method : str or Sensitivity, default="mixture"
        Construction of the coreset. "mixture" is ``Mixture(n_components)``.
    tol : float, default=1e-3
        EM stops when the weighted mean log-likelihood changes by less.
    reg_covar : float, default=1e-6
        Added to all variances, in squared units of the data. Columns of few distinct values want
        a small share of their variance: where all rows of a component on the coreset agree in one,
        other values have next to no density; a warning says so.
    max_iter : int, default=100
        Iterations of one run at most.
    n_init : int or "auto", default="auto"
        Runs of EM on the coreset, of which the one is kept that is the best by rows that the
        coreset did not take, see `lower_bound_`, or by its own likelihood where there are none.
        "auto" makes eight short runs on a sample of 3,000 rows, by `init_params` and by "k-means++"
        in turns, and goes on from the best two on the whole coreset. Iterations before that are
        not counted, and runs that fail are left out as long as others do not. Of more than fifty
        components fewer runs are made, in proportion. A mixture never wins against one with fewer
        spikes: components whose least variance in any direction is that of `reg_covar`, as of rows
        with one value in a column of integers.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        How the first responsibilities are found, as in `sklearn.mixture.GaussianMixture`.
    weights_init : array-like of shape (k,), optional
    means_init : array-like of shape (k, d), optional
    precisions_init : array-like, optional
        Inverse covariances in the shape of the type. Each of the three takes the place of what
        `init_params` finds.
    warm_start : bool, default=False
        Whether `fit` goes on from the mixture of the one before, where that has as many
        components of the same type and columns; `n_init` and initial parameters are not used then.
    verbose : int, default=0
        Whether every iteration of the best run prints a line, once EM is done.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`.
    passes : {1, 2}, default=1
        Reads of the data for the coreset, as in `daskcoreset.build`.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same data, chunks and versions give the same result.
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity in `fit`: an error, or they are left out, as in
        `daskcoreset.build`, also for None.

    Attributes
    ----------
    weights_ : ndarray of shape (k,), float64
    means_ : ndarray of shape (k, d), float64
    covariances_, precisions_, precisions_cholesky_ : ndarray, float64
        Of shape (k, d, d), (d, d), (k, d) or (k,), in the order of the types.
    converged_ : bool
    n_iter_ : int
        Iterations of the best run.
    lower_bound_ : float
        Estimate of `score` of all rows. With m rows and p free parameters the likelihood of the
        coreset, which EM made large, lies above that by some p / m. So the mixture is judged by
        rows that the coreset did not take: candidates of its draw, up to 20,000, which come with
        the same read. Where nothing is sampled it is the likelihood at the last E step, as in
        scikit-learn. Where no candidates are at hand, for coresets in place of X and
        ``sampling="multinomial"``, it is computed when it is first asked for, by cross-fitting in
        the coreset: EM goes on ten times, each time with a tenth of the rows cut down to what they
        weigh themselves, which are then scored. What it goes on from remembers these rows, so
        that it is too high for small coresets of heavy tails (``docs/guide/clustering.md``).
    lower_bound_error_ : float
        Its standard error, by the rows that were held out: 0 where they were all others, NaN for
        cross-fitting.
    lower_bounds_ : list of float
        Weighted mean log-likelihood of the coreset at every iteration of the best run: what EM
        made large, and what `tol` and `warm_start` go by.
    coreset_ : Coreset
        What EM ran on.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the best run did not converge within `max_iter` iterations.
    CoresetWarning
        If rows that the coreset did not take have next to no density: `lower_bound_` is below
        ``lower_bounds_[-1]`` by more than there are columns.

    See Also
    --------
    CoresetBregman : Mixtures of other exponential families, by their divergence.

    Notes
    -----
    Data in memory are answered at once; everything else that `daskcoreset.build` takes stays
    out of core, and `predict`, `predict_proba` and `score_samples` return Dask arrays. Sparse
    rows are taken in Dask blocks, but not in memory, as in scikit-learn. Equal rows are merged
    and ordered by value before EM, so that neither their order nor the split of their weight
    matters: on data that are not sampled, the same initial parameters give scikit-learn's
    result up to rounding, while `random_state` gives another start.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(100_000, 2), chunks=(25_000, 2))
    >>> model = CoresetGaussianMixture(2, size=2000, random_state=0).fit(X)
    >>> model.covariances_.shape
    (2, 2, 2)
    >>> bool(abs(model.lower_bound_ - model.score(X)) < 4 * model.lower_bound_error_)
    True
    >>> shares = model.predict_proba(X)  # nothing is read yet
    >>> bool((shares[:5].compute().sum(axis=1).round(6) == 1).all())
    True

    References
    ----------
    Lucic, Faulkner, Krause and Feldman (2017), Training Gaussian Mixture Models at Scale via
    Coresets.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(get_args(CovarianceType)))],
        **BUILD_CONSTRAINTS,
        "size": AUTO_SIZE,
        "tol": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_init": AUTO_SIZE,
        "init_params": [StrOptions(set(get_args(InitParams)))],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    # Rows of the build that the coreset did not take, while a fit runs.
    _held_out: HeldOut | None = None
    # `lower_bound_` and its error; None before they are computed from the coreset alone.
    _bound: tuple[float, float] | None

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: CovarianceType = "full",
        size: int | Literal["auto"] = "auto",
        method: str | Sensitivity[Any] = "mixture",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int | Literal["auto"] = "auto",
        init_params: InitParams = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        sampling: Sampling = "systematic",
        passes: Literal[1, 2] = 1,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.size = size
        self.method = method
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.warm_start = warm_start
        self.verbose = verbose
        self.sampling = sampling
        self.passes = passes
        self.random_state = random_state
        self.on_invalid = on_invalid

    def _construction(self, rows: Rows) -> tuple[Sensitivity[Any], int, int]:
        k = self.n_components
        d = count_features(rows)
        check_initial(
            self.covariance_type,
            k,
            d,
            weights=self.weights_init,
            means=self.means_init,
            precisions=self.precisions_init,
        )
        size = self.size
        if size == "auto":
            size = auto_mixture_size(k, self.covariance_type, d)
        check_size(size, k, "component")
        return resolve_for(self.method, k, Mixture(k)), size, k

    def _built(self, blocks: RowBlocks, **options: Any) -> Coreset:
        """Build the coreset, and keep candidates that it did not take until the fit is done."""
        count = max(options["size"], min(_MAX_JUDGES, _JUDGED_NUMBERS // blocks.schema.n_features))
        coreset, self._held_out = build_and_hold_out(blocks, count, **options)
        return coreset

    def _judged_by(self) -> MixtureCost:
        return MixtureCost(self.n_components)

    def _solve(self, coreset: Coreset, seed: int) -> None:
        held_out, self._held_out = self._held_out, None
        judge, screen = judges(held_out, score_samples, coreset.points)
        points, weights, _ = deduplicate(coreset.points, coreset.weights)
        earlier: MixtureFit | None = getattr(self, "_fit", None) if self.warm_start else None
        if earlier is not None and (
            earlier.mixture.covariance_type != self.covariance_type
            or earlier.mixture.means.shape != (self.n_components, coreset.n_features)
        ):
            earlier = None
        fit = fit_mixture(
            points,
            weights,
            n_components=self.n_components,
            covariance_type=self.covariance_type,
            tol=self.tol,
            reg_covar=self.reg_covar,
            max_iter=self.max_iter,
            n_init=self.n_init,
            init_params=self.init_params,
            weights_init=self.weights_init,
            means_init=self.means_init,
            precisions_init=self.precisions_init,
            random_state=seed,
            warm_start=earlier,
            judge=judge,
            screen=screen,
        )
        if self.verbose:
            for step, bound in enumerate(fit.lower_bounds, 1):
                sys.stdout.write(f"[{type(self).__name__}] iteration {step}, bound {bound:.6g}\n")
        self._fit = fit if self.warm_start else None
        self._mixture = fit.mixture
        self.converged_, self.n_iter_ = fit.converged, fit.n_iter
        self.lower_bounds_ = fit.lower_bounds.tolist()
        if held_out is not None:
            scores = (score_samples(fit.mixture, one.points) for one in (coreset, held_out))
            self._bound = held_out.mean(*scores)
            self._warn_of_rows_without_density(self._bound[0])
        else:
            self._bound = (fit.lower_bound, 0.0) if coreset_is_all(coreset) else None

    def _warn_of_rows_without_density(self, all_rows: float) -> None:
        fitted = max(self.lower_bounds_[-1:], default=-np.inf)
        # Few rows for many parameters, and heavy tails, take less than a nat for each column.
        if all_rows < fitted - self._mixture.means.shape[1]:
            warn_user(
                f"the mixture gives rows that the coreset did not take next to no density: the "
                f"mean log-likelihood is {fitted:.4g} on the coreset, and {all_rows:.4g} on all "
                f"rows. Raise size, or reg_covar where columns have few distinct values; "
                f'method="mixture" keeps rows that lie far out.'
            )

    @property
    def _fitted(self) -> MixtureModel:
        check_is_fitted(self, "_mixture")
        return self._mixture

    @property
    def _score_and_error(self) -> tuple[float, float]:
        mixture, coreset = self._fitted, self.coreset_
        if self._bound is not None:
            return self._bound
        points, weights, _ = deduplicate(coreset.points, coreset.weights)
        options = {"tol": self.tol, "reg_covar": self.reg_covar, "max_iter": self.max_iter}
        n_rows = int(coreset.provenance["n"])
        return expected_score(points, weights, mixture, n_rows, **options), np.nan

    @property
    def lower_bound_(self) -> float:
        """Estimate of the score of all rows."""
        return self._score_and_error[0]

    @property
    def lower_bound_error_(self) -> float:
        """Standard error of `lower_bound_`."""
        return self._score_and_error[1]

    def predict(self, X: Any) -> Any:
        """Return the number of the most probable component of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int64
            Lazy where X is out of core.
        """
        assigned = partial(assign, self._fitted)
        return self._apply(X, assigned, np.int64, predicts=True, called=("component", "output"))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the component of every row; lazily where X is out of core."""
        return self.fit(X, y, sample_weight).predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Probability of every component, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), float64
            Lazy where X is out of core.
        """
        shares = partial(responsibilities, self._fitted)
        called = ("probability", "component")
        return self._apply(X, shares, np.float64, len(self._fitted.weights), called=called)

    def score_samples(self, X: Any) -> Any:
        """Log-density of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), float64
            Lazy where X is out of core.
        """
        called = ("log_density", "output")
        return self._apply(X, partial(score_samples, self._fitted), np.float64, called=called)

    def means_to_xarray(self) -> Any:
        """Return the means as a Dataset, with the names, units and coordinates of the features.

        Returns
        -------
        xarray.Dataset
            Variables as the Dataset, or the DataArray, that the model was fitted on has them, with
            the dimension ``component`` in place of the sample dimensions, in the order of
            `weights_` and `covariances_`.

        Raises
        ------
        InvalidInputError
            The model was fitted on rows without labels.

        Examples
        --------
        >>> import xarray as xr
        >>> cells = np.random.default_rng(0).normal(280.0, 9.0, size=(40, 30))
        >>> air = xr.DataArray(cells, dims=("lat", "lon"), name="t2m", attrs={"units": "K"})
        >>> model = CoresetGaussianMixture(2, random_state=0).fit(air, sample_dims=("lat", "lon"))
        >>> model.means_to_xarray().t2m.attrs["units"]
        'K'
        """
        return self._rows_to_xarray("means_", "component")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Weighted mean log-density of all rows; one read where X is out of core.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : object
            Ignored.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
        """
        del y
        weight, total = self._likelihood(X, sample_weight)
        return total / weight

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion over all rows; one read where X is out of core.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        sample_weight : array-like of shape (n,), or str, optional
            The total weight stands where the number of rows stands without weights.

        Returns
        -------
        float
            The lower, the better.
        """
        weight, total = self._likelihood(X, sample_weight)
        return float(-2.0 * total + self._fitted.n_parameters * np.log(weight))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion over all rows; one read where X is out of core.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
            The lower, the better.
        """
        _, total = self._likelihood(X, sample_weight)
        return -2.0 * total + 2.0 * self._fitted.n_parameters

    def sample(self, n_samples: int = 1) -> tuple[FloatArray, IndexArray]:
        """Draw rows from the mixture, seeded by `random_state`.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, d), float64
            Ordered by component.
        labels : ndarray of shape (n_samples,), int64
        """
        return sample(self._fitted, n_samples, self.random_state)

    def _likelihood(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        """Total weight and weighted log-likelihood of all rows."""
        mixture = self._fitted
        rows = self._open_rows(X, sample_weight, fitted=True)
        if not isinstance(rows, InMemoryData):
            return weighted_sum(rows, partial(score_samples, mixture))
        total = log_likelihood(mixture, rows.X, rows.sample_weight)
        return float(rows.weights.sum()), total

    @property
    def weights_(self) -> FloatArray:
        """Weights of the components."""
        return self._fitted.weights

    @property
    def means_(self) -> FloatArray:
        """Means of the components."""
        return self._fitted.means

    @property
    def covariances_(self) -> FloatArray:
        """Covariances, in the shape of the type."""
        return self._fitted.covariances

    @property
    def precisions_(self) -> FloatArray:
        """Inverse covariances."""
        return self._fitted.precisions

    @property
    def precisions_cholesky_(self) -> FloatArray:
        """Upper-triangular factors of the inverse covariances."""
        return self._fitted.precisions_cholesky
