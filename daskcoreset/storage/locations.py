"""Locations that a user names: paths, URLs and Zarr stores, and what reads and writes there.

Object stores are read and written by obstore, all other URLs by their file systems of fsspec.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

from daskcoreset.core.messages import import_optional
from daskcoreset.core.validation import a_type, check_options
from daskcoreset.errors import (
    CoresetError,
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    MissingPathError,
    StoreError,
)

if TYPE_CHECKING:
    from obstore.store import ObjectStore
    from zarr.abc.store import Store
    from zarr.storage import StorePath

# A path, a URL, or a Zarr store with or without a path in it.
Location: TypeAlias = "str | os.PathLike[str] | Store | StorePath"

# Of zarr.storage and obstore.store: the schemes of URLs of their stores.
_SCHEMES = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}
OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")
WEB = ("http", "https")

# A single letter is a drive of Windows. `pathlib.Path` leaves one slash of the two of a URL.
_SCHEME = re.compile(r"(file|local)(?=:/)|[a-z][a-z0-9+.-]+(?=://|::.*://)", re.IGNORECASE)
_FILE = re.compile(r"[a-z]+:(?://(?:localhost)?)?(/(?!/).*)", re.DOTALL | re.IGNORECASE)

# The names of options that s3fs, gcsfs and adlfs have, and those of obstore.
_OPTIONS = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "endpoint_url": "endpoint",
    "region_name": "region",
    "anon": "skip_signature",
}
_WITHOUT_USE = {"use_listings_cache", "skip_instance_cache", "config_kwargs"}

# A server that restarts is waited for. One that is gone is an error within seconds. The user
# decides by the URL or the endpoint if it is asked by "http".
_RETRIES = {"max_retries": 6, "retry_timeout": dt.timedelta(seconds=60)}
_CLIENT = {
    "allow_http": True,
    "connect_timeout": "10s",
    "read_timeout": "60s",
    "timeout": "600s",
}

AT_A_SERVER = (
    "check the URL and the network, and pass storage_options with the endpoint and the "
    'credentials, such as {"endpoint_url": ..., "key": ..., "secret": ...} for s3, '
    '{"service_account": path} for gs, {"account_name": ..., "account_key": ...} for az, or '
    '{"anon": True} for public data'
)
_ON_A_DISK = "check the path and the permissions, or restore it from a copy"


# --- paths and URLs ----------------------------------------------------------------------


def scheme_of(text: str) -> str | None:
    """Return the scheme of a URL, in small letters. None for a path.

    Examples
    --------
    >>> scheme_of("S3://bucket"), scheme_of("simplecache::s3://bucket"), scheme_of("C:/data")
    ('s3', 'simplecache', None)
    >>> scheme_of("/data/s3://"), scheme_of("./s3://bucket"), scheme_of("file:/data")
    (None, None, 'file')
    """
    match = _SCHEME.match(text)
    return None if match is None else match[0].lower()


def is_remote(location: object) -> bool:
    """Whether a location is a URL that is not of a file on this machine."""
    return isinstance(location, str) and scheme_of(location) not in {None, "file", "local"}


def locate(name: str, location: Any, *, follow: bool = True) -> Path | str:
    """Return the absolute path of a place on a local disk, or a URL of another kind unchanged.

    "~" is expanded, and a file URL becomes its path; with percent signs decoded, unless they are a
    part of a name. Links on the way are followed, unless `follow` is False.

    Examples
    --------
    >>> locate("store", "file://localhost/data/all%20days.zarr", follow=False).as_posix()
    '/data/all days.zarr'
    >>> locate("store", "s3://bucket/days.zarr")
    's3://bucket/days.zarr'
    """
    text = os.fspath(location) if isinstance(location, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise InvalidTypeError(
            f"{name} is {a_type(location)}",
            argument=name,
            remedy="pass the path of a folder, or a URL",
        )
    if is_remote(text):
        return text
    if not text or "\0" in text:
        raise InvalidInputError(
            f"{name} is {text!r}", argument=name, remedy="pass the path of a file or folder"
        )
    if scheme_of(text):
        match = _FILE.fullmatch(text)
        if match is None:
            raise InvalidInputError(
                f"{name} is a file URL of another machine, or of a relative path",
                argument=name,
                remedy="pass the path itself",
            )
        text = match[1] if os.path.lexists(match[1]) else url2pathname(match[1])
    scheme, colon, _ = text.partition(":")
    if colon and scheme.lower() in {*OBJECT_STORES, *WEB} and not Path(text).exists():
        raise MissingPathError(
            f"{name} is no file or folder, and looks like a URL ({scheme}) without its two slashes",
            argument=name,
            remedy=f'pass it as text that begins with "{scheme}://", and a path with "./"',
        )
    path = os.path.expanduser(text)  # noqa: PTH111 - unchanged if there is no such user
    return Path(os.path.realpath(path)) if follow else Path(path).absolute()


def local_path(name: str, location: Any) -> Path:
    """Return the absolute path of a place on a local disk. A URL of another kind is refused.

    Examples
    --------
    >>> local_path("path", "s3://bucket/days.zarr")
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: path is a URL (s3); pass a path on a local disk.
    """
    place = locate(name, location)
    if isinstance(place, str):
        scheme = scheme_of(place)
        raise InvalidInputError(
            f"{name} is a URL ({scheme})", argument=name, remedy="pass a path on a local disk"
        )
    return place


def clean_url(url: str) -> str:
    """Return a URL without user, password, query and fragment. A path is returned unchanged.

    Examples
    --------
    >>> clean_url("https://me:word@host:9000/days.zarr?token=x#y")
    'https://host:9000/days.zarr'
    >>> clean_url("simplecache::s3://key:secret@bucket/x"), clean_url("/data/me@home?")
    ('simplecache::s3://bucket/x', '/data/me@home?')
    """
    if "://" not in url:
        return url
    parts = (re.sub(r"(?s)(://)[^/?#]*@|[?#].*", r"\1", part) for part in url.split("::"))
    return "::".join(parts)


# --- what reads and writes there ---------------------------------------------------------


def object_store(url: str, storage_options: Mapping[str, Any] | None = None) -> ObjectStore:
    """Return the store of obstore at the folder that a URL of an object store or the web names."""
    stores = import_optional("obstore").store
    name = clean_url(url).rstrip("/")
    # The part before the sign is a folder of Azure. A password has a colon before it.
    is_folder = url.lower().startswith("abfs") and ":" not in urlsplit(url).netloc
    if set("%?#") & set(url) or ("@" in url and not is_folder):
        raise InvalidInputError(
            f"the URL {name} has one of the characters @, ?, # and %: a user, a "
            "password or a query would be stored, and programs read such names "
            "differently",
            remedy="pass secrets as storage_options, and choose another name for the folder",
        )
    url, options = _connection(url, storage_options)
    done, wrong = "used as it is", InvalidInputError
    with clear_errors(name, done, AT_A_SERVER, kind=wrong, argument="storage_options"):
        store: ObjectStore = stores.from_url(url, **options)
    return store


def filesystem(
    name: str, location: Any, storage_options: Mapping[str, Any] | None = None
) -> tuple[Any, str]:
    """Return the file system of fsspec that reads a path or URL, and the path there."""
    import fsspec

    _check_options(location, storage_options)
    place = locate(name, location, follow=False)  # links may lead elsewhere on a worker
    if isinstance(place, Path):
        return fsspec.filesystem("file"), str(place)
    scheme = scheme_of(place)
    if scheme in OBJECT_STORES:
        object_store(f"{scheme}://{urlsplit(place).netloc}", storage_options)  # or an error
        from obstore.fsspec import FsspecStore

        url, options = _connection(place, storage_options)
        protocol, _, path = url.partition("://")
        make: Any = FsspecStore
        return make(protocol, **options), path
    if scheme in WEB:
        import_optional("aiohttp")
    found: tuple[Any, str] = fsspec.url_to_fs(place, **(storage_options or {}))
    return found


def zarr_store(
    location: object, storage_options: Mapping[str, Any] | None = None, argument: str = "store"
) -> StorePath:
    """Return the place in a Zarr store that a location names."""
    from zarr.abc.store import Store
    from zarr.storage import FsspecStore, LocalStore, ObjectStore, StorePath

    _check_options(location, storage_options)
    if isinstance(location, StorePath):
        return location
    if isinstance(location, Store):
        return StorePath(location)
    place = locate(argument, location)
    if isinstance(place, Path):
        return StorePath(LocalStore(place))
    scheme = scheme_of(place)
    if scheme in OBJECT_STORES:
        return StorePath(ObjectStore(object_store(place, storage_options)))
    if scheme in WEB:
        import_optional("aiohttp")
    options: Any = dict(storage_options or {}) or None
    return StorePath(FsspecStore.from_url(place, storage_options=options, read_only=scheme in WEB))


def path_of(place: StorePath) -> Path | None:
    """Return the path of a place on a disk, with links followed. None for other places."""
    from zarr.storage import LocalStore

    store = place.store
    return (store.root / place.path).resolve() if isinstance(store, LocalStore) else None


def _check_options(location: object, storage_options: Any) -> None:
    check_options(storage_options)
    if storage_options and not is_remote(location):
        raise InvalidInputError(
            "storage_options are for URLs, and this place is not one of a server",
            argument="storage_options",
            remedy="leave them out",
        )


def _connection(url: str, storage_options: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """Return a URL and arguments of obstore, for options by its names or by those of fsspec."""
    check_options(storage_options)
    given = dict(storage_options or {})
    given = {**(given.pop("client_kwargs", None) or {}), **given}
    options: dict[str, Any] = {
        _OPTIONS.get(str(name), str(name)): value
        for name, value in given.items()
        if value is not None and name not in _WITHOUT_USE
    }
    client = _CLIENT | options.pop("client_options", {})
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower().replace("gcs", "gs")
    return f"{scheme}://{rest}", {"client_options": client, "retry_config": _RETRIES, **options}


# --- names and errors --------------------------------------------------------------------


def store_name(store: Any, path: str = "") -> str:
    """Return the name of a path, a URL, a Zarr store, or a place in it, without secrets."""
    kind, inner = type(store).__name__, getattr(store, "store", None)
    if kind in {"StorePath", "ObjectStore"}:
        return store_name(inner, path or getattr(store, "path", ""))
    text = os.fspath(store) if isinstance(store, (str, os.PathLike)) else str(store)
    if (snapshot := getattr(getattr(store, "session", None), "snapshot_id", None)) is not None:
        text = f"{kind}({snapshot})"  # Icechunk
    elif (files := getattr(store, "fs", None)) is not None:
        text = str(getattr(store, "path", ""))
        text = text if "://" in text else str(files.unstrip_protocol(text))
    elif kind in _SCHEMES:
        bucket = store.config.get("bucket") or store.config.get("container_name")
        text = f"{_SCHEMES[kind]}://{bucket}/{store.prefix or ''}"
    elif kind == "HTTPStore":
        text = store.url
    elif text.startswith("<obstore."):  # in memory, by its address
        text = kind
    text = clean_url(text).rstrip("/")
    return f"{text}/{path}" if path else text


class RefusedError(StoreError):
    """The store answered, and refused: nothing was done."""


@contextmanager
def clear_errors(
    name: str,
    done: str,
    remedy: str | None = None,
    of: type[Exception] = Exception,
    *,
    kind: type[CoresetError] = StoreError,
    missing: type[CoresetError] = MissingPathError,
    argument: str | None = None,
) -> Iterator[None]:
    """Turn an error of a disk, a server or a format into one that names the place.

    Parameters
    ----------
    name : str
        What cannot be `done`, such as "read".
    remedy : str, optional
        By default it is one for disks, or for servers if `name` is a URL.
    of : type
        The errors that are meant.
    kind, missing : type
        The error that is raised, and that for a file that is missing.
    argument : str, optional
    """
    try:
        yield
    except (CoresetError, MemoryError):
        raise
    except of as error:
        if isinstance(error, ImportError):
            kind, remedy = MissingDependencyError, "install the package that it needs"
        elif isinstance(error, FileNotFoundError):
            kind = missing
        elif is_denied(error) and kind is StoreError:
            kind = RefusedError
        remedy = remedy or (AT_A_SERVER if is_remote(name) else _ON_A_DISK)
        made = kind(f"{name} cannot be {done} ({reason(error)})", argument=argument, remedy=remedy)
        try:
            raise made
        finally:  # its context may hold a password, and need not pickle
            made.__context__ = None


def is_denied(error: Exception) -> bool:
    """Whether an error of a file system, or of obstore, is that access is denied."""
    kinds = {"PermissionDeniedError", "UnauthenticatedError"}
    return isinstance(error, PermissionError) or type(error).__name__ in kinds


def reason(error: BaseException) -> str:
    """Return the kind of an error, or of its cause, and its first line, with clean URLs."""
    error = error.__cause__ or error
    line = str(getattr(error, "strerror", None) or error).strip().partition("\n")[0]
    text = " ".join(map(clean_url, line.split()))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
