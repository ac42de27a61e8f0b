"""Windows of a tree: leaves by name, by position and by date."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.messages import no_array
from daskcoreset.core.validation import is_int, shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError

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


def kind_of_time(text: str) -> str | None:
    """Return what the time of a leaf is: a number, a date, or neither.

    Examples
    --------
    >>> kind_of_time("2026-03-02"), kind_of_time("7"), kind_of_time("monday")
    ('date', 'number', None)
    """
    with suppress(ValueError):
        if isfinite(float(text)):
            return "number"
    with suppress(ValueError):
        read_date(text)
        return "date"
    return None


def _wrong(problem: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"leaves {problem}", argument="leaves", remedy=remedy)


def no_leaves() -> InvalidInputError:
    """Return the error of a question to a tree without leaves."""
    return InvalidInputError(
        "the tree has no leaves", remedy="append some, or refresh the view, first"
    )


def select(leaves: Any, window: Any) -> list[bool]:
    """Return a mask of the leaves of a window, see `LeafTable.select`."""
    if window is None:
        return [True] * len(leaves)
    ends = (window.start, window.stop) if isinstance(window, slice) else (window,)
    if any(map(is_date, ends)):
        return _by_date(leaves, ends[0], ends[-1])
    chosen = _positions(leaves, window)
    return [position in chosen for position in range(len(leaves))]


def _by_date(leaves: Any, first: Any, last: Any) -> list[bool]:
    """Return a mask of the leaves from one date or time to another, both included.

    A date means the whole day. A time with a zone is compared in UTC, any other unchanged.
    """
    start = _instant(dt.date.min if first is None else first, end=False)
    stop = _instant(dt.date.max if last is None else last, end=True)
    if start > stop:
        raise _wrong(f"goes from {first} back to {last}", "swap them")
    if untimed := [leaf.name for leaf in leaves if leaf.time is None]:
        raise _wrong(
            f"is a window of dates, and leaf {untimed[0]!r} has no time",
            "give every leaf a time, or pass names or positions",
        )
    chosen = [start <= _instant(leaf.time, end=False) <= stop for leaf in leaves]
    if not any(chosen):
        ends = ("the start" if first is None else first, "the end" if last is None else last)
        raise _wrong(
            f"has none between {ends[0]} and {ends[1]}", "choose from the times in tree.leaves"
        )
    return chosen


def _instant(value: Any, *, end: bool) -> dt.datetime:
    """Return a date or time without a zone, in UTC; of a day its first or last microsecond."""
    if not isinstance(value, dt.date):
        try:
            value = read_date(str(value))
        except ValueError as error:
            raise _wrong(
                f"is a window of dates, and {str(value)!r} is not a date",
                "pass a datetime.date, or names of leaves",
            ) from error
    if not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time.max if end else dt.time.min)
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def _positions(leaves: Any, window: Any) -> Collection[int]:
    """Return the positions of the leaves of a window of positions or names."""
    if is_int(window):
        return _in_slice(leaves, slice(window, window + 1 or None))
    if isinstance(window, slice):
        return _in_slice(leaves, window)
    try:
        names = [window] if isinstance(window, str) else list(window)
    except (TypeError, ValueError) as error:  # a number in an array; an array of unknown length
        raise InvalidTypeError(
            f"leaves is {shown(window)}", argument="leaves", remedy="pass names, which are text"
        ) from error
    if not names:
        raise _wrong("is empty", "pass at least one name, or leave it out")
    positions = {leaves.position(name): name for name in names}
    if len(positions) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _wrong(f"names {twice!r} twice", "name every leaf once")
    return positions


def _in_slice(leaves: Any, window: slice) -> range:
    """Return the positions of a slice of positions, or of names with both ends included."""
    found, bounds = range(len(leaves)), (window.start, window.stop)
    if all(bound is None or is_int(bound) for bound in (*bounds, window.step)):
        found = found[window] if window.step != 0 else found[:0]
    elif window.step is not None:
        raise _wrong(
            f"is a slice with step {window.step!r}, which only positions have",
            "pass a list of names",
        )
    else:
        first = 0 if window.start is None else leaves.position(window.start)
        found = found[first : None if window.stop is None else leaves.position(window.stop) + 1]
    if not found:
        raise _wrong(
            f"is {window!r}, which holds none of the {len(leaves)} leaves", "pass another window"
        )
    return found


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

    def __len__(self) -> int:
        return len(self.names)

    def coreset(self, *, normalize: bool | None = None) -> Coreset:
        """Return a coreset of these leaves, see `CoresetTree.coreset`."""
        coreset: Coreset = self.tree.coreset(list(self.names), normalize=normalize)
        return coreset
