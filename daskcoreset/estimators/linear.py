"""Answers of linear classifiers: scores of all rows, lazily where they are out of core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from daskcoreset.blocks import Block
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators.base import CoresetModel, is_held
from daskcoreset.estimators.scoring import accuracy
from daskcoreset.margin.products import inner_products

if TYPE_CHECKING:
    from daskcoreset.typing import AnyArray, FloatArray, Points

__all__ = ["LinearClassifier", "Scores"]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of rows: one for two classes, else one a class.

    Attributes
    ----------
    coef : ndarray of shape (1, d) or (K, d), float64
    intercept : ndarray of shape (1,) or (K,), float64
    classes : ndarray of shape (K,), or None
        None returns scores, otherwise the classes of the rows.
    """

    coef: FloatArray
    intercept: FloatArray
    classes: AnyArray | None = None

    def __call__(self, block: Block) -> AnyArray:
        """Return the scores, or classes, of a block."""
        return self.of(block.points)

    def of(self, points: Points) -> AnyArray:
        """Return the same of rows alone."""
        # Not by BLAS: a row has one score, in whatever block it comes.
        scores: AnyArray = inner_products(points, self.coef) + self.intercept
        if scores.shape[1] == 1:
            scores = scores[:, 0]
        if self.classes is None:
            return scores
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        chosen: AnyArray = self.classes[best]
        return chosen


class LinearClassifier(ClassifierMixin, CoresetModel):  # type: ignore[misc] # scikit-learn has no annotations
    """What `coef_` and `intercept_` answer; `fit` of a subclass makes them."""

    classes_: AnyArray
    coef_: FloatArray
    intercept_: FloatArray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X: Any) -> Any:
        """Score of every row: for two classes positive where the second is predicted.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, n_classes), float64
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        scores = Scores(self.coef_, self.intercept_)
        columns = None if len(self.coef_) == 1 else len(self.coef_)
        return self._map(X, scores, scores.of, lambda _: (np.dtype(np.float64), columns))

    def predict(self, X: Any) -> Any:
        """Predict the class of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        scores = Scores(self.coef_, self.intercept_, self.classes_)
        return self._map(X, scores, scores.of, lambda _: (self.classes_.dtype, None))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy over all rows; one read where X is out of core.

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
        check_is_fitted(self)
        if y is None:
            raise InvalidInputError("y is missing; pass the labels that the score compares with.")
        if is_held(X, y, sample_weight):
            return float(super().score(X, y, sample_weight))
        return accuracy(self, self._open(X, y, sample_weight))
