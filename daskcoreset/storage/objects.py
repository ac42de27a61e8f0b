"""A folder of an object store that holds immutable objects and one root.

What decides is done by conditional writes: an object is made only if it is missing
(``If-None-Match``), or replaced only where it is the one that was read (``If-Match``).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from daskcoreset.core.deadline import NO_ANSWER, in_time, pause
from daskcoreset.errors import MissingPathError, StoreError
from daskcoreset.storage.locations import RefusedError, clear_errors

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

# The object that says what is there: a Zarr group without arrays.
ROOT = "zarr.json"

_ARCHIVE = ".zip"


@dataclass(frozen=True)
class Stored:
    """An object as it was read: its bytes, and what tells it from any other at this place."""

    data: bytes
    tag: Any


def ask(name: str, done: str, work: Callable[[], T], remedy: str | None = None) -> T:
    """Return what `work` returns, no later than the call may take. Its errors name the place."""
    with clear_errors(name, done, remedy):
        return in_time(work, lambda: f"{name} has not answered", NO_ANSWER)


def _again(work: Callable[[], T]) -> T:
    """Do some work up to three times again if the connection was cut under an answer.

    obstore itself sends requests again that got no answer at all.
    """
    for seconds in (0.1, 0.4, 1.6):
        try:
            return work()
        except (RefusedError, MissingPathError):
            raise
        except StoreError:
            pause(seconds)
    return work()


@dataclass(frozen=True)
class ObjectFolder:
    """A folder of an object store that holds immutable objects and one root.

    An object is a mapping of the names of files to their bytes, which is stored as one archive. An
    object store writes one object whole or not at all, and can do so on a condition.

    Attributes
    ----------
    store : obstore.store.ObjectStore
    name : str
        Name in messages, without secrets.
    """

    store: ObjectStore
    name: str

    @property
    def path(self) -> str:
        """The URL, without secrets."""
        return self.name

    @property
    def read_only(self) -> bool:
        """Whether it is served by a web server, which takes no writes."""
        from obstore.store import HTTPStore

        return isinstance(self.store, HTTPStore)

    def root(self) -> Stored | None:
        """Return the root, or None if there is none."""
        return self._get(ROOT)

    def get(self, key: str) -> dict[str, bytes] | None:
        """Return the files of an object by name. None if there is none."""
        stored = self._get(f"{key}{_ARCHIVE}")
        return None if stored is None else _unpack(stored.data, f"{self.name}/{key}{_ARCHIVE}")

    def _get(self, key: str) -> Stored | None:
        import obstore

        def get() -> Stored | None:
            try:
                found = obstore.get(self.store, key)
            except FileNotFoundError:
                return None
            tag = {"e_tag": found.meta["e_tag"], "version": found.meta.get("version")}
            return Stored(bytes(found.bytes()), tag)

        return _again(lambda: ask(self.name, "read", get))

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Write an object. One that is there is the same."""
        import obstore

        name, data = f"{key}{_ARCHIVE}", _pack(files)

        # As one request: an upload in parts is another protocol, and needs no condition here.
        def put() -> None:
            obstore.put(self.store, name, data, use_multipart=False)

        _again(lambda: ask(self.name, "written", put))

    def swap(self, data: bytes, tag: Any, key: str = ROOT) -> Any:
        """Write the root in place of the one with a tag, or where there is none (`tag` None).

        Returns
        -------
        object or None
            The tag of what was written. None if another one is there.

        Raises
        ------
        StoreError
            No answer came, so that it is not known whether it was written.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "create" if tag is None else {k: v for k, v in tag.items() if v is not None}

        def swap() -> Any:
            try:
                written = obstore.put(self.store, key, data, mode=mode, use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return None
            except FileNotFoundError:
                if tag is None:  # there is no bucket
                    raise
                return None
            return {"e_tag": written["e_tag"], "version": written["version"]}

        return ask(self.name, "written", swap)

    def begun(self) -> AbstractContextManager[ObjectFolder]:
        """Return the folder for a first version: this one, which a root begins."""
        return nullcontext(self)

    def keys(self) -> list[str]:
        """Return the names of all objects, in no order, without those of archives' endings."""
        import obstore

        def found() -> list[str]:
            batches = obstore.list(self.store)
            return [meta["path"].removesuffix(_ARCHIVE) for batch in batches for meta in batch]

        return _again(lambda: ask(self.name, "listed", found))

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects. Those that are gone already do not matter."""
        import obstore

        def remove() -> None:
            with suppress(FileNotFoundError):
                obstore.delete(self.store, [f"{key}{_ARCHIVE}" for key in keys])

        ask(self.name, "deleted", remove)

    def check(self, key: str) -> None:
        """Check that conditions are heeded, by an object that no other writer knows.

        Raises
        ------
        RefusedError
            They are not: some stores take no notice of what they do not know.
        StoreError
            It cannot be told: a conflict is also the answer to a request that was sent twice.
        """
        _again(lambda: self._check(key, f"{key}{_ARCHIVE}"))

    def _check(self, key: str, name: str) -> None:
        try:
            tag = self.swap(b"1", None, name)
            made_twice = None if tag is None else self.swap(b"2", None, name)
            replaced = None if tag is None else self.swap(b"3", tag, name)
            replaced_twice = None if replaced is None else self.swap(b"4", tag, name)
        finally:
            with suppress(StoreError):
                self.remove([key])
        if made_twice or replaced_twice:
            raise RefusedError(
                f"{self.name}: this object store takes no notice of conditions (If-None-Match, "
                "If-Match), so that two writers would overwrite each other",
                remedy="use another one, or a local disk",
            )
        if replaced is None:  # an answer was lost, so that a request was sent twice
            raise StoreError(f"{self.name}: conditional writes fail", remedy="try again")


def _pack(files: Mapping[str, bytes]) -> bytes:
    """Return the bytes of an archive that Zarr opens as well."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            # The earliest time that the format knows: the same files are the same bytes.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), files[name])
    return buffer.getvalue()


def _unpack(data: bytes, name: str) -> dict[str, bytes]:
    """Return the files of an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {member: archive.read(member) for member in archive.namelist()}
    except Exception as error:  # a damaged archive makes the module raise almost anything
        raise StoreError(
            f"{name}: damaged ({error})", argument=name, remedy="restore it from a copy"
        ) from error
