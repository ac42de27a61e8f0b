"""Files by path, URL, glob or list, through file systems of fsspec, and errors that name them."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from daskcoreset.errors import (
    CoresetError,
    InvalidInputError,
    MissingDependencyError,
    MissingPathError,
    StoreError,
)
from daskcoreset.storage.locations import (
    NOTHING_THERE,
    SILENT,
    clean_url,
    filesystem,
    is_file_url,
    reason,
    remedy_for,
)

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")


def _local_files() -> Any:
    import fsspec

    return fsspec.filesystem("file")


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
    filesystem: Any = field(default_factory=_local_files, repr=False)
    url: str = field(default="", repr=False)

    @classmethod
    def of(cls, location: str | os.PathLike[str], options: Mapping[str, Any] | None) -> Place:
        """Return the place of a path or URL."""
        files, path = filesystem(location, options)
        text = os.fspath(location)
        return cls(path, files, "" if is_file_url(text) or "://" not in text else text)

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
            # Each further request to a silent server would wait as long.
            if self.is_local or remedy_for(error, self.url) == SILENT:
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
    return any(sign in text for sign in "*?[") and ("://" in text or not Path(text).exists())


# One letter is a drive of Windows; `pathlib.Path` takes one of the two slashes away.
_SLASHLESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?!//|:)")


def check_slashes(name: str, location: str | os.PathLike[str]) -> None:
    """Raise an error for an empty path, and for a URL that has lost its slashes."""
    text = os.fspath(location)
    if not text:
        raise InvalidInputError(
            f"{name} is an empty path", argument=name, remedy="pass the path of a file or folder"
        )
    match = _SLASHLESS.match(text)
    if match is None or "://" in text or Path(text).exists():
        return
    scheme = match[1]
    raise MissingPathError(
        f"{name} is no file or folder, and looks like a URL ({scheme}) without its two slashes",
        argument=name,
        remedy=f'pass it as text that begins with "{scheme}://", and a path with "./"',
    )


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

_TEXT = "read it with dask.dataframe.read_csv, and pass the data frame, or write it as Parquet"
_CUBE = "open it with xarray.open_dataset(..., chunks={}), and pass that with sample_dims=[...]"
_FEATHER = (
    "read it with pyarrow.feather.read_table, or pass "
    "pyarrow.ipc.open_file(path).read_all(), or write it as Parquet"
)

_GIVE = (
    "give the path of a Zarr, Parquet, HDF5, .npy or .npz file, or an array, and of a repository "
    'of Icechunk its readonly_session("main").store'
)

# What to do with files of other formats, by their endings.
_OTHER_FILES = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _TEXT),
    **dict.fromkeys((".nc", ".nc4", ".cdf", ".grib", ".grib2"), _CUBE),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), _FEATHER),
    ".orc": "pass pyarrow.orc.read_table(path), or write it as Parquet",
    ".h5ad": "it is HDF5 of AnnData: pass anndata.read_h5ad(path).X, or h5py.File(path)['X']",
    ".he5": "it is HDF5 of HDF-EOS5: pass a data set of h5py.File(path), or xarray.open_dataset",
    ".zip": 'if it is a Zarr store, pass zarr.storage.ZipStore(path, mode="r")',
}

# Codecs that are extras of numcodecs.
_EXTRAS = ("pcodec", "zfpy", "msgpack", "crc32c")


@contextmanager
def clear_errors(name: str, url: str, kind: str) -> Iterator[None]:
    """Turn errors of file systems and formats into one that says what was asked for.

    Parameters
    ----------
    name : str
        The argument.
    url : str
        The path or URL, which may hold secrets.
    kind : str
        The kind that it was opened as.
    """
    try:
        yield
    except CoresetError:
        raise
    except Exception as error:  # noqa: BLE001 - of fsspec, aiohttp, obstore, zarr, h5py, ...
        found = _missing_package(error) or remedy_for(error, url)
        made: type[CoresetError] = InvalidInputError
        if isinstance(error, ImportError):
            made = MissingDependencyError
        elif found == NOTHING_THERE:
            made = MissingPathError
        if found is None and os.path.isdir(url) and not os.listdir(url):  # noqa: PTH112, PTH208
            found = "the folder is empty: check the path"
        found = found or _OTHER_FILES.get(PurePosixPath(url).suffix.lower(), _GIVE)
        # Without the original, which may hold the URL with its password.
        raise made(
            f"{name} cannot be opened as {kind}: {clean_url(url)!r} ({reason(error)})",
            argument=name,
            remedy=found,
        ) from None


def _missing_package(error: Exception) -> str | None:
    """Return which package a protocol, filter or codec needs. None for another error."""
    if isinstance(error, ImportError):
        return "install the package that it needs"
    text = str(error)
    if "can't open directory" in text or "required filter" in text:
        return (
            "a filter of HDF5 is missing: install the package hdf5plugin, and import it here and "
            "on every worker"
        )
    if type(error).__name__ != "UnknownCodecError" and "not built" not in text:
        return None
    quoted = text.replace('"', "'").split("'")[1:]
    codec = next(filter(None, quoted), "").removeprefix("numcodecs.")
    package = "that has it, such as imagecodecs or numcodecs"
    if codec.startswith("imagecodecs"):
        package = "imagecodecs"
    elif codec in _EXTRAS:
        package = f"numcodecs[{codec}]"
    return f"the codec {codec!r} is missing: install the package {package}, also on every worker"


def read_clearly(what: Callable[[], str], read: Callable[[], T], *urls: str) -> T:
    """Return what `read` reads, or raise one error that names it, for tasks on workers.

    Parameters
    ----------
    what : callable
        Gives the rows, and where they are stored.
    read : callable
    *urls : str
        URLs that are read.
    """
    try:
        return read()
    except (CoresetError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - of every file system and codec
        where = what()
        remedy = _missing_package(error) or remedy_for(error, where, *urls)
        made = StoreError
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            made = MissingPathError
            remedy = remedy or "make the file visible to every worker, by the same path"
        problem = made(
            f"{where} cannot be read on {here()} ({reason(error)})",
            remedy=remedy or "restore it from a copy, or write it anew",
        )
    # Out here, without the original as its context: that may hold a password, and what cannot be
    # pickled would keep the error from the client.
    raise problem


# --- what a place held when it was opened -----------------------------------------------------


class Layout(NamedTuple):
    """Shape and dtype of a stored array, and where else they decide how its bytes are read.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    rest : object
        The part that must be equal, such as a digest of codecs or the position of the first byte.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rest: Any = None


def check_seen(name: str, opened: Layout, found: Layout) -> None:
    """Raise an error unless the array that is found is the one that was opened, or has grown.

    Examples
    --------
    >>> import numpy as np
    >>> opened = Layout((4, 2), np.dtype("f4"))
    >>> check_seen("X.npy", opened, Layout((9, 2), np.dtype("f4")))
    >>> check_seen("X.npy", opened, Layout((4, 2), np.dtype("f8")))
    Traceback (most recent call last):
    ...
    daskcoreset.errors.StoreError: X.npy on host ... differs from the array that was opened: ...
    """
    same = (opened.shape[1:], *opened[1:]) == (found.shape[1:], *found[1:])
    if not same or found.shape[:1] < opened.shape[:1]:
        raise StoreError(
            f"{name} on {here()} differs from the array that was opened: shape "
            f"{found.shape}, dtype {found.dtype}, or the way it is stored, "
            f"instead of {opened.shape}, {opened.dtype}",
            argument=name,
            remedy="let every worker see the same store, and open it again if it was rewritten",
        )


def here() -> str:
    """Return where this process runs, for errors."""
    return f"host {socket.gethostname()!r} (process {os.getpid()} in {str(Path.cwd())!r})"
