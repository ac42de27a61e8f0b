"""Where a stream or a stored tree is kept, apart from what it keeps there.

A `Place` holds settings, which are made once, and numbered versions. A version is added whole or
not at all, right after the one before it, and by one writer; its members are Zarr groups, which
later versions may go on using. `LocalPlace` is a folder on a disk, and `RemotePlace` of `remote`
one of an object store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from daskcoreset.constructions.tree import persistence
from daskcoreset.core import storage
from daskcoreset.core.storage import GroupContents
from daskcoreset.core.typing import AnyArray

# Names and contents, made one after the other while a version is written.
Members: TypeAlias = Iterable[tuple[str, GroupContents]]

Arrays: TypeAlias = dict[str, AnyArray]

# The member that says what a version is; a version of a stream has no other one.
MAIN = "manifest"


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

    @property
    @abstractmethod
    def path(self) -> Path | str:
        """Where it is: a path, or a URL without secrets."""

    @property
    def name(self) -> str:
        """What messages and provenance call it."""
        return str(self.path)

    @abstractmethod
    def create(
        self, settings: GroupContents, first: Members | None, remedy: str, overwrite: Any
    ) -> int:
        """Make it, whole or not at all; return its version, 0 where there is no `first`.

        Parameters
        ----------
        settings : GroupContents
        first : members, optional
            Of the first version.
        remedy : str
            What to do where something is there.
        overwrite : bool
            Whether to replace a place of this kind that is there.

        Raises
        ------
        StoreError
            Something is there, or it cannot be written. What was there is unchanged.
        """

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the settings; an error where there are none of this layout's kind."""

    @abstractmethod
    def newest(self) -> int:
        """Return the highest version; 0 before the first."""

    @abstractmethod
    def read(self, version: int, member: str, kind: str) -> tuple[Arrays, dict[str, Any]]:
        """Return arrays and attributes of a member of a version; an error where it is damaged."""

    @abstractmethod
    def where(self, version: int, member: str) -> str:
        """Return what messages call a member."""

    @abstractmethod
    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Return the first member, given with its version, that is not there; None if all are."""

    @abstractmethod
    def commit(self, version: int, members: Members) -> None:
        """Add a version, of which `MAIN` is the last member.

        Raises
        ------
        StoreError
            Another writer was first, or it cannot be written. What was there is unchanged.
        """

    @abstractmethod
    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Remove members that ``keep(version, member)`` denies, and leftovers of killed writers."""

    def check_current(self, version: int) -> None:
        """Check, before the work of a change, that `version` is the newest, and can be followed."""
        if (found := self.newest()) != version:
            raise persistence.overtaken_error(self.name, found, version + 1)

    @property
    def first_index(self) -> int:
        """The number of the first node of a change."""
        return 0


class LocalPlace(Place):
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
        self, settings: GroupContents, first: Members | None, remedy: str, overwrite: Any
    ) -> int:
        """Make the folder under another name, and rename it."""

        def fill(scratch: Path) -> None:
            if first is not None:
                persistence.commit(scratch / self.layout.part, 1, self._filled_by(first))

        persistence.create_store(self.path, settings, fill, remedy, overwrite)
        return 0 if first is None else 1

    def settings(self) -> dict[str, Any]:
        """Return the attributes of the Zarr group that the folder is."""
        kind, version = self.layout.kind, persistence.SCHEMA_VERSION
        return storage.read_group(self.path, kind=kind, schema_version=version)[1]

    def newest(self) -> int:
        """Return the highest number of a folder."""
        return persistence.newest(self.root)

    def _member(self, version: int, member: str) -> Path:
        folder = persistence.folder_of(self.root, version)
        return folder if self.layout.flat else folder / member

    def where(self, version: int, member: str) -> str:
        """Return its path."""
        return str(self._member(version, member))

    def read(self, version: int, member: str, kind: str) -> tuple[Arrays, dict[str, Any]]:
        """Read a Zarr group."""
        path = self._member(version, member)
        return storage.read_group(path, kind=kind, schema_version=persistence.SCHEMA_VERSION)

    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Look for the Zarr groups one by one."""
        for version, member in sorted(needed):
            if not (self._member(version, member) / "zarr.json").is_file():
                return version, member
        return None

    def commit(self, version: int, members: Members) -> None:
        """Fill a folder under another name, and rename it."""
        persistence.commit(self.root, version, self._filled_by(members))

    def _filled_by(self, members: Members) -> Callable[[Path], None]:
        def fill(scratch: Path) -> None:
            if not self.layout.flat:
                scratch.mkdir()
            for name, contents in members:
                storage.fill_group(scratch if self.layout.flat else scratch / name, contents)

        return fill

    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Remove folders of members."""
        persistence.sweep(self.root, keep)
