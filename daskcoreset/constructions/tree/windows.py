"""Windows of a tree: leaves by name, by position and by date."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.messages import no_array
from daskcoreset.core.validation import is_int, shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    from daskcoreset.core.coreset import Coreset


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


def select(leaves: Any, window: Any) -> list[bool]:
    """Return a mask of the leaves of a window.

    Parameters
    ----------
    leaves : LeafTable
    window : str, sequence of str, slice, int, date, or None
        Names. A slice from one name or date to another, both included. Positions, and slices of
        them, as Python has them. None for all.
    """
    if not leaves:
        raise InvalidInputError(
            "the tree has no leaves", remedy="append some, or refresh the view, first"
        )
    everything, window = range(len(leaves)), slice(None) if window is None else window
    bounds = (window.start, window.stop) if isinstance(window, slice) else (window,)
    chosen: Collection[int]
    if any(isinstance(bound, dt.date | np.datetime64) for bound in bounds):
        chosen = _by_date(leaves, bounds[0], bounds[-1])
    elif isinstance(window, slice):
        chosen = everything[_positions(leaves, window)]
    elif is_int(window):
        chosen = everything[window : window + 1 or None]
    else:
        chosen = set(map(leaves.position, _names(window)))
    if not chosen:
        raise _wrong(
            f"is {shown(window)}, which holds none of the {len(leaves)} leaves",
            "choose from tree.leaves",
        )
    return [position in chosen for position in everything]


def _wrong(problem: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"leaves {problem}", argument="leaves", remedy=remedy)


def _by_date(leaves: Any, first: Any, last: Any) -> set[int]:
    """Return the positions of the leaves from one date or time to another, both included.

    A date means the whole day. A time with a zone is compared in UTC, any other unchanged.
    """
    start = _instant(dt.date.min if first is None else first)
    stop = _instant(dt.date.max if last is None else last, dt.time.max)
    times = [_instant(leaf.time) for leaf in leaves]
    return {position for position, time in enumerate(times) if start <= time <= stop}


def _instant(value: Any, of_day: dt.time = dt.time.min) -> dt.datetime:
    """Return a date or time without a zone, in UTC. A day has a time of day."""
    if not isinstance(value, dt.date):
        try:
            value = read_date(str(value))
        except ValueError as error:
            raise _wrong(
                f"is a window of dates, and {str(value)!r} is not a date",
                "give every leaf a date as its time, or pass names of leaves",
            ) from error
    if not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, of_day)
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def _positions(leaves: Any, window: slice) -> slice:
    """Return a slice of positions for one of positions, or of names with both ends included."""
    start, stop, step = window.start, window.stop, window.step
    if all(bound is None or is_int(bound) for bound in (start, stop, step)) and step != 0:
        return window
    if step is not None:
        raise _wrong(f"is a slice with step {step!r}", "pass a list of names")
    first = None if start is None else leaves.position(start)
    return slice(first, None if stop is None else leaves.position(stop) + 1)


def _names(window: Any) -> list[str]:
    try:
        return [window] if isinstance(window, str) else list(window)
    except (TypeError, ValueError) as error:  # a number in an array; an array of unknown length
        raise InvalidTypeError(
            f"leaves is {shown(window)}", argument="leaves", remedy="pass names, which are text"
        ) from error


class TreeWindow:
    """Some leaves of a tree, in place of the tree: ``tree[-7:]``.

    Estimators take it in place of X. It stands for the leaves by their names, so that it shows
    what the tree holds of them when it is asked.

    Parameters
    ----------
    tree : CoresetTree
    names : iterable of str

    Attributes
    ----------
    tree : CoresetTree
    names : tuple of str
        Names of the leaves.
    """

    def __init__(self, tree: Any, names: Iterable[str]) -> None:
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
