"""A few rows taken out of blocks, and which of them to keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.blocks import Block, concatenate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daskcoreset.execution.gathering import Gathered
    from daskcoreset.core.typing import FloatArray, IndexArray

__all__ = ["Picked", "joined", "least", "row_numbers"]


@dataclass(frozen=True, eq=False)
class Picked:
    """Rows taken from some blocks.

    Attributes
    ----------
    block : Block
        The rows, numbered within the blocks that they came from.
    numbers : ndarray of shape (r,), int64
        Number of the block of each row.
    signs : ndarray of shape (r,), float64
        +1 for the second class and -1 for the first.
    values : ndarray of shape (r,), float64
        By which rows compete: the smaller, the sooner taken.
    """

    block: Block
    numbers: IndexArray
    signs: FloatArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def take(self, positions: IndexArray) -> Picked:
        """Return some of the rows."""
        return Picked(
            self.block.take(positions),
            self.numbers[positions],
            self.signs[positions],
            self.values[positions],
        )


def joined(parts: Sequence[Picked]) -> Picked:
    """Put rows of neighbouring blocks after one another."""
    if len(parts) == 1:
        return parts[0]
    return Picked(
        _numbered([part.block for part in parts]),
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.signs for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _numbered(blocks: Sequence[Block]) -> Block:
    # An empty block may have labels of another dtype, which would make text of numbers.
    filled = [block for block in blocks if len(block)]
    return concatenate(filled) if filled else blocks[0]


def least(rows: Picked, most: int) -> Picked:
    """Keep the rows of smallest value, the first of equal ones, in the order they had."""
    if len(rows) <= most:
        return rows
    order = np.argsort(rows.values, kind="stable")[:most]
    return rows.take(np.sort(order))


def row_numbers(gathered: Gathered[Any], numbers: IndexArray, positions: IndexArray) -> IndexArray:
    """Numbers, in the whole data, of rows of blocks.

    Parameters
    ----------
    gathered : Gathered
        Of the read that gave the rows.
    numbers, positions : ndarray of shape (r,), int64
        Block of each row, and row within it.

    Returns
    -------
    ndarray of shape (r,), int64

    Examples
    --------
    >>> from daskcoreset.execution.gathering import Gathered
    >>> row_numbers(Gathered(None, {0: 10, 1: 5}), np.array([1, 0]), np.array([2, 3]))
    array([12,  3])
    """
    blocks = np.array(sorted(gathered.sizes), dtype=np.int64)
    sizes = np.array([gathered.sizes[int(block)] for block in blocks], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    found: IndexArray = starts[np.searchsorted(blocks, numbers)] + positions
    return found
