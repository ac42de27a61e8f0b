"""What tells a file, an object or a chunk from what was there before: its *stamp*.

By ``"stat"`` a stamp holds size and modification time (of the disk also the number of the file and
the time of its last change, since a modification time can be set), or the entity tag of an object;
by ``"content"`` it is a hash of the bytes. Stamps are compared, and mean nothing else: no random
number depends on them.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.core.validation import a_type
from daskcoreset.inputs.places import Place, read_clearly
from daskcoreset.inputs.zarr_stores import store_name

Detect: TypeAlias = Literal["stat", "content"]

# A file that is written again within one tick of the clock of its disk, after it was looked at, has
# the same times. What is younger than a tick is therefore waited for: a file whose time has a
# fraction of a second lies on a disk with ticks of milliseconds, any other one maybe not. Of a
# server that tells no entity tags what is so young is read again by the next refresh instead.
_TICK, _COARSE_TICK = 0.03, 2.0

_PIECE = 2**22

# Requests to a web server at a time, and what it answers of chunks that are not stored.
_AT_ONCE, _GONE = 32, (404, 410)

# What file systems of fsspec call the tags and times of objects.
_TAGS = ("ETag", "etag", "e_tag", "md5", "md5Hash", "checksum", "Content-MD5", "Digest")
_TIMES = (
    *("LastModified", "last_modified", "Last-Modified"),
    *("mtime", "updated", "modified", "created"),
)


def digest_of(texts: Iterable[str | None]) -> str:
    """Return 32 hexadecimal digits for a sequence of stamps; None stands for what is not there.

    Examples
    --------
    >>> digest_of(["a", None]) == digest_of(["a", "None"])
    False
    """
    return hashlib.blake2b(repr(list(texts)).encode(), digest_size=16).hexdigest()


def stamps_of_files(places: Sequence[Place], detect: Detect) -> list[str]:
    """Return the stamps of files; of a folder, such as a Zarr store, that of all files in it."""
    listed: dict[str, Mapping[str, Any]] = {}
    return [_of_place(place, detect, listed) for place in places]


def _of_place(place: Place, detect: Detect, listed: dict[str, Mapping[str, Any]]) -> str:
    if not place.is_file and (files := place.files()):
        return digest_of(
            f"{file.path[len(place.path) :]} {_of_file(file, detect, listed)}" for file in files
        )
    return _of_file(place, detect, listed)


def _of_file(place: Place, detect: Detect, listed: dict[str, Mapping[str, Any]]) -> str:
    if detect == "content":
        what = f"the file {place.name!r}"
        return read_clearly(lambda: what, lambda: _hashed(place), place.url)
    if place.filesystem is None:
        return read_clearly(lambda: f"the file {place.path!r}", lambda: _of_disk(place.path)) or ""
    if place.path not in listed:
        folder = place.path.rpartition("/")[0]
        listed.update(_listed(place.filesystem, folder))
    found = listed.get(place.path, {})
    if not any(found.get(key) for key in (*_TAGS, *_TIMES)):  # lists of web servers say less
        found = _asked(place)
    return _of_object(found, place.name)


def _listed(filesystem: Any, folder: str) -> Mapping[str, Mapping[str, Any]]:
    """Return what a list says of the files of a remote folder; nothing where there are no lists."""
    try:
        filesystem.invalidate_cache()
        found = filesystem.ls(folder, detail=True)
    except Exception:  # noqa: BLE001 - what may be read need not be listed
        return {}
    return {entry["name"]: entry for entry in found}


def _asked(place: Place) -> Mapping[str, Any]:
    def ask() -> Mapping[str, Any]:
        found: Mapping[str, Any] = place.filesystem.info(place.path)
        return found

    return read_clearly(lambda: f"the file {place.name!r}", ask, place.url)


def _of_object(found: Mapping[str, Any], name: str) -> str:
    tags = [str(found[key]) for key in _TAGS if found.get(key)]
    times = [str(found[key]) for key in _TIMES if found.get(key)]
    if not tags and not times:
        raise InvalidInputError(
            f"{name}: its server tells neither when it was written nor an entity tag, so that "
            f'changes cannot be seen; pass detect="content", which reads every file.'
        )
    # Without a tag, what is written within one tick after it was looked at may look the same.
    young = not tags and any(abs(time.time() - seconds) < _COARSE_TICK for seconds in _times(found))
    seen = f" seen={time.time_ns()}" if young else ""
    return f"size={found.get('size')} tag={tags} time={times}{seen}"


def _times(found: Mapping[str, Any]) -> Iterator[float]:
    """Return the times that a server tells, in seconds, as far as they are understood."""
    for key in (key for key in _TIMES if found.get(key)):
        value = found[key]
        if key == "Last-Modified":  # of the web: text with whole seconds
            with suppress(TypeError, ValueError):
                value = parsedate_to_datetime(value)
        if isinstance(value, dt.datetime):
            yield (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp()
        elif isinstance(value, (int, float)):
            yield float(value)


def _of_disk(path: str | os.PathLike[str]) -> str | None:
    """Return the stamp of a file on the disk; None where there is none."""
    try:
        found = Path(path).stat()
        fine = found.st_mtime_ns % 10**9 or found.st_ctime_ns % 10**9
        tick = _TICK if fine else _COARSE_TICK
        age = time.time() - max(found.st_mtime_ns, found.st_ctime_ns) / 1e9
        if 0.0 <= age < tick:
            time.sleep(tick - age)
            found = Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (
        f"size={found.st_size} time={found.st_mtime_ns} change={found.st_ctime_ns} "
        f"file={found.st_ino}"
    )


def _hashed(place: Place) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with open(place.path, "rb") if place.filesystem is None else place.open() as file:  # noqa: PTH123 - or remote
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


# --- chunks of Zarr arrays ----------------------------------------------------------------


def chunk_stamper(array: Any, detect: Detect) -> Callable[[Sequence[str]], list[str | None]]:
    """Return what gives the stamps of chunks of a Zarr array by their keys; None for no chunk.

    Raises
    ------
    InvalidInputError
        If the store of the array tells too little about its chunks.
    """
    from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore, WrapperStore

    place = array.store_path
    store = place.store
    prefix = f"{place.path}/" if place.path else ""
    while isinstance(store, WrapperStore):
        store = store._store  # noqa: SLF001 - where the chunks lie is known to the inner one
    if detect == "content" or isinstance(store, MemoryStore):
        return lambda keys: _chunk_hashes(store, [prefix + key for key in keys])
    if isinstance(store, LocalStore):
        return lambda keys: [_of_disk(store.root / (prefix + key)) for key in keys]
    if isinstance(store, FsspecStore):
        folder = f"{store.path.rstrip('/')}/{prefix}"
        protocol = store.fs.protocol
        protocols = {protocol} if isinstance(protocol, str) else {*protocol}
        if protocols & {"http", "https"}:
            return lambda keys: _web_stamps(store.fs, folder, keys, store_name(place))
        return _listing(lambda: _fsspec_objects(store.fs, folder), store_name(place))
    if isinstance(store, ObjectStore):
        return _listing(lambda: _obstore_objects(store.store, prefix), store_name(place))
    raise InvalidInputError(
        f"{store_name(place)}: {a_type(store)} does not tell when chunks were written; "
        f'pass detect="content", which reads them all, or, of Icechunk, the repository.'
    )


def _chunk_hashes(store: Any, keys: Sequence[str]) -> list[str | None]:
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.sync import sync

    prototype, stamps = default_buffer_prototype(), []
    for key in keys:
        found = read_clearly(lambda: "chunks", lambda key=key: sync(store.get(key, prototype)))  # type: ignore[misc] # the key of this step
        stamps.append(
            None if found is None else hashlib.blake2b(found.to_bytes(), digest_size=16).hexdigest()
        )
    return stamps


def _listing(
    list_objects: Callable[[], Mapping[str, Mapping[str, Any]]], name: str
) -> Callable[[Sequence[str]], list[str | None]]:
    """Return stamps out of one list, which is asked for when it is needed first."""
    found: list[Mapping[str, Mapping[str, Any]]] = []

    def stamps(keys: Sequence[str]) -> list[str | None]:
        if not found:
            found.append(_checked(read_clearly(lambda: f"the list of {name}", list_objects), name))
        listed = found[0]
        return [_of_object(listed[key], name) if key in listed else None for key in keys]

    return stamps


def _checked(listed: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Mapping[str, Any]]:
    """Refuse lists that leave out what is there: chunks would look as if there were none.

    The metadata of an array lie beside its chunks, and so are in every list that is one.
    """
    known = [listed[key] for key in ("zarr.json", ".zarray") if key in listed]
    if not known:
        raise StoreError(
            f"{name}: its server does not list what it stores, so that changes of chunks cannot be "
            f'seen; pass detect="content", which reads every chunk.'
        )
    for entry in known:
        _of_object(entry, name)
    return listed


def _fsspec_objects(filesystem: Any, folder: str) -> Mapping[str, Mapping[str, Any]]:
    from zarr.core.sync import sync

    async def find() -> Any:
        return await filesystem._find(folder.rstrip("/"), detail=True)  # noqa: SLF001 - its asynchronous form

    filesystem.invalidate_cache()
    asynchronous = getattr(filesystem, "asynchronous", False) and hasattr(filesystem, "_find")
    found = sync(find()) if asynchronous else filesystem.find(folder.rstrip("/"), detail=True)
    start = filesystem._strip_protocol(folder).rstrip("/") + "/"  # noqa: SLF001 - as keys of the list are
    return {str(path).removeprefix(start): entry for path, entry in found.items()}


def _web_stamps(filesystem: Any, folder: str, keys: Sequence[str], name: str) -> list[str | None]:
    """Ask a web server for the head of every chunk: their names are known from the grid."""
    from zarr.core.sync import sync

    async def ask(limit: asyncio.Semaphore, key: str) -> Mapping[str, Any] | None:
        async with limit:
            try:
                found: Mapping[str, Any] = await filesystem._info(folder + key)  # noqa: SLF001 - its asynchronous form
            except FileNotFoundError as error:
                # Which it makes of whatever the server answers.
                if getattr(error.__cause__, "status", 404) in _GONE:
                    return None
                raise error.__cause__ or error from None
            return found

    async def ask_all() -> list[Mapping[str, Any] | None]:
        limit = asyncio.Semaphore(_AT_ONCE)
        return await asyncio.gather(*(ask(limit, key) for key in keys))

    answers = read_clearly(lambda: f"the chunks of {name}", lambda: sync(ask_all()))
    return [None if found is None else _of_object(found, name) for found in answers]


def _obstore_objects(store: Any, prefix: str) -> Mapping[str, Mapping[str, Any]]:
    import obstore

    return {
        entry["path"].removeprefix(prefix): entry
        for page in obstore.list(store, prefix=prefix or None)
        for entry in page
    }
