"""Reads of a pool of unlabelled rows: the rows closest to a boundary, and random rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import or_
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.core_set import Separator
from daskcoreset.constructions.margin.rows import (
    SelectedRows,
    concatenate_rows,
    rows_of_block,
    select_rows,
    smallest,
)
from daskcoreset.core.block import Block
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cubes import refuse_cube


def _closest_rows(
    block: Block, block_index: int, query: tuple[IndexArray, Separator, IndexArray], *, count: int
) -> SelectedRows:
    """Take usable rows of a block without a label that are closest to the boundary."""
    starts, separator, labelled = query
    start = int(starts[block_index])
    gaps = np.abs(separator(block.points))
    gaps[(block.weights == 0.0) | np.isin(rows_of_block(block, start), labelled)] = np.inf
    chosen = smallest(gaps, count)
    return select_rows(block, chosen, gaps[chosen], start)


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
        Weight of the usable rows of every block. Rows without weight are never asked for.
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
        """Return the `count` rows of least distance to the boundary. One read.

        Parameters
        ----------
        separator : Separator
        labelled : ndarray of int64
            Numbers of rows to leave out, sorted.
        count : int

        Returns
        -------
        SelectedRows
            The closest first, by their distances. Rows at one distance in the order of the pool.
        """
        query = (self.starts, separator, labelled)
        work, merge = partial(_closest_rows, count=count), partial(_merge_closest, count=count)
        closest: SelectedRows = map_reduce(self.blocks, work, merge, broadcast=query).value
        return closest.in_order()

    def fetch(self, indices: IndexArray) -> SelectedRows:
        """Return rows by their numbers, reading only the blocks that hold them.

        Rows that the blocks leave out, such as those with NaN, are missing from what is
        returned. The others come in the order asked for.
        """
        indices = np.asarray(indices, dtype=np.int64)
        block_indices = np.unique(np.searchsorted(self.starts, indices, side="right") - 1)
        blocks, request = self.blocks.select(block_indices.tolist()), (self.starts, indices)
        rows = map_reduce(blocks, _rows_by_number, concatenate_rows, broadcast=request).value
        positions = {int(index): i for i, index in enumerate(rows.indices)}
        present = [positions[i] for i in indices.tolist() if i in positions]
        return rows.take(np.array(present, dtype=np.int64))

    def draw(self, rng: np.random.Generator, count: int) -> SelectedRows:
        """Draw rows in proportion to their weights, each on its own. Reads only their blocks."""
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
    usable = [read.value[index] for index in blocks.indices]
    weights = np.array([weight for weight, _ in usable])
    if not weights.sum():
        raise InvalidInputError(
            "no row of X can be asked for: all are invalid or have sample_weight zero",
            remedy="pass at least one usable row",
        )
    sizes = np.array([read.sizes[index] for index in blocks.indices], dtype=np.int64)
    return Pool(blocks, sizes, weights, sum(n_rows for _, n_rows in usable))
