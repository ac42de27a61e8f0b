"""Where a stream or a stored tree is kept, apart from what it keeps there.

A `Place` holds settings, which are made once, and numbered versions. A version is added whole or
not at all, right after the one before it, and by one writer; its members are Zarr groups, which
later versions may go on using. `LocalPlace` is a folder on a disk, and `RemotePlace` of `remote`
one of an object store.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from daskcoreset.constructions.tree import persistence, versions
from daskcoreset.constructions.tree.chain import Head
from daskcoreset.constructions.tree.persistence import Origin
from daskcoreset.core import storage
from daskcoreset.core.contents import FindProblem, GroupContents
from daskcoreset.core.errors import StoreError

T = TypeVar("T")

# The member that says what a version is; a version of a stream has no other one.
MAIN = "manifest"

# What a version consists of, by name; `MAIN` is the last, and its digest that of the version.
Members: TypeAlias = Mapping[str, GroupContents]

# What is wanted of a version, its link, and its digest.
ReadVersion: TypeAlias = Callable[[int], tuple[T, Mapping[str, str] | None, str]]


@dataclass(frozen=True)
class Layout:
    """How a stream or tree lies in its place.

    Attributes
    ----------
    kind : str
        What its Zarr group is.
    part : str
        Folder of its versions.
    flat : bool
        Whether a version has no member but `MAIN`.
    """

    kind: str
    part: str
    flat: bool


class Place(ABC):
    """Settings and versions of a stream or tree."""

    layout: Layout

    @property
    @abstractmethod
    def path(self) -> Path | str:
        """Where it is: a path, or a URL without secrets."""

    @property
    def name(self) -> str:
        """What messages and provenance call it."""
        return str(self.path)

    def is_same(self, other: Place) -> bool:
        """Whether another place is this one."""
        return self.path == other.path

    @abstractmethod
    def settings(self) -> GroupContents:
        """Return the settings; an error where there are none of this layout's kind."""

    @abstractmethod
    def newest(self) -> int:
        """Return the highest version; 0 before the first."""

    @abstractmethod
    def read_newest(self, origin: Origin, read: ReadVersion[T]) -> tuple[T | None, Head]:
        """Read the newest version, and check that it is the newest one that was written.

        Returns
        -------
        value : object or None
            What `read` returned; None before the first version.
        head : Head

        Raises
        ------
        StoreError
            A version is damaged, missing or of another store.
        """

    @abstractmethod
    def read(
        self,
        version: int,
        member: str,
        kind: str,
        find_problem: FindProblem | None = None,
    ) -> GroupContents:
        """Return a member of a version; an error where it is missing or damaged.

        Parameters
        ----------
        version : int
        member, kind : str
        find_problem : callable, optional
            Returns what else is wrong with its header, before anything else is read, or None.
        """

    @abstractmethod
    def where(self, version: int, member: str) -> str:
        """Return what messages call a member."""

    @abstractmethod
    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Return the first member, given with its version, that is not there; None if all are."""

    @abstractmethod
    def check_current(self, head: Head) -> None:
        """Check, before the work of a change, that a version is the newest, and can be followed."""

    @abstractmethod
    def commit(self, head: Head, members: Members, keep: int | None = 2) -> Head:
        """Add the version after `head`.

        Parameters
        ----------
        head : Head
        members : Members
        keep : int or None, default=2
            Versions that can be read after it; None for all.

        Returns
        -------
        Head

        Raises
        ------
        StoreError
            Another writer was first, or it cannot be written. What was there is unchanged.
        """

    @abstractmethod
    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Remove members that ``keep(version, member)`` denies, and leftovers of killed writers."""

    @property
    def first_index(self) -> int:
        """The number of the first node of a change."""
        return 0


class NewPlace(Place):
    """A place that can be made."""

    @abstractmethod
    def create(
        self,
        settings: GroupContents,
        first: Callable[[Head], Members] | None,
        remedy: str,
        *,
        overwrite: bool,
        replaced: Head | None = None,
    ) -> Head:
        """Make it, whole or not at all.

        Parameters
        ----------
        settings : GroupContents
        first : callable, optional
            Returns the members of the first version, which follows the head that it gets; without
            it there is no version yet.
        remedy : str
            What to do where something is there.
        overwrite : bool
            Whether to replace a place of this kind that is there.
        replaced : Head, optional
            The newest version of the place that is there; another one is not replaced.

        Returns
        -------
        Head

        Raises
        ------
        StoreError
            Something is there, or it cannot be written. What was there is unchanged.
        """

    @abstractmethod
    def check_writable(self, remedy: str) -> None:
        """Check, before the work of a first version, that it could be made here.

        Raises
        ------
        StoreError
            It could not; `remedy` says what to do where something else is there.
        """

    @abstractmethod
    def head_before(self, settings: GroupContents, replaced: Head | None = None) -> Head:
        """Return what the first version follows that `create` makes."""

    @abstractmethod
    def is_free(self) -> bool:
        """Whether nothing is there."""


class LocalPlace(NewPlace):
    """A folder on a disk, in which a version is a folder that is renamed when it is complete.

    Parameters
    ----------
    path : Path
    layout : Layout
        Of a flat one, `MAIN` is the folder of its version itself.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path = path
        self.layout = layout

    @property
    def path(self) -> Path:
        """The folder."""
        return self._path

    @property
    def root(self) -> Path:
        """The folder of the versions."""
        return self.path / self.layout.part

    def create(
        self,
        settings: GroupContents,
        first: Callable[[Head], Members] | None,
        remedy: str,
        *,
        overwrite: bool,
        replaced: Head | None = None,
    ) -> Head:
        """Make the folder under another name, and rename it when all of it is there."""

        def fill(scratch: Path, head: Head) -> Head:
            place = LocalPlace(scratch, self.layout)
            if first is not None:
                return place.commit(head, first(head))
            versions.write_head(place.root, head)
            return head

        with ExitStack() as turn:

            def refuse_others() -> None:
                self._refuse_others()
                if replaced is not None:  # and nobody follows it until this one stands there
                    turn.close()  # of the call before the work of writing
                    turn.enter_context(versions.locked(self.root))
                    versions.check_current(self.root, replaced)

            return persistence.create_store(
                self.path, settings, fill, remedy, overwrite, refuse_others
            )

    def check_writable(self, remedy: str) -> None:  # noqa: ARG002 - `is_free` looks for others
        """Look at the folder above it, or the first one above that which is there."""
        above = next(folder for folder in self.path.absolute().parents if folder.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            what = "cannot be written" if above.is_dir() else "is no folder"
            raise StoreError(f"{self.path} cannot be made: {above} {what}; choose another path")

    def head_before(
        self,
        settings: GroupContents,
        replaced: Head | None = None,  # noqa: ARG002 - of object stores numbers go on
    ) -> Head:
        """Begin from the settings."""
        return Head.before_first(settings.digest)

    def is_free(self) -> bool:
        """Look for a folder with anything in it."""
        return not self.path.exists() or (self.path.is_dir() and not any(self.path.iterdir()))

    def _refuse_others(self) -> None:
        others = versions.others(self.path, {"zarr.json", self.layout.part})
        others |= versions.others(self.root, set())
        if others:
            raise StoreError(
                f"{self.path} also holds {min(others)!r}, so it is never overwritten; choose "
                f"another path, or move that away."
            )

    def settings(self) -> GroupContents:
        """Return the Zarr group that the folder is."""
        return persistence.read_group(self.path, self.layout.kind)

    def newest(self) -> int:
        """Return the highest number of a folder."""
        return versions.newest(self.root)

    def read_newest(self, origin: Origin, read: ReadVersion[T]) -> tuple[T | None, Head]:
        """Compare the folders with the record beside them."""
        return versions.read_newest(self.root, origin, read)

    def _member(self, version: int, member: str) -> Path:
        folder = versions.folder_of(self.root, version)
        return folder if self.layout.flat else folder / member

    def where(self, version: int, member: str) -> str:
        """Return its path."""
        return str(self._member(version, member))

    def read(
        self,
        version: int,
        member: str,
        kind: str,
        find_problem: FindProblem | None = None,
    ) -> GroupContents:
        """Read a Zarr group."""
        return persistence.read_group(self._member(version, member), kind, find_problem)

    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Look for the Zarr groups one by one."""
        for version, member in sorted(needed):
            if not (self._member(version, member) / "zarr.json").is_file():
                return version, member
        return None

    def check_current(self, head: Head) -> None:
        """Compare with the folders, and with the record beside them."""
        versions.check_current(self.root, head)

    def commit(
        self,
        head: Head,
        members: Members,
        keep: int | None = 2,  # noqa: ARG002 - a folder is there until it is swept
    ) -> Head:
        """Fill a folder under another name, and rename it."""

        def fill(scratch: Path) -> str:
            if not self.layout.flat:
                scratch.mkdir(exist_ok=True)
            for name, contents in members.items():
                storage.fill_group(scratch if self.layout.flat else scratch / name, contents)
            return members[MAIN].digest

        return versions.commit(self.root, head, fill)

    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Remove folders of members."""
        versions.sweep(self.root, keep)
