"""Decisions by combinations of core points: classes from float32 where it leaves no doubt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskcoreset.core.linalg import one_thread, product
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.estimators.classifier import DecisionFunction
from daskcoreset.estimators.kernel.kernels import UNIT, KernelMap

# What the least numbers of float32 may cost a value, where the largest coefficient is one.
_LOST = 1e-12


class SingleValues:
    r"""Decision values in float32, over the largest coefficient, and their errors.

    Rounding changes a squared distance by :math:`\varepsilon (|x|^2 + |c|^2)` at most, in float32,
    and so the kernel by that part, times gamma, of it. These errors are independent from one core
    point to the next: that of a value is the root of the sum of their squares. Adding the
    products up, and the exponential, cost the root of r roundings of the sum of their sizes.
    On six sets with up to 800 core points errors were at most a third of this.

    Parameters
    ----------
    core : KernelMap
        Of the kernel "rbf".
    beta : ndarray of shape (r, K), float64
    """

    def __init__(self, core: KernelMap, beta: FloatArray) -> None:
        self.core = core
        beta = beta / (np.abs(beta).max(initial=0.0) or 1.0)
        norms = np.square(core.centers).sum(axis=1)[:, np.newaxis]
        squares = np.square(beta)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            self.columns = np.concatenate([beta, np.abs(beta)], axis=1).astype(np.float32)
            of_squares = [squares, squares * norms, squares * np.square(norms)]
            self.of_squares = np.concatenate(of_squares, axis=1).astype(np.float32)
        self.relative = core.roundings * core.kernel.gamma
        self.sum_error = UNIT * (4.0 + float(np.sqrt(len(core))))

    def tiles(self, points: Points) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield rows, their values, of shape (t, K), and errors, NaN where numbers overflow."""
        k = self.columns.shape[1] // 2
        for part, single, norms in self.core.single_tiles(points):
            with one_thread():
                sums = (single @ self.columns).astype(np.float64)
                np.square(single, out=single)
                squares = (single @ self.of_squares).astype(np.float64)
            x = norms[:, np.newaxis]
            spread = x * x * squares[:, :k] + 2.0 * x * squares[:, k : 2 * k] + squares[:, 2 * k :]
            errors = self.relative * np.sqrt(spread) + self.sum_error * sums[:, k:] + _LOST
            yield part, sums[:, :k], errors


@dataclass(frozen=True, eq=False)
class KernelDecision(DecisionFunction):
    """A combination of core points, or one for each of more than two classes.

    Attributes
    ----------
    core : KernelMap
    beta : ndarray of shape (r, K), float64
    classes : ndarray of shape (n_classes,)
    """

    core: KernelMap
    beta: FloatArray
    classes: AnyArray

    @one_thread()
    def values(self, points: Points) -> FloatArray:
        """Decision values of rows."""
        values = np.empty((points.shape[0], self.beta.shape[1]))
        for part, kernel_values, _ in self.core.tiles(points):
            values[part] = product(kernel_values, self.beta)
        return values

    def predict(self, points: Points) -> AnyArray:
        """Classes of rows.

        By values in float32, where their error leaves no doubt, and in float64 elsewhere.
        """
        if self.core.kernel.name != "rbf":
            return super().predict(points)
        single = SingleValues(self.core, self.beta)
        codes = np.empty(points.shape[0], dtype=np.int64)
        clear = np.empty(points.shape[0], dtype=bool)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for part, values, errors in single.tiles(points):
                codes[part], clear[part] = _decided(values, errors)
        predicted = np.asarray(self.classes[codes])
        doubtful = np.flatnonzero(~clear)
        if len(doubtful):
            predicted[doubtful] = super().predict(points[doubtful])
        return predicted


def _decided(values: FloatArray, errors: FloatArray) -> tuple[IndexArray, AnyArray]:
    """Code of the class of every row, and whether it is the same whatever the errors."""
    if values.shape[1] == 1:
        return (values[:, 0] > 0).astype(np.int64), np.abs(values[:, 0]) > errors[:, 0]
    codes, rows = values.argmax(axis=1), np.arange(len(values))
    least = values[rows, codes] - errors[rows, codes]
    most = values + errors
    most[rows, codes] = -np.inf
    return codes, least > most.max(axis=1)
