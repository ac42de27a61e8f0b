"""The place of a stream or a stored tree, apart from its contents.

A `Place` holds settings, which are made once, and numbered versions. A version is added whole or
not at all, right after the one before it, and by one writer. Its members are Zarr groups, which
later versions may use as well. `LocalPlace` of `local` is a folder on a disk, `RemotePlace` of
`remote` one of an object store.

A version carries a *link*: the digests of the settings and of the version before it. A manifest has
the digests of its nodes, too. So the digest of a version covers all that led to it. The newest
version is recorded a second time, as a `Head`, since no link can say what came after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from daskcoreset.core.errors import StoreError
from daskcoreset.storage.group import GroupContents

T = TypeVar("T")

# The member that says what a version is. A version of a stream has no other one.
MAIN = "manifest"

# What a version consists of, by name. `MAIN` is the last, and its digest is that of the version.
Members: TypeAlias = Mapping[str, GroupContents]

# Returns what is wanted of a version, its link, and its digest.
ReadVersion: TypeAlias = Callable[[int], tuple[T, Mapping[str, str], str]]

_REMEDY = "restore it from a copy"


@dataclass(frozen=True)
class Layout:
    """How a stream or tree lies in its place.

    Attributes
    ----------
    kind : str
        Kind of its Zarr group.
    part : str
        Folder of its versions.
    """

    kind: str
    part: str


@dataclass(frozen=True)
class Head:
    """A version, and what tells it from any other.

    Attributes
    ----------
    settings : str
        Digest of the settings.
    version : int
        0 before the first.
    digest : str
        Digest of the version, or of the settings before the first version.
    """

    settings: str
    version: int
    digest: str

    @property
    def link(self) -> dict[str, str]:
        """The record of earlier versions in the version after it."""
        return {"settings": self.settings, "previous": self.digest}

    def followed_by(self, digest: str) -> Head:
        """Return the version after it."""
        return Head(self.settings, self.version + 1, digest)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Head:
        """Return the head of the values of `to_json`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If they are of another form.
        """
        head = cls(str(values["settings"]), values["version"], str(values["digest"]))
        if type(head.version) is not int or head.version < 0:
            raise ValueError(f"version {head.version!r}")
        return head


class OvertakenError(StoreError):
    """Another writer was first: nothing was written, and what it wrote is there."""


class UnansweredError(StoreError):
    """No answer came to a change, which was made as a whole or not at all."""


def overtaken_error(where: str, version: int, based_on: Head) -> OvertakenError:
    """Return the error of a change of a version that is not the newest one any more."""
    there = f"{'another ' * (version == based_on.version)}version {version} is there"
    return OvertakenError(
        f"{where}: another writer has changed it since it was opened ({there}, this change is "
        f"based on {based_on.version}); nothing was written",
        remedy="open it again, a view by CoresetTree.follow, and repeat the change",
    )


def _check_newest(
    where: str, found: Head, link: Mapping[str, str] | None, recorded: Head | None
) -> None:
    """Check that the newest version that is there is the newest one that was written.

    A writer that is killed between its version and the record leaves a record that is one version
    behind, which the next writer mends.
    """
    settings = {found.settings, (link or found.link).get("settings")}
    if recorded is None or settings != {recorded.settings}:
        raise StoreError(
            f"{where}: its settings, its newest version and the record of that do not belong "
            "together",
            remedy=f"{_REMEDY}",
        )
    if found.version < recorded.version:
        raise StoreError(
            f"{where}: version {recorded.version} is missing, and the newest one there is "
            f"{found.version}",
            remedy=f"{_REMEDY}",
        )
    expected = found.digest
    if found.version == recorded.version + 1 and link is not None:
        expected = str(link.get("previous"))
    # Further behind are only heads of writers without locks that overtook one another.
    if found.version <= recorded.version + 1 and recorded.digest != expected:
        raise StoreError(
            f"{where}: version {found.version} is not the one that followed", remedy=f"{_REMEDY}"
        )


class Unmade(NamedTuple):
    """The settings that the first commit makes a place of.

    Attributes
    ----------
    settings : GroupContents
    remedy : str
        Remedy if something else is there by then.
    overwrite : bool
        Whether what is there is replaced.
    replaced : Head or None
        The newest version of what is there. Another one is not replaced.
    """

    settings: GroupContents
    remedy: str
    overwrite: bool
    replaced: Head | None


class Place(ABC):
    """Settings and versions of a stream or tree."""

    layout: Layout
    unmade: Unmade | None = None

    @property
    @abstractmethod
    def path(self) -> Path | str:
        """A path, or a URL without secrets."""

    @property
    def name(self) -> str:
        """Name in messages and the provenance."""
        return str(self.path)

    def is_same(self, other: Place) -> bool:
        """Whether another place is this one."""
        return self.path == other.path

    # --- reading -------------------------------------------------------------------------

    @abstractmethod
    def is_free(self) -> bool:
        """Whether nothing is there."""

    @abstractmethod
    def settings(self) -> GroupContents:
        """Return the settings. An error if this layout's kind is missing."""

    @abstractmethod
    def newest(self) -> int:
        """Return the highest version; 0 before the first."""

    @abstractmethod
    def newest_and_head(self) -> tuple[int, Head | None]:
        """Return the highest version, and the record of the newest one, which is never ahead."""

    def read_newest(self, settings: str, read: ReadVersion[T]) -> tuple[T | None, Head]:
        """Read the newest version, and check that it is the newest one that was written.

        Parameters
        ----------
        settings : str
            Digest of the settings.
        read : callable

        Returns
        -------
        value : object or None
            Result of `read`. None before the first version.
        head : Head

        Raises
        ------
        StoreError
            If a version is damaged, missing or of another store.
        """
        seen = version, recorded = self.newest_and_head()
        try:
            value, link, digest = read(version) if version else (None, None, settings)
            found = Head(settings, version, digest)
            _check_newest(self.name, found, link, recorded)
        except StoreError:
            if self.newest_and_head() == seen:
                raise
            # Two changes were made in the meantime, and this version swept away.
            return self.read_newest(settings, read)
        return value, found

    @abstractmethod
    def read(self, version: int, member: str, kind: str) -> GroupContents:
        """Return a member of a version. An error if it is missing or damaged."""

    @abstractmethod
    def where(self, version: int, member: str) -> str:
        """Return what messages call a member."""

    @abstractmethod
    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Return the first member, given with its version, that is not there. None if all are."""

    # --- writing -------------------------------------------------------------------------

    @abstractmethod
    def create(
        self,
        settings: GroupContents,
        remedy: str,
        *,
        head: Head | None = None,
        members: Members | None = None,
        overwrite: bool = False,
        replaced: Head | None = None,
    ) -> Head:
        """Make it, whole or not at all.

        Parameters
        ----------
        settings : GroupContents
        remedy : str
            Remedy if something is there.
        head : Head, optional
            The head before the first version, by `begin`.
        members : Members, optional
            Members of the first version.
        overwrite : bool, default=False
            Whether to replace a place of this kind that is there.
        replaced : Head, optional
            The newest version of the place that is there. Another one is not replaced.

        Returns
        -------
        Head

        Raises
        ------
        StoreError
            If something is there, or it cannot be written. The place is unchanged.
        """

    @abstractmethod
    def first_head(self, settings: GroupContents) -> Head:
        """Return what the first version follows that `create` makes."""

    @abstractmethod
    def check_writable(self, remedy: str) -> None:
        """Check, before the work of a first version, that it could be made here."""

    def begin(
        self,
        settings: GroupContents,
        remedy: str,
        *,
        overwrite: bool = False,
        replaced: Head | None = None,
    ) -> Head:
        """Let the first commit make the place. Return what the first version follows.

        The settings are written with the first version, in one step. A first refresh of a view
        that ends in an error or a kill leaves nothing behind.
        """
        self.check_writable(remedy)
        self.unmade = Unmade(settings, remedy, overwrite, replaced)
        return self.first_head(settings)

    def check_current(self, head: Head) -> None:
        """Check, before the work of a change, that a version is the newest, and can be followed."""
        unmade = self.unmade
        if unmade is None:
            self._check_current(head)
        elif unmade.replaced is not None:
            self._check_current(unmade.replaced)
        elif not (unmade.overwrite or self.is_free()):
            raise overtaken_error(self.name, self.newest(), head)

    def commit(self, head: Head, members: Members, keep: int | None = 2) -> Head:
        """Add the version after `head`.

        Parameters
        ----------
        head : Head
        members : Members
        keep : int or None, default=2
            Versions that can be read after it. None for all.

        Returns
        -------
        Head

        Raises
        ------
        StoreError
            If another writer was first, or it cannot be written. The place is unchanged.
        """
        if self.unmade is None:
            return self._commit(head, members, keep)
        settings, remedy, overwrite, replaced = self.unmade
        try:
            after = self.create(
                settings,
                remedy,
                head=head,
                members=members,
                overwrite=overwrite,
                replaced=replaced,
            )
        except StoreError as error:
            if not overwrite and not self.is_free():
                raise overtaken_error(self.name, self.newest(), head) from error
            raise
        self.unmade = None
        return after

    @abstractmethod
    def _check_current(self, head: Head) -> None:
        """Do as `check_current`, of a place that is made."""

    @abstractmethod
    def _commit(self, head: Head, members: Members, keep: int | None) -> Head:
        """Do as `commit`, of a place that is made."""

    @abstractmethod
    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Remove members that ``keep(version, member)`` denies, and leftovers of killed writers."""

    @property
    def first_index(self) -> int:
        """The number of the first node of a change."""
        return 0


# --- what an object holds -----------------------------------------------------------------


@dataclass(frozen=True)
class _Change(Generic[T]):
    """A change of which it is not known yet whether it was made.

    Attributes
    ----------
    place : Place
    head : Head
        The newest version of the place, if it was.
    kind : str
        Kind of the group that describes a version.
    value : object
        The value that is held then.
    """

    place: Place
    head: Head
    kind: str
    value: T

    def was_made(self) -> bool:
        """Look at the place. False if another writer has changed it since."""
        place = self.place
        if place.unmade is not None and place.is_free():
            return False

        def read(version: int) -> tuple[None, Mapping[str, str], str]:
            contents = place.read(version, MAIN, self.kind)
            return None, link_of(contents), contents.digest

        made = place.read_newest(place.settings().digest, read)[1] == self.head
        if made:
            place.unmade = None
        return made


def link_of(contents: GroupContents) -> Mapping[str, str]:
    """Return the link of a version."""
    link: Any = contents.attributes.get("link")
    return link if isinstance(link, Mapping) else {}


class Kept(Generic[T]):
    """A value that represents the newest version of a place which its object has made or seen.

    A place makes a change by one step, and the object goes on from it once that has returned. After
    a `KeyboardInterrupt` between the two, it looks at the place when it is used again.

    Parameters
    ----------
    value : object
        Never changed itself: another one takes its place.
    """

    def __init__(self, value: T) -> None:
        self._value = value
        self._unknown: _Change[T] | None = None

    @property
    def value(self) -> T:
        """The value, after a look at the place if the last change was interrupted.

        Raises
        ------
        StoreError, OutOfTimeError
            If the place does not read then.
        """
        if self._unknown is not None:
            self._settle(self._unknown)
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        self._value = value

    @property
    def last_known(self) -> T:
        """The value, or the one before if the place does not read: for what never fails."""
        with suppress(OSError):  # among which are errors of stores and of time that has passed
            return self.value
        return self._value

    def _settle(self, change: _Change[T]) -> None:
        try:
            made = change.was_made()
        except StoreError as error:
            raise StoreError(
                f"{change.place.name}: the last change was interrupted, and its "
                f"result cannot be read ({error}). It is complete or was not made",
                remedy="try again when the store can be read, or open the tree again",
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
            The value that is held then.

        Raises
        ------
        StoreError
            As of `Place.commit`. The value is the one before.
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
