r"""How many rows a core set can need at most, from the radius and the margin of the data."""

from __future__ import annotations

import math

__all__ = ["any_violator_bound", "worst_violator_bound"]


def any_violator_bound(radius: float, margin: float, epsilon: float) -> float:
    r"""Bound where every pass adds some violator (Corollary 3.2).

    The passes are at most :math:`1 + 4R^2/(\epsilon\rho)^2`, however many violators each of
    them adds. Let x be the shortest vector of the hull, :math:`|x| = \rho_i`, and z a violator,
    :math:`\langle x, z\rangle < (1-\epsilon)\rho_i^2`. The segment from x to z, of length at
    most 2R, holds a point of squared length at most
    :math:`\rho_i^2 (1 - \epsilon^2\rho_i^2/4R^2)`, and so does the next hull. Hence
    :math:`1/\rho_{i+1}^2 \ge 1/\rho_i^2 + \epsilon^2/4R^2`, which can happen
    :math:`4R^2/(\epsilon\rho)^2` times before :math:`\rho_i < \rho`. Only x enters, so that
    rows without a coefficient may be dropped at any time: x stays in the hull, and the
    lengths go on falling, for which no set of rows comes twice.

    With an intercept x joins the nearest points of two hulls, :math:`|x| = 2\rho_i`, a step
    within one of them is at most 2R long, R about any center, and the same follows.

    Parameters
    ----------
    radius, margin, epsilon : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(any_violator_bound(10.0, 1.0, 0.1))
    40001
    """
    if margin <= 0:
        return math.inf
    return 1.0 + 4.0 * (radius / margin) ** 2 / epsilon**2


def worst_violator_bound(radius: float, margin: float, epsilon: float) -> float:
    r"""Bound of Lemma 3.1, where the worst violator is added: :math:`64 (R/\rho)^2/\epsilon`.

    Parameters
    ----------
    radius, margin, epsilon : float

    Returns
    -------
    float

    Examples
    --------
    >>> worst_violator_bound(10.0, 1.0, 0.1)
    64000.0

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Lemma 3.1, with the constant of its proof.
    """
    return math.inf if margin <= 0 else 64.0 * (radius / margin) ** 2 / epsilon
