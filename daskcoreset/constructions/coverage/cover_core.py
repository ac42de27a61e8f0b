"""Core points on their way to the root: rows of blocks, dense, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from daskcoreset.core.blocks import Block, concatenate
from daskcoreset.core.tiles import (dense_rows)
from daskcoreset.core.typing import AnyArray, IndexArray

__all__ = ["Core", "join", "pick"]


@dataclass(frozen=True, eq=False)
class Core:
    """Some rows of the data.

    Attributes
    ----------
    rows : Block
        Dense, numbered within the blocks they come from.
    numbers : ndarray of shape (r,), int64
        Numbers of those blocks.
    """

    rows: Block
    numbers: IndexArray

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def points(self) -> AnyArray:
        """The rows, of shape (r, d)."""
        return np.asarray(self.rows.points)

    def take(self, positions: IndexArray) -> Core:
        """Return the rows at `positions`."""
        return Core(self.rows.take(positions), self.numbers[positions])

    def indices(self, offsets: Mapping[int, int]) -> IndexArray:
        """Return the numbers of the rows in the whole data, given the first of every block."""
        starts = np.array([offsets[number] for number in self.numbers.tolist()], dtype=np.int64)
        assert self.rows.rows is not None  # noqa: S101 - `pick` numbers them
        return np.asarray(starts + self.rows.rows)


def pick(block: Block, number: int, positions: IndexArray) -> Core:
    """Take rows out of block `number`, dense."""
    rows = block.take(positions)
    rows = replace(rows, points=dense_rows(rows.points))
    return Core(rows, np.full(len(positions), number, dtype=np.int64))


def join(parts: Sequence[Core]) -> Core:
    """Put core points after one another."""
    if len(parts) == 1:
        return parts[0]
    rows = concatenate([part.rows for part in parts])
    return Core(rows, np.concatenate([part.numbers for part in parts]))
