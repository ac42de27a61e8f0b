r"""Newton's method for smooth losses of margins under a quadratic penalty, on rows in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import scores_error
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.losses import MarginLoss

# Added to the diagonal of the penalty: directions with a smaller eigenvalue are rounding.
_RIDGE = 1e-10

# Parts of a step that are tried, the part of the first-order decrease that one must reach, and what
# rounding may add to an objective, relative to it.
_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 0.001)
_SUFFICIENT, _ROUNDING = 1e-4, 1e-14

_MAX_STEPS = 40

# Rows that are added to a Hessian at a time.
_PANEL_ROWS = 1024

# More rows than these, in all and for every coefficient, begin at a solution for each fourth row,
# found to this tolerance.
_FEW_ROWS, _FEW_ROWS_OF_COLUMN, _STEP, _ROUGH = 4_000, 16, 4, 3e-2


@dataclass(frozen=True, eq=False)
class LossesOfMargins:
    r"""The objective :math:`v^\top P v / 2 + \sum_i u_i\, l(y_i \langle v, x_i \rangle)`.

    Attributes
    ----------
    values : ndarray of shape (n, r), float64
        The rows x.
    penalty : ndarray of shape (r, r), float64
        P, positive semidefinite.
    weights : ndarray of shape (n,), float64
        u, factors of the losses.
    loss : MarginLoss
        Not the hinge.

    Examples
    --------
    >>> from daskcoreset.solvers.losses import LOSSES
    >>> rows, u = np.array([[1.0], [-1.0]]), np.ones(2)
    >>> problem = LossesOfMargins(rows, np.eye(1), u, LOSSES["squared_hinge"])
    >>> v, value, _ = problem.minimised(np.array([1.0, -1.0]), 1e-9)  # v = 4 (1 - v)
    >>> v.round(6), round(value, 6)
    (array([0.8]), 0.4)

    References
    ----------
    Chapelle (2007), Training a support vector machine in the primal.
    """

    values: FloatArray
    penalty: FloatArray
    weights: FloatArray
    loss: MarginLoss

    @one_thread()
    def minimised(self, signs: FloatArray, tol: float) -> tuple[FloatArray, float, int]:
        """Return the minimum for some signs y, its objective, and the number of steps.

        The last step is one that promises to lower the objective by less than half of `tol` of it.
        """
        weights, loss = self.weights, self.loss
        v = self._start(signs, tol)
        margins = signs * (self.values @ v)
        value, step = self._objective(v, margins), 0
        hessian = np.asfortranarray(self.penalty + _RIDGE * np.eye(len(v)))
        curvature = np.zeros(len(weights))
        for step in range(1, _MAX_STEPS + 1):  # noqa: B007 - counted
            check_time("losses of margins were being minimised", "pass fewer rows or columns")
            before, curvature = curvature, weights * loss.curvature(margins)
            # It is one of few numbers, and a step changes it for few rows.
            self._add_products(hessian, curvature - before)
            gradient = self.penalty @ v + (signs * weights * loss.slope(margins)) @ self.values
            move = -scipy.linalg.cho_solve(_factor(hessian), gradient)
            slope, moved = float(gradient @ move), signs * (self.values @ move)
            last = -slope <= tol * value
            for t in _LENGTHS:
                shorter = self._objective(v + t * move, margins + t * moved)
                if shorter <= value * (1.0 + _ROUNDING) + _SUFFICIENT * t * slope:
                    break
            else:
                break  # lost in rounding
            v, margins, value = v + t * move, margins + t * moved, shorter
            if last:
                break
        return v, value, step

    def _objective(self, v: FloatArray, margins: FloatArray) -> float:
        losses = float(self.weights @ self.loss.value(margins))
        return 0.5 * float(v @ (self.penalty @ v)) + losses

    def _start(self, signs: FloatArray, tol: float) -> FloatArray:
        """Return zero for few rows, and the solution for each fourth row for many."""
        if len(signs) <= max(_FEW_ROWS, _FEW_ROWS_OF_COLUMN * len(self.penalty)):
            return np.zeros(len(self.penalty))
        part = slice(None, None, _STEP)  # the order of the rows carries no information
        weights = _STEP * self.weights[part]
        fewer = LossesOfMargins(self.values[part], self.penalty, weights, self.loss)
        return fewer.minimised(signs[part], max(tol, _ROUGH))[0]

    def _add_products(self, hessian: FloatArray, factors: FloatArray) -> None:
        """Add products of rows with themselves, times factors, to the lower triangle."""
        for sign in (1.0, -1.0):
            chosen = np.flatnonzero(sign * factors > 0.0)
            for first in range(0, len(chosen), _PANEL_ROWS):
                some = chosen[first : first + _PANEL_ROWS]
                panel = self.values[some] * np.sqrt(np.abs(factors[some]))[:, np.newaxis]
                # In place, the lower triangle alone.
                scipy.linalg.blas.dsyrk(sign, panel.T, beta=1.0, c=hessian, lower=1, overwrite_c=1)


def _factor(hessian: FloatArray) -> Any:
    """Cholesky factor, after an increase of the diagonal if rounding requires it."""
    if not np.isfinite(hessian).all():
        raise scores_error()
    ridge = 0.0
    while True:
        shifted = hessian.copy(order="F")
        shifted[np.diag_indices_from(shifted)] += ridge
        try:
            return scipy.linalg.cho_factor(
                shifted, lower=True, overwrite_a=True, check_finite=False
            )
        except np.linalg.LinAlgError:
            ridge = max(10.0 * ridge, 1e-15 * float(np.trace(hessian)))
