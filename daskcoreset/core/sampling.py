"""Quotas, systematic and independent draws, calibration of weights, and stratified samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from daskcoreset.core.block import Block, concatenate
from daskcoreset.core.errors import scores_error
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, MaskArray


def split_quota(size: int, masses: FloatArray, rng: np.random.Generator) -> IndexArray:
    r"""Split `size` draws over blocks and mixture components.

    Parameters
    ----------
    size : int
        Draws m.
    masses : ndarray of shape (n_blocks, n_components), float64
        Total score of each component on each block.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_blocks, n_components), int64
        Counts that sum to `size`: multinomial, each draw falling on a cell with
        probability proportional to its mass. A draw of a row within its cell in
        proportion to the cell's scores then has exactly the distribution of a draw on one
        machine.

    Examples
    --------
    >>> split_quota(10, np.array([[1.0, 0.0], [0.0, 0.0]]), np.random.default_rng(0))
    array([[10,  0],
           [ 0,  0]])

    References
    ----------
    Bachem, Lucic and Krause (2018), section 4.2: u_i and v_i.
    """
    shares = masses.ravel() / masses.sum()
    counts = rng.multinomial(size, shares).reshape(masses.shape)
    return np.asarray(counts, dtype=np.int64)


def draw_with_replacement(
    scores: FloatArray, count: int, rng: np.random.Generator, room: FloatArray | None = None
) -> IndexArray:
    """Draw rows independently, in proportion to their scores.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
        Non-negative, positive in total when ``count > 0``.
    count : int
    rng : numpy.random.Generator
    room : ndarray of shape (n,), float64, or None, default=None
        Overwritten with running sums, which saves new memory.

    Returns
    -------
    ndarray of shape (count,), int64
        Row numbers in the order of the draws. Rows with score zero never occur.

    Examples
    --------
    >>> draw_with_replacement(np.array([0.0, 1.0]), 3, np.random.default_rng(0))
    array([1, 1, 1])
    """
    if count == 0:
        return np.empty(0, dtype=np.int64)
    running = np.cumsum(scores, out=room)
    # Below running[-1] whatever the rounding, so that the search ends on a row with mass.
    points = np.minimum(rng.random(count) * running[-1], np.nextafter(running[-1], 0.0))
    return np.asarray(np.searchsorted(running, points, side="right"), dtype=np.int64)


def inclusion_probabilities(scores: FloatArray, size: float) -> FloatArray:
    r"""Inclusion probabilities proportional to scores, capped at one, that sum to `size`.

    Rows whose share exceeds one are certain. The rest of `size` is spread over the other
    rows, until none exceeds one. However unevenly scores lie, as with heavy tails, as many
    rows are expected as are wanted.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
        Non-negative.
    size : float
        Their sum. When at most `size` scores are positive, these rows are all certain.

    Returns
    -------
    ndarray of shape (n,), float64

    Examples
    --------
    >>> inclusion_probabilities(np.array([8.0, 1.0, 1.0]), 2)
    array([1. , 0.5, 0.5])

    References
    ----------
    Tillé (2006), Sampling Algorithms, section 2.10.
    """
    positive = scores > 0.0
    if np.count_nonzero(positive) <= size:
        return positive.astype(np.float64)
    total = float(scores.sum())
    # The usual case, in which no row is certain and nothing has to be sorted.
    if float(scores.max()) / total * size < 1.0:
        return np.asarray(scores * (size / total))
    # Only the int(size) largest rows can be certain.
    heavy = int(size)
    parted = np.partition(scores, -heavy - 1)
    descending = np.sort(parted[-heavy - 1 :])[::-1]
    light = float(parted[: -heavy - 1].sum())
    # tail_sums[k] is the sum of all scores but those of the k largest rows.
    tail_sums = light + np.cumsum(descending[::-1])[::-1]
    remaining = size - np.arange(heavy + 1)
    certain = int((descending / tail_sums * remaining >= 1.0).argmin())
    inclusion = np.minimum(scores, descending[certain]) / tail_sums[certain] * remaining[certain]
    if certain:
        inclusion[scores >= descending[certain - 1]] = 1.0
    return np.asarray(inclusion)


def class_inclusion(
    scores: FloatArray, size: int, codes: IndexArray, floors: IndexArray
) -> FloatArray:
    """Inclusion probabilities as by `inclusion_probabilities`, with a floor for every class.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
    size : int
    codes : ndarray of shape (n,), int64
        Class of every row.
    floors : ndarray of shape (n_classes,), int64
        Floor of the sum of a class; of one with fewer rows all are certain. Floors add up to
        `size` at most.

    Returns
    -------
    ndarray of shape (n,), float64
        In proportion to the scores within the classes that are raised to their floors, and
        within all others together.

    Examples
    --------
    >>> class_inclusion(np.array([9.0, 9.0, 1.0, 1.0]), 2, np.array([0, 0, 1, 1]), np.ones(2))
    array([0.5, 0.5, 0.5, 0.5])
    """
    inclusion = inclusion_probabilities(scores, size)
    low = raise_classes(inclusion, scores, codes, floors)
    raised = np.zeros_like(low)
    # What is given to some classes is taken from the others, which may fall below theirs.
    while low.any():
        raised |= low
        others = ~raised[codes]
        remaining = size - int(inclusion[~others].sum().round())
        inclusion[others] = inclusion_probabilities(scores[others], remaining)
        low = raise_classes(inclusion, scores, codes, floors)
    return inclusion


def raise_classes(
    inclusion: FloatArray, scores: FloatArray, codes: IndexArray, floors: IndexArray
) -> MaskArray:
    """Raise, in place, the inclusion probabilities of classes whose sum is below a floor.

    Parameters
    ----------
    inclusion : ndarray of shape (n,), float64
        Changed.
    scores, codes, floors
        As in `class_inclusion`.

    Returns
    -------
    ndarray of shape (n_classes,), bool
        Which classes were raised.

    Examples
    --------
    >>> inclusion = np.array([0.25, 0.25, 0.5])
    >>> raise_classes(inclusion, np.ones(3), np.array([0, 0, 1]), np.array([1, 5]))
    array([ True,  True])
    >>> inclusion
    array([0.5, 0.5, 1. ])
    """
    sums = np.bincount(codes, inclusion, len(floors))
    # Less what rounding may take from the sum of a class that is at its floor.
    low: MaskArray = sums < floors - 1e-6
    if low.any():  # or has few rows
        n_rows = np.bincount(codes[scores > 0.0], minlength=len(floors))
        low &= sums < n_rows - 1e-6
    for code in np.flatnonzero(low):
        members = np.flatnonzero(codes == code)
        inclusion[members] = inclusion_probabilities(scores[members], int(floors[code]))
    return low


def systematic(inclusion: FloatArray, rng: np.random.Generator) -> IndexArray:
    """Draw rows without replacement, one in every unit of inclusion, in the order they stand.

    Parameters
    ----------
    inclusion : ndarray of shape (n,), float64
        Inclusion probabilities.
    rng : numpy.random.Generator
        Asked for one uniform number for every row to be drawn.

    Returns
    -------
    ndarray of shape (m,), int64
        Increasing row numbers; m is the sum of `inclusion` rounded up or down. An order in
        which neighbours are alike is a stratification. No order, a periodic one included,
        makes the variance larger than that of independent draws.

    Examples
    --------
    >>> systematic(np.full(4, 0.5), np.random.default_rng(0)).tolist()
    [1, 2]

    References
    ----------
    Deville (1998). See `systematic_walk`.
    """
    total = float(inclusion.sum())
    if not math.isfinite(total):
        raise scores_error()
    units = math.ceil(total) + 1
    return systematic_walk(inclusion, rng.random(units))


def systematic_walk(inclusion: FloatArray, uniforms: FloatArray) -> IndexArray:
    r"""Select rows by Deville's systematic sampling with given inclusion probabilities.

    The inclusion probabilities are laid end to end and cut into units of length one. In every
    unit one point is drawn, uniformly, and the row at this point is taken. A row that lies
    across two units, with parts a and b, is taken at most once: where the first unit took it,
    the second one draws among its other rows. If not, the second one takes it with
    probability :math:`b / (1 - a)`. So every row has its inclusion probability
    :math:`a + b` exactly, and the number of rows is fixed.

    Parameters
    ----------
    inclusion : ndarray of shape (n,), float64
        Inclusion probabilities in [0, 1].
    uniforms : ndarray of shape (k,), float64
        Independent and uniform on [0, 1): one for every unit, k at least the sum of
        `inclusion` rounded up, and at least one.

    Returns
    -------
    ndarray of shape (m,), int64
        Rows taken, increasing; m is the sum of `inclusion` rounded up or down.

    Examples
    --------
    >>> systematic_walk(np.full(6, 0.5), np.array([0.25, 0.75, 0.25]))
    array([0, 3, 4])

    References
    ----------
    Deville (1998), Une nouvelle méthode de tirage à probabilités inégales. Chauvet (2012),
    On a characterization of ordered pivotal sampling, shows that the ordered pivotal method is
    the same. Chauvet and Ruiz-Gazen (2017) that its variance is never above that of as many
    independent draws, for any variable and in any order of the rows.
    """
    from daskcoreset.core import loops_numba as loops

    rows = np.empty(len(uniforms) + 1, dtype=np.int64)
    count = loops.walk(inclusion, uniforms, rows)
    return rows[:count].copy()


def merge_duplicates(indices: IndexArray, weights: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Positions of the distinct indices in increasing order, and their summed weights.

    Examples
    --------
    >>> merge_duplicates(np.array([7, 3, 7]), np.array([1.0, 2.0, 3.0]))
    (array([1, 0]), array([2., 4.]))
    """
    _, first, inverse = np.unique(indices, return_index=True, return_inverse=True)
    sums = np.bincount(inverse, weights=weights, minlength=len(first))
    return first.astype(np.int64), sums.astype(np.float64)


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


# Rows of every class, or of each by its label.
Sizes: TypeAlias = int | Mapping[Any, int]


@dataclass(frozen=True, eq=False)
class StratifiedReservoir:
    """Weight of a class in some of the rows, and a sample of it.

    Attributes
    ----------
    count : int
        Rows of positive weight.
    weight : float
    keys : ndarray of shape (s,), float64
        Increasing.
    rows : Block
        The s sampled rows, with their input weights.
    """

    count: int
    weight: float
    keys: FloatArray
    rows: Block

    def smallest(self, size: int) -> StratifiedReservoir:
        """Keep the rows with the `size` smallest keys, in the order of their keys."""
        first = np.argsort(self.keys, kind="stable")[:size]
        return replace(self, keys=self.keys[first], rows=self.rows.take(first))

    def stand_ins(self, size: int) -> FloatArray:
        """Weights of the first `size` rows that represent all rows of the class.

        They add up to its weight.

        References
        ----------
        Cohen and Kaplan (2007), rank conditioning.
        """
        u = self.rows.weights[:size]
        if len(self.keys) > size:
            u = u / -np.expm1(-u * self.keys[size])
        return np.asarray(u * (self.weight / u.sum()))


class StratifiedSample(NamedTuple):
    """A sample stratified by class, with weights that represent all rows.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.
    codes : ndarray of shape (s,), int64
        Class of every row.
    points : ndarray of shape (s, d), float64
    weights : ndarray of shape (s,), float64
        In every class they add up to its weight in the data.
    n_rows : int
        Rows of positive weight in the data.
    """

    classes: AnyArray
    codes: IndexArray
    points: FloatArray
    weights: FloatArray
    n_rows: int


def sample_strata(
    block: Block, size: Sizes, rng: np.random.Generator
) -> dict[Any, StratifiedReservoir]:
    """Sample every class of a block.

    Parameters
    ----------
    block : Block
        With labels.
    size : int or mapping of label to int
        Rows of a class. One more is kept, for its key.
    rng : numpy.random.Generator
        Asked for one number for every row.

    Returns
    -------
    dict of label to StratifiedReservoir

    Examples
    --------
    >>> from daskcoreset.core.block import Block
    >>> block = Block(np.zeros((9, 1)), np.ones(9), np.array(["a", "b", "a"] * 3))
    >>> {
    ...     label: (reservoir.count, len(reservoir.keys))
    ...     for label, reservoir in sample_strata(block, 2, np.random.default_rng(0)).items()
    ... }
    {'a': (6, 3), 'b': (3, 3)}
    """
    keys = _keys_of(block, rng)
    _, classes, codes = block.coded
    used = block.weights > 0.0
    counts, masses = block.class_totals
    kept = np.zeros_like(counts)
    for code in np.flatnonzero(counts):
        kept[code] = min(counts[code], _of(size, classes[code].item()) + 1)
    # To look through all keys of a class takes longer than to sort those that are likely small.
    small = np.flatnonzero(used & (keys <= _likely_limits(kept, counts, masses)[codes]))
    small = small[np.lexsort((keys[small], codes[small]))]
    starts = np.searchsorted(codes[small], np.arange(len(classes) + 1))
    strata: dict[Any, StratifiedReservoir] = {}
    for code in np.flatnonzero(counts):
        first = small[starts[code] : starts[code + 1]]
        if len(first) < kept[code]:
            first = np.flatnonzero(used & (codes == code))
            first = first[np.argsort(keys[first], kind="stable")]
        first = first[: kept[code]]
        strata[classes[code].item()] = StratifiedReservoir(
            int(counts[code]), float(masses[code]), keys[first], block.take(first)
        )
    return strata


def _keys_of(block: Block, rng: np.random.Generator) -> FloatArray:
    """Exponential keys of rows, infinite without weight: once for generators in one state."""

    def find() -> tuple[FloatArray, Any]:
        coins, used = rng.standard_exponential(len(block)), block.weights > 0.0
        keys = np.divide(coins, block.weights, out=np.full(len(block), np.inf), where=used)
        return keys, rng.bit_generator.state

    before = repr(rng.bit_generator.state)
    keys, rng.bit_generator.state = block.once(("keys", before), find)
    return keys


def _likely_limits(kept: IndexArray, counts: IndexArray, masses: FloatArray) -> FloatArray:
    """Limits below which a number of keys of a class lie, and some more if weights are alike."""
    share = (kept + 5.0 * np.sqrt(kept)) / np.maximum(counts, 1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        limits = -np.log1p(-share) * (counts / masses)
    return np.asarray(np.where(share < 1.0, limits, np.inf))


def _of(size: Sizes, label: Any) -> int:
    return size if isinstance(size, int) else size[label]


def merge_reservoirs(
    first: dict[Any, StratifiedReservoir], second: dict[Any, StratifiedReservoir], size: Sizes
) -> dict[Any, StratifiedReservoir]:
    """Sample the union of two sets of rows; associative."""
    merged = dict(first)
    for label, further in second.items():
        if label not in merged:
            merged[label] = further
            continue
        earlier = merged[label]
        merged[label] = StratifiedReservoir(
            earlier.count + further.count,
            earlier.weight + further.weight,
            np.concatenate([earlier.keys, further.keys]),
            concatenate([earlier.rows, further.rows]),
        ).smallest(_of(size, label) + 1)
    return merged


def stratified_sample(strata: dict[Any, StratifiedReservoir], size: int) -> StratifiedSample:
    """Weigh the samples of all classes.

    Parameters
    ----------
    strata : dict of label to Stratum
        At least one.
    size : int
        As they were sampled with.
    """
    labels = sorted(strata)
    parts = [strata[label] for label in labels]
    weights = [part.stand_ins(size) for part in parts]
    return StratifiedSample(
        np.array(labels),
        np.repeat(np.arange(len(labels)), [len(u) for u in weights]),
        np.concatenate([dense_rows(part.rows.points[:size]) for part in parts]).astype(np.float64),
        np.concatenate(weights),
        sum(part.count for part in parts),
    )
