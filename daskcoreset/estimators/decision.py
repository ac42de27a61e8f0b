"""Fitted decision functions, and classifiers that predict by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.estimators.base import CoresetModel
from daskcoreset.estimators.checks import SparseInput


class DecisionFunction(ABC):
    """A fitted decision function, from rows to decision values and classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, in the order of the decision values.
    """

    classes: AnyArray

    @abstractmethod
    def values(self, points: Points) -> FloatArray:
        """Decision values of rows, of shape (n, 1) for two classes and (n, n_classes) for more."""

    def decide(self, points: Points) -> FloatArray:
        """Decision values of rows, of shape (n,) for two classes and (n, n_classes) for more."""
        values = self.values(points)
        return values[:, 0] if len(self.classes) <= 2 else values

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
        """Return the decision value of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, n_classes), float64
            With two classes, a positive value predicts the second one. With more, there is one
            value per class, and the largest is predicted. Lazy if X is out of core.
        """
        check_is_fitted(self, "_decision")
        decide = self._decision.decide
        return self._apply(X, decide, called=("decision", "class"), classes=self.classes_)

    def predict(self, X: Any) -> Any:
        """Return the predicted class of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            Lazy if X is out of core.
        """
        check_is_fitted(self, "_decision")
        return self._apply(X, self._decision.predict, predicts=True)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the rows whose class is predicted, in one pass.

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
        return self._score(self._decision, X, y, sample_weight)
