"""Zarr groups of named arrays and attributes, written whole or not at all, with one digest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import numpy as np

from daskcoreset.core.deadline import NO_ANSWER, check_time
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import check_flag
from daskcoreset.errors import InvalidInputError, MissingPathError, StoreError
from daskcoreset.storage.atomic import check_writable, new_store, recover, standing, write_files
from daskcoreset.storage.locations import (
    Location,
    clear_errors,
    path_of,
    store_name,
    zarr_store,
)
from daskcoreset.storage.objects import ROOT, ask

if TYPE_CHECKING:
    import zarr
    from zarr.storage import StorePath

# The attribute that makes a Zarr group one of ours.
HEADER = "daskcoreset"

# Version of the layout of all groups, the only one that is read.
SCHEMA_VERSION = 1

# The values of attributes. Tuples come back as lists.
JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"

# Chunks of 8 to 32 MB read fastest in measurements. Most coresets are one chunk.
_CHUNK_BYTES = 32 * 2**20

_GROUP = "group"
FROM_A_COPY = "restore it from a copy or build it again"


@dataclass(frozen=True)
class GroupContents:
    """Arrays and attributes of a group, and the groups in it.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        Numbers of at most 64 bits (complex ones of 128), truth values or text.
    dims : mapping of str to tuple of str
        Dimension names of each array.
    attributes : mapping of str to JSON
    kind : str
    groups : mapping of str to GroupContents, default empty
    """

    arrays: Mapping[str, AnyArray]
    dims: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, JSON]
    kind: str
    groups: Mapping[str, GroupContents] = field(default_factory=dict)


# --- writing -----------------------------------------------------------------------------


def write_group(
    store: Location,
    contents: GroupContents,
    *,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write a group whole or not at all. With `overwrite` it replaces one of its kind alone.

    On a disk it is written beside its path and renamed. Elsewhere its digest is written last, and
    a group without digest is an error to read. Of two writers of a new group, a conditional write
    refuses the second.
    """
    check_flag("overwrite", overwrite)
    files = group_files(contents)

    def write() -> None:
        place = zarr_store(store, storage_options)
        if place.read_only or not place.store.supports_deletes:
            raise InvalidInputError(
                f"store {store_name(store)} is read-only or cannot delete",
                remedy="write to a directory and copy that",
            )
        replaced = partial(_replaced, place, contents.kind, overwrite=overwrite)
        path = path_of(place)
        if path is None:
            _send(place, files, replaced())
            return
        recover(path)
        with new_store(path, lambda: bool(replaced())) as scratch:
            write_files(scratch, files)

    ask(store_name(store), "written", write)


def check_free(path: Path, kind: str, *, overwrite: bool) -> bool:
    """Check, before the work, that a group can be written, and return if it replaces one."""
    from zarr.storage import LocalStore, StorePath

    if _replaced(StorePath(LocalStore(path)), kind, overwrite=overwrite):
        return True
    check_writable(path)
    return False


def group_files(contents: GroupContents) -> dict[str, bytes]:
    """Return the files of a Zarr group by their paths in it."""
    import zarr
    from zarr.storage import MemoryStore

    found: dict[str, Any] = {}
    group = zarr.create_group(MemoryStore(found), zarr_format=3)
    for name, array in contents.arrays.items():
        _write_array(group, name, array, contents.dims[name])
    files = {path: buffer.to_bytes() for path, buffer in found.items() if path != ROOT}
    for name, inner in contents.groups.items():
        files |= {f"{name}/{path}": data for path, data in group_files(inner).items()}
    members = {name: _spelled(array) for name, array in contents.arrays.items()}
    header = {
        "kind": contents.kind,
        "version": SCHEMA_VERSION,
        "members": {**members, **dict.fromkeys(contents.groups, _GROUP)},
        "files": sorted(files),
    }
    try:
        text = json.dumps({**contents.attributes, HEADER: header}, allow_nan=False)
        attributes: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"attributes must be plain JSON: {error}", remedy="convert them first"
        ) from error
    attributes[HEADER]["digest"] = _digest(attributes, files)
    return {ROOT: _root(attributes), **files}


def _spelled(array: AnyArray) -> str:
    """Spell the dtype of an array alike on every machine."""
    return "T" if array.dtype.kind == "T" else array.dtype.newbyteorder("<").str


def _root(attributes: Mapping[str, Any]) -> bytes:
    return json.dumps({"zarr_format": 3, "node_type": _GROUP, "attributes": attributes}).encode()


def _digest(attributes: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """Return the digest of all files, and of attributes without it."""
    digest = hashlib.sha256(json.dumps(attributes, sort_keys=True).encode())
    for path in attributes[HEADER]["files"]:
        digest.update(files[path])
    return digest.hexdigest()


def _replaced(place: StorePath, kind: str, *, overwrite: bool) -> set[str]:
    """Return the entries of the group of ours that is there. Anything else there is an error."""
    from zarr.core.sync import sync

    async def listed() -> set[str]:  # obstore begins a list only while a loop runs
        return {entry async for entry in place.store.list_dir(place.path)}

    name = str(path_of(place) or store_name(place))
    if not (entries := sync(listed())):
        return set()
    try:
        header = json.loads(_get(place, ROOT) or b"")["attributes"][HEADER]
        ours = header["kind"] == kind and entries <= {ROOT, *header["members"]}
    except (KeyError, TypeError, ValueError):
        ours = False
    if not ours:
        raise StoreError(
            f"{name} exists and does not hold {kind!r} alone, so it is never overwritten",
            remedy="choose another path",
        )
    if not overwrite:
        raise StoreError(
            f"{name} exists",
            remedy="pass overwrite=True (--overwrite) to replace it, or choose another path",
        )
    return entries


def _send(place: StorePath, files: Mapping[str, bytes], replaced: set[str]) -> None:
    """Write files to a store that renames nothing: a root without digest first, the root last."""
    from zarr.buffer.cpu import Buffer
    from zarr.core.sync import sync

    store, name, root = place.store, store_name(place), (place / ROOT).path
    header = json.loads(files[ROOT])["attributes"][HEADER]
    header |= {"digest": None, "writer": uuid4().hex}
    header["members"] |= dict.fromkeys(replaced - {ROOT}, "old")
    claim = _root({HEADER: header})
    if replaced:
        sync(store.set(root, Buffer.from_bytes(claim)))
        for member in replaced - {ROOT}:
            sync(store.delete_dir((place / member).path))
    else:
        sync(store.set_if_not_exists(root, Buffer.from_bytes(claim)))
    if _get(place, ROOT) != claim:
        raise StoreError(f"{name} exists: another writer was first", remedy="choose another path")
    for path in (*header["files"], ROOT):
        check_time(f"{name} was being written", NO_ANSWER)
        sync(store.set((place / path).path, Buffer.from_bytes(files[path])))


def _get(place: StorePath, name: str) -> bytes | None:
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.sync import sync

    data = sync(place.store.get((place / name).path, default_buffer_prototype()))
    return None if data is None else data.to_bytes()


def _write_array(group: zarr.Group, name: str, array: AnyArray, dims: tuple[str, ...]) -> None:
    rows = max(1, _CHUNK_BYTES // max(1, array.itemsize * math.prod(array.shape[1:])))
    # Text of fixed width has no Zarr version 3 specification yet. The header records the width.
    is_text = array.dtype.kind in "UT"
    stored = group.create_array(
        name,
        shape=array.shape,
        dtype="string" if is_text else array.dtype.newbyteorder("<"),
        chunks=tuple(max(1, min(n, rows) if i == 0 else n) for i, n in enumerate(array.shape)),
        fill_value="" if is_text else 0,
        dimension_names=dims,
        # A chunk equal to the fill value would otherwise be left out, and -0j equals 0.
        config={"write_empty_chunks": True},
    )
    try:
        stored[...] = array
    except (TypeError, UnicodeError) as error:  # text with halves of surrogates
        raise InvalidInputError(
            f"{name} cannot be stored ({error})", remedy="clean or convert it first"
        ) from error


# --- reading -----------------------------------------------------------------------------


def read_group(
    store: Location, *, kind: str, storage_options: Mapping[str, Any] | None = None
) -> GroupContents:
    """Read a group of a kind that `write_group` wrote, and check every bit of it."""
    from zarr.storage import LocalStore, StorePath

    name = store_name(store)

    def read() -> GroupContents:
        place = zarr_store(store, storage_options)
        if (path := path_of(place)) is not None:
            place = StorePath(LocalStore(standing(path), read_only=True))
        return _read(partial(_get, place), name, kind)

    return ask(name, "read", read, FROM_A_COPY)


def read_files(files: Mapping[str, bytes], where: str, kind: str) -> GroupContents:
    """Read a group from its files as `read_group` does. `where` is its name in messages."""
    with clear_errors(where, "read", FROM_A_COPY):
        return _read(files.get, where, kind)


def _read(get: Callable[[str], bytes | None], where: str, kind: str) -> GroupContents:
    import zarr
    from zarr.buffer.cpu import Buffer
    from zarr.storage import MemoryStore

    try:
        root = get(ROOT)
    except FileNotFoundError:  # of a folder that is not there
        root = None
    if root is None:
        raise MissingPathError(f"there is no {kind} at {where}", remedy="check the path")
    attributes = json.loads(root).get("attributes", {})
    header = attributes.get(HEADER)
    if problem := _find_problem(header, kind):
        raise StoreError(f"{where}: {problem[0]}", remedy=problem[1])
    digest = header.pop("digest")
    files = {path: get(path) or b"" for path in header["files"]}
    if digest != _digest(attributes, files):
        raise StoreError(
            f"{where}: changed or damaged since it was written (its digest does not match)",
            remedy=FROM_A_COPY,
        )
    files[ROOT] = root
    store = MemoryStore({path: Buffer.from_bytes(data) for path, data in files.items()})
    return _contents(zarr.open_group(store, mode="r", zarr_format=3, use_consolidated=False))


def _contents(group: zarr.Group) -> GroupContents:
    attributes: dict[str, Any] = group.attrs.asdict()
    header = attributes.pop(HEADER)
    arrays, dims, groups = {}, {}, {}
    for name, dtype in header["members"].items():
        found: Any = group[name]
        if dtype == _GROUP:
            groups[name] = _contents(found)
        else:
            plain = np.dtypes.StringDType() if dtype == "T" else np.dtype(dtype).newbyteorder("=")
            arrays[name] = np.asarray(found[...]).astype(plain, copy=False)
            dims[name] = tuple(found.metadata.dimension_names or ())
    return GroupContents(arrays, dims, attributes, header["kind"], groups)


def _find_problem(header: Any, kind: str) -> tuple[str, str] | None:
    """Return what is wrong with a header, and the remedy. None if nothing is."""
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else "group of others"
        return f"holds a {found!r}, not a {kind!r}", "open it as what it is, or check the path"
    if (version := header.get("version")) != SCHEMA_VERSION:
        problem = f"schema version {version!r} instead of {SCHEMA_VERSION}"
        return problem, "build it again, or upgrade daskcoreset"
    if header.get("digest") is None:
        return "incomplete, its writing was interrupted", "write it with overwrite=True"
    return None
