"""The place of a stream or a stored tree: immutable objects, and one root that is swapped.

The root is a Zarr group without arrays. It holds the settings, the number of the newest version,
and the names of the objects that describe the versions that are kept. A change writes new objects
and then replaces the root, if the root still is the one that the change is based on. So a change is
made as a whole or not at all, and the second of two writers is refused. The code is the same for a
folder on a disk and one of an object store.

The name of an object has the version that it was made for, and a digest. A writer only removes
objects of versions up to its own. No other writer needs them: a change that is based on an earlier
version is refused.

A lost answer is settled by a token in the root, which tells each change from all others.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import uuid4

from daskcoreset.constructions.tree.job import Settings
from daskcoreset.constructions.tree.shape import digest_of
from daskcoreset.core.deadline import pause
from daskcoreset.errors import MissingPathError, OutOfTimeError, OvertakenError, StoreError
from daskcoreset.execution.threads import in_threads
from daskcoreset.storage.disk import DiskFolder, find_folder
from daskcoreset.storage.group import GroupContents, group_files, read_files
from daskcoreset.storage.locations import RefusedError
from daskcoreset.storage.objects import ROOT, ObjectFolder

T = TypeVar("T")

# The files of an object, by name, and objects, by name.
Files: TypeAlias = Mapping[str, bytes]
Objects: TypeAlias = Mapping[str, Files]

# An object, or what a killed writer left of one.
_NAME = re.compile(r"\.?(?P<version>\d{12})-[0-9a-f]{16}(\.[0-9a-f]{32}\.daskcoreset-partial)?")

_PAGE = "page.json.gz"

# Changes of others, between a lost answer and the next look, after which it stays unknown.
_N_TOKENS = 16

# Seconds before each time that a change is sent whose answers are lost.
_PAUSES = (0.0, 0.6, 3.0, 12.0)

# Names that one request lists, and objects that are read at a time.
_N_LISTED = 1000
_N_THREADS = 16


def object_name(version: int, *content: str | bytes) -> str:
    """Return the name of an object that is made for a version, and identified by its content."""
    return f"{version:012d}-{digest_of(*content, size=8)}"


def version_of(name: str) -> int:
    """Return the version that an object was made for."""
    return int(name[:12])


def page_files(values: Any) -> Files:
    """Return the files of an object that holds plain JSON values."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return {_PAGE: gzip.compress(text.encode(errors="surrogatepass"), mtime=0)}


@dataclass(frozen=True)
class Root:
    """The root of a place, or a draft of the first one.

    Attributes
    ----------
    settings : mapping
        Plain JSON values.
    version : int
        0 before the first.
    history : sequence of str
        Names of the objects that describe the versions that are kept, the newest last.
    tokens : sequence of str
        Tokens of the last changes, the newest first.
    tag : object
        What the folder compares before it replaces the root. None if there is no root yet.
    """

    settings: Mapping[str, Any]
    version: int = 0
    history: Sequence[str] = ()
    tokens: Sequence[str] = ()
    tag: Any = field(default=None, repr=False, compare=False)

    @property
    def exists(self) -> bool:
        """Whether it was written or read."""
        return self.tag is not None

    @cached_property
    def digest(self) -> str:
        """Digest of the settings."""
        return digest_of(json.dumps(self.settings, sort_keys=True), size=8)

    def name_for(self, files: Files) -> str:
        """Return the name of an object that the next version is the first to need."""
        return object_name(self.version + 1, *files.values())

    def followed_by(self, name: str | None, keep: int | None) -> Root:
        """Return the root after a change. `name` is that of the object that describes it."""
        tokens = [uuid4().hex[:16], *self.tokens][:_N_TOKENS]
        if name is None:
            return replace(self, tokens=tokens)
        history = [*self.history, name][-(keep or 0) :]
        return replace(self, version=self.version + 1, history=history, tokens=tokens)


_OF_ROOT = [field.name for field in fields(Root) if field.compare]


@dataclass(eq=False)
class Place:
    """A folder with a root.

    Attributes
    ----------
    folder : DiskFolder or ObjectFolder
    kind : str
        Kind of the Zarr group.
    part : str
        Folder of the objects.
    """

    folder: DiskFolder | ObjectFolder
    kind: str
    part: str
    _pages: dict[str, Any] = field(default_factory=dict)
    _n_listed: int = 0

    @property
    def path(self) -> Path | str:
        """A path, or a URL without secrets."""
        return self.folder.path

    @property
    def name(self) -> str:
        """Name in messages and the provenance."""
        return self.folder.name

    # --- reading -------------------------------------------------------------------------

    def find(self) -> Root:
        """Return the root. One that does not exist is empty."""
        stored = self.folder.root()
        if stored is None:
            return Root({})
        values: Any = read_files({ROOT: stored.data}, self.name, self.kind).attributes
        return Root(**values, tag=stored.tag)

    def root(self) -> Root:
        """Return the root."""
        found = self.find()
        if not found.exists:
            raise MissingPathError(
                f"there is no {self.kind} at {self.name}",
                remedy="check the path, or the URL and the endpoint",
            )
        return found

    def newest(self, read: Callable[[Root], T]) -> T:
        """Return what `read` makes of the root: of the next one, if changes came in between."""
        root = self.root()
        while True:
            try:
                return read(root)
            except StoreError:
                now = self.root()
                if now == root:
                    raise
                root = now

    def where(self, name: str) -> str:
        """Return what messages call an object."""
        return f"{self.name}/{self.part}/{name}"

    def get(self, name: str) -> Files:
        """Return the files of an object."""
        files = self.folder.get(f"{self.part}/{name}")
        if files is None:
            raise StoreError(f"{self.where(name)} is missing", remedy="restore it from a copy")
        return files

    def read_pages(self, names: Sequence[str]) -> list[Any]:
        """Return what objects of `page_files` hold, and keep it for the next call."""
        if missing := [name for name in names if name not in self._pages]:
            found = in_threads(self._page, missing, _N_THREADS)
            self._pages |= zip(missing, found, strict=True)
        return [self._pages[name] for name in names]

    def _page(self, name: str) -> Any:
        data = self.get(name).get(_PAGE, b"")
        if object_name(version_of(name), data) != name:
            raise StoreError(f"{self.where(name)} is damaged", remedy="restore it from a copy")
        return json.loads(gzip.decompress(data))

    # --- writing -------------------------------------------------------------------------

    def draft(self, settings: Mapping[str, Any], remedy: str, *, overwrite: bool = False) -> Root:
        """Return the draft of a root, which the first commit writes.

        Raises
        ------
        StoreError
            If something is there that is not to be replaced, or it cannot be written.
        """
        found = self.find()
        self.check(found)
        if found.exists and not overwrite:
            raise StoreError(f"{self.name} exists", remedy=remedy)
        keys = self.folder.keys()
        there = ((key, self._parse(key)) for key in keys if key != ROOT)
        if others := [key for key, at in there if at is None or at[0] > found.version + 1]:
            first = min(others).rpartition("/")[2]
            raise StoreError(
                f"{self.name} exists and also holds {first!r}, so it is never overwritten",
                remedy="choose another path, or move that away",
            )
        if not found.exists:
            self.folder.check(f"{self.part}/{object_name(1, uuid4().hex)}")
        return replace(found, settings=settings, history=())

    def check(self, base: Root) -> None:
        """Check, before the work of a change, that a root is still there and can be replaced."""
        if self.folder.read_only:
            raise StoreError(
                f"{self.name} is served by a web server, which is read-only",
                remedy="write to the URL of the object store itself, or to a local disk",
            )
        if self.find().tokens != base.tokens:
            raise self._overtaken(base)

    def commit(self, base: Root, after: Root, objects: Objects) -> Root:
        """Write objects, and a root in place of the one that the change is based on.

        Raises
        ------
        OvertakenError
            Another writer was first.
        StoreError, OutOfTimeError
            It cannot be written, or no answer came.
        """
        values: Any = {name: getattr(after, name) for name in _OF_ROOT}
        data = group_files(GroupContents({}, {}, values, self.kind))[ROOT]
        begun = nullcontext(self.folder) if base.exists else self.folder.begun()
        try:
            with begun as folder:
                for name, files in objects.items():
                    folder.put(f"{self.part}/{name}", files)
                if folder is not self.folder:  # becomes it, with its root
                    return replace(after, tag=folder.swap(data, None))
        except StoreError:
            self.check(base)  # whoever is first clears away what the others were writing
            raise
        try:
            return self._swap(base, after, data)
        except OutOfTimeError as error:
            raise OutOfTimeError(
                f"{error} The change is complete or was not made",
                remedy=f"open {self.name} again to see which",
            ) from None

    def _swap(self, base: Root, after: Root, data: bytes) -> Root:
        problem: StoreError | None = None
        for number, seconds in enumerate(_PAUSES):
            pause(seconds)
            try:
                tag = self.folder.swap(data, base.tag)
                if tag is not None:
                    return replace(after, tag=tag)
            except (RefusedError, MissingPathError):
                if not number:
                    raise
            except StoreError as error:
                problem = error
            try:
                now = self.find()
            except StoreError:
                continue
            if after.tokens[0] in now.tokens:
                return replace(after, tag=now.tag)
            if now.tokens == base.tokens:
                continue  # it was not made, and may be made yet
            if now.version - base.version <= _N_TOKENS:
                raise self._overtaken(base)
        raise StoreError(
            f"{self.name}: no answer came to the change, which was made as a whole or not at all",
            remedy="open it again and look",
        ) from problem

    def _overtaken(self, base: Root) -> OvertakenError:
        return OvertakenError(
            f"{self.name}: another writer has changed it since it was opened at version "
            f"{base.version}, or it is gone; nothing was written",
            remedy="open it again, a view by CoresetTree.follow, and repeat the change",
        )

    # --- leftovers -----------------------------------------------------------------------

    def _parse(self, key: str) -> tuple[int, str] | None:
        """Return version and name of an object. None for what is not ours."""
        part, _, name = key.partition("/")
        match = _NAME.fullmatch(name) if part == self.part else None
        return None if match is None else (int(match["version"]), name)

    def sweep(self, root: Root, needed: Callable[[], Collection[str]]) -> None:
        """Remove objects that no version needs which is kept, and leftovers of killed writers."""
        # About one request of a list a change, however large the tree is.
        if root.version % (1 + self._n_listed // _N_LISTED):
            return
        with suppress(StoreError, OutOfTimeError):  # the change is made
            kept = needed()
            self._pages = {name: self._pages[name] for name in kept if name in self._pages}
            keys = self.folder.keys()
            self._n_listed = len(keys)
            found = [(key, self._parse(key)) for key in keys]
            self.folder.remove(
                [key for key, at in found if at and at[0] <= root.version and at[1] not in kept]
            )


def place_at(argument: str, location: Any, kind: str, part: str, options: Any = None) -> Place:
    """Return the place of a path, a URL, or a Zarr store that wraps an object store."""
    return Place(find_folder(argument, location, options), kind, part)


class Kept(Generic[T]):
    """Base of a tree and a stream, whose state is a version that it has made or seen.

    A version is a dataclass with `place` and `root`. A place makes a change by one step, and the
    object goes on from it once that has returned. After an error or an interrupt in between, it
    looks at the place when it is used again.
    """

    # The state after a change that may have been made.
    _unknown: T | None = None

    def __init__(self, settings: Settings, last: T) -> None:
        self._settings, self._last = settings, last

    def __bool__(self) -> bool:
        return True

    @property
    def _now(self) -> T:
        """The state, after a look at the place if the last change did not return."""
        if self._unknown is not None:
            after: Any = self._unknown
            now = after.place.root() if after.root.version > 1 else after.place.find()
            if after.root.tokens[0] in now.tokens:
                self._last = replace(after, root=replace(after.root, tag=now.tag))
            self._unknown = None
        return self._last

    def _commit(self, after: Any, name: str | None, keep: int | None, objects: Objects) -> None:
        """Make the change from the root of a version to the version, and go on from that.

        `name` is that of the object that describes the version.
        """
        base, place = after.root, after.place
        place.check(base)  # if this raises, the state is known
        root = base.followed_by(name, keep)
        self._unknown = replace(after, root=root)
        self._last = replace(after, root=place.commit(base, root, objects))
        self._unknown = None
        place.sweep(root, self._needed)

    def _needed(self) -> Collection[str]:
        """Return the names of the objects that versions need which are kept."""
        now: Any = self._now
        history: Collection[str] = now.root.history
        return history
