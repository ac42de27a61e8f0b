"""Reads of a pool of unlabelled rows: the rows closest to a boundary, and random rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import row_blocks

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks


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
        The values by which they were selected.
    labels : ndarray of shape (q,) or None
        None where the data have no labels.
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


def _pool_rows(block: Block, positions: IndexArray, start: int, keys: FloatArray) -> PoolRows:
    """Rows of a block, dense, with their numbers in the pool."""
    points: Any = block.points[positions]
    rows = points if isinstance(points, np.ndarray) else points.toarray()
    within = positions if block.rows is None else block.rows[positions]
    labels = None if block.labels is None else block.take(positions).labels
    return PoolRows(within.astype(np.int64) + start, rows, keys, labels)


@dataclass(frozen=True, eq=False)
class PoolQuery:
    """A query for rows without a label, by their distance from a boundary.

    Attributes
    ----------
    starts : ndarray of shape (n_blocks,), int64
        Number of the first row of every block.
    w, b
        The boundary.
    known : ndarray of int64
        Numbers of the rows with a label, sorted.
    below : float
        Rows at this distance or farther do not count.
    after : int
        Rows up to this one do not count where the first ones are looked for.
    """

    starts: IndexArray
    w: FloatArray
    b: float
    known: IndexArray
    below: float = np.inf
    after: int = -1


def _gaps(block: Block, block_index: int, query: PoolQuery) -> FloatArray:
    """Distance of every usable row without a label from the boundary; infinite for others."""
    gaps = np.abs(decision_values(block.points, query.w, query.b))
    gaps[block.weights == 0.0] = np.inf
    within = query.known - int(query.starts[block_index])
    if block.rows is None:
        within = within[(within >= 0) & (within < len(block))]
    elif len(block):
        within = np.flatnonzero(np.isin(block.rows, within))
    gaps[within] = np.inf
    gaps[gaps >= query.below] = np.inf
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


def _closest_rows(block: Block, block_index: int, query: PoolQuery, *, count: int) -> PoolRows:
    """Rows of a block that are closest to the boundary, the closest first."""
    gaps = _gaps(block, block_index, query)
    chosen = smallest(gaps, count)
    return _pool_rows(block, chosen, int(query.starts[block_index]), gaps[chosen])


def _merge_closest(first: PoolRows, second: PoolRows, *, count: int) -> PoolRows:
    both = join(first, second)
    return both.take(smallest(both.keys, count))


def _first_within_margin(
    block: Block, block_index: int, query: PoolQuery, *, count: int
) -> PoolRows:
    """First rows of a block that follow row `query.after` and are closer than `query.below`."""
    gaps = _gaps(block, block_index, query)
    start = int(query.starts[block_index])
    within = np.arange(len(block)) if block.rows is None else block.rows
    fits = np.isfinite(gaps) & (within + start > query.after)
    chosen = np.flatnonzero(fits)[:count]
    return _pool_rows(block, chosen, start, gaps[chosen])


@dataclass(frozen=True, eq=False)
class _TakeRequest:
    """Rows to take, by block: positions, or values of the running sum of weights."""

    starts: IndexArray
    values: dict[int, FloatArray]


def _take_rows(
    block: Block, block_index: int, request: _TakeRequest, *, by_weight: bool
) -> PoolRows:
    """Take the requested rows of a block, in the order of the request."""
    values = request.values.get(block_index, np.empty(0))
    if by_weight:
        edges = np.cumsum(block.weights)
        # The last row with a weight ends where the sum does, whatever the rounding.
        last = int(np.flatnonzero(block.weights)[-1]) if len(values) else 0
        positions = np.minimum(np.searchsorted(edges, values, side="right"), last)
    else:
        within = np.arange(len(block)) if block.rows is None else block.rows
        positions = np.searchsorted(within, values)
        present = positions < len(within)
        present[present] = within[positions[present]] == values[present]
        positions, values = positions[present], values[present]
    start = int(request.starts[block_index])
    return _pool_rows(block, positions.astype(np.int64), start, values)


def _weigh(block: Block, block_index: int, _: object) -> dict[int, tuple[float, int]]:
    """Weight and number of the usable rows of a block."""
    return {block_index: (float(block.weights.sum()), int(np.count_nonzero(block.weights)))}


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows out of core, with the size and weight of every block.

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
        return self.blocks.schema.n_features

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
        PoolRows
            The closest first; rows at one distance in the order of the pool.
        """
        query = PoolQuery(self.starts, w, b, known)
        work = partial(_closest_rows, count=count)
        merge = partial(_merge_closest, count=count)
        closest: PoolRows = map_reduce(self.blocks, work, merge, broadcast=query).value
        return closest

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
        work = partial(_first_within_margin, count=count)
        for block_index, last in [(first, after), *((turn, -1) for turn in [*turns[1:], first])]:
            if not self.weights[block_index]:
                continue
            query = PoolQuery(starts, w, b, known, below, last)
            rows = map_reduce(self.blocks.select([block_index]), work, join, broadcast=query).value
            if len(rows.indices):
                return rows
        return None

    def fetch(self, indices: IndexArray) -> PoolRows:
        """Return rows by their numbers, reading only the blocks that hold them.

        Rows that the blocks leave out, such as those with NaN, are missing from what is
        returned; the others come in the order asked for.
        """
        indices = np.asarray(indices, dtype=np.int64)
        block_indices = np.searchsorted(self.starts, indices, side="right") - 1
        rows = self._take(block_indices, indices - self.starts[block_indices], by_weight=False)
        positions = {int(index): i for i, index in enumerate(rows.indices)}
        return rows.take([positions[i] for i in indices.tolist() if i in positions])

    def draw(self, rng: np.random.Generator, count: int) -> PoolRows:
        """Draw rows in proportion to their weights, each on its own; reads only their blocks."""
        edges = np.cumsum(self.weights)
        drawn = rng.random(count) * edges[-1]
        last = int(np.flatnonzero(self.weights)[-1])
        block_indices = np.minimum(np.searchsorted(edges, drawn, side="right"), last)
        within = drawn - (edges[block_indices] - self.weights[block_indices])
        rows = self._take(block_indices, within, by_weight=True)
        # Rows come in the order of their blocks; this is the order in which they were drawn.
        return rows.take(np.argsort(np.argsort(block_indices, kind="stable")))

    def _take(self, block_indices: IndexArray, values: Any, *, by_weight: bool) -> PoolRows:
        of_block: dict[int, FloatArray] = {
            int(i): np.asarray(values[block_indices == i], dtype=np.float64)
            for i in np.unique(block_indices)
        }
        request = _TakeRequest(self.starts, of_block)
        work = partial(_take_rows, by_weight=by_weight)
        blocks = self.blocks.select(sorted(of_block))
        return map_reduce(blocks, work, join, broadcast=request).value


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
    read = map_reduce(blocks, _weigh, or_)
    usable = [read.value[spec.block_index] for spec in blocks.specs]
    weights = np.array([weight for weight, _ in usable])
    if not weights.sum():
        raise InvalidInputError(
            "no row of X can be asked for: all are invalid or have sample_weight zero; pass at "
            "least one usable row."
        )
    sizes = np.array([read.sizes[spec.block_index] for spec in blocks.specs], dtype=np.int64)
    return Pool(blocks, sizes, weights, sum(n_rows for _, n_rows in usable))
