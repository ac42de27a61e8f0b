"""Linear classifiers on coresets: support vector machine and logistic regression."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from copy import copy
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from daskcoreset.constructions.tree.stream import CoresetStream
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.labels import check_classes, plain_labels
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import caller_level
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.core.validation import a_type
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.estimators.base import (
    BUILD_CONSTRAINTS,
    Problem,
    SolvedModel,
    is_for_any_k,
    require_weighted_fit,
    resolve_for,
)
from daskcoreset.estimators.checks import SparseInput, refuse_as, require_y
from daskcoreset.estimators.class_weight import (
    check_labels,
    contained_factors,
    remember_factors,
    weigh_blocks,
    weigh_coreset,
)
from daskcoreset.estimators.meta import InnerClassifier, InnerModel
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.objectives import Objective
from daskcoreset.sensitivities import SVM, Logistic, Sensitivity
from daskcoreset.solvers.linear import solve_svm

# What the parameters of both linear classifiers may be.
_CONSTRAINTS: dict[str, list[Any]] = {
    "C": [Interval(Real, 0.0, None, closed="neither")],
    **BUILD_CONSTRAINTS,
    "estimator": [HasMethods(["fit", "predict"]), None],
    "fit_intercept": ["boolean"],
    "class_weight": [dict, StrOptions({"balanced"}), None],
}


class LinearModel(SparseInput, InnerModel, SolvedModel):
    """Base of the linear models, which run a solver on a coreset: their own, or `estimator`."""

    size: int
    estimator: Any
    fit_intercept: bool
    method: str | Sensitivity[Any]

    @abstractmethod
    def _own_method(self) -> Sensitivity[Any]:
        """Return the construction that is made for the loss."""

    @abstractmethod
    def _default_solver(self) -> Any:
        """Return the default solver."""

    def _judged_by(self) -> Objective[Any] | None:
        return self._own_method().objective if is_for_any_k(self.coreset_) else None

    def _check(self) -> None:
        super()._check()
        if self.estimator is not None:
            require_weighted_fit(self.estimator, "pass one that does")

    def _method(self) -> Sensitivity[Any]:
        return resolve_for(self.method, None, self._own_method())

    def _construction(self, blocks: RowBlocks) -> tuple[Sensitivity[Any], int, None]:
        del blocks
        return self._method(), self.size, None

    def _solve_rows(self, coreset: Coreset, labels: Any) -> Any:
        """Return the solver, fitted on the rows of a coreset with these labels."""
        solver = clone(self._default_solver() if self.estimator is None else self.estimator)
        with one_thread():
            return self._fitted_inner(solver, coreset, labels)

    def _inner(self) -> Any:
        inner = super()._inner()
        return self._default_solver() if inner is None else inner

    @property
    def n_iter_(self) -> Any:
        """Iterations of the solver, or 1 if it has none."""
        steps = self._ready().estimator_.n_iter_
        return 1 if steps is None else steps

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy, or coefficient of determination, over all rows in one pass.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str
            The truth.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
        """
        return self._score(self._ready().estimator_, X, y, sample_weight)


class LinearCoresetModel(ClassifierMixin, InnerClassifier, LinearModel):  # type: ignore[misc] # no annotations
    """Base of the linear classifiers. Subclasses choose the method and the solver.

    Attributes
    ----------
    estimator_ : estimator object
        The solver, fitted on the coreset.
    coreset_ : Coreset
        The coreset, with the labels of y. Labels that are objects become text.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        If the columns of X have names.
    """

    C: float
    class_weight: Any
    _stream: CoresetStream | None = None
    _announced: AnyArray | None = None

    score = LinearModel.score  # not that of the mixin

    def _check(self) -> None:
        super()._check()
        if self.estimator is not None and not is_classifier(self.estimator):
            raise InvalidTypeError(
                f"estimator is {a_type(self.estimator)}, which is not a classifier",
                argument="estimator",
                remedy="pass a linear classifier, such as LogisticRegression()",
            )

    def _built(self, blocks: RowBlocks, **options: Any) -> tuple[Coreset, None]:
        blocks = weigh_blocks(self.class_weight, blocks)
        coreset, _ = super()._built(blocks, **options)
        self._check_classes(coreset, "the rows drawn", ", or raise size to draw a rare class")
        return remember_factors(coreset, blocks.schema.class_weight), None

    def _taken(self, coreset: Coreset) -> Coreset:
        self._check_classes(coreset, "the coreset")
        return weigh_coreset(self.class_weight, coreset)

    def _check_classes(self, coreset: Coreset, home: str, also: str = "") -> None:
        if self.class_weight is not None:
            check_labels(self.class_weight, np.unique(np.asarray(coreset.labels)), home, also)

    def _solve(self, problem: Problem) -> None:
        labels = problem.labels[problem.coreset.weights > 0.0]
        check_classes(np.unique(labels)[:2], len(labels))
        self.estimator_ = self._solve_rows(problem.coreset, problem.labels)
        self._stream = self._announced = None

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Take further rows into the coreset, and solve again.

        Goes on from earlier calls, and from what `fit` was given. Memory is that of
        `daskcoreset.CoresetStream`.

        Parameters
        ----------
        X : array-like of shape (n, d), path or Coreset
        y : array-like of shape (n,), or str, optional
            Labels. Not together with a coreset.
        classes : array-like of shape (n_classes,), optional
            All labels there will be, remembered from the first call that gives them. Other labels
            are errors then, and the first rows may be of one class.
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
        self._check()
        if self.class_weight == "balanced":
            raise InvalidInputError(
                'class_weight="balanced" needs the labels of all rows, which partial_fit does '
                "not have",
                argument="class_weight",
                remedy="pass the weights of the classes as a dict",
            )
        stream = self._stream
        fresh = stream is None and not hasattr(self, "coreset_")
        announced = _announced_classes(classes, self._announced)
        if announced is not None and self.class_weight is not None:
            check_labels(self.class_weight, announced, "classes")
        batch, in_memory = self._batch(X, y, sample_weight, fresh=fresh)
        if stream is None:
            stream = CoresetStream(
                self._method(),
                size=self.size,
                random_state=self.random_state,
                on_invalid=self.on_invalid or "raise",
            )
            if not fresh:
                stream.partial_fit(*self._weighed(self.coreset_))
        # A copy shares what is never changed, so that a refusal leaves all as it was.
        stream = copy(stream).partial_fit(*batch)
        coreset = _of_stream(stream, announced)
        if announced is None:
            also = ", or pass all labels as classes in the first call"
            self._check_classes(coreset, "the rows so far", also)
        if self.class_weight is not None:
            coreset = remember_factors(coreset, self.class_weight.items())
        if announced is None or len(np.unique(coreset.labels)) > 1:  # type: ignore[arg-type] # there are labels
            self._solve(Problem(coreset, coreset.labels))
        else:
            self.estimator_ = DummyClassifier(strategy="most_frequent")
            self.estimator_.fit(coreset.points, coreset.labels, sample_weight=coreset.weights)
        self.coreset_, self._stream, self._announced = coreset, stream, announced
        if not in_memory:
            self._set_features(X, coreset.n_features, coreset.provenance.get("columns"))
        return self

    def _batch(
        self, X: Any, y: Any, sample_weight: Any, *, fresh: bool
    ) -> tuple[tuple[Any, ...], bool]:
        """Return the rows of a call as a stream takes them, and whether they are in memory."""
        data = self._validate_in_memory(X, y, sample_weight, reset=fresh, fits=True)
        if data is None:
            require_y(self, y)
            if not fresh:
                self._open(X)
            blocks = row_blocks(X, y, sample_weight, on_invalid=self.on_invalid)
        elif data.coreset is not None:
            return self._weighed(data.coreset), True
        else:
            blocks = row_blocks(data.X, data.y, data.sample_weight, chunks=data.X.shape[0])
        return (weigh_blocks(self.class_weight, blocks),), data is not None

    def _weighed(self, coreset: Coreset) -> tuple[Any, Any, FloatArray]:
        """Return a coreset as a part of a stream, all of which contain the same class factors."""
        contained = contained_factors(coreset)
        if contained and self.class_weight is None:
            raise InvalidInputError(
                f"class_weight is None, but the coreset was built with {dict(contained)}",
                argument="class_weight",
                remedy=f"pass this class_weight to {type(self).__name__}",
            )
        coreset = weigh_coreset(self.class_weight, coreset)
        return coreset.points, coreset.labels, coreset.weights


def _announced_classes(classes: Any, earlier: AnyArray | None) -> AnyArray | None:
    """Return the announced classes in the order of a coreset, or None without such a call."""
    if classes is None:
        return earlier
    with refuse_as("classes"):
        distinct = plain_labels(np.unique(np.asarray(classes)))
    if earlier is not None and not np.array_equal(distinct, earlier):
        raise InvalidInputError(
            f"classes={distinct} differ from those of the first call, {earlier}",
            argument="classes",
            remedy="pass the same, or None",
        )
    return distinct


def _of_stream(stream: CoresetStream, announced: AnyArray | None) -> Coreset:
    """Return the coreset of a stream, after a check of its classes against those announced."""
    rows = stream.rows()
    assert rows.labels is not None  # noqa: S101 - constructions ask for them
    present = np.unique(rows.labels[rows.weights > 0.0])
    wrong = np.setdiff1d(present, present if announced is None else announced)
    if len(wrong):
        raise InvalidInputError(
            f"y has {wrong.tolist()[0]!r}, which is not in classes={announced}",
            argument="y",
            remedy="pass all labels as classes in the first call",
        )
    if announced is None or len(present) != 1:
        return stream.coreset(normalize=True)
    # No construction draws from rows of one class: all that is held stands for them.
    record = {"m": len(rows), "n": stream.n_rows - stream.n_dropped, "d": rows.n_features}
    return Coreset(rows.points, rows.weights, rows.indices, rows.labels, record)


# Newton steps of a problem at most; some hundred are usual.
_MAX_STEPS = 1000


class LinearSVM(LinearSVC):  # type: ignore[misc] # scikit-learn has no annotations
    r"""Minimize :math:`|w|^2/2 + C \sum_i u_i [1 - y_i (\langle x_i, w \rangle + b)]_+`.

    This is the objective of ``SVC(kernel="linear")``. The intercept is not penalized, unlike in
    ``LinearSVC``. More than two classes are solved one against the rest. `fit` checks no rows.

    Examples
    --------
    >>> model = LinearSVM().fit(np.array([[-2.0], [2.0]]), np.array(["left", "right"]))
    >>> model.predict(np.array([[0.5], [-0.5]])).tolist()
    ['right', 'left']
    """

    def __init__(self, C: float = 1.0, *, fit_intercept: bool = True, tol: float = 1e-5) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve one problem for two classes, or one for each of more."""
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        used = np.flatnonzero(weights > 0.0)
        self.classes_, codes = np.unique(y[used], return_inverse=True)
        positive = range(len(self.classes_)) if len(self.classes_) > 2 else (1,)
        fits = [
            solve_svm(
                X[used],
                np.where(codes == code, 1.0, -1.0),
                weights[used],
                self.C,
                intercept=self.fit_intercept,
                tol=self.tol,
                max_steps=_MAX_STEPS,
            )
            for code in positive
        ]
        if any(fit.steps >= _MAX_STEPS for fit in fits):
            warnings.warn(
                f"the hinge loss did not reach tol={self.tol} in {_MAX_STEPS} steps; scale the "
                f"columns, or lower C.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )
        self.coef_ = np.stack([fit.coef for fit in fits])
        self.intercept_ = np.array([fit.intercept for fit in fits])
        self.n_iter_ = np.array([max(fit.steps, 1) for fit in fits])
        self.n_features_in_ = X.shape[1]
        return self


class CoresetLogisticRegression(LinearCoresetModel):
    r"""Logistic regression for data of any size.

    Builds a coreset for :math:`F(w, b) = |w|^2/2 + C \sum_x u(x) \ln(1 + e^{-y(x)
    (\langle x, w \rangle + b)})`, solves on it, and predicts for all rows. More than two classes
    are one softmax. See :doc:`/guides/labels`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, as in scikit-learn. ``daskcoreset.Logistic(lam=C)`` draws for the same
        objective. Weights of a coreset add up to those of the data, so C means the same on both.
        Infinity removes the penalty.
    size : int, default=10_000
        Rows of the coreset.
    estimator : estimator object or None, default=None
        Solver for the coreset: any linear classifier of scikit-learn whose ``fit`` takes
        ``sample_weight``. It has its own C and other parameters. None takes
        ``LogisticRegression`` with this `C`.
    fit_intercept : bool, default=True
    class_weight : dict of label to float, "balanced" or None, default=None
        Factors of the weights of rows, as in scikit-learn. "balanced" reads labels out of core
        once more. Rows are drawn for the weighted loss, and the weights of `coreset_` contain the
        factors. Leave the ``class_weight`` of `estimator` at None.
    method : str or Sensitivity, default="logistic"
        Method of the coreset, as in `daskcoreset.build`. The default is made for this loss and
        this `C`. It makes two passes over the data.
    random_state : int, Generator, RandomState or None, default=None
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity in `fit`: raise an error, or drop them. None raises.

    Attributes
    ----------
    estimator_ : estimator object
        The solver, fitted on the coreset.
    coreset_ : Coreset
        The coreset, with the labels of y. Labels that are objects become text.
    classes_ : ndarray of shape (n_classes,)
    coef_, intercept_, n_iter_
        As in `estimator_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        If the columns of X have names.

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
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        size: int = 10_000,
        estimator: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        method: str | Sensitivity[Any] = "logistic",
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.C = C
        self.size = size
        self.estimator = estimator
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.method = method
        self.random_state = random_state
        self.on_invalid = on_invalid

    def _own_method(self) -> Logistic:
        # Without a penalty the pilot has that of C = 1, which is little.
        lam = float(self.C) if np.isfinite(self.C) else 1.0
        return Logistic(intercept=bool(self.fit_intercept), lam=lam)

    def _default_solver(self) -> LogisticRegression:
        # A step on a coreset is short, and columns of different units take many.
        return LogisticRegression(C=self.C, fit_intercept=self.fit_intercept, max_iter=1000)


class CoresetSVC(LinearCoresetModel):
    r"""Linear support vector machine for data of any size.

    Builds a coreset for :math:`F(w, b) = |w|^2/2 + C \sum_x u(x) [1 - y(x)
    (\langle x, w \rangle + b)]_+`, solves on it, and predicts for all rows. More than two classes
    go one against the rest. See :doc:`/guides/labels`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, as in scikit-learn. ``daskcoreset.SVM(lam=C)`` draws for the same
        objective. Weights of a coreset add up to those of the data, so C means the same on both.
    size : int, default=2000
        Rows of the coreset.
    estimator : estimator object or None, default=None
        Solver for the coreset: any linear classifier of scikit-learn whose ``fit`` takes
        ``sample_weight``. It has its own C and other parameters. None takes a solver of this
        objective. ``LinearSVC``
        penalises the intercept, unless its ``intercept_scaling`` is large.
    fit_intercept : bool, default=True
    class_weight : dict of label to float, "balanced" or None, default=None
        Factors of the weights of rows, as in ``SVC``: each row has the factor of its own class in
        every problem. ``LinearSVC`` does not weigh the rest, so that it differs for three or more
        classes. "balanced" reads labels out of core once more. Rows are drawn for the weighted
        loss, and the weights of `coreset_` contain the factors. Leave the ``class_weight`` of
        `estimator` at None.
    method : str or Sensitivity, default="svm"
        Method of the coreset, as in `daskcoreset.build`. The default is made for this loss and
        this `C`. It makes two passes over the data.
    random_state : int, Generator, RandomState or None, default=None
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity in `fit`: raise an error, or drop them. None raises.

    Attributes
    ----------
    estimator_ : estimator object
        The solver, fitted on the coreset.
    coreset_ : Coreset
        The coreset, with the labels of y. Labels that are objects become text.
    classes_ : ndarray of shape (n_classes,)
    coef_, intercept_, n_iter_
        As in `estimator_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        If the columns of X have names.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _CONSTRAINTS

    def __init__(
        self,
        *,
        C: float = 1.0,
        size: int = 2000,
        estimator: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        method: str | Sensitivity[Any] = "svm",
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.C = C
        self.size = size
        self.estimator = estimator
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.method = method
        self.random_state = random_state
        self.on_invalid = on_invalid

    def _own_method(self) -> SVM:
        return SVM(float(self.C), intercept=bool(self.fit_intercept))

    def _default_solver(self) -> LinearSVM:
        return LinearSVM(self.C, fit_intercept=self.fit_intercept)
