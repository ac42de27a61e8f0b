"""X, y and sample_weight from paths, files, groups and data frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.storage import HEADER
from daskcoreset.inputs.dataframes import arrays_of_dask, split_columns
from daskcoreset.inputs.options import DEFAULTS, ReadOptions, check_columns, is_path
from daskcoreset.inputs.parquet import open_parquet, parquet_files
from daskcoreset.inputs.sources import Table, import_reader

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
    beside = {"y": y, "sample_weight": sample_weight}
    arguments = {name: part for name, part in beside.items() if part is not None}
    keys = {name: part for name, part in arguments.items() if isinstance(part, str)}
    name = os.fspath(X) if isinstance(X, (str, os.PathLike)) else None
    paths = _Paths(stack, options)
    paths.check_needed(X, y, sample_weight)
    container = paths.opened(X, "X", tuple(keys.values()))
    members = _members_of(container, keys, options.columns)
    parts = {
        part: _single(value, part, paths)
        for part, value in arguments.items()
        if part not in members.parts
    }
    return NamedArrays({**members.parts, **parts}, members.columns, name)


def array_names(X: Any, stack: ExitStack) -> tuple[str, ...]:
    """Return the names of the arrays of a stored group; none for anything else."""
    path, options = ReadOptions.of(X)
    container = _Paths(stack, options).opened(path, "X")
    return tuple(_array_names(container)) if _is_group(container) else ()


def _members_of(X: Any, keys: dict[str, str], chosen: Sequence[str] | None = None) -> NamedArrays:
    """Return X and the members that `keys` name; X alone where it is one array."""
    # The class is asked, for a Delayed object claims to have every attribute.
    if hasattr(type(X), "columns") and hasattr(type(X), "iloc"):
        _check_keys(keys, list(X.columns), "the data frame X has the columns")
        if hasattr(X, "__dask_graph__"):
            features = tuple(str(column) for column in X.columns if column not in keys.values())
            return NamedArrays(arrays_of_dask(X, keys), features)
        return NamedArrays(split_columns(X, keys))
    if isinstance(X, Table):
        _check_keys(keys, X.names, f"{X.path!r} has the columns")
        check_columns(chosen or (), X.names)
        features = tuple(name for name in chosen or X.names if name not in keys.values())
        columns = {name: X.column(key) for name, key in keys.items()}
        return NamedArrays({"X": X.table(features), **columns})
    if chosen is not None:
        raise InvalidInputError(
            "columns names features of data frames, tables and Parquet files, and X is none of "
            "them; leave columns out, and pass the columns of the array, X[:, [0, 1]]."
        )
    if _is_group(X):
        names = _array_names(X)
        if HEADER in getattr(X, "attrs", {}):
            raise InvalidInputError(
                "X is a stored coreset, whose rows have weights of their own; load it with "
                "Coreset.from_zarr and pass its points, labels and, as sample_weight, its weights."
            )
        _check_keys(keys, names, "the group X has the arrays")
        features = tuple(name for name in names if name not in keys.values())
        members = {name: X[key] for name, key in keys.items()}
        return NamedArrays({"X": _select_array(X, "X", features), **members})
    return NamedArrays({"X": X})


def _check_keys(keys: dict[str, str], names: list[str], members: str) -> None:
    for name, key in keys.items():
        if key not in names:
            raise InvalidInputError(f"{name} is {key!r}, but {members} {names}; name one of these.")


def _single(part: Any, name: str, paths: _Paths) -> Any:
    """Open an array, or the path of one, that is not in the container of X."""
    if isinstance(part, str) and "://" not in part and not Path(part).expanduser().exists():
        raise InvalidInputError(
            f"{name} is {part!r}, which is no file, and X has no columns or arrays by name; "
            f"pass the array."
        )
    opened = paths.opened(part, name)
    if isinstance(opened, Table):
        if len(opened.names) != 1:
            raise InvalidInputError(
                f"{name}: {opened.path!r} has the columns {opened.names}; pass a file with one."
            )
        return opened.column(opened.names[0])
    if isinstance(part, (str, os.PathLike)) and _is_group(opened):
        return _select_array(opened, name, tuple(_array_names(opened)))
    return opened


# --- groups ------------------------------------------------------------------------------


def _is_group(X: Any) -> bool:
    """Whether X is a group of Zarr or HDF5, or an open .npz file."""
    if isinstance(X, np.lib.npyio.NpzFile):
        return True
    return type(X).__module__.split(".")[0] in ("zarr", "h5py") and not hasattr(X, "dtype")


def _array_names(group: Any) -> list[str]:
    if hasattr(group, "array_keys"):
        return sorted(group.array_keys())
    if hasattr(group, "visititems"):
        names: list[str] = []
        # The visitor goes on for as long as it gets None.
        group.visititems(lambda name, item: names.append(name) if hasattr(item, "dtype") else None)
        return names
    return list(group)


def _select_array(group: Any, name: str, names: tuple[str, ...]) -> Any:
    """Return the array called `name`, or the only one with the dimensions it must have."""
    if name in names:
        return group[name]
    if name == "X" and isinstance(group, np.lib.npyio.NpzFile) and set(_CSR) <= set(names):
        import scipy.sparse as sp

        data, indices, indptr, shape = (group[part] for part in _CSR)
        return sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    n_dims = 2 if name == "X" else 1
    fitting = [candidate for candidate in names if group[candidate].ndim == n_dims]
    if len(fitting) != 1:
        raise InvalidInputError(
            f"{name} is a group of the arrays {list(names)}; name one of them {name!r}, or pass "
            f"the array itself."
        )
    return group[fitting[0]]


# --- paths -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Paths:
    """Opens paths and URLs; `stack` closes the files."""

    stack: ExitStack
    options: ReadOptions

    def check_needed(self, *parts: Any) -> None:
        """Check that there is a URL that the storage options can be for."""
        if self.options.storage_options is not None and not any(map(is_path, parts)):
            raise InvalidInputError(
                f"storage_options are for URLs, and X is a {type(parts[0]).__name__}; leave them "
                f"out, or pass a URL."
            )

    def opened(self, part: Any, name: str, keys: tuple[str, ...] = ()) -> Any:
        """Open a path; anything else is returned as it is."""
        if not isinstance(part, (str, os.PathLike)):
            return part
        path = os.fspath(part)
        if path.startswith("file://"):
            path = path.removeprefix("file://")
        if "://" in path:
            return _open_zarr(path, name, self.options)
        # Workers may run in other folders; links stay as they are.
        path = str(Path(path).expanduser().absolute())
        if not Path(path).exists():
            raise InvalidInputError(f"{name} names no file or folder: {path!r}; check the path.")
        return _open_local(path, name, self.stack, keys)


def _open_local(path: str, name: str, stack: ExitStack, keys: tuple[str, ...]) -> Any:
    for is_format, open_format in FORMATS:
        if is_format(path):
            return open_format(path, name, stack, keys)
    return _open_zarr(path, name)


def _is_parquet(path: str) -> bool:
    # Zarr is looked for first: a store may have a file for each of a million chunks.
    return not any((Path(path) / marker).exists() for marker in _ZARR) and bool(parquet_files(path))


def _open_hdf5(path: str, name: str, stack: ExitStack, _keys: tuple[str, ...]) -> Any:
    h5py = import_reader("h5py", "hdf5", name)
    try:
        return stack.enter_context(h5py.File(path, "r"))
    except OSError as error:
        raise _unreadable(path, name, "an HDF5 file", error) from error


def _open_numpy(path: str, name: str, stack: ExitStack, _keys: tuple[str, ...]) -> Any:
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            return loaded
        stack.enter_context(loaded)
        if "format" not in loaded:
            return loaded
    except (ValueError, OSError, EOFError) as error:
        raise _unreadable(path, name, "an array of numbers", error) from error
    import scipy.sparse as sp

    return sp.load_npz(path)


def _open_zarr(path: str, name: str, options: ReadOptions = DEFAULTS) -> Any:
    import zarr

    try:
        storage = None if options.storage_options is None else dict(options.storage_options)
        return zarr.open(path, mode="r", storage_options=storage)
    except Exception as error:
        raise _unreadable(path, name, "a Zarr store", error) from error


def _unreadable(path: str, name: str, kind: str, error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"{name} cannot be opened as {kind}: {path!r} ({error}); give the path of a Zarr, "
        f"Parquet, HDF5, .npy or .npz file, or an array."
    )


def _has_suffix(suffixes: tuple[str, ...], path: str) -> bool:
    return Path(path).suffix.lower() in suffixes


class Format(NamedTuple):
    """A format of local files.

    Attributes
    ----------
    is_format : callable
        ``is_format(path)`` tells whether a path that exists is of this format.
    open_format : callable
        ``open_format(path, name, stack, keys)`` returns an array, a group of arrays or a `Table`.
        `name` is the argument that the path was passed as, for errors; `stack` closes what is
        opened; `keys` are the columns that will be read alone.
    """

    is_format: Callable[[str], bool]
    open_format: Callable[[str, str, ExitStack, tuple[str, ...]], Any]


# The first that fits opens a path; what none fits is opened as Zarr. A new format is a file of its
# own beside this one, and a line here.
FORMATS = (
    Format(partial(_has_suffix, (".npy", ".npz")), _open_numpy),
    Format(partial(_has_suffix, (".h5", ".hdf5", ".hdf")), _open_hdf5),
    Format(_is_parquet, open_parquet),
)
