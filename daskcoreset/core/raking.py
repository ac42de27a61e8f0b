"""Calibration of weights: exact class totals, and sums over the data that drawn rows meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.typing import FloatArray, IndexArray

# Factor by which raking may raise or lower a weight, beside the scaling to the class total: beyond
# it a row would stand for rows unlike it. With ten, errors on the set credit were 5 % larger (a few
# hundred rows, 23 columns, many of them rare).
MAX_SPREAD = 20.0

# Parts of the way that are tried where no set of targets can be met.
PARTS = (0.999, 0.9, 0.7, 0.5, 0.25)

TOTALS = "class totals"

# Error of a target below which there is no use in going on, in standard deviations.
_REACHED = 1e-10

# Error that rounding may leave.
_MET = 1e-6

_MAX_STEPS = 40


class Target(NamedTuple):
    """Sums over the data to be met.

    Attributes
    ----------
    features : ndarray of shape (m, c), float64
        The terms a of the drawn rows, which are summed.
    totals : ndarray of shape (c,), float64
        t, the sums over all the data.
    """

    features: FloatArray
    totals: FloatArray


class Calibrated(NamedTuple):
    """Calibrated weights, and the targets that they meet.

    Attributes
    ----------
    weights : ndarray of shape (m,), float64
    met : tuple of str or None, default=None
        Names of the sums over the data that they meet. None where nothing was calibrated, or
        the sums have no names.
    requested : tuple of str
        Names of all targets that were requested.
    part : float
        How far the sums that were raked went towards their targets, on average: 1 where those of
        `met` are all that were raked, 0 where raking was given up.
    spread : float
        Largest factor by which raking raised or lowered a weight, beside the scaling of its
        class.
    """

    weights: FloatArray
    met: tuple[str, ...] | None = None
    requested: tuple[str, ...] = ()
    part: float = 0.0
    spread: float = 1.0

    def describe(self) -> dict[str, Any]:
        """Return the entries of the provenance; plain JSON values."""
        if self.met is None:
            return {}
        names = {"met": list(self.met), "wanted": list(self.requested)}
        return {"calibration": {**names, "part": self.part, "spread": self.spread}}


def calibrate_classes(
    weights: FloatArray,
    codes: IndexArray,
    class_weights: FloatArray,
    targets: Mapping[str, Callable[[], Target]],
    ladder: Sequence[tuple[str, ...]],
    *,
    kept: Mapping[str, Callable[[], Iterable[Target]]] | None = None,
) -> Calibrated:
    """Scale weights to class totals, and calibrate them to the first targets that can be met.

    Parameters
    ----------
    weights : ndarray of shape (m,), float64
        v, positive.
    codes : ndarray of shape (m,), int64
        Class of every row.
    class_weights : ndarray of shape (n_classes,), float64
        :math:`U_c`.
    targets : mapping of str to callable
        Functions that make the targets, by their names. Called for those that are tried.
    ladder : sequence of tuples of names
        Sets of targets, in the order in which they are tried. The first one holds all that is
        wanted. Where none can be met, a part of the way is gone, and in the last resort none.
    kept : mapping of str to callable, optional
        Targets that need not come nearer, by their names: what yields their parts, one at a time,
        so that those of many classes never stand beside one another.

    Returns
    -------
    Calibrated
        Class totals are exact up to rounding. No target that is requested or kept is farther away
        than before, in standard deviations of its estimates.

    Examples
    --------
    >>> rows = np.array([0.0, 1.0, 2.0, 5.0])
    >>> codes = np.array([0, 0, 0, 1])
    >>> sums = Target((codes == 0)[:, None] * rows[:, None], np.array([7.0]))
    >>> calibrated = calibrate_classes(
    ...     np.ones(4), codes, np.array([6.0, 2.0]), {"sums": lambda: sums}, [("sums",)]
    ... )
    >>> (
    ...     calibrated.met,
    ...     calibrated.weights[:3].sum().round(6),
    ...     (calibrated.weights * rows)[:3].sum().round(6),
    ... )
    (('class totals', 'sums'), np.float64(6.0), np.float64(7.0))
    """
    scaled = scale_classes(weights, codes, class_weights)
    requested = (TOTALS, *(ladder[0] if ladder else ()))
    class_sizes = np.bincount(codes, minlength=len(class_weights))
    totals_met = () if (class_weights[class_sizes == 0] > 0.0).any() else (TOTALS,)
    kept = kept or {}
    guarded = dict.fromkeys((*requested[1:], *kept))
    make = cache(lambda name: targets[name]())  # computed when a rung or a check needs it
    # All the way to fewer targets goes before a part of the way to more of them.
    for part, names in [(1.0, names) for names in ladder] + [
        (part, names) for names in ladder for part in PARTS
    ]:
        target = join_targets(make(name) for name in names)
        raked = rake(target, scaled, codes, class_weights, part)
        if raked is not None and not any(
            _moves_away(kept[name]() if name in kept else [make(name)], scaled, raked.weights)
            for name in guarded
            if name not in names
        ):
            met = (*totals_met, *names) if part == 1.0 else totals_met
            return raked._replace(met=met, requested=requested)
    return Calibrated(scaled, totals_met, requested, 0.0 if ladder else 1.0)


def join_targets(targets: Iterable[Target]) -> Target:
    """Return one target of all sums; of a single target itself, since features may be large."""
    features, totals = zip(*targets, strict=True)
    if len(features) == 1:
        return Target(features[0], totals[0])
    return Target(np.concatenate(features, axis=1), np.concatenate(totals))


def class_sums(
    rows: FloatArray, codes: IndexArray, totals: Iterable[FloatArray]
) -> Iterator[Target]:
    """Yield the sums of the rows of every class, each a separate target."""
    for code, total in enumerate(totals):
        yield Target(rows * (codes == code)[:, np.newaxis], total)


def _moves_away(parts: Iterable[Target], before: FloatArray, after: FloatArray) -> bool:
    """Whether weights are farther from a target than others, over its sums."""
    gaps: list[list[FloatArray]] = []
    for features, totals in parts:
        centered = features - (before @ features) / before.sum()
        scale = np.linalg.norm(before[:, np.newaxis] * centered, axis=0)
        scale[scale == 0.0] = np.inf
        gaps.append([(w @ features - totals) / scale for w in (before, after)])
    was, is_now = (float(np.linalg.norm(np.concatenate(gap))) for gap in zip(*gaps, strict=True))
    return is_now > was * (1.0 + _MET) + _MET


def scale_classes(weights: FloatArray, codes: IndexArray, class_weights: FloatArray) -> FloatArray:
    """Scale the weights of every class to its total.

    Examples
    --------
    >>> scale_classes(np.array([1.0, 3.0, 1.0]), np.array([0, 0, 1]), np.array([8.0, 5.0]))
    array([2., 6., 5.])
    """
    sums = np.bincount(codes, weights, minlength=len(class_weights))
    # A class without rows has no sum either, and no row uses its factor.
    factors = np.divide(class_weights, sums, out=np.ones(len(sums)), where=sums > 0.0)
    return np.asarray(weights * factors[codes])


def rake(
    target: Target,
    weights: FloatArray,
    codes: IndexArray,
    class_weights: FloatArray,
    part: float = 1.0,
) -> Calibrated | None:
    r"""Calibrate weights to totals, within classes whose weights stay as they are.

    Parameters
    ----------
    target : Target
    weights : ndarray of shape (m,), float64
        v, positive, which add up to `class_weights`.
    codes : ndarray of shape (m,), int64
        Class of every row.
    class_weights : ndarray of shape (n_classes,), float64
    part : float, default=1.0
        Below 1, how far to go towards every total. Half as far as there is room towards those
        that no weights of these rows reach.

    Returns
    -------
    Calibrated or None
        Without the names of what is met. None if that cannot be met, or not with every
        weight raised or lowered by no more than a factor of `MAX_SPREAD`.

    Examples
    --------
    >>> sums = Target(np.array([[0.0], [1.0], [2.0]]), np.array([4.0]))
    >>> one_class, total = np.zeros(3, dtype=int), np.array([3.0])
    >>> raked = rake(sums, np.ones(3), one_class, total)
    >>> raked.weights.sum().round(6), (sums.features.T @ raked.weights).round(6)
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
    means = sums / classes.divisors[:, np.newaxis]
    gaps = target.features - means[codes]
    moves = target.totals / unit - class_weights @ means
    # A unit is about one standard deviation of the estimated total.
    scale = np.sqrt(np.einsum("i,ij->j", weights**2, gaps**2))
    span = np.abs(target.features).max(axis=0) * float(class_weights.sum())
    flat = scale <= 1e-12 * span
    shares = np.where(np.abs(moves) <= 1e-9 * span, 1.0, 0.0)  # of flat ones: none can move
    gaps, moves = gaps[:, ~flat] / scale[~flat], moves[~flat] / scale[~flat]
    shares[~flat] = classes.shares(gaps, moves)
    if part == 1.0 and (shares < 1.0).any():
        return None
    raked = _solve(gaps, weights, part * shares[~flat] * moves, classes)
    if raked is None:
        return None
    mean_part = part * float(shares.mean())
    return Calibrated(unit * raked, part=mean_part, spread=_spread(raked, weights))


def _spread(raked: FloatArray, weights: FloatArray) -> float:
    factors = raked / weights
    smallest = float(factors.min())  # a trial step may leave a row nothing
    return max(float(factors.max()), 1.0 / smallest if smallest > 0.0 else np.inf)


class _Classes:
    """Rows by class."""

    def __init__(self, codes: IndexArray, weights: FloatArray) -> None:
        self.codes, self.weights = codes, weights
        self.members = [np.flatnonzero(codes == code) for code in range(len(weights))]
        # A class without rows has sums of zero, which any divisor leaves at that.
        self.divisors = np.where([len(members) for members in self.members], weights, 1.0)

    def sums(self, values: FloatArray) -> FloatArray:
        return np.stack([values[members].sum(axis=0) for members in self.members])

    def shares(self, gaps: FloatArray, moves: FloatArray) -> FloatArray:
        """Fraction of the way towards every total: one where these rows can reach it."""
        lowest, highest = np.zeros(len(moves)), np.zeros(len(moves))
        for members, weight in zip(self.members, self.weights, strict=True):
            if len(members):
                lowest += weight * gaps[members].min(axis=0)
                highest += weight * gaps[members].max(axis=0)
        room = np.where(moves > 0.0, highest, -lowest)
        need = np.abs(moves)
        return np.asarray(np.where(need < room, 1.0, 0.5 * room / np.maximum(need, 1e-300)))


def _solve(
    gaps: FloatArray, weights: FloatArray, moves: FloatArray, classes: _Classes
) -> FloatArray | None:
    """Minimise the dual by Newton's method. None where that fails or leads too far."""
    theta = np.zeros(gaps.shape[1])
    w, value = weights, 0.0
    for _ in range(_MAX_STEPS):
        gradient = gaps.T @ w - moves
        missed = float(np.abs(gradient).max(initial=0.0))
        if missed <= _REACHED:
            break
        inner = classes.sums(gaps * w[:, np.newaxis]) / np.sqrt(classes.divisors)[:, np.newaxis]
        hessian = (gaps * w[:, np.newaxis]).T @ gaps - inner.T @ inner
        # Columns that depend on one another are met together, or not at all.
        hessian[np.diag_indices_from(hessian)] += 1e-10 * hessian.trace() / len(theta)
        step = -np.linalg.solve(hessian, gradient)
        decrease = -float(gradient @ step)
        length = 1.0 if decrease > 0.0 else 0.0
        while length > 1e-3:
            trial = theta + length * step
            w_trial, value_trial = _tilted(gaps @ trial, weights, classes)
            if _spread(w_trial, weights) <= MAX_SPREAD:
                value_trial -= float(moves @ trial)
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
    for members, weight in zip(classes.members, classes.weights, strict=True):
        if not len(members):
            continue
        top = tilt[members].max()
        raised = weights[members] * np.exp(tilt[members] - top)
        norm = raised.sum()
        tilted[members] = raised * (weight / norm)
        value += weight * float(top + np.log(norm / weight))
    return tilted, value
