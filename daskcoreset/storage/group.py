"""Zarr groups of named arrays and attributes, written whole or not at all, with one digest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import numpy as np

from daskcoreset.core.deadline import NO_ANSWER, check_time, in_time
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import check_flag
from daskcoreset.errors import (
    CoresetError,
    InvalidInputError,
    MissingDependencyError,
    MissingPathError,
    StoreError,
)
from daskcoreset.storage.atomic import find_previous, new_store
from daskcoreset.storage.locations import (
    Location,
    clear_errors,
    path_of,
    store_name,
    zarr_store,
)

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
_FROM_A_COPY = "restore it from a copy or build it again"


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

    def checked(self) -> GroupContents:
        """Return the contents with attributes in plain JSON. Anything else is an error."""
        try:
            plain = json.loads(json.dumps(dict(self.attributes), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(
                f"attributes must be plain JSON: {error}", remedy="convert them first"
            ) from error
        return replace(self, attributes=plain)

    @property
    def header(self) -> dict[str, JSON]:
        """The kind, the version, and the members with their dtypes."""
        arrays = {name: _spelled(array) for name, array in self.arrays.items()}
        members = {**arrays, **dict.fromkeys(self.groups, _GROUP)}
        return {"kind": self.kind, "version": SCHEMA_VERSION, "members": members}

    @cached_property
    def digest(self) -> str:
        """Digest of all that is stored."""
        names = sorted(self.arrays)
        axes = {name: [self.arrays[name].shape, self.dims[name]] for name in names}
        inner = {name: group.digest for name, group in self.groups.items()}
        described = json.dumps([self.header, self.attributes, axes, inner], sort_keys=True)
        digest = hashlib.sha256(described.encode())
        for name in names:
            digest.update(_bits(self.arrays[name]))
        return digest.hexdigest()


def _spelled(array: AnyArray) -> str:
    """Spell the dtype of an array alike on every machine."""
    return "string" if array.dtype.kind == "T" else array.dtype.newbyteorder("<").str


def _bits(array: AnyArray) -> bytes:
    if array.dtype.kind == "T":
        return json.dumps(array.ravel().tolist()).encode()
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


@contextmanager
def refuse_inconsistent(subject: str, remedy: str = "restore it from a copy") -> Iterator[None]:
    """Raise a `StoreError` in place of the errors that contradictory contents cause."""
    try:
        yield
    except (StoreError, MissingDependencyError):
        raise
    except (CoresetError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise StoreError(f"{subject} ({error!r})", remedy=remedy) from error


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
    contents = contents.checked()
    check_flag("overwrite", overwrite)
    name = store_name(store)

    def write() -> None:
        _write(zarr_store(store, storage_options), contents, overwrite=overwrite)

    with clear_errors(name, "written"):
        in_time(write, lambda: f"{name} has not answered", NO_ANSWER)


def _write(place: StorePath, contents: GroupContents, *, overwrite: bool) -> None:
    from zarr.storage import LocalStore, StorePath

    if place.read_only or not place.store.supports_deletes:
        raise InvalidInputError(
            f"store {_name(place)} is read-only or cannot delete",
            remedy="write to a directory and copy that",
        )
    path = path_of(place)
    if path is not None and not path.exists() and (before := find_previous(path)):
        before.rename(path)  # the writer that moved it away was killed
    replaced = _replaceable(place, contents.kind, overwrite=overwrite)
    if path is None:
        _clear_away(place, contents, replaced)
        fill_group(place, contents)
        return
    # Asked before the work and again after it.
    again = partial(_replaceable, place, contents.kind, overwrite=overwrite)
    with new_store(path, lambda: bool(again())) as scratch:
        fill_group(StorePath(LocalStore(scratch)), contents)


def _name(place: StorePath) -> str:
    return str(path_of(place) or store_name(place))


def _replaceable(place: StorePath, kind: str, *, overwrite: bool) -> set[str]:
    """Return the entries of the group of ours that is there. Anything else there is an error."""
    from zarr.core.sync import sync

    async def listed() -> set[str]:  # obstore begins a list only while a loop runs
        return {entry async for entry in place.store.list_dir(place.path)}

    name = _name(place)
    if not (entries := sync(listed())):
        return set()
    header: Any = None
    try:
        header = _open(place).attrs.asdict()[HEADER]
        members = {"zarr.json", *header["members"]}
    except (KeyError, TypeError, ValueError, OSError):
        header = {}
    if header.get("kind") != kind:
        raise StoreError(
            f"{name} exists and is not a {kind} of daskcoreset, so it is never overwritten",
            remedy="choose another path",
        )
    if foreign := entries - members:
        raise StoreError(
            f"{name} also holds {min(foreign)!r}, so it is never overwritten",
            remedy="move that or choose another path",
        )
    if not overwrite:
        raise StoreError(
            f"{name} exists", remedy="pass overwrite=True to replace it or choose another path"
        )
    return entries


def _clear_away(place: StorePath, contents: GroupContents, replaced: set[str]) -> None:
    """Remove what is replaced. Until the last step it can be recognised as ours, and incomplete."""
    from zarr.core.sync import sync

    if not replaced:
        return
    members = dict.fromkeys(replaced - {"zarr.json"}, "old")
    _open(place, "r+").attrs.put({HEADER: {**contents.header, "members": members}})
    for name in members:
        sync(place.store.delete_dir((place / name).path))
    sync(place.store.delete((place / "zarr.json").path))


def fill_group(place: StorePath, contents: GroupContents) -> None:
    """Write contents that are checked to an empty place."""
    group = _claimed(place, contents)
    for name, array in contents.arrays.items():
        check_time(f"{_name(place)} was being written", NO_ANSWER)
        _write_array(group, name, array, contents.dims[name])
    for name, inner in contents.groups.items():
        fill_group(place / name, inner)
    check_time(f"{_name(place)} was being written", NO_ANSWER)
    header = {**contents.header, "digest": contents.digest}
    group.attrs.put({**contents.attributes, HEADER: header})


def _claimed(place: StorePath, contents: GroupContents) -> zarr.Group:
    """Make a group without digest, by one write that only the first of several writers can make."""
    from zarr.buffer.cpu import Buffer
    from zarr.core.sync import sync

    header = {**contents.header, "writer": uuid4().hex}
    group = {"zarr_format": 3, "node_type": _GROUP, "attributes": {HEADER: header}}
    data = Buffer.from_bytes(json.dumps(group).encode())
    sync(place.store.set_if_not_exists((place / "zarr.json").path, data))
    made = _open(place, "r+")
    if made.attrs.asdict().get(HEADER) != header:
        raise StoreError(
            f"{_name(place)} exists: another writer was first", remedy="choose another path"
        )
    return made


def _write_array(group: zarr.Group, name: str, array: AnyArray, dims: tuple[str, ...]) -> None:
    from zarr.codecs import ZstdCodec

    rows = max(1, _CHUNK_BYTES // max(1, array.itemsize * math.prod(array.shape[1:])))
    # Text of fixed width has no Zarr version 3 specification yet. The header records the width.
    is_text = array.dtype.kind in "UT"
    stored = group.create_array(
        name,
        shape=array.shape,
        dtype="string" if is_text else array.dtype.newbyteorder("<"),
        chunks=tuple(max(1, min(n, rows) if i == 0 else n) for i, n in enumerate(array.shape)),
        # The checksum stops damaged text before its decoder believes a length of gigabytes.
        compressors=[ZstdCodec(checksum=True)],
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
            # A writer that was killed between its renames leaves the group of before beside it.
            there = path if path.exists() else find_previous(path) or path
            place = StorePath(LocalStore(there, read_only=True))
        return read_contents(place, name, kind)

    with clear_errors(name, "read"):
        return in_time(read, lambda: f"{name} has not answered", NO_ANSWER)


def _open(place: StorePath, mode: Any = "r") -> zarr.Group:
    import zarr

    # Store and path apart, or Zarr takes the store to be open: a missing directory would be made.
    # Consolidated metadata may differ from those of the arrays.
    return zarr.open_group(
        place.store, path=place.path, mode=mode, zarr_format=3, use_consolidated=False
    )


def read_contents(place: StorePath, where: str, kind: str | None = None) -> GroupContents:
    """Read a group of a Zarr store as `read_group` does. `where` is its name in messages."""
    from zarr.errors import ContainsArrayError

    with clear_errors(where, "read", _FROM_A_COPY):
        try:
            group = _open(place)
        except (FileNotFoundError, NotADirectoryError):
            raise MissingPathError(
                f"there is no {kind or _GROUP} at {where}", remedy="check the path"
            ) from None
        except ContainsArrayError:
            raise StoreError(
                f"{where} is a Zarr array, not a stored {kind}",
                remedy="pass it as X to daskcoreset.build",
            ) from None
        attributes: dict[str, Any] = group.attrs.asdict()
        header = attributes.pop(HEADER, None)
        if problem := _find_problem(header, kind):
            raise StoreError(f"{where}: {problem[0]}", remedy=problem[1])
        arrays, dims, groups = {}, {}, {}
        for name, dtype in header["members"].items():
            if dtype == _GROUP:
                groups[name] = read_contents(place / name, f"{where}/{name}")
            else:
                array: Any = group[name]
                arrays[name] = _values(array, dtype)
                dims[name] = tuple(array.metadata.dimension_names or ())
        contents = GroupContents(arrays, dims, attributes, header["kind"], groups)
        if header != {**contents.header, "digest": contents.digest}:
            raise StoreError(
                f"{where}: changed or damaged since it was written (its digest does not match)",
                remedy=_FROM_A_COPY,
            )
        return contents


def _find_problem(header: Any, kind: str | None) -> tuple[str, str] | None:
    """Return what is wrong with a header, and the remedy. None if nothing is."""
    if not isinstance(header, dict):
        return "is a Zarr group, but not one of daskcoreset", "check the path"
    other = str(header.get("kind"))
    if kind is not None and other != kind:
        return f"holds a {other!r}, not a {kind!r}", f"open it as a {other}, or check the path"
    if (found := header.get("version")) != SCHEMA_VERSION:
        problem = f"schema version {found!r} instead of {SCHEMA_VERSION}"
        return problem, "build it again, or upgrade daskcoreset"
    if "digest" not in header:
        return "incomplete, its writing was interrupted", "write it with overwrite=True"
    return None


def _values(array: zarr.Array[Any], dtype: str) -> AnyArray:
    """Return the values of an array with the dtype that was written. The digest checks them."""
    values: AnyArray = np.asarray(array[...])
    if dtype == "string":
        return values.astype(np.dtypes.StringDType())
    return values.astype(np.dtype(dtype).newbyteorder("="), copy=False)
