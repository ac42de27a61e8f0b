r"""The exact optimal margin distribution machine, by coordinate descent on its dual problem.

With :math:`w = \sum_i \alpha_i y_i \varphi(x_i)`, :math:`Q_{ij} = y_i y_j k(x_i, x_j)`,
:math:`p_i = \lambda u_i / M` and :math:`s = (1 - \theta)^{-2}` the dual problem is

.. math:: \min_\alpha\; \tfrac12 \alpha^T Q \alpha + \sum_i
          \begin{cases} \alpha_i^2 / (4 s p_i) - (1 - \theta) \alpha_i & \alpha_i \ge 0 \\
          \alpha_i^2 / (4 s \mu p_i) - (1 + \theta) \alpha_i & \alpha_i < 0 \end{cases}

where a positive coefficient pulls a margin up to the band and a negative one down to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.estimators.kernel.sgd import compiled_steps
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.core.threads import one_thread
from daskcoreset.core.typing import FloatArray, IndexArray

__all__ = ["DualSolution", "solve_dual"]


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Coefficients of the rows.

    Attributes
    ----------
    coefficients : ndarray of shape (n,), float64
        ``alpha * y``; zero for rows inside the band.
    objective : float
        Of the primal problem.
    gap : float
        Between primal and dual: the objective is above the least one by no more.
    n_iter : int
        Sweeps over all rows.
    converged : bool
    """

    coefficients: FloatArray
    objective: float
    gap: float
    n_iter: int
    converged: bool


def solve_dual(
    gram: FloatArray,
    signs: FloatArray,
    weights: FloatArray,
    loss: MarginLoss,
    lam: float,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    rng: np.random.Generator,
) -> DualSolution:
    """Sweep over the rows in random order until primal and dual meet.

    Parameters
    ----------
    gram : ndarray of shape (n, n), float64
        Kernel between the rows.
    signs : ndarray of shape (n,), float64
    weights : ndarray of shape (n,), float64
        Positive.
    loss : MarginLoss
        "odm", or "squared_hinge".
    lam : float
        Lambda.
    tol : float, default=1e-4
        Stop when the gap is below this part of the objective.
    max_iter : int, default=1000
        Sweeps at most.
    rng : numpy.random.Generator

    Returns
    -------
    DualSolution

    Examples
    --------
    >>> from daskcoreset.estimators.kernel.losses import LOSSES
    >>> rng = np.random.default_rng(0)
    >>> two, one = np.eye(2), np.ones(2)
    >>> found = solve_dual(two, np.array([1.0, -1.0]), one, LOSSES["squared_hinge"], 2.0, rng=rng)
    >>> found.coefficients.round(4), round(found.objective, 4)  # 2 (1 - z) = z
    (array([ 0.6667, -0.6667]), 0.6667)

    References
    ----------
    Zhang and Zhou (2019), Optimal margin distribution machine; Hsieh et al. (2008), A dual
    coordinate descent method for large-scale linear SVM.
    """
    share = lam * weights / weights.sum()
    down = 1.0 / (2.0 * loss.scale * share)
    up = down / loss.mu if loss.mu else np.full_like(down, np.inf)
    alpha, image = np.zeros(len(signs)), np.zeros(len(signs))  # image = K (alpha y)
    loops = compiled_steps()
    sweep = _numpy_sweep if loops is None else loops.sweep_dual
    band = np.array([loss.low, loss.high])
    objective = gap = np.inf
    sweeps = 0
    for sweeps in range(1, max_iter + 1):
        sweep(gram, signs, down, up, band, rng.permutation(len(signs)), alpha, image)
        if sweeps % 5 and sweeps < max_iter:
            continue
        with one_thread():
            image[:] = gram @ (alpha * signs)  # rounding does not add up
            square = float(alpha * signs @ image)
        objective = 0.5 * square + float(share @ loss.value(signs * image))
        low, high = np.maximum(alpha, 0.0), np.minimum(alpha, 0.0)
        cost = low**2 * down / 2.0 - loss.low * low - loss.high * high
        cost += np.where(high < 0.0, high**2 * np.where(np.isfinite(up), up, 0.0) / 2.0, 0.0)
        gap = objective + 0.5 * square + float(cost.sum())
        if gap <= tol * objective:
            break
    return DualSolution(alpha * signs, objective, gap, sweeps, bool(gap <= tol * objective))


def _numpy_sweep(  # noqa: PLR0917 - as the compiled loop takes them
    gram: FloatArray,
    signs: FloatArray,
    down: FloatArray,
    up: FloatArray,
    band: FloatArray,
    order: IndexArray,
    alpha: FloatArray,
    image: FloatArray,
) -> None:
    for i in order:
        rest = signs[i] * image[i] - gram[i, i] * alpha[i]
        if rest < band[0]:
            new = (band[0] - rest) / (gram[i, i] + down[i])
        elif rest > band[1]:
            new = (band[1] - rest) / (gram[i, i] + up[i])
        else:
            new = 0.0
        if new != alpha[i]:
            image += ((new - alpha[i]) * signs[i]) * gram[i]
            alpha[i] = new
