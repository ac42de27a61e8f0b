"""Files by path, URL, glob or list, through file systems of fsspec, and errors that name them."""

from __future__ import annotations

import glob
import os
import socket
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidInputError, MissingPathError, StoreError
from daskcoreset.storage.locations import (
    AT_A_SERVER,
    clean_url,
    clear_errors,
    filesystem,
    is_denied,
    is_remote,
)


@dataclass(frozen=True)
class Place:
    """A file or folder, on a local disk or behind a URL.

    Attributes
    ----------
    path : str
        As its file system knows it.
    filesystem : fsspec file system
    url : str
        As it was given, secrets included. Empty for a local path.
    """

    path: str = field(repr=False)  # of the web, whole URLs
    filesystem: Any = field(repr=False)
    url: str = field(default="", repr=False)

    @classmethod
    def of(cls, location: Any, options: Any = None, argument: str = "X") -> Place:
        """Return the place of a path or URL, passed as an argument."""
        files, path = filesystem(argument, location, options)
        return cls(path, files, location if is_remote(location) else "")

    @property
    def name(self) -> str:
        """Name in messages and the provenance, without secrets."""
        return clean_url(self.url) if self.url else self.path

    @property
    def suffix(self) -> str:
        """Ending of the name of the file, such as ".npy"."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def kind(self) -> str | None:
        """What is there, such as "file" or "directory". None if nothing is."""
        try:
            return str(self.filesystem.info(self.path)["type"])
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Exception as error:
            if self.is_local or not is_denied(error):
                raise
            return None  # what may be read need not be listed

    @property
    def is_file(self) -> bool:
        """Whether there is a file."""
        return self.kind == "file"

    @property
    def exists(self) -> bool:
        """Whether there is a file or folder."""
        return self.kind is not None

    def has(self, member: str) -> bool:
        """Whether a folder has a file of this name."""
        return self.at(f"{self.path.rstrip('/')}/{member}").exists

    def at(self, path: str) -> Place:
        """Return another place of the same file system."""
        url = "" if self.is_local else self.filesystem.unstrip_protocol(path)
        return Place(path, self.filesystem, url)

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return is_of(self.filesystem, "file")

    @property
    def in_process(self) -> bool:
        """Whether it is in the memory of this process, where no other one sees it."""
        return is_of(self.filesystem, "memory")

    def files(self) -> list[Place]:
        """Return the files in a folder and those below it, in the natural order of their names."""
        return self._in_order(self.filesystem.find(self.path))

    def matches(self) -> list[Place]:
        """Return the places that match a glob, in natural order. Hidden ones are left out."""
        found = self.filesystem.glob(self.path)
        return self._in_order(path for path in found if PurePosixPath(path).name[:1] != ".")

    def _in_order(self, paths: Iterable[str]) -> list[Place]:
        from dask.utils import natural_sort_key

        return [self.at(path) for path in sorted(paths, key=natural_sort_key)]

    def open(self) -> Any:
        """Open the file for reading bytes."""
        self.filesystem.info(self.path)  # or an error: files of obstore are not closed without
        return self.filesystem.open(self.path, "rb")

    def read(self, start: int, stop: int) -> bytes:
        """Return a range of bytes of the file. Fewer if it ends before."""
        return bytes(self.filesystem.cat_file(self.path, start=start, end=stop))


def is_of(files: Any, protocol: str) -> bool:
    """Whether a file system of fsspec, or None, has a protocol."""
    known = getattr(files, "protocol", ())
    return protocol in ([known] if isinstance(known, str) else known)


def is_glob(location: Any) -> bool:
    """Whether a path or URL is a pattern of several.

    Examples
    --------
    >>> is_glob("data/*.parquet"), is_glob("https://host/x.npy?token=1"), is_glob("data")
    (True, False, False)
    """
    if not isinstance(location, (str, os.PathLike)):
        return False
    text = os.fspath(location)
    if text.startswith(("http://", "https://")):  # where a question mark begins the query
        return "*" in text.partition("?")[0]
    return glob.has_magic(text) and ("://" in text or not Path(text).exists())


def shortened(names: Sequence[str]) -> str:
    """Return the names of files as one: of many, the first and the last.

    Examples
    --------
    >>> shortened(["a.npy", "b.npy", "c.npy", "d.npy"])
    'a.npy, ..., d.npy (4 files)'
    """
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]}, ..., {names[-1]} ({len(names)} files)"


# --- errors ------------------------------------------------------------------------------

_OTHERWISE = (
    "check the path, and give the path of a Zarr, Parquet, HDF5, .npy or .npz file; pass other "
    "files as their library opens them, such as dask.dataframe.read_csv(path), "
    "xarray.open_dataset(path), pyarrow.feather.read_table(path), anndata.read_h5ad(path).X, "
    'zarr.storage.ZipStore(path), or readonly_session("main").store of Icechunk'
)
_RESTORE = (
    "make it visible to every worker, by the same path, install the codecs that it needs, or "
    "restore it from a copy"
)


def opening(name: str, url: str, kind: str) -> AbstractContextManager[None]:
    """Name the argument `name` in errors of its path or URL, which is opened as some kind."""
    done = f"opened as {kind}: {clean_url(url)!r}"
    remedy = AT_A_SERVER if is_remote(url) else _OTHERWISE
    # Of a file that is there, formats may say that they find nothing.
    is_there = os.path.exists(url)  # noqa: PTH110 - also of names that are too long
    missing = InvalidInputError if is_there else MissingPathError
    return clear_errors(name, done, remedy, kind=InvalidInputError, missing=missing, argument=name)


def reading(what: str) -> AbstractContextManager[None]:
    """Name what is read, and where this process runs, in errors of tasks."""
    return clear_errors(what, f"read on {here()}", _RESTORE)


def is_fill(values: AnyArray, fill: Any) -> AnyArray:
    """Return which values are the fill value."""
    is_nan = values.dtype.kind == "f" and np.isnan(fill)
    found: AnyArray = np.asarray(np.isnan(values) if is_nan else values == fill)
    return found


def not_stored(what: str, fill: Any) -> StoreError:
    """Return the error of a chunk that is not stored, of an array with a fill value or None."""
    remedy = "restore it"
    if fill is not None:
        remedy += f', or pass open_rows(X, missing_chunks="fill") if rows of {fill!s} are meant'
    return StoreError(f"{what} is not stored, as seen on {here()}", remedy=remedy)


def check_seen(name: str, opened: tuple[Any, ...], found: tuple[Any, ...]) -> None:
    """Raise an error unless the array that is found is the one that was opened, or has grown.

    Parameters
    ----------
    name : str
    opened, found : tuple
        The shape, and what else decides how the array is read.

    Examples
    --------
    >>> check_seen("X.npy", ((4, 2), "f4"), ((9, 2), "f4"))
    >>> check_seen("X.npy", ((4, 2), "f4"), ((4, 2), "f8"))
    Traceback (most recent call last):
    ...
    daskcoreset.errors.StoreError: X.npy on host ... differs from the array that was opened: ...
    """
    (before, *form), (now, *other) = opened, found
    if (before[1:], form) != (now[1:], other) or now[:1] < before[:1]:
        what = f"its shape is {now} instead of {before}"
        if now == before:
            what = "its dtype, or the way it is stored, is another"
        raise StoreError(
            f"{name} on {here()} differs from the array that was opened: {what}",
            remedy="let every worker see the same store, and open it again if it was rewritten",
        )


def here() -> str:
    """Return where this process runs, for errors."""
    return f"host {socket.gethostname()!r} (process {os.getpid()} in {str(Path.cwd())!r})"
