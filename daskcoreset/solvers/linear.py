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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import gram_of, one_thread
from daskcoreset.core.typing import FloatArray

# Widths h of the rounding, one after the other; each starts where the last one ended.
_WIDTHS = (2.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)

# Widths from a start that is near, for solutions that are only compared with each other: the last
# one leaves at most h/4 of the weight above the optimum.
_NEAR_WIDTHS = (0.1, 0.01, 1e-3)

# Newton steps at a width; some ten are taken.
_MAX_STEPS = 60

# Points tried along a direction; three are usual.
_MAX_CUTS = 20

# Numbers that BLAS is handed at a time: it gives so few to one thread, so that bits do not depend
# on how many there are.
_TILE_NUMBERS = 2**13


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
    start: FloatArray | None = None,
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
    start : ndarray of shape (d,), or (d + 1,) with the intercept last, or None, default=None
        A classifier near the best one. Three roundings are made from it, which is enough to
        compare solutions. ``bound`` says how near the cost came.

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
    if start is not None and intercept:
        start = np.append(start[:-1], start[-1] + start[:-1] @ mean)
    basis = None
    if rows.shape[1] > rows.shape[0]:
        # The solution is a combination of rows: found in the space that they span.
        basis, triangle = np.linalg.qr(rows.T)
        rows = np.ascontiguousarray(triangle.T)
        if start is not None:
            start = np.append(start[: len(mean)] @ basis, start[len(mean) :])
    problem = _Problem(rows, signs, weights * float(lam), intercept=intercept)
    fit = problem.solve(tol, start, max_steps)
    coef = fit.coef if basis is None else basis @ fit.coef
    return replace(fit, coef=coef, intercept=fit.intercept - float(coef @ mean))


@dataclass(frozen=True, eq=False)
class _Problem:
    rows: FloatArray
    signs: FloatArray
    weights: FloatArray
    intercept: bool

    def solve(
        self, tol: float, start: FloatArray | None = None, max_steps: int | None = None
    ) -> LinearFit:
        d = self.rows.shape[1]
        w, n_steps = np.zeros(d + self.intercept), 0
        best, lowest, bound = w, self._cost(w), 0.0
        if start is not None and (cost := self._cost(start)) < lowest:
            best, lowest, w = start, cost, start
        for width in _WIDTHS if start is None else _NEAR_WIDTHS:
            allowed = _MAX_STEPS if max_steps is None else min(_MAX_STEPS, max_steps - n_steps)
            w, steps = self._newton(w, width, 0.01 * tol, allowed)
            n_steps += steps
            cost = self._cost(w)
            if cost < lowest:
                best, lowest = w, cost
            bound = max(bound, self._dual(w, width))
            # What the dual problem leaves between them is all that further steps could gain.
            if lowest - bound <= tol * lowest or n_steps == max_steps:
                break
        shift = float(best[d]) if self.intercept else 0.0
        return LinearFit(best[:d], shift, lowest, bound, n_steps)

    def _margins(self, w: FloatArray) -> FloatArray:
        d = self.rows.shape[1]
        scores = _products(self.rows, w[:d])
        if self.intercept:
            scores += w[d]
        return np.asarray(self.signs * scores)

    def _cost(self, w: FloatArray) -> float:
        return self._value(w, np.maximum(1.0 - self._margins(w), 0.0))

    def _value(self, w: FloatArray, losses: FloatArray) -> float:
        """Objective at a classifier whose rows have these losses."""
        coef = w[: self.rows.shape[1]]
        return 0.5 * float(coef @ coef) + float(self.weights @ losses)

    def _sums(self, factors: FloatArray) -> FloatArray:
        sums = _sums(self.rows, factors)
        return np.append(sums, factors.sum()) if self.intercept else sums

    def _newton(
        self, w: FloatArray, width: float, tol: float, max_steps: int
    ) -> tuple[FloatArray, int]:
        """Minimise the rounded objective, up to a share of `tol` of its value."""
        d = self.rows.shape[1]
        margins = self._margins(w)
        for step in range(max_steps):
            check_time("a hinge loss was being minimised", "pass a smaller size")
            losses, slope = round_hinge(margins, width)
            gradient = -self._sums(self.weights * slope * self.signs)
            gradient[:d] += w[:d]
            direction = -_solved(self._hessian(slope, width), gradient)
            decrease = -float(gradient @ direction)
            if not decrease > tol * self._value(w, losses):
                return w, step
            length = self._step(w, direction, margins, width)
            if not length:
                return w, step
            w = w + length * direction
            margins = self._margins(w)
        return w, max_steps

    def _step(
        self, w: FloatArray, direction: FloatArray, margins: FloatArray, width: float
    ) -> float:
        """Length of a step, at most one, near the minimum along a direction."""
        d = self.rows.shape[1]
        along = self._margins(direction)
        weighted = self.weights * along
        linear = float(w[:d] @ direction[:d])
        square = float(direction[:d] @ direction[:d])

        def derivative(length: float) -> float:
            slope = (1.0 + width - margins - length * along) / (2.0 * width)
            np.minimum(slope, 1.0, out=slope)
            np.maximum(slope, 0.0, out=slope)
            return linear + length * square - float(weighted @ slope)

        start, end = derivative(0.0), derivative(1.0)
        if start >= 0.0:
            return 0.0
        low, high, at_low, at_high = 0.0, 1.0, start, end
        length = 1.0
        for _ in range(_MAX_CUTS):
            if at_high <= 0.2 * -start:  # low enough, or still falling
                break
            share = at_low / (at_low - at_high)
            length = low + (high - low) * min(max(share, 0.1), 0.9)
            at_length = derivative(length)
            if at_length < 0.2 * start:
                low, at_low = length, at_length
            elif at_length > -0.2 * start:
                high, at_high = length, at_length
            else:
                return length
        return high

    def _hessian(self, slope: FloatArray, width: float) -> FloatArray:
        d = self.rows.shape[1]
        band = np.flatnonzero((slope > 0.0) & (slope < 1.0))
        hessian = np.zeros((d + self.intercept,) * 2)
        for tile in _tiles(len(band), d, max(2**16, 2 * d * d)):
            u = self.weights[band[tile]] / (2.0 * width)
            root = np.sqrt(u)
            rows = self.rows[band[tile]] * root[:, np.newaxis]
            hessian[:d, :d] += gram_of(rows)
            if self.intercept:
                hessian[d, :d] += root @ rows
                hessian[d, d] += u.sum()
        if self.intercept:
            hessian[:d, d] = hessian[d, :d]
            # With no row near the margin nothing holds the intercept.
            hessian[d, d] += 1e-6 * self.weights.sum() + 1e-300
        hessian[np.diag_indices(d)] += 1.0
        return hessian

    def _dual(self, w: FloatArray, width: float) -> float:
        """Value of the dual problem at the slopes of the rounded hinge."""
        alpha = self.weights * round_hinge(self._margins(w), width)[1]
        if self.intercept:  # the sums of both classes must agree
            positive = self.signs > 0
            sums = float(alpha[positive].sum()), float(alpha[~positive].sum())
            if min(sums) <= 0.0:
                return 0.0
            alpha *= np.where(positive, min(sums) / sums[0], min(sums) / sums[1])
        normal = _sums(self.rows, alpha * self.signs)
        total, square = float(alpha.sum()), float(normal @ normal)
        scale = 1.0 if square <= total else total / square  # the best multiple up to alpha
        return scale * total - 0.5 * scale * scale * square


def _tiles(n_rows: int, width: int, numbers: int = _TILE_NUMBERS) -> Iterator[slice]:
    step = max(8, numbers // max(width, 1))
    return (slice(start, start + step) for start in range(0, n_rows, step))


def _solved(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Solve a positive definite system, whose columns may be of any units."""
    scale = 1.0 / np.sqrt(np.diagonal(matrix))
    scaled = matrix * scale[:, np.newaxis] * scale
    # Rounding alone can make it singular, which this prevents.
    scaled[np.diag_indices_from(scaled)] += 1e-13
    return np.asarray(scale * np.linalg.solve(scaled, scale * vector))


def _products(rows: FloatArray, vector: FloatArray) -> FloatArray:
    """Scalar product of every row with a vector."""
    out = np.empty(len(rows))
    for tile in _tiles(*rows.shape):
        np.matmul(rows[tile], vector, out=out[tile])
    return out


def _sums(rows: FloatArray, factors: FloatArray) -> FloatArray:
    """Sum of all rows, each times its factor."""
    out = np.zeros(rows.shape[1])
    for tile in _tiles(*rows.shape):
        out += factors[tile] @ rows[tile]
    return out
