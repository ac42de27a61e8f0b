"""Folders of object stores: their options, requests, and errors without secrets.

What decides is done by conditional writes: an object is made only if it is missing
(``If-None-Match``), or replaced only where it is the one that was read (``If-Match``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from daskcoreset.core.deadline import NO_ANSWER, in_time, pause
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, StoreError
from daskcoreset.core.validation import a_type, check_options
from daskcoreset.storage.locations import (
    OBJECT_STORES,
    clean_url,
    credentials_for,
    locate,
    object_store,
    object_store_name,
    reason,
    scheme_of,
)

if TYPE_CHECKING:
    from obstore.store import ObjectStore

P = ParamSpec("P")
T = TypeVar("T")


class RefusedError(StoreError):
    """The store answered, and refused: nothing was done."""


@dataclass(frozen=True)
class Stored:
    """An object as it was read: its bytes, and what tells it from any other at this place."""

    data: bytes
    tag: Mapping[str, Any]


@contextmanager
def clear_errors(name: str, done: str) -> Iterator[None]:
    """Turn what obstore raises into a `StoreError` that says what to set, without secrets.

    Parameters
    ----------
    name : str
        Name of the place in messages.
    done : str
        The operation that failed, such as "read".
    """
    from obstore.exceptions import (
        BaseError,
        NotFoundError,
        PermissionDeniedError,
        UnauthenticatedError,
    )

    try:
        yield
    except (BaseError, NotImplementedError, FileNotFoundError) as error:
        text = str(error)
        absent = isinstance(error, (NotFoundError, FileNotFoundError))
        if absent and "at location" not in text:
            raise  # of Zarr, which found no group
        # Without keys, machines of a cloud ask their host for some.
        no_keys = "/latest/api/token" in text or "/computeMetadata/" in text
        if no_keys or isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
            found = "no credentials were found" if no_keys else "access was refused"
            raise RefusedError(
                f"{name}: {found}", argument=name, remedy=f"pass {credentials_for(name)}"
            ) from None
        if absent or "NoSuchBucket" in text:
            raise RefusedError(
                f"{name} could not be {done}: there is no such bucket",
                argument=name,
                remedy="make it first",
            ) from None
        # Without the cause, whose text may hold the address with its signature.
        raise StoreError(
            f"{name} could not be {done} ({reason(error)})",
            remedy="check the network and the endpoint, and try again",
        ) from None


def _again(request: Callable[P, T]) -> Callable[P, T]:
    """Send a request that may be sent twice again, where the connection was cut under its answer.

    obstore itself sends again what got no answer at all.
    """

    @wraps(request)
    def sent(*args: P.args, **options: P.kwargs) -> T:
        for seconds in (0.1, 0.4):
            try:
                return request(*args, **options)
            except RefusedError:
                raise
            except StoreError:
                pause(seconds)
        return request(*args, **options)

    return sent


class ObjectFolder:
    """A folder of an object store. Its errors name it, and what to set.

    Parameters
    ----------
    store : obstore.store.ObjectStore
    name : str
        Name in messages, without secrets.
    """

    def __init__(self, store: ObjectStore, name: str) -> None:
        self.store = store
        self.name = name

    @property
    def read_only(self) -> bool:
        """Whether it is served by a web server, which takes no writes."""
        from obstore.store import HTTPStore

        return isinstance(self.store, HTTPStore)

    @_again
    def get(self, key: str) -> Stored | None:
        """Return an object, or None where there is none.

        Raises
        ------
        StoreError
            If the bucket does not exist.
        """
        import obstore
        from obstore.exceptions import NotFoundError

        def get() -> Stored:
            found = obstore.get(self.store, key)
            tag = {"e_tag": found.meta["e_tag"], "version": found.meta.get("version")}
            return Stored(bytes(found.bytes()), tag)

        with clear_errors(self.name, "read"):
            try:
                return self._in_time(get)
            except (NotFoundError, FileNotFoundError) as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None

    @_again
    def put(self, key: str, data: bytes) -> None:
        """Write an object, whatever is there."""
        import obstore

        with clear_errors(self.name, "written"):
            # As one request: an upload in parts is another protocol, and needs no condition here.
            self._in_time(lambda: obstore.put(self.store, key, data, use_multipart=False))

    def put_if(
        self, key: str, data: bytes, tag: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """Write an object where there is none (`tag` None), or in place of the one with `tag`.

        Returns
        -------
        mapping or None
            The tag of what was written. None where there is another one.

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

    @_again
    def check_conditions(self, key: str) -> None:
        """Check that conditions are heeded, by an object that no other writer knows.

        Raises
        ------
        RefusedError
            They are not: some stores take no notice of what they do not know.
        StoreError
            It cannot be told: a conflict is also the answer to a request that was sent twice, or
            came at a bad moment.
        """
        try:
            tag = self.put_if(key, b"1", None)
            made_twice = None if tag is None else self.put_if(key, b"2", None)
            replaced = None if tag is None else self.put_if(key, b"3", tag)
            replaced_twice = None if replaced is None else self.put_if(key, b"4", tag)
        finally:
            with suppress(StoreError):
                self.delete([key])
        if made_twice or replaced_twice:
            raise RefusedError(
                f"{self.name}: this object store takes no notice of conditions (If-None-Match, "
                "If-Match), so that two writers would overwrite each other",
                remedy="use another one, or a local disk",
            )
        if replaced is None:  # an answer was lost, so that a request was sent twice
            raise StoreError(f"{self.name}: conditional writes fail", remedy="try again")

    @_again
    def keys(self, under: str | None = None, most: int | None = None) -> list[str]:
        """Return the names of the objects under a folder, in no order: of all, or up to a number.

        Parameters
        ----------
        under : str, optional
            The folder.
        most : int, optional
            How many.
        """
        import obstore

        def found() -> list[str]:
            batches = obstore.list(self.store, under)
            listed = (meta["path"] for batch in batches for meta in batch)
            return list(islice(listed, most))

        with clear_errors(self.name, "listed"):
            return self._in_time(found)

    @_again
    def has(self, key: str) -> bool:
        """Return whether there is an object."""
        import obstore
        from obstore.exceptions import NotFoundError

        with clear_errors(self.name, "read"):
            try:
                self._in_time(lambda: obstore.head(self.store, key))
            except (NotFoundError, FileNotFoundError):
                return False
            return True

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that are gone already are none that matter."""
        import obstore
        from obstore.exceptions import NotFoundError

        with clear_errors(self.name, "deleted"):
            for start in range(0, len(keys), 1000):
                part = list(keys[start : start + 1000])
                with suppress(NotFoundError, FileNotFoundError):
                    self._in_time(partial(obstore.delete, self.store, part))

    def _in_time(self, request: Callable[[], T]) -> T:
        """Send a request, and wait for its answer no longer than the call may take.

        obstore bounds what one connection may take, which is set when it connects: a deadline is
        that of a call, of which there are many, and a retry begins again.
        """
        return in_time(request, lambda: f"{self.name} has not answered", NO_ANSWER)


def find_folder(
    argument: str, location: object, storage_options: Mapping[str, Any] | None = None
) -> ObjectFolder | Path:
    """Return the folder of an object store, or the path, that a location means.

    Parameters
    ----------
    argument : str
        Name of the location in errors.
    location : path, str or zarr.abc.store.Store
    storage_options : mapping, optional
        As in `object_store`. Only the URL of an object store has some.

    Raises
    ------
    InvalidInputError
        The URL is of another kind, or the location has no options.
    InvalidTypeError
        It is a Zarr store without conditional writes, or no location.
    StoreError
        If access to it is denied.
    """
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
    with suppress(FileNotFoundError, NotADirectoryError):
        try:
            place.lstat()
        except PermissionError as error:
            raise StoreError(
                f"{argument} is {place}, to which access is denied",
                argument=argument,
                remedy="choose another path",
            ) from error
    return place
