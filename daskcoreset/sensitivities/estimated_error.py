r"""The error of the cost of a solution on a coreset, estimated by rows held out.

The root has candidates, a sample of the data with known inclusion probabilities, of which the
coreset takes a part. A solution is fitted on the coreset and judged by the candidates that the
coreset did not take: with :math:`\pi_1` the probability of being a candidate and :math:`\pi_2`
that of being taken then, a row outside the coreset is seen with the probability

.. math::

    q = \frac{\pi_1 (1 - \pi_2)}{1 - \pi_1 \pi_2} ,

whatever the coreset is, so that :math:`u f / q` over the rows seen estimates the cost of all rows
outside of it, without the bias of judging rows that the solution was fitted to.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.typing import FloatArray, IndexArray

# Relative error of the cost, in either direction, from which on the build warns.
LARGE = 0.05

# Upper end of the interval from which on a warning says that the error is unknown.
UNKNOWN = 0.5

# Share of the cost of a model without features below which a cost is near zero: warnings then
# compare errors with this share of it.
NEAR_ZERO = 0.1

LEVEL = 0.95

_TINY, _MAX_ERROR = 1e-300, 1e9


class Fitted(NamedTuple):
    """A solution fitted on a coreset, and its losses on the candidates.

    Attributes
    ----------
    constant : float
        The part of its cost beside the losses.
    losses : ndarray of shape (k,), float64
        Losses of every candidate, for a weight of one.
    typical : float
        Loss of a row that the solution is undecided about. Where no row that was held out has a
        loss, as many as three such rows may have been missed.
    none : float
        Cost of the best model without features.
    """

    constant: float
    losses: FloatArray
    typical: float
    none: float


def rows_outside(chosen: IndexArray, first: FloatArray, second: FloatArray) -> FloatArray:
    r"""Return how many rows outside of a coreset every candidate represents.

    Parameters
    ----------
    chosen : ndarray of shape (m,), int64
        Places of the coreset's rows among the candidates.
    first, second : ndarray of shape (k,), float64
        :math:`\pi_1` and :math:`\pi_2`.

    Returns
    -------
    ndarray of shape (k,), float64
        :math:`1 / q` of those that were not taken. Rows of :math:`\pi_2 = 1` are never held out;
        those which are there for others as well, :math:`\pi_1 < 1`, stand for these as they do in
        the coreset, :math:`1 / \pi_1 - 1`. All other rows of the coreset are zero.

    Examples
    --------
    >>> rows_outside(np.array([0, 1]), np.array([0.5, 0.5, 0.5]), np.array([1.0, 0.5, 0.5]))
    array([1., 0., 3.])
    """
    taken = np.zeros(len(first), dtype=bool)
    taken[chosen] = True
    chance = first * (1.0 - second)
    seen = ~taken & (chance > 0.0)
    factor = np.divide(1.0 - first * second, chance, out=np.zeros(len(first)), where=seen)
    lone = taken & (second >= 1.0)
    factor[lone] = 1.0 / first[lone] - 1.0
    return factor


def estimated_error(  # noqa: PLR0917 - all of them are always given
    fitted: Fitted,
    chosen: IndexArray,
    weights: FloatArray,
    u: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> dict[str, Any]:
    r"""Estimate the relative error of the cost of a solution that was fitted on a coreset.

    Parameters
    ----------
    fitted : Fitted
    chosen : ndarray of shape (m,), int64
        Places of the coreset's rows among the candidates.
    weights : ndarray of shape (m,), float64
        Theirs in the coreset.
    u : ndarray of shape (k,), float64
        Input weights of the candidates.
    first, second : ndarray of shape (k,), float64
        :math:`\pi_1` and :math:`\pi_2`.

    Returns
    -------
    dict
        ``error``, the cost on all the data over that on the coreset, less one. ``low`` and
        ``high``, an interval of 95 %, which is that of a sum of rare events with unequal weights
        and wider than need be where rows are seen often. ``held_out``, rows it rests on.
        ``exact``, where the candidates are all rows. ``of_none``, the first three as shares of the
        cost of a model without features.

    Notes
    -----
    If several draws were tried, the one that is best on the candidates is kept: where these
    are a sample, the estimate is smaller by what such a choice gains.

    References
    ----------
    Fay and Feuer (1997), Confidence intervals for directly standardized rates, Statistics in
    Medicine 16.
    """
    taken = np.zeros(len(u), dtype=bool)
    taken[chosen] = True
    factor = rows_outside(chosen, first, second)
    chance = np.where(taken, factor > 0.0, first < 1.0)
    sure = fitted.constant + float(u[taken] @ fitted.losses[taken])
    unsampled = ~taken & ~chance
    sure += float(u[unsampled] @ fitted.losses[unsampled])
    parts = (u * factor * fitted.losses)[chance]
    guess = float(parts.sum())
    low, high = guess, guess
    if chance.any():
        smallest_event = fitted.typical * float(np.median((u * factor)[chance]))
        low, high = _interval(parts, smallest_event)
    on_coreset = fitted.constant + float(weights @ fitted.losses[taken])

    def relative(cost: float) -> float:
        return min(
            (cost + _TINY) / (on_coreset + _TINY) - 1.0, _MAX_ERROR
        )  # a number, whatever happens

    return {
        "error": relative(sure + guess),
        "low": relative(sure + low),
        "high": relative(sure + high),
        "held_out": int((~taken).sum()),
        "exact": not chance.any(),
        "of_none": {
            name: min((cost - on_coreset) / (fitted.none + _TINY), _MAX_ERROR)
            for name, cost in (("error", sure + guess), ("low", sure + low), ("high", sure + high))
        },
    }


def _interval(parts: FloatArray, event: float) -> tuple[float, float]:
    """Return an interval for a sum, from `parts` of it that were sampled."""
    from scipy.stats import chi2

    tail = (1.0 - LEVEL) / 2.0
    # In a unit that changes no digit, so that no square overflows.
    unit = 2.0 ** min(math.frexp(max(float(parts.max()), event))[1], 1000)
    parts, event = parts / unit, event / unit
    total, squares = float(parts.sum()), float(parts @ parts)
    low = 0.0
    if total > 0.0:
        low = squares / (2.0 * total) * float(chi2.ppf(tail, 2.0 * total * total / squares))
    # One more event, of the largest weight, may have been missed.
    largest = max(float(parts.max()), event)
    total, squares = total + largest, squares + largest * largest
    high = squares / (2.0 * total) * float(chi2.ppf(1.0 - tail, 2.0 * total * total / squares))
    return unit * low, unit * high


def remark_on(estimate: dict[str, Any] | None, size: int) -> str | None:
    """Return a warning about the estimated error, or None.

    A relative error of a cost near zero is none to warn of: the difference has to be a share of the
    cost of a model without features, too.

    Examples
    --------
    >>> estimate = {"error": 0.2, "low": 0.1, "high": 0.3, "held_out": 900, "exact": False}
    >>> remark_on({**estimate, "of_none": {"error": 0.1, "low": 0.05, "high": 0.15}}, 50)[:64]
    'a solution fitted on the coreset of size=50 costs 20 % more on t'
    >>> remark_on({**estimate, "of_none": {"error": 1e-4, "low": 0.0, "high": 2e-4}}, 50) is None
    True
    """
    if estimate is None:
        return None
    shares, rows = estimate["of_none"], estimate["held_out"]
    # One of both may be zero.
    near_zero = any(abs(shares[x]) < NEAR_ZERO * abs(estimate[x]) for x in ("error", "high"))
    told = shares if near_zero else estimate
    share = ", as a share of the cost of a model without features" if near_zero else ""
    error, high = abs(told["error"]), told["high"]
    interval = f"between {100 * told['low']:.3g} and {100 * high:.3g} %"
    scale = NEAR_ZERO if near_zero else 1.0
    if error >= LARGE * scale:
        than = "more" if estimate["error"] > 0.0 else "less"
        return (
            f"a solution fitted on the coreset of size={size} costs {100 * error:.3g} % {than} on "
            f"the data than on the coreset{share} ({interval}, by {rows} rows held out); raise "
            f"size."
        )
    if high >= UNKNOWN * scale:
        return (
            f"how far a solution fitted on the coreset of size={size} is off cannot be told "
            f"({interval}{share}, by {rows} rows held out): too few rows have a loss; "
            f"compare with a larger size, or with `coreset.audit`."
        )
    return None
