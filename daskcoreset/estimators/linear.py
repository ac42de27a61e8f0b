"""Linear classifiers on coresets: support vector machine and logistic regression."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from daskcoreset.constructions.tree.stream import CoresetStream
from daskcoreset.core.blocks import check_classes, plain_labels
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, caller_level
from daskcoreset.core.points import deduplicate
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.estimators.base import (
    AUTO_SIZE,
    BUILD_CONSTRAINTS,
    CoresetModel,
    coreset_is_all,
    is_for_any_k,
    resolve_for,
    warn_lost_classes,
)
from daskcoreset.estimators.checks import (
    CheckedParameters,
    Rows,
    SparseInput,
    refuse_as,
    validate_rows,
)
from daskcoreset.estimators.class_weights import (
    contained_factors,
    count_classes,
    remember_factors,
    unweighed,
    weigh_blocks,
    weigh_rows,
    weights_for,
)
from daskcoreset.estimators.classifier import IncompleteClassifier, announced_classes
from daskcoreset.estimators.solving import (
    check_solver,
    handed_on,
    logistic_penalty,
    solve_with,
    solver_of,
)
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.objectives import Objective
from daskcoreset.sensitivities import SVM, Logistic, Sensitivity
from daskcoreset.sensitivities.svm_calibration import Variant
from daskcoreset.solvers.linear import LinearFit, solve_svm

Solver: TypeAlias = Literal["lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"]

# What the parameters of both linear classifiers may be.
_CONSTRAINTS: dict[str, list[Any]] = {
    "C": [Interval(Real, 0.0, None, closed="neither")],
    **BUILD_CONSTRAINTS,
    "size": AUTO_SIZE,
    "estimator": [HasMethods(["fit", "predict"]), None],
    "fit_intercept": ["boolean"],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "verbose": ["verbose"],
}


class LinearCoresetModel(SparseInput, SparseCoefMixin, ClassifierMixin, CoresetModel):  # type: ignore[misc] # no annotations
    """Base of the linear classifiers; subclasses choose the construction and the solver.

    Attributes
    ----------
    estimator_ : estimator object
        The solver, fitted on the coreset.
    coreset_ : Coreset
        With the labels of y; those that are objects as text.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.
    """

    size: int | Literal["auto"]
    method: str | Sensitivity[Any]
    random_state: RandomState
    class_weight: Any
    estimator: Any
    classes_: AnyArray
    _stream: CoresetStream | None
    _announced: AnyArray | None

    @abstractmethod
    def _own_method(self) -> Sensitivity[Any]:
        """Return the construction that is made for the loss."""

    def _method(self) -> Sensitivity[Any]:
        """Return the construction."""
        return resolve_for(self.method, getattr(self, "n_clusters", None), self._own_method())

    def _judged_by(self) -> Objective[Any] | None:
        return self._own_method().objective if is_for_any_k(self.coreset_) else None

    @abstractmethod
    def _default_solver(self) -> Any:
        """Return the default solver."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Build the coreset, and solve on it.

        Parameters
        ----------
        X : array-like of shape (n, d), path, Coreset, Portfolio, CoresetTree or TreeWindow
            Any input of `daskcoreset.build`; or a coreset with labels, such as a member of a
            `daskcoreset.Portfolio`, which is fitted on as it is: without y and weights. A
            portfolio stands for its only member, or the only one of the method of the estimator; a
            `CoresetTree`, or a window of one, for its coreset. If its weights contain weights of
            classes, as those of `coreset_` do, `class_weight` takes their place.
        y : array-like of shape (n,), or str
            Labels. A string where `daskcoreset.build` takes names.
        sample_weight : array-like of shape (n,), or str, optional
            Weights of the rows.

        Returns
        -------
        LinearCoresetModel
            The estimator itself.

        Raises
        ------
        InvalidTypeError
            If the ``fit`` of `estimator` takes no ``sample_weight``.
        InvalidInputError, ValueError, TypeError
            If another argument cannot be used; if y is of one class.
        """
        self._validate_params()
        check_solver(self)
        data = self._validate_in_memory(X, y, sample_weight)
        classes = None
        if data is not None:
            with refuse_as("y"):
                check_classification_targets(data.y)
            # Counted from zero: a coreset turns labels that are objects into text.
            classes, codes = np.unique(data.y, return_inverse=True)
            if len(classes) > 2:
                check_solver(self, len(classes))
            contained = contained_factors(data.coreset)
            weights = weigh_rows(self.class_weight, data.y, data.sample_weight, contained)
            used = np.unique(codes if weights is None else codes[weights > 0.0])
            if len(used) == 1:
                check_classes(classes[used], len(codes))  # with the label of y, not its place
            rows: Rows = replace(data, y=codes, sample_weight=weights)
            before = unweighed(data.weights, data.y, contained)
            labels: RowBlocks | tuple[Any, Any] = (data.y, before)
        else:
            self._require_labels(y)
            rows = labels = weigh_blocks(
                self.class_weight, X, y, sample_weight, on_invalid=self.on_invalid
            )
            if self.estimator is None and getattr(self, "solver", None) == "liblinear":
                check_solver(self, count_classes(rows, y, sample_weight) or 2)
        seed = resolve_seed(self.random_state)
        coreset = self._coreset_of(rows, X, size=self.size, method=self._method(), seed=seed)
        coreset = remember_factors(coreset, self.class_weight, labels)
        self._stream, self._announced = None, None
        return self._solve(coreset, classes)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Take further rows into the coreset, and solve again.

        Goes on from earlier calls, and from what `fit` was given: its coreset stands for those
        rows. Memory is that of `daskcoreset.CoresetStream`.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str
        classes : array-like of shape (n_classes,), optional
            All labels there will be, remembered from the first call that gives them. Rows of
            one class are enough then, and `classes_` are these; what was not seen yet is not
            predicted. Without it, classes are those seen so far, at least two: a new one may come
            at any time, also after `fit`.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        LinearCoresetModel
            The estimator itself.

        Raises
        ------
        InvalidInputError
            If rows do not fit those before, or a label is not among `classes`. Nothing was
            taken then.
        """
        self._validate_params()
        check_solver(self)
        self._check_parts()
        stream = getattr(self, "_stream", None)
        fresh = stream is None and not hasattr(self, "coreset_")
        announced = _two_announced_classes(classes, getattr(self, "_announced", None))
        data = self._validate_in_memory(X, y, sample_weight, reset=fresh, fits=True)
        if data is not None:
            with refuse_as("y"):
                check_classification_targets(data.y)
            X, y = data.X, data.y
            sample_weight = self._weighed(data.coreset, y, data.sample_weight)
        else:
            self._require_labels(y)
            if not fresh:
                self._open(X)
        if stream is None:
            stream = CoresetStream(
                self._method(),
                int(self.size),
                random_state=self.random_state,
                on_invalid=self.on_invalid or "raise",
            )
            if not fresh:
                old = self.coreset_
                stream.partial_fit(
                    old.points, old.labels, self._weighed(old, old.labels, old.weights)
                )
        batch: tuple[Any, ...] = X, y, sample_weight
        if data is None and self.class_weight is not None:
            batch = (weigh_blocks(self.class_weight, X, y, sample_weight),)
        # A copy shares what is never changed, so that a refusal leaves all as it was.
        stream = copy(stream).partial_fit(*batch)
        coreset, fitted = _coreset_of_stream(stream, announced)
        coreset = remember_factors(coreset, self.class_weight, None)
        self._stream, self._announced = stream, announced
        if data is None:
            self._set_features(X, coreset.n_features, coreset.provenance.get("columns"))
        if announced is None or len(fitted) == len(announced):
            return self._solve(coreset, None)
        self.coreset_, inner = coreset, None
        if len(fitted) > 1:
            inner = self._solve(coreset, None).estimator_
        self.estimator_ = IncompleteClassifier(inner, announced, fitted, coreset.n_features)
        self.classes_ = announced
        return self

    def _weighed(self, coreset: Coreset | None, labels: Any, weights: Any) -> FloatArray | None:
        """Weigh a part of a stream, all of which contain the same factors of the classes."""
        contained = contained_factors(coreset)
        if contained and self.class_weight is None:
            raise InvalidInputError(
                f"the weights of the coreset contain class_weight={dict(contained)}, and rows of "
                f"partial_fit get none; pass this class_weight to {type(self).__name__}."
            )
        return weigh_rows(self.class_weight, labels, weights, contained)

    def _check_parts(self) -> None:
        """Check that no parameter needs all rows."""
        if self.class_weight == "balanced":
            raise InvalidInputError(
                'class_weight="balanced" needs the labels of all rows, which partial_fit does not '
                "have; pass the weights of the classes as a dict."
            )
        if self.size == "auto":
            raise InvalidInputError(
                'size="auto" compares coresets of all rows, which partial_fit does not have; pass '
                "a number of rows."
            )

    def _solve(self, coreset: Coreset, classes: AnyArray | None) -> Self:
        """Solve on a coreset; with `classes`, its labels are places among these."""
        points, weights, labels = deduplicate(coreset.points, coreset.weights, coreset.labels)
        assert labels is not None  # noqa: S101 - constructions ask for them
        if classes is not None:
            labels = classes[labels]
            coreset = replace(coreset, labels=plain_labels(classes)[coreset.labels])
        self.coreset_ = coreset
        check_classes(np.unique(labels)[:2], len(labels))
        if classes is not None and not coreset_is_all(coreset):
            warn_lost_classes(classes, labels)
        solver = solver_of(self, coreset)
        weights = weights_for(solver, coreset, labels, weights)
        earlier: Any = getattr(self, "estimator_", None)
        if getattr(self, "warm_start", False) and _fits(earlier, solver, points, labels):
            solver = earlier.set_params(**solver.get_params(deep=False))
        self.estimator_ = solve_with(self, solver, points, labels, weights)
        self.classes_ = self.estimator_.classes_
        return self

    @property
    def coef_(self) -> FloatArray:
        """Coefficients w, of shape (1, d), or (n_classes, d)."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.coef_  # type: ignore[no-any-return]

    @coef_.setter
    def coef_(self, coef: Any) -> None:
        check_is_fitted(self, "estimator_")
        self.estimator_.coef_ = coef

    @property
    def intercept_(self) -> FloatArray:
        """Intercepts b, of shape (1,), or (n_classes,)."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.intercept_  # type: ignore[no-any-return]

    @intercept_.setter
    def intercept_(self, intercept: Any) -> None:
        check_is_fitted(self, "estimator_")
        self.estimator_.intercept_ = intercept

    @property
    def n_iter_(self) -> Any:
        """Iterations of the solver, of shape (1,), or (n_classes,)."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.n_iter_

    def audit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Compare costs on `coreset_` with those on all rows, in one read; see `CoresetModel`."""
        if self.class_weight is not None:  # the weights of the coreset contain it
            X = self._as_fitted(X)
            on_invalid = options.pop("on_invalid", self.on_invalid)
            X = weigh_blocks(self.class_weight, X, y, sample_weight, on_invalid=on_invalid)
            y = sample_weight = None
        return super().audit(X, y, sample_weight, **options)

    def predict(self, X: Any) -> Any:
        """Class of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            Lazy where X is out of core.
        """
        return self._delegate(X, "predict")

    def decision_function(self, X: Any) -> Any:
        """Signed distance from the boundary, times the length of w.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, n_classes), float64
            Lazy where X is out of core.
        """
        return self._delegate(X, "decision_function", "decision", by_class=True)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy over all rows, in one read.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
        """
        check_is_fitted(self, "estimator_")
        return self._accuracy(self.estimator_, X, y, sample_weight)


def _fits(earlier: Any, solver: Any, points: Points, labels: AnyArray) -> bool:
    """Whether a solver can go on from an earlier fit."""
    return (
        type(earlier) is type(solver)
        and earlier.coef_.shape[1] == points.shape[1]
        and np.array_equal(earlier.classes_, np.unique(labels))
    )


def _two_announced_classes(classes: Any, earlier: AnyArray | None) -> AnyArray | None:
    announced = announced_classes(classes, earlier, as_text=True)
    if announced is not None and len(announced) < 2:
        raise InvalidInputError(f"classes={announced} are fewer than two; pass all there will be.")
    return announced


def _coreset_of_stream(
    stream: CoresetStream, announced: AnyArray | None
) -> tuple[Coreset, AnyArray]:
    """Coreset of a stream, and the classes that it has rows of, all of them announced."""
    rows = stream.rows()
    assert rows.labels is not None  # noqa: S101 - constructions ask for them
    present = np.unique(rows.labels[rows.weights > 0.0])
    wrong = np.setdiff1d(present, present if announced is None else announced)
    if len(wrong):
        raise InvalidInputError(f"y holds {wrong[0]!r}, which is not among classes, {announced}.")
    if announced is None or len(present) != 1:
        coreset = stream.coreset(normalize=True)
        return coreset, np.unique(coreset.labels)  # type: ignore[arg-type] # there are labels
    # No construction draws from rows of one class: all that is held stands for them.
    record = {"m": len(rows), "n": stream.n_rows - stream.n_dropped, "d": rows.n_features}
    return Coreset(rows.points, rows.weights, rows.indices, rows.labels, record), present


class LinearSVM(CheckedParameters, SparseInput, SparseCoefMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc] # no annotations
    r"""Minimises :math:`|w|^2/2 + C \sum_i u_i [1 - y_i (\langle x_i, w \rangle + b)]_+`.

    The objective is that of ``SVC(kernel="linear")``; the intercept is not penalised, as it is
    by ``LinearSVC``. Newton's method on a hinge that is rounded off less and less, until the
    dual problem shows that the cost is within `tol` of the optimum, whatever C and the units of
    the features are. For rows in memory; more than two classes go one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the penalty.
    fit_intercept : bool, default=True
    tol : float, default=1e-5
        Share of the optimal cost by which the cost may lie above it.
    class_weight : dict of label to float, "balanced" or None, default=None
        Factors of the weights of rows, as in scikit-learn.
    max_iter : int, default=1000
        Newton steps at most, for every problem.
    verbose : int, default=0
        Whether every problem prints a line.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) or (n_classes, d), float64
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    n_iter_ : ndarray of shape (1,) or (n_classes,), int64
        Newton steps taken.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When `max_iter` steps were taken.

    Examples
    --------
    >>> model = LinearSVM().fit([[-2.0], [2.0]], ["left", "right"])
    >>> model.predict([[0.5], [-0.5]]).tolist()
    ['right', 'left']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "tol": _CONSTRAINTS["tol"],
        "class_weight": _CONSTRAINTS["class_weight"],
        "max_iter": _CONSTRAINTS["max_iter"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-5,
        class_weight: Any = None,
        max_iter: int = 1000,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve one problem for two classes, or one for each of more.

        Parameters
        ----------
        X : array-like or sparse of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        LinearSVM
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used: there is one class only, or squared distances overflow.
        """
        self._validate_params()
        data = validate_rows(self, X, y, sample_weight)
        with refuse_as("y"):
            check_classification_targets(data.y)
        all_weights = weigh_rows(self.class_weight, data.y, data.sample_weight)
        data = replace(data, sample_weight=all_weights)
        used = np.flatnonzero(data.weights > 0.0)
        points, weights = data.X[used], data.weights[used]
        self.classes_, codes = np.unique(data.y[used], return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInputError(
                f"y holds {len(self.classes_)} class of positive weight, and a classifier needs "
                f"two; pass rows of two classes."
            )
        positive = range(len(self.classes_)) if len(self.classes_) > 2 else (1,)
        fits = [
            solve_svm(
                points,
                np.where(codes == code, 1.0, -1.0),
                weights,
                self.C,
                intercept=self.fit_intercept,
                tol=self.tol,
                max_steps=self.max_iter,
            )
            for code in positive
        ]
        self._report(fits)
        self.coef_ = np.stack([fit.coef for fit in fits])
        self.intercept_ = np.array([fit.intercept for fit in fits])
        self.n_iter_ = np.array([max(fit.steps, 1) for fit in fits])
        return self

    def _report(self, fits: Sequence[LinearFit]) -> None:
        """Print what was found, and warn of problems that were not solved."""
        if self.verbose:
            for fit in fits:
                facts = f"{fit.steps} steps, cost {fit.cost:.6g}, optimum >= {fit.bound:.6g}"
                sys.stdout.write(f"[{type(self).__name__}] {facts}\n")
        if any(fit.steps >= self.max_iter for fit in fits):
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} steps; raise "
                f"max_iter or tol.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )

    def decision_function(self, X: Any) -> FloatArray:
        """Signed distances, times the length of w: of shape (n,), or (n, n_classes)."""
        check_is_fitted(self)
        points = validate_rows(self, X, reset=False).X
        products = points @ self.coef_.T
        dense = products.toarray() if hasattr(products, "toarray") else products
        values: FloatArray = np.asarray(dense) + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose class is predicted."""
        check_is_fitted(self)
        with refuse_as("y or sample_weight"):
            return float(super().score(X, y, sample_weight))

    def predict(self, X: Any) -> AnyArray:
        """Class of every row."""
        values = self.decision_function(X)
        best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[best])


class CoresetLogisticRegression(LinearCoresetModel):
    r"""Logistic regression of data of any size.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against :math:`|w|^2/2`, as in scikit-learn; infinity for no penalty.
    size : int or "auto", default=10_000
        Rows of the coreset; "auto" grows it until two agree, as in `daskcoreset.build`.
    estimator : estimator object or None, default=None
        What solves on the coreset: any linear classifier of scikit-learn whose ``fit`` takes
        ``sample_weight``, with its own parameters. None takes ``LogisticRegression`` with this
        `C` and the other parameters of it below.
    solver : {"lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"}, default="lbfgs"
        Of ``LogisticRegression``, which says what each is good for; "lbfgs" is scikit-learn's
        default, for it takes any number of classes. Whatever it is, the coreset is the same.
    l1_ratio : float, default=0.0
        Share of :math:`|w|_1` in the penalty, in place of :math:`|w|^2/2`: 1 for that alone, which
        "liblinear" and "saga" take, and "saga" anything between. A penalty is the same on all
        rows as on a coreset, so that this is one for all. It stands for ``penalty``, which
        scikit-learn gives up, like ``C=np.inf`` for none.
    dual : bool, default=False
        Whether "liblinear" solves the dual problem, which pays with more columns than rows. It
        takes two classes: labels out of core are read first, to count them.
    intercept_scaling : float, default=1
        Entry of the column that stands for the intercept in "liblinear", which penalises it.
    fit_intercept : bool, default=True
    class_weight : dict of label to float, "balanced" or None, default=None
        Factors of the weights of rows, as in scikit-learn; "balanced" gives every class the same
        total weight, and takes one more read of the labels where they are out of core. The draws
        are made for the weighted loss, and the weights of `coreset_` contain the factors: leave
        the ``class_weight`` of `estimator` alone.
    method : str or Sensitivity, default="logistic"
        Construction of the coreset, as in `daskcoreset.build`. The default is made for this loss
        and this `C`, in two reads; ``Logistic(reads=1)`` reads once.
    tol : float, default=1e-4
        When the default solver stops; an `estimator` has its own, like the next two.
    max_iter : int, default=1000
        Its steps at most: scikit-learn's 100 are few for columns of different units, and a step
        on a coreset is short.
    verbose : int, default=0
        Whether it prints what it does.
    warm_start : bool, default=False
        Whether the solver goes on from the fit before, where classes and columns are the same.
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
    estimator_ : estimator object
        The solver, fitted on the coreset.
    coreset_ : Coreset
        With the labels of y; those that are objects as text.
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, d) or (n_classes, d), float64
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Of the solver. `coef_` and `intercept_` can be set, and are then those of `estimator_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(50_000, 3), chunks=(25_000, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = CoresetLogisticRegression(size=500, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape  # nothing is read yet
    (50000, 2)
    >>> model.score(X, y) > 0.98
    True

    References
    ----------
    Munteanu, Schwiegelshohn, Sohler and Woodruff (2018), On Coresets for Logistic Regression.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_CONSTRAINTS,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "solver": [StrOptions(set(get_args(Solver)))],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "dual": ["boolean"],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        size: int | Literal["auto"] = 10_000,
        estimator: Any = None,
        solver: Solver = "lbfgs",
        l1_ratio: float = 0.0,
        dual: bool = False,
        intercept_scaling: float = 1,
        fit_intercept: bool = True,
        class_weight: Any = None,
        method: str | Sensitivity[Any] = "logistic",
        tol: float = 1e-4,
        max_iter: int = 1000,
        verbose: int = 0,
        warm_start: bool = False,
        sampling: Literal["systematic", "multinomial"] = "systematic",
        passes: Literal[1, 2] = 1,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.C = C
        self.size = size
        self.estimator = estimator
        self.solver = solver
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.intercept_scaling = intercept_scaling
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.sampling = sampling
        self.passes = passes
        self.random_state = random_state
        self.on_invalid = on_invalid

    def _own_method(self) -> Logistic:
        # Without a penalty the pilot has that of C = 1, which is little.
        lam = float(self.C) if np.isfinite(self.C) else 1.0
        return Logistic(intercept=bool(self.fit_intercept), lam=lam)

    def _default_solver(self) -> LogisticRegression:
        penalty = logistic_penalty(self.l1_ratio, self.C)
        options = handed_on(self, LogisticRegression)
        return LogisticRegression(**{**options, "l1_ratio": None, **penalty})

    def predict_proba(self, X: Any) -> Any:
        """Probability of every class, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_classes), float64
            Lazy where X is out of core.
        """
        return self._delegate(X, "predict_proba", "probability", by_class=True)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of the probability of every class, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_classes), float64
            Lazy where X is out of core.
        """
        return self._delegate(X, "predict_log_proba", "log_probability", by_class=True)


class CoresetSVC(LinearCoresetModel):
    r"""Linear support vector machine of data of any size.

    Builds a coreset for the objective :math:`F(w, b) = |w|^2/2 + C \sum_x u(x) [1 - y(x)
    (\langle x, w \rangle + b)]_+`, solves on it, and predicts for all rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, as in scikit-learn; the paper's :math:`\lambda`.
    size : int or "auto", default=2000
        Rows of the coreset; "auto" grows it until two agree, as in `daskcoreset.build`.
        ``benchmarks/results/svm_offline.md`` says how far the cost over all data is from the
        optimum with 2000: little with some ten columns, and far above it on w8a, which has 300
        and few positives.
    estimator : estimator object or None, default=None
        What solves on the coreset: any linear classifier of scikit-learn whose ``fit`` takes
        ``sample_weight``, with its own parameters. None takes `LinearSVM` with this `C`, which
        leaves the intercept without penalty, as the objective does. ``LinearSVC`` penalises it
        unless its ``intercept_scaling`` is large.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What the default solver minimises; "hinge" is what rows are drawn for. Squared, it is
        ``LinearSVC`` that solves, on the same rows, which did far better than as many uniform
        ones: ``docs/guide/labels.md`` says how near to its optimum they came. `audit` and
        ``size="auto"`` judge by the hinge.
    penalty : {"l2", "l1"}, default="l2"
        Of ``LinearSVC``, which has "l1" for the squared hinge alone; it makes many `coef_` zero.
    dual : bool or "auto", default="auto"
        Of ``LinearSVC``; "auto" chooses by shape and parameters. True or False takes ``LinearSVC``
        for the hinge as well, which penalises the intercept.
    intercept_scaling : float, default=1
        Of ``LinearSVC``: the intercept is the weight of a column of this number, penalised like
        the others. Any other than 1 takes ``LinearSVC``.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        Of ``LinearSVC``: each of several classes against the rest, for which rows are drawn and by
        which `audit` judges, or one problem of all, whose loss is one of its own.
    fit_intercept : bool, default=True
    class_weight : dict of label to float, "balanced" or None, default=None
        Factors of the weights of rows, as in scikit-learn; "balanced" gives every class the same
        total weight, and takes one more read of the labels where they are out of core. The draws
        are made for the weighted loss, and the weights of `coreset_` contain the factors: leave
        the ``class_weight`` of `estimator` alone.
    method : str or Sensitivity, default="svm"
        Construction of the coreset, as in `daskcoreset.build`. The default is made for this loss.
    tol : float, default=1e-5
        When the default solver stops; an `estimator` has its own, like the next two.
    max_iter : int, default=1000
        Its steps at most.
    verbose : int, default=0
        Whether it prints what it does.
    variant : {"auto", "pilot_mix", "calibrated", "systematic", "paper"}, default="auto"
        As in `daskcoreset.SVM`.
    n_clusters : int or None, default=None
        As in `daskcoreset.SVM`.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`; "multinomial" needs ``passes=2``.
    passes : {1, 2}, default=1
        As in `daskcoreset.build`: with 1 the data are read twice in all.
    random_state : int, Generator, RandomState or None, default=None
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity in `fit`: an error, or they are left out, as in
        `daskcoreset.build`, also for None.

    Attributes
    ----------
    estimator_ : estimator object
        The solver, fitted on the coreset.
    coreset_ : Coreset
        With the labels of y; those that are objects as text.
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, d) or (n_classes, d), float64
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Of the solver. `coef_` and `intercept_` can be set, and are then those of `estimator_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Notes
    -----
    A coreset is one for the features as they are, and so is the penalty: scale them first
    where their units differ. scikit-learn's ``StandardScaler`` in a pipeline does so in
    memory; out of core, scale the array by its means and deviations.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(50_000, 3), chunks=(25_000, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = CoresetSVC(size=500, random_state=0).fit(X, y)
    >>> model.predict(X)  # nothing is read yet
    dask.array<..., shape=(50000,), dtype=int64, chunksize=(25000,), chunktype=numpy.ndarray>
    >>> model.score(X, y) > 0.98
    True

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), On Coresets for Support Vector Machines.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_CONSTRAINTS,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "penalty": [StrOptions({"l1", "l2"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither")],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "variant": [StrOptions({"auto", "pilot_mix", "calibrated", "systematic", "paper"})],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        size: int | Literal["auto"] = 2000,
        estimator: Any = None,
        loss: Literal["hinge", "squared_hinge"] = "hinge",
        penalty: Literal["l2", "l1"] = "l2",
        dual: bool | Literal["auto"] = "auto",
        intercept_scaling: float = 1,
        multi_class: Literal["ovr", "crammer_singer"] = "ovr",
        fit_intercept: bool = True,
        class_weight: Any = None,
        method: str | Sensitivity[Any] = "svm",
        tol: float = 1e-5,
        max_iter: int = 1000,
        verbose: int = 0,
        variant: Variant = "auto",
        n_clusters: int | None = None,
        sampling: Literal["systematic", "multinomial"] = "systematic",
        passes: Literal[1, 2] = 1,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.C = C
        self.size = size
        self.estimator = estimator
        self.loss = loss
        self.penalty = penalty
        self.dual = dual
        self.intercept_scaling = intercept_scaling
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.variant = variant
        self.n_clusters = n_clusters
        self.sampling = sampling
        self.passes = passes
        self.random_state = random_state
        self.on_invalid = on_invalid

    def _own_method(self) -> SVM:
        return SVM(float(self.C), self.n_clusters, self.variant, bool(self.fit_intercept))

    def _default_solver(self) -> LinearSVM | LinearSVC:
        hinge = {
            "loss": "hinge", "penalty": "l2", "dual": "auto", "intercept_scaling": 1,
            "multi_class": "ovr",
        }  # fmt: skip
        if all(getattr(self, name) == value for name, value in hinge.items()):
            return LinearSVM(**handed_on(self, LinearSVM))
        return LinearSVC(**handed_on(self, LinearSVC))
