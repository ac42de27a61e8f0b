"""Fitted decision functions, classifiers that predict by one, and announced classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from daskcoreset.core.blocks import find_missing_label, plain_labels
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.estimators.base import CoresetModel
from daskcoreset.estimators.checks import SparseInput, refuse_as
from daskcoreset.estimators.lazy import apply_method


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

    def decide(self, points: Points) -> FloatArray:
        """Decision values of rows, of shape (n,) or (n, columns)."""
        values = self.values(points)
        return values[:, 0] if self.columns is None else values

    def predict(self, points: Points) -> AnyArray:
        """Classes of rows."""
        values = self.decide(points)
        codes = values > 0 if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes[codes.astype(np.int64)])


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
