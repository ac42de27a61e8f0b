"""Small named arrays in and out of Zarr version 3, all of them or none.

A store is one Zarr group. Its arrays carry dimension names, its attributes are plain
JSON, and nothing is pickled, so xarray or any other Zarr reader opens it. One attribute,
``daskcoreset``, is ours: kind, schema version, the names, dtypes and shapes of the arrays,
and a SHA-256 digest over all of it, bytes included. A group without that digest is not a
store: the digest is written last, so an interrupted write never opens.

On a local disk the group is completed in a hidden sibling directory, flushed, and renamed
into place, so what stood there before stays whole until its successor is complete. Other
stores have no rename: there, overwriting first marks the old group as incomplete.

Source of the format: the Zarr version 3 specification, https://zarr-specs.readthedocs.io.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.codecs import ZstdCodec
from zarr.core.sync import collect_aiterator
from zarr.storage import FsspecStore, LocalStore, StorePath

from daskcoreset.core.validation import check_flag
from daskcoreset.core.contents import HEADER, JSON, Contents, check_header, spell_dtype
from daskcoreset.core.atomic import find_previous, is_leftover, new_directory
from daskcoreset.core.errors import (
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daskcoreset.core.typing import AnyArray

__all__ = ["JSON", "Location", "read_group", "write_group"]

Location: TypeAlias = "str | os.PathLike[str] | Store | StorePath"
"""A path, a ``file://`` or other fsspec URL, or a Zarr store with or without a path in it."""

# Between 8 and 32 MB a chunk read fastest in measurements; most coresets are one chunk.
_CHUNK_BYTES = 32 * 2**20


def write_group(
    store: Location,
    arrays: Mapping[str, AnyArray],
    dims: Mapping[str, tuple[str, ...]],
    attributes: Mapping[str, JSON],
    *,
    kind: str,
    schema_version: int,
    overwrite: bool = False,
) -> None:
    """Write named arrays and attributes as one Zarr version 3 group, whole or not at all.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath
        Where the group goes. Missing parent directories are made.
    arrays : mapping of str to ndarray
        Arrays of any shape; booleans, integers, floats up to 64 bits, complex up to 128
        bits, and strings (fixed width or `numpy.dtypes.StringDType` without a missing
        value). Numbers are stored in little-endian order.
    dims : mapping of str to tuple of str
        Dimension names of each array, one an axis; a name has one length in all arrays.
    attributes : mapping of str to JSON
        Attributes of the group, without NaN or infinity, which JSON does not have.
    kind : str
        What the group is; only the same kind reads or overwrites it.
    schema_version : int
        Version of the layout, 1 or more, chosen by the caller.
    overwrite : bool, default False
        Replace a group of the same kind. False by default because what is replaced is
        gone; anything that this library did not write is refused either way.

    Raises
    ------
    InvalidInputError
        A name, dimension, string or attribute cannot be stored.
    InvalidTypeError
        The store, an array's dtype or an attribute's type is not supported.
    MissingDependencyError
        The URL needs a package that is not installed.
    StoreError
        Something is there already, or the disk refused. Nothing was changed.

    Examples
    --------
    >>> import numpy as np
    >>> from zarr.storage import MemoryStore
    >>> store = MemoryStore()
    >>> ages = np.array([31, 45])
    >>> write_group(store, {"age": ages}, {"age": ("row",)}, {}, kind="demo", schema_version=1)
    >>> read_group(store, kind="demo", schema_version=1)
    ({'age': array([31, 45])}, {})
    """
    contents = Contents(arrays, dims, attributes, kind, schema_version).checked()
    place, path = _resolve(store)
    if place.read_only or not place.store.supports_deletes:
        msg = f"store {place} is read-only or cannot delete; write to a directory and copy that"
        raise InvalidInputError(msg)
    members = _replaceable(place, kind, overwrite=overwrite)
    if path is None:
        _fill(place, contents, members)
        return

    def may_replace() -> bool:
        return _replaceable(place, kind, overwrite=overwrite) is not None

    try:
        with new_directory(path, may_replace=may_replace) as scratch:
            _fill(StorePath(LocalStore(scratch)), contents, None)
    except StoreError:
        raise
    except OSError as error:
        msg = f"could not write {path}: {error}; nothing there was changed"
        raise StoreError(msg) from error


def read_group(
    store: Location, *, kind: str, schema_version: int
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Read a group written by `write_group`, or refuse it.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath
        Where the group is.
    kind : str
        The kind it must be of.
    schema_version : int
        The version the caller reads.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays, bit for bit as written, in native byte order.
    attributes : dict
        The attributes as written.

    Raises
    ------
    StoreError
        The group is missing, incomplete, of another kind or version, or differs in any
        bit of its arrays, names or attributes from what was written.
    InvalidTypeError
        `store` is none of the accepted types.

    Examples
    --------
    >>> from zarr.storage import MemoryStore
    >>> read_group(MemoryStore(), kind="demo", schema_version=1)
    Traceback (most recent call last):
    ...
    daskcoreset.errors.StoreError: ...: no Zarr version 3 group; check the path
    """
    place, path = _resolve(store)
    where = str(path or place)
    if path is not None and is_leftover(path):
        msg = f"{path} is left over from an interrupted write; if it is wanted, rename it first"
        raise StoreError(msg)
    try:
        group = _open(place, "r")
    except FileNotFoundError as error:
        msg = f"{where}: no Zarr version 3 group; check the path"
        if path is not None and (previous := find_previous(path)):
            msg += f", or rename {previous} back, which an interrupted overwrite left"
        raise StoreError(msg) from error
    # A damaged store makes zarr, its codecs and the file system raise almost anything.
    except Exception as error:
        msg = f"{where}: its metadata does not read ({error}); restore or rebuild it"
        raise StoreError(msg) from error
    attributes: dict[str, Any] = group.attrs.asdict()
    header = attributes.pop(HEADER, None)
    specs = check_header(where, header, kind, schema_version)
    arrays: dict[str, AnyArray] = {}
    dims: dict[str, tuple[str, ...]] = {}
    for name, spec in specs.items():
        try:
            arrays[name], dims[name] = _read_array(group, name, spec)
        except Exception as error:
            msg = f"{where}: array {name!r} does not read ({error}); restore or rebuild the store"
            raise StoreError(msg) from error
    found = Contents(arrays, dims, attributes, kind, schema_version).header(complete=True)
    if found != header:
        msg = f"{where}: changed or damaged since it was written (its digest does not match)"
        raise StoreError(f"{msg}; restore it from a copy or rebuild it")
    return arrays, attributes


def _resolve(store: object) -> tuple[StorePath, Path | None]:
    """Return the place in a Zarr store and, if it is on a local disk, its path."""
    if isinstance(store, str) and store.startswith(("file://", "local://")):
        store = store.partition("://")[2]
    if isinstance(store, str) and "://" in store:
        try:
            return StorePath(FsspecStore.from_url(store)), None
        except ImportError as error:
            msg = f"store {store} needs a package for its protocol ({error}); install it"
            raise MissingDependencyError(msg) from error
        except ValueError as error:
            msg = f"store {store} is a URL of no known protocol ({error}); check it"
            raise InvalidInputError(msg) from error
    if isinstance(store, str | os.PathLike):
        store = LocalStore(Path(store))
    if isinstance(store, Store):
        store = StorePath(store)
    if not isinstance(store, StorePath):
        msg = f"store is a {type(store).__name__}; pass a path, a URL or a Zarr store"
        raise InvalidTypeError(msg)
    if not isinstance(store.store, LocalStore):
        return store, None
    # Followed through links, so that a rename replaces the directory and not the link to it.
    path = (store.store.root / store.path).resolve()
    return StorePath(LocalStore(path, read_only=store.read_only)), path


def _open(place: StorePath, mode: Literal["r", "r+"]) -> zarr.Group:
    # Store and path apart, or zarr takes the store to be open already: a zip file would not
    # be read, and a directory that is missing would be made.
    # Without consolidated metadata, which may say something else than the arrays' own.
    return zarr.open_group(
        place.store, path=place.path, mode=mode, zarr_format=3, use_consolidated=False
    )


def _replaceable(place: StorePath, kind: str, *, overwrite: bool) -> set[str] | None:
    """List the members of our group there; None if there is nothing; refuse all else."""
    check_flag("overwrite", overwrite)
    if isinstance(place.store, LocalStore) and place.store.root.is_file():
        msg = f"{place} is a file; choose another path"
        raise StoreError(msg)
    entries = set(collect_aiterator(place.store.list_dir(place.path)))
    if not entries:
        return None
    header: Any = None
    # Whatever does not open as a group with our header is somebody else's.
    with suppress(Exception):
        header = _open(place, "r+").attrs.asdict()[HEADER]
    specs = header.get("arrays") if isinstance(header, dict) else None
    if not isinstance(specs, dict) or header["kind"] != kind:
        msg = f"{place} exists and is not a {kind} of daskcoreset, so it is never overwritten"
        raise StoreError(f"{msg}; choose another path")
    if foreign := entries - {"zarr.json", *specs}:
        msg = f"{place} also holds {min(foreign)!r}, so it is never overwritten"
        raise StoreError(f"{msg}; move that or choose another path")
    if not overwrite:
        msg = f"{place} exists; pass overwrite=True to replace it or choose another path"
        raise StoreError(msg)
    return entries - {"zarr.json"}


def _fill(place: StorePath, contents: Contents, replaced: set[str] | None) -> None:
    """Write a group; until its last step it is recognised as ours and as incomplete."""
    header = contents.header(complete=False)
    if replaced is None:
        group = zarr.create_group(place, zarr_format=3, attributes={HEADER: header})
    else:
        group = _open(place, "r+")
        # Old names too: whatever an interruption leaves of either, a rerun may clear it.
        old = dict.fromkeys(replaced)
        group.attrs.put({HEADER: {**header, "arrays": {**old, **contents.specs()}}})
        for name in replaced:
            del group[name]
    for name, array in contents.arrays.items():
        _write_array(group, name, array, contents.dims[name])
    group.attrs.put({**contents.attributes, HEADER: contents.header(complete=True)})


def _write_array(group: zarr.Group, name: str, array: AnyArray, dims: tuple[str, ...]) -> None:
    row_bytes = array.itemsize * math.prod(array.shape[1:])
    rows = max(1, _CHUNK_BYTES // max(1, row_bytes))
    # Fixed-width text and byte strings have no Zarr version 3 specification yet; the
    # variable-length type has one, and the header remembers the width.
    text = array.dtype.kind in "UT"
    target = group.create_array(
        name,
        shape=array.shape,
        dtype="string" if text else array.dtype.newbyteorder("<"),
        chunks=tuple(max(1, min(n, rows) if i == 0 else n) for i, n in enumerate(array.shape)),
        # The checksum stops damaged text before its decoder believes a length of gigabytes.
        compressors=[ZstdCodec(checksum=True)],
        fill_value="" if text else 0,
        dimension_names=dims,
        # A chunk equal to the fill value would otherwise be left out, and -0j equals 0.
        config={"write_empty_chunks": True},
    )
    target[...] = array


def _read_array(
    group: zarr.Group, name: str, spec: Mapping[str, Any]
) -> tuple[AnyArray, tuple[str, ...]]:
    array = group[name]
    if not isinstance(array, zarr.Array):
        msg = "it is a group"
        raise TypeError(msg)
    if list(array.shape) != spec["shape"]:
        msg = f"its shape is {list(array.shape)}, not {spec['shape']}"
        raise ValueError(msg)
    values = np.asarray(array[...])
    if spec["dtype"].startswith("<U"):
        values = values.astype(spec["dtype"])
    if spell_dtype(values) != spec["dtype"]:
        msg = f"its dtype is {values.dtype}, not {spec['dtype']}"
        raise ValueError(msg)
    metadata: Any = array.metadata
    return values, tuple(metadata.dimension_names or ())
