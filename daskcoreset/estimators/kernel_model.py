"""Kernel classifiers with few core points: what all of them share once they are fitted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from daskcoreset.coverage.isotropic import Isotropic, KernelMap
from daskcoreset.coverage.outline import Outline
from daskcoreset.coverage.products import thin_product
from daskcoreset.errors import CoresetWarning, InvalidInputError
from daskcoreset.estimators.base import CoresetModel, is_held
from daskcoreset.estimators.scoring import accuracy
from daskcoreset.typing import AnyArray, FloatArray, Points

if TYPE_CHECKING:
    from daskcoreset.blocks import Block

__all__ = ["KernelModel", "resolve_lambda", "warn_unscaled"]

_UNEVEN = 100.0
"""Columns whose ranges differ by more are warned about."""

_VANISHED = 1e-12
"""Kernel values at a usual distance below which rows see nothing of each other."""


@dataclass(frozen=True, eq=False)
class Machine:
    """A fitted model: applied to rows, it gives decision values or classes.

    Attributes
    ----------
    core : KernelMap
    beta : ndarray of shape (r, K), float64
    classes : ndarray of shape (n_classes,)
    """

    core: KernelMap
    beta: FloatArray
    classes: AnyArray

    def decide(self, points: Points) -> FloatArray:
        """Decision values, of shape (n,) for two classes and (n, n_classes) for more."""
        out = np.empty((points.shape[0], self.beta.shape[1]))
        for part, values, _ in self.core.tiles(points):
            out[part] = thin_product(values, self.beta)
        return out[:, 0] if len(self.classes) == 2 else out

    def classify(self, points: Points) -> AnyArray:
        """Classes of rows."""
        found = self.decide(points)
        codes = found > 0 if found.ndim == 1 else found.argmax(axis=1)
        return np.asarray(self.classes[codes.astype(np.int64)])


@dataclass(frozen=True, eq=False)
class _Ask:
    machine: Machine
    classes: bool

    def __call__(self, block: Block) -> Any:
        ask = self.machine.classify if self.classes else self.machine.decide
        return ask(block.points)


def resolve_lambda(lam: float | None, C: float | None, weight: float) -> float:
    r"""Return :math:`\lambda = C M`, of which exactly one is given; C is 1 without both.

    Raises
    ------
    InvalidInputError
        If both are given.

    Examples
    --------
    >>> resolve_lambda(None, 0.5, 100.0), resolve_lambda(8.0, None, 100.0)
    (50.0, 8.0)
    """
    if lam is not None and C is not None:
        raise InvalidInputError(
            f"lam={lam} and C={C} are two scales of the same thing, lam = C * n; pass one of them."
        )
    return float(lam) if lam is not None else (1.0 if C is None else float(C)) * weight


def warn_unscaled(found: Outline, kernel: Isotropic) -> None:
    """Warn where a kernel of the distance sees some columns only, or no rows at all."""
    ranges = (found.high - found.low)[found.high > found.low]
    advice = (
        "scale the features to [0, 1] as the authors do, for example with "
        "sklearn.preprocessing.MinMaxScaler."
    )
    if len(ranges) and ranges.max() > _UNEVEN * ranges.min():
        warnings.warn(
            f"features are not scaled: the range of one column is {ranges.max():.3g}, of another "
            f"{ranges.min():.3g}, and only the wide ones count in a distance; {advice}",
            CoresetWarning,
            stacklevel=4,
        )
        return
    usual = float(kernel(np.array([2.0 * found.total_variance]))[0])
    if usual < _VANISHED:
        warnings.warn(
            f"features are not scaled to the kernel, which is {usual:.1e} at the root mean square "
            f"distance of two rows: no row sees another one. Lower gamma, or {advice}",
            CoresetWarning,
            stacklevel=4,
        )


class KernelModel(CoresetModel):
    """Prediction with a kernel expansion, in memory or lazily out of core.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    classes_: AnyArray
    _machine: Machine

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags()
        tags.target_tags.required = True
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
        columns = None if len(self.classes_) == 2 else len(self.classes_)
        ask, machine = _Ask(self._machine, classes=False), self._machine
        return self._map(X, ask, machine.decide, lambda _: (np.float64, columns))

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
        ask, machine = _Ask(self._machine, classes=True), self._machine
        return self._map(X, ask, machine.classify, lambda _: (self.classes_.dtype, None))

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
        if is_held(X, y, sample_weight):
            held = self._hold(X, y, sample_weight, reset=False)
            assert held is not None  # noqa: S101 - it is in memory
            found = self._machine.classify(held.X)
            return float(accuracy_score(held.y, found, sample_weight=held.sample_weight))
        return accuracy(_Predictor(self._machine), self._open(X, y, sample_weight))


@dataclass(frozen=True, eq=False)
class _Predictor:
    machine: Machine

    def predict(self, points: Points) -> AnyArray:
        return self.machine.classify(points)
