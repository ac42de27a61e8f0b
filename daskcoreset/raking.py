r"""Weights of a sample, adjusted until weighted sums match what is known of all the data.

Generalised raking: among all weights :math:`w_i = v_i \exp(\langle a_i, \theta \rangle)` with
:math:`\sum_i w_i a_i = t`, which are positive whatever the totals t are, those nearest to the
given weights v by the Kullback-Leibler divergence. A ridge on :math:`\theta` gives up
exactness where the totals cannot be met, or only by weights that lie far from v.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.typing import FloatArray

__all__ = ["rake"]

_RIDGES = (0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0)
"""Ridges tried one after the other, in units of one standard deviation of a total."""

_FAR = 50.0
"""Factor by which a weight may change; beyond it a row would stand for rows unlike it."""

_MOST_STEPS = 40


def rake(features: FloatArray, weights: FloatArray, totals: FloatArray) -> FloatArray:
    r"""Rake weights to totals.

    Parameters
    ----------
    features : ndarray of shape (m, c), float64
        What is summed, a.
    weights : ndarray of shape (m,), float64
        v, positive.
    totals : ndarray of shape (c,), float64
        t, the sums over all the data.

    Returns
    -------
    ndarray of shape (m,), float64
        Positive. The totals are met to rounding where that is possible with no weight
        changed by more than a factor of fifty, else as nearly as a ridge allows; in the last
        resort the weights come back as they were.

    Examples
    --------
    >>> features = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> w = rake(features, np.ones(3), np.array([6.0, 7.0]))
    >>> features.T @ w
    array([6., 7.])

    References
    ----------
    Deville, Särndal and Sautory (1993), Generalized raking procedures in survey sampling; the
    ridge as in Bardsley and Chambers (1984), Multipurpose estimation from unbalanced samples.
    """
    # A unit is about one standard deviation of the estimated total.
    scale = np.sqrt(np.einsum("i,ij->j", weights**2, features**2))
    used = scale > 0.0
    if not used.any():
        return weights
    columns, targets = features[:, used] / scale[used], totals[used] / scale[used]
    for ridge in _RIDGES:
        found = _solve(columns, weights, targets, ridge)
        if found is not None:
            return found
    return weights


def _solve(
    columns: FloatArray, weights: FloatArray, targets: FloatArray, ridge: float
) -> FloatArray | None:
    """Minimise the dual by Newton's method; None where that fails or leads too far."""
    theta = np.zeros(columns.shape[1])
    w, value = weights, float(weights.sum())
    for _ in range(_MOST_STEPS):
        gradient = columns.T @ w - targets + ridge * theta
        if np.abs(gradient).max() <= 1e-10 * (1.0 + np.abs(targets).max()):
            return w
        hessian = (columns * w[:, np.newaxis]).T @ columns
        # Columns that depend on one another are met together, or not at all.
        hessian[np.diag_indices_from(hessian)] += ridge + 1e-10 * hessian.trace() / len(theta)
        step = -np.linalg.solve(hessian, gradient)
        decrease = -float(gradient @ step)
        if not decrease > 0.0:
            return None
        length = 1.0
        while length > 1e-6:
            trial = theta + length * step
            tilt = columns @ trial
            if np.abs(tilt).max() <= np.log(_FAR):
                w_trial = weights * np.exp(tilt)
                value_trial = float(w_trial.sum() - targets @ trial + ridge / 2 * trial @ trial)
                if value_trial <= value - 1e-4 * length * decrease + 1e-12 * abs(value):
                    break
            length /= 2.0
        else:
            return None
        theta, w, value = trial, w_trial, value_trial
    return w if np.abs(columns.T @ w - targets + ridge * theta).max() <= 1e-6 else None
