"""Reads of a pool of unlabelled rows: the rows closest to a boundary, and random rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import or_
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.rows import (
    SelectedRows,
    concatenate_rows,
    rows_of_block,
    select_rows,
    smallest,
)
from daskcoreset.constructions.margin.separators import Separator
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cubes import refuse_cube


@dataclass(frozen=True, eq=False)
class PoolQuery:
    """A query for rows without a label, by their distance from a boundary.

    Attributes
    ----------
    starts : ndarray of shape (n_blocks,), int64
        Number of the first row of every block.
    separator : Separator
        Whose boundary it is.
    labelled : ndarray of int64
        Numbers of the rows with a label, sorted.
    below : float
        Rows at this distance or farther do not count.
    after : int
        Rows up to this one do not count.
    """

    starts: IndexArray
    separator: Separator
    labelled: IndexArray
    below: float = np.inf
    after: int = -1


def _unlabelled_rows(
    block: Block, block_index: int, query: PoolQuery, *, count: int, closest: bool
) -> SelectedRows:
    """Take usable rows of a block without a label: the closest to the boundary, or the first."""
    start = int(query.starts[block_index])
    numbers = rows_of_block(block, start)
    gaps = np.abs(query.separator(block.points))
    gaps[(block.weights == 0.0) | np.isin(numbers, query.labelled)] = np.inf
    gaps[(gaps >= query.below) | (numbers <= query.after)] = np.inf
    chosen = smallest(gaps, count) if closest else np.flatnonzero(np.isfinite(gaps))[:count]
    return select_rows(block, chosen, gaps[chosen], start)


def _random_rows(
    block: Block, block_index: int, query: tuple[IndexArray, IndexArray, int, int], *, count: int
) -> SelectedRows:
    """Take usable rows without a label by exponential keys: the smallest are drawn by weight."""
    starts, labelled, seed, fold = query
    start, keys = int(starts[block_index]), np.full(len(block), np.inf)
    free = (block.weights > 0.0) & ~np.isin(rows_of_block(block, start), labelled)
    coins = stream(seed, Stage.COVER, block_index, fold).standard_exponential(len(block))
    np.divide(coins, block.weights, out=keys, where=free)
    chosen = smallest(keys, count)
    return select_rows(block, chosen, keys[chosen], start)


def _close_and_random(
    block: Block, block_index: int, query: tuple[PoolQuery, Any], *, counts: tuple[int, int]
) -> tuple[SelectedRows, SelectedRows]:
    close = _unlabelled_rows(block, block_index, query[0], count=counts[0], closest=True)
    return close, _random_rows(block, block_index, query[1], count=counts[1])


def _merge_both(
    first: tuple[SelectedRows, SelectedRows],
    second: tuple[SelectedRows, SelectedRows],
    *,
    counts: tuple[int, int],
) -> tuple[SelectedRows, SelectedRows]:
    close, drawn = (
        _merge_closest(a, b, count=count) for a, b, count in zip(first, second, counts, strict=True)
    )
    return close, drawn


def _merge_closest(first: SelectedRows, second: SelectedRows, *, count: int) -> SelectedRows:
    return concatenate_rows(first, second).smallest(count)


def _rows_by_number(
    block: Block, block_index: int, request: tuple[IndexArray, IndexArray]
) -> SelectedRows:
    """Take the rows of a block with some numbers, in the order of the block."""
    starts, indices = request
    start = int(starts[block_index])
    positions = np.flatnonzero(np.isin(rows_of_block(block, start), indices))
    return select_rows(block, positions, np.zeros(len(positions)), start)


def _rows_by_weight(
    block: Block, block_index: int, request: tuple[IndexArray, dict[int, FloatArray]]
) -> SelectedRows:
    """Take the rows of a block at some values of the running sum of weights, in their order."""
    starts, values_of_blocks = request
    values = values_of_blocks[block_index]
    # The last row with a weight ends where the sum does, whatever the rounding.
    last = int(np.flatnonzero(block.weights)[-1])
    positions = np.minimum(np.searchsorted(np.cumsum(block.weights), values, side="right"), last)
    return select_rows(block, positions, values, int(starts[block_index]))


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

    def closest(self, separator: Separator, labelled: IndexArray, count: int) -> SelectedRows:
        """Return the `count` rows of least distance to the boundary; one read.

        Parameters
        ----------
        separator : Separator
        labelled : ndarray of int64
            Numbers of rows to leave out, sorted.
        count : int

        Returns
        -------
        SelectedRows
            The closest first, by their distances; rows at one distance in the order of the pool.
        """
        query = PoolQuery(self.starts, separator, labelled)
        work = partial(_unlabelled_rows, count=count, closest=True)
        merge = partial(_merge_closest, count=count)
        closest: SelectedRows = map_reduce(self.blocks, work, merge, broadcast=query).value
        return closest.in_order()

    def random(self, labelled: IndexArray, count: int, *, seed: int, fold: int) -> SelectedRows:
        """Return `count` random rows without a label, drawn by weight, none twice; one read.

        Parameters
        ----------
        labelled : ndarray of int64
            Numbers of rows to leave out, sorted.
        count : int
        seed, fold : int
            They determine the rows.

        Returns
        -------
        SelectedRows
            In random order.
        """
        query = (self.starts, labelled, seed, fold)
        work = partial(_random_rows, count=count)
        merge = partial(_merge_closest, count=count)
        drawn: SelectedRows = map_reduce(self.blocks, work, merge, broadcast=query).value
        return drawn.in_order()

    def closest_and_random(
        self, separator: Separator, labelled: IndexArray, count: int, n_random: int, **draw: int
    ) -> tuple[SelectedRows, SelectedRows]:
        """Return what `closest` and `random` do, from one read."""
        query = PoolQuery(self.starts, separator, labelled)
        request = (query, (self.starts, labelled, draw["seed"], draw["fold"]))
        counts = (count, n_random)
        work, merge = partial(_close_and_random, counts=counts), partial(_merge_both, counts=counts)
        close, drawn = map_reduce(self.blocks, work, merge, broadcast=request).value
        return close.in_order(), drawn.in_order()

    def first_below(
        self, separator: Separator, labelled: IndexArray, count: int, *, below: float, after: int
    ) -> SelectedRows | None:
        """Return the first rows closer than `below` that follow row `after`, cyclically.

        Blocks are read one at a time until one holds such a row; None if none does. The rows
        up to `after` come last.
        """
        starts, n_blocks = self.starts, len(self.sizes)
        first = int(np.searchsorted(starts, after, side="right")) - 1 if after >= 0 else 0
        turns = [(first + i) % n_blocks for i in range(n_blocks)]
        # At the end the first block again, for its rows up to `after`.
        work = partial(_unlabelled_rows, count=count, closest=False)
        for block_index, last in [(first, after), *((turn, -1) for turn in [*turns[1:], first])]:
            if not self.weights[block_index]:
                continue
            query = PoolQuery(starts, separator, labelled, below, last)
            blocks = self.blocks.select([block_index])
            rows = map_reduce(blocks, work, concatenate_rows, broadcast=query).value
            if len(rows):
                return rows
        return None

    def fetch(self, indices: IndexArray) -> SelectedRows:
        """Return rows by their numbers, reading only the blocks that hold them.

        Rows that the blocks leave out, such as those with NaN, are missing from what is
        returned; the others come in the order asked for.
        """
        indices = np.asarray(indices, dtype=np.int64)
        block_indices = np.unique(np.searchsorted(self.starts, indices, side="right") - 1)
        blocks, request = self.blocks.select(block_indices.tolist()), (self.starts, indices)
        rows = map_reduce(blocks, _rows_by_number, concatenate_rows, broadcast=request).value
        positions = {int(index): i for i, index in enumerate(rows.indices)}
        present = [positions[i] for i in indices.tolist() if i in positions]
        return rows.take(np.array(present, dtype=np.int64))

    def draw(self, rng: np.random.Generator, count: int) -> SelectedRows:
        """Draw rows in proportion to their weights, each on its own; reads only their blocks."""
        edges = np.cumsum(self.weights)
        drawn = rng.random(count) * edges[-1]
        last = int(np.flatnonzero(self.weights)[-1])
        block_indices = np.minimum(np.searchsorted(edges, drawn, side="right"), last)
        within = drawn - (edges[block_indices] - self.weights[block_indices])
        values = {int(i): within[block_indices == i] for i in np.unique(block_indices)}
        blocks, request = self.blocks.select(sorted(values)), (self.starts, values)
        rows = map_reduce(blocks, _rows_by_weight, concatenate_rows, broadcast=request).value
        # Rows come in the order of their blocks; this is the order in which they were drawn.
        return rows.take(np.argsort(np.argsort(block_indices, kind="stable")))


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
    refuse_cube("active learning", X)
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
