"""Some rows of the data by their numbers, read from where they are stored and no others."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from daskcoreset.core.optional import import_optional
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.arrays import RowArray
from daskcoreset.inputs.open import is_frame, open_all, open_container, select_columns
from daskcoreset.inputs.options import ReadOptions, check_columns
from daskcoreset.inputs.parquet import ArrowTable


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
        if isinstance(found, ArrowTable):
            return _of_table(found, indices, options.columns)
        if is_frame(found) and not hasattr(found, "__dask_graph__"):
            _check(indices, len(found))
            return select_columns(found, options.columns, ()).iloc[indices]
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


def _of_table(table: ArrowTable, indices: IndexArray, columns: Any) -> Any:
    """Read the pieces that hold some rows, with columns of all types."""
    pandas = import_optional(
        "pandas", 'rows of tables are frames of pandas; pip install "daskcoreset[dataframe]".'
    )
    check_columns(columns or (), table.names)
    ends = np.cumsum([piece.rows for piece in table.pieces])
    _check(indices, int(ends[-1]) if len(ends) else 0)
    rows, order = np.unique(indices, return_inverse=True)
    frames, names = [], list(columns or table.names)
    table.check_unique(names)
    owner: AnyArray = np.searchsorted(ends, rows, side="right")
    for i in np.unique(owner):
        piece, own = table.pieces[i], rows[owner == i] - (ends[i] - table.pieces[i].rows)
        first, last = int(own[0]), int(own[-1])
        frame = piece.cut(first, last + 1).read(names).to_pandas()
        frames.append(frame.iloc[own - first])
    # Files that lack a column have no values in it.
    found = pandas.concat(frames, ignore_index=True).reindex(columns=names).iloc[order]
    found.index = indices
    return found
