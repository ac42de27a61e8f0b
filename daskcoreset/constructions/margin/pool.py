"""Reads of a pool of unlabelled rows: those closest to a boundary, random ones, some by number.

The keys of the rows that they return are their numbers in the pool.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import or_
from typing import Any

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.execution.select import (
    SelectedRows,
    keys_of,
    row_keys,
    row_numbers,
    select_rows,
)
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cubes import refuse_cube


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows out of core, with the size and weight of every block.

    Attributes
    ----------
    blocks : RowBlocks
    starts : dict of int to int
        Number of the first row of every block.
    n_rows : int
        Rows in all.
    weights : ndarray of shape (n_blocks,), float64
        Weight of the usable rows of every block. Rows without weight are never asked for.
    n_usable : int
        Rows that may be asked for: finite, and with a weight.
    """

    blocks: RowBlocks
    starts: dict[int, int]
    n_rows: int
    weights: FloatArray
    n_usable: int

    def closest(
        self, w: FloatArray, intercept: float, labelled: IndexArray, count: int
    ) -> SelectedRows:
        """Return the `count` rows of least distance to a hyperplane. One read.

        Parameters
        ----------
        w : ndarray of shape (d,), float64
        intercept : float
        labelled : ndarray of int64
            Numbers of rows to leave out.
        count : int

        Returns
        -------
        SelectedRows
            The closest first. Rows at one distance in the order of the pool.
        """
        query = w, intercept, keys_of(labelled, self.starts)
        rows = select_rows(self.blocks, _distances, count, broadcast=query).value
        return self._numbered(rows.take(np.argsort(rows.values, kind="stable")))

    def fetch(self, indices: IndexArray) -> SelectedRows:
        """Return rows by their numbers, reading only the blocks that hold them.

        Rows that the blocks leave out, such as those with NaN, are missing from what is
        returned. The others come in the order asked for.
        """
        keys = keys_of(np.asarray(indices, dtype=np.int64), self.starts)
        firsts = np.array(list(self.starts.values()))
        places = np.unique(np.searchsorted(firsts, indices, side="right") - 1)
        rows = self._read(places, _rows_by_key, keys)
        positions = {int(key): i for i, key in enumerate(rows.keys)}
        present = [positions[key] for key in keys.tolist() if key in positions]
        return self._numbered(rows.take(np.array(present, dtype=np.int64)))

    def draw(self, rng: np.random.Generator, count: int) -> SelectedRows:
        """Draw rows in proportion to their weights, each on its own. Reads only their blocks."""
        edges = np.cumsum(self.weights)
        drawn = rng.random(count) * edges[-1]
        last = int(np.flatnonzero(self.weights)[-1])
        places = np.minimum(np.searchsorted(edges, drawn, side="right"), last)
        within = drawn - (edges[places] - self.weights[places])
        values = {self.blocks.indices[i]: within[places == i] for i in np.unique(places)}
        rows = self._read(np.unique(places), _rows_by_weight, values)
        # Rows come in the order of their blocks; this is the order in which they were drawn.
        return self._numbered(rows.take(np.argsort(np.argsort(places, kind="stable"))))

    def _read(self, places: IndexArray, work: Any, request: Any) -> SelectedRows:
        blocks = self.blocks.select(places.tolist())
        read = map_reduce(blocks, work, SelectedRows.joined, broadcast=request)
        rows: SelectedRows = read.value
        return rows

    def _numbered(self, rows: SelectedRows) -> SelectedRows:
        return replace(rows, keys=row_numbers(rows.keys, self.starts))


def _distances(
    block: Block, block_index: int, query: tuple[FloatArray, float, IndexArray]
) -> FloatArray:
    w, intercept, labelled = query
    gaps = np.abs(inner_products(block.points, w[None])[:, 0] + intercept)
    gaps[(block.weights == 0.0) | np.isin(row_keys(block, block_index), labelled)] = np.inf
    return gaps


def _rows_by_key(block: Block, block_index: int, keys: IndexArray) -> SelectedRows:
    """Take the rows of a block with some keys, in the order of the block."""
    positions = np.flatnonzero(np.isin(row_keys(block, block_index), keys))
    return SelectedRows.of(block, block_index, positions, np.zeros(len(positions)))


def _rows_by_weight(
    block: Block, block_index: int, values_of_blocks: dict[int, FloatArray]
) -> SelectedRows:
    """Take the rows of a block at some values of the running sum of weights, in their order."""
    values = values_of_blocks[block_index]
    # The last row with a weight ends where the sum does, whatever the rounding.
    last = int(np.flatnonzero(block.weights)[-1])
    positions = np.minimum(np.searchsorted(np.cumsum(block.weights), values, side="right"), last)
    return SelectedRows.of(block, block_index, positions, values)


def _weigh(block: Block, block_index: int, _: object) -> dict[int, tuple[float, int]]:
    """Weight and number of the usable rows of a block."""
    return {block_index: (float(block.weights.sum()), int(np.count_nonzero(block.weights)))}


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
    n_usable = sum(n_rows for _, n_rows in usable)
    return Pool(blocks, read.offsets(), read.n_rows, weights, n_usable)
