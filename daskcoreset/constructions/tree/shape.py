r"""The shape of a stored tree: which nodes stand above which leaves.

The shape is a function of the names of the leaves in their order, however they came together. A
node is named after all that is below it, so that a name identifies its contents and addresses its
random numbers. A change computes the nodes whose names were not there before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TypeAlias

# Leaves below a boundary of the next level, on average; larger groups change more nodes at a time,
# and smaller ones make the tree deeper.
_GROUP_SIZE = 16

# Keys and nodes whose hashes are kept, so that a change computes those of what is new.
_CACHED = 2**16


@dataclass(frozen=True)
class Part:
    """A leaf, or a node above two parts.

    Attributes
    ----------
    name : str
        The given name of a leaf, or a digest of the names below a node.
    n_leaves, depth : int
        Leaves below, and nodes on the longest path to one.
    below : tuple of Part
        None or two.
    """

    name: str
    n_leaves: int = field(default=1, compare=False)
    depth: int = field(default=0, compare=False)
    below: tuple[Part, ...] = field(default=(), compare=False)

    def __iter__(self) -> Iterator[Part]:
        """Go through the part and all below it: each node comes between its two parts."""
        left, right = self.below or ((), ())
        yield from left
        yield self
        yield from right

    def new(self, known: Container[str]) -> Iterator[Part]:
        """Go through the nodes whose names are not known, those below first."""
        if self.below and self.name not in known:
            for part in self.below:
                yield from part.new(known)
            yield self


# A part, and its first leaf.
Placed: TypeAlias = tuple[Part, int]


def digest_of(*content: str | bytes, size: int = 16) -> str:
    """Return the digest of bytes and texts, which may be names of files that are not Unicode."""
    parts = (x if isinstance(x, bytes) else x.encode(errors="surrogatepass") for x in content)
    return hashlib.blake2b(b" ".join(parts), digest_size=size).hexdigest()


@lru_cache(_CACHED)
def level_of(key: str) -> int:
    """Return the number of levels at which a leaf begins a group, by a hash of its key."""
    number, level = int(digest_of(key, size=8), 16), 0
    while number and not number % _GROUP_SIZE:
        number, level = number // _GROUP_SIZE, level + 1
    return level


def groups(levels: Sequence[int]) -> Iterator[list[slice]]:
    """Go up from the leaves, and yield which neighbours form the groups of each level.

    Examples
    --------
    >>> list(groups([0, 0, 1, 0, 0]))
    [[slice(0, 2, None), slice(2, 5, None)], [slice(0, 2, None)]]
    """
    level = 0
    while len(levels) > 1:
        level += 1
        starts = [i for i, own in enumerate(levels) if not i or own >= level]
        yield [slice(*ends) for ends in pairwise([*starts, len(levels)])]
        levels = [levels[i] for i in starts]


def shape_of(levels: Sequence[int], names: Iterable[str]) -> Part:
    r"""Return the tree over leaves that come and go anywhere.

    A leaf begins a new group at each level with the probability 1/16. So the shape is a function of
    the keys in their order, however they came together, and a leaf that comes, goes or changes
    touches the nodes of its own groups alone: some :math:`\log_2 n` and as many as a group has.

    Parameters
    ----------
    levels : sequence of int
        By `level_of` for every leaf. At least one.
    names : iterable of str
        Names of the leaves, all different.

    Examples
    --------
    >>> days = [f"day-{i}" for i in range(100)]
    >>> before, after = (shape_of([*map(level_of, x)], x) for x in (days, days[:50] + days[51:]))
    >>> len({part.name for part in after} - {part.name for part in before}) < 25
    True
    """
    parts = [Part(name) for name in names]
    for slices in groups(levels):
        parts = [_united(*parts[members]) for members in slices]
    return parts[0]


@lru_cache(_CACHED)
def _united(*parts: Part) -> Part:
    """Unite neighbours, full powers of two first, so that a new last one changes little."""
    if len(parts) == 1:
        return parts[0]
    middle = 1 << (len(parts) - 1).bit_length() - 1
    left, right = _united(*parts[:middle]), _united(*parts[middle:])
    size, depth = left.n_leaves + right.n_leaves, 1 + max(left.depth, right.depth)
    return Part(digest_of(left.name, right.name), size, depth, (left, right))


def cover(top: Part, chosen: Sequence[bool]) -> list[Placed]:
    r"""Return the fewest parts that hold the chosen leaves and no others.

    Parameters
    ----------
    top : Part
    chosen : sequence of bool
        For every leaf. Of a window of neighbours, at most two parts a level are needed.

    Examples
    --------
    >>> top = shape_of([0] * 8, "abcdefgh")
    >>> [(start, part.n_leaves) for part, start in cover(top, [0, 1, 1, 1, 1, 1, 1, 1])]
    [(1, 1), (2, 2), (4, 4)]
    """
    counts = [0, *accumulate(map(bool, chosen))]  # chosen leaves before every leaf
    covering: list[Placed] = []

    def look(part: Part, start: int) -> None:
        inside = counts[start + part.n_leaves] - counts[start]
        if inside == part.n_leaves:
            covering.append((part, start))
        elif inside:
            for below in _halves(part, start):
                look(*below)

    look(top, 0)
    return covering


def _halves(part: Part, start: int) -> tuple[Placed, Placed]:
    left, right = part.below
    return (left, start), (right, start + left.n_leaves)


# Nodes that are read at most for one answer, beyond those that it cannot do without.
_MAX_NODES = 16


def finer(parts: Sequence[Placed]) -> list[Placed]:
    r"""Return parts below those given, that with the most leaves taken apart first.

    Rows of many nodes are drawn from once where those near the root have been drawn from at every
    level below. Of parts with the shares :math:`p_i` of the rows, each a node of twice the rows of
    an answer, what was drawn at and below them adds :math:`\sum_i p_i^2` of the variance of the
    last draw: half of it at these nodes, half of that one level below, and so on.

    Examples
    --------
    >>> len(finer([(shape_of([0] * 8, "abcdefgh"), 0)]))
    8
    """
    found = list(parts)
    while len(found) < _MAX_NODES:
        largest = max(range(len(found)), key=lambda i: found[i][0].n_leaves)
        if not found[largest][0].below:  # nor has any other one
            break
        found[largest : largest + 1] = _halves(*found[largest])
    return found
