r"""Newton's method for smooth losses of margins under a quadratic penalty, on rows in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import scores_error
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.losses import MarginLoss, RoundedHinge

# Part of a step up to which its best length is found.
_LENGTH = 0.1

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
    loss : MarginLoss or RoundedHinge
        Not the hinge.
    ridge : float or ndarray of shape (r,), default=1e-10
        Added to the diagonal of Hessians. Directions with a smaller eigenvalue are rounding.

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
    loss: MarginLoss | RoundedHinge
    ridge: float | FloatArray = 1e-10

    @one_thread()
    def minimised(
        self, signs: FloatArray, tol: float, start: FloatArray | None = None, max_steps: int = 40
    ) -> tuple[FloatArray, float, int]:
        """Return the minimum for some signs y, its objective, and the number of steps.

        The last step is one that promises to lower the objective by less than half of `tol` of it.
        """
        v = self._start(signs, tol) if start is None else start
        margins, step = signs * (self.values @ v), 0
        value = self._objective(v, margins)
        for step in range(1, max_steps + 1):  # noqa: B007 - counted
            check_time("losses of margins were being minimised", "pass fewer rows or columns")
            pulls = signs * self.weights * self.loss.slope(margins)
            gradient = self.penalty @ v + pulls @ self.values
            move = -_solved(self._hessian(margins), gradient)
            moved = signs * (self.values @ move)
            length = self._length(v, move, margins, moved)
            v = v + length * move
            margins = signs * (self.values @ v)
            before_it, value = value, self._objective(v, margins)
            if -float(gradient @ move) <= tol * before_it or not length:
                break
        return v, value, step

    def _objective(self, v: FloatArray, margins: FloatArray) -> float:
        losses = float(self.weights @ self.loss.value(margins))
        return 0.5 * float(v @ (self.penalty @ v)) + losses

    def _length(
        self, v: FloatArray, move: FloatArray, margins: FloatArray, moved: FloatArray
    ) -> float:
        """Return the length of a step, at most one, near the minimum along it."""
        from scipy.optimize import brentq  # slow to import

        pull = self.penalty @ move
        linear, square, weighted = float(v @ pull), float(move @ pull), self.weights * moved

        def slope(length: float) -> float:
            slopes = self.loss.slope(margins + length * moved)
            return linear + length * square + float(weighted @ slopes)

        if slope(0.0) >= 0.0:  # lost in rounding
            return 0.0
        if slope(1.0) <= 0.0:
            return 1.0
        return float(brentq(slope, 0.0, 1.0, xtol=1e-100, rtol=_LENGTH, disp=False))

    def _start(self, signs: FloatArray, tol: float) -> FloatArray:
        """Return zero for few rows, and the solution for each fourth row for many."""
        if len(signs) <= max(_FEW_ROWS, _FEW_ROWS_OF_COLUMN * len(self.penalty)):
            return np.zeros(len(self.penalty))
        part = slice(None, None, _STEP)  # the order of the rows carries no information
        fewer = replace(self, values=self.values[part], weights=_STEP * self.weights[part])
        return fewer.minimised(signs[part], max(tol, _ROUGH))[0]

    def _hessian(self, margins: FloatArray) -> FloatArray:
        hessian = self.penalty + self.ridge * np.eye(len(self.penalty))
        factors = self.weights * self.loss.curvature(margins)
        curved = np.flatnonzero(factors)
        for first in range(0, len(curved), _PANEL_ROWS):
            rows = curved[first : first + _PANEL_ROWS]
            panel = self.values[rows] * np.sqrt(factors[rows])[:, np.newaxis]
            hessian += panel.T @ panel
        return hessian


def _solved(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Solve a positive definite system, whose columns may be of any units."""
    if not np.isfinite(matrix).all():
        raise scores_error()
    scale = 1.0 / np.sqrt(np.diagonal(matrix))
    scaled = matrix * scale[:, np.newaxis] * scale
    # Rounding alone can make it singular, which this prevents.
    scaled[np.diag_indices_from(scaled)] += 1e-13
    return np.asarray(scale * np.linalg.solve(scaled, scale * vector))
