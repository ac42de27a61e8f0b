"""Linear regression on coresets, and from exact moments: ridge, elastic net."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.linear_model import ElasticNet, Ridge
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskcoreset._build import build_many
from daskcoreset.core.blocks import find_inexact_value, find_missing_label
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.data_summary import MAX_COLUMNS, DataSummary
from daskcoreset.core.errors import InvalidInputError, about_no_member
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.points import deduplicate
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.validation import a_type
from daskcoreset.estimators.base import (
    AUTO_SIZE,
    BUILD_CONSTRAINTS,
    CoresetModel,
    is_for_any_k,
    resolve_for,
    solver_seed,
)
from daskcoreset.estimators.checks import Rows, SparseInput, refuse, refuse_as
from daskcoreset.estimators.lazy import apply_method
from daskcoreset.estimators.meta import of_inner
from daskcoreset.estimators.scoring import r_squared
from daskcoreset.estimators.solving import check_solver, handed_on, solve_with, solver_of
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.options import ReadOptions
from daskcoreset.objectives import Objective
from daskcoreset.sensitivities import LeastSquares, Sensitivity

RidgeSolver: TypeAlias = Literal[
    "auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"
]

# What the parameters of all of them may be.
_CONSTRAINTS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0.0, None, closed="left")],
    **BUILD_CONSTRAINTS,
    "size": AUTO_SIZE,
    "estimator": [HasMethods(["fit", "predict"]), None],
    "fit_intercept": ["boolean"],
}


class LinearCoresetRegressor(SparseInput, RegressorMixin, CoresetModel):  # type: ignore[misc] # no annotations
    """Base of the linear regressors; subclasses choose the construction and the solver.

    Attributes
    ----------
    estimator_ : estimator object
        Fitted on the coreset, or from exact moments.
    coreset_ : Coreset
    exact_ : bool
        Whether the solution is that of all rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.
    """

    size: int | Literal["auto"]
    method: str | Sensitivity[Any]
    random_state: RandomState
    estimator: Any
    fit_intercept: bool
    exact_: bool
    # Moments of all rows, while `fit` runs, of as many targets.
    _summary: DataSummary | None = None
    _n_targets: int | None = None

    @abstractmethod
    def _own_method(self) -> Sensitivity[Any]:
        """Return the construction that is made for the loss."""

    @abstractmethod
    def _default_solver(self) -> Any:
        """Return the default solver."""

    def _exact_solver(self, summary: DataSummary) -> Any:
        """Return the fitted solution of all rows, for one target, by their moments."""
        raise NotImplementedError

    @property
    def _wants_moments(self) -> bool:
        """Whether the solution is to be that of the moments, where they are known."""
        return False

    def _judged_by(self) -> Objective[Any] | None:
        return self._own_method().objective if is_for_any_k(self.coreset_) else None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Build the coreset, and solve.

        Parameters
        ----------
        X : array-like of shape (n, d), path, Coreset or Portfolio
            Any input of `daskcoreset.build`; or a coreset with numbers as labels, which is fitted
            on as it is: without y and weights.
        y : array-like of shape (n,), or str
            Numbers. A string where `daskcoreset.build` takes names. Of shape (n, t) for several
            targets at once, where the estimator takes them: in memory, or as a Dask array
            beside one.
        sample_weight : array-like of shape (n,), or str, optional
            Weights of the rows.

        Returns
        -------
        LinearCoresetRegressor
            The estimator itself.

        Raises
        ------
        InvalidTypeError
            If the ``fit`` of `estimator` takes no ``sample_weight``.
        InvalidInputError, ValueError, TypeError
            If another argument cannot be used.
        """
        self._validate_params()
        check_solver(self)
        rows, names = self._rows(X, y, sample_weight)
        method = resolve_for(self.method, None, self._own_method())
        self._summary = None
        try:
            coreset = self._coreset_of(
                rows, X, size=self.size, method=method, seed=resolve_seed(self.random_state)
            )
            self._solve(coreset)
        finally:
            self._summary = None
        self.n_features_in_ -= (self._n_targets or 1) - 1
        if names is not None:
            self.feature_names_in_ = names
        return self

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Any]:
        """Open the rows, with targets but the last beside them; and names that this hides."""
        several = {"multi_output": True} if self.__sklearn_tags__().target_tags.multi_output else {}
        self._n_targets = None
        data = self._validate_in_memory(X, y, sample_weight, y_numeric=True, **several)
        if data is not None:
            with refuse_as("y"):
                refuse(find_inexact_value("y", np.ravel(data.y)))
                targets = np.asarray(data.y, dtype=np.float64)
            if targets.ndim == 1:
                return replace(data, y=targets), None
            self._n_targets = targets.shape[1]
            stack = np.hstack if isinstance(data.X, np.ndarray) else _stacked
            joined = stack([data.X, targets[:, :-1]]) if targets.shape[1] > 1 else data.X
            names = getattr(self, "feature_names_in_", None)
            if names is not None:
                del self.feature_names_in_
            self.n_features_in_ = joined.shape[1]
            return replace(data, X=joined, y=np.ascontiguousarray(targets[:, -1])), names
        self._require_labels(y)
        if several and getattr(y, "ndim", 1) == 2 and not _is_one_target(X, y):
            X, y = self._beside(X, y)
        return row_blocks(X, y, sample_weight, on_invalid=self.on_invalid), None

    def _beside(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Put the targets but the last beside the columns of X, both Dask arrays."""
        import dask.array as da

        if not (isinstance(X, da.Array) and hasattr(y, "__array__")):
            raise InvalidInputError(
                f"y has several columns, and X is {a_type(X)}; pass both in memory or as "
                f"Dask arrays, or fit one target at a time."
            )
        self._n_targets = int(y.shape[1])
        targets = da.asarray(y).astype(np.float64).rechunk({0: X.chunks[0], 1: -1})
        if self._n_targets == 1:
            return X, targets[:, 0]
        joined = da.concatenate([X, targets[:, :-1]], axis=1).rechunk({1: -1})
        return joined, targets[:, -1]

    def _built(self, blocks: RowBlocks, **options: Any) -> Coreset:
        """Build the coreset, and take exact moments from the same read."""
        columns = blocks.schema.n_features
        known = self.size != "auto" and self.estimator is None and columns <= MAX_COLUMNS
        if not (self._wants_moments and known):
            return super()._built(blocks, **options)
        methods, sizes = {"rows": options.pop("method")}, options.pop("size")
        with about_no_member("rows"):
            portfolio = build_many(blocks, methods=methods, sizes=sizes, **options)
        self._summary = portfolio.moments
        member: Coreset = portfolio["rows"]
        return member

    def _solve(self, coreset: Coreset) -> None:
        """Solve by the moments, or on the coreset."""
        self.coreset_ = coreset
        count, summary = (self._n_targets or 1), self._summary
        n_features = coreset.n_features - (count - 1)
        self.exact_ = False
        if summary is not None and summary.y_mean is not None and summary.count > 1:
            with one_thread():
                fits = [
                    self._exact_solver(_of_target(summary, n_features, k)) for k in range(count)
                ]
            self.estimator_ = fits[0]
            if self._n_targets is not None:
                fits[0].coef_ = np.stack([fit.coef_ for fit in fits])
                fits[0].intercept_ = np.array([fit.intercept_ for fit in fits])
            self.exact_ = True
            return
        points, weights, labels = deduplicate(coreset.points, coreset.weights, coreset.labels)
        if labels is not None:
            refuse(find_missing_label(labels))
        with refuse_as("y"):
            numbers = np.asarray(labels, dtype=np.float64)
        if self._n_targets is not None:
            extra: Any = points[:, n_features:]
            extra = extra if isinstance(extra, np.ndarray) else extra.toarray()
            points, numbers = points[:, :n_features], np.column_stack([extra, numbers])
        solver = solver_of(self, coreset)
        earlier: Any = getattr(self, "estimator_", None)
        if getattr(self, "warm_start", False) and _goes_on(earlier, solver, points, numbers):
            solver = earlier.set_params(**solver.get_params(deep=False))
        self.estimator_ = solve_with(self, solver, points, numbers, weights)

    coef_ = of_inner("coef_", "Coefficients, of shape (d,), or (t, d) for y of shape (n, t).")
    intercept_ = of_inner("intercept_", "Intercept, or one for every target.")

    @property
    def n_iter_(self) -> Any:
        """Iterations of the solver; 1 of one that takes no steps."""
        check_is_fitted(self)
        steps = self.estimator_.n_iter_
        return 1 if steps is None else steps

    def predict(self, X: Any) -> Any:
        """Predict the target of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, t), float64
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        function = partial(apply_method, self.estimator_, "predict")
        several = np.ndim(self.intercept_) > 0
        columns = len(self.intercept_) if several else None
        return self._apply(X, function, np.float64, columns, predicts=not several)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination over all rows, in one read.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str
            The truth; several targets in memory alone.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        several = {"multi_output": True} if np.ndim(self.intercept_) else {}
        data = self._validate_in_memory(X, y, sample_weight, reset=False, **several)
        if (y if data is None else data.y) is None:
            raise InvalidInputError("y is missing; pass the numbers that the score compares with.")
        if data is not None:
            weights = {} if data.sample_weight is None else {"sample_weight": data.sample_weight}
            with refuse_as("y"):
                return float(self.estimator_.score(data.X, data.y, **weights))
        if several:
            raise InvalidInputError(
                "X is out of core, where the score of several targets is not known; pass rows in "
                "memory, or fit one target."
            )
        return r_squared(self.estimator_, self._open(X, y, sample_weight))


def _is_one_target(X: Any, y: Any) -> bool:
    """Whether a target of two dimensions is one of a cube, or a frame of one column."""
    one_column = hasattr(type(y), "columns") and len(y.columns) == 1
    return one_column or ReadOptions.of(X)[1].has_dims


def _goes_on(earlier: Any, solver: Any, points: Any, numbers: Any) -> bool:
    """Whether a solver can go on from an earlier fit."""
    shape = (*numbers.shape[1:], points.shape[1])
    return type(earlier) is type(solver) and earlier.coef_.shape == shape


def _stacked(parts: list[Any]) -> Any:
    return sp.csr_array(sp.hstack(parts, format="csr"))


def _of_target(summary: DataSummary, n_features: int, target: int) -> DataSummary:
    """Return the moments of the columns of X and one target, of which the last is the label.

    They have no names of columns, for the solver is given arrays.
    """
    d = n_features
    if len(summary.mean) == d:
        return replace(summary, columns=None)
    places = [*range(d), d + target]
    assert summary.y_mean is not None  # noqa: S101 - the caller has looked
    means = np.append(summary.mean, summary.y_mean)
    return replace(
        summary,
        mean=summary.mean[:d],
        scatter=summary.scatter[np.ix_(places, places)],
        y_mean=float(means[d + target]),
        columns=None,
    )


class _SeveralTargets(LinearCoresetRegressor):
    """Base of those that take y of several columns, and whose solution moments know."""

    exact: bool

    @property
    def _wants_moments(self) -> bool:
        return self.exact

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class CoresetRidge(_SeveralTargets):
    r"""Ridge regression of data of any size, exact from one read.

    The cost :math:`\sum_i u_i (y_i - \langle x_i, w \rangle - b)^2 + \alpha |w|^2` of any w and b
    is known from the second moments of the columns and y, which the read that draws the
    coreset sums up. The coefficients are those of all rows, then: no coreset has a part in them,
    and `exact_` is True. `coreset_` is for all else, such as plots, audits and other penalties.

    Parameters
    ----------
    alpha : float, default=1.0
        As in scikit-learn; zero is least squares.
    size : int or "auto", default=10_000
        Rows of the coreset; "auto" grows it until two agree, as in `daskcoreset.build`, and takes
        no moments.
    estimator : estimator object or None, default=None
        What solves on the coreset: any linear regressor of scikit-learn whose ``fit`` takes
        ``sample_weight``, with its own parameters. None takes ``Ridge`` with this `alpha`.
    fit_intercept : bool, default=True
    exact : bool, default=True
        Whether to solve by the moments, where these are known: up to 1,024 columns, with a number
        as `size` and no `estimator`, of data and not of a coreset. False solves on the coreset.
    positive : bool, default=False
        Whether coefficients must not be negative.
    max_iter : int or None, default=None
        Of the solver, as in scikit-learn; the moments need steps with `positive` alone.
    tol : float, default=1e-4
        Of the solver.
    solver : str, default="auto"
        Of ``Ridge``, on the coreset; one that refuses the other parameters is refused before
        anything is read. From the moments the solution is that of every solver.
    method : str or Sensitivity, default="least_squares"
        Construction of the coreset, as in `daskcoreset.build`. The default is made for this loss.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`; "multinomial" needs ``passes=2``.
    passes : {1, 2}, default=1
        Reads of the data for the coreset, as in `daskcoreset.build`.
    random_state : int, Generator, RandomState or None, default=None
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity in `fit`: an error, or they are left out, as in
        `daskcoreset.build`, also for None.

    Attributes
    ----------
    exact_ : bool
        Whether the solution is that of all rows.
    estimator_ : estimator object
        A fitted ``Ridge``, or the `estimator`.
    coreset_ : Coreset
        With y as its labels; of several targets all but the last are further columns.
    coef_ : ndarray of shape (d,) or (t, d), float64
    intercept_ : float or ndarray of shape (t,)
    n_iter_ : int
        Iterations of the solver; 1 of one that takes no steps.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Notes
    -----
    Moments are summed up about the mean, in float64, so that offsets of the data cost no digits.
    They are squares, nevertheless: of columns that are linear combinations of others to
    within some :math:`10^{-7}` of their spread, small parts of the coefficients are lost, as they
    are with the Cholesky solver of scikit-learn.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_CONSTRAINTS,
        "exact": ["boolean"],
        "positive": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "solver": [StrOptions(set(get_args(RidgeSolver)))],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        size: int | Literal["auto"] = 10_000,
        estimator: Any = None,
        fit_intercept: bool = True,
        exact: bool = True,
        positive: bool = False,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: RidgeSolver = "auto",
        method: str | Sensitivity[Any] = "least_squares",
        sampling: Literal["systematic", "multinomial"] = "systematic",
        passes: Literal[1, 2] = 1,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.alpha = alpha
        self.size = size
        self.estimator = estimator
        self.fit_intercept = fit_intercept
        self.exact = exact
        self.positive = positive
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.method = method
        self.sampling = sampling
        self.passes = passes
        self.random_state = random_state
        self.on_invalid = on_invalid

    def _own_method(self) -> LeastSquares:
        return LeastSquares(bool(self.fit_intercept), float(self.alpha))

    def _default_solver(self) -> Ridge:
        return Ridge(**handed_on(self, Ridge))

    def _exact_solver(self, summary: DataSummary) -> Ridge:
        options = {"max_iter": self.max_iter, "tol": self.tol} if self.positive else {}
        return summary.ridge(
            float(self.alpha),
            fit_intercept=bool(self.fit_intercept),
            positive=bool(self.positive),
            **options,
        )


class CoresetElasticNet(_SeveralTargets):
    r"""Elastic net, or lasso, of data of any size, exact from one read.

    The cost :math:`\frac{1}{2 W} \sum_i u_i (y_i - \langle x_i, w \rangle - b)^2 + \alpha \rho
    |w|_1 + \frac{\alpha (1 - \rho)}{2} |w|^2`, W the total weight, of any w and b is known from
    second moments, as it is for `CoresetRidge`, which see.

    Parameters
    ----------
    alpha : float, default=1.0
        As in scikit-learn.
    l1_ratio : float, default=0.5
        :math:`\rho`; one for the lasso.
    size : int or "auto", default=10_000
        Rows of the coreset; "auto" grows it until two agree, as in `daskcoreset.build`, and takes
        no moments.
    estimator : estimator object or None, default=None
        What solves on the coreset: any linear regressor of scikit-learn whose ``fit`` takes
        ``sample_weight``, with its own parameters. None takes ``ElasticNet``.
    fit_intercept : bool, default=True
    exact : bool, default=True
        Whether to solve by the moments, where these are known; as in `CoresetRidge`.
    positive : bool, default=False
        Whether coefficients must not be negative.
    max_iter : int, default=1000
        Of the solver.
    tol : float, default=1e-4
        Of the solver.
    selection : {"cyclic", "random"}, default="cyclic"
        Which coefficient the solver changes next.
    warm_start : bool, default=False
        Whether the solver on the coreset goes on from the fit before, of as many columns; from
        moments the solution takes no time.
    method : str or Sensitivity, default="least_squares"
        Construction of the coreset, as in `daskcoreset.build`. The default is made for this loss.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`; "multinomial" needs ``passes=2``.
    passes : {1, 2}, default=1
        Reads of the data for the coreset, as in `daskcoreset.build`.
    random_state : int, Generator, RandomState or None, default=None
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity in `fit`: an error, or they are left out, as in
        `daskcoreset.build`, also for None.

    Attributes
    ----------
    exact_ : bool
        Whether the solution is that of all rows, up to `tol`.
    estimator_ : estimator object
        A fitted ``ElasticNet``, or the `estimator`.
    coreset_ : Coreset
        With y as its labels; of several targets all but the last are further columns.
    coef_ : ndarray of shape (d,) or (t, d), float64
    intercept_ : float or ndarray of shape (t,)
    n_iter_ : int or list of int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

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
        "exact": ["boolean"],
        "positive": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "selection": [StrOptions({"cyclic", "random"})],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        size: int | Literal["auto"] = 10_000,
        estimator: Any = None,
        fit_intercept: bool = True,
        exact: bool = True,
        positive: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-4,
        selection: Literal["cyclic", "random"] = "cyclic",
        warm_start: bool = False,
        method: str | Sensitivity[Any] = "least_squares",
        sampling: Literal["systematic", "multinomial"] = "systematic",
        passes: Literal[1, 2] = 1,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.size = size
        self.estimator = estimator
        self.fit_intercept = fit_intercept
        self.exact = exact
        self.positive = positive
        self.max_iter = max_iter
        self.tol = tol
        self.selection = selection
        self.warm_start = warm_start
        self.method = method
        self.sampling = sampling
        self.passes = passes
        self.random_state = random_state
        self.on_invalid = on_invalid

    def _own_method(self) -> LeastSquares:
        return LeastSquares(bool(self.fit_intercept))

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "l1_ratio": self.l1_ratio,
            "fit_intercept": bool(self.fit_intercept),
            "positive": self.positive,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "selection": self.selection,
            "random_state": solver_seed(resolve_seed(self.coreset_.provenance.get("seed"))),
        }

    def _default_solver(self) -> ElasticNet:
        return ElasticNet(**handed_on(self, ElasticNet))

    def _exact_solver(self, summary: DataSummary) -> ElasticNet:
        return summary.elastic_net(float(self.alpha), **self._options)
