"""A folder on a disk that holds immutable objects and one root, as `objects` does in a store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daskcoreset.core.validation import a_type
from daskcoreset.errors import InvalidInputError, InvalidTypeError, StoreError
from daskcoreset.storage.atomic import (
    LEFTOVERS,
    check_writable,
    make_folder,
    new_file,
    new_store,
    write_files,
)
from daskcoreset.storage.locations import (
    OBJECT_STORES,
    WEB,
    RefusedError,
    clean_url,
    clear_errors,
    object_store,
    path_of,
    scheme_of,
    store_name,
    zarr_store,
)
from daskcoreset.storage.objects import ROOT, ObjectFolder, Stored

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
        with clear_errors(self.name, "read"):
            try:
                data = (self.path / ROOT).read_bytes()
            except FileNotFoundError:
                return None
        return Stored(data, data)

    def swap(self, data: bytes, tag: object) -> object:
        """Write the root in place of the one with a tag. Return the new tag, or None if it went."""
        remedy = "check the disk and the permissions"
        with clear_errors(self.name, "written", remedy, OSError, kind=RefusedError):
            make_folder(self.path)
            with self._locked():
                found = self.root()
                if (None if found is None else found.tag) != tag:
                    return None
                # Writers that were killed have left theirs.
                self.remove([path.name for path in self.path.glob(LEFTOVERS)])
                with new_file(self.path / ROOT) as scratch:
                    scratch.write_bytes(data)
        return data

    def get(self, key: str) -> dict[str, bytes] | None:
        """Return the files of an object by name. None if there is none."""
        path = self.path / key
        with clear_errors(self.name, "read"):
            files = [file for file in path.rglob("*") if file.is_file()]
            found = {file.relative_to(path).as_posix(): file.read_bytes() for file in files}
        return found or None

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Write an object, whole or not at all. One that is there is complete, and the same."""
        path = self.path / key
        if path.is_dir():
            return
        try:
            with new_store(path, lambda: False) as scratch:
                write_files(scratch, files)
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
        with clear_errors(self.name, "listed"):
            for entry in os.scandir(self.path) if self.path.exists() else ():
                if entry.is_dir(follow_symlinks=False):
                    found += [f"{entry.name}/{name}" for name in os.listdir(entry)]  # noqa: PTH208
                elif not entry.name.startswith("."):  # the lock, and what killed writers left
                    found.append(entry.name)
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
        check_writable(self.path)

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


def find_folder(
    argument: str, location: object, storage_options: Mapping[str, Any] | None = None
) -> ObjectFolder | DiskFolder:
    """Return the folder on a disk or in an object store that a location names."""
    from zarr.storage import ObjectStore

    scheme = scheme_of(location) if isinstance(location, str) else None
    if isinstance(location, str) and scheme in {*OBJECT_STORES, *WEB}:
        store = object_store(location, storage_options)
        return ObjectFolder(store, clean_url(location).rstrip("/"))
    if scheme not in {None, "file", "local"}:
        raise InvalidInputError(
            f"{argument} is a URL ({scheme}) that is not of an object store",
            argument=argument,
            remedy="pass a path on a local disk, or a URL that begins with s3://, gs://, az:// "
            "or https://",
        )
    place = zarr_store(location, storage_options, argument)
    if isinstance(place.store, ObjectStore) and not place.path:
        return ObjectFolder(place.store.store, store_name(place))
    path = path_of(place)
    if path is None:
        raise InvalidTypeError(
            f"{argument} is {a_type(location)} of Zarr, which has no "
            "conditional writes to keep two writers apart",
            argument=argument,
            remedy="pass a path, a URL, or a zarr.storage.ObjectStore",
        )
    return DiskFolder(path)
