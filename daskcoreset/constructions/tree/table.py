"""The leaves of a stored tree as its user sees them, and as it keeps them."""

from __future__ import annotations

import datetime as dt
import html
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

    from daskcoreset.core.typing import IndexArray

__all__ = ["Entry", "Leaf", "LeafTable", "pick", "time_text"]

ROW_BITS = 40
"""Bits of a stored row number that count rows of the leaf; the rest say which leaf."""


@dataclass(frozen=True)
class Leaf:
    """A row of the table of leaves.

    Attributes
    ----------
    name : str
    rows : int
        Rows of its data, those left out included.
    time : str or None
        As given to `CoresetTree.append`; ISO 8601 where a date or time was given.
    weight : float
        Total weight of its data.
    n_dropped : int
        Rows with NaN or infinity that were left out.
    """

    name: str
    rows: int
    time: str | None
    weight: float
    n_dropped: int = 0


@dataclass(frozen=True)
class Entry:
    """A leaf as the tree keeps it.

    Attributes
    ----------
    leaf : Leaf
    uid : int
        Its own number: leaves are counted as they are appended, and keep it when replaced.
    slot : int
        Its place in the shape.
    revision : int
        How often it was replaced.
    """

    leaf: Leaf
    uid: int
    slot: int
    revision: int = 0

    @property
    def node(self) -> str:
        """Name of its node."""
        return f"leaf-{self.uid}-{self.revision}"

    def write(self) -> list[Any]:
        """Return plain JSON values."""
        return [*asdict(self.leaf).values(), self.uid, self.slot, self.revision]

    @classmethod
    def read(cls, values: list[Any]) -> Entry:
        """Return what `write` wrote."""
        *leaf, uid, slot, revision = values
        return cls(Leaf(*leaf), int(uid), int(slot), int(revision))


class LeafTable(Sequence[Leaf]):
    """The leaves of a tree, in their order: a list that shows itself as a table.

    Examples
    --------
    >>> table = LeafTable([Leaf("monday", 10, None, 10.0), Leaf("tuesday", 5, None, 5.0)])
    >>> table.names, table["tuesday"].rows, len(table)
    (['monday', 'tuesday'], 5, 2)
    >>> print(table)
    name     rows  time  weight
    monday     10  -         10
    tuesday     5  -          5
    """

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = tuple(leaves)
        self._places = {leaf.name: place for place, leaf in enumerate(self._leaves)}

    @overload
    def __getitem__(self, index: int | str) -> Leaf: ...

    @overload
    def __getitem__(self, index: slice) -> LeafTable: ...

    def __getitem__(self, index: int | str | slice) -> Leaf | LeafTable:
        if isinstance(index, slice):
            return LeafTable(self._leaves[index])
        return self._leaves[self.place(index) if isinstance(index, str) else index]

    def __len__(self) -> int:
        return len(self._leaves)

    def __iter__(self) -> Iterator[Leaf]:
        return iter(self._leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeafTable) and self._leaves == other._leaves

    def __hash__(self) -> int:
        return hash(self._leaves)

    def __repr__(self) -> str:
        lines = [
            ("name", "rows", "time", "weight"),
            *((x.name, f"{x.rows}", x.time or "-", f"{x.weight:.6g}") for x in self._leaves),
        ]
        wide = [max(len(line[i]) for line in lines) for i in range(4)]
        return "\n".join(
            f"{name:<{wide[0]}}  {rows:>{wide[1]}}  {time:<{wide[2]}}  {weight:>{wide[3]}}"
            for name, rows, time, weight in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("name", "rows", "time", "weight"))
        rows = "".join(
            f"<tr><td>{html.escape(leaf.name)}</td><td>{leaf.rows:,}</td>"
            f"<td>{html.escape(leaf.time or '')}</td><td>{leaf.weight:.6g}</td></tr>"
            for leaf in self._leaves
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    @property
    def names(self) -> list[str]:
        """Names of the leaves."""
        return [leaf.name for leaf in self._leaves]

    @property
    def offsets(self) -> list[int]:
        """Number of the first row of every leaf, counted over all leaves before it."""
        return list(accumulate((leaf.rows for leaf in self._leaves), initial=0))[:-1]

    def place(self, name: str) -> int:
        """Return the place of a leaf, or say which names there are.

        Raises
        ------
        InvalidInputError
            If there is none of this name.
        """
        if name not in self._places:
            known = ", ".join(map(repr, self.names[-5:])) or "none"
            raise InvalidInputError(
                f"there is no leaf {name!r}; pass one of those in tree.leaves, such as {known}."
            )
        return self._places[name]

    def to_dataframe(self) -> pd.DataFrame:
        """Return the table as a DataFrame.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            msg = 'pandas is not installed; pip install "daskcoreset[dataframe]" brings it'
            raise MissingDependencyError(msg) from error
        columns = list(Leaf.__dataclass_fields__)
        frame: pd.DataFrame = pandas.DataFrame(
            [asdict(leaf) for leaf in self._leaves], None, columns
        )
        return frame

    def locate(self, indices: IndexArray) -> tuple[list[str], IndexArray]:
        """Return the name of the leaf of every row number, and the row's number in it.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If a number is beyond the rows of all leaves, or is no row number.
        """
        numbers = np.asarray(indices)
        if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
            raise InvalidTypeError(
                f"indices is {type(indices).__name__} of dtype {numbers.dtype} and shape "
                f"{numbers.shape}; pass a vector of row numbers, such as coreset.indices."
            )
        numbers = numbers.astype(np.int64)
        total = sum(leaf.rows for leaf in self._leaves)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < total:
            raise InvalidInputError(
                f"indices reach from {numbers.min()} to {numbers.max()}, and the leaves have "
                f"{total} rows; pass the indices of a coreset of this tree as it is now."
            )
        offsets = np.array(self.offsets, dtype=np.int64)
        places = np.searchsorted(offsets, numbers, side="right") - 1
        names = self.names
        return [names[place] for place in places.tolist()], numbers - offsets[places]


def pick(table: LeafTable, leaves: Any) -> list[bool]:
    """Say of every leaf whether it is meant.

    Parameters
    ----------
    table : LeafTable
    leaves : str, sequence of str, slice of str, or None
        Names; a slice from one name to another, both included; None for all.

    Examples
    --------
    >>> table = LeafTable([Leaf(name, 1, None, 1.0) for name in "abcd"])
    >>> pick(table, slice("b", "c")), pick(table, ["a", "d"])
    ([False, True, True, False], [True, False, False, True])
    """
    if leaves is None:
        return [True] * len(table)
    if not isinstance(leaves, (str, slice)) and not hasattr(leaves, "__iter__"):
        raise InvalidTypeError(f"leaves is {leaves!r}; pass names, which are text.")
    if isinstance(leaves, slice):
        if leaves.step is not None:
            raise InvalidInputError(
                f"leaves is a slice with step {leaves.step!r}; pass a list of names."
            )
        start = 0 if leaves.start is None else table.place(leaves.start)
        stop = len(table) - 1 if leaves.stop is None else table.place(leaves.stop)
        if start > stop:
            raise InvalidInputError(
                f"leaves goes from {leaves.start!r} back to {leaves.stop!r}; swap them."
            )
        return [start <= place <= stop for place in range(len(table))]
    names = [leaves] if isinstance(leaves, str) else list(leaves)
    if not names:
        raise InvalidInputError("leaves is empty; pass at least one name, or leave it out.")
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise InvalidTypeError(f"leaves holds {wrong[0]!r}; pass names, which are text.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"leaves names {twice!r} twice; name every leaf once.")
    places = {table.place(name) for name in names}
    return [place in places for place in range(len(table))]


def time_text(time: Any) -> str | None:
    """Bring a time to text.

    Examples
    --------
    >>> time_text(dt.date(2026, 3, 1)), time_text(np.datetime64("2026-03-01T12"))
    ('2026-03-01', '2026-03-01T12')
    """
    if time is None or isinstance(time, str):
        return time
    if isinstance(time, dt.date):  # a datetime is one too
        return time.isoformat()
    if isinstance(time, (np.datetime64, int, float)) and not isinstance(time, bool):
        return str(time)
    raise InvalidTypeError(
        f"time is a {type(time).__name__}; pass text, a date, a datetime or a number."
    )
