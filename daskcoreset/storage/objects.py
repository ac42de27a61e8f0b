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
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from daskcoreset.core.deadline import NO_ANSWER, in_time, pause
from daskcoreset.errors import MissingPathError, StoreError
from daskcoreset.storage.locations import RefusedError, clear_errors

if TYPE_CHECKING:
    from obstore.store import ObjectStore

P = ParamSpec("P")
T = TypeVar("T")

# The object that says what is there: a Zarr group without arrays.
ROOT = "zarr.json"

_ARCHIVE = ".zip"


@dataclass(frozen=True)
class Stored:
    """An object as it was read: its bytes, and what tells it from any other at this place."""

    data: bytes
    tag: Any


def _again(request: Callable[P, T]) -> Callable[P, T]:
    """Send a request up to three times again if the connection was cut under its answer.

    obstore itself sends again what got no answer at all.
    """

    @wraps(request)
    def sent(*args: P.args, **options: P.kwargs) -> T:
        for seconds in (0.1, 0.4, 1.6):
            try:
                return request(*args, **options)
            except (RefusedError, MissingPathError):
                raise
            except StoreError:
                pause(seconds)
        return request(*args, **options)

    return sent


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

    @_again
    def _get(self, key: str) -> Stored | None:
        import obstore
        from obstore.exceptions import NotFoundError

        def get() -> Stored:
            found = obstore.get(self.store, key)
            tag = {"e_tag": found.meta["e_tag"], "version": found.meta.get("version")}
            return Stored(bytes(found.bytes()), tag)

        with clear_errors(self.name, "read"):
            try:
                return self._in_time(get)
            except (NotFoundError, FileNotFoundError):
                return None

    @_again
    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Write an object. One that is there is the same."""
        import obstore

        name, data = f"{key}{_ARCHIVE}", _pack(files)
        with clear_errors(self.name, "written"):
            # As one request: an upload in parts is another protocol, and needs no condition here.
            self._in_time(lambda: obstore.put(self.store, name, data, use_multipart=False))

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
        from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError

        mode: Any = "create" if tag is None else {k: v for k, v in tag.items() if v is not None}
        with clear_errors(self.name, "written"):
            try:
                written = self._in_time(
                    lambda: obstore.put(self.store, key, data, mode=mode, use_multipart=False)
                )
            except (AlreadyExistsError, PreconditionError):
                return None
            except (NotFoundError, FileNotFoundError):
                if tag is None:  # there is no bucket
                    raise
                return None
            return {"e_tag": written["e_tag"], "version": written["version"]}

    def begun(self) -> AbstractContextManager[ObjectFolder]:
        """Return the folder for a first version: this one, which a root begins."""
        return nullcontext(self)

    @_again
    def keys(self) -> list[str]:
        """Return the names of all objects, in no order, without those of archives' endings."""
        import obstore

        def found() -> list[str]:
            batches = obstore.list(self.store)
            return [meta["path"].removesuffix(_ARCHIVE) for batch in batches for meta in batch]

        with clear_errors(self.name, "listed"):
            return self._in_time(found)

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects. Those that are gone already do not matter."""
        import obstore
        from obstore.exceptions import NotFoundError

        names = [f"{key}{_ARCHIVE}" for key in keys]
        with clear_errors(self.name, "deleted"):
            for start in range(0, len(names), 1000):
                with suppress(NotFoundError, FileNotFoundError):
                    part = names[start : start + 1000]
                    self._in_time(partial(obstore.delete, self.store, part))

    @_again
    def check(self, key: str) -> None:
        """Check that conditions are heeded, by an object that no other writer knows.

        Raises
        ------
        RefusedError
            They are not: some stores take no notice of what they do not know.
        StoreError
            It cannot be told: a conflict is also the answer to a request that was sent twice.
        """
        name = f"{key}{_ARCHIVE}"
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

    def _in_time(self, request: Callable[[], T]) -> T:
        """Send a request, and wait for its answer no longer than the call may take."""
        return in_time(request, lambda: f"{self.name} has not answered", NO_ANSWER)


def _pack(files: Mapping[str, bytes]) -> bytes:
    """Return the bytes of an archive that Zarr opens as well."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            # The earliest time that the format knows: the same files are the same bytes.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), files[name])
    return buffer.getvalue()


def _unpack(data: bytes, name: str) -> dict[str, bytes]:
    """Return the files of an archive. A member is never larger than the archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            # Compressed, or named many times, they could be larger than what was stored.
            plain = all(member.compress_type == zipfile.ZIP_STORED for member in members)
            fits = plain and sum(member.file_size for member in members) <= len(data)
            return {member.filename: archive.read(member) for member in members if fits}
    except Exception as error:  # a damaged archive makes the module raise almost anything
        raise StoreError(
            f"{name}: damaged ({error})", argument=name, remedy="restore it from a copy"
        ) from error
