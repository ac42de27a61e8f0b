"""Windows of a tree: leaves by name, by position and by date."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, no_array
from daskcoreset.core.validation import a_type, is_int, shown

if TYPE_CHECKING:
    from daskcoreset.core.coreset import Coreset


def is_date(value: Any) -> bool:
    """Whether a bound of a window is a date or time."""
    return isinstance(value, (dt.date, np.datetime64))


def read_date(text: str) -> dt.date:
    """Return a day, or a time of one, that ISO 8601 text names. A ValueError where it names none.

    Examples
    --------
    >>> read_date("2026-03-02"), read_date("2026-03-02T12:00")
    (datetime.date(2026, 3, 2), datetime.datetime(2026, 3, 2, 12, 0))
    """
    is_day = len(text) == len("2026-03-02")
    return dt.date.fromisoformat(text) if is_day else dt.datetime.fromisoformat(text)


def kinds_of_time(text: str) -> set[str]:
    """Return what the time of a leaf may be: a date, a number, both, or neither.

    Examples
    --------
    >>> kinds_of_time("2026-03-02"), kinds_of_time("7"), kinds_of_time("monday")
    ({'date'}, {'number'}, set())
    >>> sorted(kinds_of_time("20260302"))  # a day without hyphens
    ['date', 'number']
    """
    kinds = set()
    with suppress(InvalidInputError):
        _instant("time", text, end=False)
        kinds.add("date")
    with suppress(ValueError):
        if isfinite(float(text)):
            kinds.add("number")
    return kinds


def by_date(leaves: Any, first: Any, last: Any) -> list[bool]:
    """Return a mask of the leaves from one date or time to another, both included.

    A date means the whole day. A time with a zone is compared in UTC, any other unchanged.

    Raises
    ------
    InvalidInputError
        No leaf lies between them, or one has no time.
    """
    start = None if first is None else _instant("leaves", first, end=False)
    stop = None if last is None else _instant("leaves", last, end=True)
    if start is not None and stop is not None and start > stop:
        raise InvalidInputError(
            f"leaves goes from {first} back to {last}", argument="leaves", remedy="swap them"
        )
    chosen = []
    for leaf in leaves:
        if leaf.time is None:
            raise InvalidInputError(
                f"leaf {leaf.name!r} has no time, so a window of dates cannot contain it",
                argument="leaf",
                remedy="give every leaf a time, or pass names or positions",
            )
        time = _instant(f"the time of leaf {leaf.name!r}", leaf.time, end=False)
        chosen.append((start is None or start <= time) and (stop is None or time <= stop))
    if not any(chosen):
        ends = ("the start" if first is None else first, "the end" if last is None else last)
        raise InvalidInputError(
            f"no leaf lies between {ends[0]} and {ends[1]}",
            argument="leaves",
            remedy="choose from the times in tree.leaves",
        )
    return chosen


def _instant(what: str, value: Any, *, end: bool) -> dt.datetime:
    """Return a date or time without a zone, in UTC; of a day its first or last microsecond."""
    if isinstance(value, np.datetime64):
        value = str(value)
    if isinstance(value, str):
        try:
            value = read_date(value)
        except ValueError as error:
            raise InvalidInputError(
                f"{what} is {value!r}, which is not a date",
                remedy="pass a datetime.date, or names of leaves",
            ) from error
    if not isinstance(value, dt.date):
        raise InvalidTypeError(f"{what} is {a_type(value)}", remedy="pass a date or a time")
    if not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time.max if end else dt.time.min)
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def no_leaves() -> InvalidInputError:
    """Return the error of a question to a tree without leaves."""
    return InvalidInputError(
        "the tree has no leaves", remedy="append some, or refresh the view, first"
    )


def select(leaves: Any, window: Any) -> list[bool]:
    """Return a mask of the leaves of a window, see `LeafTable.select`."""
    n = len(leaves)
    chosen: Any = range(n)
    if is_date(window):
        return by_date(leaves, window, window)
    if isinstance(window, slice):
        if window.step is None and (is_date(window.start) or is_date(window.stop)):
            return by_date(leaves, window.start, window.stop)
        chosen = _in_slice(leaves, window)
    elif is_int(window):
        if not -n <= window < n:
            raise InvalidInputError(
                f"leaves is {window}, and there are {n}",
                argument="leaves",
                remedy="pass a position among them",
            )
        chosen = [window % n]
    elif window is not None:
        chosen = _positions(leaves, window)
    return [position in chosen for position in range(n)]


def _in_slice(leaves: Any, window: slice) -> range:
    """Return the positions of a slice of positions, or of names with both ends included."""
    bounds = [one for one in (window.start, window.stop) if one is not None]
    if all(map(is_int, bounds)) and (bounds or is_int(window.step)):
        found = range(0)
        if window.step != 0:
            ends = (window.start, window.stop, window.step)
            found = range(len(leaves))[slice(*(None if x is None else int(x) for x in ends))]
        if not found:
            raise InvalidInputError(
                f"leaves is {window!r}, which holds none of the {len(leaves)} leaves",
                argument="leaves",
                remedy="pass another window",
            )
        return found
    if window.step is not None:
        raise InvalidInputError(
            f"leaves is a slice with step {window.step!r}, which only positions have",
            argument="leaves",
            remedy="pass a list of names",
        )
    if not leaves:
        raise no_leaves()
    start = 0 if window.start is None else leaves.position(window.start)
    stop = len(leaves) - 1 if window.stop is None else leaves.position(window.stop)
    if start > stop:
        raise InvalidInputError(
            f"leaves goes from {window.start!r} back to {window.stop!r}",
            argument="leaves",
            remedy="swap them",
        )
    return range(start, stop + 1)


def _positions(leaves: Any, names: Any) -> set[int]:
    """Return the positions of leaves by their names, which are different."""
    try:
        listed = [names] if isinstance(names, str) else list(names)
    except (TypeError, ValueError) as error:  # a number in an array; an array of unknown length
        raise InvalidTypeError(
            f"leaves is {shown(names)}", argument="leaves", remedy="pass names, which are text"
        ) from error
    if not listed:
        raise InvalidInputError(
            "leaves is empty",
            argument="leaves",
            remedy="pass at least one name, or leave it out",
        )
    if not_text := [name for name in listed if not isinstance(name, str)]:
        raise InvalidTypeError(
            f"leaves holds {shown(not_text[0])}",
            argument="leaves",
            remedy="pass names, which are text, or positions as one number or a slice",
        )
    positions = {leaves.position(name) for name in listed}
    if len(positions) < len(listed):
        twice = next(name for name in listed if listed.count(name) > 1)
        raise InvalidInputError(
            f"leaves names {twice!r} twice", argument="leaves", remedy="name every leaf once"
        )
    return positions


class TreeWindow:
    """Some leaves of a tree, in place of the tree: ``tree[-7:]``.

    Estimators take it in place of X. It stands for the leaves by their names, so that it shows
    what the tree holds of them when it is asked.

    Parameters
    ----------
    tree : CoresetTree
    names : sequence of str

    Attributes
    ----------
    tree : CoresetTree
    names : tuple of str
        Names of the leaves.
    """

    def __init__(self, tree: Any, names: Sequence[str]) -> None:
        self.tree = tree
        self.names = tuple(names)

    __array__ = no_array("a window of a tree", "call coreset = window.coreset() and ")

    def __repr__(self) -> str:
        ends = " to ".join(dict.fromkeys([repr(self.names[0]), repr(self.names[-1])]))
        return f"{type(self).__name__}({len(self.names):,} of {len(self.tree):,} leaves: {ends})"

    def _repr_html_(self) -> str:
        leaves, chosen = self.tree.leaves, set(self.names)
        table: str = type(leaves)(leaf for leaf in leaves if leaf.name in chosen).to_html(
            repr(self)
        )
        return table

    def __len__(self) -> int:
        return len(self.names)

    def coreset(self, *, normalize: bool | None = None) -> Coreset:
        """Return a coreset of these leaves, see `CoresetTree.coreset`."""
        coreset: Coreset = self.tree.coreset(list(self.names), normalize=normalize)
        return coreset
