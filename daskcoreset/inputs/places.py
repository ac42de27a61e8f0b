"""Places of inputs: paths and URLs, globs and lists of them, and errors that say what to set."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from daskcoreset.core.errors import (
    CoresetError,
    InvalidInputError,
    MissingDependencyError,
    MissingPathError,
    StoreError,
)
from daskcoreset.storage.locations import clean_url, is_file_url, path_of_file_url

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

# Times that botocore sends a request: seven seconds in all at most, where nothing listens.
_ATTEMPTS = 4


@dataclass(frozen=True)
class Place:
    """A file or folder, on a local disk or behind a URL.

    Attributes
    ----------
    path : str
        As its file system knows it.
    filesystem : fsspec file system, or None
        None for the local disk.
    url : str
        As it was given, secrets included.
    """

    path: str = field(repr=False)  # of the web, whole URLs
    filesystem: Any = field(default=None, repr=False)
    url: str = field(default="", repr=False)

    @classmethod
    def of(cls, location: str | os.PathLike[str], options: Mapping[str, Any] | None) -> Place:
        """Return the place of a path or URL."""
        text = os.fspath(location)
        if is_file_url(text):
            text = path_of_file_url("a path", text)
        if "://" not in text:
            if options is not None:
                raise InvalidInputError(
                    f"storage_options are for URLs, and {text!r} is a local path",
                    argument="storage_options",
                    remedy="leave them out",
                )
            return cls(from_root(text))
        import fsspec

        filesystem, path = fsspec.url_to_fs(text, **(options_for(text, options) or {}))
        return cls(path, filesystem, text)

    @property
    def name(self) -> str:
        """Name in messages and the provenance, without secrets."""
        return clean_url(self.url) if self.url else self.path

    @property
    def suffix(self) -> str:
        """Ending of the name of the file, such as ".npy"."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def is_file(self) -> bool:
        """Whether there is a file."""
        # Asked for its kind, as file systems say False where no server is.
        return self._asked(lambda files: files.info(self.path)["type"] == "file", Path.is_file)

    @property
    def exists(self) -> bool:
        """Whether there is a file or folder."""
        return self._asked(lambda files: files.exists(self.path), _is_there)

    def has(self, member: str) -> bool:
        """Whether a folder has a file of this name."""
        return self.at(f"{self.path.rstrip('/')}/{member}").exists

    def _asked(self, question: Callable[[Any], Any], local: Callable[[Path], bool]) -> bool:
        if self.filesystem is None:
            return local(Path(self.path))
        try:
            return bool(question(self.filesystem))
        except Exception as error:
            # Each further question would wait as long.
            if remedy_for(error, self.url) == _SILENT[2]:
                raise
            return False  # what may be read need not be listed; opening it tells

    def at(self, path: str) -> Place:
        """Return another place of the same file system."""
        if self.filesystem is None:
            return Place(path)
        return Place(path, self.filesystem, self.filesystem.unstrip_protocol(path))

    @property
    def in_process(self) -> bool:
        """Whether it is in the memory of this process, where no other one sees it."""
        protocol = getattr(self.filesystem, "protocol", ())
        return "memory" in ([protocol] if isinstance(protocol, str) else protocol)

    def files(self) -> list[Place]:
        """Return the files in a folder and those below it, in the natural order of their names."""
        from dask.utils import natural_sort_key

        if self.filesystem is None:
            found = [str(file) for file in Path(self.path).rglob("*") if file.is_file()]
        else:
            found = list(self.filesystem.find(self.path))
        return [self.at(path) for path in sorted(found, key=natural_sort_key)]

    def matches(self) -> list[Place]:
        """Return the places that match a glob, in natural order."""
        from dask.utils import natural_sort_key

        if self.filesystem is None:
            import glob

            found = glob.glob(self.path, recursive=True)  # noqa: PTH207 - with absolute patterns
        else:
            found = list(self.filesystem.glob(self.path))
        return [self.at(path) for path in sorted(found, key=natural_sort_key)]

    def open(self) -> Any:
        """Open a remote file for reading bytes."""
        return self.filesystem.open(self.path, "rb")

    def read(self, start: int, stop: int) -> bytes:
        """Return a range of bytes of a remote file. Fewer where it ends before."""
        return bytes(self.filesystem.cat_file(self.path, start=start, end=stop))


def options_for(url: str, options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the options of a file system, with those that the library has other defaults for.

    For S3 it tries five times to connect, with seconds between, if there is no server. By itself,
    s3fs repeats requests that an existing server does not answer. Options of the user come first.
    """
    if not url.lower().startswith(("s3://", "s3a://")) or "AWS_MAX_ATTEMPTS" in os.environ:
        return options
    given = dict(options or {})
    retries = {"retries": {"total_max_attempts": _ATTEMPTS}}
    return {**given, "config_kwargs": {**retries, **(given.get("config_kwargs") or {})}}


def from_root(text: str) -> str:
    """Return a local path as one from the root: workers may run in other folders.

    Links stay as they are, and a path need not be there. The sign for the home of a user who does
    not exist is part of a name, as in a shell.

    Examples
    --------
    >>> from_root("/data/../x.npy")
    '/data/../x.npy'
    """
    path = Path(text)
    with suppress(RuntimeError):
        path = path.expanduser()
    return str(path.absolute())


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
    """Raise an error for an empty path, and for a URL that would be taken for a local one.

    Such a URL has lost its slashes.

    Parameters
    ----------
    name : str
        The argument.
    location : str or path-like
        A path may have a colon in it, where there is something of that name.
    """
    text = os.fspath(location)
    if not text:
        raise InvalidInputError(
            f"{name} is an empty path", argument=name, remedy="pass the path of a file or folder"
        )
    match = _SLASHLESS.match(text)
    if match is None or "://" in text or Path(text).exists():
        return
    if is_glob(text) and Place.of(text, None).matches():
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
    except Exception as error:  # noqa: BLE001 - of s3fs, botocore, aiohttp, obstore, zarr, h5py, ...
        # Without the original, which may hold the URL with its password.
        raise _unreadable(name, url, kind, error) from None


_TEXT = "read it with dask.dataframe.read_csv, and pass the data frame, or write it as Parquet"
_CUBE = "open it with xarray.open_dataset(..., chunks={}), and pass that with sample_dims=[...]"

_FEATHER = (
    "read it with pyarrow.feather.read_table, or pass "
    "pyarrow.ipc.open_file(path).read_all(), or write it as Parquet"
)
_ZIP = 'if it is a Zarr store, pass zarr.storage.ZipStore(path, mode="r")'

# What to do with files of other formats, by their endings.
_OTHER_FILES = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _TEXT),
    **dict.fromkeys((".nc", ".nc4", ".cdf", ".grib", ".grib2"), _CUBE),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), _FEATHER),
    ".orc": "pass pyarrow.orc.read_table(path), or write it as Parquet",
    ".h5ad": "it is HDF5 of AnnData: pass anndata.read_h5ad(path).X, or h5py.File(path)['X']",
    ".he5": "it is HDF5 of HDF-EOS5: pass a data set of h5py.File(path), or xarray.open_dataset",
    ".zip": _ZIP,
}

# Folders in a repository of Icechunk.
_ICECHUNK = ("snapshots", "manifests", "refs")


def _is_there(path: Path) -> bool:
    """Whether a path names something. An error if access to it is denied.

    Since Python 3.14 `Path.exists` returns False then.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that is too long, or no name
        return False


def _is_empty_folder(path: str) -> bool:
    try:
        return not any(Path(path).iterdir())
    except (OSError, ValueError):  # no folder, no name, or one that may not be read
        return False


def _unreadable(name: str, url: str, kind: str, error: BaseException) -> CoresetError:
    shown = clean_url(url)
    remedy = remedy_for(error, url)
    if isinstance(error, ImportError):
        return MissingDependencyError(
            f"{name}: {shown!r} needs a package for its protocol ({said(error, url)})",
            argument=name,
            remedy="install it",
        )
    if not _is_remote(url) and _is_empty_folder(url):
        return InvalidInputError(
            f"{name} is an empty folder: {shown!r}", argument=name, remedy="check the path"
        )
    if remedy is None and all(_is_folder(Path(url) / part) for part in _ICECHUNK):
        return InvalidInputError(
            f"{name} is the folder of a repository of Icechunk, which cannot be "
            f"opened by its path: {shown!r}",
            argument=name,
            remedy='pass icechunk.Repository.open(...).readonly_session("main").store',
        )
    suffix = PurePosixPath(url).suffix.lower()
    if remedy is None and suffix in _OTHER_FILES:
        return InvalidInputError(
            f"{name} is a {suffix} file, which is not supported: {shown!r}",
            argument=name,
            remedy=f"{_OTHER_FILES[suffix]}",
        )
    remedy = remedy or "give the path of a Zarr, Parquet, HDF5, .npy or .npz file, or an array"
    kind_of_error = MissingPathError if remedy == _MISSING[2] else InvalidInputError
    return kind_of_error(
        f"{name} cannot be opened as {kind}: {shown!r} ({said(error, url)}); {remedy}."
    )


def read_clearly(what: Callable[[], str], read: Callable[[], T], *urls: str) -> T:
    """Return what `read` reads, or raise one error that names it, for tasks on workers.

    Parameters
    ----------
    what : callable
        Gives the rows, and where they are stored.
    read : callable
    *urls : str
        URLs that messages may hold.
    """
    try:
        return read()
    except (CoresetError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - of every file system and codec
        problem = read_error(what(), error, *urls)
    # Out here, without the original as its context: that may hold a password, and what cannot be
    # pickled would keep the error from the client.
    raise problem


def read_error(where: str, error: BaseException, *urls: str) -> StoreError:
    """Return the error of rows that cannot be read: what is damaged, or not to be reached."""
    remedy = remedy_for(error, where, *urls) or "restore it from a copy, or write it anew"
    place, kind = "", StoreError
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        place, kind = f" on {here()}", MissingPathError
        if not _is_remote(*urls):
            remedy = "make the file visible to every worker, by the same path"
    return kind(f"{where} cannot be read{place} ({said(error, *urls)}); {remedy}.")


def said(error: BaseException, *urls: str) -> str:
    """Return the kind and text of an error, in one line, whose URLs are cleaned."""
    text = _URL.sub(lambda found: clean_url(found[0]), " ".join(str(error).split()))
    for path in sorted(filter(None, urls), key=len, reverse=True) if len(text) > _SAID else ():
        shown = clean_url(path)
        text = text.replace(shown, PurePosixPath(shown).name or "it")
    if len(text) > _SAID:  # the reason is last, after the names of what was read
        text = f"{text[: _SAID // 3]} ... {text[-2 * _SAID // 3 :]}"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


_URL = re.compile(r"\w[\w+.-]{,30}://[^\s'\"<>]+")

# Characters of an error that are shown.
_SAID = 300


# What errors of object stores and servers have in their names, or say, and what helps.
_DENIED = (
    ("NoCredentials", "PermissionError", "PermissionDenied", "Unauthenticated", "Forbidden"),
    ("403", "401", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    (
        "access is denied: pass storage_options with the credentials, such as "
        '{"key": ..., "secret": ...} for s3, {"token": ...} for gcs, or {"anon": True} for public '
        "data, or set those of the environment, such as AWS_PROFILE"
    ),
)
_DENIED_HERE = "access is denied: let the user who runs this process, or a worker, read it"
_MISSING = (
    ("FileNotFound", "NoSuchBucket", "NotFoundError"),
    ("404", "NoSuchBucket", "NoSuchKey"),
    "nothing is there: check the path, the bucket, and the endpoint in storage_options",
)
_SILENT = (
    ("Endpoint", "ClientConnector", "Connection", "gaierror", "Disconnected", "Timeout"),
    ("500", "502", "503", "504", "Could not connect", "timed out", "error sending request"),
    (
        "the server does not answer: try again, and check the host, the network, and the endpoint "
        'in storage_options, such as {"endpoint_url": ...} for s3'
    ),
)
_UNKNOWN = (
    (),
    ("Protocol not known",),
    "no file system of this name is known: check what stands before ://",
)


def _is_remote(*texts: str) -> bool:
    """Whether one of some texts holds a URL that is not of this machine.

    Examples
    --------
    >>> _is_remote("rows 1 to 9 of 's3://bucket/x.zarr'"), _is_remote("/x", "file:///x")
    (True, False)
    """
    schemes = re.findall(r"([A-Za-z][A-Za-z0-9+.-]{,30})://", " ".join(texts))
    return not {scheme.lower() for scheme in schemes} <= {"file", "local"}


# What says that a filter of HDF5, or a codec of Zarr or Parquet, is missing.
_NO_FILTER = re.compile(r"can't open directory|required filter|filter.*not registered")
_NO_CODEC = re.compile(r"codec not available|Unknown codec|UnknownCodec|codec '\w+' not built")
_NAME_OF_CODEC = re.compile(r"['\"]+(?:numcodecs\.)?(\w+)")

# Packages of codecs, by the beginnings of their names.
_PACKAGES = {
    "imagecodecs": "imagecodecs",
    "pcodec": "numcodecs[pcodec]",
    "zfpy": "numcodecs[zfpy]",
    "msgpack": "numcodecs[msgpack]",
    "crc32c": "numcodecs[crc32c]",
}


def _package_for(error: BaseException) -> str | None:
    """Return which package a missing filter or codec needs. None for another error."""
    text = f"{type(error).__name__}: {error}"
    if _NO_FILTER.search(text):
        return (
            "a filter of HDF5 is missing: install the package hdf5plugin, and import it here and "
            "on every worker"
        )
    if not _NO_CODEC.search(text):
        return None
    found = _NAME_OF_CODEC.search(str(error))
    codec = "" if found is None else found[1]
    known = next((one for start, one in _PACKAGES.items() if codec.startswith(start)), None)
    package = "that has it, such as imagecodecs or numcodecs" if known is None else known
    return f"the codec {codec!r} is missing: install the package {package}, also on every worker"


def remedy_for(error: BaseException, *texts: str) -> str | None:
    """Return what helps against an error of a file system. None if it is of another kind.

    Parameters
    ----------
    error : BaseException
    *texts : str
        Hold the URLs that were read. On this machine only what was denied has a remedy.
    """
    is_remote = _is_remote(*texts)
    if (package := _package_for(error)) is not None:
        return package
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain and len(chain) < 20:
        chain.append(link)
        link = link.__cause__ or link.__context__
    for kinds, signs, remedy in (_DENIED, _SILENT, _MISSING, _UNKNOWN):
        for one in chain:
            name = type(one).__name__
            code = str(getattr(one, "status", ""))
            if any(kind in name for kind in kinds) or any(
                sign == code or (not sign.isdigit() and sign in str(one)) for sign in signs
            ):
                if is_remote:
                    return remedy
                return _DENIED_HERE if remedy == _DENIED[2] else None
    return None


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

    Parameters
    ----------
    name : str
        Name of the array, without secrets.
    opened, found : Layout

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
    same = opened.dtype == found.dtype and opened.rest == found.rest
    if not same or opened.shape[1:] != found.shape[1:] or found.shape[:1] < opened.shape[:1]:
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
