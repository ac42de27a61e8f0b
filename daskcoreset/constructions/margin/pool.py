"""Reads of a pool of unlabelled rows: the rows closest to a boundary, and random rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.execution.fold import map_reduce
from daskcoreset.inputs.blocks import row_blocks

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = [
    "BestOf",
    "Closest",
    "FirstWithinMargin",
    "Pool",
    "PoolQuery",
    "PoolRows",
    "TakeRequest",
    "TakeRows",
    "decision_values",
    "join",
    "open_pool",
    "smallest",
    "take_survey",
    "unite",
]


def decision_values(points: Points, w: FloatArray, b: float) -> FloatArray:
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
    >>> decision_values(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]), -1.0)
    array([10.])
    """
    return inner_products(points, w[None, :])[:, 0] + b


@dataclass(frozen=True, eq=False)
class PoolRows:
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

    def take(self, order: Any) -> PoolRows:
        """Return some of the rows, in this order."""
        labels = None if self.labels is None else self.labels[order]
        return PoolRows(self.indices[order], self.rows[order], self.keys[order], labels)


def join(first: PoolRows, second: PoolRows) -> PoolRows:
    """Put rows after one another."""
    labels = None
    if first.labels is not None and second.labels is not None:
        labels = np.concatenate([first.labels, second.labels])
    return PoolRows(
        np.concatenate([first.indices, second.indices]),
        np.concatenate([first.rows, second.rows]),
        np.concatenate([first.keys, second.keys]),
        labels,
    )


def _found(block: Block, positions: IndexArray, start: int, keys: FloatArray) -> PoolRows:
    """Rows of a block, dense, with their numbers in the pool."""
    points: Any = block.points[positions]
    rows = points if isinstance(points, np.ndarray) else points.toarray()
    within = positions if block.rows is None else block.rows[positions]
    labels = None if block.labels is None else block.take(positions).labels
    return PoolRows(within.astype(np.int64) + start, rows, keys, labels)


@dataclass(frozen=True, eq=False)
class PoolQuery:
    """What the blocks need to know: the separator, what has a label, and where blocks start."""

    starts: IndexArray
    w: FloatArray
    b: float = 0.0
    known: IndexArray = field(default_factory=lambda: np.empty(0, np.int64))  # sorted
    below: float = np.inf
    after: int = -1


def _gaps(block: Block, number: int, request: PoolQuery) -> FloatArray:
    """Distance of every row that may be asked for from the boundary, infinite for the others."""
    gaps = np.abs(decision_values(block.points, request.w, request.b))
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

    def __call__(self, block: Block, number: int, request: PoolQuery) -> PoolRows:
        """Return them, the closest first."""
        gaps = _gaps(block, number, request)
        chosen = smallest(gaps, self.count)
        return _found(block, chosen, int(request.starts[number]), gaps[chosen])


@dataclass(frozen=True)
class BestOf:
    """The closest rows of two ranges of blocks."""

    count: int

    def __call__(self, first: PoolRows, second: PoolRows) -> PoolRows:
        """Return them, the closest first."""
        both = join(first, second)
        return both.take(smallest(both.keys, self.count))


@dataclass(frozen=True)
class FirstWithinMargin:
    """The first rows of a block, after a place, that are closer than `request.below`."""

    count: int

    def __call__(self, block: Block, number: int, request: PoolQuery) -> PoolRows:
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
class TakeRows:
    """Given rows of a block: by their numbers, or by where a running sum of weights reaches."""

    by_weight: bool

    def __call__(self, block: Block, number: int, wanted: TakeRequest) -> PoolRows:
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


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows out of core, with what one read has told about them.

    Attributes
    ----------
    blocks : RowBlocks
    sizes : ndarray of shape (n_blocks,), int64
        Rows of every block as read.
    weights : ndarray of shape (n_blocks,), float64
        Weight of the usable rows of every block; rows without weight are never asked for.
    n_usable : int
        Rows that may be asked for: finite, and with a weight.
    """

    blocks: RowBlocks
    sizes: IndexArray
    weights: FloatArray
    n_usable: int

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return int(self.sizes.sum())

    @property
    def n_features(self) -> int:
        """Columns."""
        return self.blocks.rules.n_features

    @property
    def starts(self) -> IndexArray:
        """Number of the first row of every block."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    def closest(self, w: FloatArray, b: float, known: IndexArray, count: int) -> PoolRows:
        """Return the `count` rows of least distance to the boundary; one read.

        Parameters
        ----------
        w : ndarray of shape (d,), float64
        b : float
        known : ndarray of int64
            Numbers of rows to leave out, sorted.
        count : int

        Returns
        -------
        Found
            The closest first; rows at one distance in the order of the pool.
        """
        request = PoolQuery(self.starts, w, b, known)
        return map_reduce(self.blocks, Closest(count), BestOf(count), given=request).value

    def first_below(
        self, w: FloatArray, b: float, known: IndexArray, count: int, *, below: float, after: int
    ) -> PoolRows | None:
        """Return the first rows closer than `below` that follow row `after`, going round once.

        Blocks are read one at a time until one holds such a row; None if none does. The rows
        up to `after` come last.
        """
        starts, n_blocks = self.starts, len(self.sizes)
        first = int(np.searchsorted(starts, after, side="right")) - 1 if after >= 0 else 0
        turns = [(first + i) % n_blocks for i in range(n_blocks)]
        # At the end the first block again, for its rows up to `after`.
        for number, beyond in [(first, after), *((turn, -1) for turn in [*turns[1:], first])]:
            if not self.weights[number]:
                continue
            request = PoolQuery(starts, w, b, known, below, beyond)
            found = map_reduce(
                self.blocks.select([number]), FirstWithinMargin(count), join, given=request
            ).value
            if len(found.indices):
                return found
        return None

    def fetch(self, indices: IndexArray) -> PoolRows:
        """Return rows by their numbers, reading only the blocks that hold them.

        Rows that the blocks leave out, such as those with NaN, are missing from what is
        returned; the others come in the order asked for.
        """
        indices = np.asarray(indices, dtype=np.int64)
        numbers = np.searchsorted(self.starts, indices, side="right") - 1
        found = self._take(numbers, indices - self.starts[numbers], by_weight=False)
        where = {int(index): i for i, index in enumerate(found.indices)}
        return found.take([where[i] for i in indices.tolist() if i in where])

    def draw(self, rng: np.random.Generator, count: int) -> PoolRows:
        """Draw rows in proportion to their weights, each on its own; reads only their blocks."""
        edges = np.cumsum(self.weights)
        at = rng.random(count) * edges[-1]
        numbers = np.searchsorted(edges, at, side="right")
        last = int(np.flatnonzero(self.weights)[-1])
        numbers = np.minimum(numbers, last)
        within = at - (edges[numbers] - self.weights[numbers])
        found = self._take(numbers, within, by_weight=True)
        order = np.lexsort((np.arange(count), numbers))
        back = np.empty(count, dtype=np.int64)
        back[order] = np.arange(count)
        return found.take(back)

    def _take(self, numbers: IndexArray, values: Any, *, by_weight: bool) -> PoolRows:
        of_block: dict[int, FloatArray] = {
            int(number): np.asarray(values[numbers == number], dtype=np.float64)
            for number in np.unique(numbers)
        }
        wanted = TakeRequest(self.starts, of_block)
        blocks = self.blocks.select(sorted(of_block))
        return map_reduce(blocks, TakeRows(by_weight), join, given=wanted).value


def open_pool(X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Pool:
    """Open data and read it once: rows and weight of every block, bad rows found.

    Parameters
    ----------
    X, y, sample_weight, **options
        As in `daskcoreset.inputs.blocks.row_blocks`.

    Returns
    -------
    Pool

    Raises
    ------
    InvalidInputError, InvalidTypeError
        As `daskcoreset.inputs.blocks.row_blocks`, or if no row has a weight.
    """
    blocks = row_blocks(X, y, sample_weight, **options)
    found = map_reduce(blocks, take_survey, unite)
    numbers = [spec.number for spec in blocks.specs]
    weights = np.array([found.value[number][0] for number in numbers])
    n_usable = sum(found.value[number][1] for number in numbers)
    if not weights.sum():
        raise InvalidInputError(
            "no row of X can be asked for: all are invalid or have sample_weight zero; pass at "
            "least one usable row."
        )
    sizes = np.array([found.sizes[number] for number in numbers], dtype=np.int64)
    return Pool(blocks, sizes, weights, n_usable)
