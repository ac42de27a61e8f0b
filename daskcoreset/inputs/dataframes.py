"""Data frames of pandas and Dask: columns of many dtypes, brought to one array per block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from daskcoreset.core.errors import InvalidTypeError
from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs.expressions import array_of
from daskcoreset.inputs.sources import Loader, Source

# Of text and of all else that NumPy has no numbers for.
OBJECT = np.dtype(object)

_REAL = "biuf"


def is_arrow_table(X: Any) -> bool:
    """Whether X is a table, or a batch of records, of pyarrow."""
    # The class is asked, for a Delayed object claims to have every attribute.
    library = type(X).__module__.partition(".")[0]
    return library == "pyarrow" and hasattr(type(X), "column_names")


def in_one_table(X: Any) -> Any:
    """Return a batch of records of pyarrow as a table, whose names scikit-learn sees, too; or X."""
    if not is_arrow_table(X):
        return X
    import pyarrow as pa

    return pa.Table.from_batches([X]) if isinstance(X, pa.RecordBatch) else X


def frame_source(frame: Any) -> Source:
    """Return the source of a pandas DataFrame or Series; blocks are converted one at a time."""
    dtype = _frame_dtype(frame, missing=bool(frame.ndim == 2 or frame.isna().any()))

    def loader(start: int, stop: int) -> Loader:
        return partial(to_numpy, frame.iloc[start:stop], dtype)

    columns = tuple(map(str, frame.columns)) if frame.ndim == 2 else None
    return Source(frame.shape, dtype, loader, columns=columns, in_memory=True)


def split_columns(frame: Any, keys: Mapping[str, str]) -> dict[str, Any]:
    """Split a frame into the columns that are parts of their own, and X of all others.

    Parameters
    ----------
    frame : pandas.DataFrame or Series
    keys : mapping of str to str
        Columns that are parts of their own, by the name of the part.
    """
    features = frame.drop(columns=list(keys.values())) if keys else frame
    return {"X": features, **{name: frame[key] for name, key in keys.items()}}


def arrays_of_dask(
    frame: Any, keys: Mapping[str, str], beside: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Turn a Dask DataFrame or Series into arrays that share one read of each partition.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame or Series
    keys : dict of str to str
        Columns that are parts of their own, by the name of the part.
    beside : dict of str to dask.dataframe.Series, optional
        Parts of as many partitions, which are most often columns of one frame with X.

    Returns
    -------
    dict of str to dask.array.Array
        "X", made of all other columns, and the parts named; the number of rows of each
        partition stays unknown.
    """
    import dask
    from dask.array.blockwise import blockwise  # not of expressions, whatever Dask is set to
    from dask.dataframe.dispatch import make_meta

    meta = make_meta(frame)  # a frame without rows
    beside = beside or {}
    metas = {name: make_meta(part) for name, part in beside.items()}
    columns = split_columns(meta, keys) | metas
    dtypes = {name: _frame_dtype(part) for name, part in columns.items()}
    # One task a partition makes all parts; what picks a part fuses with the work on it.
    split = partial(_split, names=tuple(beside), keys=dict(keys), dtypes=dtypes)
    nothing = np.empty(0, OBJECT)
    # Else Dask unites partitions of Parquet of which few columns are read: X and y, picked from one
    # frame, would have other rows in a block.
    with dask.config.set({"optimization.tune.active": False}):
        parts = frame.map_partitions(
            split, *beside.values(), meta=nothing, enforce_metadata=False, align_dataframes=False
        )
    shared = array_of(parts, ((np.nan,) * frame.npartitions,), nothing)
    arrays = {}
    for name, dtype in dtypes.items():
        flat = name != "X" or meta.ndim == 1
        arrays[name] = blockwise(
            itemgetter(name),
            "i" if flat else "ij",
            shared,
            "i",
            new_axes=None if flat else {"j": meta.shape[1] - len(keys)},
            meta=np.empty((0,) if flat else (0, 0), dtype),
        )
    return arrays


def _split(
    frame: Any,
    *beside: Any,
    names: Sequence[str],
    keys: Mapping[str, str],
    dtypes: Mapping[str, np.dtype[Any]],
) -> dict[str, AnyArray]:
    """Bring the parts of a partition to arrays."""
    parts = split_columns(frame, keys) | dict(zip(names, beside, strict=True))
    return {name: to_numpy(part, dtypes[name]) for name, part in parts.items()}


def _frame_dtype(frame: Any, *, missing: bool = True) -> np.dtype[Any]:
    """Return the NumPy dtype of a pandas object; floating where a column may be `missing`."""
    if frame.ndim == 1:
        kind = getattr(getattr(frame.dtype, "categories", None), "dtype", frame.dtype)
        dtype = _column_dtype(kind, missing=missing)
        if dtype is not None and kind is not frame.dtype and missing and dtype.kind in "biu":
            dtype = np.result_type(dtype, np.float32)  # a category may be missing
        return OBJECT if dtype is None else dtype
    plain = [_column_dtype(dtype) for dtype in frame.dtypes]
    columns = list(zip(frame.dtypes.items(), plain, strict=True))
    check_numeric(
        {
            str(name): kind
            for (name, kind), dtype in columns
            if dtype is None or dtype.kind not in _REAL
        },
        [str(name) for (name, _), _ in columns],
    )
    return common_dtype(plain)


def _column_dtype(dtype: Any, *, missing: bool = True) -> np.dtype[Any] | None:
    if isinstance(dtype, np.dtype):
        return dtype
    if not (getattr(dtype, "_is_numeric", False) or getattr(dtype, "_is_boolean", False)):
        return None
    plain = np.dtype(getattr(dtype, "numpy_dtype", np.float64))
    # A missing value of a nullable column becomes NaN, which integers cannot hold.
    return np.result_type(plain, np.float32) if missing and plain.kind in _REAL else plain


def common_dtype(dtypes: Iterable[Any]) -> np.dtype[Any]:
    """Return the dtype that holds all of `dtypes`; float64 where there are none."""
    kinds = list(dtypes)
    return np.result_type(*kinds) if kinds else np.dtype(np.float64)


def check_numeric(others: Mapping[str, Any], columns: Iterable[str]) -> None:
    """Check that all columns hold numbers."""
    if others:
        listed = ", ".join(f"{name!r} ({dtype})" for name, dtype in others.items())
        error = InvalidTypeError(
            f"X has columns that hold no real numbers: {listed}; drop or encode them, name one "
            f"of them as y, or choose others by columns=[...]."
        )
        # For those who know which columns are wanted: `known_blocks`.
        vars(error).update(others=tuple(others), columns=tuple(columns))
        raise error


def to_numpy(frame: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Convert a pandas object; missing values become NaN."""
    if dtype.kind == "f":
        return np.asarray(frame.to_numpy(dtype=dtype, na_value=np.nan))
    # Categories that are numbers come as objects, too, as `dtype` declares.
    return np.asarray(frame.to_numpy(dtype=dtype))
