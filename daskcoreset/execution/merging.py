"""The tree that merges the values of blocks.

Neighbours are merged `split_every` at a time, level by level, until no more than so many are left,
which the root merges. The shape follows from the number of blocks alone, so that a graph, several
graphs one after another and a loop merge the same groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


def levels_below_root(n_parts: int, split_every: int) -> int:
    """Return how many times neighbours are merged before the root merges what is left.

    Examples
    --------
    >>> [levels_below_root(n_parts, 16) for n_parts in (1, 16, 17, 256, 257)]
    [0, 0, 1, 1, 2]
    """
    levels = 0
    while n_parts > split_every:
        n_parts, levels = -(-n_parts // split_every), levels + 1
    return levels


class Merger(Generic[T]):
    """Parts that arrive in order, merged as soon as a group is whole.

    Parameters
    ----------
    merge : callable
        ``merge(parts)`` of two or more neighbours.
    split_every : int
    levels : int
        How many times neighbours are merged; what is left after that is in `parts`.

    Examples
    --------
    >>> merger = Merger("".join, 2, levels=1)
    >>> for letter in "abcde":
    ...     merger.add(letter)
    >>> merger.parts()
    ['ab', 'cd', 'e']
    """

    def __init__(self, merge: Callable[[Sequence[T]], T], split_every: int, levels: int) -> None:
        self._merge, self._split_every = merge, split_every
        # Fewer than `split_every` parts wait in each level but the last.
        self._waiting: list[list[T]] = [[] for _ in range(levels + 1)]

    def add(self, part: T, level: int = 0) -> None:
        """Add the next part."""
        group = self._waiting[level]
        group.append(part)
        if level + 1 < len(self._waiting) and len(group) == self._split_every:
            self._waiting[level] = []
            self.add(self._merge(group), level + 1)

    def parts(self) -> list[T]:
        """Merge the groups that are not whole, and return what is left, in order."""
        for level in range(len(self._waiting) - 1):
            group, self._waiting[level] = self._waiting[level], []
            if group:
                self.add(group[0] if len(group) == 1 else self._merge(group), level + 1)
        return self._waiting[-1]
