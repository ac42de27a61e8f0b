"""Rows that a read selects, and their numbers in the whole data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self

import numpy as np

from daskcoreset.core.block import Block, concatenate
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Bits of the number of a row within its block.
_WITHIN = 40


def row_keys(block: Block, block_index: int) -> IndexArray:
    """Return a key of every row of a block: distinct, and in the order of the whole data."""
    within = np.arange(len(block)) if block.rows is None else block.rows
    return (block_index << _WITHIN) + within.astype(np.int64)


def row_numbers(keys: IndexArray, starts: dict[int, int]) -> IndexArray:
    """Return the numbers of rows in the whole data, by their keys.

    Parameters
    ----------
    keys : ndarray of shape (r,), int64
    starts : dict of int to int
        Number of the first row of every block, from `BlockResults.offsets`.

    Examples
    --------
    >>> row_numbers(np.array([(1 << 40) + 2, 3]), {0: 0, 1: 10})
    array([12,  3])
    """
    known = np.array(list(starts.items()), dtype=np.int64).reshape(-1, 2)
    places = np.searchsorted(known[:, 0], keys >> _WITHIN)
    return np.asarray(known[places, 1] + (keys & ((1 << _WITHIN) - 1)))


def keys_of(numbers: IndexArray, starts: dict[int, int]) -> IndexArray:
    """Return the keys of rows, by their numbers in the whole data."""
    known = np.array(list(starts.items()), dtype=np.int64).reshape(-1, 2)
    places = np.searchsorted(known[:, 1], numbers, side="right") - 1
    return np.asarray((known[places, 0] << _WITHIN) + numbers - known[places, 1])


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """Rows selected from some blocks.

    A subclass may have further fields with an entry for every row.

    Attributes
    ----------
    block : Block
        The rows, with their labels.
    keys : ndarray of shape (r,), int64
        By `row_keys`.
    values : ndarray of shape (r,), float64
        By which they were selected: the smallest first.
    """

    block: Block
    keys: IndexArray
    values: FloatArray

    @classmethod
    def of(
        cls,
        block: Block,
        block_index: int,
        positions: IndexArray,
        values: FloatArray,
        **further: Any,
    ) -> Self:
        """Select rows of a block, with their values."""
        keys = row_keys(block, block_index)[positions]
        return cls(block.take(positions), keys, values, **further)

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, positions: IndexArray) -> Self:
        """Return some of the rows, in this order."""
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        taken = {name: part[positions] for name, part in parts.items() if name != "block"}
        return type(self)(block=self.block.take(positions), **taken)

    def joined(self, other: Self) -> Self:
        """Return these rows, and then those of other blocks."""
        # An empty block may have labels of another dtype, which would make text of numbers.
        if not len(self) or not len(other):
            return self if len(self) else other
        pairs = {each.name: (getattr(self, each.name), getattr(other, each.name))
                 for each in fields(self)}  # fmt: skip
        blocks = pairs.pop("block")
        joined = {name: np.concatenate(pair) for name, pair in pairs.items()}
        return type(self)(block=concatenate(blocks), **joined)

    def smallest(self, count: int) -> Self:
        """Return the rows of smallest value, in the order they have."""
        return self if len(self) <= count else self.take(smallest(self.values, count))


def smallest(values: FloatArray, count: int) -> IndexArray:
    """Return the positions of the smallest finite values in order, the first of equal ones.

    Examples
    --------
    >>> smallest(np.array([2.0, 1.0, np.inf, 1.0, 3.0]), 3)
    array([0, 1, 3])
    """
    near = np.arange(len(values))
    if len(values) > 4 * count:  # a sort of all rows would take longer than the read
        near = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    near = near[np.isfinite(values[near])]
    return np.sort(near[np.argsort(values[near], kind="stable")[:count]])


def select_rows(
    blocks: RowBlocks,
    score: Callable[[Block, int, Any], FloatArray],
    count: int,
    *,
    broadcast: Any = None,
) -> BlockResults[SelectedRows]:
    """Read all rows once for those of smallest value, the first of equal ones.

    Parameters
    ----------
    blocks : RowBlocks
    score : callable
        ``score(block, block_index, broadcast)`` gives a value for every row of a block. Rows of
        infinite value are not selected. Picklable.
    count : int
        Rows at most.
    broadcast : object, optional
        As in `map_reduce`.

    Returns
    -------
    BlockResults of SelectedRows
        In the order of the data.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> def distance(block, block_index, center):
    ...     return np.abs(block.points[:, 0] - center)
    >>> rows = row_blocks([[0.0], [3.0], [4.0], [9.0]], chunks=3)
    >>> select_rows(rows, distance, 2, broadcast=5.0).value.block.points.tolist()
    [[3.0], [4.0]]
    """
    work = partial(_smallest_of_block, score=score, count=count)
    merge = partial(_smallest_of_both, count=count)
    return map_reduce(blocks, work, merge, broadcast=broadcast)


def _smallest_of_block(
    block: Block,
    block_index: int,
    broadcast: Any,
    *,
    score: Callable[[Block, int, Any], FloatArray],
    count: int,
) -> SelectedRows:
    values = score(block, block_index, broadcast)
    chosen = smallest(values, count)
    return SelectedRows.of(block, block_index, chosen, values[chosen])


def _smallest_of_both(first: SelectedRows, second: SelectedRows, *, count: int) -> SelectedRows:
    return first.joined(second).smallest(count)
