r"""The shape of a stored tree: which nodes stand above which leaves.

Leaves have numbered slots in their order; a new one takes the slot after the last in use. The
shape is the binary trie of the slots in use, without the nodes that have one child: it is a
function of these slots alone, so that appending a leaf and deleting it again leads back to the
very same nodes. A path has at most :math:`\lceil \log_2 s \rceil + 1` nodes, s the span of the
slots in use: below the first digit in which they differ, each half lies within s of the middle.

Deleting makes the span larger than the number w of leaves. When it exceeds :math:`w^2` (and
64), slots are given anew, from 0: a path never has more than :math:`\max(6, 2 \log_2 w) + 2`
nodes. That costs up to w - 1 nodes at once, after more than :math:`w^2 - w` changes, and so
next to nothing a change.

A node is named after all that is below it, so that a name stands for its contents and for its
random numbers. What a change has to compute are the names that were not there before.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

# Spans up to this many slots are never worth the work of giving them anew.
_DENSE_SPAN = 64


@dataclass(frozen=True)
class Part:
    """A leaf, or a node above two parts.

    Attributes
    ----------
    name : str
        Of a leaf as given; of a node a digest of the names below.
    start, stop : int
        Its leaves, in their order.
    below : tuple of Part
        None or two.
    """

    name: str
    start: int
    stop: int
    below: tuple[Part, ...] = ()

    def __iter__(self) -> Iterator[Part]:
        """Go through the part and all below it, those below first."""
        for part in self.below:
            yield from part
        yield self

    @property
    def depth(self) -> int:
        """Nodes on the longest path."""
        return 1 + max(part.depth for part in self.below) if self.below else 0


def shape_of(slots: Sequence[int], names: Sequence[str]) -> Part:
    """Return the tree over leaves.

    Parameters
    ----------
    slots : sequence of int
        Increasing; at least one.
    names : sequence of str
        Of the leaves, all different.

    Examples
    --------
    >>> shape_of([0, 1, 2, 3], list("abcd")).depth, shape_of([0, 9], list("ab")).depth
    (2, 1)
    """
    return _shape(slots, names, 0, len(slots))


def _shape(slots: Sequence[int], names: Sequence[str], start: int, stop: int) -> Part:
    first, last = slots[start], slots[stop - 1]
    if first == last:
        return Part(names[start], start, stop)
    digit = (first ^ last).bit_length() - 1
    middle = bisect_left(slots, last >> digit << digit, start, stop)
    below = _shape(slots, names, start, middle), _shape(slots, names, middle, stop)
    return Part(digest_of(below), start, stop, below)


def digest_of(parts: Sequence[Part]) -> str:
    """Return 32 hexadecimal digits that stand for the names of parts."""
    names = " ".join(part.name for part in parts)
    return hashlib.blake2b(names.encode(), digest_size=16).hexdigest()


def cover(top: Part, chosen: Sequence[bool]) -> list[Part]:
    r"""Return the fewest parts that hold the chosen leaves and no others.

    Parameters
    ----------
    top : Part
    chosen : sequence of bool
        For every leaf. Of a window of neighbours, at most two parts a level are needed.

    Examples
    --------
    >>> top = shape_of(range(8), list("abcdefgh"))
    >>> [(p.start, p.stop) for p in cover(top, [0, 1, 1, 1, 1, 1, 1, 1])]
    [(1, 2), (2, 4), (4, 8)]
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


def respaced(slots: Sequence[int]) -> list[int]:
    """Return the slots, or new ones where those in use lie too far apart.

    Examples
    --------
    >>> respaced([3, 70, 90]), respaced([3, 5])
    ([0, 1, 2], [3, 5])
    """
    if slots and slots[-1] - slots[0] + 1 > max(_DENSE_SPAN, len(slots) ** 2):
        return list(range(len(slots)))
    return list(slots)
