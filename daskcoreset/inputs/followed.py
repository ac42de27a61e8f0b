"""The parts of a source that changes: parts with names, and stamps that tell when they change.

A part is a row block of a Zarr array, or a file of a folder, a glob or a list. Its
name says where it stands in the source, and nothing of when it came. Its stamp changes whenever
its rows may have. Looking at a source reads no rows.
"""

from __future__ import annotations

import datetime as dt
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, MissingPathError
from daskcoreset.core.validation import a_type
from daskcoreset.inputs.arrays import RowArray
from daskcoreset.inputs.containers import is_web_store, split_container
from daskcoreset.inputs.opening import open_all
from daskcoreset.inputs.options import ReadOptions, Rows, is_path
from daskcoreset.inputs.parquet import SUFFIXES, ParquetFiles, data_files, parquet_files
from daskcoreset.inputs.places import Place, clear_errors, is_glob
from daskcoreset.inputs.sources import import_reader
from daskcoreset.inputs.stamps import chunk_stamps, digest_of, stamps_of_files
from daskcoreset.inputs.versioned import (
    Commit,
    is_repository,
    opened_commit,
)
from daskcoreset.inputs.zarr_stores import is_store, store_name

_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")


@dataclass(frozen=True, eq=False)
class SourcePart:
    """Rows of a source that are read together.

    Attributes
    ----------
    name : str
        Its position: the path of a file, or the number of a row block.
    stamp : str
        Another one whenever the rows may be others.
    data : callable
        Returns X, y and sample_weight as `row_blocks` takes them. Nothing is opened before.
    time : str or None
        Date in the name of a file, ISO 8601.
    """

    name: str
    stamp: str
    data: Callable[[], tuple[Any, Any, Any]]
    time: str | None = None


@dataclass(frozen=True, eq=False)
class SourceState:
    """The state of a source at one time.

    Attributes
    ----------
    kind : str
        "array" or "files".
    name : str
        Name that identifies the source, without secrets.
    parts : tuple of SourcePart
        In the order of the rows.
    mark : str or None
        Snapshot of Icechunk.
    dtypes : mapping of str to str
        Dtypes of the arrays that all parts are cut from. None for files, each of which has its own.
    n_rows : int or None
        Rows of an array. Files are counted when they are read.
    """

    kind: str
    name: str
    parts: tuple[SourcePart, ...]
    mark: str | None = None
    dtypes: Mapping[str, str] = field(default_factory=dict)
    n_rows: int | None = None


@dataclass(frozen=True)
class FollowOptions:
    """How a source is looked at, and how its parts are opened.

    Attributes
    ----------
    y, sample_weight : str or None
        Names of columns, or of arrays of the group.
    reading : ReadOptions
    """

    y: str | None = None
    sample_weight: str | None = None
    reading: ReadOptions = field(default_factory=ReadOptions)

    def __post_init__(self) -> None:
        for name in ("y", "sample_weight"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise InvalidTypeError(
                    f"{name} is {a_type(value)}, and the source is a store or files",
                    argument=name,
                    remedy="pass the name of a column or array in it",
                )
        if self.reading.has_dims:
            raise InvalidInputError(
                "sample_dims and feature_dims are for xarray objects, and a source that is "
                "followed is a Zarr array or files",
                argument="sample_dims",
                remedy="leave them out",
            )

    @property
    def record(self) -> dict[str, Any]:
        """What decides which rows the parts have, in plain JSON values."""
        columns = self.reading.columns
        return {
            "y": self.y,
            "sample_weight": self.sample_weight,
            "columns": None if columns is None else list(columns),
            "missing_chunks": self.reading.missing_chunks,
            "unit_length": bool(self.reading.unit_length),
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any], given: ReadOptions) -> FollowOptions:
        """Return the options of `record`. How a source is reached comes from what is given."""
        names = ("columns", "missing_chunks", "unit_length")
        reading = replace(given, **{name: record[name] for name in names})
        return cls(record["y"], record["sample_weight"], reading)

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that are read alone."""
        return tuple(key for key in (self.y, self.sample_weight) if key is not None)

    def opened(self, X: Any) -> tuple[Any, Any, Any]:
        """Return the arguments of `row_blocks`."""
        return Rows(X, self.reading), self.y, self.sample_weight


def look(
    source: Any,
    options: FollowOptions,
    mark: str | None = None,
    stamps: Mapping[str, str] | None = None,
) -> SourceState:
    """Return the present state of a source.

    Parameters
    ----------
    source : path, URL, glob, list of paths, Zarr array, group or store, Icechunk repository, or a
        function that returns one of these
    options : FollowOptions
    mark : str, optional
        Mark of the state that was seen last.
    stamps : mapping of str to str, optional
        Stamps of its parts, by their names.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        It is something else, or it cannot be opened.
    """
    if callable(source) and not hasattr(source, "shape") and not is_store(source):
        source = source()
    if isinstance(source, (list, tuple)) and not source:
        raise InvalidInputError(
            "source is an empty list", argument="source", remedy="name one file at least"
        )
    if is_repository(source):
        commit = opened_commit(source, mark)
        return _array_state(commit.store, options, commit, stamps or {})
    if is_path(source):
        return _path_state(source, options)
    if is_store(source) or hasattr(source, "store_path"):
        return _array_state(_again(source), options)
    if isinstance(source, (list, tuple)):
        strange = next(one for one in source if not isinstance(one, (str, os.PathLike)))
        raise InvalidTypeError(
            f"source is a list that holds {a_type(strange)}",
            argument="source",
            remedy="pass paths, URLs or globs of files",
        )
    raise InvalidTypeError(
        f"source is {a_type(source)}",
        argument="source",
        remedy="pass a path, URL, glob or list of paths, a Zarr array, group or store, an "
        "Icechunk repository, or a function that returns one of these",
    )


def _path_state(source: Any, options: FollowOptions) -> SourceState:
    storage = options.reading.storage_options
    if isinstance(source, (list, tuple)):
        places = []
        for one in source:
            place = _place(one, storage)
            places += place.matches() if is_glob(one) else [place]
        return _file_state("a list of files", places, None, options)
    place = _place(source, storage)
    if is_glob(source):
        text = place.path
        start = re.split(r"[*?\[]", text, maxsplit=1)[0].rpartition("/")[0]
        with clear_errors("source", place.url or text, "a glob"):
            found = place.matches()
        return _file_state(place.name, found, place.at(start), options)
    if is_web_store(place):
        return _array_state(place.url, options)
    return _place_state(place, options)


def _place_state(place: Place, options: FollowOptions) -> SourceState:
    with clear_errors("source", place.url or place.path, "a file or store"):
        if not place.exists:
            raise MissingPathError(
                f"source names no file or folder: {place.name!r}",
                argument="source",
                remedy="check the path",
            )
    if place.is_file:
        parent = place.at(str(PurePosixPath(place.path).parent))
        return _file_state(place.name, [place], parent, options)
    if any(map(place.has, _ZARR_FILES)):
        return _array_state(place.url or place.path, options)
    with clear_errors("source", place.url or place.path, "a folder of Parquet files"):
        files = parquet_files(place)
        if not files and (others := data_files(place)):
            raise InvalidInputError(
                f"source is a folder without Parquet files: {place.name!r} holds "
                f"{PurePosixPath(others[0].path).name!r}",
                argument="source",
                remedy=f'pass a glob of its files, such as "{place.name.rstrip("/")}/*.npy"',
            )
    return _file_state(place.name, files, place, options)


def _place(location: Any, storage_options: Mapping[str, Any] | None) -> Place:
    with clear_errors("source", os.fspath(location), "a file or folder"):
        place = Place.of(location, storage_options)
        if place.filesystem is not None:  # which remembers lists from before the change
            place.filesystem.invalidate_cache()
        return place


# --- files -------------------------------------------------------------------------------


def _file_state(
    name: str, places: Sequence[Place], base: Place | None, options: FollowOptions
) -> SourceState:
    """Return the state of files; those below a folder are named by their paths in it."""
    names = [_file_name(place, base) for place in places]
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        raise InvalidInputError(
            f"source names {twice!r} twice", argument="source", remedy="name every file once"
        )
    stores = {place: _store_stamp(place, options) for place in places if is_web_store(place)}
    files = [place for place in places if place not in stores]
    stamps = stores | dict(zip(files, stamps_of_files(files), strict=True))
    parts = tuple(
        SourcePart(
            name,
            stamps[place],
            partial(_opened_file, place, base, options),
            time_in_name(name),
        )
        for name, place in zip(names, places, strict=True)
    )
    return SourceState("files", name, parts)


def _store_stamp(place: Place, options: FollowOptions) -> str:
    """Return the stamp of a Zarr store of the web, one of several: that of all its chunks."""
    state = _array_state(place.url, options)
    return digest_of(part.stamp for part in state.parts)


def _file_name(place: Place, base: Place | None) -> str:
    if base is None:
        return place.name
    return place.path.removeprefix(base.path.rstrip("/") + "/")


def _opened_file(place: Place, base: Place | None, options: FollowOptions) -> tuple[Any, Any, Any]:
    if place.suffix in SUFFIXES:
        import_reader("pyarrow", "dataframe", "source")
        return options.opened(ParquetFiles([place], options.keys, base))
    return options.opened(place.url or place.path)


_DATE = re.compile(
    r"(?<!\d)(\d{4})(-?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])"
    r"(?:[T_-]([01]\d|2[0-3])[:.-]?([0-5]\d)(?:[:.-]?([0-5]\d))?)?(?!\d)"
)

# Writers of tables put one into the names of files: in one of some hundred its digits are a date.
_UUID = re.compile(r"[0-9a-f]{8}(-?)[0-9a-f]{4}(?:\1[0-9a-f]{4}){2}\1[0-9a-f]{12}", re.IGNORECASE)


def time_in_name(name: str) -> str | None:
    """Return the last date in a name, with the time of the day where there is one. None for none.

    Examples
    --------
    >>> time_in_name("date=2026-03-01/part-0.parquet"), time_in_name("x-20260301T0930.npy")
    ('2026-03-01', '2026-03-01T09:30:00')
    """
    for found in reversed(list(_DATE.finditer(_UUID.sub("*", name)))):
        year, _, month, day, hour, minute, second = found.groups()
        try:
            date = dt.date(int(year), int(month), int(day))
        except ValueError:  # the 31st of June
            continue
        if hour is None:
            return date.isoformat()
        time = dt.time(int(hour), int(minute), int(second or 0))
        return dt.datetime.combine(date, time).isoformat()
    return None


# --- Zarr arrays -------------------------------------------------------------------------


def _again(source: Any) -> Any:
    """Return an array or group with the shape that it has now."""
    import zarr

    if is_store(source):
        return source
    version = source.metadata.zarr_format
    with clear_errors("source", str(source.store_path), "a Zarr array or group"):
        return zarr.open(source.store_path, mode="r", zarr_format=version)


def _array_state(
    target: Any,
    options: FollowOptions,
    commit: Commit | None = None,
    before: Mapping[str, str] | None = None,
) -> SourceState:
    """Return the state of an array, or of the arrays of a group, cut into row blocks."""
    with ExitStack() as stack:
        members = split_container(target, options.y, options.sample_weight, stack, options.reading)
    arrays = members.parts
    if not all(hasattr(array, "store_path") for array in arrays.values()):
        raise InvalidInputError(
            "source is neither Zarr nor files",
            argument="source",
            remedy="pass a Zarr array, or paths of files",
        )
    X = arrays["X"]
    name = _array_name(X)
    if commit is not None:
        name = commit.name(X.path)
    snapshot = None if commit is None else commit.snapshot
    dtypes = {part: np.dtype(array.dtype).name for part, array in arrays.items()}
    if len(X.shape) == 2 and X.shape[0] == 0:
        return SourceState("array", name, (), snapshot, dtypes, 0)
    given = options.reading
    reading = ReadOptions(missing_chunks=given.missing_chunks)
    opened = open_all(Rows(X, reading), arrays.get("y"), arrays.get("sample_weight"))
    rows = opened.X.granularity
    n_rows = int(X.shape[0])
    blocks = [(start, min(start + rows, n_rows)) for start in range(0, n_rows, rows)]
    if commit is None:
        stamps = _stamps_of_blocks(arrays, blocks)
    else:
        stamps = _stamps_by_commit(arrays, blocks, commit, before or {})
    parts = tuple(
        SourcePart(block_name(i), stamp, partial(_rows_of_block, opened.parts, start, stop))
        for i, ((start, stop), stamp) in enumerate(zip(blocks, stamps, strict=True))
    )
    return SourceState("array", name, parts, snapshot, dtypes, n_rows)


def _array_name(array: Any) -> str:
    """Return the name of an array: of the store inside of others, by its absolute path."""
    from zarr.storage import LocalStore, WrapperStore

    store, path = array.store_path.store, array.store_path.path
    while isinstance(store, WrapperStore):
        store = store._store  # noqa: SLF001 - there is no other way to it
    if hasattr(
        getattr(store, "session", None), "snapshot_id"
    ):  # of Icechunk, another one each time
        return f"{type(store).__name__}/{path}"
    if type(store) is LocalStore:
        store = LocalStore(store.root.absolute(), read_only=True)
    return store_name(store, path)


def block_name(number: int) -> str:
    """Return the name of a row block of an array, which gives its position.

    Examples
    --------
    >>> block_name(3)
    'block-3'
    """
    return f"block-{number}"


def _rows_of_block(sources: Mapping[str, RowArray], start: int, stop: int) -> tuple[Any, Any, Any]:
    X, y, weights = (sources.get(name) for name in ("X", "y", "sample_weight"))
    return (
        None if X is None else X.cut(start, stop),
        None if y is None else y.cut(start, stop),
        None if weights is None else weights.cut(start, stop),
    )


def _form(arrays: Mapping[str, Any], start: int, stop: int) -> list[str]:
    """Say what decides how the chunks of a block are read, and how many rows it has."""
    said = [f"{start}:{stop}"]
    for name, array in arrays.items():
        known = array.metadata.to_dict()
        for key in ("attributes", "shape", "consolidated_metadata", "dimension_names"):
            known.pop(key, None)
        said.append(f"{name} {array.shape[1:]} {sorted(known.items(), key=lambda item: item[0])}")
    return said


def _chunk_rows(array: Any, start: int, stop: int) -> range:
    outer = (array.shards or array.chunks)[0]
    return range(start // outer, -(-stop // outer))


def _stamps_of_blocks(arrays: Mapping[str, Any], blocks: Sequence[tuple[int, int]]) -> list[str]:
    texts: list[list[str | None]] = [[*_form(arrays, start, stop)] for start, stop in blocks]
    for array in arrays.values():
        keys = [_chunk_keys(array, start, stop) for start, stop in blocks]
        # Of all blocks at once, for a web server is asked for each.
        stamps = iter(chunk_stamps(array, [*itertools.chain(*keys)]))
        for said, asked in zip(texts, keys, strict=True):
            said.extend(itertools.islice(stamps, len(asked)))
    return [digest_of(said) for said in texts]


def _chunk_keys(array: Any, start: int, stop: int) -> list[str]:
    """Return the keys of the chunks that hold some rows: the grid is known from the metadata."""
    outer = array.shards or array.chunks
    columns = [
        range(-(-length // chunk)) for length, chunk in zip(array.shape[1:], outer[1:], strict=True)
    ]
    return [
        array.metadata.encode_chunk_key(number)
        for number in itertools.product(_chunk_rows(array, start, stop), *columns)
    ]


def _stamps_by_commit(
    arrays: Mapping[str, Any],
    blocks: Sequence[tuple[int, int]],
    commit: Commit,
    before: Mapping[str, str],
) -> list[str]:
    """Return the stamps of before for blocks without a changed chunk, and new ones for all others.

    A stamp is the form of the block and the snapshot in which it was read.
    """
    changed = {name: commit.changed_rows(array.path) for name, array in arrays.items()}
    stamps = []
    for i, (start, stop) in enumerate(blocks):
        form = digest_of(_form(arrays, start, stop))
        last, new = before.get(block_name(i), ""), f"snapshot:{form}:{commit.snapshot}"
        touched = any(
            rows is None or not rows.isdisjoint(_chunk_rows(arrays[name], start, stop))
            for name, rows in changed.items()
        )
        same = last.startswith(f"snapshot:{form}:") and not touched
        stamps.append(last if same else new)
    return stamps
