"""Gaussian mixtures on a coreset, of data of any size."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskcoreset._build import build_and_hold_out
from daskcoreset.constructions.sampling.held_out import HeldOut
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.messages import warn_user
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.estimators.base import (
    AUTO_SIZE,
    BUILD_CONSTRAINTS,
    Problem,
    SolvedModel,
    check_size,
    coreset_is_all,
    resolve_for,
)
from daskcoreset.estimators.scoring import weighted_sum
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.objectives import MixtureCost
from daskcoreset.sensitivities import Mixture, Sensitivity
from daskcoreset.solvers.mixture.em import fit_mixture
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    assign,
    count_parameters,
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

    There are ten rows per free parameter, and at least ten thousand. With m rows and p parameters,
    the mean log-likelihood of the fit is about p / 2m below the best.

    Examples
    --------
    >>> [auto_mixture_size(k, "full", d) for k, d in ((3, 2), (10, 50))]
    [10000, 132590]
    """
    return max(10_000, 10 * count_parameters(covariance_type, n_components, n_features))


class CoresetGaussianMixture(DensityMixin, SolvedModel):  # type: ignore[misc] # scikit-learn has no annotations
    """Gaussian mixture for data of any size.

    `fit` builds a coreset in one pass and runs weighted EM on it. See :doc:`/guides/clusters`.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A matrix for each component, one for all, a diagonal or a variance for each.
    size : int or "auto", default="auto"
        Rows of the coreset. "auto" is ten per free parameter of the model, and at least 10,000.
    method : str or Sensitivity, default="mixture"
        Method of the coreset. "mixture" is ``Mixture(n_components)``.
    tol : float, default=1e-3
        EM stops when the weighted mean log-likelihood changes by less.
    reg_covar : float, default=1e-6
        Added to all variances, in squared units of the data. Columns with few distinct values
        need a small share of their variance.
    max_iter : int, default=100
        Largest number of iterations per run.
    n_init : int or "auto", default="auto"
        Number of runs of EM. The best is kept, by the likelihood of rows outside the coreset.
        "auto" makes eight short runs and goes on with the best two.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same data, chunks and versions give the same result.
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity in `fit`: raise an error, or drop them. None raises.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : ndarray, float64
        As in scikit-learn.
    converged_, n_iter_
        For the best run.
    lower_bound_ : float
        Estimate of `score` on all rows, from rows outside the coreset. If X is a coreset, it is
        the likelihood of the coreset, which is too high.
    lower_bound_error_ : float
        Its standard error: 0 if nothing was sampled, NaN if it is unknown.
    lower_bounds_ : list of float
        Weighted mean log-likelihood of the coreset at every iteration of the best run.
    coreset_ : Coreset
        The coreset that EM ran on.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(100_000, 2), chunks=(25_000, 2))
    >>> model = CoresetGaussianMixture(2, size=2000, random_state=0).fit(X)
    >>> bool(abs(model.lower_bound_ - model.score(X)) < 4 * model.lower_bound_error_)
    True

    References
    ----------
    Lucic, Faulkner, Krause and Feldman (2017), Training Gaussian Mixture Models at Scale via
    Coresets.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(get_args(CovarianceType)))],
        "size": AUTO_SIZE,
        "method": BUILD_CONSTRAINTS["method"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_init": AUTO_SIZE,
        "on_invalid": BUILD_CONSTRAINTS["on_invalid"],
    }

    _mixture: MixtureModel

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
        self.random_state = random_state
        self.on_invalid = on_invalid

    def _construction(self, blocks: RowBlocks) -> tuple[Sensitivity[Any], int, int]:
        k, size = self.n_components, self.size
        if size == "auto":
            size = auto_mixture_size(k, self.covariance_type, blocks.schema.n_features)
        check_size(size, k, "component")
        return resolve_for(self.method, k, Mixture(k)), size, k

    def _built(self, blocks: RowBlocks, **options: Any) -> tuple[Coreset, HeldOut | None]:
        """Build the coreset, and keep candidates that it did not take."""
        count = max(options["size"], min(_MAX_JUDGES, _JUDGED_NUMBERS // blocks.schema.n_features))
        return build_and_hold_out(blocks, count, **options)

    def _judged_by(self) -> MixtureCost:
        return MixtureCost(self.n_components)

    def _solve(self, problem: Problem) -> None:
        coreset, held_out = problem.coreset, problem.beside
        fit = fit_mixture(
            coreset.points,
            coreset.weights,
            n_components=self.n_components,
            covariance_type=self.covariance_type,
            tol=self.tol,
            reg_covar=self.reg_covar,
            max_iter=self.max_iter,
            n_init=self.n_init,
            random_state=problem.seed,
            judge=None if held_out is None else held_out.judge(score_samples, coreset.points),
        )
        bound, error = fit.lower_bound, 0.0 if coreset_is_all(coreset) else np.nan
        if held_out is not None:
            scores = (score_samples(fit.mixture, one.points) for one in (coreset, held_out))
            bound, error = held_out.mean(*scores)
        self._mixture = mixture = fit.mixture
        self.weights_, self.means_ = mixture.weights, mixture.means
        self.covariances_, self.precisions_ = mixture.covariances, mixture.precisions
        self.precisions_cholesky_ = mixture.precisions_cholesky
        self.converged_, self.n_iter_ = fit.converged, fit.n_iter
        self.lower_bounds_ = [*fit.lower_bounds]
        self.lower_bound_, self.lower_bound_error_ = bound, error
        if held_out is not None:
            self._warn_of_rows_without_density(bound)

    def _warn_of_rows_without_density(self, all_rows: float) -> None:
        fitted = max(self.lower_bounds_[-1:], default=-np.inf)
        # Few rows for many parameters, and heavy tails, take less than a nat for each column.
        if all_rows < fitted - self._mixture.means.shape[1]:
            warn_user(
                f"the mixture has almost no density at rows outside the coreset: the mean "
                f"log-likelihood is {fitted:.4g} on the coreset, and {all_rows:.4g} on all rows. "
                f"Raise size, raise reg_covar if columns have few distinct values, or pass "
                f'method="mixture", which keeps outliers.'
            )

    @property
    def _fitted(self) -> MixtureModel:
        check_is_fitted(self)
        return self._mixture

    def predict(self, X: Any) -> Any:
        """Return the number of the most probable component of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int64
            Lazy if X is out of core.
        """
        assigned = partial(assign, self._fitted)
        return self._apply(X, assigned, predicts=True, called=("component", "output"))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the component of every row. The result is lazy if X is out of core."""
        return self.fit(X, y, sample_weight).predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Probability of every component, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), float64
            Lazy if X is out of core.
        """
        shares = partial(responsibilities, self._fitted)
        called = ("probability", "component")
        return self._apply(X, shares, called=called)

    def score_samples(self, X: Any) -> Any:
        """Log-density of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), float64
            Lazy if X is out of core.
        """
        called = ("log_density", "output")
        return self._apply(X, partial(score_samples, self._fitted), called=called)

    def means_to_xarray(self) -> Any:
        """Return the means as a Dataset, with the names, units and coordinates of the features.

        Returns
        -------
        xarray.Dataset
            The variables of the data that the model was fitted on. The dimension ``component``
            takes the place of the sample dimensions, in the order of `weights_`.

        Raises
        ------
        InvalidInputError
            The model was fitted on rows without labels.

        Examples
        --------
        >>> import daskcoreset, xarray as xr
        >>> cells = np.random.default_rng(0).normal(280.0, 9.0, size=(40, 30))
        >>> air = xr.DataArray(cells, dims=("lat", "lon"), name="t2m", attrs={"units": "K"})
        >>> cells = daskcoreset.open_rows(air, sample_dims=("lat", "lon"))
        >>> model = CoresetGaussianMixture(2, random_state=0).fit(cells)
        >>> model.means_to_xarray().t2m.attrs["units"]
        'K'
        """
        return self._rows_to_xarray("means_", "component")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the weighted mean log-density of all rows, in one pass if X is out of core.

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
        """Return the Bayesian information criterion on all rows, in one pass if X is out of core.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        sample_weight : array-like of shape (n,), or str, optional
            With weights, the total weight takes the place of the number of rows.

        Returns
        -------
        float
            The lower, the better.
        """
        weight, total = self._likelihood(X, sample_weight)
        return float(-2.0 * total + self._fitted.n_parameters * np.log(weight))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Return Akaike's information criterion on all rows, in one pass if X is out of core.

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
        densities = partial(score_samples, self._fitted)
        return weighted_sum(self._open_fitted(X, sample_weight), densities)
