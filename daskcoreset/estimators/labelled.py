"""Predictions for data frames: series with their index, and in Dask with their partitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from daskcoreset.core.blocks import Block, BlockSchema, InvalidRow, validate_block
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.inputs.dataframes import Declared, is_arrow_table, partition_to_numpy


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas, Dask or polars."""
    # The class is asked, for a Delayed object claims to have every attribute.
    return hasattr(type(X), "columns") and (hasattr(type(X), "iloc") or _is_polars(X))


def frame_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, or a table of pyarrow.

    None of all else, and where one is no text.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_names(pd.DataFrame({"a": [1.0]})), frame_names(pd.DataFrame([[1.0]]))
    (['a'], None)
    """
    if is_arrow_table(X):
        return [*X.column_names]
    if not is_frame(X) or not all(isinstance(name, str) for name in X.columns):
        return None
    return [*X.columns]


def _is_polars(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "polars"


def series_in_memory(frame: Any, values: Any, name: str) -> Any:
    """Return a value for every row of a data frame in memory as a series, with its index.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 7])
    >>> series_in_memory(frame, np.array([0, 1]), "cluster").index.tolist()
    [5, 7]
    """
    if _is_polars(frame):
        import polars as pl

        return pl.Series(name, values)
    import pandas as pd

    return pd.Series(values, index=frame.index, name=name)


def lazy_series(
    frame: Any, blocks: RowBlocks, function: Callable[[Block], Any], dtype: Any, name: str
) -> Any:
    """Define a value for every row of a Dask data frame as a series that is a column of it.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    blocks : RowBlocks
        Opened from `frame`.
    function : callable
        As `daskcoreset.execution.engine.map_rows` has it.
    dtype : dtype
    name : str

    Returns
    -------
    dask.dataframe.Series
        With the partitions of `frame`, also where their divisions are not known: Dask lines two
        frames up by their partitions only where one is made of the other.
    """
    from dask.dataframe.dispatch import make_meta

    meta = make_meta(frame)
    declared = Declared.of(meta)
    work = partial(
        _of_partition, schema=blocks.schema, declared=declared, function=function, name=name
    )
    meta = series_in_memory(meta, np.empty(0, dtype), name)
    return frame.map_partitions(work, meta=meta)


def _of_partition(
    frame: Any,
    schema: BlockSchema,
    declared: Declared,
    function: Callable[[Block], Any],
    name: str,
) -> Any:
    rows = validate_block(partition_to_numpy(frame, declared), None, None, schema)
    values = rows.problem or function(rows.valid_block)
    if isinstance(values, InvalidRow):
        where = "" if values.row is None else f" at the index {frame.index[values.row]}"
        raise values.error_at(where)
    return series_in_memory(frame, values, name)
