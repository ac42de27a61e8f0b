"""What an object holds in memory of a place that it changes, whatever interrupts a change.

A place makes a change by one step, a rename or a conditional write, and the object goes on from it
once that has returned. A `KeyboardInterrupt` between the two leaves a change that was made and that
the object does not know of. So it remembers what it was about to make, and looks at the place, when
it is used again, whether that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic

from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.chain import Head, UnansweredError
from daskcoreset.constructions.tree.places import MAIN, Members, NewPlace, Place, T
from daskcoreset.core.errors import StoreError


@dataclass(frozen=True)
class _Change(Generic[T]):
    """A change of which it is not known yet whether it was made.

    Attributes
    ----------
    place : Place
    head : Head
        The newest version of the place, if it was.
    kind : str
        Of the group that says what a version is.
    value : object
        What is held then.
    """

    place: Place
    head: Head
    kind: str
    value: T

    def was_made(self) -> bool:
        """Look at the place; False where another writer has changed it since.

        Raises
        ------
        StoreError, OutOfTimeError
            It does not read.
        """

        def read(version: int) -> tuple[None, Mapping[str, str] | None, str]:
            contents = self.place.read(version, MAIN, self.kind)
            return None, persistence.link_of(contents), contents.digest

        origin = persistence.origin_of(self.place.settings())
        return self.place.read_newest(origin, read)[1] == self.head


class Kept(Generic[T]):
    """A value that stands for the newest version of a place which its object has made or seen.

    Parameters
    ----------
    value : object
        Never changed itself: another one takes its place.
    unknown : _Change or None, default=None
        A change of which it is not known yet whether it was made.
    """

    def __init__(self, value: T, unknown: _Change[T] | None = None) -> None:
        self._value = value
        self._unknown = unknown

    def copied(self, made: Callable[[T], T]) -> Kept[T]:
        """Return one that holds what `made` makes of the value; also of one that may be held."""
        unknown = self._unknown
        if unknown is not None:
            unknown = replace(unknown, value=made(unknown.value))
        return Kept(made(self._value), unknown)

    @property
    def value(self) -> T:
        """The value, after a look at the place where the last change was interrupted.

        Raises
        ------
        StoreError, OutOfTimeError
            The place does not read then.
        """
        if self._unknown is not None:
            self._settle(self._unknown)
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        self._value = value

    @property
    def last_known(self) -> T:
        """The value, or the one before where the place does not read: for what never fails."""
        with suppress(OSError):  # among which are errors of stores and of time that has passed
            return self.value
        return self._value

    def _settle(self, change: _Change[T]) -> None:
        try:
            made = change.was_made()
        except StoreError as error:
            raise StoreError(
                f"{change.place.name}: the last change was interrupted; it was made as a whole or "
                f"not at all, and which of the two does not read ({error}); try again when it "
                f"reads, or open it again"
            ) from error
        if made:
            self._value = change.value
        self._unknown = None

    def commit(
        self, place: Place, before: Head, members: Members, value: T, keep: int | None = 2
    ) -> None:
        """Add the version after `before` to a place, and hold another value.

        Parameters
        ----------
        place, before, members, keep
            As in `Place.commit`.
        value : object
            What is held then.

        Raises
        ------
        StoreError
            As of `Place.commit`; the value is the one before.
        """
        after = before.followed_by(members[MAIN].digest)
        change = _Change(place, after, members[MAIN].kind, value)
        # Nothing is called between an error in here and what is done about it, so that no further
        # interrupt comes between the two.
        try:
            place.commit(before, members, keep)
            self._value = value
        except BaseException as error:
            self._unknown = change
            if isinstance(error, StoreError) and not isinstance(error, UnansweredError):
                self._unknown = None  # nothing was written
            raise

    def create(
        self,
        make: Callable[[Callable[[Head], Members]], Head],
        place: NewPlace,
        members: Callable[[Head], Members],
        value: Callable[[Head], T],
    ) -> None:
        """Make a place, and hold another value.

        Parameters
        ----------
        make : callable
            ``make(first)`` calls `NewPlace.create` with the members of the first version, which
            ``first(head)`` returns.
        place : NewPlace
        members : callable
            Returns these members.
        value : callable
            Returns the value that is held when the place has been made, by its newest version.

        Raises
        ------
        StoreError
            As of `NewPlace.create`; the value is the one before.
        """
        change: _Change[T] | None = None

        def first(head: Head) -> Members:
            nonlocal change
            made = members(head)
            after = head.followed_by(made[MAIN].digest)
            change = _Change(place, after, made[MAIN].kind, value(after))
            return made

        try:
            self._value = value(make(first))
        except StoreError as error:
            if isinstance(error, UnansweredError):
                self._take_if_made(change)
            raise
        except BaseException:
            self._take_if_made(change)
            raise

    def _take_if_made(self, change: _Change[T] | None) -> None:
        # Where that does not read, what is held is right all the same: it belongs to no place yet.
        with suppress(OSError):
            if change is not None and change.was_made():
                self._value = change.value
