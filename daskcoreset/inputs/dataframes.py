"""Data frames of pandas and Dask: columns of many dtypes, brought to one array per block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from daskcoreset.core.invalid import EXACT, find_inexact, inexact_row
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidTypeError
from daskcoreset.inputs.arrays import RowArray

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


# Columns in which pandas and Dask store an index without a name.
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")


def index_names(schema: Any) -> set[str]:
    """Return the columns of a schema of Arrow that are an index of pandas or Dask.

    Examples
    --------
    >>> import pyarrow as pa
    >>> index_names(pa.schema({"a": "int8", "__null_dask_index__": "int64"}))
    {'__null_dask_index__'}
    """
    found = {name for name in schema.names if _INDEX.fullmatch(name)}
    with suppress(ValueError):  # metadata that are no JSON
        named = (schema.pandas_metadata or {}).get("index_columns", ())
        # A range of numbers is no column.
        found |= {name for name in named if isinstance(name, str)} & {*schema.names}
    return found


def without_index(X: Any) -> Any:
    """Return a table of Arrow, or a frame of polars, without columns that are an index; or X."""
    if is_arrow_table(X):
        X = in_one_table(X)
        return X.drop_columns([*index_names(X.schema)])
    if type(X).__module__.partition(".")[0] == "polars" and hasattr(type(X), "columns"):
        return X.drop([name for name in X.columns if _INDEX.fullmatch(name)])
    return X


def element_names(name: Any, width: int) -> list[str]:
    """Return the names of the features that a column of vectors is.

    Examples
    --------
    >>> element_names("emb", 2)
    ['emb[0]', 'emb[1]']
    """
    return [f"{name}[{i}]" for i in range(width)]


@dataclass(frozen=True, eq=False)
class FrameRows(RowArray):
    """Rows of a pandas DataFrame or Series. Blocks are converted one at a time."""

    frame: Any
    dtype: np.dtype[Any]
    first_row: int = 0

    in_memory = True

    @classmethod
    def of(cls, frame: Any) -> FrameRows:
        """Return the rows of a whole frame or series."""
        missing = bool(frame.ndim == 2 or frame.isna().any())
        return cls(frame, _frame_dtype(frame, missing=missing))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Rows, and columns of a frame."""
        return tuple(self.frame.shape)

    @property
    def columns(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of the features."""
        return tuple(map(str, self.frame.columns)) if self.ndim == 2 else None

    def __getitem__(self, rows: slice) -> AnyArray:
        return to_numpy(self.frame.iloc[rows], self.dtype, self.first_row + rows.start)

    def cut(self, start: int, stop: int) -> FrameRows:
        """Return some rows."""
        return FrameRows(self.frame.iloc[start:stop], self.dtype, self.first_row + start)


def split_columns(frame: Any, keys: Mapping[str, str]) -> dict[str, Any]:
    """Split a frame into the columns that are separate parts, and X of all others.

    Parameters
    ----------
    frame : pandas.DataFrame or Series
    keys : mapping of str to str
        Columns that are separate parts, by the name of the part.
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
        Columns that are separate parts, by the name of the part.
    beside : dict of str to dask.dataframe.Series, optional
        Parts with the same number of partitions, most often columns of one frame with X.

    Returns
    -------
    dict of str to dask.array.Array
        "X", made of all other columns, and the parts named. The number of rows of each
        partition stays unknown.
    """
    import dask
    from dask.array.blockwise import blockwise  # not of expressions, whatever Dask is set to
    from dask.dataframe.dispatch import make_meta

    meta = make_meta(frame)  # a frame without rows
    beside = beside or {}
    metas = {name: make_meta(part) for name, part in beside.items()}
    declared = split_columns(meta, keys) | metas
    # One task a partition makes all parts; what picks a part fuses with the work on it.
    split = partial(_split, names=tuple(beside), keys=dict(keys), declared=declared)
    nothing = np.empty(0, OBJECT)
    # Else Dask unites partitions of Parquet of which few columns are read: X and y, picked from one
    # frame, would have other rows in a block.
    with dask.config.set({"optimization.tune.active": False}):
        # Dask reads the columns that the meta names, beside those that other parts are made of.
        parts = frame.map_partitions(
            split, *beside.values(), meta=meta, enforce_metadata=False, align_dataframes=False
        ).optimize()
        shared = array_of(parts, ((np.nan,) * frame.npartitions,), nothing)
    arrays = {}
    for name, part in declared.items():
        flat = name != "X" or meta.ndim == 1
        arrays[name] = blockwise(
            itemgetter(name),
            "i" if flat else "ij",
            shared,
            "i",
            new_axes=None if flat else {"j": meta.shape[1] - len(keys)},
            meta=np.empty((0,) if flat else (0, 0), _frame_dtype(part)),
        )
    return arrays


def _split(
    frame: Any,
    *beside: Any,
    names: Sequence[str],
    keys: Mapping[str, str],
    declared: Mapping[str, Any],
) -> dict[str, AnyArray]:
    """Bring the parts of a partition to arrays."""
    parts = split_columns(frame, keys) | dict(zip(names, beside, strict=True))
    return {name: partition_to_numpy(part, declared[name]) for name, part in parts.items()}


def _frame_dtype(frame: Any, *, missing: bool = True) -> np.dtype[Any]:
    """Return the NumPy dtype of a pandas object. Floating where a column may be `missing`."""
    if frame.ndim == 1:
        kind = getattr(getattr(frame.dtype, "categories", None), "dtype", frame.dtype)
        dtype = _column_dtype(kind, missing=missing)
        if dtype is not None and kind is not frame.dtype and missing and dtype.kind in "biu":
            dtype = np.result_type(dtype, np.float32)  # a category may be missing
        return OBJECT if dtype is None else dtype
    plain = [_column_dtype(dtype) for dtype in frame.dtypes]
    columns = zip(frame.dtypes.items(), plain, strict=True)
    check_numeric({str(name): kind for (name, kind), dtype in columns if not _is_real(dtype)})
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
    """Return the dtype that holds all of `dtypes`. Float64 where there are none."""
    kinds = list(dtypes)
    return np.result_type(*kinds) if kinds else np.dtype(np.float64)


def check_numeric(others: Mapping[str, Any]) -> None:
    """Check that all columns hold numbers."""
    if others:
        listed = ", ".join(f"{name!r} ({dtype})" for name, dtype in others.items())
        raise InvalidTypeError(
            f"X has columns that hold no real numbers: {listed}",
            argument="X",
            remedy="drop or encode them, name one of them as y, or choose others by "
            "open_rows(X, columns=[...])",
        )


def partition_to_numpy(frame: Any, meta: Any) -> AnyArray:
    """Convert a partition of a Dask frame to the dtype that its meta declares, if nothing is lost.

    Dask declares integers or booleans for columns in which some partitions have missing values.
    Missing values become NaN, and other numbers that the dtype does not hold keep theirs.

    Parameters
    ----------
    frame, meta : pandas.DataFrame or Series

    Examples
    --------
    >>> import pandas as pd
    >>> partition_to_numpy(pd.Series([True, None], dtype=object), pd.Series([], dtype=bool))
    array([ 1., nan], dtype=float32)
    """
    dtype = _frame_dtype(meta)
    if dtype.kind not in _REAL:
        return to_numpy(frame, dtype)
    frame = _with_numbers(frame)
    kinds = [frame.dtype] if frame.ndim == 1 else list(frame.dtypes)
    plain = all(isinstance(kind, np.dtype) for kind in kinds)
    missing = not plain and bool(frame.isna().to_numpy().any())
    if frame.ndim == 1:
        found = _frame_dtype(frame, missing=missing)
    else:
        found = common_dtype(_column_dtype(kind, missing=missing) or OBJECT for kind in kinds)
    _check_rounded(frame, _long_columns(meta))
    values = to_numpy(frame, found)
    if found == dtype or found.kind not in _REAL:
        return values
    inexact = find_inexact("", values.ravel()) is not None
    for held in (dtype, np.result_type(dtype, np.float32)):
        if inexact and held.kind == "f":
            break
        with np.errstate(invalid="ignore", over="ignore"):
            cast = values.astype(held)
        if np.array_equal(cast, values, equal_nan=True):
            return cast
    return values


def _check_rounded(frame: Any, long: Sequence[int]) -> None:
    """Raise an error for floats that pandas may have rounded, in columns of long integers."""
    for j in long:
        column = frame if frame.ndim == 1 else frame.iloc[:, j]
        dtype = _column_dtype(column.dtype, missing=False)
        if dtype is None or dtype.kind != "f":
            continue
        values = column.to_numpy(dtype=dtype, na_value=np.nan)
        large = values[np.isfinite(values) & (abs(values) >= EXACT)]
        if len(large):
            raise inexact_row(f"column {column.name!r}", int(large[0])).error_at("")


def _with_numbers(frame: Any) -> Any:
    """Return a partition whose columns of Python objects have the dtypes of their values."""
    import pandas as pd

    kinds = [frame.dtype] if frame.ndim == 1 else frame.dtypes
    if all(_is_real(_column_dtype(kind)) for kind in kinds):
        return frame
    if frame.ndim == 2:
        columns = [_with_numbers(frame.iloc[:, j]) for j in range(frame.shape[1])]
        return pd.concat(columns, axis=1)
    # A partition without a value has any dtype.
    return frame.astype(np.float64) if frame.isna().all() else frame.convert_dtypes()


def _is_real(dtype: np.dtype[Any] | None) -> bool:
    return dtype is not None and dtype.kind in _REAL


def to_numpy(frame: Any, dtype: np.dtype[Any], first_row: int | None = None) -> AnyArray:
    """Convert a pandas object. Missing values become NaN.

    Parameters
    ----------
    frame : pandas.DataFrame or Series
    dtype : numpy.dtype
    first_row : int or None, default=None
        Number of the first row in the data, for errors.
    """
    if dtype.kind == "f":
        check_exact(frame, first_row)
        return np.asarray(frame.to_numpy(dtype=dtype, na_value=np.nan))
    # Categories that are numbers come as objects, too, as `dtype` declares.
    return np.asarray(frame.to_numpy(dtype=dtype))


def check_exact(frame: Any, first_row: int | None = 0) -> None:
    """Raise an error for the first integer of a pandas object that float64 does not hold.

    Parameters
    ----------
    frame : pandas.DataFrame or Series
    first_row : int or None, default=0
        Number of the first row in the data. None if it is not known.
    """
    for j in _long_columns(frame):
        column = frame if frame.ndim == 1 else frame.iloc[:, j]
        values = column.to_numpy(dtype=_column_dtype(column.dtype, missing=False), na_value=0)
        problem = find_inexact(f"column {column.name!r}", values)
        if problem is not None:
            raise problem.error_at("") if first_row is None else problem.error(first_row)


def _long_columns(frame: Any) -> list[int]:
    kinds = [frame.dtype] if frame.ndim == 1 else list(frame.dtypes)
    dtypes = [_column_dtype(kind, missing=False) for kind in kinds]
    return [j for j, dtype in enumerate(dtypes) if dtype is not None and _is_long(dtype)]


def _is_long(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" and dtype.itemsize == 8


# --- expressions of Dask ----------------------------------------------------------------------


def as_tasks(array: Any) -> Any:
    """Return a Dask array as one of tasks: same blocks, same values. Nothing is computed.

    Expressions are those of ``dask_array.Array``, which xarray uses where that package is
    installed, and of Dask itself under its setting ``array.query-planning``. Arrays made from one
    that X and y share name its blocks alike, so that these are still read once.

    Parameters
    ----------
    array : dask.array.Array or dask_array.Array
        Anything else, such as an array of tasks, is returned unchanged.
    """
    if not hasattr(array, "expr"):
        return array
    import dask
    from dask.array.utils import meta_from_array

    # Optimised, each array would get reads of its own, of the very columns that it needs.
    with dask.config.set({"array.optimize-graph": False}):
        plain = type(array)(array.expr)  # which remembers the setting
        return array_of(plain, array.chunks, meta_from_array(array))


def array_of(collection: Any, chunks: tuple[tuple[Any, ...], ...], meta: Any) -> Any:
    """Return any collection whose keys are those of the blocks of an array as that array."""
    from dask.array.core import Array
    from dask.core import flatten
    from dask.highlevelgraph import HighLevelGraph

    graph, name = collection.__dask_graph__(), next(flatten(collection.__dask_keys__()))[0]
    if not isinstance(graph, HighLevelGraph):
        graph = HighLevelGraph.from_collections(name, graph)
    return Array(graph, name, chunks, meta=meta)
