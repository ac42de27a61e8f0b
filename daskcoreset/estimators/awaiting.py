"""Classes announced to `partial_fit`, and a classifier that has not seen all of them yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from daskcoreset.core.blocks import Block, find_missing_label, plain_labels
from daskcoreset.core.errors import InvalidInputError

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray


def announced_classes(
    classes: Any, earlier: AnyArray | None, *, as_text: bool = False
) -> AnyArray | None:
    """Return the classes there will be, sorted, or None where no call has given them.

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
    labels = np.asarray(classes).ravel()
    rows = np.zeros((len(labels), 1))
    missing = find_missing_label(Block(rows, np.ones(len(labels)), labels))
    if missing is not None:
        raise InvalidInputError(
            f"classes holds {labels[missing.row]!r} at place {missing.row}, which is no class; "
            f"leave it out."
        )
    distinct: AnyArray = np.unique(labels)
    distinct = plain_labels(distinct) if as_text else distinct
    if earlier is not None and not np.array_equal(distinct, earlier):
        raise InvalidInputError(
            f"classes={distinct} differ from those of the first call, {earlier}; pass the same, "
            f"or None."
        )
    return distinct


class Awaiting(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no annotations
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
    def _seen_codes(self) -> Any:
        return np.searchsorted(self.classes, self.seen)

    def predict(self, X: Any) -> AnyArray:
        """Class of every row."""
        if self.inner is None:
            return np.repeat(self.classes[self._seen_codes], X.shape[0])
        return np.asarray(self.classes[np.searchsorted(self.classes, self.inner.predict(X))])

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values, of shape (n,) for two classes, else (n, n_classes)."""
        if len(self.classes) == 2:
            return np.repeat(self.intercept_, X.shape[0])
        known = np.ones((X.shape[0], 1))
        if self.inner is not None:
            known = np.asarray(self.inner.decision_function(X), dtype=np.float64)
            known = np.stack([-known, known], axis=1) if known.ndim == 1 else known
        values = np.repeat(known.min(axis=1)[:, np.newaxis] - 1.0, len(self.classes), axis=1)
        values[:, self._seen_codes] = known
        return values

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of every class, where the solver has any; zero for those to come."""
        shares = np.zeros((X.shape[0], len(self.classes)))
        shares[:, self._seen_codes] = 1.0 if self.inner is None else self.inner.predict_proba(X)
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
            coef[self._seen_codes] = np.concatenate([-own, own]) if len(own) == 1 else own
        return coef

    @property
    def intercept_(self) -> FloatArray:
        """Intercepts."""
        if len(self.classes) == 2:
            return np.where(self._seen_codes == 1, 1.0, -1.0)
        intercept = np.full(len(self.classes), -np.inf)
        if self.inner is None:
            intercept[self._seen_codes] = 1.0
        else:
            own = np.asarray(self.inner.intercept_, dtype=np.float64).reshape(-1)
            intercept[self._seen_codes] = np.concatenate([-own, own]) if len(own) == 1 else own
        return intercept
