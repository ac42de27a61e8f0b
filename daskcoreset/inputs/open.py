"""X, y and sample_weight from anything array-like: each becomes a row array or a Dask array.

Paths, groups and frames end here. Nothing is read but names, shapes and dtypes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from daskcoreset.core.deadline import NO_ANSWER, in_time
from daskcoreset.core.messages import warn_user
from daskcoreset.core.optional import import_reader
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import AnyArray, MissingChunks
from daskcoreset.core.validation import a_type, is_real, shown as briefly, without_mask
from daskcoreset.errors import CoresetError, InvalidInputError, InvalidTypeError, MissingPathError
from daskcoreset.inputs.arrays import (
    JoinedRows,
    MemoryRows,
    RowArray,
    SparseRows,
    is_sparse,
)
from daskcoreset.inputs.dataframes import FrameRows, arrays_of_dask, as_tasks, split_columns
from daskcoreset.inputs.files import memmap_source, open_numpy
from daskcoreset.inputs.filesystems import (
    Place,
    check_slashes,
    clear_errors,
    is_glob,
    read_clearly,
    shortened,
)
from daskcoreset.inputs.hdf5 import Hdf5Array, Hdf5File, dataset_names, hdf5_source, open_hdf5_file
from daskcoreset.inputs.options import DEFAULTS, ReadOptions, Rows, check_columns
from daskcoreset.inputs.packed import packed_remark
from daskcoreset.inputs.parquet import (
    SUFFIXES,
    ArrowTable,
    ParquetFiles,
    as_table,
    check_outside,
    open_parquet,
    parquet_files,
    vectors_of_frame,
    with_vectors,
)
from daskcoreset.inputs.zarr import (
    StoredRows,
    is_store,
    open_store,
    open_zarr,
    with_checks,
    with_checks_in_graph,
    with_own_metadata,
    zarr_rows,
)
from daskcoreset.storage.group import HEADER
from daskcoreset.storage.locations import clean_url, store_name

_CSR = ("data", "indices", "indptr", "shape")  # a sparse X in an .npz file, with y beside it
_ZARR = ("zarr.json", ".zarray", ".zgroup")


class OpenedData(NamedTuple):
    """X, and y and sample_weight if given, of equal length as far as it is known.

    Attributes
    ----------
    parts : dict of str to RowArray or dask.array.Array
    columns : tuple of str or None
        Names of the features.
    name : str or None
        Origin of X.
    """

    parts: dict[str, Any]
    columns: tuple[str, ...] | None
    name: str | None

    @property
    def text_labels(self) -> bool | None:
        """Whether y holds text or objects, and not numbers. None without y."""
        y = self.parts.get("y")
        return None if y is None else np.dtype(y.dtype).kind not in "biuf"

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
    allow_empty: bool = False,
) -> OpenedData:
    """Open X, and y and sample_weight where given. Nothing is read but shapes and dtypes.

    Parameters
    ----------
    X, y, sample_weight
        As in `daskcoreset.build`, but X is not `Rows`.
    options : ReadOptions, optional
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
    beside = {"y": _only_column(y), "sample_weight": _only_column(sample_weight)}
    beside = {name: part for name, part in beside.items() if part is not None}
    if options.storage_options is not None and not any(map(is_path, (X, *beside.values()))):
        raise InvalidInputError(
            f"storage_options are for URLs, and X is {a_type(X)}",
            argument="storage_options",
            remedy="leave them out, or pass a URL",
        )
    origin = shown_location(X)
    if all(isinstance(part, np.ndarray) for part in (X, *beside.values())):  # nothing to wait for
        return _open_all(X, beside, origin, options, allow_empty)[0]
    work = partial(_open_all, X, beside, origin, options, allow_empty)
    named = next(filter(None, map(shown_location, (X, *beside.values()))), "X")
    standing = f"{named} was still being opened"
    opened, remarks = in_time(work, lambda: standing, NO_ANSWER)
    for remark in remarks:
        warn_user(remark)
    return opened


def _open_all(
    X: Any,
    beside: dict[str, Any],
    origin: str | None,
    options: ReadOptions,
    allow_empty: bool,
) -> tuple[OpenedData, list[str]]:
    """Return the parts, and warnings for the user."""
    keys = {name: part for name, part in beside.items() if isinstance(part, str)}
    with ExitStack() as stack:  # of files, which are closed once their arrays are row arrays
        container = open_container(X, "X", stack, options)
        check_no_dataset(container, "X")
        found, columns = _members_of(container, keys, options.columns, beside)
        for name, part in beside.items():
            if name not in found:
                found[name] = _single(part, name, stack, options)
        remarks = [packed_remark(_arrays_of(part), name) for name, part in found.items()]
        parts = {name: _opened(part, name, options.missing_chunks) for name, part in found.items()}
    for name, part in parts.items():
        # A list may hold labels as well as paths.
        _check_part(part, name, named=isinstance(beside.get(name), (str, os.PathLike)))
    _check_lengths(parts, allow_empty=allow_empty)
    # The name of a Dask array is a hash, which does not identify its data.
    if isinstance(rows := parts["X"], RowArray):
        columns, origin = columns or rows.columns, rows.name or origin
    origin = None if origin is None else clean_url(origin)
    return OpenedData(parts, columns, origin), [remark for remark in remarks if remark]


def _only_column(part: Any) -> Any:
    """Return a data frame or table of one column as that column, and anything else unchanged."""
    # The class is asked, for a Delayed object claims to have every attribute.
    kind, library = type(part), type(part).__module__.partition(".")[0]
    is_table = hasattr(kind, "iloc") or library in {"polars", "pyarrow"}
    if not (is_table and hasattr(kind, "columns")) or len(part.columns) != 1:
        return part
    return part.column(0) if library == "pyarrow" else part[part.columns[0]]


def shown_location(X: Any) -> str | None:
    """Return the name of a path, a list of them, or a Zarr store, without secrets. Else None."""
    if is_store(X):
        return store_name(X)
    if not is_path(X):
        return None
    names = [os.fspath(one) for one in (X if isinstance(X, (list, tuple)) else [X])]
    return shortened([clean_url(name) for name in names])


# --- paths -------------------------------------------------------------------------------


def is_path(part: Any) -> bool:
    """Whether a part is a path or URL, or a list of them."""
    if isinstance(part, (list, tuple)):
        return bool(part) and all(isinstance(one, (str, os.PathLike)) for one in part)
    return isinstance(part, (str, os.PathLike))


def open_container(part: Any, name: str, stack: ExitStack, options: ReadOptions) -> Any:
    """Open what a path, URL, store, glob or list names. Anything else is returned unchanged.

    Parameters
    ----------
    part : object
    name : str
        The argument that it was passed as, for errors.
    stack : contextlib.ExitStack
        Closes the files that are opened.
    options : ReadOptions
    """
    if is_store(part):
        return open_store(part, name)
    if not is_path(part):
        return as_table(part)
    places = []
    for one in part if isinstance(part, (list, tuple)) else [part]:
        with clear_errors(name, os.fspath(one), "a file or store"):
            places += _places_of(one, name, options)
    if len(places) == 1:
        return _open_place(places[0], name, stack, options)
    if all(place.suffix in SUFFIXES for place in places):
        import_reader("pyarrow", "dataframe", name)
        return ParquetFiles(places)
    opened = [_open_place(place, name, stack, options) for place in places]
    return Files(opened, [place.name for place in places])


def _places_of(location: Any, name: str, options: ReadOptions) -> list[Place]:
    """Return the places that a path, a URL or a glob names."""
    check_slashes(name, location)
    place = Place.of(location, options.storage_options)
    found = place.matches() if is_glob(location) else [place]
    if is_glob(location) and any(file.suffix in SUFFIXES for file in found):
        check_outside(place)
    if not found:
        raise MissingPathError(
            f"{name} matches no file: {place.name!r}", argument=name, remedy="check the pattern"
        )
    if place.is_local and not found[0].exists:
        raise MissingPathError(
            f"{name} names no file or folder: {place.path!r}",
            argument=name,
            remedy="check the path",
        )
    return found


def _open_place(place: Place, name: str, stack: ExitStack, options: ReadOptions) -> Any:
    """Open a file or folder by its format; what has none is opened as Zarr."""
    url = place.url or place.path
    with clear_errors(name, url, "a file or store"):
        open_format = _format_of(place)
    if open_format is not None:
        with clear_errors(name, url, "a file"):
            return open_format(place, name, stack)
    with clear_errors(name, url, "a Zarr store"):
        return open_zarr(place, options.storage_options)


def _format_of(place: Place) -> Any:
    """Return the function that opens a format of files. None for Zarr."""
    if place.suffix in (".npy", ".npz"):
        return open_numpy
    if place.suffix in (".h5", ".hdf5", ".hdf"):
        return open_hdf5_file
    if place.suffix in SUFFIXES:
        return open_parquet
    # Zarr is looked for first: a store may have a file for each of a million chunks.
    if place.is_file or any(map(place.has, _ZARR)) or not parquet_files(place):
        return None
    return open_parquet


def is_web_store(place: Place) -> bool:
    """Whether a place is opened as a Zarr store of the web, where folders look like files."""
    return place.url.lower().startswith(("http://", "https://")) and _format_of(place) is None


class Files(NamedTuple):
    """Arrays of files whose rows follow one another, or groups of such, and the names of files."""

    opened: list[Any]
    names: list[str]


def _arrays_of(part: Any) -> list[Any]:
    return part.opened if isinstance(part, Files) else [part]


# --- members of a container -----------------------------------------------------------------


class MemberNames(NamedTuple):
    """Names of what is stored together: the columns of a table, or the arrays of a group."""

    columns: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()


def member_names(X: Any) -> MemberNames:
    """Return the names of the members of a stored table or group. None for anything else."""
    path, options = ReadOptions.of(X)
    with ExitStack() as stack:
        container = open_container(path, "X", stack, options)
        if isinstance(container, ArrowTable):
            return MemberNames(columns=tuple(container.features))
        return MemberNames(arrays=tuple(_array_names(container)) if _is_group(container) else ())


# What the library keeps in a Zarr group, and what loads a coreset of it, by the kind it is of.
_OWN_STORES = {
    "coreset": ("a stored coreset", "Coreset.from_zarr"),
    "portfolio": ("a stored portfolio", "Portfolio.from_zarr, take a member"),
    "coreset-tree": ("a stored tree", "CoresetTree.open, take its coreset()"),
    "coreset-stream": ("a stored stream", "CoresetStream.load, take its coreset()"),
}


def _members_of(
    X: Any, keys: dict[str, str], chosen: Sequence[str] | None, beside: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...] | None]:
    """Return X and the members that `keys` name, and names of features. X alone if it is an array.

    The parts are arrays of any kind, or `Files` of such.
    """
    if isinstance(X, Files) and chosen is None:
        found = [_members_of(one, keys, None, {}) for one in X.opened]
        first, columns = found[0]
        joined = {name: Files([one[name] for one, _ in found], X.names) for name in first}
        return joined, columns
    # The class is asked, for a Delayed object claims to have every attribute.
    if hasattr(type(X), "columns") and hasattr(type(X), "iloc"):
        X = vectors_of_frame(select_columns(X, chosen, keys.values()))
        _check_keys(keys, list(X.columns), "the data frame X has the columns")
        if hasattr(X, "__dask_graph__"):
            features = tuple(str(column) for column in X.columns if column not in keys.values())
            return arrays_of_dask(X, keys, _of_partitions(X, beside)), features
        return split_columns(X, keys), None
    if isinstance(X, ArrowTable):
        _check_keys(keys, X.known, f"{X.path!r} has the columns")
        check_columns(chosen or (), X.known)
        names = X.expanded(chosen) if chosen else X.features
        features = tuple(name for name in names if name not in keys.values())
        beside = {name: X.column(key) for name, key in keys.items()}
        return {"X": X.table(features), **beside}, None
    if chosen is not None:
        _refuse_columns(X)
    if _is_group(X):
        header = getattr(X, "attrs", {}).get(HEADER)
        if header is not None:
            kind = str(header.get("kind")) if isinstance(header, dict) else ""
            what, load = _OWN_STORES.get(kind, _OWN_STORES["coreset"])
            raise InvalidInputError(
                f"X is {what}, whose rows already have weights",
                argument="X",
                remedy=f"load it with {load} and pass its points, labels and, as sample_weight, "
                "its weights",
            )
        names = _array_names(X)
        _check_keys(keys, names, "the group X has the arrays")
        features = tuple(name for name in names if name not in keys.values())
        members = {name: _member(X, key) for name, key in keys.items()}
        return {"X": _select_array(X, "X", features), **members}, None
    return {"X": X}, None


def _of_partitions(X: Any, beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Dask series that may be read in one task with a partition of X."""
    from dask.utils import is_series_like

    return {
        name: part
        for name, part in beside.items()
        if is_series_like(part)
        and hasattr(part, "__dask_graph__")
        and part.npartitions == X.npartitions
    }


def _refuse_columns(X: Any) -> NoReturn:
    """Say how features are chosen of what has no columns by name."""
    what, array = "not one of them", "X"
    remedy = "leave columns out, and pass the columns of the array, "
    if _is_group(X):
        what, array = f"a group of the arrays {_array_names(X)}", "X['name']"
    elif type(X).__module__.split(".")[0] == "zarr":
        array = "dask.array.from_zarr(X)"
    remedy += f"{array}[:, [0, 1]]"
    if _is_group(X):
        remedy += ", or a cube as xarray opens it, with sample_dims=[...]"
    raise InvalidInputError(
        f"columns selects features of data frames, tables and Parquet files, and X is {what}",
        argument="columns",
        remedy=remedy,
    )


def _dims_of(array: Any) -> tuple[str, ...]:
    """Return the names of dimensions that xarray stores with a Zarr array. None without them."""
    named = getattr(array.metadata, "dimension_names", None)  # of format 3
    return tuple(named or array.attrs.get("_ARRAY_DIMENSIONS", ()))


def check_no_dataset(part: Any, name: str) -> None:
    """Refuse an xarray Dataset, of which it is not known what its rows are."""
    if type(part).__module__.partition(".")[0] == "xarray" and not hasattr(part, "variable"):
        raise InvalidTypeError(
            f"{name} is an xarray {type(part).__name__}",
            argument=name,
            remedy=f"pass open_rows({name}, sample_dims=...) with the names of its dimensions, or "
            f'one DataArray, for example {name}["variable"]',
        )


def _check_keys(keys: dict[str, str], names: list[str], members: str) -> None:
    for name, key in keys.items():
        if key not in names:
            shown = clean_url(key)
            raise InvalidInputError(
                f"{name} is {shown!r}, but {members} {names}",
                argument=name,
                remedy="name one of these",
            )
        if names.count(key) > 1:
            raise InvalidInputError(
                f"{name} is {key!r}, and X has {names.count(key)} columns of this name",
                argument=name,
                remedy="rename them",
            )


def _single(part: Any, name: str, stack: ExitStack, options: ReadOptions) -> Any:
    """Open an array, or the path of one, that is not in the container of X."""
    if isinstance(part, (list, tuple)) and any(isinstance(one, str) for one in part):
        return part  # labels, and no paths
    is_missing = isinstance(part, str) and "://" not in part and not is_glob(part)
    if is_missing and not _exists(part):
        check_slashes(name, part)
        raise MissingPathError(
            f"{name} is {briefly(part)}, which is not a file, and X has no "
            "columns or arrays by name",
            argument=name,
            remedy="pass the array",
        )
    opened = open_container(part, name, stack, options)
    if isinstance(opened, Files):
        return Files([_vector(one, name) for one in opened.opened], opened.names)
    return _vector(opened, name) if is_path(part) or is_store(part) else opened


def _exists(path: str) -> bool:
    """Whether a text is the path of something: no label and no name of a column is."""
    try:
        return Path(path).expanduser().exists()
    except (OSError, RuntimeError):  # longer than any name; no such user
        return False


def _vector(opened: Any, name: str) -> Any:
    """Return the only array with one dimension of what was opened."""
    if isinstance(opened, ArrowTable):
        if len(opened.features) != 1:
            raise InvalidInputError(
                f"{name}: {opened.path!r} has the columns {opened.features}",
                argument=name,
                remedy="pass a file with one",
            )
        return opened.column(opened.features[0])
    if _is_group(opened):
        return _select_array(opened, name, tuple(_array_names(opened)))
    return opened


# --- columns of frames -------------------------------------------------------------------


def select_features(X: Any, beside: Sequence[Any] = ()) -> Any:
    """Return `Rows` of a data frame in memory as the columns that were asked for, or X."""
    data, options = ReadOptions.of(X)
    warn_of_names(options.columns, beside)
    is_frame = hasattr(type(data), "columns") and type(data).__name__ != "LazyFrame"
    if X is data or not is_frame or options.storage_options is not None or options.has_dims:
        return X
    frame = select_columns(data, options.columns, beside)
    return Rows(frame, replace(options, columns=None)) if options.unit_length else frame


def with_columns(X: Any, columns: Iterable[str] | None) -> Any:
    """Return X with these columns alone, if it has names and none were asked for."""
    data, options = ReadOptions.of(X)
    if columns is None or options.columns is not None:
        return X
    return select_features(Rows(data, replace(options, columns=tuple(columns))))


def warn_of_names(columns: Sequence[str] | None, beside: Iterable[Any]) -> None:
    """Warn of columns that are named as features and as something else."""
    keys = [one for one in beside if isinstance(one, str)]
    if both := [name for name in columns or () if name in keys]:
        warn_user(
            f"columns has {both}, which y, sample_weight or groups also names: "
            "it is used as that, and not as a feature. Leave it out of columns."
        )


def select_columns(frame: Any, columns: Sequence[str] | None, beside: Iterable[Any]) -> Any:
    """Return a frame of the columns asked for, and of those that are labels or weights."""
    if columns is None:
        return frame
    names = list(getattr(frame, "column_names", frame.columns))
    if any("[" in str(name) and name not in names for name in columns):
        frame = with_vectors(frame)
        names = list(getattr(frame, "column_names", frame.columns))
    keys = [key for key in beside if isinstance(key, str) and key in names]
    check_columns(columns, names)
    wanted = [name for name in columns if name not in keys] + keys
    if hasattr(frame, "column_names"):
        # Columns that are named are features, also if the metadata of pandas call them an index.
        return frame.select(wanted).replace_schema_metadata(None)
    return frame[wanted]


# --- groups ------------------------------------------------------------------------------


def _is_group(X: Any) -> bool:
    """Whether X is a group of Zarr or HDF5, or an open .npz file."""
    if isinstance(X, (np.lib.npyio.NpzFile, Hdf5File)):
        return True
    return type(X).__module__.split(".")[0] in ("zarr", "h5py") and not hasattr(X, "dtype")


def _array_names(group: Any) -> list[str]:
    if hasattr(group, "array_keys"):
        with warnings.catch_warnings():
            # Of other files, which hold no data: stores of this library have some.
            warnings.filterwarnings("ignore", message=".* not recognized as a component")
            return sorted(group.array_keys())
    if hasattr(group, "visititems"):
        return dataset_names(group)
    return list(group)


def _select_array(group: Any, name: str, names: tuple[str, ...]) -> Any:
    """Return the array called `name`, or the only one with the dimensions it must have."""
    if name in names:
        return _member(group, name)
    if name == "X" and isinstance(group, np.lib.npyio.NpzFile) and set(_CSR) <= set(names):
        import scipy.sparse as sp

        data, indices, indptr, shape = (_member(group, part) for part in _CSR)
        return sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    n_dims = 2 if name == "X" else 1
    fitting = [candidate for candidate in names if len(_shape(group, candidate)) == n_dims]
    if len(fitting) != 1 or (name == "X" and _is_cube(group, names)):
        if not names:
            raise InvalidInputError(
                f"the group holds no array for {name}",
                remedy="pass one that does, or the array itself",
            )
        cube = ", or a cube as xarray.open_zarr opens it" if name == "X" else ""
        raise InvalidInputError(
            f"{name} is a group of the arrays {list(names)}",
            argument=name,
            remedy=f"name one of them {name!r}, or pass the array itself{cube}",
        )
    return _member(group, fitting[0])


def _is_cube(group: Any, names: tuple[str, ...]) -> bool:
    """Whether variables of more dimensions are stored, so that bounds of times do not count."""
    if type(group).__module__[:4] != "zarr":
        return False
    return any(len(group[name].shape) > 2 and _dims_of(group[name]) for name in names)


def _shape(group: Any, name: str) -> tuple[int, ...]:
    array = _member(group, name) if isinstance(group, np.lib.npyio.NpzFile) else group[name]
    return tuple(array.shape)


def _member(group: Any, name: str) -> Any:
    """Return an array of a group. One of an .npz file is read at once."""
    if getattr(getattr(group, "metadata", None), "consolidated_metadata", None) is not None:
        return with_own_metadata(group[name])
    if not isinstance(group, np.lib.npyio.NpzFile):
        return group[name]
    file = getattr(group.zip, "filename", None)
    what = f"the array {name!r} of {file!r}"
    return read_clearly(lambda: what, lambda: group[name])


# --- one part ----------------------------------------------------------------------------


def _opened(part: Any, name: str, missing_chunks: MissingChunks) -> Any:
    """Return an array as a row array, or a Dask array whose Zarr arrays are checked."""
    if isinstance(part, Files):
        arrays = [_opened(array, name, missing_chunks) for array in part.opened]
        return JoinedRows.of(arrays, part.names, name)
    module = type(part).__module__.split(".")[0]
    if module == "xarray":
        return _open_xarray(part, name, missing_chunks)
    if hasattr(part, "__dask_graph__"):
        return _open_dask(part, name, missing_chunks)
    if isinstance(part, Hdf5Array) or (module == "h5py" and hasattr(part, "shape")):
        return hdf5_source(part, missing_chunks)
    if module == "zarr" and hasattr(part, "chunks"):
        return zarr_rows(part, missing_chunks)
    return _open_memory(part, name)


def _open_memory(part: Any, name: str) -> RowArray:
    if isinstance(part, RowArray):
        return part
    if hasattr(part, "iloc"):
        return FrameRows.of(part)
    if hasattr(part, "tocsr"):
        return SparseRows(part)
    if isinstance(part, np.memmap):
        return memmap_source(part)
    if hasattr(part, "partial_fit") and hasattr(part, "coreset"):
        raise InvalidTypeError(
            f"{name} is {a_type(part)}", argument=name, remedy=f"pass {name}.coreset()"
        )
    if isinstance(part, (np.ndarray, list, tuple)) or _is_foreign(part):
        return MemoryRows(_as_array(part, name))
    if all(hasattr(part, attribute) for attribute in ("shape", "dtype", "__getitem__")):
        return StoredRows(part)
    if isinstance(part, Iterator):
        raise InvalidTypeError(
            f"{name} is {a_type(part)}",
            argument=name,
            remedy="feed batches that come one after another to a CoresetStream, by "
            "stream.partial_fit(batch), or pass an array",
        )
    raise InvalidTypeError(
        f"{name} is {a_type(part)}",
        argument=name,
        remedy="pass an array of NumPy, Dask, Zarr, HDF5 or xarray, a data frame of pandas, "
        "polars or Dask, a table of pyarrow, a sparse matrix of SciPy, or the path of a "
        "file or store",
    )


def _is_foreign(part: Any) -> bool:
    """Whether `part` is an array in memory whose dtype is not NumPy's: pandas, PyTorch."""
    return hasattr(part, "__array__") and not isinstance(getattr(part, "dtype", None), np.dtype)


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
    check_no_dataset(part, name)
    if name == "X" and part.ndim > 2:
        dims = tuple(map(str, part.dims))
        raise InvalidInputError(
            f"X has the dimensions {dims}, and it is unknown which of them are rows",
            argument="X",
            remedy=f"pass open_rows(X, sample_dims={dims[:-1]}), with which the cells of the other "
            f"dimensions are columns, or pass rows, X.stack(row={list(dims[:-1])})"
            f".transpose('row', ...)",
        )
    data = part.variable._data  # noqa: SLF001 - `.data` would load a lazily opened file whole
    if isinstance(data, np.ndarray) or hasattr(data, "__dask_graph__"):
        return _opened(part.data, name, missing_chunks)
    part = part.copy(deep=False)
    part.variable._data = with_checks(data, missing_chunks)  # noqa: SLF001 - as above
    stored = part.encoding.get("shards") or part.encoding.get("chunks")
    stored = stored or part.encoding.get("chunksizes")
    granularity = int(stored[0]) if stored and len(stored) == part.ndim else 1
    return StoredRows(part, granularity=granularity, name=_xarray_name(part))


def _xarray_name(part: Any) -> str | None:
    names = [part.encoding.get("source"), None if part.name is None else str(part.name)]
    text = ":".join(name for name in names if name)
    return clean_url(text) if text else None


def _open_dask(part: Any, name: str, missing_chunks: MissingChunks) -> Any:
    from dask.utils import is_dataframe_like, is_index_like, is_series_like

    # The class is asked, for a Delayed object claims to have every attribute.
    if hasattr(type(part), "numblocks"):
        return with_checks_in_graph(as_tasks(part), missing_chunks)
    if not (is_dataframe_like(part) or is_series_like(part) or is_index_like(part)):
        raise InvalidTypeError(
            f"{name} is {a_type(part)}",
            argument=name,
            remedy="pass a Dask array or a Dask DataFrame",
        )
    return arrays_of_dask(part, {})["X"]


# --- checks ------------------------------------------------------------------------------


def _check_part(part: Any, name: str, *, named: bool) -> None:
    shape, dtype = tuple(part.shape), np.dtype(part.dtype)
    if len(shape) != (2 if name == "X" else 1):
        number, example = "2 dimensions", "one row per sample, for example X.reshape(len(X), -1)"
        if name != "X":
            number, example = "1 dimension", f"a vector, for example {name}.ravel()"
        raise InvalidInputError(
            f"{name} must have {number}, found shape {shape}",
            argument=name,
            remedy=f"pass {example}",
        )
    if name != "X" and is_sparse(part):
        raise InvalidTypeError(
            f"{name} is sparse",
            argument=name,
            remedy=f"pass a dense vector, for example {name}.toarray().ravel()",
        )
    what, example, fits = "real numbers", f"{name}.astype('float32')", is_real(dtype)
    if name == "y":
        what, example, fits = "numbers or text", "y.astype(str)", dtype.kind in "biufUSOT"
    if not fits:
        remedy = f"convert it, for example with {example}"
        if named:  # a column of a file, or an array of a group
            remedy = "name another column or array, or convert it where it is stored"
        raise InvalidTypeError(
            f"{name} must hold {what}, found dtype {dtype}", argument=name, remedy=remedy
        )


def _check_lengths(parts: dict[str, Any], *, allow_empty: bool) -> None:
    n_rows, n_columns = parts["X"].shape
    if np.isnan(n_columns):
        raise InvalidInputError(
            "X has an unknown number of columns",
            argument="X",
            remedy="call X.compute_chunk_sizes() first",
        )
    if n_columns == 0:
        raise InvalidInputError(
            "X has no columns", argument="X", remedy="pass at least one feature"
        )
    if n_rows == 0 and not allow_empty:
        raise InvalidInputError("X has no rows", argument="X", remedy="pass at least one")
    for name, part in parts.items():
        length = part.shape[0]
        if not np.isnan(length) and not np.isnan(n_rows) and length != n_rows:
            raise InvalidInputError(
                f"{name} has {length:,} entries but X has {counted(n_rows, 'row')}",
                argument=name,
                remedy="pass one entry per row",
            )
