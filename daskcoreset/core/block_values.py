"""Values of blocks by their indices, as arrays.

A million blocks are a million entries: a dict of them takes a hundred megabytes, and a second to
pickle; two arrays take sixteen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from daskcoreset.core.typing import AnyArray, IndexArray

V = TypeVar("V")


class BlockValues(Mapping[int, V]):
    """A mapping from the indices of blocks to numbers or rows of numbers.

    Parameters
    ----------
    blocks : array-like of shape (n,), int64
        Increasing.
    values : array-like of shape (n,) or (n, k)

    Examples
    --------
    >>> rows = BlockValues([3, 7], [10, 20])
    >>> rows[7], dict(rows), rows == {3: 10, 7: 20}
    (20, {3: 10, 7: 20}, True)
    """

    def __init__(self, blocks: Any, values: Any) -> None:
        self.blocks: IndexArray = np.asarray(blocks, dtype=np.int64)
        self.array: AnyArray = np.asarray(values)

    def __getitem__(self, block: int) -> V:
        position = int(np.searchsorted(self.blocks, block))
        if position == len(self.blocks) or self.blocks[position] != block:
            raise KeyError(block)
        value: Any = self.array[position]
        return value.item() if self.array.ndim == 1 else value  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[int]:
        return iter(self.blocks.tolist())

    def __len__(self) -> int:
        return len(self.blocks)

    def __repr__(self) -> str:
        return f"BlockValues({self.blocks!r}, {self.array!r})"

    def at(self, blocks: IndexArray) -> AnyArray:
        """Return the values of blocks that have one, in any order and as often as named.

        Examples
        --------
        >>> BlockValues([3, 7], [10, 20]).at(np.array([7, 3, 7]))
        array([20, 10, 20])
        """
        return self.array[np.searchsorted(self.blocks, blocks)]

    def of_blocks(self, first: int, stop: int) -> BlockValues[V]:
        """Return the values of the blocks from `first` to `stop` (exclusive)."""
        part = slice(*np.searchsorted(self.blocks, [first, stop]).tolist())
        return BlockValues(self.blocks[part], self.array[part])


def values_of(values: Mapping[int, Any]) -> AnyArray:
    """Return the values of all blocks, in the order of the blocks.

    Examples
    --------
    >>> values_of({1: 5, 0: 4})
    array([4, 5])
    """
    if isinstance(values, BlockValues):
        return values.array
    return np.array([values[block] for block in sorted(values)])


def merge_values(parts: Sequence[Mapping[int, V]]) -> Mapping[int, V]:
    """Put the values of neighbouring sets of blocks after one another.

    Examples
    --------
    >>> dict(merge_values([{0: 1.5}, {}, {1: 2.5}]))
    {0: 1.5, 1: 2.5}
    """
    parts = [part for part in parts if part]
    if len(parts) < 2:
        return parts[0] if parts else {}
    blocks = [
        part.blocks if isinstance(part, BlockValues) else np.array(sorted(part), dtype=np.int64)
        for part in parts
    ]
    return BlockValues(np.concatenate(blocks), np.concatenate(list(map(values_of, parts))))
