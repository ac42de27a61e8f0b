"""A classifier some of whose classes have not been seen yet: a stream has to begin somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from daskcoreset.core.blocks import Block, find_missing_label, plain_labels
from daskcoreset.core.errors import InvalidInputError

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray

__all__ = ["Awaiting", "distinct_classes", "known_classes"]


def distinct_classes(classes: Any) -> AnyArray:
    """Return the labels that a call of ``partial_fit`` announces, sorted.

    Raises
    ------
    InvalidInputError
        If one is None, NaN or infinite.
    """
    given = np.asarray(classes).ravel()
    missing = find_missing_label(Block(np.zeros((len(given), 1)), np.ones(len(given)), given))
    if missing is not None:
        raise InvalidInputError(
            f"classes holds {given[missing.row]!r} at place {missing.row}, which is no class; "
            f"leave it out."
        )
    found: AnyArray = np.unique(given)
    return found


def known_classes(classes: Any, before: AnyArray | None) -> AnyArray | None:
    """Return the classes there will be, sorted, or None where nobody said.

    Parameters
    ----------
    classes : array-like of shape (n_classes,) or None
        As a call of ``partial_fit`` gives them.
    before : ndarray of shape (n_classes,) or None
        Those of earlier calls.

    Raises
    ------
    InvalidInputError
        If both are given and differ, or `classes` are fewer than two, or one is no label.

    Examples
    --------
    >>> known_classes(["yes", "no"], None)
    array(['no', 'yes'], dtype='<U3')
    """
    if classes is None:
        return before
    found = plain_labels(distinct_classes(classes))
    if before is not None and not np.array_equal(found, before):
        raise InvalidInputError(
            f"classes={found} differ from those of the first call, {before}; pass the same, or "
            f"None."
        )
    if len(found) < 2:
        raise InvalidInputError(f"classes={found} are fewer than two; pass all there will be.")
    return found


class Awaiting(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no annotations
    """What a fitted classifier of some classes says of all of them.

    Classes that are to come are never predicted: their decision values lie one below the
    lowest of the others, their probabilities are zero, and of the hyperplanes that nobody knows
    yet the coefficients are zero and the intercepts minus infinity.

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
    >>> model = Awaiting(None, np.array(["a", "b", "c"]), np.array(["b"]), 2)
    >>> model.predict(np.zeros((2, 2))).tolist(), model.predict_proba(np.zeros((1, 2))).tolist()
    (['b', 'b'], [[0.0, 1.0, 0.0]])
    """

    def __init__(self, inner: Any, classes: AnyArray, seen: AnyArray, n_features: int) -> None:
        self.inner = inner
        self.classes = classes
        self.seen = seen
        self.n_features = n_features

    @property
    def classes_(self) -> AnyArray:
        """All classes."""
        return self.classes

    @property
    def _places(self) -> Any:
        return np.searchsorted(self.classes, self.seen)

    def predict(self, X: Any) -> AnyArray:
        """Class of every row."""
        if self.inner is None:
            return np.repeat(self.classes[self._places], X.shape[0])
        found: AnyArray = self.classes[np.searchsorted(self.classes, self.inner.predict(X))]
        return found

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values, of shape (n,) for two classes, else (n, n_classes)."""
        if len(self.classes) == 2:
            return np.repeat(self.intercept_, X.shape[0])
        known = np.ones((X.shape[0], 1))
        if self.inner is not None:
            known = np.asarray(self.inner.decision_function(X), dtype=np.float64)
            known = np.stack([-known, known], axis=1) if known.ndim == 1 else known
        values = np.repeat(known.min(axis=1)[:, np.newaxis] - 1.0, len(self.classes), axis=1)
        values[:, self._places] = known
        return values

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of every class, where the solver has any; zero for those to come."""
        shares = np.zeros((X.shape[0], len(self.classes)))
        shares[:, self._places] = 1.0 if self.inner is None else self.inner.predict_proba(X)
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
            own = self.inner.coef_
            coef[self._places] = np.concatenate([-own, own]) if len(own) == 1 else own
        return coef

    @property
    def intercept_(self) -> FloatArray:
        """Intercepts."""
        if len(self.classes) == 2:
            return np.where(self._places == 1, 1.0, -1.0)
        intercept = np.full(len(self.classes), -np.inf)
        if self.inner is None:
            intercept[self._places] = 1.0
        else:
            own = np.asarray(self.inner.intercept_, dtype=np.float64).reshape(-1)
            intercept[self._places] = np.concatenate([-own, own]) if len(own) == 1 else own
        return intercept
