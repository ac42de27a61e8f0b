"""X, y and sample_weight from paths, files, groups and data frames."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, NoReturn

import numpy as np

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, MissingPathError
from daskcoreset.core.validation import a_type, shown as briefly
from daskcoreset.inputs.dataframes import arrays_of_dask, split_columns
from daskcoreset.inputs.files import open_numpy, read_npy
from daskcoreset.inputs.filesystems import (
    Place,
    check_slashes,
    clear_errors,
    is_glob,
    read_clearly,
    shortened,
)
from daskcoreset.inputs.hdf5 import Hdf5File, dataset_names, open_hdf5_file
from daskcoreset.inputs.options import DEFAULTS, ReadOptions, check_columns, is_path
from daskcoreset.inputs.parquet import (
    SUFFIXES,
    ParquetFiles,
    as_table,
    check_outside,
    open_parquet,
    parquet_files,
    with_vectors,
)
from daskcoreset.inputs.sources import Table, import_reader
from daskcoreset.inputs.zarr import is_store, open_store, open_zarr, with_own_metadata
from daskcoreset.storage.group import HEADER
from daskcoreset.storage.locations import clean_url, store_name

_CSR = ("data", "indices", "indptr", "shape")  # a sparse X in an .npz file, with y beside it
_ZARR = ("zarr.json", ".zarray", ".zgroup")


class NamedArrays(NamedTuple):
    """The arrays of a container, and names where there are any.

    Attributes
    ----------
    parts : dict of str to object
        "X", and "y" and "sample_weight" where given: arrays of any kind.
    columns : tuple of str or None
        Names of the features.
    name : str or None
        The path, where X was one.
    """

    parts: dict[str, Any]
    columns: tuple[str, ...] | None = None
    name: str | None = None


def split_container(
    X: Any, y: Any, sample_weight: Any, stack: ExitStack, options: ReadOptions = DEFAULTS
) -> NamedArrays:
    """Open paths, and select X, y and sample_weight in a container.

    Parameters
    ----------
    X : object
        An array, a path or URL, or a container: a data frame, a Zarr or HDF5 group, the
        files of a Parquet data set.
    y, sample_weight : object
        None, an array, or a string: the name of a column or array in the container, or a
        path where X is none.
    stack : contextlib.ExitStack
        Closes the files that are opened.
    options : ReadOptions

    Returns
    -------
    NamedArrays
        Nothing is read but the names, shapes and dtypes of what is stored.
    """
    beside = {"y": _only_column(y), "sample_weight": _only_column(sample_weight)}
    arguments = {name: part for name, part in beside.items() if part is not None}
    keys = {name: part for name, part in arguments.items() if isinstance(part, str)}
    name = shown_location(X) if is_path(X) else None
    paths = _Paths(stack, options)
    paths.check_needed(X, y, sample_weight)
    container = paths.opened(X, "X", tuple(keys.values()))
    check_no_dataset(container, "X")
    members = _members_of(container, keys, options.columns, arguments)
    parts = {
        part: _single(value, part, paths)
        for part, value in arguments.items()
        if part not in members.parts
    }
    return NamedArrays({**members.parts, **parts}, members.columns, name)


def _only_column(part: Any) -> Any:
    """Return a data frame or table of one column as that column, and anything else unchanged."""
    # The class is asked, for a Delayed object claims to have every attribute.
    kind, library = type(part), type(part).__module__.partition(".")[0]
    is_table = hasattr(kind, "iloc") or library in {"polars", "pyarrow"}
    if not (is_table and hasattr(kind, "columns")) or len(part.columns) != 1:
        return part
    return part.column(0) if library == "pyarrow" else part[part.columns[0]]


def shown_location(path: Any) -> str:
    """Return the name of a path, of a list of them, or of a Zarr store, without secrets."""
    if is_store(path):
        return store_name(path)
    names = [os.fspath(one) for one in (path if isinstance(path, (list, tuple)) else [path])]
    return shortened([clean_url(name) for name in names])


class MemberNames(NamedTuple):
    """Names of what is stored together: the columns of a table, or the arrays of a group."""

    columns: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()


def member_names(X: Any) -> MemberNames:
    """Return the names of the members of a stored table or group. None for anything else."""
    path, options = ReadOptions.of(X)
    with ExitStack() as stack:
        container = opened_container(path, stack, options)
        if isinstance(container, Table):
            return MemberNames(columns=tuple(container.features))
        return MemberNames(arrays=tuple(_array_names(container)) if _is_group(container) else ())


def opened_container(X: Any, stack: ExitStack, options: ReadOptions) -> Any:
    """Open what X names, a table or a group among others. Anything else is returned unchanged."""
    return _Paths(stack, options).opened(X, "X")


# What the library keeps in a Zarr group, and what loads a coreset of it, by the kind it is of.
_OWN_STORES = {
    "coreset": ("a stored coreset", "Coreset.from_zarr"),
    "portfolio": ("a stored portfolio", "Portfolio.from_zarr, take a member"),
    "coreset-tree": ("a stored tree", "CoresetTree.open, take its coreset()"),
    "coreset-stream": ("a stored stream", "CoresetStream.load, take its coreset()"),
}


def _members_of(
    X: Any, keys: dict[str, str], chosen: Sequence[str] | None, beside: Mapping[str, Any]
) -> NamedArrays:
    """Return X and the members that `keys` name. X alone if it is one array."""
    if isinstance(X, Files) and chosen is None:
        return X.members(keys)
    # The class is asked, for a Delayed object claims to have every attribute.
    if hasattr(type(X), "columns") and hasattr(type(X), "iloc"):
        X = with_vectors(X)
        _check_keys(keys, list(X.columns), "the data frame X has the columns")
        if hasattr(X, "__dask_graph__"):
            features = tuple(str(column) for column in X.columns if column not in keys.values())
            return NamedArrays(arrays_of_dask(X, keys, _of_partitions(X, beside)), features)
        return NamedArrays(split_columns(X, keys))
    if isinstance(X, Table):
        _check_keys(keys, X.known, f"{X.path!r} has the columns")
        check_columns(chosen or (), X.known)
        names = X.expanded(chosen) if chosen else X.features
        features = tuple(name for name in names if name not in keys.values())
        columns = {name: X.column(key) for name, key in keys.items()}
        return NamedArrays({"X": X.table(features), **columns})
    if chosen is not None:
        _refuse_columns(X, chosen)
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
        return NamedArrays({"X": _select_array(X, "X", features), **members})
    return NamedArrays({"X": X})


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


def _refuse_columns(X: Any, chosen: Sequence[str]) -> NoReturn:
    """Say how features are chosen of what has no columns by name."""
    if not _is_group(X):
        whole = "dask.array.from_zarr(X)" if type(X).__module__.split(".")[0] == "zarr" else "X"
        raise InvalidInputError(
            "columns selects features of data frames, tables and Parquet "
            "files, and X is not one of them",
            argument="columns",
            remedy=f"leave columns out, and pass the columns of the array, {whole}[:, [0, 1]]",
        )
    names = _array_names(X)
    dims = {name: _dims_of(X[name]) for name in names} if type(X).__module__[:4] == "zarr" else {}
    axes = {dim for one in dims.values() for dim in one}
    variables = [name for name in chosen if dims.get(name)]
    if variables := variables or [name for name in names if dims.get(name) and name not in axes]:
        rows = max((dims[name] for name in variables), key=len)
        rows = rows[:-1] if len(variables) == 1 < len(rows) else rows
        raise InvalidInputError(
            "columns selects variables of an open cube, and X is a Zarr store "
            f"of the arrays {names}",
            argument="columns",
            remedy=f"pass xarray.open_zarr(...) of it as X, with columns={variables} and, for "
            f"example, sample_dims={rows}",
        )
    raise InvalidInputError(
        "columns selects features of data frames, tables and Parquet "
        f"files, and X is a group of the arrays {names}",
        argument="columns",
        remedy="leave columns out, and pass the columns of the array, X['name'][:, [0, 1]], or a "
        "cube as xarray opens it",
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


def _single(part: Any, name: str, paths: _Paths) -> Any:
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
    opened = paths.opened(part, name)
    if isinstance(opened, Files):
        vectors = [_vector(one, name) for one in opened.opened]
        return JoinedArrays(vectors, opened.places, name)
    return _vector(opened, name) if is_path(part) or is_store(part) else opened


def _exists(path: str) -> bool:
    """Whether a text is the path of something: no label and no name of a column is."""
    try:
        return Path(path).expanduser().exists()
    except (OSError, RuntimeError):  # longer than any name; no such user
        return False


def _vector(opened: Any, name: str) -> Any:
    """Return the only array with one dimension of what was opened."""
    if isinstance(opened, Table):
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
    return read_clearly(lambda: what, lambda: read_npy(lambda: group[name]))


# --- paths -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Paths:
    """Opens paths, URLs and Zarr stores; `stack` closes the files."""

    stack: ExitStack
    options: ReadOptions

    def check_needed(self, *parts: Any) -> None:
        """Check that there is a URL that the storage options can be for."""
        if self.options.storage_options is not None and not any(map(is_path, parts)):
            raise InvalidInputError(
                f"storage_options are for URLs, and X is {a_type(parts[0])}",
                argument="storage_options",
                remedy="leave them out, or pass a URL",
            )

    def opened(self, part: Any, name: str, keys: tuple[str, ...] = ()) -> Any:
        """Open what is stored. Anything else is returned unchanged."""
        if is_store(part):
            return open_store(part, name)
        if not is_path(part):
            return as_table(part, keys)
        places = self._places(part, name)
        if len(places) == 1:
            return self._open(places[0], name, keys)
        if all(place.suffix in SUFFIXES for place in places):
            import_reader("pyarrow", "dataframe", name)
            return ParquetFiles(places, keys)
        return Files([self._open(place, name, keys) for place in places], places, name)

    def _places(self, part: Any, name: str) -> list[Place]:
        """Return the places that a path, a URL, a glob, or a list of them names."""
        places = []
        for one in part if isinstance(part, (list, tuple)) else [part]:
            url = os.fspath(one)
            with clear_errors(name, url, "a file or store"):
                check_slashes(name, one)
                place = Place.of(one, self.options.storage_options)
                found = place.matches() if is_glob(one) else [place]
                if is_glob(one) and any(file.suffix in SUFFIXES for file in found):
                    check_outside(found[0].at(str(PurePosixPath(found[0].path).parent)), place)
                if not found:
                    raise MissingPathError(
                        f"{name} matches no file: {place.name!r}",
                        argument=name,
                        remedy="check the pattern",
                    )
                if place.is_local and not found[0].exists:
                    raise MissingPathError(
                        f"{name} names no file or folder: {place.path!r}",
                        argument=name,
                        remedy="check the path",
                    )
            places += found
        return places

    def _open(self, place: Place, name: str, keys: tuple[str, ...]) -> Any:
        url = place.url or place.path
        with clear_errors(name, url, "a file or store"):
            fitting = (open_format for is_format, open_format in FORMATS if is_format(place))
            open_format = next(fitting, None)
        if open_format is not None:
            with clear_errors(name, url, "a file"):
                return open_format(place, name, self.stack, keys)
        with clear_errors(name, url, "a Zarr store"):
            return open_zarr(place, self.options.storage_options)


class Files:
    """Several files of one kind, whose rows follow one another.

    Parameters
    ----------
    opened : list of object
        Arrays, or groups of them.
    places : list of Place
    name : str
        The argument that they were passed as.
    """

    def __init__(self, opened: list[Any], places: list[Place], name: str) -> None:
        self.opened = opened
        self.places = [place.name for place in places]
        self.name = name

    def members(self, keys: dict[str, str]) -> NamedArrays:
        """Return X of all files, and the members that `keys` name."""
        found = [_members_of(one, keys, None, {}) for one in self.opened]
        parts = {
            part: JoinedArrays([members.parts[part] for members in found], self.places, part)
            for part in found[0].parts
        }
        return NamedArrays(parts, found[0].columns)


class JoinedArrays(NamedTuple):
    """Arrays whose rows follow one another, and the names of their files."""

    arrays: list[Any]
    names: list[str]
    argument: str


def _is_parquet(place: Place) -> bool:
    if place.suffix in SUFFIXES:
        return True
    # Zarr is looked for first: a store may have a file for each of a million chunks.
    return not place.is_file and not any(map(place.has, _ZARR)) and bool(parquet_files(place))


def _has_suffix(suffixes: tuple[str, ...], place: Place) -> bool:
    return place.suffix in suffixes


class Format(NamedTuple):
    """A format of files.

    Attributes
    ----------
    is_format : callable
        ``is_format(place)`` tells whether a `Place` is of this format.
    open_format : callable
        ``open_format(place, name, stack, keys)`` returns an array, a `Source`, a group of arrays or
        a `Table`. `name` is the argument that the place was passed as, for errors. `stack` closes
        what is opened. `keys` are the columns that will be read alone.
    """

    is_format: Callable[[Place], bool]
    open_format: Callable[[Place, str, ExitStack, tuple[str, ...]], Any]


# The first that fits opens a path or URL; what none fits is opened as Zarr. A new format is a file
# of its own beside this one, and a line here.
FORMATS = (
    Format(partial(_has_suffix, (".npy", ".npz")), open_numpy),
    Format(partial(_has_suffix, (".h5", ".hdf5", ".hdf")), open_hdf5_file),
    Format(_is_parquet, open_parquet),
)


def is_web_store(place: Place) -> bool:
    """Whether a place is opened as a Zarr store of the web, where folders look like files."""
    return place.url.lower().startswith(("http://", "https://")) and not any(
        is_format(place) for is_format, _ in FORMATS
    )
