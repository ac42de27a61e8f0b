r"""Core points drawn from the rows, as many of every class.

Whatever the core points are, they are a delta-cover, with delta twice the largest distance of a
row from the nearest. A cover with the least delta has its core points at the rim of the data;
drawn ones lie where rows are, so that most rows are nearer to one, and on skewed classes half
of them lie in the small class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.blocks import Block, concatenate
from daskcoreset.classes import plain_labels
from daskcoreset.clusters import dense_rows
from daskcoreset.gathering import gather
from daskcoreset.randomness import Stage, stream
from daskcoreset.typing import AnyArray, FloatArray, IndexArray

if TYPE_CHECKING:
    from daskcoreset.inputs import RowBlocks

__all__ = ["draw_points", "split_evenly"]

_FOLD = 2**30 - 2
"""Address of the keys of rows."""

_SPARE = 2
"""Candidates for every core point wanted: equal rows are of no use twice."""


@dataclass(frozen=True)
class _Wanted:
    classes: AnyArray
    count: int  # of every class
    seed: int


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Rows with the smallest keys of every class, in the order of class and key."""

    rows: Block
    keys: FloatArray
    codes: IndexArray
    count: int

    def merged(self, other: _Candidates) -> _Candidates:
        rows = concatenate([self.rows, other.rows])
        keys = np.concatenate([self.keys, other.keys])
        codes = np.concatenate([self.codes, other.codes])
        return _smallest(rows, keys, codes, self.count)


def draw_points(blocks: RowBlocks, classes: AnyArray, count: int, *, seed: int) -> AnyArray:
    """Draw distinct rows, in one read.

    Within its class a row is drawn without replacement in proportion to its weight: it has an
    exponential key with its weight for a rate, and the smallest keys win.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    classes : ndarray of shape (k,)
        Sorted.
    count : int
        Rows wanted; as many of every class, unless one has fewer.
    seed : int

    Returns
    -------
    ndarray of shape (r, d), float32 or float64
        In the order of class and key; r is `count` unless fewer rows are distinct.

    Examples
    --------
    >>> from daskcoreset.inputs import row_blocks
    >>> X = np.arange(100.0).reshape(-1, 1)
    >>> found = draw_points(row_blocks(X, X[:, 0] < 10), np.array([False, True]), 8, seed=0)
    >>> found.shape, int((found < 10).sum())
    ((8, 1), 4)

    References
    ----------
    Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir.
    """
    asked = _Wanted(classes, _SPARE * count, seed)
    found: _Candidates = gather(blocks, _of_block, _merge, given=asked).value
    points = dense_rows(found.rows.points)
    # Of equal rows, whatever their class, the first counts.
    first = np.sort(np.unique(points, axis=0, return_index=True)[1])
    codes = found.codes[first]
    quotas = split_evenly(count, np.bincount(codes, minlength=len(classes)))
    places = [first[codes == k][:quota] for k, quota in enumerate(quotas)]
    return np.ascontiguousarray(points[np.concatenate(places)])


def split_evenly(count: int, most: IndexArray) -> IndexArray:
    """Split a number as evenly as upper limits allow.

    Examples
    --------
    >>> split_evenly(10, np.array([2, 100, 100]))
    array([2, 4, 4])
    """
    shares = np.zeros(len(most), dtype=np.int64)
    while True:
        left, free = count - int(shares.sum()), np.flatnonzero(shares < most)
        if left <= 0 or not len(free):
            return shares
        if left < len(free):
            shares[free[:left]] += 1
            return shares
        shares[free] = np.minimum(most[free], shares[free] + left // len(free))


def _of_block(block: Block, number: int, asked: _Wanted) -> _Candidates:
    labels: Any = plain_labels(block)
    codes = np.searchsorted(asked.classes, labels)
    uniform = stream(asked.seed, Stage.DESCENT, number, _FOLD).standard_exponential(len(block))
    with np.errstate(divide="ignore"):
        keys = np.where(block.weights > 0, uniform / block.weights, np.inf)
    used = np.flatnonzero(np.isfinite(keys))
    taken = _order(keys[used], codes[used], asked.count)
    rows = used[taken]
    return _Candidates(block.take(rows), keys[rows], codes[rows], asked.count)


def _order(keys: FloatArray, codes: IndexArray, count: int) -> IndexArray:
    """Positions of the smallest keys of every class."""
    order = np.lexsort((keys, codes))
    starts = np.searchsorted(codes[order], codes[order])  # of the class of each
    return np.asarray(order[np.arange(len(order)) - starts < count], dtype=np.int64)


def _smallest(rows: Block, keys: FloatArray, codes: IndexArray, count: int) -> _Candidates:
    taken = _order(keys, codes, count)
    return _Candidates(rows.take(taken), keys[taken], codes[taken], count)


def _merge(first: _Candidates, second: _Candidates) -> _Candidates:
    return first.merged(second)
