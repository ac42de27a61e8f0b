"""Linear quantile regression on weighted rows in memory, as a rough solution for coresets."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.typing import FloatArray

# Steps at most; some thirty are taken.
MAX_STEPS = 60

# Share of the mean absolute residual by which absolute values are rounded off, from coarse to fine:
# the last one leaves a thousandth of the cost or less.
ROUNDINGS = (1.0, 0.1, 0.01, 0.001)

_TOL = 1e-5

# Share of the largest value of a column that rounding its mean may leave as the spread.
_ROUNDING = 1e-13


@one_thread()
def solve_quantile(
    points: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    quantile: float = 0.5,
    *,
    intercept: bool = True,
) -> tuple[FloatArray, float]:
    r"""Minimise the pinball loss, up to some tenth of a per cent.

    A weighted least-squares problem takes the place of the absolute values, again and again.

    Parameters
    ----------
    points : ndarray of shape (n, d), float64
    y, weights : ndarray of shape (n,), float64
        Weights are not negative, positive in total.
    quantile : float, default=0.5
    intercept : bool, default=True

    Returns
    -------
    coef : ndarray of shape (d,), float64
    intercept : float

    Examples
    --------
    >>> rows = np.arange(9.0)[:, np.newaxis]
    >>> y = 2.0 * rows[:, 0] + 1.0
    >>> y[8] = 90.0  # which moves no median
    >>> coef, shift = solve_quantile(rows, y, np.ones(9))
    >>> coef.round(2), round(shift, 2)
    (array([2.]), 1.0)

    References
    ----------
    Hunter and Lange (2000), Quantile regression via an MM algorithm.
    """
    u = weights / weights.sum()
    center = np.average(points, axis=0, weights=u) if intercept else np.zeros(points.shape[1])
    gaps = points - center
    spread = np.sqrt(u @ np.square(gaps))
    varies = spread > _ROUNDING * np.abs(points).max(axis=0)
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
    ones = np.full((len(gaps), int(intercept)), 1.0)
    A = np.concatenate([gaps * scale, ones], axis=1)
    pull = (quantile - 0.5) * (u @ A)
    beta = _solved(A, u, u @ (A * y[:, np.newaxis]))
    residuals = y - A @ beta
    for rounding in ROUNDINGS:
        epsilon = rounding * float(u @ np.abs(residuals))
        if not epsilon > 0.0:
            break
        for _ in range(MAX_STEPS // len(ROUNDINGS)):
            check_time("a quantile regression was being solved", "pass a smaller size")
            w = u / (2.0 * (np.abs(residuals) + epsilon))
            step = _solved(A, w, A.T @ (w * y) + pull)
            moved = float(np.abs(A @ (step - beta)).max(initial=0.0))
            beta, residuals = step, y - A @ step
            if moved <= _TOL * epsilon:
                break
    coef = beta[: len(center)] * scale
    shift = float(beta[-1] - coef @ center) if intercept else 0.0
    return coef, shift


def _solved(A: FloatArray, w: FloatArray, right: FloatArray) -> FloatArray:
    """Solve weighted normal equations, of least norm where columns depend on one another."""
    system = (A * w[:, np.newaxis]).T @ A
    solution: Any = np.linalg.lstsq(system, right, rcond=1e-12)
    beta: FloatArray = solution[0]
    return beta
