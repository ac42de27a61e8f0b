"""Rows of a stream that wait until they fill a leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.constructions.tree.job import concatenate_parts
from daskcoreset.core.blocks import usable_copies
from daskcoreset.core.points import WeightedPoints, from_checked
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Parts of waiting rows that become one, where the first of them is not twice as long as the last;
# and batches for which there is room at first, so that those of a thirty-second of a leaf, and
# larger ones, are copied once.
_SIMILAR_PARTS = 32


def add_waiting(
    parts: tuple[WeightedPoints, ...], points: WeightedPoints, start: int = 0
) -> tuple[WeightedPoints, ...]:
    """Return rows that wait and further ones, in order, which are numbered from `start`.

    So many of about one size become one, so that rows which come one by one are copied a
    logarithmic number of times and held in few arrays.
    """
    if not len(points):
        return parts
    # Copied: a slice would keep all of a large batch, and the user may write into it.
    parts = (*parts, points.copied(start))
    while len(parts) >= _SIMILAR_PARTS and len(parts[-_SIMILAR_PARTS]) < 2 * len(parts[-1]):
        last = concatenate_parts(parts[-_SIMILAR_PARTS:])
        parts = (*parts[:-_SIMILAR_PARTS], last)
    return parts


@dataclass(eq=False)
class Room:
    """Memory of dense rows without labels, the first of which are in use.

    Rows are only written behind those in use, so that views of them never change. Those not in use
    have the weights and the numbers that rows of an array will have: to fill these in for each of
    many small arrays would take as long as to copy it.

    Attributes
    ----------
    points : ndarray of shape (n, d)
    weights : ndarray of shape (n,), float64
        Ones behind the rows in use.
    indices : ndarray of shape (n,), int64
    copy : callable
        That of `usable_copies` to the rows.
    used : int
        Rows in use. Raised before they are written: what an interrupt leaves half written is then
        no more behind those in use, and other rows come elsewhere.
    number_of_first : int or None
        What would be the number of the first row, were all numbered as those not in use are; None
        if these have no numbers yet.
    """

    points: AnyArray
    weights: FloatArray
    indices: IndexArray
    copy: Callable[[AnyArray, int], bool]
    used: int = 0
    number_of_first: int | None = None

    @classmethod
    def of(cls, n_rows: int, like: AnyArray) -> Room:
        """Return room for so many rows of the columns and the dtype of others."""
        points = np.empty((n_rows, like.shape[1]), like.dtype)
        indices = np.empty(n_rows, np.int64)
        return cls(points, np.ones(n_rows), indices, usable_copies(points))

    def fill_numbered(self, rows: AnyArray, start: int) -> bool:
        """Copy rows of weight one, numbered from `start`, behind those in use.

        Returns whether all of them can be used (see `find_unusable_row`); if not, they are not in
        use.
        """
        begin, end, first = self.used, self.used + len(rows), start - self.used
        self.used = end
        if first != self.number_of_first:
            self.indices[begin:] = np.arange(start, first + len(self.indices))
            self.number_of_first = first
        if self.copy(rows, begin):
            return True
        self.used = begin
        return False

    def fill(self, rows: AnyArray, weights: FloatArray, indices: IndexArray) -> None:
        """Copy rows behind those in use, where there is room for them."""
        begin, end = self.used, self.used + len(rows)
        self.used = end
        self.points[begin:end] = rows
        self.weights[begin:end] = weights
        self.indices[begin:end] = indices


# Not frozen, as immutable as it is: to make one would take three times as long, for each batch.
@dataclass(eq=False)
class Waiting:
    """Rows that wait; immutable.

    Attributes
    ----------
    parts : tuple of WeightedPoints
        In order.
    room : Room or None
        Where the rows are, in place of parts, if others may come beside them.
    used : int
        How many they are.
    """

    parts: tuple[WeightedPoints, ...] = ()
    room: Room | None = None
    used: int = 0

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), (self.all_parts,)  # without the room that is left

    def __len__(self) -> int:
        return sum(map(len, self.parts)) + self.used

    @property
    def all_parts(self) -> tuple[WeightedPoints, ...]:
        """The parts, or the rows in the room as one."""
        if self.room is None:
            return self.parts
        room, used = self.room, slice(self.used)
        return (from_checked(room.points[used], room.weights[used], room.indices[used], None),)

    def places(self, points: AnyArray) -> int:
        """How many rows like these there is room for."""
        room = self.room
        # Others are in it where a batch that was refused had been taken from the same rows.
        if room is None or room.used != self.used or room.points.dtype != points.dtype:
            return 0
        if points.ndim != 2 or points.shape[1] != room.points.shape[1]:
            return 0
        return len(room.points) - room.used

    def next_weights(self, n_rows: int) -> FloatArray:
        """Ones, for so many rows that have places."""
        assert self.room is not None  # noqa: S101 - it has places
        return self.room.weights[self.used : self.used + n_rows]

    def with_array(self, rows: AnyArray, start: int) -> Waiting | None:
        """Return these rows and copies of further ones, of weight one, that have places.

        None where one of them cannot be used.
        """
        room = self.room
        assert room is not None  # noqa: S101 - it has places
        return Waiting((), room, room.used) if room.fill_numbered(rows, start) else None

    def add(self, points: WeightedPoints, start: int, to_leaf: int) -> Waiting:
        """Return these rows and copies of further ones, of which a leaf lacks `to_leaf`, or more.

        Dense rows without labels are copied to where those before them lie, so that a leaf is one
        array once it is full; others as in `add_waiting`.
        """
        rows = points.points
        if not len(points):
            return self
        if not isinstance(rows, np.ndarray) or points.labels is not None:
            return Waiting(add_waiting(self.all_parts, points, start))
        if self.places(rows) >= len(points):
            room = self.room
        else:  # those before are copied once more, and few times in all
            wanted = len(self) + max(_SIMILAR_PARTS * len(points), len(self))
            room = Room.of(min(wanted, len(self) + to_leaf), rows)
            for part in self.all_parts:
                room.fill(part.points, part.weights, part.indices)
        assert room is not None  # noqa: S101 - it has places
        room.fill(rows, points.weights, points.indices + start)
        return Waiting((), room, room.used)

    def joined(self) -> list[WeightedPoints]:
        """Return the rows as one part, in a list; an empty one where there are none.

        Raises
        ------
        InvalidInputError
            If the weights add up to more than float64 holds.
        """
        parts = self.all_parts
        if not parts:
            return []
        rows = concatenate_parts(parts)
        with np.errstate(over="ignore"):
            is_finite = np.isfinite(rows.total_weight)
        if not is_finite:  # which is said by the check of what is made anew
            rows = WeightedPoints(rows.points, rows.weights, rows.indices, rows.labels)
        return [rows]
