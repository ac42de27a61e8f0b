"""Named arrays in Zarr version 3, written whole or not at all, with a digest."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from daskcoreset.core.deadline import NO_ANSWER, check_time, in_time
from daskcoreset.core.errors import (
    InvalidInputError,
    MissingPathError,
    OutOfTimeError,
    StoreError,
)
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import check_flag
from daskcoreset.storage.atomic import find_previous, new_store
from daskcoreset.storage.contents import (
    HEADER,
    JSON,
    GroupContents,
    find_header_problem,
    spell_dtype,
)
from daskcoreset.storage.zarr_places import Location, clear_place_errors, place_name, resolve

if TYPE_CHECKING:
    import zarr
    from zarr.storage import StorePath

# Between 8 and 32 MB a chunk read fastest in measurements. Most coresets are one chunk.
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
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write named arrays and attributes as one Zarr version 3 group, whole or not at all.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath
        Place of the group. Missing parent directories are made.
    arrays : mapping of str to ndarray
        Arrays of any shape. Booleans, integers, floats up to 64 bits, complex up to 128
        bits, and strings (fixed width or `numpy.dtypes.StringDType` without a missing
        value). Numbers are stored in little-endian order.
    dims : mapping of str to tuple of str
        Dimension names of each array, one per axis. A name has one length in all arrays.
    attributes : mapping of str to JSON
        Attributes of the group, without NaN or infinity, which JSON does not have.
    kind : str
        Kind of the group. Only the same kind reads or overwrites it.
    schema_version : int
        Version of the layout, 1 or more.
    overwrite : bool, default=False
        Replace a group of the same kind. Anything that this library did not write is refused.
    storage_options : mapping, optional
        For a URL, as in `daskcoreset.storage.objects.connect`, or those of its fsspec file system.

    Raises
    ------
    InvalidInputError
        If a name, dimension, string or attribute cannot be stored.
    InvalidTypeError
        If the store, an array's dtype or an attribute's type is not supported.
    MissingDependencyError
        If the URL needs a package that is not installed.
    StoreError
        If something is there already, or the disk refused. Then nothing was changed.

    Examples
    --------
    >>> from zarr.storage import MemoryStore
    >>> store = MemoryStore()
    >>> ages = np.array([31, 45])
    >>> write_group(store, {"age": ages}, {"age": ("row",)}, {}, kind="demo", schema_version=1)
    >>> read_group(store, kind="demo", schema_version=1)
    ({'age': array([31, 45])}, {})
    """
    contents = GroupContents(arrays, dims, attributes, kind, schema_version).checked()
    target, path = resolve(store, storage_options)
    if target.read_only or not target.store.supports_deletes:
        what = f"store {place_name(target)} is read-only or cannot delete"

        raise InvalidInputError(f"{what}", remedy="write to a directory and copy that")
    find_members = partial(_replaceable, target, path, kind, overwrite=overwrite)
    if path is None:

        def write() -> None:
            with clear_place_errors(target, "written"):
                _fill(target, contents, find_members())

        in_time(write, lambda: f"{place_name(target)} has not answered", NO_ANSWER)
        return
    find_members()  # before the work, and again after it: something may have appeared meanwhile
    with new_store(path, lambda: find_members() is not None) as scratch:
        fill_group(scratch, contents)


def fill_group(place: Path | StorePath, contents: GroupContents) -> None:
    """Write contents that are checked as a group, in a directory that `new_store` makes whole."""
    from zarr.storage import LocalStore, StorePath

    target = StorePath(LocalStore(place)) if isinstance(place, Path) else place
    _fill(target, contents, None)


def read_group(
    store: Location,
    *,
    kind: str,
    schema_version: int,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Read a group written by `write_group`, and check it.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath
        Place of the group.
    kind : str
        The kind it must be of.
    schema_version : int
        The version it must be of.
    storage_options : mapping, optional
        As in `write_group`.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays, bit for bit as written, in native byte order.
    attributes : dict
        The attributes as written.

    Raises
    ------
    StoreError
        If the group is missing, incomplete, of another kind or version, or differs in any
        bit of its arrays, names or attributes from what was written.
    InvalidTypeError
        If `store` has an unknown type.

    Examples
    --------
    >>> from zarr.storage import MemoryStore
    >>> read_group(MemoryStore(), kind="demo", schema_version=1)
    Traceback (most recent call last):
    ...
    daskcoreset.errors.MissingPathError: there is no demo at ...; check the path.
    """
    target, path = resolve(store, storage_options)
    if path is not None:
        contents = read_folder(path, kind=kind, schema_version=schema_version)
    else:
        contents = in_time(
            lambda: read_contents(target, place_name(target), kind, schema_version),
            lambda: f"{place_name(target)} has not answered",
            NO_ANSWER,
        )
    return dict(contents.arrays), dict(contents.attributes)


def read_folder(
    path: Path,
    *,
    kind: str,
    schema_version: int,
) -> GroupContents:
    """Read a group on a local disk as `read_group` does, with its version and its digest.

    Parameters
    ----------
    path : Path
    kind, schema_version
        As in `read_group`.
    """
    from zarr.storage import LocalStore, StorePath

    # An overwrite that was killed between its renames leaves the store of before beside the path.
    place = path if os.path.lexists(path) else find_previous(path) or path
    target = StorePath(LocalStore(place, read_only=True))
    return read_contents(target, str(path), kind, schema_version)


def read_contents(  # noqa: C901 - a branch for each kind of failure
    target: StorePath,
    where: str,
    kind: str,
    schema_version: int,
) -> GroupContents:
    """Read a group of a Zarr store, as `read_folder` does on a disk. `where` is its name."""
    from zarr.errors import ContainsArrayError

    try:
        with clear_place_errors(target, "read"):
            group = _open(target)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _nothing_at(target, where, kind) from error
    except PermissionError as error:
        raise StoreError(
            f"{where} cannot be read: access is denied",
            remedy="let the user of this process read it",
        ) from error
    except (StoreError, OutOfTimeError):
        raise
    except ContainsArrayError as error:
        raise StoreError(
            f"{where} is a Zarr array, not a stored {kind}",
            remedy="pass it as X to daskcoreset.build",
        ) from error
    # A damaged store makes zarr, its codecs and the file system raise almost anything.
    except Exception as error:
        raise StoreError(
            f"{where}: its metadata cannot be read ({error})",
            remedy="restore it from a copy or build it again",
        ) from error
    attributes: dict[str, Any] = group.attrs.asdict()
    header = attributes.pop(HEADER, None)
    if problem := find_header_problem(header, kind, schema_version):
        raise StoreError(f"{where}: {problem[0]}", remedy=problem[1])
    arrays: dict[str, AnyArray] = {}
    dims: dict[str, tuple[str, ...]] = {}
    for name, spec in header["arrays"].items():
        try:
            with clear_place_errors(target, "read"):
                arrays[name], dims[name] = _read_array(group, name, spec)
        except (StoreError, OutOfTimeError):
            raise
        except Exception as error:
            said = f"array {name!r} cannot be read ({error})"
            raise StoreError(
                f"{where}: {said}", remedy="restore it from a copy or build it again"
            ) from error
    contents = GroupContents(arrays, dims, attributes, kind, header["schema_version"])
    if contents.header(complete=True) != header:
        msg = f"{where}: changed or damaged since it was written (its digest does not match)"
        raise StoreError(f"{msg}", remedy="restore it from a copy or rebuild it")
    return contents


def _nothing_at(target: StorePath, where: str, kind: str) -> StoreError:
    """Return the error of a place without a group. A folder or file may be there."""
    from zarr.storage import LocalStore

    store = target.store
    is_there = isinstance(store, LocalStore) and os.path.lexists(store.root / target.path)
    error = StoreError if is_there else MissingPathError
    return error(f"there is no {kind} at {where}", remedy="check the path")


def _open(target: StorePath, mode: Literal["r", "r+"] = "r") -> zarr.Group:
    # Store and path apart, or zarr takes the store to be open already: a zip file would not
    # be read, and a directory that is missing would be made.
    # Without consolidated metadata, which may say something else than the arrays' own.
    import zarr

    return zarr.open_group(
        target.store, path=target.path, mode=mode, zarr_format=3, use_consolidated=False
    )


# --- arrays ------------------------------------------------------------------------------


def _write_array(group: zarr.Group, name: str, array: AnyArray, dims: tuple[str, ...]) -> None:
    from zarr.codecs import ZstdCodec

    row_bytes = array.itemsize * math.prod(array.shape[1:])
    rows = max(1, _CHUNK_BYTES // max(1, row_bytes))
    # Fixed-width text and byte strings have no Zarr version 3 specification yet. The
    # variable-length type has one, and the header records the width.
    text = array.dtype.kind in "UT"
    stored = group.create_array(
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
    stored[...] = array


def _read_array(
    group: zarr.Group, name: str, spec: Mapping[str, Any]
) -> tuple[AnyArray, tuple[str, ...]]:
    """Return an array and its dimensions. A missing chunk is found by the digest."""
    import zarr

    array = group[name]
    if not isinstance(array, zarr.Array):
        raise TypeError("it is a group")
    if list(array.shape) != spec["shape"]:
        raise ValueError(f"its shape is {list(array.shape)}, not {spec['shape']}")
    values: AnyArray = np.asarray(array[...])
    if values.dtype.kind in "OTU":  # of one text as fixed-width text
        text = spec["dtype"] if spec["dtype"].startswith("<U") else np.dtypes.StringDType()
        values = values.astype(text)
    else:
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if spell_dtype(values) != spec["dtype"]:
        raise ValueError(f"its dtype is {values.dtype}, not {spec['dtype']}")
    metadata: Any = array.metadata
    return values, tuple(metadata.dimension_names or ())


# --- what is there -----------------------------------------------------------------------


def _replaceable(
    target: StorePath, path: Path | None, kind: str, *, overwrite: bool
) -> set[str] | None:
    """Return the members of our group there, or None if there is nothing. All else is an error."""
    from zarr.core.sync import sync

    check_flag("overwrite", overwrite)
    if path is None:

        async def listed() -> set[str]:  # obstore begins a list only where a loop runs
            return {entry async for entry in target.store.list_dir(target.path)}

        return _ours(target, sync(listed()), kind, overwrite=overwrite)
    try:
        entries = set(os.listdir(path))  # noqa: PTH208 - names alone
    except FileNotFoundError:
        previous = find_previous(path)
        if previous and not overwrite:
            raise StoreError(
                f"{_named(target)} exists as {previous}, which an interrupted overwrite left",
                remedy="rename it back, or pass overwrite=True to replace it",
            ) from None
        return None
    except NotADirectoryError:
        raise StoreError(f"{_named(target)} is a file", remedy="choose another path") from None
    except OSError as error:
        raise StoreError(
            f"{_named(target)} cannot be written: {error.strerror or error}",
            remedy="choose another path",
        ) from error
    return _ours(target, entries, kind, overwrite=overwrite)


def _named(target: StorePath) -> str:
    """Return the name of a place, of a local one its path."""
    return str(target).removeprefix("file://")


def _ours(target: StorePath, entries: set[str], kind: str, *, overwrite: bool) -> set[str] | None:
    if not entries:
        return None
    header: Any = None
    # Whatever does not open as a group with our header is somebody else's.
    try:
        header = _open(target, "r+").attrs.asdict()[HEADER]
    except OutOfTimeError:
        raise
    except Exception:  # noqa: BLE001, S110 - as above
        pass
    specs = header.get("arrays") if isinstance(header, dict) else None
    if not isinstance(specs, dict) or header.get("kind") != kind:
        raise StoreError(
            f"{_named(target)} exists and is not a {kind} of daskcoreset, so it is never "
            f"overwritten",
            remedy="choose another path",
        )
    if foreign := entries - {"zarr.json", *specs}:
        msg = f"{_named(target)} also holds {min(foreign)!r}, so it is never overwritten"
        raise StoreError(f"{msg}", remedy="move that or choose another path")
    if not overwrite:
        raise StoreError(
            f"{_named(target)} exists",
            remedy="pass overwrite=True to replace it or choose another path",
        )
    return entries - {"zarr.json"}


def _fill(target: StorePath, contents: GroupContents, replaced: set[str] | None) -> None:
    """Write a group. Until its last step it is recognised as ours and as incomplete."""
    import zarr

    header = contents.header(complete=False)
    if replaced is None:
        group = zarr.create_group(target, zarr_format=3, attributes={HEADER: header})
    else:
        group = _open(target, "r+")
        # Old names too: whatever an interruption leaves of either, a rerun may clear it.
        old = dict.fromkeys(replaced)
        group.attrs.put({HEADER: {**header, "arrays": {**old, **contents.specs()}}})
        for name in replaced:
            del group[name]
    for name, array in contents.arrays.items():
        check_time(f"{place_name(target)} was being written", NO_ANSWER)
        _write_array(group, name, array, contents.dims[name])
    check_time(f"{place_name(target)} was being written", NO_ANSWER)
    group.attrs.put({**contents.attributes, HEADER: contents.header(complete=True)})
