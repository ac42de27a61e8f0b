"""Linear regression from exact moments, or on coresets: ridge and elastic net."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.linear_model import ElasticNet, Ridge
from sklearn.utils._param_validation import HasMethods, Interval

from daskcoreset._build import build_many
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.invalid import refuse
from daskcoreset.core.labels import find_unusable_label
from daskcoreset.core.linalg import flat_directions, one_thread, ridge_coefficients, scatter_root
from daskcoreset.core.portfolio import MAX_COLUMNS, DataSummary
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.base import BUILD_CONSTRAINTS, Problem
from daskcoreset.estimators.checks import refuse_as
from daskcoreset.estimators.linear import LinearModel
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.sensitivities import LeastSquares, Sensitivity

# What the parameters of both may be.
_CONSTRAINTS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0.0, None, closed="left")],
    **BUILD_CONSTRAINTS,
    "estimator": [HasMethods(["fit", "predict"]), None],
    "fit_intercept": ["boolean"],
    "positive": ["boolean"],
}


class LinearCoresetRegressor(RegressorMixin, LinearModel):  # type: ignore[misc] # no annotations
    """Base of the linear regressors. Subclasses choose the penalty.

    Attributes
    ----------
    estimator_ : estimator object
        Fitted on the coreset, or from exact moments.
    coreset_ : Coreset
    exact_ : bool
        Whether the solution is that of all rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        If the columns of X have names.
    """

    exact_: bool

    score = LinearModel.score  # not that of the mixin

    def _own_method(self) -> LeastSquares:
        """Return the construction that is made for the loss."""
        return LeastSquares(bool(self.fit_intercept))

    @abstractmethod
    def _exact_solver(self, moments: DataSummary) -> Any:
        """Return the fitted solution of all rows, by their moments."""

    def _built(self, blocks: RowBlocks, **options: Any) -> tuple[Coreset, DataSummary | None]:
        """Build the coreset, and take exact moments from the same pass."""
        if self.estimator is not None or blocks.schema.n_features > MAX_COLUMNS:
            return super()._built(blocks, **options)
        methods, sizes = {"rows": options.pop("method")}, options.pop("size")
        portfolio = build_many(blocks, methods=methods, sizes=sizes, **options)
        return portfolio["rows"], portfolio.moments

    def _solve(self, problem: Problem) -> None:
        """Solve by the moments, or on the coreset."""
        moments: DataSummary | None = problem.beside
        if moments is not None and moments.y_mean is not None and moments.count > 1:
            with one_thread():
                self.estimator_, self.exact_ = self._exact_solver(moments), True
            return
        refuse(find_unusable_label(problem.labels))
        with refuse_as("y"):
            labels = np.asarray(problem.labels, dtype=np.float64)
        self.estimator_, self.exact_ = self._solve_rows(problem.coreset, labels), False


class CoresetRidge(LinearCoresetRegressor):
    r"""Ridge regression for data of any size, exact from one pass.

    The cost :math:`\sum_i u_i (y_i - \langle x_i, w \rangle - b)^2 + \alpha |w|^2` of any w and b
    follows from the second moments of the columns and y. The pass that draws the coreset sums
    them up, so the coefficients are those of all rows, and `exact_` is True. The solver uses the
    coreset instead if you pass an `estimator`, if X has more than 1,024 columns, or if X is a
    coreset. See :doc:`/guides/labels`.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty, as in scikit-learn. Zero is least squares.
    size : int, default=10_000
        Rows of the coreset.
    estimator : estimator object or None, default=None
        Solver for the coreset, in place of the moments. It is any linear regressor of scikit-learn
        whose ``fit`` takes ``sample_weight``, with its own parameters.
    fit_intercept : bool, default=True
    positive : bool, default=False
        Whether coefficients must not be negative.
    method : str or Sensitivity, default="least_squares"
        Method of the coreset, as in `daskcoreset.build`. The default is made for this loss.
    random_state : int, Generator, RandomState or None, default=None
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity in `fit`: raise an error, or drop them. None raises.

    Attributes
    ----------
    exact_ : bool
        Whether the solution is that of all rows.
    estimator_ : estimator object
        A fitted ``Ridge``, or the `estimator`.
    coreset_ : Coreset
        With y as its labels, for plots, audits and other penalties.
    coef_ : ndarray of shape (d,), float64
    intercept_ : float
    n_iter_ : int
        Iterations of the solver, or 1 if it has none.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        If the columns of X have names.

    Notes
    -----
    Moments are float64 sums about the mean, so large offsets are safe. If columns are linear
    combinations of others to within :math:`10^{-7}` of their spread, coefficients lose digits, as
    with the Cholesky solver of scikit-learn.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.linear_model import Ridge
    >>> X = da.random.default_rng(0).normal(size=(50_000, 3), chunks=(25_000, 3))
    >>> y = X @ np.array([1.0, -2.0, 0.0]) + 3.0
    >>> model = CoresetRidge(alpha=10.0, size=500, random_state=0).fit(X, y)
    >>> model.exact_, bool(np.allclose(model.coef_, Ridge(10.0).fit(X, y).coef_))
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _CONSTRAINTS

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        size: int = 10_000,
        estimator: Any = None,
        fit_intercept: bool = True,
        positive: bool = False,
        method: str | Sensitivity[Any] = "least_squares",
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.alpha = alpha
        self.size = size
        self.estimator = estimator
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.method = method
        self.random_state = random_state
        self.on_invalid = on_invalid

    def _own_method(self) -> LeastSquares:
        return LeastSquares(bool(self.fit_intercept), float(self.alpha))

    @property
    def _options(self) -> dict[str, bool]:
        return {"fit_intercept": bool(self.fit_intercept), "positive": bool(self.positive)}

    def _default_solver(self) -> Ridge:
        return Ridge(self.alpha, **self._options)

    def _exact_solver(self, moments: DataSummary) -> Ridge:
        model = Ridge(float(self.alpha), **self._options)
        if self.positive:
            # Steps take no time, of as many rows as columns.
            fitted: Ridge = _fitted_to_root(model.set_params(tol=1e-10), moments, 1.0)
            return fitted
        # Whatever the units of columns are.
        matrix = _with_intercept(moments, fit_intercept=model.fit_intercept)
        model.coef_ = ridge_coefficients(matrix, model.alpha)
        if not model.alpha:
            # Columns that say the same have one solution of least length, as in scikit-learn.
            flat = flat_directions(matrix[:-1, :-1])
            model.coef_ = model.coef_ - flat @ (flat.T @ model.coef_)
        model.intercept_ = _intercept(model, moments)
        model.n_features_in_, model.n_iter_, model.solver_ = len(model.coef_), None, "cholesky"
        return model


class CoresetElasticNet(LinearCoresetRegressor):
    r"""Elastic net, or lasso, for data of any size, exact from one pass.

    The cost :math:`\frac{1}{2 U} \sum_i u_i (y_i - \langle x_i, w \rangle - b)^2 + \alpha \rho
    |w|_1 + \frac{\alpha (1 - \rho)}{2} |w|^2`, U the total weight, follows from second moments, as
    that of `CoresetRidge` does. See :doc:`/guides/labels`.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty, as in scikit-learn.
    l1_ratio : float, default=0.5
        The :math:`\rho` of the cost. One gives the lasso.
    size : int, default=10_000
        Rows of the coreset.
    estimator : estimator object or None, default=None
        Solver for the coreset, in place of the moments. It is any linear regressor of scikit-learn
        whose ``fit`` takes ``sample_weight``, with its own parameters.
    fit_intercept : bool, default=True
    positive : bool, default=False
        Whether coefficients must not be negative.
    max_iter : int, default=1000
    tol : float, default=1e-4
        Tolerance of the solver, as in scikit-learn.
    method : str or Sensitivity, default="least_squares"
        Method of the coreset, as in `daskcoreset.build`. The default is made for this loss.
    random_state : int, Generator, RandomState or None, default=None
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity in `fit`: raise an error, or drop them. None raises.

    Attributes
    ----------
    exact_ : bool
        Whether the solution is that of all rows.
    estimator_ : estimator object
        A fitted ``ElasticNet``, or the `estimator`.
    coreset_ : Coreset
        With y as its labels, for plots, audits and other penalties.
    coef_ : ndarray of shape (d,), float64
    intercept_ : float
    n_iter_ : int
        Iterations of the solver, or 1 if it has none.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        If the columns of X have names.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(50_000, 3), chunks=(25_000, 3))
    >>> y = X @ np.array([1.0, -2.0, 0.0]) + 3.0
    >>> model = CoresetElasticNet(0.1, l1_ratio=1.0, size=500, random_state=0).fit(X, y)
    >>> model.exact_, (model.coef_.round(1) + 0.0).tolist()
    (True, [0.9, -1.9, 0.0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_CONSTRAINTS,
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        size: int = 10_000,
        estimator: Any = None,
        fit_intercept: bool = True,
        positive: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-4,
        method: str | Sensitivity[Any] = "least_squares",
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.size = size
        self.estimator = estimator
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.max_iter = max_iter
        self.tol = tol
        self.method = method
        self.random_state = random_state
        self.on_invalid = on_invalid

    @property
    def _options(self) -> dict[str, Any]:
        names = ("l1_ratio", "fit_intercept", "positive", "max_iter", "tol")
        return {name: getattr(self, name) for name in names}

    def _default_solver(self) -> ElasticNet:
        return ElasticNet(self.alpha, **self._options)

    def _exact_solver(self, moments: DataSummary) -> ElasticNet:
        model = ElasticNet(float(self.alpha), **self._options)
        # Its cost is a mean over the rows, and these are as many as there are columns, and one.
        scale = (len(moments.mean) + 1) / moments.weight
        fitted: ElasticNet = _fitted_to_root(model, moments, scale)
        return fitted


def _with_intercept(moments: DataSummary, *, fit_intercept: bool) -> FloatArray:
    """Scatter of the columns and y about their means, or about the origin."""
    if fit_intercept:
        return moments.scatter
    mean = np.append(moments.mean, [moments.y_mean or 0.0])
    return np.asarray(moments.scatter + moments.weight * np.outer(mean, mean))


def _intercept(model: Any, moments: DataSummary) -> float:
    """Return the best intercept for given coefficients."""
    assert moments.y_mean is not None  # noqa: S101 - `_solve` has looked
    return float(moments.y_mean - moments.mean @ model.coef_) if model.fit_intercept else 0.0


def _fitted_to_root(model: Any, moments: DataSummary, scale: float) -> Any:
    """Fit a linear model to the rows of a root of the scatter matrix: their cost is that of all."""
    fit_intercept = model.fit_intercept
    rows = scatter_root(scale * _with_intercept(moments, fit_intercept=fit_intercept))
    model.fit_intercept = False
    model.fit(np.asfortranarray(rows[:, :-1]), rows[:, -1])
    model.fit_intercept = fit_intercept
    model.intercept_ = _intercept(model, moments)
    return model
