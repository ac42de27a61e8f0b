"""Some rows of the data by their numbers, read from where they are stored and no others."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from daskcoreset.core.messages import import_optional
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.arrays import RowArray
from daskcoreset.inputs.dataframes import as_arrow, as_frame, is_frame
from daskcoreset.inputs.open import open_all, open_container
from daskcoreset.inputs.options import ReadOptions, check_columns
from daskcoreset.inputs.parquet import ParquetFiles


def take_rows(X: Any, indices: IndexArray) -> Any:
    """Return rows of X by their numbers, in this order.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        Any input of `daskcoreset.build` but one with `sample_dims`. Frames and Parquet files give
        all their columns, of any type, unless `columns` names some.
    indices : ndarray of shape (r,), int64

    Returns
    -------
    pandas.DataFrame, or ndarray of shape (r, d), or csr_array
        If the data are stored in pieces, only the pieces that hold these rows are read.

    Raises
    ------
    InvalidInputError
        If X has no such row.

    Examples
    --------
    >>> take_rows(np.arange(8.0).reshape(4, 2), np.array([3, 0]))
    array([[6., 7.],
           [0., 1.]])
    """
    data, options = ReadOptions.of(X)
    if options.has_dims:
        raise InvalidInputError(
            "X is a cube, and rows are read only from tables",
            argument="X",
            remedy="select cells by coreset.coordinates, or by their numbers, for example "
            'X.isel(dict(zip(coreset.provenance["sample_dims"], np.unravel_index('
            'coreset.indices[0], coreset.provenance["sample_shape"]))))',
        )
    with ExitStack() as stack:
        found = open_container(data, "X", stack, options)
        if isinstance(found, ParquetFiles):
            return _of_files(found, indices, options.columns)
        if (table := as_arrow(found)) is not None:
            return _of_table(table, indices, options.columns)
        if is_frame(found) and not hasattr(found, "__dask_graph__"):
            _check(indices, len(found))
            frame = found if options.columns is None else as_frame(found, options.columns)
            return frame.iloc[indices]
        part = open_all(found, options=replace(options, storage_options=None)).X
    if np.isnan(part.shape[0]):
        raise InvalidInputError(
            "X has unknown chunk sizes, so that no row has a number before all are read",
            argument="X",
            remedy="call X.compute_chunk_sizes() first",
        )
    _check(indices, part.shape[0])
    rows, order = np.unique(indices, return_inverse=True)
    if isinstance(part, RowArray):
        return part.take(rows)[order]
    return part[rows].compute()[order]


def _check(indices: IndexArray, n_rows: int) -> None:
    if len(indices) and int(indices.max()) >= n_rows:
        raise InvalidInputError(
            f"X has {counted(n_rows, 'row')}, but the coreset has row "
            f"{int(indices.max()):,} of its data",
            argument="X",
            remedy="pass the data of the coreset",
        )


def _of_table(table: Any, indices: IndexArray, columns: Any) -> Any:
    """Return rows of a table of Arrow, with columns of all types."""
    import_optional("pandas", "X")
    names = list(columns or table.column_names)
    check_columns(names, table.column_names)
    _check(indices, len(table))
    found = table.select(names).take(indices).to_pandas(ignore_metadata=True)
    found.index = indices
    return found


def _of_files(files: ParquetFiles, indices: IndexArray, columns: Any) -> Any:
    """Read the row groups that hold some rows, with columns of all types."""
    pandas = import_optional("pandas", "X")
    names = list(columns or files.table.column_names)
    check_columns(names, files.table.column_names)
    starts = np.cumsum([0, *(group.rows for group in files.groups)])
    _check(indices, int(starts[-1]))
    rows, order = np.unique(indices, return_inverse=True)
    owner: AnyArray = np.searchsorted(starts, rows, side="right") - 1
    frames = []
    for i in np.unique(owner):
        own = rows[owner == i] - starts[i]
        first, last = int(own[0]), int(own[-1])
        table = files.groups[i].read(names, first, last + 1).take(own - first)
        frames.append(table.to_pandas(ignore_metadata=True))
    # Files that lack a column have no values in it.
    found = pandas.concat(frames, ignore_index=True).reindex(columns=names).iloc[order]
    found.index = indices
    return found
