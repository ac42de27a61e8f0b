r"""Streams and stored trees on object stores: every change by one conditional write.

An object store has no renames and no locks that a killed process gives back. It writes one object
whole or not at all, though, and can do so on a condition. The root's ``zarr.json`` holds the
settings and the *head*: the newest version and the tokens of the last ones. A change

1. reads the head,
2. writes its members, each one object under a name that no other writer has, and
3. replaces the head, if it still is the one that was read (``If-Match``).

A writer that is killed before the third step has changed nothing, and of two writers the second is
refused. No clock decides anything: a member of a version up to the newest one that this version
does not need can never be needed, since its writer's condition cannot hold any more, so that it is
swept, however young it is. The list of objects is asked for nothing else, and may be late.

Where the answer to the third step is lost, the head is read again: the writer's token among its
tokens says that the change was made, even if others have changed the tree since.

Why this and not Icechunk, which has transactions too: in ``benchmarks/object_store.py`` an append
takes a third of the time and a quarter of the requests, what is stored is the same Zarr groups that
lie on a local disk, and nothing has to expire by the clock.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.places import MAIN, Arrays, Layout, LocalPlace, Members, Place
from daskcoreset.core import storage
from daskcoreset.core.errors import StoreError
from daskcoreset.core.objects import ObjectFolder, RefusedError, find_folder
from daskcoreset.core.packing import files_of, pack, store_of, unpack
from daskcoreset.core.storage import GroupContents
from daskcoreset.core.validation import check_flag

_ROOT = "zarr.json"

# Changes of others, between a lost answer and the next look, after which it stays unknown.
_N_TOKENS = 64

# Times that a change is sent whose answers are lost, and seconds before the second one.
_N_SENT = 4
_PAUSE = 0.2

# Objects that one request lists.
_PAGE = 1000

_MEMBER = re.compile(r"(?P<version>\d{12})/(?P<name>[a-z]+)-(?P<id>[0-9a-f]+)\.zip")


@dataclass(frozen=True)
class Head:
    """The newest version of a place.

    Attributes
    ----------
    version : int
    tokens : tuple of str
        Of this version, the one before it, and so on.
    settings : dict
        What lies beside them.
    tag : mapping
        Tells this object from all others that were or will be there.
    """

    version: int
    tokens: tuple[str, ...]
    settings: dict[str, Any]
    tag: Any = field(default=None, repr=False)

    def token_of(self, version: int) -> str | None:
        """Return the token of a version that is not too old."""
        age = self.version - version
        return self.tokens[age] if 0 <= age < len(self.tokens) else None


class RemotePlace(Place):
    """A folder of an object store, whose versions are objects that its head refers to.

    Parameters
    ----------
    folder : ObjectFolder
    layout : Layout
    """

    def __init__(self, folder: ObjectFolder, layout: Layout) -> None:
        self.folder = folder
        self.layout = layout
        self._last: Head | None = None
        self._has_conditions = False
        self._n_listed = 0

    @property
    def path(self) -> str:
        """The URL, without secrets."""
        return self.folder.name

    # --- reading -------------------------------------------------------------------------

    def _find_head(self) -> Head | None:
        stored = self.folder.get(_ROOT)
        if stored is None:
            return None
        _, attributes = storage.read_group(
            store_of({_ROOT: stored.data}),
            kind=self.layout.kind,
            schema_version=persistence.SCHEMA_VERSION,
            where=self.name,
        )
        with storage.refuse_inconsistent(f"{self.name}: its head is not consistent"):
            values = attributes.pop("head")
            tokens = tuple(values["tokens"])
            self._last = Head(int(values["version"]), tokens, attributes, stored.tag)
            if self._last.version < 0 or not tokens or not all(map(_is_token, tokens)):
                raise ValueError(f"version {values['version']} with {len(tokens)} tokens")
        return self._last

    def _head(self) -> Head:
        head = self._find_head()
        if head is None:
            raise StoreError(f"{self.name}: nothing is there; check the URL and the endpoint")
        return head

    def settings(self) -> dict[str, Any]:
        """Return what lies beside the head."""
        return dict(self._head().settings)

    def newest(self) -> int:
        """Return the version of the head."""
        return self._head().version

    def _key(self, version: int, member: str) -> str:
        token = None
        if member == MAIN:
            head = self._last
            if head is None or head.token_of(version) is None:
                head = self._head()
            token = head.token_of(version)
            if token is None:
                raise StoreError(
                    f"{self.name}: version {version} is not there any more; open it again"
                )
        return self._name_of(version, member, token)

    def _name_of(self, version: int, member: str, token: str | None = None) -> str:
        name = member if token is None else f"{member}-{token}"
        return f"{self.layout.part}/{version:012d}/{name}.zip"

    def where(self, version: int, member: str) -> str:
        """Return its URL."""
        return f"{self.name}/{self._key(version, member)}"

    def read(self, version: int, member: str, kind: str) -> tuple[Arrays, dict[str, Any]]:
        """Read one object."""
        key = self._key(version, member)
        name = f"{self.name}/{key}"
        stored = self.folder.get(key)
        if stored is None:
            raise StoreError(f"{name} is missing; restore it from a copy")
        packed = unpack(stored.data, name)
        schema_version = persistence.SCHEMA_VERSION
        return storage.read_group(packed, kind=kind, schema_version=schema_version, where=name)

    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Look in a list, and ask for what it leaves out, since it may be late."""
        if self.folder.read_only:  # a web server lists nothing; a node is missed when it is read
            return None
        listed = set(self.folder.keys(self.layout.part))
        for version, member in sorted(needed):
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

    def check_current(self, version: int) -> None:
        """Check also that there is more than a web server."""
        self._refuse_read_only()
        super().check_current(version)

    def _refuse_read_only(self) -> None:
        if self.folder.read_only:
            raise StoreError(
                f"{self.name} is served by a web server, which is only read; write to the object "
                f"store itself, by its own URL, or to a local disk"
            )

    def create(
        self, settings: GroupContents, first: Members | None, remedy: str, overwrite: Any
    ) -> int:
        """Write the first members, and then the head where there is none."""
        self._refuse_read_only()
        check_flag("overwrite", overwrite)
        before = self._find_head()
        if before is not None and not overwrite:
            raise StoreError(f"{self.name} exists; {remedy}")
        if before is None:
            for key in self.folder.keys():  # noqa: SIM118 - no dict
                if self._parse(key) is None:
                    raise StoreError(f"{self.name} exists and holds {key!r}; {remedy}")
        version = 0 if before is None else before.version
        version += first is not None
        if not self._write(version, first or (), dict(settings.attributes), before):
            raise StoreError(f"{self.name} exists since a moment ago; {remedy}")
        return version

    def commit(self, version: int, members: Members) -> None:
        """Write members, and then the head in place of the one before."""
        before = self._head()
        if before.version != version - 1 or not self._write(
            version, members, before.settings, before
        ):
            raise persistence.overtaken_error(self.name, self.newest(), version)

    def _write(
        self, version: int, members: Members, settings: dict[str, Any], before: Head | None
    ) -> bool:
        """Write members, and then the head that makes them the newest version.

        Returns
        -------
        bool
            False where another writer was first.
        """
        token = uuid4().hex
        written: list[str] = []
        try:
            if not self._has_conditions:
                self.folder.check_conditions(self._name_of(version, "probe", token))
                self._has_conditions = True
            for member, contents in members:
                written.append(self._name_of(version, member, token if member == MAIN else None))
                self.folder.put(written[-1], pack(contents))
            tokens = (token, *(before.tokens if before else ()))[:_N_TOKENS]
            values = {**settings, "head": {"version": version, "tokens": tokens}}
            kind, schema_version = self.layout.kind, persistence.SCHEMA_VERSION
            root = GroupContents({}, {}, values, kind, schema_version).checked()
            data = files_of(root)[_ROOT]
        except BaseException:
            self._delete(written)
            raise
        # From here on members may be needed, whatever interrupts this.
        try:
            made = self._swing(data, token, before)
        except RefusedError:
            self._delete(written)
            raise
        if not made:
            self._delete(written)
        return made

    def _swing(self, data: bytes, token: str, before: Head | None) -> bool:
        """Replace the head that was read; return False where it is another one by now.

        Raises
        ------
        RefusedError
            It was not replaced.
        StoreError
            Answers were lost, and it is not known whether it was replaced.
        """
        problem: StoreError | None = None
        tag = None if before is None else before.tag
        for attempt in range(_N_SENT):
            time.sleep(_PAUSE * (4**attempt - 1))
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
        raise StoreError(
            f"{self.name}: no answer came to the change, which was made as a whole or not at all; "
            f"open it again and look"
        ) from problem

    def _outcome(self, token: str, before: Head | None) -> bool | None:
        """Return whether a change was made; None where it may still be, or no answer comes."""
        try:
            now = self._find_head()
        except StoreError:
            return None
        if now is None or before is None:
            changed = now is not before
        else:
            changed = now.tag != before.tag
            if now.version - before.version > _N_TOKENS:  # so many changes of others since
                return None
        return True if now is not None and token in now.tokens else False if changed else None

    # --- leftovers -----------------------------------------------------------------------

    def _parse(self, key: str) -> tuple[int, str] | None:
        """Return version and name of a member; None for what is not ours."""
        part, _, name = key.partition("/")
        match = _MEMBER.fullmatch(name)
        if part != self.layout.part or match is None:
            return None
        member = match["name"] if match["name"] == MAIN else f"{match['name']}-{match['id']}"
        return int(match["version"]), member

    def _delete(self, keys: list[str]) -> None:
        with suppress(StoreError):  # a later sweep removes them
            self.folder.delete(keys)

    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Delete objects that a list has."""
        newest = self._last.version if self._last else 0
        # About one request of a list a change, however large the tree is.
        if newest % (1 + self._n_listed // _PAGE):
            return
        with suppress(StoreError):  # the change is made
            keys = self.folder.keys(self.layout.part)
            self._n_listed = len(keys)
            found = ((key, self._parse(key)) for key in keys)
            self._delete([key for key, member in found if member and not keep(*member)])


def _is_token(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


def place_at(
    argument: str, location: Any, layout: Layout, storage_options: Mapping[str, Any] | None = None
) -> Place:
    """Return the place of a path, a URL, or a Zarr store that wraps an object store.

    Parameters
    ----------
    argument : str
        What an error calls the location.
    location : path, str or zarr.abc.store.Store
    layout : Layout
    storage_options : mapping, optional
        As in `daskcoreset.core.objects.connect`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        It is none of these, or the options do not belong to it.
    """
    found = find_folder(argument, location, storage_options)
    return LocalPlace(found, layout) if isinstance(found, Path) else RemotePlace(found, layout)
