r"""Linear classifiers on weighted rows in memory, as rough solutions for coresets.

The objective is that of Tukan, Baykal, Feldman and Rus (2020),

.. math::

    F(w, b) = \tfrac12 |w|^2 + \lambda \sum_i u_i [1 - y_i (\langle x_i, w \rangle + b)]_+ ,

whose intercept is not penalised. The hinge is rounded off over :math:`1 \pm h`, where it is a
parabola, and h falls in steps: Newton's method takes a few turns at each, since the rounded
objective is piecewise quadratic. The slopes of the rounded hinge make a feasible point of the
dual problem, so that every solution comes with a lower bound of the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.linalg import one_thread
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.losses import RoundedHinge
from daskcoreset.solvers.newton import LossesOfMargins

# Widths h of the rounding, one after the other; each starts where the last one ended.
_WIDTHS = (2.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)

# Newton steps at a width; some ten are taken.
_MAX_STEPS = 60


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear classifier, and its objective on the rows that it was fitted to.

    Attributes
    ----------
    coef : ndarray of shape (d,), float64
        w.
    intercept : float
        b. Zero where none was fitted.
    cost : float
        F(w, b).
    bound : float
        A lower bound of F over all classifiers, from the dual problem. At least zero.
    steps : int
        Newton steps taken.
    """

    coef: FloatArray
    intercept: float
    cost: float
    bound: float
    steps: int


@one_thread()
def solve_svm(
    points: Any,
    signs: FloatArray,
    weights: FloatArray,
    lam: float = 1.0,
    *,
    intercept: bool = True,
    tol: float = 1e-6,
    max_steps: int | None = None,
) -> LinearFit:
    r"""Minimise F over all linear classifiers.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
        In memory, and copied to float64.
    signs : ndarray of shape (n,), float64
        Labels y, each -1 or +1.
    weights : ndarray of shape (n,), float64
        Input weights u, not negative, positive in total.
    lam : float, default=1.0
        :math:`\lambda > 0`, the C of scikit-learn.
    intercept : bool, default=True
        Whether there is a b.
    tol : float, default=1e-6
        Stop as soon as the cost is known to lie within this share of the optimum.
    max_steps : int or None, default=None
        Newton steps at most, over all roundings.

    Returns
    -------
    LinearFit
        If all rows are of one class, w = 0 and the cost is zero with an intercept.

    Notes
    -----
    Rows are moved to their mean first, which an intercept allows: an offset of the data then
    costs no digits. Of more columns than rows, the space that the rows span takes the place of
    all. Time is O(n d^2) a step, and as much for every row near the margin only.

    Examples
    --------
    >>> rows, signs = np.array([[-2.0], [2.0]]), np.array([-1.0, 1.0])
    >>> found = solve_svm(rows, signs, np.ones(2))
    >>> round(float(found.coef[0]), 3), round(found.cost, 6)
    (0.5, 0.125)
    """
    dense = points if isinstance(points, np.ndarray) else points.toarray()
    rows, mean = dense.astype(np.float64), np.zeros(dense.shape[1])
    if intercept:
        mean = np.asarray(np.average(rows, axis=0, weights=weights), dtype=np.float64)
        rows -= mean
        if not len(signs) or (signs == signs[0]).all():
            return LinearFit(mean * 0.0, float(signs[0]) if len(signs) else 0.0, 0.0, 0.0, 0)
    basis = None
    if rows.shape[1] > rows.shape[0]:
        # The solution is a combination of rows: found in the space that they span.
        basis, triangle = np.linalg.qr(rows.T)
        rows = triangle.T
    # The last column is that of the intercept, which has no penalty.
    rows = np.column_stack([rows, np.full(len(rows), float(intercept))])
    # In a unit that changes no digit, so that no square of a weight overflows.
    unit = 2.0 ** min(max(math.frexp(float(weights.sum()) * lam)[1], 0), 1000)
    fit = _Problem(rows, signs, weights / unit * lam, 1.0 / unit).solve(tol, max_steps)
    coef = fit.coef if basis is None else basis @ fit.coef
    return LinearFit(
        coef,
        fit.intercept - float(coef @ mean),
        unit * fit.cost,
        unit * fit.bound,
        fit.steps,
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows whose last column is that of the intercept, and factors of losses and of the penalty."""

    rows: FloatArray
    signs: FloatArray
    weights: FloatArray
    factor: float

    def solve(self, tol: float, max_steps: int | None) -> LinearFit:
        best = np.zeros(self.rows.shape[1])
        penalty = np.append(np.full(len(best) - 1, self.factor), 0.0)
        # With no row near the margin nothing holds the intercept.
        ridge = np.where(penalty, 0.0, 1e-6 * self.weights.sum() + 1e-300)
        v, lowest, bound, n_steps = best, self._cost(best), 0.0, 0
        for width in _WIDTHS:
            allowed = _MAX_STEPS if max_steps is None else min(_MAX_STEPS, max_steps - n_steps)
            smooth = LossesOfMargins(
                self.rows, np.diag(penalty), self.weights, RoundedHinge(width), ridge
            )
            v, _, steps = smooth.minimised(self.signs, 0.01 * tol, v, allowed)
            n_steps += steps
            cost = self._cost(v)
            if cost < lowest:
                best, lowest = v, cost
            bound = max(bound, self._dual(v, width))
            # What the dual problem leaves between them is all that further steps could gain.
            if lowest - bound <= tol * lowest or n_steps == max_steps:
                break
        return LinearFit(best[:-1], float(best[-1]), lowest, bound, n_steps)

    def _cost(self, v: FloatArray) -> float:
        losses = np.maximum(1.0 - self.signs * (self.rows @ v), 0.0)
        return 0.5 * self.factor * float(v[:-1] @ v[:-1]) + float(self.weights @ losses)

    def _dual(self, v: FloatArray, width: float) -> float:
        """Value of the dual problem at the slopes of the rounded hinge."""
        alpha = -self.weights * RoundedHinge(width).slope(self.signs * (self.rows @ v))
        if self.rows[:1, -1].any():  # with an intercept the sums of both classes must agree
            positive = self.signs > 0
            sums = float(alpha[positive].sum()), float(alpha[~positive].sum())
            if min(sums) <= 0.0:
                return 0.0
            alpha *= np.where(positive, min(sums) / sums[0], min(sums) / sums[1])
        normal = (alpha * self.signs) @ self.rows[:, :-1]
        total, square = float(alpha.sum()), float(normal @ normal) / self.factor
        scale = 1.0 if square <= total else total / square  # the best multiple up to alpha
        return scale * total - 0.5 * scale * scale * square
