r"""The shape of a stored tree: which nodes stand above which leaves.

The shape is a function of the names of the leaves in their order, however they came together. A
node is named after all that is below it, so that a name identifies its contents and addresses its
random numbers. A change computes the nodes whose names were not there before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate


@dataclass(frozen=True)
class Part:
    """A leaf, or a node above two parts.

    Attributes
    ----------
    name : str
        The given name of a leaf, or a digest of the names below a node.
    start, stop : int
        Its leaves, in their order.
    below : tuple of Part
        None or two.
    members : tuple of Part
        What a group unites, if it is the top of one: leaves, or groups.
    """

    name: str
    start: int
    stop: int
    below: tuple[Part, ...] = ()
    members: tuple[Part, ...] = ()

    def __iter__(self) -> Iterator[Part]:
        """Go through the part and all below it, those below first."""
        pending, found = [self], []
        while pending:
            found.append(part := pending.pop())
            pending.extend(part.below)
        return reversed(found)

    def groups(self) -> Iterator[Part]:
        """Go through the groups, those below first."""
        for part in self.members:
            yield from part.groups()
        if self.members:
            yield self

    def own_nodes(self) -> Iterator[Part]:
        """Go through the nodes of a group that are of no group below it, those below first."""
        for part in self.below:
            if part.below and not part.members:
                yield from part.own_nodes()
        yield self

    @property
    def depth(self) -> int:
        """Nodes on the longest path."""
        return 1 + max(part.depth for part in self.below) if self.below else 0


# Leaves below a boundary of the next level, on average; larger groups change more nodes at a time,
# and smaller ones make the tree deeper.
_GROUP_DIGITS = 4


def shape_by_keys(keys: Sequence[str], names: Sequence[str]) -> Part:
    r"""Return the tree over leaves that come and go anywhere.

    A hash of its key says at how many levels a leaf begins a new group, at each with the
    probability 1/16. So the shape is a function of the keys in their order, however they came
    together, and a leaf that comes, goes or changes touches the nodes of its own groups alone:
    some :math:`\log_2 n` and as many as a group has.

    Parameters
    ----------
    keys : sequence of str
        All different. At least one.
    names : sequence of str
        Names of the leaves, all different.

    Examples
    --------
    >>> keys = [f"day-{i}" for i in range(100)]
    >>> fewer = keys[:50] + keys[51:]
    >>> before, after = shape_by_keys(keys, keys), shape_by_keys(fewer, fewer)
    >>> len({part.name for part in after} - {part.name for part in before}) < 25
    True
    """
    levels = [_level(key) for key in keys]

    def grouped(start: int, stop: int, level: int) -> Part:
        if stop - start == 1:
            return Part(names[start], start, stop)
        cuts = [i for i in range(start + 1, stop) if levels[i] >= level]
        bounds = zip([start, *cuts], [*cuts, stop], strict=True)
        members = tuple(grouped(first, last, level - 1) for first, last in bounds)
        top = _united(members)
        return top if len(members) == 1 else replace(top, members=members)

    return grouped(0, len(keys), max(levels))


def _level(key: str) -> int:
    number = int.from_bytes(
        hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest()
    )
    level = 0
    while number and not number % (1 << _GROUP_DIGITS):
        number, level = number >> _GROUP_DIGITS, level + 1
    return level


def _united(parts: Sequence[Part]) -> Part:
    """Unite neighbours, full powers of two first, so that a new last one changes little."""
    if len(parts) == 1:
        return parts[0]
    middle = 1 << (len(parts) - 1).bit_length() - 1
    below = _united(parts[:middle]), _united(parts[middle:])
    return Part(digest_of(below), below[0].start, below[1].stop, below)


def digest_of(parts: Sequence[Part]) -> str:
    """Return 32 hexadecimal digits that identify the names of parts."""
    names = " ".join(part.name for part in parts)
    return hashlib.blake2b(names.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def cover(top: Part, chosen: Sequence[bool]) -> list[Part]:
    r"""Return the fewest parts that hold the chosen leaves and no others.

    Parameters
    ----------
    top : Part
    chosen : sequence of bool
        For every leaf. Of a window of neighbours, at most two parts a level are needed.

    Examples
    --------
    >>> top = shape_by_keys("abcdefgh", "abcdefgh")
    >>> [(p.start, p.stop) for p in cover(top, [0, 1, 1, 1, 1, 1, 1, 1])]
    [(1, 2), (2, 4), (4, 7), (7, 8)]
    """
    counts = [0, *accumulate(map(bool, chosen))]  # chosen leaves before every leaf
    covering: list[Part] = []

    def look(part: Part) -> None:
        inside = counts[part.stop] - counts[part.start]
        if inside == part.stop - part.start:
            covering.append(part)
        elif inside:
            for below in part.below:
                look(below)

    look(top)
    return covering


# Nodes that are read at most for one answer, beyond those that it cannot do without.
_MAX_NODES = 16


def finer(parts: Sequence[Part]) -> list[Part]:
    r"""Return parts below those given, that with the most leaves taken apart first.

    Rows of many nodes are drawn from once where those near the root have been drawn from at every
    level below. Of parts with the shares :math:`p_i` of the rows, each a node of twice the rows of
    an answer, what was drawn at and below them adds :math:`\sum_i p_i^2` of the variance of the
    last draw: half of it at these nodes, half of that one level below, and so on.

    Examples
    --------
    >>> len(finer([shape_by_keys("abcdefgh", "abcdefgh")]))
    8
    """
    found = list(parts)
    while len(found) < _MAX_NODES:
        largest = max(range(len(found)), key=lambda i: found[i].stop - found[i].start)
        if not found[largest].below:  # nor has any other one
            break
        found[largest : largest + 1] = found[largest].below
    return found
