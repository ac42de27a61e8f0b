r"""Linear classifiers on weighted rows in memory, as rough solutions for coresets.

The objective is that of Tukan, Baykal, Feldman and Rus (2020),

.. math::

    F(w, b) = \tfrac12 |w|^2 + \lambda \sum_i u_i [1 - y_i (\langle x_i, w \rangle + b)]_+ ,

whose intercept is not penalised. An interior-point method solves it together with its dual problem

.. math::

    \max_\alpha \sum_i \alpha_i - \tfrac12 \Bigl|\sum_i \alpha_i y_i x_i\Bigr|^2, \qquad
    0 \le \alpha_i \le \lambda u_i, \quad \sum_i \alpha_i y_i = 0 ,

so that every solution comes with a lower bound of the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense, one_thread
from daskcoreset.core.typing import FloatArray

# Steps at most. About 20 are usual.
MAX_STEPS = 100

# Share of the way to the nearest limit that a step takes.
_SHORT = 0.99

# Added to the diagonal of a matrix whose diagonal is one.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear classifier, and its objective on the rows that it was fitted to.

    Attributes
    ----------
    coef : ndarray of shape (d,), float64
        w.
    intercept : float
        b. Zero if none was fitted.
    cost : float
        F(w, b).
    bound : float
        A lower bound of F over all classifiers, from the dual problem. At least zero.
    steps : int
        Steps taken. `MAX_STEPS` if the tolerance was not reached.
    """

    coef: FloatArray
    intercept: float
    cost: float
    bound: float
    steps: int


def round_hinge(margins: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
    r"""Round the hinge off. Return it and its slope, neither of which is negative.

    Parameters
    ----------
    margins : ndarray
        :math:`z = y (\langle x, w \rangle + b)`.
    width : float
        h > 0.

    Returns
    -------
    loss : ndarray
        :math:`1 - z` below :math:`1 - h`, zero above :math:`1 + h`, and
        :math:`(1 + h - z)^2 / 4h` between: at most h/4 above the hinge.
    slope : ndarray
        Minus its derivative, in [0, 1].

    Examples
    --------
    >>> round_hinge(np.array([0.0, 1.0, 2.0]), 0.5)[1].tolist()
    [1.0, 0.5, 0.0]
    """
    slope = np.clip((1.0 + width - margins) / (2.0 * width), 0.0, 1.0)
    loss = np.where(slope < 1.0, slope * slope * width, 1.0 - margins)
    return loss, slope


@one_thread()
def solve_svm(
    points: Any,
    signs: FloatArray,
    weights: FloatArray,
    lam: float = 1.0,
    *,
    intercept: bool = True,
    tol: float = 1e-6,
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

    Returns
    -------
    LinearFit
        If all rows are of one class, w = 0 and the cost is zero with an intercept.

    Notes
    -----
    Rows are moved to their mean first, which an intercept allows: an offset of the data then
    costs no digits. If there are more columns than rows, the space that the rows span takes the
    place of all. A step takes O(n d) time, and O(d^2) more for each row near the margin.

    Examples
    --------
    >>> rows, signs = np.array([[-2.0], [2.0]]), np.array([-1.0, 1.0])
    >>> found = solve_svm(rows, signs, np.ones(2))
    >>> round(float(found.coef[0]), 3), round(found.cost, 6)
    (0.5, 0.125)
    """
    rows = np.array(dense(points))
    d = rows.shape[1]
    mean = np.zeros(d)
    if intercept:
        if not len(signs) or (signs == signs[0]).all():
            return LinearFit(mean, float(signs[0]) if len(signs) else 0.0, 0.0, 0.0, 0)
        mean = np.asarray(np.average(rows, axis=0, weights=weights), dtype=np.float64)
        rows -= mean
    basis = None
    if d > len(rows):  # the solution is a combination of rows
        basis, triangle = np.linalg.qr(rows.T)
        rows = triangle.T
    if intercept:
        rows = np.column_stack([rows, np.ones(len(rows))])
    counted = weights > 0.0
    signed = rows[counted] * signs[counted, np.newaxis]
    problem = _Problem(signed, weights[counted] * float(lam), intercept)
    v, cost, bound, steps = problem.solve(tol)
    coef, shift = (v[:-1], float(v[-1])) if intercept else (v, 0.0)
    coef = coef if basis is None else basis @ coef
    return LinearFit(coef, shift - float(coef @ mean), cost, bound, steps)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows times their labels, with a last column for the intercept if there is one.

    A row z has the margin <z, v> = 1 + s - l, with a slack s and a loss l. It has the multipliers
    alpha of s, and beta of l, which add up to `most`. These four are positive, and `held` as the
    rows of one array. At the optimum, alpha s and beta l are zero.
    """

    rows: FloatArray
    most: FloatArray
    intercept: bool

    @property
    def penalty(self) -> FloatArray:
        """Weights of the squared coefficients."""
        penalty = np.ones(self.rows.shape[1])
        penalty[-1] = 0.0 if self.intercept else 1.0
        return penalty

    def solve(self, tol: float) -> tuple[FloatArray, float, float, int]:
        """Return the best v, its cost, a lower bound of the cost of all, and the steps."""
        n, total = len(self.rows), float(self.most.sum())
        v = np.zeros(self.rows.shape[1])
        best, lowest, bound = v, total, 0.0
        held = np.stack([self.most / 2.0, self.most / 2.0, np.ones(n), np.full(n, 2.0)])
        steps = 0
        while steps < MAX_STEPS:
            steps += 1
            check_time("a hinge loss was being minimised", "pass a smaller size")
            solve = self.solver(held)
            _, moves = self.step(v, held, np.zeros((2, n)), solve)
            left, moved = _products(held), _products(held + _reach(held, moves) * moves)
            # Mehrotra's target for the products, and his correction for their curvature.
            target = left.sum() / (2.0 * total) * (moved.sum() / left.sum()) ** 3
            by_v, moves = self.step(v, held, target * self.most - _products(moves), solve)
            length = _SHORT * _reach(held, moves)
            v, held = v + length * by_v, held + length * moves
            cost = self.cost(v)
            if cost < lowest:
                best, lowest = v, cost
            bound = max(bound, self.dual(held[0]))
            if lowest - bound <= tol * lowest:
                break
        return best, lowest, bound, steps

    def solver(self, held: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the solver of the linear equations of a step."""
        from scipy.linalg import cho_factor, cho_solve

        alpha, beta, slack, loss = held
        matrix = (self.rows / (slack / alpha + loss / beta)[:, np.newaxis]).T @ self.rows
        diagonal = np.diag_indices_from(matrix)
        matrix[diagonal] += self.penalty
        # Columns may be of any units.
        scale = 1.0 / np.sqrt(matrix[diagonal])
        matrix *= scale[:, np.newaxis] * scale
        # Rounding alone can make it singular, which this prevents.
        matrix[diagonal] += _ROUNDING
        factor = cho_factor(matrix)
        return lambda vector: np.asarray(scale * cho_solve(factor, scale * vector))

    def step(
        self,
        v: FloatArray,
        held: FloatArray,
        products: FloatArray,
        solve: Callable[[FloatArray], FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Return the Newton step of v and of `held` towards some products."""
        alpha, beta, slack, loss = held
        slack_at, loss_at = products[0] / alpha, products[1] / beta
        spread = slack / alpha + loss / beta
        gap = slack_at - loss_at + 1.0 - self.rows @ v
        by_v = solve(self.rows.T @ (gap / spread + alpha) - self.penalty * v)
        by_alpha = (gap - self.rows @ by_v) / spread
        by_slack = slack_at - slack - slack / alpha * by_alpha
        by_loss = loss_at - loss + loss / beta * by_alpha
        return by_v, np.stack([by_alpha, -by_alpha, by_slack, by_loss])

    def cost(self, v: FloatArray) -> float:
        """Return F."""
        losses = np.maximum(1.0 - self.rows @ v, 0.0)
        return 0.5 * float(self.penalty @ np.square(v)) + float(self.most @ losses)

    def dual(self, alpha: FloatArray) -> float:
        """Return the value of the dual problem at multipliers below their limits."""
        rows = self.rows
        if self.intercept:  # the sums of both classes must agree
            is_positive = rows[:, -1] > 0.0
            sums = float(alpha[is_positive].sum()), float(alpha[~is_positive].sum())
            alpha = alpha * np.where(is_positive, min(sums) / sums[0], min(sums) / sums[1])
            rows = rows[:, :-1]
        normal = alpha @ rows
        total, square = float(alpha.sum()), float(normal @ normal)
        scale = 1.0 if square <= total else total / square  # the best multiple up to alpha
        return scale * total - 0.5 * scale * scale * square


def _products(held: FloatArray) -> FloatArray:
    """Return alpha s and beta l."""
    return held[:2] * held[2:]


def _reach(held: FloatArray, moves: FloatArray) -> float:
    """Return the share of a step, at most one, that keeps all positive."""
    return 1.0 / max(1.0, float((-moves / held).max()))
