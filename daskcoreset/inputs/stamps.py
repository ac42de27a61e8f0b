"""What tells a file, an object or a chunk from what was there before: its *stamp*.

A stamp holds size and modification time (of the disk also the number of the file and the time of
its last change, since a modification time can be set), or the entity tag of an object. If a server
or a store tells neither, it is a hash of the bytes. Stamps are compared, and mean nothing else: no
random number depends on them.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any

from daskcoreset.inputs.places import Place, read_clearly
from daskcoreset.inputs.zarr_stores import store_name

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
    """Return 32 hexadecimal digits for a sequence of stamps. None marks a missing one.

    Examples
    --------
    >>> digest_of(["a", None]) == digest_of(["a", "None"])
    False
    """
    return hashlib.blake2b(repr(list(texts)).encode(), digest_size=16).hexdigest()


def stamps_of_files(places: Sequence[Place]) -> list[str]:
    """Return the stamps of files; of a folder, such as a Zarr store, that of all files in it."""
    listed: dict[str, Mapping[str, Any]] = {}
    return [_of_place(place, listed) for place in places]


def _of_place(place: Place, listed: dict[str, Mapping[str, Any]]) -> str:
    if not place.is_file and (files := place.files()):
        return digest_of(
            f"{file.path[len(place.path) :]} {_of_file(file, listed)}" for file in files
        )
    return _of_file(place, listed)


def _of_file(place: Place, listed: dict[str, Mapping[str, Any]]) -> str:
    if place.filesystem is None:
        return read_clearly(lambda: f"the file {place.path!r}", lambda: _of_disk(place.path)) or ""
    if place.path not in listed:
        folder = place.path.rpartition("/")[0]
        listed.update(_listed(place.filesystem, folder))
    found = listed.get(place.path, {})
    if not any(found.get(key) for key in (*_TAGS, *_TIMES)):  # lists of web servers say less
        found = _asked(place)
    if stamp := _of_object(found):
        return stamp
    return read_clearly(lambda: f"the file {place.name!r}", lambda: _hashed(place), place.url)


def _listed(filesystem: Any, folder: str) -> Mapping[str, Mapping[str, Any]]:
    """Return what a list says of the files of a remote folder. Nothing without lists."""
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


def _of_object(found: Mapping[str, Any]) -> str:
    """Return the stamp of an object. An empty one if nothing tells when it was written."""
    tags = [str(found[key]) for key in _TAGS if found.get(key)]
    times = [str(found[key]) for key in _TIMES if found.get(key)]
    if not tags and not times:
        return ""
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
    """Return the stamp of a file on the disk. None where there is none."""
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


def chunk_stamps(array: Any, keys: Sequence[str]) -> list[str | None]:
    """Return the stamps of chunks of a Zarr array by their keys. None for no chunk."""
    from zarr.storage import LocalStore, WrapperStore

    place = array.store_path
    store = place.store
    prefix = f"{place.path}/" if place.path else ""
    while isinstance(store, WrapperStore):
        store = store._store  # noqa: SLF001 - where the chunks lie is known to the inner one
    if isinstance(store, LocalStore):
        return [_of_disk(store.root / (prefix + key)) for key in keys]
    found = _found_objects(store, prefix, keys, store_name(place))
    if found is not None:
        stamps = [None if one is None else _of_object(one) for one in found]
        if "" not in stamps:
            return stamps
    return _chunk_hashes(store, [prefix + key for key in keys])


def _found_objects(
    store: Any, prefix: str, keys: Sequence[str], name: str
) -> Sequence[Mapping[str, Any] | None] | None:
    """Return what a store says of its objects. None if it has no answer."""
    from zarr.storage import FsspecStore, ObjectStore

    if isinstance(store, FsspecStore):
        folder = f"{store.path.rstrip('/')}/{prefix}"
        protocol = store.fs.protocol
        protocols = {protocol} if isinstance(protocol, str) else {*protocol}
        if protocols & {"http", "https"}:
            return _asked_of_web(store.fs, folder, keys, name)
        ask = partial(_fsspec_objects, store.fs, folder)
    elif isinstance(store, ObjectStore):
        ask = partial(_obstore_objects, store.store, prefix)
    else:
        return None
    listed = read_clearly(lambda: f"the list of {name}", ask)
    # The metadata of an array lie beside its chunks, in every list that leaves out nothing.
    if not listed.keys() & {"zarr.json", ".zarray"}:
        return None
    return [listed.get(key) for key in keys]


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


def _fsspec_objects(filesystem: Any, folder: str) -> Mapping[str, Mapping[str, Any]]:
    from zarr.core.sync import sync

    async def find() -> Any:
        return await filesystem._find(folder.rstrip("/"), detail=True)  # noqa: SLF001 - its asynchronous form

    filesystem.invalidate_cache()
    asynchronous = getattr(filesystem, "asynchronous", False) and hasattr(filesystem, "_find")
    found = sync(find()) if asynchronous else filesystem.find(folder.rstrip("/"), detail=True)
    start = filesystem._strip_protocol(folder).rstrip("/") + "/"  # noqa: SLF001 - as keys of the list are
    return {str(path).removeprefix(start): entry for path, entry in found.items()}


def _asked_of_web(
    filesystem: Any, folder: str, keys: Sequence[str], name: str
) -> list[Mapping[str, Any] | None]:
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

    return read_clearly(lambda: f"the chunks of {name}", lambda: sync(ask_all()))


def _obstore_objects(store: Any, prefix: str) -> Mapping[str, Mapping[str, Any]]:
    import obstore

    return {
        entry["path"].removeprefix(prefix): entry
        for page in obstore.list(store, prefix=prefix or None)
        for entry in page
    }
