"""Locations that a user names: paths, URLs and Zarr stores, and what reads and writes there.

Object stores are read and written by obstore, all other URLs by their file systems of fsspec.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from daskcoreset.core.messages import import_optional
from daskcoreset.core.validation import a_type, check_options
from daskcoreset.errors import CoresetError, InvalidInputError, InvalidTypeError, StoreError

if TYPE_CHECKING:
    from obstore.store import ObjectStore
    from zarr.abc.store import Store
    from zarr.storage import StorePath

# A path, a URL, or a Zarr store with or without a path in it.
Location: TypeAlias = "str | os.PathLike[str] | Store | StorePath"

OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")

# A single letter is a drive of Windows. `pathlib.Path` leaves one slash of the two of a URL.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?:/|:.*://)")
_FILE = re.compile(r"(?:file|local):(?://(?P<host>[^/]*))?(?P<path>/.*)", re.DOTALL | re.IGNORECASE)

_MISSING = 'object stores need obstore; pip install "daskcoreset[remote]" brings it.'

# The names of options that s3fs, gcsfs and adlfs have, and those of obstore.
_OPTIONS = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "endpoint_url": "endpoint",
    "region_name": "region",
    "anon": "skip_signature",
}
_WITHOUT_USE = {"use_listings_cache", "skip_instance_cache", "config_kwargs"}

# A server that restarts is waited for. One that is gone is an error within seconds.
_RETRIES = {"max_retries": 6, "retry_timeout": dt.timedelta(seconds=60)}
_CLIENT = {"connect_timeout": "10s", "read_timeout": "60s", "timeout": "600s"}

CREDENTIALS = (
    'pass storage_options with the credentials, such as {"key": ..., "secret": ..., "region": ...} '
    'for s3, {"service_account": path} for gs, {"account_name": ..., "account_key": ...} for az, '
    'or {"anon": True} for public data, or set those of the environment, such as AWS_ACCESS_KEY_ID'
)


# --- paths and URLs ----------------------------------------------------------------------


def scheme_of(text: str) -> str | None:
    """Return the scheme of a URL, in small letters. None for a path.

    Examples
    --------
    >>> scheme_of("S3://bucket"), scheme_of("simplecache::s3://bucket"), scheme_of("C:/data")
    ('s3', 'simplecache', None)
    >>> scheme_of("/data/s3://"), scheme_of("./s3://bucket")
    (None, None)
    """
    match = _SCHEME.match(text)
    return None if match is None else match[1].lower()


def is_file_url(text: str) -> bool:
    """Return whether a text is the URL of a file on this machine."""
    return scheme_of(text) in {"file", "local"}


def path_of_file_url(name: str, url: str) -> str:
    """Return the path of a file URL; with percent signs decoded, unless they are a part of a name.

    Examples
    --------
    >>> path_of_file_url("X", "file://localhost/data/all%20days.npy")
    '/data/all days.npy'
    """
    match = _FILE.fullmatch(url)
    if match is None or (match["host"] or "localhost") != "localhost":
        raise InvalidInputError(
            f"{name} is a file URL of another machine, or of a relative path",
            argument=name,
            remedy="pass the path itself",
        )
    path: str = match["path"]
    path = path[1:] if re.match(r"/[A-Za-z]:", path) else path
    return path if os.path.lexists(path) else unquote(path)


def locate(name: str, location: Any) -> Path | str:
    """Return the absolute path of a place on a local disk, or a URL of another kind unchanged.

    "~" is expanded, a file URL becomes its path, and links on the way are followed.

    Examples
    --------
    >>> locate("store", "file:///data/days.zarr").as_posix()[-15:]
    '/data/days.zarr'
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
    if is_file_url(text):
        text = path_of_file_url(name, text)
    elif scheme := scheme_of(text):
        if not isinstance(location, str):
            raise InvalidInputError(
                f"{name} is a URL ({scheme}) in a path object, which drops one of its slashes",
                argument=name,
                remedy="pass it as text",
            )
        return text
    if not text:
        raise InvalidInputError(
            f"{name} is empty", argument=name, remedy="pass the path of a folder"
        )
    try:
        return Path(text).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:  # no such user, a circle of links, "\0"
        raise InvalidInputError(
            f"{name} is not a path ({error})", argument=name, remedy="correct it"
        ) from error


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
    import_optional("obstore", _MISSING)
    from obstore import store as stores
    from obstore.exceptions import BaseError

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
    options = _object_options(url, storage_options)
    try:
        from_url: Any = stores.from_url
        store: ObjectStore = from_url(_object_url(url), **options)
    except (BaseError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} cannot be used as it is ({reason(error)})",
            argument="storage_options",
            remedy=f"check it, and {CREDENTIALS}",
        ) from None
    return store


def filesystem(
    location: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> tuple[Any, str]:
    """Return the file system of fsspec that reads a path or URL, and the path there."""
    _check_options(location, storage_options)
    import fsspec

    text = os.fspath(location)
    if is_file_url(text):
        text = path_of_file_url("a path", text)
    scheme = scheme_of(text)
    if scheme is None:
        return fsspec.filesystem("file"), from_root(text)
    if scheme in OBJECT_STORES:
        url = _object_url(text)
        host = urlsplit(url).netloc
        object_store(f"{scheme}://{host}", storage_options)  # options that are wrong are an error
        from obstore.fsspec import FsspecStore

        protocol, _, path = url.partition("://")
        make: Any = FsspecStore
        return make(protocol, **_object_options(url, storage_options)), path
    found: tuple[Any, str] = fsspec.url_to_fs(text, **(storage_options or {}))
    return found


def from_root(text: str) -> str:
    """Return a local path as one from the root, because workers may run in other folders.

    Examples
    --------
    >>> from_root("/data/../x.npy")
    '/data/../x.npy'
    """
    path = Path(text)
    with suppress(RuntimeError):  # there is no such user, so that the sign is part of a name
        path = path.expanduser()
    return str(path.absolute())


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
    options, is_web = dict(storage_options or {}) or None, scheme in {"http", "https"}
    return StorePath(FsspecStore.from_url(place, storage_options=options, read_only=is_web))


def path_of(place: StorePath) -> Path | None:
    """Return the path of a place on a disk, with links followed. None for other places."""
    from zarr.storage import LocalStore

    store = place.store
    return (store.root / place.path).resolve() if isinstance(store, LocalStore) else None


def _check_options(location: object, storage_options: Any) -> None:
    check_options(storage_options)
    is_url = isinstance(location, str) and scheme_of(location) not in {None, "file", "local"}
    if storage_options and not is_url:
        raise InvalidInputError(
            "storage_options are for URLs, and this place is not one of a server",
            argument="storage_options",
            remedy="leave them out",
        )


def _object_url(url: str) -> str:
    """Return a URL of an object store with its scheme as obstore has it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme.lower().replace('gcs', 'gs')}://{rest}"


def _object_options(url: str, storage_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of obstore for options by its names or by those of fsspec."""
    check_options(storage_options)
    given = dict(storage_options or {})
    given = {**(given.pop("client_kwargs", None) or {}), **given}
    options: dict[str, Any] = {
        _OPTIONS.get(str(name), str(name)): value
        for name, value in given.items()
        if value is not None and name not in _WITHOUT_USE
    }
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    places = [url, options.get("endpoint"), *(os.environ.get(name) for name in names)]
    client = {"allow_http": any(str(place).lower().startswith("http:") for place in places)}
    client |= _CLIENT | options.pop("client_options", {})
    return {"client_options": client, "retry_config": _RETRIES, **options}


# --- names and errors --------------------------------------------------------------------


def store_name(store: Any, path: str = "") -> str:
    """Return the name of a Zarr store, or of a place in it: a clean URL if it has one."""
    kind, inner = type(store).__name__, getattr(store, "store", None)
    if kind == "StorePath":
        return store_name(inner, store.path)
    text = str(store)
    if (snapshot := getattr(getattr(store, "session", None), "snapshot_id", None)) is not None:
        text = f"{kind}({snapshot})"  # Icechunk
    elif (files := getattr(store, "fs", None)) is not None:
        text = str(getattr(store, "path", ""))
        text = text if "://" in text else str(files.unstrip_protocol(text))
    elif kind == "ObjectStore":
        text = object_store_name(inner)
    text = clean_url(text).rstrip("/")
    return f"{text}/{path}" if path else text


def location_name(location: Location) -> str:
    """Return the name of a path, a URL or a Zarr store, without secrets."""
    if isinstance(location, str | os.PathLike):
        return clean_url(os.fspath(location))
    return store_name(location)


def object_store_name(store: Any) -> str:
    """Return the name of a store of obstore: its URL if it has one."""
    kind, prefix = type(store).__name__, getattr(store, "prefix", None)
    schemes = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}
    if kind in schemes:
        bucket = store.config.get("bucket") or store.config.get("container_name")
        return "/".join(filter(None, (f"{schemes[kind]}://{bucket}", prefix and str(prefix))))
    return clean_url(store.url) if kind == "HTTPStore" else kind


_DENIED = {"PermissionError", "PermissionDeniedError", "UnauthenticatedError"}
_OF_SILENCE = {"ConnectionError", "TimeoutError", "ClientError", "GenericError", "gaierror"}
_NOT_FOUND = {"FileNotFoundError", "NotFoundError"}

_NO_ACCESS = f"access is denied: {CREDENTIALS}"
_NO_ACCESS_HERE = "access is denied: let the user who runs this process, or a worker, read it"
NOTHING_THERE = "nothing is there: check the path, the bucket, and the endpoint in storage_options"
SILENT = (
    "the server does not answer: try again, and check the host, the network, and the endpoint in "
    'storage_options, such as {"endpoint_url": ...} for s3'
)
_CHECK = "check the place, the network and storage_options, or restore it from a copy"


class RefusedError(StoreError):
    """The store answered, and refused: nothing was done."""


@contextmanager
def clear_errors(
    name: str,
    done: str,
    remedy: str = _CHECK,
    of: type[Exception] = Exception,
    kind: type[StoreError] = StoreError,
) -> Iterator[None]:
    """Turn errors of disks, servers and codecs into one that names the place, without secrets."""
    try:
        yield
    except CoresetError:
        raise
    except of as error:
        found = remedy_for(error, name)
        made = RefusedError if found in {_NO_ACCESS, NOTHING_THERE} else kind
        raise made(
            f"{name} could not be {done} ({reason(error)})", argument=name, remedy=found or remedy
        ) from (None if is_remote(name) else error)  # which may show a password


def reason(error: BaseException) -> str:
    """Return the kind of an error and its first line, with clean URLs."""
    line = str(getattr(error, "strerror", None) or error).strip().partition("\n")[0]
    text = " ".join(map(clean_url, line.split()))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_remote(*texts: str) -> bool:
    """Whether one of some texts holds a URL that is not of this machine."""
    return any("://" in text.replace("file://", "") for text in texts)


def remedy_for(error: BaseException, *texts: str) -> str | None:
    """Return what helps against an error of a file system, or None. URLs are in the texts."""
    remote = is_remote(*texts)
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    kinds = {kind.__name__ for one in chain for kind in type(one).__mro__}
    states = {getattr(one, "status", None) for one in chain}
    # Without keys, machines of a cloud ask their host for some.
    no_keys = "/latest/api/token" in str(error) or "/computeMetadata/" in str(error)
    if no_keys or kinds & _DENIED or states & {401, 403}:
        return _NO_ACCESS if remote else _NO_ACCESS_HERE
    if not remote:
        return None
    absent = kinds & _NOT_FOUND or 404 in states or "404 Not Found" in str(error)
    if states & {500, 502, 503, 504} or (kinds & _OF_SILENCE and not absent):
        return SILENT
    return NOTHING_THERE if absent else None
