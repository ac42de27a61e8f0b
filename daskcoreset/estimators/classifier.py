"""Fitted decision functions, and the base of the classifiers that predict by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.estimators.base import CoresetModel, is_in_memory
from daskcoreset.estimators.delegation import Ask
from daskcoreset.estimators.scoring import accuracy
from daskcoreset.inputs.blocks import row_blocks

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.separators import Separator
    from daskcoreset.core.typing import IndexArray
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = [
    "DecisionFunction",
    "DecisionModel",
    "LinearDecision",
    "MarginModel",
    "SeparatorDecision",
]


class DecisionFunction(ABC):
    """What is fitted: applied to rows, it gives decision values, and by them classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, in the order of the decision values.
    """

    classes: AnyArray

    @property
    @abstractmethod
    def columns(self) -> int | None:
        """Decision values of a row; None for one, which is positive for the second class."""

    @abstractmethod
    def decide(self, points: Points) -> FloatArray:
        """Decision values of rows, of shape (n,) or (n, columns)."""

    def predict(self, points: Points) -> AnyArray:
        """Classes of rows."""
        values = self.decide(points)
        codes = values > 0 if values.ndim == 1 else values.argmax(axis=1)
        found: AnyArray = self.classes[codes.astype(np.int64)]
        return found


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

    @property
    def columns(self) -> int | None:
        """Decision values of a row; None for one."""
        return None if len(self.coef) == 1 else len(self.coef)

    def decide(self, points: Points) -> FloatArray:
        """Decision values, of shape (n,) for two classes and (n, n_classes) for more."""
        # Not by BLAS: a row has one value, in whatever block it comes.
        values = inner_products(points, self.coef) + self.intercept
        return values[:, 0] if len(self.coef) == 1 else values


class DecisionModel(ClassifierMixin, CoresetModel):  # type: ignore[misc] # scikit-learn has no annotations
    """Answers of a machine that `fit` of a subclass makes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    classes_: AnyArray
    _machine: DecisionFunction

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

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
        check_is_fitted(self, "_machine")
        machine = self._machine
        shape = np.dtype(np.float64), machine.columns
        return self._map(X, Ask(machine, "decide"), machine.decide, lambda _: shape)

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
        check_is_fitted(self, "_machine")
        machine, shape = self._machine, (self.classes_.dtype, None)
        return self._map(X, Ask(machine, "predict"), machine.predict, lambda _: shape)

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
        check_is_fitted(self, "_machine")
        if y is None:
            raise InvalidInputError("y is missing; pass the labels that the score compares with.")
        if is_in_memory(X, y, sample_weight):
            held = self._hold(X, y, sample_weight, reset=False)
            assert held is not None  # noqa: S101 - it is in memory
            found = self._machine.predict(held.X)
            return float(accuracy_score(held.y, found, sample_weight=held.sample_weight))
        return accuracy(self._machine, self._open(X, y, sample_weight))


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

    @property
    def columns(self) -> int | None:
        """Decision values of a row; None for one."""
        return None if len(self.separators) == 1 else len(self.separators)

    def decide(self, points: Points) -> FloatArray:
        """Decision values, of shape (n,) for two classes and (n, n_classes) for more."""
        values = np.stack([separator(points) for separator in self.separators], axis=1)
        return values[:, 0] if len(self.separators) == 1 else values


class MarginModel(DecisionModel):
    """Base of the estimators of the largest margin.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    _numbers: IndexArray | None

    def _in_data(self, indices: IndexArray) -> IndexArray:
        """Row numbers in the data as given: rows in memory without a weight were left out."""
        return indices if self._numbers is None else self._numbers[indices]

    def _labelled_blocks(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[RowBlocks, AnyArray | None]:
        """Open the data; those in memory have codes for labels, whose names come along."""
        held = self._hold(X, y, sample_weight)
        self._numbers = None
        if held is not None:
            check_classification_targets(held.y)
            names, codes = np.unique(np.asarray(held.y), return_inverse=True)
            if held.sample_weight is None or held.sample_weight.all():
                return row_blocks(held.X, codes, held.sample_weight), names
            used = np.flatnonzero(held.sample_weight)
            self._numbers = used
            return row_blocks(held.X[used], codes[used], held.sample_weight[used]), names
        blocks = row_blocks(X, y, sample_weight)
        self._note_columns(X, blocks)
        return blocks, None
