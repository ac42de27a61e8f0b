r"""Quotas, draws and weights: how rows are taken once their scores are known.

Notation as in the papers: a row with input weight u and probability q per draw that is
taken in one of m draws gets the weight :math:`u / (m q)`; with an inclusion probability
:math:`\pi` in place of m q, systematic sampling gives :math:`u / \pi`. Either way
:math:`\mathrm E \sum_{x \in C} w(x) f(x) = \sum_x u(x) f(x)` for every f.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.core.rowwise import systematic_walk
from daskcoreset.core.typing import FloatArray, IndexArray, MaskArray

__all__ = [
    "class_inclusion",
    "draw_with_replacement",
    "inclusion_probabilities",
    "merge_duplicates",
    "raise_classes",
    "split_quota",
    "systematic",
]


def split_quota(size: int, masses: FloatArray, rng: np.random.Generator) -> IndexArray:
    r"""Split `size` draws over blocks and mixture components.

    Parameters
    ----------
    size : int
        Number of draws m.
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


def draw_with_replacement(scores: FloatArray, count: int, rng: np.random.Generator) -> IndexArray:
    """Draw rows independently, in proportion to their scores.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
        Non-negative, positive in total when ``count > 0``.
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (count,), int64
        Row numbers in the order of the draws; rows with score zero never occur.

    Examples
    --------
    >>> draw_with_replacement(np.array([0.0, 1.0]), 3, np.random.default_rng(0))
    array([1, 1, 1])
    """
    if count == 0:
        return np.empty(0, dtype=np.int64)
    running = np.cumsum(scores)
    # Below running[-1] whatever the rounding, so that the search ends on a row with mass.
    points = np.minimum(rng.random(count) * running[-1], np.nextafter(running[-1], 0.0))
    return np.asarray(np.searchsorted(running, points, side="right"), dtype=np.int64)


def inclusion_probabilities(scores: FloatArray, size: float) -> FloatArray:
    r"""Inclusion probabilities proportional to scores, capped at one, that sum to `size`.

    Rows whose share exceeds one are certain; the rest of `size` is spread over the other
    rows, until none exceeds one. However unevenly scores lie, as with heavy tails, as many
    rows are expected as are wanted.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
        Non-negative.
    size : float
        Sum wanted; when at most `size` scores are positive, these rows are all certain.

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
    if int(positive.sum()) <= size:
        return positive.astype(np.float64)
    total = float(scores.sum())
    if float(scores.max()) / total * size < 1.0:
        return np.asarray(scores * (size / total))
    # Only the int(size) largest rows can be certain.
    heavy = int(size)
    parted = np.partition(scores, -heavy - 1)
    descending = np.sort(parted[-heavy - 1 :])[::-1]
    light = float(parted[: -heavy - 1].sum())
    # rest[k] is the sum of all scores but those of the k largest rows.
    rest = light + np.cumsum(descending[::-1])[::-1]
    left = size - np.arange(heavy + 1)
    certain = int((descending / rest * left >= 1.0).argmin())
    inclusion = np.minimum(scores, descending[certain]) / rest[certain] * left[certain]
    if certain:
        inclusion[scores >= descending[certain - 1]] = 1.0
    return np.asarray(inclusion)


def class_inclusion(
    scores: FloatArray, size: int, codes: IndexArray, least: IndexArray
) -> FloatArray:
    """Inclusion probabilities as by `inclusion_probabilities`, with a floor for every class.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
    size : int
    codes : ndarray of shape (n,), int64
        Class of every row.
    least : ndarray of shape (n_classes,), int64
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
    low = raise_classes(inclusion, scores, codes, least)
    raised = np.zeros_like(low)
    # What is given to some classes is taken from the others, which may fall below theirs.
    while low.any():
        raised |= low
        rest = ~raised[codes]
        left = size - int(inclusion[~rest].sum().round())
        inclusion[rest] = inclusion_probabilities(scores[rest], left)
        low = raise_classes(inclusion, scores, codes, least)
    return inclusion


def raise_classes(
    inclusion: FloatArray, scores: FloatArray, codes: IndexArray, least: IndexArray
) -> MaskArray:
    """Raise, in place, the inclusion probabilities of classes whose sum is below a floor.

    Parameters
    ----------
    inclusion : ndarray of shape (n,), float64
        Changed.
    scores, codes, least
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
    held = np.bincount(codes[scores > 0.0], minlength=len(least))
    low = np.bincount(codes, inclusion, len(least)) < np.minimum(least, held) - 1e-6
    for code in np.flatnonzero(low):
        own = np.flatnonzero(codes == code)
        inclusion[own] = inclusion_probabilities(scores[own], int(least[code]))
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
        which neighbours are alike is a stratification; no order, a periodic one included,
        makes the variance larger than that of independent draws.

    Examples
    --------
    >>> systematic(np.full(4, 0.5), np.random.default_rng(0)).tolist()
    [1, 2]

    References
    ----------
    Deville (1998); see `daskcoreset.core.rowwise.systematic_walk`.
    """
    units = int(np.ceil(inclusion.sum())) + 1
    return systematic_walk(inclusion, rng.random(units))


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
