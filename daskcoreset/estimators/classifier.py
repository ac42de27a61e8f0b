"""Fitted decision functions, classifiers that predict by one, and announced classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from daskcoreset.constructions.margin.audit import audit_margin
from daskcoreset.constructions.margin.max_margin import margin_rows
from daskcoreset.constructions.margin.separators import Separator
from daskcoreset.core.blocks import Block, find_missing_label, finite_rows, plain_labels
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.estimators.base import BUILD_CONSTRAINTS, CoresetModel
from daskcoreset.estimators.checks import SparseInput, refuse_as
from daskcoreset.estimators.lazy import apply_method
from daskcoreset.inputs.blocks import RowBlocks, row_blocks


class DecisionFunction(ABC):
    """A fitted decision function, from rows to decision values and classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, in the order of the decision values.
    """

    classes: AnyArray

    @property
    def columns(self) -> int | None:
        """Decision values of a row; None for one, which is positive for the second class."""
        return None if len(self.classes) <= 2 else len(self.classes)

    @abstractmethod
    def values(self, points: Points) -> FloatArray:
        """Decision values of rows, of shape (n, 1) for two classes and (n, n_classes) for more."""

    def margins(self, points: Points, labels: AnyArray) -> FloatArray:
        """How far rows are on the side of their labels: of several classes, ahead of all others.

        Minus infinity for labels that are no class.
        """
        values, codes, known = self.values(points), *self._codes(labels)
        if self.columns is None:
            return np.where(known, values[:, 0] * np.where(codes > 0, 1.0, -1.0), -np.inf)
        places = np.arange(len(codes))
        own = values[places, codes]
        values[places, codes] = -np.inf
        return np.where(known, own - values.max(axis=1), -np.inf)

    def _codes(self, labels: AnyArray) -> tuple[IndexArray, AnyArray]:
        """Places of labels among the classes, and whether they are there."""
        classes = plain_labels(self.classes)
        codes = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
        return codes, np.asarray(classes[codes] == labels)

    def decide(self, points: Points) -> FloatArray:
        """Decision values of rows, of shape (n,) or (n, columns)."""
        values = self.values(points)
        return values[:, 0] if self.columns is None else values

    def predict(self, points: Points) -> AnyArray:
        """Classes of rows."""
        values = self.decide(points)
        codes = values > 0 if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes[codes.astype(np.int64)])


# What the parameters of all classifiers of the largest margin may be.
MARGIN_CONSTRAINTS: dict[str, list[Any]] = {
    "epsilon": [Interval(Real, 0, 1, closed="neither")],
    "fit_intercept": ["boolean"],
    "on_inseparable": [StrOptions({"soft", "raise"})],
    "C": [Interval(Real, 0, None, closed="neither")],
    "on_invalid": BUILD_CONSTRAINTS["on_invalid"],
}


@dataclass(frozen=True, eq=False)
class LinearDecision(DecisionFunction):
    """Hyperplanes: one for two classes, one for each of more.

    Attributes
    ----------
    coef : ndarray of shape (1, d) or (n_classes, d), float64
    intercept : ndarray of shape (1,) or (n_classes,), float64
    classes : ndarray of shape (n_classes,)
    """

    coef: FloatArray
    intercept: FloatArray
    classes: AnyArray

    def values(self, points: Points) -> FloatArray:
        """Decision values of rows."""
        # Not by BLAS: a row has one value, in whatever block it comes.
        return inner_products(points, self.coef) + self.intercept


@dataclass(frozen=True, eq=False)
class SeparatorDecision(DecisionFunction):
    """Separators with a kernel: one for two classes, one for each of more.

    Attributes
    ----------
    separators : tuple of Separator
    classes : ndarray of shape (n_classes,)
    """

    separators: tuple[Separator, ...]
    classes: AnyArray

    def values(self, points: Points) -> FloatArray:
        """Decision values of rows."""
        return np.stack([separator(points) for separator in self.separators], axis=1)

    def margins(self, points: Points, labels: AnyArray) -> FloatArray:
        """Least distance on the right side of the separators, which are one for every class."""
        if self.columns is None:
            return super().margins(points, labels)
        codes, known = self._codes(labels)
        signs = np.where(np.equal.outer(codes, np.arange(len(self.classes))), 1.0, -1.0)
        return np.where(known, (signs * self.values(points)).min(axis=1), -np.inf)


class DecisionModel(SparseInput, ClassifierMixin, CoresetModel):  # type: ignore[misc] # no annotations
    """Base of the classifiers that predict by the decision function that `fit` of a subclass finds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    classes_: AnyArray
    _decision: DecisionFunction

    def _set_hyperplanes(self, coef: FloatArray, intercept: FloatArray) -> None:
        """Set the attributes of a linear classifier, and its decision function."""
        self.coef_, self.intercept_ = coef, intercept
        self._decision = LinearDecision(coef, intercept, self.classes_)

    def decision_function(self, X: Any) -> Any:
        """Value of the model for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, n_classes), float64
            For two classes positive where the second one is predicted; for more, one value a
            class, the largest of which is predicted. Lazy where X is out of core.
        """
        check_is_fitted(self, "_decision")
        decide = partial(apply_method, self._decision, "decide")
        called, columns = ("decision", "class"), self._decision.columns
        return self._apply(X, decide, np.float64, columns, called=called, classes=self.classes_)

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
        check_is_fitted(self, "_decision")
        predict = partial(apply_method, self._decision, "predict")
        return self._apply(X, predict, self.classes_.dtype, predicts=True)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the rows whose class is predicted, in one read.

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
        check_is_fitted(self, "_decision")
        return self._accuracy(self._decision, X, y, sample_weight)


# Why estimators of the largest margin refuse coresets.
NO_MARGIN = (
    "separates all rows by the largest margin, which the few rows next to the boundary decide: "
    "the rows of a coreset are drawn, and need not be these, and their weights say nothing of a "
    "margin. Pass the data, of which it finds these rows itself; or fit CoresetSVC or "
    "CoresetKernelClassifier to the coreset, with its weights."
)


class AuditedMargin(DecisionModel):
    """Base of the estimators that keep a core set for a margin, which their audits compare.

    Attributes
    ----------
    coreset_ : Coreset
        Of weight one; of a soft margin that is fitted to a sample, this sample with its weights.
        Not there where no row is on a boundary, as of one class.
    """

    _no_coreset = NO_MARGIN

    epsilon: float
    on_invalid: Any

    def _keep_core(
        self, method: str, core: WeightedPoints, n_rows: int, facts: Mapping[str, Any]
    ) -> None:
        """Set `coreset_`, if there are any rows."""
        self.__dict__.pop("coreset_", None)  # of an earlier fit
        if not len(core):
            return
        known = {"epsilon": float(self.epsilon), **facts}
        if self._column_names is not None:
            known["columns"] = self._column_names
        self.coreset_ = margin_rows(method, core, n_rows, known)

    def _n_left_out(self) -> int:
        """Rows that need not keep the margin."""
        return 0

    def audit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Compare the margin on `coreset_` with that on all rows, in one read.

        Where the rows are not separable, and the soft margin was fitted to rows that stand for
        all, its losses are compared.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            What the estimator was fitted on, or other rows.
        y : array-like of shape (n,), or str
        sample_weight : array-like of shape (n,), or str, optional
            Rows of weight zero are left out.
        **options
            ``on_invalid``, ``progress`` and ``random_state`` of `daskcoreset.audit`,
            though nothing is random. With ``objective``, or ``solutions``, all of them: costs are
            compared then, and rows of weight one stand for all rows in no sum of costs. All of
            them, too, where losses are compared.

        Returns
        -------
        daskcoreset.margin.MarginAudit
            Whether the data keep ``1 - epsilon`` of the largest margin, and how many rows are on
            the wrong side; an `Audit` with ``objective``, and of losses.

        Raises
        ------
        InvalidInputError
            If there is no core set, or an argument cannot be used.

        Examples
        --------
        >>> from daskcoreset.estimators import MaxMarginClassifier
        >>> X = np.random.default_rng(0).normal(size=(5000, 2))
        >>> y = X[:, 0] > 0
        >>> report = MaxMarginClassifier().fit(X, y).audit(X, y)
        >>> report.holds, report.n_wrong, report.n_core < 100
        (True, 0, True)
        """
        check_is_fitted(self)
        if not hasattr(self, "coreset_"):
            raise InvalidInputError(
                f"{type(self).__name__} has no core set to audit: no rows were found that decide a "
                f"margin between two classes. score(X, y) gives the share of rows that are right."
            )
        of_costs = {"objective", "solutions", "n_clusters"} & options.keys()
        if of_costs or self._judged_by() is not None:
            return super().audit(X, y, sample_weight, **options)
        unknown = options.keys() - {"on_invalid", "progress", "random_state"}
        if unknown:
            raise InvalidTypeError(
                f"{min(unknown)} says how costs are compared, and no cost is: leave it out, or "
                f"pass objective."
            )
        if y is None:
            raise InvalidInputError(
                "y is missing, and a margin is between labels; pass those of X."
            )
        core, record = self.coreset_, self.coreset_.provenance
        on_invalid = options.get("on_invalid", self.on_invalid)
        given = self._known_blocks(X, y, sample_weight, on_invalid=on_invalid)
        blocks = self._checked(given)
        return audit_margin(
            blocks,
            Block(core.points, core.weights, core.labels),
            self._decision.margins,
            largest=float(record.get("core_margin", np.nan)),
            epsilon=float(self.epsilon),
            n_left_out=self._n_left_out(),
            progress=options.get("progress", False),
        )


class MarginModel(AuditedMargin):
    """Base of the estimators of the largest margin of labelled rows."""

    _used: IndexArray | None
    # Finite rows in memory that were left out since they have no weight.
    _n_unused = 0

    def _in_data(self, indices: IndexArray) -> IndexArray:
        """Row numbers in the data as given: rows in memory without a weight were left out."""
        return indices if self._used is None else self._used[indices]

    def _labelled_blocks(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[RowBlocks, AnyArray | None]:
        """Open the data; those in memory have codes for labels, whose names come along."""
        # What reads the rows drops those that are not finite, and numbers the others as they were.
        data = self._validate_in_memory(X, y, sample_weight, finite=False)
        self._used, self._n_unused = None, 0
        if data is not None:
            with refuse_as("y"):
                check_classification_targets(data.y)
            names, codes = np.unique(np.asarray(data.y), return_inverse=True)
            if data.sample_weight is None or data.sample_weight.all():
                return self._blocks(data.X, codes, data.sample_weight), names
            used = np.flatnonzero(data.sample_weight)
            self._used = used
            unused = np.flatnonzero(data.sample_weight == 0.0)
            self._n_unused = len(finite_rows(data.X[unused]))
            return self._blocks(data.X[used], codes[used], data.sample_weight[used]), names
        self._require_labels(y)
        blocks = self._blocks(X, y, sample_weight)
        self._set_features(X, blocks.schema.n_features, blocks.columns, blocks.cube)
        return blocks, None

    def _blocks(self, X: Any, y: Any, sample_weight: Any) -> RowBlocks:
        return row_blocks(X, y, sample_weight, on_invalid=self.on_invalid)


def announced_classes(
    classes: Any, earlier: AnyArray | None, *, as_text: bool = False
) -> AnyArray | None:
    """Return the announced classes, sorted; None if no call has given them.

    Parameters
    ----------
    classes : array-like of shape (n_classes,) or None
        As a call of ``partial_fit`` gives them.
    earlier : ndarray of shape (n_classes,) or None
        Those of earlier calls.
    as_text : bool, default=False
        Whether objects become text, as in a coreset.

    Raises
    ------
    InvalidInputError
        If both are given and differ, or one is None, NaN or infinite.

    Examples
    --------
    >>> announced_classes(["yes", "no"], None)
    array(['no', 'yes'], dtype='<U3')
    """
    if classes is None:
        return earlier
    with refuse_as("classes"):
        labels = np.asarray(classes).ravel()
    missing = find_missing_label(labels)
    if missing is not None:
        raise InvalidInputError(
            f"classes holds {labels[missing.row]!r} at place {missing.row}, which is no class; "
            f"leave it out."
        )
    with refuse_as("classes"):
        distinct: AnyArray = np.unique(labels)
    distinct = plain_labels(distinct) if as_text else distinct
    if earlier is not None and not np.array_equal(distinct, earlier):
        raise InvalidInputError(
            f"classes={distinct} differ from those of the first call, {earlier}; pass the same, "
            f"or None."
        )
    return distinct


class IncompleteClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no annotations
    """Extends a fitted classifier of some classes to all of them.

    Classes that are to come are never predicted: their decision values lie one below the
    lowest of the others, their probabilities are zero, and of the hyperplanes not yet fitted
    the coefficients are zero and the intercepts minus infinity.

    Parameters
    ----------
    inner : estimator or None
        Fitted on rows of two classes or more; None where all rows are of one.
    classes : ndarray of shape (n_classes,)
        All classes, sorted.
    seen : ndarray of shape (n_seen,)
        Those of the rows.
    n_features : int

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, d) or (n_classes, d), float64
    intercept_ : ndarray of shape (1,) or (n_classes,), float64

    Examples
    --------
    >>> model = IncompleteClassifier(None, np.array(["a", "b", "c"]), np.array(["b"]), 2)
    >>> model.predict(np.zeros((2, 2))).tolist(), model.predict_proba(np.zeros((1, 2))).tolist()
    (['b', 'b'], [[0.0, 1.0, 0.0]])
    """

    def __init__(
        self, inner: Any, classes: AnyArray, fitted_classes: AnyArray, n_features: int
    ) -> None:
        self.inner = inner
        self.classes = classes
        self.fitted_classes = fitted_classes
        self.n_features = n_features

    @property
    def classes_(self) -> AnyArray:
        """All classes."""
        return self.classes

    @property
    def _fitted_codes(self) -> Any:
        return np.searchsorted(self.classes, self.fitted_classes)

    def predict(self, X: Any) -> AnyArray:
        """Class of every row."""
        if self.inner is None:
            return np.repeat(self.classes[self._fitted_codes], X.shape[0])
        return np.asarray(self.classes[np.searchsorted(self.classes, self.inner.predict(X))])

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values, of shape (n,) for two classes, else (n, n_classes)."""
        if len(self.classes) == 2:
            return np.repeat(self.intercept_, X.shape[0])
        fitted_values = np.ones((X.shape[0], 1))
        if self.inner is not None:
            values = np.asarray(self.inner.decision_function(X), dtype=np.float64)
            fitted_values = _one_per_class(values.reshape(X.shape[0], -1).T).T
        values = np.repeat(
            fitted_values.min(axis=1)[:, np.newaxis] - 1.0, len(self.classes), axis=1
        )
        values[:, self._fitted_codes] = fitted_values
        return values

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of every class; zero for those without rows so far."""
        shares = np.zeros((X.shape[0], len(self.classes)))
        shares[:, self._fitted_codes] = 1.0 if self.inner is None else self.inner.predict_proba(X)
        return shares

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of the probability of every class."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @property
    def coef_(self) -> FloatArray:
        """Coefficients."""
        if len(self.classes) == 2:
            return np.zeros((1, self.n_features))
        coef = np.zeros((len(self.classes), self.n_features))
        if self.inner is not None:
            coef[self._fitted_codes] = _one_per_class(self.inner.coef_)
        return coef

    @property
    def intercept_(self) -> FloatArray:
        """Intercepts."""
        if len(self.classes) == 2:
            return np.where(self._fitted_codes == 1, 1.0, -1.0)
        intercept = np.full(len(self.classes), -np.inf)
        fitted_intercept = np.ones(1)
        if self.inner is not None:
            fitted_intercept = _one_per_class(np.reshape(self.inner.intercept_, -1))
        intercept[self._fitted_codes] = fitted_intercept
        return intercept


def _one_per_class(values: AnyArray) -> AnyArray:
    """Values of every class, where those of two classes are given as one of the second."""
    return np.concatenate([-values, values]) if len(values) == 1 else values
