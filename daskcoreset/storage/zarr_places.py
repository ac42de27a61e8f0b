"""Places in Zarr stores, by path, URL or store, and clear errors of whatever reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from daskcoreset.core.deadline import NO_ANSWER, in_time
from daskcoreset.core.errors import (
    CoresetError,
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.core.validation import a_type, check_options
from daskcoreset.storage.locations import clean_url, locate, scheme_of
from daskcoreset.storage.objects import (
    clear_errors,
    connect,
    is_remote,
    name_of,
)

if TYPE_CHECKING:
    from zarr.abc.store import Store
    from zarr.storage import StorePath

# A path, a ``file://`` or other fsspec URL, or a Zarr store with or without a path in it.
Location: TypeAlias = "str | os.PathLike[str] | Store | StorePath"


def place_name(target: StorePath) -> str:
    """Return what errors call a place in a Zarr store."""
    from zarr.storage import ObjectStore

    store = target.store
    if isinstance(store, ObjectStore):
        return "/".join(filter(None, (name_of(store.store), target.path)))
    return str(target)


def location_name(store: Location) -> str:
    """Return what errors call a location, without secrets."""
    if isinstance(store, str | os.PathLike):
        return clean_url(os.fspath(store))
    from zarr.storage import StorePath

    return place_name(store if isinstance(store, StorePath) else StorePath(store))


def clear_place_errors(target: StorePath, done: str) -> AbstractContextManager[None]:
    """Turn what a place raises that is not on a local disk into a `StoreError`."""
    from zarr.storage import FsspecStore, ObjectStore

    store = target.store
    if isinstance(store, ObjectStore):
        return clear_errors(place_name(target), done)
    if isinstance(store, FsspecStore):
        return _clear_foreign(place_name(target), done)
    return nullcontext()


@contextmanager
def _clear_foreign(name: str, done: str) -> Iterator[None]:
    """Turn what file systems of fsspec raise, which is of many packages, into a `StoreError`."""
    from zarr.errors import GroupNotFoundError

    try:
        yield
    except (CoresetError, GroupNotFoundError):
        raise
    except Exception as error:
        raise StoreError(
            f"{name} could not be {done} ({type(error).__name__}: {error})",
            argument=name,
            remedy="check the URL, storage_options and the network",
        ) from error


def resolve(
    store: object, storage_options: Mapping[str, Any] | None = None
) -> tuple[StorePath, Path | None]:
    """Return the place in a Zarr store and, if it is on a local disk, its path."""
    from zarr.abc.store import Store
    from zarr.storage import LocalStore, StorePath

    check_options(storage_options)
    if isinstance(store, str | os.PathLike):
        place = locate("store", store)
        store = LocalStore(place) if isinstance(place, Path) else place
    if storage_options and not isinstance(store, str):
        raise InvalidInputError(
            "storage_options are for URLs, and store is not a URL",
            argument="storage_options",
            remedy="leave them out",
        )
    if isinstance(store, str):
        store = _store_at(store, storage_options)
    if isinstance(store, Store):
        store = StorePath(store)
    if not isinstance(store, StorePath):
        raise InvalidTypeError(
            f"store is {a_type(store)}",
            argument="store",
            remedy="pass a path, a URL or a Zarr store",
        )
    if not isinstance(store.store, LocalStore):
        return store, None
    # Followed through links, so that a rename replaces the directory and not the link to it.
    path = (store.store.root / store.path).resolve()
    return StorePath(LocalStore(path, read_only=store.read_only)), path


def _store_at(url: str, storage_options: Mapping[str, Any] | None) -> Store:
    """Return the Zarr store at a URL."""
    from zarr.storage import FsspecStore, ObjectStore

    if is_remote(url) and find_spec("obstore"):
        folder = connect(url, storage_options)
        return ObjectStore(folder, read_only=url.lower().startswith("http"))
    scheme = scheme_of(url)
    with _clear_foreign(clean_url(url), "opened"):
        try:
            options = None if storage_options is None else dict(storage_options)
            return in_time(  # some file systems connect at once
                partial(FsspecStore.from_url, url, storage_options=options),
                lambda: f"the server of store ({scheme}) has not answered",
                NO_ANSWER,
            )
        except ImportError as error:
            raise MissingDependencyError(
                f"store is a URL ({scheme}) that needs a package ({error})",
                argument="store",
                remedy="install it",
            ) from error
        except ValueError as error:
            raise InvalidInputError(
                f"store is a URL of an unknown protocol ({scheme})",
                argument="store",
                remedy="check the URL",
            ) from error
