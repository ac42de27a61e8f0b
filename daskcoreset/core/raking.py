r"""Weights of a labelled sample, adjusted to what is known of all the data.

Class totals come first: weights of a class are scaled until they add up to its weight
:math:`U_c`, which is always possible and exact. Further targets t are met by generalised
raking within the classes: with :math:`\sum_i w_i a_i = t`, the weights

.. math::

    w_i(\theta) = U_c \frac{v_i e^{\langle a_i, \theta \rangle}}
    {\sum_{j \in c} v_j e^{\langle a_j, \theta \rangle}}

are those nearest to the given ones, v, by the Kullback-Leibler divergence. They are positive,
and the totals hold for every :math:`\theta`. Where no such weights are found, or only some
that lie far from v, fewer targets are tried; then a part of the way to all of them, on which
every one comes nearer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.typing import FloatArray, IndexArray

__all__ = [
    "MOST_SPREAD",
    "Calibrated",
    "Raked",
    "Target",
    "by_class",
    "calibrate_classes",
    "rake",
    "scale_classes",
]

MOST_SPREAD = 20.0
"""Factor by which raking may raise or lower a weight, beside the scaling to the class total:
beyond it a row would stand for rows unlike it. With ten, errors on the set credit were 5 % larger
(a few hundred rows, 23 columns, many of them rare)."""

PARTS = (0.999, 0.9, 0.7, 0.5, 0.25)
"""Parts of the way that are tried where no set of targets can be met."""

TOTALS = "class totals"

_REACHED = 1e-10
"""Error of a target below which there is no use in going on, in standard deviations."""

_MET = 1e-6
"""Error that rounding may leave."""

_MOST_STEPS = 40


class Target(NamedTuple):
    """Sums over the data to be met.

    Attributes
    ----------
    features : ndarray of shape (m, c), float64
        What is summed, a, of the rows drawn.
    totals : ndarray of shape (c,), float64
        t, the sums over all the data.
    """

    features: FloatArray
    totals: FloatArray


class Calibrated(NamedTuple):
    """Weights, and to what they were calibrated.

    Attributes
    ----------
    weights : ndarray of shape (m,), float64
    met : tuple of str or None, default=None
        Names of the sums over the data that they meet; None where nothing was calibrated.
    wanted : tuple of str
        Names of all that were wanted.
    part : float
        How far all that were wanted were moved towards their targets, on average: 0 where they
        were given up, 1 where all are met.
    spread : float
        Largest factor by which raking raised or lowered a weight, beside the scaling of its
        class.
    """

    weights: FloatArray
    met: tuple[str, ...] | None = None
    wanted: tuple[str, ...] = ()
    part: float = 0.0
    spread: float = 1.0

    def describe(self) -> dict[str, Any]:
        """Return what belongs into the provenance; plain JSON values."""
        if self.met is None:
            return {}
        said = {"met": list(self.met), "wanted": list(self.wanted)}
        return {"calibration": {**said, "part": self.part, "spread": self.spread}}


def calibrate_classes(
    weights: FloatArray,
    codes: IndexArray,
    class_weights: FloatArray,
    targets: Mapping[str, Callable[[], Target]],
    ladder: Sequence[tuple[str, ...]],
    *,
    kept: Sequence[str] = (),
) -> Calibrated:
    """Scale weights to class totals, and rake them to the first set of targets that can be met.

    Parameters
    ----------
    weights : ndarray of shape (m,), float64
        v, positive.
    codes : ndarray of shape (m,), int64
        Class of every row.
    class_weights : ndarray of shape (n_classes,), float64
        :math:`U_c`.
    targets : mapping of str to callable
        What makes the targets, by their names.
    ladder : sequence of tuples of names
        Sets of targets, in the order in which they are tried; the first one holds all that is
        wanted. Where none can be met, a part of the way is gone, and in the last resort none.
    kept : sequence of names, default=()
        Targets that need not come nearer.

    Returns
    -------
    Calibrated
        Class totals are exact up to rounding. No target that is wanted or kept is farther away
        than before, in standard deviations of its estimates.

    Examples
    --------
    >>> rows = np.array([0.0, 1.0, 2.0, 5.0])
    >>> codes = np.array([0, 0, 0, 1])
    >>> sums = Target((codes == 0)[:, None] * rows[:, None], np.array([7.0]))
    >>> found = calibrate_classes(
    ...     np.ones(4), codes, np.array([6.0, 2.0]), {"sums": lambda: sums}, [("sums",)]
    ... )
    >>> found.met, found.weights[:3].sum().round(6), (found.weights * rows)[:3].sum().round(6)
    (('class totals', 'sums'), np.float64(6.0), np.float64(7.0))
    """
    scaled = scale_classes(weights, codes, class_weights)
    wanted = (TOTALS, *(ladder[0] if ladder else ()))
    held = np.bincount(codes, minlength=len(class_weights))
    made = {name: targets[name]() for name in dict.fromkeys((*wanted[1:], *kept)) if ladder}
    totals_met = () if (class_weights[held == 0] > 0.0).any() else (TOTALS,)
    for part, names in [(1.0, names) for names in ladder] + [
        (part, names) for names in ladder for part in PARTS
    ]:
        features = np.concatenate([made[name].features for name in names], axis=1)
        totals = np.concatenate([made[name].totals for name in names])
        raked = rake(Target(features, totals), scaled, codes, class_weights, part)
        if raked is not None and not any(
            _moves_away(made[name], scaled, raked.weights) for name in made if name not in names
        ):
            met = (*totals_met, *names) if part == 1.0 else totals_met
            return Calibrated(raked.weights, met, wanted, raked.part, raked.spread)
    return Calibrated(scaled, totals_met, wanted, 0.0 if ladder else 1.0)


def _moves_away(target: Target, before: FloatArray, after: FloatArray) -> bool:
    """Whether weights are farther from a target than others, over all its sums together."""
    centered = target.features - (before @ target.features) / before.sum()
    scale = np.linalg.norm(before[:, np.newaxis] * centered, axis=0)
    scale[scale == 0.0] = np.inf
    gaps = [np.linalg.norm((w @ target.features - target.totals) / scale) for w in (before, after)]
    return bool(gaps[1] > gaps[0] * (1.0 + _MET) + _MET)


def scale_classes(weights: FloatArray, codes: IndexArray, class_weights: FloatArray) -> FloatArray:
    """Scale the weights of every class to its total.

    Examples
    --------
    >>> scale_classes(np.array([1.0, 3.0, 1.0]), np.array([0, 0, 1]), np.array([8.0, 5.0]))
    array([2., 6., 5.])
    """
    sums = np.bincount(codes, weights, minlength=len(class_weights))
    # A class without rows has no sum either, and no row asks for its factor.
    factors = np.divide(class_weights, sums, out=np.ones(len(sums)), where=sums > 0.0)
    return np.asarray(weights * factors[codes])


def by_class(codes: IndexArray, class_weights: FloatArray) -> FloatArray:
    """Return ones where a row is of a class, and zeros elsewhere; shape (n_classes, m)."""
    found: FloatArray = (codes == np.arange(len(class_weights))[:, np.newaxis]).astype(np.float64)
    return found


class Raked(NamedTuple):
    """Raked weights.

    Attributes
    ----------
    weights : ndarray of shape (m,), float64
    part : float
        Share of the way to the targets, on average.
    spread : float
        Largest factor by which a weight was raised or lowered.
    """

    weights: FloatArray
    part: float
    spread: float


def rake(
    target: Target,
    weights: FloatArray,
    codes: IndexArray,
    class_weights: FloatArray,
    part: float = 1.0,
) -> Raked | None:
    r"""Rake weights to totals, within classes whose weights stay as they are.

    Parameters
    ----------
    target : Target
    weights : ndarray of shape (m,), float64
        v, positive, which add up to `class_weights`.
    codes : ndarray of shape (m,), int64
        Class of every row.
    class_weights : ndarray of shape (n_classes,), float64
    part : float, default=1.0
        Below 1, how far to go towards every total; half as far as there is room towards those
        that no weights of these rows reach.

    Returns
    -------
    Raked or None
        None where that cannot be met, or not with every weight raised or lowered by no more than
        a factor of `MOST_SPREAD`.

    Examples
    --------
    >>> sums = Target(np.array([[0.0], [1.0], [2.0]]), np.array([4.0]))
    >>> one_class, total = np.zeros(3, dtype=int), np.array([3.0])
    >>> found = rake(sums, np.ones(3), one_class, total)
    >>> found.weights.sum().round(6), (sums.features.T @ found.weights).round(6)
    (np.float64(3.0), array([4.]))
    >>> rake(sums._replace(totals=np.array([7.0])), np.ones(3), one_class, total) is None
    True

    References
    ----------
    Deville, Särndal and Sautory (1993), Generalized raking procedures in survey sampling.
    """
    # In a unit that changes no digit, so that no square of a weight overflows.
    unit = 2.0 ** min(math.frexp(float(class_weights.sum()))[1], 1000)
    weights, class_weights = weights / unit, class_weights / unit
    classes = _Classes(codes, class_weights)
    # What a class has in common is met by its total: only differences within it matter.
    sums = classes.sums(target.features * weights[:, np.newaxis])
    means = sums / classes.held[:, np.newaxis]
    gaps = target.features - means[codes]
    wanted = target.totals / unit - class_weights @ means
    # A unit is about one standard deviation of the estimated total.
    scale = np.sqrt(np.einsum("i,ij->j", weights**2, gaps**2))
    span = np.abs(target.features).max(axis=0) * float(class_weights.sum())
    flat = scale <= 1e-12 * span
    shares = np.where(np.abs(wanted) <= 1e-9 * span, 1.0, 0.0)  # of flat ones: none can move
    gaps, wanted = gaps[:, ~flat] / scale[~flat], wanted[~flat] / scale[~flat]
    shares[~flat] = classes.shares(gaps, wanted)
    if part == 1.0 and (shares < 1.0).any():
        return None
    found = _solve(gaps, weights, part * shares[~flat] * wanted, classes)
    if found is None:
        return None
    return Raked(unit * found, part * float(shares.mean()), _spread(found, weights))


def _spread(raked: FloatArray, weights: FloatArray) -> float:
    factors = raked / weights
    least = float(factors.min())  # a trial step may leave a row nothing
    return max(float(factors.max()), 1.0 / least if least > 0.0 else np.inf)


class _Classes:
    """Rows by class."""

    def __init__(self, codes: IndexArray, weights: FloatArray) -> None:
        self.codes, self.weights = codes, weights
        self.own = [np.flatnonzero(codes == code) for code in range(len(weights))]
        self.held = np.where([len(own) for own in self.own], weights, 1.0)

    def sums(self, values: FloatArray) -> FloatArray:
        return np.stack([values[own].sum(axis=0) for own in self.own])

    def shares(self, gaps: FloatArray, wanted: FloatArray) -> FloatArray:
        """How far towards every total to go: all the way where weights of these rows reach it."""
        least, most = np.zeros(len(wanted)), np.zeros(len(wanted))
        for own, weight in zip(self.own, self.weights, strict=True):
            if len(own):
                least += weight * gaps[own].min(axis=0)
                most += weight * gaps[own].max(axis=0)
        room = np.where(wanted > 0.0, most, -least)
        need = np.abs(wanted)
        return np.asarray(np.where(need < room, 1.0, 0.5 * room / np.maximum(need, 1e-300)))


def _solve(
    gaps: FloatArray, weights: FloatArray, wanted: FloatArray, classes: _Classes
) -> FloatArray | None:
    """Minimise the dual by Newton's method; None where that fails or leads too far."""
    theta = np.zeros(gaps.shape[1])
    w, value = weights, 0.0
    for _ in range(_MOST_STEPS):
        gradient = gaps.T @ w - wanted
        missed = float(np.abs(gradient).max(initial=0.0))
        if missed <= _REACHED:
            break
        inner = classes.sums(gaps * w[:, np.newaxis]) / np.sqrt(classes.held)[:, np.newaxis]
        hessian = (gaps * w[:, np.newaxis]).T @ gaps - inner.T @ inner
        # Columns that depend on one another are met together, or not at all.
        hessian[np.diag_indices_from(hessian)] += 1e-10 * hessian.trace() / len(theta)
        step = -np.linalg.solve(hessian, gradient)
        decrease = -float(gradient @ step)
        length = 1.0 if decrease > 0.0 else 0.0
        while length > 1e-3:
            trial = theta + length * step
            w_trial, value_trial = _tilted(gaps @ trial, weights, classes)
            if _spread(w_trial, weights) <= MOST_SPREAD:
                value_trial -= float(wanted @ trial)
                if value_trial <= value - 1e-4 * length * decrease + 1e-12 * abs(value):
                    break
            length /= 2.0
        else:
            break
        theta, w, value = trial, w_trial, value_trial
    return w if missed <= _MET else None


def _tilted(tilt: FloatArray, weights: FloatArray, classes: _Classes) -> tuple[FloatArray, float]:
    """Weights tilted within the classes, and the sum of U_c times the logarithm of the norm."""
    tilted, value = np.empty_like(weights), 0.0
    for own, weight in zip(classes.own, classes.weights, strict=True):
        if not len(own):
            continue
        top = tilt[own].max()
        raised = weights[own] * np.exp(tilt[own] - top)
        norm = raised.sum()
        tilted[own] = raised * (weight / norm)
        value += weight * float(top + np.log(norm / weight))
    return tilted, value
