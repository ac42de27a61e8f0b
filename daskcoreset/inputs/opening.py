"""One array-like argument as a Dask array or a row array."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.deadline import NO_ANSWER, in_time
from daskcoreset.core.errors import CoresetError, InvalidInputError, InvalidTypeError, warn_user
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import AnyArray, MissingChunks
from daskcoreset.core.validation import a_type, is_real, without_mask
from daskcoreset.inputs.arrays import JoinedRows, MemoryRows, RowArray, SparseRows, StoredRows
from daskcoreset.inputs.containers import (
    JoinedArrays,
    check_no_dataset,
    shown_location,
    split_container,
)
from daskcoreset.inputs.dataframes import arrays_of_dask, as_tasks, frame_source
from daskcoreset.inputs.files import memmap_source
from daskcoreset.inputs.hdf5 import Hdf5Array, hdf5_source
from daskcoreset.inputs.options import ReadOptions, is_path
from daskcoreset.inputs.packed import packed_remark
from daskcoreset.inputs.zarr import checked, is_store, with_checks, with_checks_in_graph
from daskcoreset.storage.locations import clean_url, store_name

# Shards above this are cut between the chunks inside them.
_HUGE_SHARD = 256 * 2**20


class OpenedData(NamedTuple):
    """X, and y and sample_weight where given, of equal length where it is known.

    Attributes
    ----------
    parts : dict of str to RowArray or dask.array.Array
    columns : tuple of str or None
        Names of the features.
    name : str or None
        Origin of X.
    remarks : tuple of str
        Warnings for the user.
    """

    parts: dict[str, Any]
    columns: tuple[str, ...] | None
    name: str | None
    remarks: tuple[str, ...] = ()

    @property
    def text_labels(self) -> bool | None:
        """Whether y holds text or objects, and not numbers. None without y."""
        y = self.parts.get("y")
        return None if y is None else np.dtype(y.dtype).kind not in "biuf"

    @property
    def X(self) -> Any:  # noqa: N802 - the name of the argument
        """The rows."""
        return self.parts["X"]


def open_all(X: Any, y: Any, sample_weight: Any, *, allow_empty: bool = False) -> OpenedData:
    """Open X, and y and sample_weight where given. Nothing is read but shapes and dtypes.

    Parameters
    ----------
    X, y, sample_weight
        As in `daskcoreset.build`. The latter two may be None. X may be `Rows`.
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
    parts = (ReadOptions.of(X)[0], y, sample_weight)
    if all(part is None or isinstance(part, np.ndarray) for part in parts):  # nothing to wait for
        return _open_all(X, y, sample_weight, allow_empty)

    def standing() -> str:
        names = [shown_location(part) for part in parts if is_path(part) or is_store(part)]
        return " and ".join(names or ["X"]) + " was still being opened"

    opened = in_time(partial(_open_all, X, y, sample_weight, allow_empty), standing, NO_ANSWER)
    for remark in opened.remarks:
        warn_user(remark)
    return opened


def _open_all(X: Any, y: Any, sample_weight: Any, allow_empty: bool) -> OpenedData:
    X, options = ReadOptions.of(X)
    with ExitStack() as stack:  # of files, which are closed once their arrays are sources
        members = split_container(X, y, sample_weight, stack, options)
        missing = options.missing_chunks
        files = {
            name: part.arrays if isinstance(part, JoinedArrays) else [part]
            for name, part in members.parts.items()
        }
        remarks = tuple(filter(None, (packed_remark(own, name) for name, own in files.items())))
        parts = {
            name: _opened_rows(part, missing)
            if isinstance(part, JoinedArrays)
            else _opened(part, name, missing)
            for name, part in members.parts.items()
        }
    keys = {"y": y, "sample_weight": sample_weight}
    for name, part in parts.items():
        # A list may hold labels as well as paths.
        _check_part(part, name, named=isinstance(keys.get(name), (str, os.PathLike)))
    _check_lengths(parts, allow_empty=allow_empty)
    columns, data_name = members.columns, members.name
    # The name of a Dask array is a hash, which does not identify its data.
    if isinstance(X := parts["X"], RowArray):
        columns, data_name = columns or X.columns, X.name or data_name
    if data_name is not None:
        data_name = clean_url(data_name)
    return OpenedData(parts, columns, data_name, remarks)


# --- one part ----------------------------------------------------------------------------


def _opened_rows(rows: JoinedArrays, missing_chunks: MissingChunks) -> RowArray:
    arrays = [_opened(array, rows.argument, missing_chunks) for array in rows.arrays]
    return JoinedRows.of(arrays, rows.names, rows.argument)


def _opened(part: Any, name: str, missing_chunks: MissingChunks) -> Any:
    """Open a container with chunks, files or labels, or else an array in memory."""
    module = type(part).__module__.split(".")[0]
    if _is_dask_array(part):
        return with_checks_in_graph(as_tasks(part), missing_chunks)
    if module == "xarray":
        return _open_xarray(part, name, missing_chunks)
    if hasattr(part, "__dask_graph__"):
        return _open_dask_frame(part, name)
    if isinstance(part, Hdf5Array) or (module == "h5py" and hasattr(part, "shape")):
        return hdf5_source(part, missing_chunks)
    if module == "zarr" and hasattr(part, "chunks"):
        return _open_zarr(part, missing_chunks)
    return _open_memory(part, name)


def _open_memory(part: Any, name: str) -> RowArray:
    if isinstance(part, RowArray):
        return part
    if hasattr(part, "iloc"):
        return frame_source(part)
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


def _open_zarr(array: Any, missing_chunks: MissingChunks) -> RowArray:
    granularity = 1
    if array.ndim:
        inner, outer = array.chunks, array.shards or array.chunks
        whole = int(np.prod(outer, dtype=np.int64)) * array.dtype.itemsize <= _HUGE_SHARD
        granularity = int((outer if whole else inner)[0])
    array = checked(array, missing_chunks)
    return StoredRows(array, granularity=granularity, name=store_name(array.store_path))


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


def _open_dask_frame(part: Any, name: str) -> Any:
    from dask.utils import is_dataframe_like, is_index_like, is_series_like

    # They look at the class: a Delayed object claims to have every attribute.
    if not (is_dataframe_like(part) or is_series_like(part) or is_index_like(part)):
        raise InvalidTypeError(
            f"{name} is {a_type(part)}",
            argument=name,
            remedy="pass a Dask array or a Dask DataFrame",
        )
    return arrays_of_dask(part, {})["X"]


def _is_dask_array(part: Any) -> bool:
    """Whether `part` is a Dask array."""
    # The class is asked, for a Delayed object claims to have every attribute.
    return hasattr(part, "__dask_graph__") and hasattr(type(part), "numblocks")


def is_sparse(part: Any) -> bool:
    """Whether rows are SciPy sparse."""
    if isinstance(part, RowArray):
        return part.sparse
    from dask.array.utils import meta_from_array

    return hasattr(meta_from_array(part), "tocsr")


# --- checks ------------------------------------------------------------------------------


# A column of a file, or an array of a group, is converted where it is stored alone.
_NAME_ANOTHER = "name another column or array, or convert it where it is stored"


def _converting(name: str) -> str:
    drop = ", or drop the columns that are not numbers" if name == "X" else ""
    return f"convert it, for example with {name}.astype('float32'){drop}"


def _check_part(part: Any, name: str, *, named: bool) -> None:
    shape, dtype = tuple(part.shape), np.dtype(part.dtype)
    if name == "X" and len(shape) != 2:
        raise InvalidInputError(
            f"X must have 2 dimensions, found shape {shape}",
            argument="X",
            remedy="pass one row per sample, for example X.reshape(len(X), -1)",
        )
    if name != "X" and len(shape) != 1:
        raise InvalidInputError(
            f"{name} must have 1 dimension, found shape {shape}",
            argument=name,
            remedy=f"pass a vector, for example {name}.ravel()",
        )
    if name != "X" and is_sparse(part):
        raise InvalidTypeError(
            f"{name} is sparse",
            argument=name,
            remedy=f"pass a dense vector, for example {name}.toarray().ravel()",
        )
    if name == "y" and dtype.kind not in "biufUSOT":
        raise InvalidTypeError(
            f"y must hold numbers or text, found dtype {dtype}",
            argument="y",
            remedy=_NAME_ANOTHER if named else "convert it, for example with y.astype(str)",
        )
    if name != "y" and not is_real(dtype):
        raise InvalidTypeError(
            f"{name} must hold real numbers, found dtype {dtype}",
            argument=name,
            remedy=_NAME_ANOTHER if named else _converting(name),
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
