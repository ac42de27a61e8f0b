"""A folder on a disk that holds immutable objects and one root, as `objects` does in a store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from daskcoreset.core.errors import (
    CoresetError,
    InvalidInputError,
    InvalidTypeError,
    StoreError,
)
from daskcoreset.core.validation import a_type, check_options
from daskcoreset.storage.atomic import flush_entry, is_leftover, make_folder, new_store
from daskcoreset.storage.locations import (
    OBJECT_STORES,
    clean_url,
    locate,
    object_store,
    object_store_name,
    scheme_of,
)
from daskcoreset.storage.objects import ROOT, ObjectFolder, RefusedError, Stored

_LOCK = ".lock"


@dataclass(frozen=True)
class DiskFolder:
    """A folder on a disk."""

    path: Path

    read_only = False

    @property
    def name(self) -> str:
        """The path, for messages."""
        return str(self.path)

    def root(self) -> Stored | None:
        """Return the root, whose bytes are its tag. None if there is none."""
        try:
            data = (self.path / ROOT).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error("read", error) from error
        return Stored(data, data)

    def swap(self, data: bytes, tag: object) -> object:
        """Write the root in place of the one with a tag. Return the new tag, or None if it went."""
        try:
            make_folder(self.path)
            with self._locked():
                found = self.root()
                if (None if found is None else found.tag) != tag:
                    return None
                self._write_root(data)
        except CoresetError:
            raise
        except OSError as error:
            raise self._error("written", error, RefusedError) from error
        return data

    def _write_root(self, data: bytes) -> None:
        for path in self.path.glob(f".{ROOT}.*"):  # of writers that were killed
            if is_leftover(path):
                self.remove([path.name])
        scratch = self.path / f".{ROOT}.{uuid4().hex}.daskcoreset-partial"
        try:
            with scratch.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(self.path / ROOT)
        except BaseException:
            with suppress(OSError):
                scratch.unlink(missing_ok=True)
            raise
        flush_entry(self.path)

    def get(self, key: str) -> dict[str, bytes] | None:
        """Return the files of an object by name. None if there is none."""
        path = self.path / key
        try:
            files = [file for file in path.rglob("*") if file.is_file()]
            found = {file.relative_to(path).as_posix(): file.read_bytes() for file in files}
        except OSError as error:
            raise self._error("read", error) from error
        return found or None

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Write an object, whole or not at all. One that is there is complete, and the same."""
        path = self.path / key
        if path.is_dir():
            return
        try:
            with new_store(path, lambda: False) as scratch:
                for name, data in files.items():
                    (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                    (scratch / name).write_bytes(data)
        except StoreError:
            if not path.is_dir():  # another writer was first
                raise

    @contextmanager
    def begun(self) -> Iterator[DiskFolder]:
        """Yield the folder for a first version, which becomes this one, whole or not at all."""
        with new_store(self.path, lambda: False) as scratch:
            yield DiskFolder(scratch)

    def keys(self) -> list[str]:
        """Return the names of all objects, and of what else is in the folder. Follow no links."""
        found = []
        try:
            for entry in os.scandir(self.path) if self.path.exists() else ():
                if entry.is_dir(follow_symlinks=False):
                    found += [f"{entry.name}/{name}" for name in os.listdir(entry)]  # noqa: PTH208
                elif entry.name != _LOCK and not is_leftover(Path(entry)):
                    found.append(entry.name)
        except OSError as error:
            raise self._error("listed", error) from error
        return found

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects. The next sweep removes what could not be."""
        for path in (self.path / key for key in keys):
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()

    def check(self, key: str) -> None:
        """Check, before the work of a first version, that it could be written."""
        del key
        above = next(path for path in (self.path, *self.path.parents) if path.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            what = "cannot be written" if above.is_dir() else "is not a folder"
            raise StoreError(
                f"{self.path} cannot be created: {above} {what}", remedy="choose another path"
            )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time compare and write. The system frees the lock of a dead one."""
        try:
            import fcntl
        except ImportError:  # pragma: no cover
            yield
            return
        with (self.path / _LOCK).open("a") as file:
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _error(self, done: str, error: OSError, kind: type[StoreError] = StoreError) -> StoreError:
        return kind(
            f"{self.path} could not be {done} ({error.strerror or error})",
            remedy="check the disk and the permissions, or restore it from a copy",
        )


def find_folder(
    argument: str, location: object, storage_options: Mapping[str, Any] | None = None
) -> ObjectFolder | DiskFolder:
    """Return the folder on a disk or in an object store that a location names."""
    from zarr.abc.store import Store
    from zarr.storage import LocalStore, ObjectStore

    check_options(storage_options)
    if isinstance(location, str) and scheme_of(location) in {*OBJECT_STORES, "http", "https"}:
        store = object_store(location, storage_options)
        return ObjectFolder(store, clean_url(location).rstrip("/"))
    if storage_options is not None and len(storage_options):
        raise InvalidInputError(
            "storage_options are for URLs of object stores, such as "
            f"s3://bucket/folder, and {argument} is not one",
            argument="storage_options",
            remedy="leave them out",
        )
    if isinstance(location, ObjectStore):
        return ObjectFolder(location.store, object_store_name(location.store))
    if isinstance(location, LocalStore):
        location = location.root
    if isinstance(location, Store):
        raise InvalidTypeError(
            f"{argument} is {a_type(location)} of Zarr, which has no "
            "conditional writes to keep two writers apart",
            argument=argument,
            remedy="pass a path, a URL, or a zarr.storage.ObjectStore",
        )
    place = locate(argument, location)
    if isinstance(place, str):
        raise InvalidInputError(
            f"{argument} is a URL ({scheme_of(place)}) that is not of an object store",
            argument=argument,
            remedy="pass a path on a local disk, or a URL that begins with s3://, gs://, az:// "
            "or https://",
        )
    return DiskFolder(place)
