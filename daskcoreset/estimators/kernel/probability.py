"""Probabilities of classes from decision values, by sigmoids fitted to rows that were held out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from daskcoreset.core.linalg import one_thread
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.estimators.classifier import DecisionFunction

# Rows that the sigmoids are fitted to: each has two numbers.
CALIBRATION_ROWS = 10_000

# Parts of fewer rows, each of which is held out once.
_PARTS = 5


@dataclass(frozen=True, eq=False)
class Sigmoids:
    r"""Probability :math:`1 / (1 + e^{-a f - b})` of a decision value f, for every column.

    Attributes
    ----------
    slopes, offsets : ndarray of shape (n_columns,), float64
        a and b; one column for two classes.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines, with its smoothed targets.
    """

    slopes: FloatArray
    offsets: FloatArray

    @classmethod
    @one_thread()
    def fit(cls, values: FloatArray, codes: AnyArray, weights: FloatArray) -> Sigmoids:
        """Fit to decision values of shape (n,) or (n, n_classes) and codes of the true classes.

        Examples
        --------
        >>> values, codes = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 0, 1, 1])
        >>> fitted = Sigmoids.fit(values, codes, np.ones(4))
        >>> fitted.probabilities(np.array([-3.0, 0.0, 3.0]))[:, 1].round(2).tolist()
        [0.12, 0.5, 0.88]
        """
        columns = values[:, np.newaxis] if values.ndim == 1 else values
        targets = [1] if values.ndim == 1 else range(columns.shape[1])
        pairs = [
            _sigmoid(column, codes == code, weights)
            for column, code in zip(columns.T, targets, strict=True)
        ]
        slopes, offsets = np.array(pairs).T
        return cls(slopes, offsets)

    def probabilities(self, values: FloatArray) -> FloatArray:
        """Probabilities of all classes, of shape (n, n_classes); they add up to one."""
        columns = values[:, np.newaxis] if values.ndim == 1 else values
        shares: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(self.slopes * columns + self.offsets,
                                                          -500.0, 500.0)))  # fmt: skip
        if values.ndim == 1:
            return np.hstack([1.0 - shares, shares])
        shares /= shares.sum(axis=1, keepdims=True)
        return shares


def _sigmoid(values: FloatArray, positive: AnyArray, weights: FloatArray) -> tuple[float, float]:
    scale = float(np.abs(values).max()) or 1.0
    count, total = float(weights[positive].sum()), float(weights.sum())
    # In rows: a row of weight two is two rows, and a sample is no more than it is.
    share = len(values) / total
    high = (count * share + 1.0) / (count * share + 2.0)
    low = 1.0 / ((total - count) * share + 2.0)
    targets = np.where(positive, high, low)
    model = LogisticRegression(C=np.inf, max_iter=1000).fit(
        np.tile(values / scale, 2)[:, np.newaxis],
        np.repeat([1, 0], len(values)),
        sample_weight=np.concatenate([weights * targets, weights * (1.0 - targets)]) * share,
    )
    return float(model.coef_[0, 0]) / scale, float(model.intercept_[0])


def held_out_values(
    model: Any, rows: FloatArray, codes: AnyArray, weights: FloatArray
) -> FloatArray | None:
    """Return decision values by models that have not seen the row; None if a class has one row."""
    parts = min(_PARTS, int(np.bincount(codes).min()))
    if parts < 2:
        return None
    values: FloatArray | None = None
    for train, test in StratifiedKFold(parts, shuffle=True, random_state=0).split(rows, codes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit of all rows has given them
            fitted = clone(model).fit(rows[train], codes[train], weights[train])
        found = fitted.decision_function(rows[test])
        if values is None:
            values = np.empty((len(rows), *found.shape[1:]))
        values[test] = found
    return values


def probabilities(decision: DecisionFunction, sigmoids: Sigmoids, points: Points) -> FloatArray:
    """Probabilities of all classes for rows."""
    return sigmoids.probabilities(decision.decide(points))
