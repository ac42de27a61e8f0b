"""What blocks answer about unlabelled rows: the closest ones, the first close ones, given ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.margin_products import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block

__all__ = [
    "BestOf",
    "Closest",
    "FirstBelow",
    "Found",
    "Request",
    "Take",
    "TakeRequest",
    "heights",
    "join",
    "smallest",
    "take_survey",
    "unite",
]


def heights(points: Points, w: FloatArray, b: float) -> FloatArray:
    """Return ``points @ w + b`` in float64, with the same bits on any number of threads.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    w : ndarray of shape (d,), float64
    b : float

    Returns
    -------
    ndarray of shape (n,), float64

    Examples
    --------
    >>> heights(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]), -1.0)
    array([10.])
    """
    return inner_products(points, w[None, :])[:, 0] + b


@dataclass(frozen=True, eq=False)
class Found:
    """A few rows of the pool.

    Attributes
    ----------
    indices : ndarray of shape (q,), int64
        Their numbers in the whole pool.
    rows : ndarray of shape (q, d), float32 or float64
    keys : ndarray of shape (q,), float64
        What they were chosen by.
    labels : ndarray of shape (q,) or None
        Of rows that were fetched from data with labels.
    """

    indices: IndexArray
    rows: AnyArray
    keys: FloatArray
    labels: AnyArray | None = None

    def take(self, order: Any) -> Found:
        """Return some of the rows, in this order."""
        labels = None if self.labels is None else self.labels[order]
        return Found(self.indices[order], self.rows[order], self.keys[order], labels)


def join(first: Found, second: Found) -> Found:
    """Put rows after one another."""
    labels = None
    if first.labels is not None and second.labels is not None:
        labels = np.concatenate([first.labels, second.labels])
    return Found(
        np.concatenate([first.indices, second.indices]),
        np.concatenate([first.rows, second.rows]),
        np.concatenate([first.keys, second.keys]),
        labels,
    )


def _found(block: Block, positions: IndexArray, start: int, keys: FloatArray) -> Found:
    """Rows of a block, dense, with their numbers in the pool."""
    points: Any = block.points[positions]
    rows = points if isinstance(points, np.ndarray) else points.toarray()
    within = positions if block.rows is None else block.rows[positions]
    labels = None if block.labels is None else block.take(positions).labels
    return Found(within.astype(np.int64) + start, rows, keys, labels)


@dataclass(frozen=True, eq=False)
class Request:
    """What the blocks need to know: the separator, what has a label, and where blocks start."""

    starts: IndexArray
    w: FloatArray
    b: float = 0.0
    known: IndexArray = field(default_factory=lambda: np.empty(0, np.int64))  # sorted
    below: float = np.inf
    after: int = -1


def _gaps(block: Block, number: int, request: Request) -> FloatArray:
    """Distance of every row that may be asked for from the boundary, infinite for the others."""
    gaps = np.abs(heights(block.points, request.w, request.b))
    gaps[block.weights == 0.0] = np.inf
    start = int(request.starts[number])
    within = request.known - start
    if block.rows is None:
        within = within[(within >= 0) & (within < len(block))]
    elif len(block):
        within = np.flatnonzero(np.isin(block.rows, within))
    gaps[within] = np.inf
    gaps[gaps >= request.below] = np.inf
    return gaps


def smallest(keys: FloatArray, count: int) -> IndexArray:
    """Return the positions of the smallest finite keys in order, the first of equal ones first.

    Examples
    --------
    >>> smallest(np.array([2.0, 1.0, np.inf, 1.0]), 3)
    array([1, 3, 0])
    """
    if len(keys) > 4 * count:  # a sort of all rows would take longer than the read
        reach = np.partition(keys, count - 1)[count - 1]
        near = np.flatnonzero(keys <= reach)
    else:
        near = np.arange(len(keys))
    near = near[np.isfinite(keys[near])]
    order: IndexArray = near[np.argsort(keys[near], kind="stable")[:count]]
    return order


@dataclass(frozen=True)
class Closest:
    """The rows of a block that are closest to the boundary."""

    count: int

    def __call__(self, block: Block, number: int, request: Request) -> Found:
        """Return them, the closest first."""
        gaps = _gaps(block, number, request)
        chosen = smallest(gaps, self.count)
        return _found(block, chosen, int(request.starts[number]), gaps[chosen])


@dataclass(frozen=True)
class BestOf:
    """The closest rows of two ranges of blocks."""

    count: int

    def __call__(self, first: Found, second: Found) -> Found:
        """Return them, the closest first."""
        both = join(first, second)
        return both.take(smallest(both.keys, self.count))


@dataclass(frozen=True)
class FirstBelow:
    """The first rows of a block, after a place, that are closer than `request.below`."""

    count: int

    def __call__(self, block: Block, number: int, request: Request) -> Found:
        """Return them in their order."""
        gaps = _gaps(block, number, request)
        start = int(request.starts[number])
        within = np.arange(len(block)) if block.rows is None else block.rows
        fits = np.isfinite(gaps) & (within + start > request.after)
        chosen = np.flatnonzero(fits)[: self.count]
        return _found(block, chosen, start, gaps[chosen])


@dataclass(frozen=True, eq=False)
class TakeRequest:
    """Rows to take, sorted by block."""

    starts: IndexArray
    of_block: dict[int, FloatArray]


@dataclass(frozen=True)
class Take:
    """Given rows of a block: by their numbers, or by where a running sum of weights reaches."""

    by_weight: bool

    def __call__(self, block: Block, number: int, wanted: TakeRequest) -> Found:
        """Return them in the order asked for."""
        asked = wanted.of_block.get(number, np.empty(0))
        if self.by_weight:
            edges = np.cumsum(block.weights)
            # The last row with a weight ends where the sum does, whatever the rounding.
            last = int(np.flatnonzero(block.weights)[-1]) if len(asked) else 0
            positions = np.minimum(np.searchsorted(edges, asked, side="right"), last)
        else:
            within = np.arange(len(block)) if block.rows is None else block.rows
            positions = np.searchsorted(within, asked)
            there = positions < len(within)
            there[there] = within[positions[there]] == asked[there]
            positions, asked = positions[there], asked[there]
        return _found(block, positions.astype(np.int64), int(wanted.starts[number]), asked)


_Survey = dict[int, tuple[float, int]]
"""Weight and number of the rows of every block that may be asked for."""


def take_survey(block: Block, number: int, given: object) -> _Survey:
    """Weigh and count the rows of a block that may be asked for."""
    del given
    return {number: (float(block.weights.sum()), int(np.count_nonzero(block.weights)))}


def unite(first: _Survey, second: _Survey) -> _Survey:
    """Put what was found of some blocks together."""
    return {**first, **second}
