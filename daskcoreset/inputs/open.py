"""X, y and sample_weight from anything array-like: each becomes a row array or a Dask array.

Paths, groups and frames end here. Nothing is read but names, shapes and dtypes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.deadline import NO_ANSWER, in_time
from daskcoreset.core.labels import LABELS
from daskcoreset.core.messages import warn_user
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import AnyArray, MissingChunks
from daskcoreset.core.validation import a_type, without_mask
from daskcoreset.errors import CoresetError, InvalidInputError, InvalidTypeError, MissingPathError
from daskcoreset.inputs.arrays import (
    Group,
    JoinedRows,
    MemoryRows,
    RowArray,
    check_kind,
    is_sparse,
    sparse_rows,
)
from daskcoreset.inputs.cubes import Cube, open_cube
from daskcoreset.inputs.dataframes import (
    FrameRows,
    arrays_of_dask,
    as_frame,
    as_tasks,
    is_frame,
    split_columns,
)
from daskcoreset.inputs.files import memmap_source, open_numpy
from daskcoreset.inputs.filesystems import (
    Place,
    is_glob,
    opening,
    shortened,
)
from daskcoreset.inputs.hdf5 import Hdf5Group, Hdf5Rows, open_hdf5
from daskcoreset.inputs.options import DEFAULTS, ReadOptions
from daskcoreset.inputs.parquet import (
    SUFFIXES,
    ParquetFiles,
    check_no_table,
    open_parquet,
    open_table,
    parquet_files,
)
from daskcoreset.inputs.zarr import (
    StoredRows,
    is_store,
    open_store,
    open_zarr,
    opened_zarr,
    warn_of_packing,
    with_checks,
    with_checks_in_graph,
)
from daskcoreset.storage.group import HEADER
from daskcoreset.storage.locations import clean_url, store_name

# One of them is in each folder of a Zarr store.
ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")

# Functions that open formats of files, and what they read, by endings.
_ZARR = open_zarr, "a Zarr store"
_FORMATS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys((".npy", ".npz"), (open_numpy, "an array of numbers")),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), (open_hdf5, "an HDF5 file")),
    **dict.fromkeys(SUFFIXES, (open_parquet, "a Parquet file")),
}


class OpenedData(NamedTuple):
    """X, and y and sample_weight if given, of equal length as far as it is known.

    Attributes
    ----------
    parts : dict of str to RowArray or dask.array.Array
    columns : tuple of str or None
        Names of the features.
    name : str or None
        Origin of X.
    cube : Cube or None
        The labels of rows and columns, if X is an xarray object of several dimensions.
    sizes : tuple of int or None
        Rows of its blocks.
    """

    parts: dict[str, Any]
    columns: tuple[str, ...] | None
    name: str | None
    cube: Cube | None = None
    sizes: tuple[int, ...] | None = None

    @property
    def X(self) -> Any:  # noqa: N802 - the name of the argument
        """The rows."""
        return self.parts["X"]


def open_all(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    options: ReadOptions = DEFAULTS,
    *,
    groups: Any = None,
    allow_empty: bool = False,
) -> OpenedData:
    """Open X, and what is given beside it. Nothing is read but shapes and dtypes.

    Parameters
    ----------
    X, y, sample_weight
        As in `daskcoreset.build`, but X is not `Rows`.
    options : ReadOptions, optional
    groups : array-like of shape (n,), str or None, default=None
        Numbers or text, as y.
    allow_empty : bool, default=False
        Whether there may be no rows.

    Returns
    -------
    OpenedData

    Raises
    ------
    InvalidInputError
        For a wrong number of dimensions, no rows or columns, lengths that differ.
    InvalidTypeError
        For types and dtypes that hold no real numbers.
    OutOfTimeError
        If the deadline has passed. File systems have timeouts of as many names as there are, for
        one request each, and are shared in the process: the opening goes on in a thread.
    """
    if options.has_dims:
        cube, parts = open_cube(X, y, sample_weight, options)
        source = X.encoding.get("source")
        name = clean_url(source) if isinstance(source, str) else None
        return OpenedData(parts, cube.columns, name, cube, tuple(map(len, cube.boxes())))
    given = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
    given = {name: part for name, part in given.items() if name == "X" or part is not None}
    if options.storage_options is not None and not any(map(is_path, given.values())):
        raise InvalidInputError(
            f"storage_options are for URLs, and X is {a_type(X)}",
            argument="storage_options",
            remedy="leave them out, or pass a URL",
        )

    def standing() -> str:
        named = next(filter(None, map(shown_location, given.values())), "X")
        return f"{named} was still being opened"

    opened = in_time(partial(_open_parts, given, options), standing, NO_ANSWER)
    for name, part in opened.parts.items():
        # Dask arrays have no attributes.
        source = given[name] if hasattr(part, "__dask_graph__") else part
        warn_of_packing([source], name)
        _check_part(part, name)
    _check_lengths(opened.parts, allow_empty=allow_empty)
    return opened


def _open_parts(given: dict[str, Any], options: ReadOptions) -> OpenedData:
    X, beside = given["X"], {name: part for name, part in given.items() if name != "X"}
    keys = {name: part for name, part in beside.items() if isinstance(part, str)}
    with ExitStack() as stack:  # of files, which are closed once their arrays are row arrays
        opened = open_container(X, "X", stack, options)
        parts, columns = _parts_of(opened, keys, options.columns, beside)
        for name, part in beside.items():
            if name not in parts:
                parts[name] = _vector(open_container(part, name, stack, options), name)
    # The name of a Dask array is a hash, which does not identify its data.
    own = parts["X"].name if isinstance(parts["X"], RowArray) else None
    return OpenedData(parts, columns, shown_location(X) if own is None else clean_url(own))


def shown_location(X: Any) -> str | None:
    """Return the name of a path, a list of them, or a Zarr store, without secrets. Else None."""
    if is_store(X):
        return store_name(X)
    if not is_path(X):
        return None
    return shortened([clean_url(os.fspath(one)) for one in _listed(X)])


# --- paths -------------------------------------------------------------------------------


def is_path(part: Any) -> bool:
    """Whether a part is a path or URL, or a list of them."""
    listed = _listed(part)
    return bool(listed) and all(isinstance(one, (str, os.PathLike)) for one in listed)


def _listed(part: Any) -> Sequence[Any]:
    return part if isinstance(part, (list, tuple)) else [part]


class Files(NamedTuple):
    """What several files hold, whose rows follow one another, and the names of the files."""

    opened: list[Any]
    names: list[str]


def open_container(part: Any, name: str, stack: ExitStack, options: ReadOptions) -> Any:
    """Open what was passed as an argument.

    Parameters
    ----------
    part : object
    name : str
        The argument, for errors.
    stack : contextlib.ExitStack
        Closes the files that are opened.
    options : ReadOptions

    Returns
    -------
    RowArray, dask.array.Array, Group, ParquetFiles, Files, or a frame or table
    """
    if type(part) is np.ndarray:  # at once, because small data in memory are many
        return MemoryRows(part)
    if is_store(part):
        return open_store(part, name, options)
    is_list = isinstance(part, (list, tuple))
    is_labels = is_list and name in LABELS and any(isinstance(one, str) for one in part)
    if is_labels or not is_path(part):
        return _as_rows(part, name, options.missing_chunks)
    found = []
    for one in _listed(part):
        with opening(name, os.fspath(one), "a file or store"):
            places = _places_of(one, name, options)
            found += [(place, *_format_of(place)) for place in places]
    if len(found) > 1 and all(place.suffix in SUFFIXES for place, _, _ in found):
        return ParquetFiles([place for place, _, _ in found])
    opened = []
    for place, open_format, kind in found:
        with opening(name, place.url or place.path, kind):
            opened.append(open_format(place, stack, options))
    return opened[0] if len(opened) == 1 else Files(opened, [place.name for place, _, _ in found])


def _places_of(location: Any, name: str, options: ReadOptions) -> list[Place]:
    """Return the places that a path, a URL or a glob names."""
    place = Place.of(location, options.storage_options, name)
    found = place.matches() if is_glob(location) else [place]
    if is_glob(location) and any(file.suffix in SUFFIXES for file in found):
        check_no_table(place)
    if not found or (place.is_local and not found[0].exists):
        what = "matches no file" if is_glob(location) else "names no file or folder"
        raise MissingPathError(
            f"{name} {what}: {place.name!r}",
            argument=name,
            remedy="check the path"
            if name == "X"
            else "check the path, or pass the array: X has no columns or arrays by name",
        )
    return found


def _format_of(place: Place) -> tuple[Any, str]:
    """Return the function that opens a format, and its name. It is Zarr if nothing is known."""
    found = _FORMATS.get(place.suffix)
    # Zarr is looked for first: a store may have a file for each of a million chunks.
    if found is None and not place.is_file and not any(map(place.has, ZARR_FILES)):
        found = _FORMATS[SUFFIXES[0]] if parquet_files(place) else None
    return found or _ZARR


def is_web_store(place: Place) -> bool:
    """Whether a place is opened as a Zarr store of the web, where folders look like files."""
    return place.url.lower().startswith(("http://", "https://")) and _format_of(place) is _ZARR


# --- arrays of a container ------------------------------------------------------------------


def member_names(X: Any) -> list[str]:
    """Return the features of a stored table, or the arrays of a group. None for anything else."""
    path, options = ReadOptions.of(X)
    with ExitStack() as stack:
        found = open_container(path, "X", stack, options)
        if isinstance(found, ParquetFiles):
            return list(as_frame(found.table).columns)
        return found.names() if isinstance(found, Group) else []


def _parts_of(
    X: Any, keys: dict[str, str], chosen: Sequence[str] | None, beside: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...] | None]:
    """Return X and the members that `keys` name as arrays, and names of features."""
    if isinstance(X, Files):
        found = [_parts_of(one, keys, chosen, {})[0] for one in X.opened]
        parts: dict[str, Any] = {
            name: JoinedRows.of([one[name] for one in found], X.names, name) for name in found[0]
        }
        return parts, None
    if isinstance(X, RowArray) and chosen is None:
        return {"X": X}, X.columns
    files = X if isinstance(X, ParquetFiles) else None
    frame = as_frame(X if files is None else files.table, chosen, keys.values())
    if is_frame(frame):
        has = "the data frame X has" if files is None else f"{files.path!r} has"
        _check_keys(keys, list(frame.columns), f"{has} the columns")
        if hasattr(frame, "__dask_graph__"):
            features = tuple(str(one) for one in frame.columns if one not in keys.values())
            return arrays_of_dask(frame, keys, _of_partitions(frame, beside)), features
        rows = FrameRows.of if files is None else files.rows
        parts = {name: rows(part) for name, part in split_columns(frame, keys).items()}
        return parts, parts["X"].columns
    if chosen is not None:
        raise InvalidInputError(
            "columns selects features of data frames, tables and Parquet files, and X is an array "
            "or a group of arrays",
            argument="columns",
            remedy="leave columns out, and pass the columns of the array, for example "
            "dask.array.from_zarr(path)[:, [0, 1]]",
        )
    if isinstance(X, Group):
        _refuse_own_store(X)
        names = X.names()
        _check_keys(keys, names, "the group X has the arrays")
        features = tuple(name for name in names if name not in keys.values())
        members = {name: X.rows(key) for name, key in keys.items()}
        return {"X": _select_array(X, "X", features), **members}, None
    return {"X": X}, None


def _of_partitions(X: Any, beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Dask series that may be read in one task with a partition of X."""
    from dask.utils import is_series_like

    series = {name: _only_column(part) for name, part in beside.items()}
    return {
        name: part
        for name, part in series.items()
        if is_series_like(part) and getattr(part, "npartitions", None) == X.npartitions
    }


def _only_column(part: Any) -> Any:
    """Return a data frame of one column as that column, and anything else unchanged."""
    return part[part.columns[0]] if is_frame(part) and len(part.columns) == 1 else part


def _check_keys(keys: dict[str, str], names: list[str], members: str) -> None:
    for name, key in keys.items():
        if names.count(key) != 1:
            raise InvalidInputError(
                f"{name} is {clean_url(key)!r}, but {members} {names}",
                argument=name,
                remedy="name one of these, which is there once",
            )


def _refuse_own_store(group: Group) -> None:
    """Refuse what the library itself stored, whose rows have weights already."""
    header = group.attrs.get(HEADER)
    if header is not None:
        kind = str(header["kind"]) if isinstance(header, dict) and "kind" in header else "coreset"
        raise InvalidInputError(
            f"X is a stored {kind.removeprefix('coreset-')}, whose rows already have weights",
            argument="X",
            remedy="open it with Coreset.from_zarr, Portfolio.from_zarr, CoresetTree.open or "
            "CoresetStream.load, and pass its coreset, or points, labels and weights",
        )


def _select_array(group: Group, name: str, names: Sequence[str]) -> RowArray:
    """Return the array called `name`, or the only one with the dimensions it must have."""
    if name in names:
        return group.rows(name)
    n_dims = 2 if name == "X" else 1
    fitting = [one for one in names if len(group.shape(one)) == n_dims]
    # Beside a cube the array is rather one of bounds.
    if len(fitting) == 1 and not (name == "X" and group.is_cube):
        return group.rows(fitting[0])
    cube = ", or a cube as xarray.open_zarr opens it" if name == "X" else ""
    raise InvalidInputError(
        f"{name} is a group of the arrays {list(names)}",
        argument=name,
        remedy=f"name one of them {name!r}, or pass the array itself{cube}",
    )


def _vector(opened: Any, name: str) -> Any:
    """Return the only array with one dimension of what was opened."""
    if isinstance(opened, Files):
        vectors = [_vector(one, name) for one in opened.opened]
        return JoinedRows.of(vectors, opened.names, name)
    if isinstance(opened, ParquetFiles):
        frame = as_frame(opened.table)
        if len(frame.columns) != 1:
            raise InvalidInputError(
                f"{name}: {opened.path!r} has the columns {list(frame.columns)}",
                argument=name,
                remedy="pass one of them",
            )
        return opened.rows(frame[frame.columns[0]])
    if isinstance(opened, Group):
        return _select_array(opened, name, opened.names())
    opened = as_frame(opened)
    if is_frame(opened):
        return _of_frame(_only_column(opened))
    if is_sparse(opened):
        raise InvalidTypeError(
            f"{name} is sparse",
            argument=name,
            remedy=f"pass a dense vector, for example {name}.toarray().ravel()",
        )
    return opened


def _of_frame(frame: Any) -> Any:
    """Return a frame or series of pandas or Dask as one array."""
    if hasattr(frame, "__dask_graph__"):
        return arrays_of_dask(frame, {})["X"]
    return FrameRows.of(frame)


# --- columns of frames -------------------------------------------------------------------


def warn_of_names(columns: Sequence[str] | None, beside: Iterable[Any]) -> None:
    """Warn of columns that are named as features and as something else."""
    keys = [one for one in beside if isinstance(one, str)]
    if both := [name for name in columns or () if name in keys]:
        warn_user(
            f"columns has {both}, which y, sample_weight or groups also names: "
            "it is used as that, and not as a feature. Leave it out of columns."
        )


# --- one array ---------------------------------------------------------------------------


def _as_rows(part: Any, name: str, missing_chunks: MissingChunks) -> Any:
    """Return what `open_container` does, of what is not a path."""
    library = type(part).__module__.partition(".")[0]
    if library == "xarray":
        return _open_xarray(part, name, missing_chunks)
    if library == "zarr" and hasattr(part, "store_path"):
        return opened_zarr(part, missing_chunks)
    if library == "h5py":
        return (Hdf5Rows if hasattr(type(part), "shape") else Hdf5Group)(part, missing_chunks)
    part = open_table(part)
    if isinstance(part, (RowArray, Group, ParquetFiles, Files)) or is_frame(part):
        return part
    is_dask = hasattr(part, "__dask_graph__")
    return _open_dask(part, name, missing_chunks) if is_dask else _in_memory(part, name)


def _in_memory(part: Any, name: str) -> RowArray:
    """Return the rows of an array in memory, or in a file, that is of no library above."""
    if hasattr(part, "iloc"):
        return FrameRows.of(part)
    if hasattr(part, "tocsr"):
        return sparse_rows(part)
    if isinstance(part, np.memmap):
        return memmap_source(part)
    # An array in memory may have a dtype that is not NumPy's: those of pandas, PyTorch.
    is_foreign = not isinstance(getattr(part, "dtype", None), np.dtype)
    if isinstance(part, (np.ndarray, list, tuple)) or (is_foreign and hasattr(part, "__array__")):
        return MemoryRows(_as_array(part, name))
    if all(hasattr(part, attribute) for attribute in ("shape", "dtype", "__getitem__")):
        return StoredRows(part)
    raise InvalidTypeError(
        f"{name} is {a_type(part)}",
        argument=name,
        remedy="pass an array of NumPy, Dask, Zarr, HDF5 or xarray, a data frame of pandas, polars "
        "or Dask, a table of pyarrow, a sparse matrix of SciPy, or the path of a file or store; "
        "pass the coreset() of a tree or stream, and batches one by one to stream.partial_fit",
    )


def _as_array(part: Any, name: str) -> AnyArray:
    try:
        return part if isinstance(part, np.ndarray) else np.asarray(without_mask(part))
    except CoresetError:  # of a coreset, which says what to pass
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(
            f"{name} is {a_type(part)} that cannot become an array ({error})",
            argument=name,
            remedy="pass rows of equal length, as an array",
        ) from error


def _open_xarray(part: Any, name: str, missing_chunks: MissingChunks) -> Any:
    if not hasattr(part, "variable"):
        raise InvalidTypeError(
            f"{name} is an xarray {type(part).__name__}",
            argument=name,
            remedy=f"pass open_rows({name}, sample_dims=...) with the names of its dimensions, or "
            f'one DataArray, for example {name}["variable"]',
        )
    if name == "X" and part.ndim > 2:
        dims = tuple(map(str, part.dims))
        raise InvalidInputError(
            f"X has the dimensions {dims}, and it is unknown which of them are rows",
            argument="X",
            remedy=f"pass open_rows(X, sample_dims={dims[:-1]}), with which the cells of the other "
            f"dimensions are columns",
        )
    data = part.variable._data  # noqa: SLF001 - `.data` would load a lazily opened file whole
    if isinstance(data, np.ndarray) or hasattr(data, "__dask_graph__"):
        return _as_rows(part.data, name, missing_chunks)
    part = part.copy(deep=False)
    part.variable._data = with_checks(data, missing_chunks)  # noqa: SLF001 - as above
    stored = part.encoding.get("shards") or part.encoding.get("chunks")
    stored = stored or part.encoding.get("chunksizes")
    granularity = int(stored[0]) if stored and len(stored) == part.ndim else 1
    names = [part.encoding.get("source"), None if part.name is None else str(part.name)]
    origin = ":".join(filter(None, names))
    return StoredRows(part, granularity=granularity, name=clean_url(origin) if origin else None)


def _open_dask(part: Any, name: str, missing_chunks: MissingChunks) -> Any:
    from dask.utils import is_index_like, is_series_like

    # The class is asked, for a Delayed object claims to have every attribute.
    if hasattr(type(part), "numblocks"):
        return with_checks_in_graph(as_tasks(part), missing_chunks)
    if is_series_like(part) or is_index_like(part):
        return _of_frame(part)
    raise InvalidTypeError(
        f"{name} is {a_type(part)}",
        argument=name,
        remedy="pass a Dask array or a Dask DataFrame",
    )


# --- checks ------------------------------------------------------------------------------


def _check_part(part: Any, name: str) -> None:
    shape, dtype = tuple(part.shape), np.dtype(part.dtype)
    n_dims, form = 1, f"a vector, for example {name}.ravel()"
    if name == "X":
        n_dims, form = 2, "one row per sample, for example X.reshape(len(X), -1)"
    if len(shape) != n_dims:
        raise InvalidInputError(
            f"{name} must have {counted(n_dims, 'dimension')}, found shape {shape}",
            argument=name,
            remedy=f"pass {form}",
        )
    check_kind(name, dtype)


def _check_lengths(parts: dict[str, Any], *, allow_empty: bool) -> None:
    n_rows, n_columns = parts["X"].shape
    if np.isnan(n_columns):
        raise InvalidInputError(
            "X has an unknown number of columns",
            argument="X",
            remedy="call X.compute_chunk_sizes() first",
        )
    if not n_columns or (not n_rows and not allow_empty):
        what, least = ("rows", "one") if n_columns else ("columns", "one feature")
        raise InvalidInputError(f"X has no {what}", argument="X", remedy=f"pass at least {least}")
    for name, part in parts.items():
        length = part.shape[0]
        if not np.isnan(length) and not np.isnan(n_rows) and length != n_rows:
            raise InvalidInputError(
                f"{name} has {length:,} entries but X has {counted(n_rows, 'row')}",
                argument=name,
                remedy="pass one entry per row",
            )
