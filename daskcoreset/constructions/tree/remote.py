r"""Streams and stored trees on object stores: every change by one conditional write.

An object store has no renames and no locks that a killed process gives back. It writes one object
whole or not at all, though, and can do so on a condition. The root's ``zarr.json`` holds the
settings, the `Head`, and the tokens of the last changes, which nobody can guess. A token is part
of the name of a manifest, so the root has those of all versions that are kept. A change

1. reads the root,
2. writes its members, each one object under a name that no other writer has, and
3. replaces the root, if it still is the one that was read (``If-Match``).

A writer that is killed before the third step has changed nothing, and of two writers the second is
refused. No clock decides anything: a member of a version up to the newest one that this version
does not need can never be needed, since its writer's condition cannot hold any more, so that it is
swept, however young it is. The list of objects is asked for nothing else, and may be late.

Where the answer to the third step is lost, the root is read again: the writer's token among its
tokens says that the change was made, even if others have changed the tree since.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from daskcoreset.constructions.tree.local import LocalPlace
from daskcoreset.constructions.tree.persistence import SCHEMA_VERSION
from daskcoreset.constructions.tree.places import (
    MAIN,
    Head,
    Layout,
    Members,
    Place,
    UnansweredError,
    overtaken_error,
)
from daskcoreset.core.deadline import pause
from daskcoreset.core.errors import MissingPathError, OutOfTimeError, StoreError
from daskcoreset.core.validation import check_flag
from daskcoreset.storage import group
from daskcoreset.storage.group import GroupContents, refuse_inconsistent
from daskcoreset.storage.objects import ObjectFolder, RefusedError, Stored, find_folder
from daskcoreset.storage.packing import files_of, pack, store_of, unpack

if TYPE_CHECKING:
    from zarr.abc.store import Store

_ROOT = "zarr.json"

# Changes of others, between a lost answer and the next look, after which it stays unknown. The root
# has as many tokens, or as many as versions are kept.
_N_TOKENS = 64

# Times that a change is sent whose answers are lost, and seconds before the second one.
_N_SENT = 4
_PAUSE = 0.2

# Objects that one request lists.
_PAGE = 1000

_MEMBER = re.compile(r"(?P<version>\d{12})/(?P<name>[a-z]+)-(?P<id>[0-9a-f]+)\.zip")


@dataclass(frozen=True)
class Root:
    """The object at the root of a place.

    Attributes
    ----------
    settings : GroupContents
    head : Head
        The newest version.
    tokens : tuple of str
        Tokens of the change that made it, the one before it, and so on.
    tag : mapping
        Tells this object from all others that were or will be there.
    """

    settings: GroupContents
    head: Head
    tokens: tuple[str, ...]
    tag: Any = field(default=None, repr=False)

    @classmethod
    def read(cls, stored: Stored, name: str, kind: str) -> Root:
        """Return the root of what was stored."""
        contents = _read(store_of({_ROOT: stored.data}), name, kind)
        with refuse_inconsistent(f"{name}: its root is not consistent"):
            attributes: dict[str, Any] = dict(contents.attributes)
            values = attributes.pop("head")
            settings = replace(contents, attributes=attributes)
            return cls(settings, Head.from_json(values), tuple(values["tokens"]), stored.tag)

    def to_bytes(self) -> bytes:
        """Return what `read` reads."""
        head = {**self.head.to_json(), "tokens": self.tokens}
        attributes = {**self.settings.attributes, "head": head}
        contents = replace(self.settings, attributes=attributes).checked()
        return files_of(contents)[_ROOT]

    def token_of(self, version: int) -> str | None:
        """Return the token of a version that is not too old."""
        age = self.head.version - version
        return self.tokens[age] if 0 <= age < len(self.tokens) else None


class RemotePlace(Place):
    """A folder of an object store, whose versions are objects that its root refers to.

    Parameters
    ----------
    folder : ObjectFolder
    layout : Layout
    """

    def __init__(self, folder: ObjectFolder, layout: Layout) -> None:
        self.folder = folder
        self.layout = layout
        self._last: Root | None = None
        self._has_conditions = False
        self._n_listed = 0

    @property
    def path(self) -> str:
        """The URL, without secrets."""
        return self.folder.name

    def is_same(self, other: Place) -> bool:
        """Compare servers and keys, too: another one may have a folder of the same URL."""
        return isinstance(other, RemotePlace) and self.folder.store == other.folder.store

    # --- reading -------------------------------------------------------------------------

    def _find_root(self) -> Root | None:
        stored = self.folder.get(_ROOT)
        if stored is None:
            return None
        self._last = Root.read(stored, self.name, self.layout.kind)
        return self._last

    def _root(self) -> Root:
        root = self._find_root()
        if root is None:
            raise MissingPathError(
                f"{self.name}: nothing is there", remedy="check the URL and the endpoint"
            )
        return root

    def is_free(self) -> bool:
        """Look for the root."""
        return self._find_root() is None

    def settings(self) -> GroupContents:
        """Return what lies beside the head."""
        return self._root().settings

    def newest(self) -> int:
        """Return the version of the head."""
        return self._root().head.version

    def newest_and_head(self) -> tuple[int, Head | None]:
        """Return what the root says."""
        head = self._root().head
        return head.version, head

    def _key(self, version: int, member: str) -> str:
        if member != MAIN:
            return self._name_of(version, member)
        token = self._token(version)
        if token is None:
            raise StoreError(f"{self.name}: version {version} is gone", remedy="open it again")
        return self._name_of(version, member, token)

    def _token(self, version: int) -> str | None:
        root = self._last
        if root is None or root.token_of(version) is None:
            root = self._root()
        return root.token_of(version)

    def _name_of(self, version: int, member: str, token: str | None = None) -> str:
        name = member if token is None else f"{member}-{token}"
        return f"{self.layout.part}/{version:012d}/{name}.zip"

    def where(self, version: int, member: str) -> str:
        """Return its URL."""
        return f"{self.name}/{self._key(version, member)}"

    def read(self, version: int, member: str, kind: str) -> GroupContents:
        """Read one object."""
        key = self._key(version, member)
        where = f"{self.name}/{key}"
        stored = self.folder.get(key)
        if stored is None:
            raise StoreError(f"{where} is missing", remedy="restore it from a copy")
        return _read(unpack(stored.data, where), where, kind)

    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Look in a list, and ask for what it leaves out, since it may be late."""
        members = sorted(needed)
        for version, member in members:
            if member == MAIN and self._token(version) is None:
                return version, member
        if self.folder.read_only:  # a web server lists nothing; a node is missed when it is read
            return None
        listed = set(self.folder.keys(self.layout.part)) if len(members) > 1 else set()
        for version, member in members:
            key = self._key(version, member)
            if key not in listed and not self.folder.has(key):
                return version, member
        return None

    # --- writing -------------------------------------------------------------------------

    @property
    def first_index(self) -> int:
        """A number that nobody can guess."""
        # So that no two writers give a member the same name, and none can guess another's.
        return secrets.randbelow(2**62)

    def _check_current(self, head: Head) -> None:
        self._refuse_read_only()  # a web server takes no change
        self._base(head)

    def _base(self, head: Head) -> Root:
        root = self._root()
        if root.head != head:
            raise overtaken_error(self.name, root.head.version, head)
        return root

    def _refuse_read_only(self) -> None:
        if self.folder.read_only:
            raise StoreError(
                f"{self.name} is served by a web server, which is read-only",
                remedy="write to the URL of the object store itself, or to a local disk",
            )

    def first_head(self, settings: GroupContents) -> Head:
        """Continue the numbers, so that a version is never made twice in a place."""
        root = self._find_root()
        return Head(settings.digest, root.head.version if root else 0, settings.digest)

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
        """Write the first members, and then the root if none is there, or in place of the old."""
        self._refuse_read_only()
        check_flag("overwrite", overwrite)
        before = self._find_root()
        if before is not None and not overwrite:
            raise StoreError(f"{self.name} exists", remedy=remedy)
        self._refuse_others(before, remedy)
        there = 0 if before is None else before.head.version
        start = Head(settings.digest, there, settings.digest)
        is_other = replaced is not None and (before is None or before.head != replaced)
        if is_other or head not in (None, start):
            raise overtaken_error(self.name, there, replaced or head or start)
        after = self._write(settings, start, members or {}, before)
        if after is None:
            raise StoreError(f"{self.name} was created a moment ago", remedy=remedy)
        return after

    def check_writable(self, remedy: str) -> None:
        """Look for foreign objects, and write an unknown object on a condition."""
        self._refuse_read_only()
        self._refuse_others(self._find_root(), remedy)
        self._check_conditions(self._name_of(1, "probe", uuid4().hex))

    def _check_conditions(self, key: str) -> None:
        if not self._has_conditions:
            self.folder.check_conditions(key)
            self._has_conditions = True

    def _refuse_others(self, root: Root | None, remedy: str) -> None:
        """Refuse a folder without a root that holds more than a killed writer leaves."""
        if root is None:
            for key in self.folder.keys(most=_PAGE):
                member = self._parse(key)
                if member is None:
                    raise StoreError(f"{self.name} exists and holds {key!r}", remedy=remedy)
                if member[0] > 1:  # more than a writer leaves that is killed before the first root
                    raise StoreError(
                        f"{self.name}: its root is missing, and members of version {member[0]} "
                        "are there",
                        remedy="restore it from a copy, or choose another path",
                    )

    def _commit(self, head: Head, members: Members, keep: int | None) -> Head:
        """Write members, and then the root in place of the one before."""
        before = self._base(head)
        after = self._write(before.settings, head, members, before, keep)
        if after is None:
            raise overtaken_error(self.name, self.newest(), head)
        return after

    def _write(
        self,
        settings: GroupContents,
        head: Head,
        members: Members,
        before: Root | None,
        keep: int | None = 2,
    ) -> Head | None:
        """Write members, and then the root that makes them the version after `head`.

        Returns
        -------
        Head or None
            None where another writer was first.
        """
        after = head.followed_by(members[MAIN].digest) if members else head
        token = uuid4().hex
        tokens = (token, *(before.tokens if before else ()))
        tokens = tokens if keep is None else tokens[: max(keep, _N_TOKENS)]
        root = Root(settings, after, tokens)
        written: list[str] = []
        try:
            self._check_conditions(self._name_of(after.version, "probe", token))
            for member, contents in members.items():
                key = self._name_of(after.version, member, token if member == MAIN else None)
                written.append(key)
                self.folder.put(key, pack(contents))
        except BaseException:
            self._delete(written)
            raise
        # From here on members may be needed, whatever interrupts this.
        try:
            made = self._swing(root.to_bytes(), token, before)
        except RefusedError:
            self._delete(written)
            raise
        if not made:
            self._delete(written)
            return None
        self._last = root
        return after

    def _swing(self, data: bytes, token: str, before: Root | None) -> bool:
        """Replace the root that was read. Return False if it is another one by now.

        Raises
        ------
        RefusedError
            It was not replaced.
        StoreError, OutOfTimeError
            Answers were lost, and it is not known whether it was replaced.
        """
        try:
            return self._swing_until_known(data, token, before)
        except OutOfTimeError as error:
            raise OutOfTimeError(
                f"{error} The change is complete or was not made",
                remedy=f"open {self.name} again to see which",
            ) from None

    def _swing_until_known(self, data: bytes, token: str, before: Root | None) -> bool:
        problem: StoreError | None = None
        tag = None if before is None else before.tag
        for attempt in range(_N_SENT):
            pause(_PAUSE * (4**attempt - 1))
            try:
                if self.folder.put_if(_ROOT, data, tag) is not None:
                    return True
            except RefusedError:
                if not attempt:
                    raise
            except StoreError as error:
                problem = error
            made = self._outcome(token, before)
            if made is not None:
                return made
        raise UnansweredError(
            f"{self.name}: no answer came to the change, which was made as a whole or not at all",
            remedy="open it again and look",
        ) from problem

    def _outcome(self, token: str, before: Root | None) -> bool | None:
        """Return whether a change was made. None where it may still be, or no answer comes."""
        try:
            now = self._find_root()
        except StoreError:
            return None
        if now is None or before is None:
            changed = now is not before
        else:
            changed = now.tag != before.tag
            # After so many changes of others.
            if now.head.version - before.head.version > _N_TOKENS:
                return None
        return True if now is not None and token in now.tokens else False if changed else None

    # --- leftovers -----------------------------------------------------------------------

    def _parse(self, key: str) -> tuple[int, str] | None:
        """Return version and name of a member. None for what is not ours."""
        part, _, name = key.partition("/")
        match = _MEMBER.fullmatch(name)
        if part != self.layout.part or match is None:
            return None
        member = match["name"] if match["name"] == MAIN else f"{match['name']}-{match['id']}"
        return int(match["version"]), member

    def _delete(self, keys: list[str]) -> None:
        with suppress(StoreError, OutOfTimeError):  # a later sweep removes them
            self.folder.delete(keys)

    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Delete objects that a list has."""
        newest = self._last.head.version if self._last else 0
        # About one request of a list a change, however large the tree is.
        if newest % (1 + self._n_listed // _PAGE):
            return
        with suppress(StoreError, OutOfTimeError):  # the change is made
            keys = self.folder.keys(self.layout.part)
            self._n_listed = len(keys)
            found = ((key, self._parse(key)) for key in keys)
            self._delete([key for key, member in found if member and not keep(*member)])


def _read(store: Store, where: str, kind: str) -> GroupContents:
    from zarr.storage import StorePath

    return group.read_contents(StorePath(store), where, kind, SCHEMA_VERSION)


def place_at(
    argument: str, location: Any, layout: Layout, storage_options: Mapping[str, Any] | None = None
) -> Place:
    """Return the place of a path, a URL, or a Zarr store that wraps an object store.

    Parameters
    ----------
    argument : str
        Name of the location in errors.
    location : path, str or zarr.abc.store.Store
    layout : Layout
    storage_options : mapping, optional
        As in `daskcoreset.storage.objects.connect`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        It is something else, or the options do not belong to it.
    """
    found = find_folder(argument, location, storage_options)
    return LocalPlace(found, layout) if isinstance(found, Path) else RemotePlace(found, layout)
