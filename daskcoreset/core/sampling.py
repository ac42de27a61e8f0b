"""Quotas, systematic and independent draws, and stratified samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from daskcoreset.core.block import Block, concatenate
from daskcoreset.core.labels import class_order
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.messages import scores_error
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, MaskArray


def split_quota(size: int, masses: FloatArray, rng: np.random.Generator) -> IndexArray:
    r"""Split `size` draws over blocks.

    Parameters
    ----------
    size : int
        Draws m.
    masses : ndarray of shape (n_blocks,), float64
        Total score of each block.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_blocks,), int64
        Counts that sum to `size`: multinomial, each draw falling on a block with
        probability proportional to its mass. A draw of a row within its block in
        proportion to its scores then has exactly the distribution of a draw on one
        machine.

    Examples
    --------
    >>> split_quota(10, np.array([1.0, 0.0]), np.random.default_rng(0))
    array([10,  0])

    References
    ----------
    Bachem, Lucic and Krause (2018), section 4.2. Its u_i and v_i together.
    """
    return np.asarray(rng.multinomial(size, masses / masses.sum()), dtype=np.int64)


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
    _, classes, codes = block.coded
    keys = np.full(len(block), np.inf)  # of rows without weight
    coins = rng.standard_exponential(len(block))
    np.divide(coins, block.weights, out=keys, where=block.weights > 0.0)
    counts, masses = block.class_totals
    order = class_order(codes)
    starts = np.searchsorted(codes[order], np.arange(len(classes) + 1))
    strata: dict[Any, StratifiedReservoir] = {}
    for code in np.flatnonzero(counts):
        label, members = classes[code].item(), order[starts[code] : starts[code + 1]]
        kept = min(counts[code], _of(size, label) + 1)
        first = members[np.argpartition(keys[members], kept - 1)[:kept]]
        first = first[np.lexsort((first, keys[first]))]
        strata[label] = StratifiedReservoir(
            int(counts[code]), float(masses[code]), keys[first], block.take(first)
        )
    return strata


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
