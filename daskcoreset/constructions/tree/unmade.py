"""A place that is made together with its first version.

The settings of a view are written with what it has read first, in one step. A refresh that ends in
an error or a kill leaves nothing behind, and of two processes that make a view at one path with
other settings the first is done, and the second is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from daskcoreset.constructions.tree.chain import Head, overtaken_error
from daskcoreset.constructions.tree.persistence import Origin
from daskcoreset.constructions.tree.places import Members, NewPlace, Place, ReadVersion, T
from daskcoreset.core.contents import FindProblem, GroupContents
from daskcoreset.core.errors import StoreError


class UnmadePlace(Place):
    """A place whose first commit makes it.

    Parameters
    ----------
    place : NewPlace
        Where nothing is, or what is to be replaced.
    contents : GroupContents
        The settings.
    remedy : str
        What to do where something else is there by then.
    replaced : Head, optional
        The newest version of what is there.
    """

    def __init__(
        self, place: NewPlace, contents: GroupContents, remedy: str, replaced: Head | None = None
    ) -> None:
        self._place = place
        self._contents = contents
        self._remedy = remedy
        self._replaced = replaced
        self._is_made = False
        self.layout = place.layout
        place.check_writable(remedy)

    @property
    def first_head(self) -> Head:
        """What the first version follows."""
        return self._place.head_before(self._contents, self._replaced)

    @property
    def path(self) -> Path | str:
        """Where it will be."""
        return self._place.path

    def is_same(self, other: Place) -> bool:
        """Compare what it stands for."""
        return self._place.is_same(other)

    def settings(self) -> GroupContents:
        """Return what will be written, or was."""
        return self._contents

    def newest(self) -> int:
        """Return 0 before the first commit."""
        return self._place.newest() if self._is_made else self.first_head.version

    def read_newest(self, origin: Origin, read: ReadVersion[T]) -> tuple[T | None, Head]:
        """Read nothing before the first commit."""
        return self._place.read_newest(origin, read) if self._is_made else (None, self.first_head)

    def read(
        self,
        version: int,
        member: str,
        kind: str,
        find_problem: FindProblem | None = None,
    ) -> GroupContents:
        """Read from the place itself."""
        return self._place.read(version, member, kind, find_problem)

    def where(self, version: int, member: str) -> str:
        """Return what the place itself calls it."""
        return self._place.where(version, member)

    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Look in the place itself."""
        return self._place.find_missing(needed)

    def check_current(self, head: Head) -> None:
        """Check that nothing has come, or what is to be replaced is as it was."""
        if self._is_made:
            self._place.check_current(head)
        elif self._replaced is not None:
            self._place.check_current(self._replaced)
        elif not self._place.is_free():
            raise overtaken_error(self.name, self._place.newest(), head)

    def commit(self, head: Head, members: Members, keep: int | None = 2) -> Head:
        """Make the place with the first version, or add one to it."""
        if self._is_made:
            return self._place.commit(head, members, keep)
        replaced = self._replaced
        try:
            after = self._place.create(
                self._contents,
                lambda _: members,
                self._remedy,
                overwrite=replaced is not None,
                replaced=replaced,
            )
        except StoreError as error:
            if replaced is None and not self._place.is_free():
                raise overtaken_error(self.name, self._place.newest(), head) from error
            raise
        self._is_made = True
        return after

    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Sweep the place itself."""
        self._place.sweep(keep)

    @property
    def first_index(self) -> int:
        """The number of the first node of a change."""
        return self._place.first_index
