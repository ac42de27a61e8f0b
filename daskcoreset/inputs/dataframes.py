"""Frames of pandas, Dask and polars, and tables of Arrow: columns brought to one array per block.

Tables become frames of pandas, whose columns share their memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from daskcoreset.core.invalid import EXACT, find_inexact, inexact_row
from daskcoreset.core.messages import import_optional
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.inputs.arrays import RowArray
from daskcoreset.inputs.options import check_columns

# Of text and of all else that NumPy has no numbers for.
OBJECT = np.dtype(object)

_REAL = "biuf"

# Columns in which pandas and Dask store an index without a name.
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")


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
        return cls(frame, frame_dtype(frame, missing=missing))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Rows, and columns of a frame."""
        return tuple(self.frame.shape)

    @property
    def columns(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of the features."""
        return tuple(map(str, self.frame.columns)) if self.frame.ndim == 2 else None

    def __getitem__(self, rows: slice) -> AnyArray:
        return to_numpy(self.frame.iloc[rows], self.dtype, self.first_row + rows.start)

    def cut(self, start: int, stop: int) -> FrameRows:
        """Return some rows."""
        return FrameRows(self.frame.iloc[start:stop], self.dtype, self.first_row + start)


# --- columns -----------------------------------------------------------------------------


def as_frame(X: Any, columns: Sequence[str] | None = None, beside: Iterable[Any] = ()) -> Any:
    """Return a frame or table as a frame of pandas or Dask, with a column for each feature.

    A column of vectors is one for each element. Columns that are an index are features only if
    they are named. Anything else is returned unchanged.

    Parameters
    ----------
    X : object
    columns : sequence of str, optional
        Columns and elements that are asked for.
    beside : iterable
        Names of columns that are labels or weights. Other objects in it are ignored.

    Examples
    --------
    >>> import pandas as pd
    >>> as_frame(pd.DataFrame({"id": [7, 8], "emb": [[0.5, 1.0], [2.0, 3.0]]}))
       id  emb[0]  emb[1]
    0   7     0.5     1.0
    1   8     2.0     3.0
    """
    table = as_arrow(X)
    if table is None and not is_frame(X):
        return X
    names = list(X.columns) if table is None else table.column_names
    keys = {key for key in beside if isinstance(key, str) and stored_name(key, names) in names}
    if columns is None and table is not None:
        index = index_names(table.schema)
        columns = [name for name in names if name not in index]
    chosen = [*(name for name in columns or () if name not in keys), *sorted(keys)]
    if columns is not None:
        stored = list(dict.fromkeys(stored_name(name, names) for name in chosen))
        check_columns([name for name in stored if name not in keys], names)
        X = X[stored] if table is None else from_arrow(table.select(stored))
    vectors = vectors_of(X)
    if not vectors:
        return X
    of_column = {X.columns[j]: element_names(X.columns[j], n) for j, (n, _) in vectors.items()}
    if hasattr(X, "__dask_graph__"):
        from dask.dataframe.dispatch import make_meta

        X = X.map_partitions(expanded, vectors, meta=expanded(make_meta(X), vectors))
    else:
        X = expanded(X, vectors, 0)
    if columns is None:
        return X
    chosen = [one for name in chosen for one in of_column.get(name, [name])]
    check_columns(chosen, list(X.columns))
    return X[chosen]


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or Dask, or a table of Arrow."""
    # The class is asked, for a Delayed object claims to have every attribute.
    kind = type(X)
    return hasattr(kind, "columns") and (hasattr(kind, "iloc") or hasattr(kind, "column_names"))


def as_arrow(X: Any) -> Any:
    """Return a table or batch of Arrow, or a frame of polars, as a table. None of others."""
    library = type(X).__module__.partition(".")[0]
    if library == "polars" and hasattr(type(X), "get_columns"):
        return X.to_arrow()
    if library != "pyarrow" or not hasattr(type(X), "column_names"):
        return None
    import pyarrow as pa

    return pa.Table.from_batches([X]) if isinstance(X, pa.RecordBatch) else X


def stored_name(name: str, names: Sequence[Any]) -> str:
    """Return the column that a name, perhaps of an element of vectors, belongs to.

    Examples
    --------
    >>> stored_name("emb[3]", ["id", "emb"])
    'emb'
    """
    column = name.rpartition("[")[0]
    return column if name not in names and column in names else name


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


def from_arrow(table: Any, first_row: int = 0) -> Any:
    """Return a table of Arrow as a frame of pandas with columns of Arrow.

    Parameters
    ----------
    table : pyarrow.Table
    first_row : int, default=0
        Number of the first row in the data, for errors.
    """
    import pyarrow as pa

    pandas = import_optional("pandas", "X")
    for j, field in enumerate(table.schema):
        column = table.column(j)
        if isinstance(field.type, pa.BaseExtensionType):
            table = table.set_column(j, field.name, column.cast(field.type.storage_type))
        elif pa.types.is_dictionary(field.type) and number_dtype(field.type.value_type) is not None:
            table = table.set_column(j, field.name, column.cast(field.type.value_type))
        elif pa.types.is_decimal(field.type):
            table = table.set_column(j, field.name, _floats(field.name, column, first_row))

    def dtype(kind: Any) -> Any:
        return None if pa.types.is_dictionary(kind) else pandas.ArrowDtype(kind)

    return table.to_pandas(types_mapper=dtype, ignore_metadata=True, use_threads=False)


def _floats(name: str, decimals: Any, first_row: int) -> Any:
    """Return a column of decimals as floats. Raise an error for a large one that they round."""
    floats = decimals.cast("float64", safe=False)
    values = floats.to_numpy()
    for row in np.flatnonzero(abs(values) >= EXACT).tolist():
        if decimals[row].as_py() != Decimal(values[row]):
            raise inexact_row(f"column {name!r}", decimals[row].as_py(), row).error(first_row)
    return floats


def numpy_frame(X: Any) -> Any:
    """Return a frame of pandas with columns of Arrow as one with columns of NumPy, or X."""
    if not hasattr(type(X), "iloc") or not any(hasattr(one, "pyarrow_dtype") for one in X.dtypes):
        return X
    rows = FrameRows.of(X)
    return type(X)(rows[0 : len(rows)], X.index, X.columns)


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


# --- columns of vectors ------------------------------------------------------------------


def element_names(name: Any, width: int) -> list[str]:
    """Return the names of the features that a column of vectors is.

    Examples
    --------
    >>> element_names("emb", 2)
    ['emb[0]', 'emb[1]']
    """
    return [f"{name}[{i}]" for i in range(width)]


def number_dtype(kind: Any) -> np.dtype[Any] | None:
    """Return the NumPy dtype of a type of Arrow that is one of numbers. None of others."""
    import pyarrow.types as pt

    if pt.is_decimal(kind):
        return np.dtype(np.float64)
    plain = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype()) if plain else None


def vector_dtype(kind: Any) -> np.dtype[Any] | None:
    """Return the NumPy dtype of a type of Arrow that is one of lists of numbers. None of others."""
    import pyarrow.types as pt

    is_list = pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)
    return number_dtype(kind.value_type) if is_list else None


def vectors_of(X: Any) -> dict[int, tuple[int, np.dtype[Any]]]:
    """Return length and dtype of the vectors in a frame, by the positions of their columns.

    Vectors are lists or arrays of numbers. The first one of a column tells both.
    """
    found = {}
    for j, kind in enumerate(X.dtypes):
        if kind == OBJECT or "list" in str(kind):
            lists = _first_list(X, j)
            dtype = None if lists is None else vector_dtype(lists.type)
            if dtype is not None and len(lists[0]):
                found[j] = len(lists[0]), dtype
    return found


def _first_list(X: Any, j: int) -> Any:
    """Return the first value of a column of a frame in an array of Arrow. None if it is no list."""
    import dask

    is_dask = hasattr(X, "__dask_graph__")
    for part in X[[X.columns[j]]].partitions if is_dask else [X.iloc[:, [j]]]:
        (frame,) = dask.compute(part)
        first = frame.iloc[:, 0].dropna()[:1]
        if len(first) and isinstance(first.iloc[0], (list, tuple, np.ndarray)):
            with suppress(TypeError, ValueError):  # of objects in it that Arrow does not hold
                return _lists_of(first)
        if len(first):
            break
    return None


def _lists_of(column: Any) -> Any:
    """Return a column of lists as an array of Arrow."""
    import pyarrow as pa

    lists = pa.array(column, from_pandas=True)
    # Nothing tells a type if there is no value.
    return lists.cast(pa.list_(pa.float32())) if pa.types.is_null(lists.type) else lists


def expanded(
    frame: Any, vectors: Mapping[int, tuple[int, np.dtype[Any]]], first_row: int | None = None
) -> Any:
    """Return a frame of pandas with a column for each element of vectors.

    Parameters
    ----------
    frame : pandas.DataFrame
    vectors : mapping
        As `vectors_of` returns them.
    first_row : int or None, default=None
        Number of the first row in the data, for errors. None if it is not known.
    """
    if not vectors:
        return frame
    import pandas as pd

    columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    for j, (width, dtype) in vectors.items():
        matrix = _matrix_of(columns[j], width, dtype, first_row)
        names = element_names(frame.columns[j], width)
        columns[j] = pd.DataFrame(matrix, index=frame.index, columns=names)
    return pd.concat(columns, axis=1)


def _matrix_of(column: Any, width: int, dtype: np.dtype[Any], first_row: int | None) -> AnyArray:
    """Return a column of vectors as a matrix. A missing vector becomes NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        lists = _lists_of(column)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"column {column.name!r} has values that are no lists of numbers ({error})",
            argument="X",
            remedy="pass one list of numbers per row, or choose other columns",
        ) from None
    present = np.flatnonzero(lists.is_valid())
    lengths = np.asarray(pc.list_value_length(lists.drop_null()))
    if len(bad := np.flatnonzero(lengths != width)):
        where = "" if first_row is None else f" at row {first_row + int(present[bad[0]])}"
        raise InvalidInputError(
            f"column {column.name!r} has a list of {lengths[bad[0]]} values{where}, and its first "
            f"one has {width}",
            remedy="make all lists equally long, or pass open_rows(X, columns=[...])",
        )
    dtype = np.result_type(dtype, np.float32)
    values = from_arrow(pa.table([pc.list_flatten(lists)], [str(column.name)]))
    matrix = np.full((len(column), width), np.nan, dtype)
    matrix[present] = to_numpy(values, dtype).reshape(-1, width)
    return matrix


# --- Dask --------------------------------------------------------------------------------


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
        flat = part.ndim == 1
        arrays[name] = blockwise(
            itemgetter(name),
            "i" if flat else "ij",
            shared,
            "i",
            new_axes=None if flat else {"j": part.shape[1]},
            meta=np.empty((0,) if flat else (0, 0), frame_dtype(part)),
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
    dtype = frame_dtype(meta)
    if dtype.kind not in _REAL:
        return to_numpy(frame, dtype)
    frame = _with_numbers(frame)
    _check_rounded(frame, meta)
    one = frame.ndim == 1
    found = frame_dtype(frame) if one else common_dtype(map(_column_dtype, frame.dtypes))
    values = to_numpy(frame, found)
    if values.dtype == dtype or values.dtype.kind not in _REAL:
        return values
    for held in (dtype, np.result_type(dtype, np.float32)):
        with np.errstate(invalid="ignore", over="ignore"):
            cast = values.astype(held)
            if np.array_equal(cast.astype(values.dtype), values, equal_nan=True):
                return cast
    return values


def _with_numbers(frame: Any) -> Any:
    """Return a partition whose columns of Python objects have the dtypes of their values."""
    import pandas as pd

    if all(_column_dtype(kind).kind in _REAL for kind in _kinds(frame)):
        return frame
    if frame.ndim == 2:
        columns = [_with_numbers(frame.iloc[:, j]) for j in range(frame.shape[1])]
        return pd.concat(columns, axis=1)
    # A partition without a value has any dtype.
    return frame.astype(np.float64) if frame.isna().all() else frame.convert_dtypes()


def _check_rounded(frame: Any, meta: Any) -> None:
    """Raise an error for floats that pandas may have rounded, in columns of long integers."""
    for j in _long_columns(meta):
        column = frame if frame.ndim == 1 else frame.iloc[:, j]
        if _column_dtype(column.dtype, missing=False).kind == "f":
            values = to_numpy(column, np.dtype(np.float64))
            large = values[np.isfinite(values) & (abs(values) >= EXACT)]
            if len(large):
                raise inexact_row(f"column {column.name!r}", int(large[0])).error_at("")


# --- dtypes ------------------------------------------------------------------------------


def frame_dtype(frame: Any, *, missing: bool = True) -> np.dtype[Any]:
    """Return the NumPy dtype of a pandas object. Floating where a column may be `missing`."""
    if frame.ndim == 1:
        kind = getattr(getattr(frame.dtype, "categories", None), "dtype", frame.dtype)
        dtype = _column_dtype(kind, missing=missing)
        # A category may be missing.
        is_category = kind is not frame.dtype and missing and dtype.kind in "biu"
        return np.result_type(dtype, np.float32) if is_category else dtype
    plain = [_column_dtype(kind) for kind in frame.dtypes]
    columns = zip(frame.dtypes.items(), plain, strict=True)
    check_numeric({str(name): kind for (name, kind), one in columns if one.kind not in _REAL})
    return common_dtype(plain)


def _kinds(frame: Any) -> list[Any]:
    return [frame.dtype] if frame.ndim == 1 else list(frame.dtypes)


def _column_dtype(dtype: Any, *, missing: bool = True) -> np.dtype[Any]:
    """Return the NumPy dtype of a dtype of pandas. Floating where a value may be `missing`."""
    if isinstance(dtype, np.dtype):
        return dtype
    if not (getattr(dtype, "_is_numeric", False) or getattr(dtype, "_is_boolean", False)):
        return OBJECT
    plain = np.dtype(getattr(dtype, "numpy_dtype", np.float64))
    # A missing value of a nullable column becomes NaN, which integers cannot hold.
    return np.result_type(plain, np.float32) if missing and plain.kind in _REAL else plain


def common_dtype(dtypes: Iterable[Any]) -> np.dtype[Any]:
    """Return the dtype that holds all of `dtypes`. Float64 where there are none."""
    kinds = list(dtypes)
    return np.result_type(*kinds) if kinds else np.dtype(np.float64)


def check_numeric(others: Mapping[str, Any]) -> None:
    """Check that all columns hold numbers. The dtypes of `others` are of none."""
    if others:
        kinds = {name: str(dtype).removesuffix("[pyarrow]") for name, dtype in others.items()}
        listed = ", ".join(f"{name!r} ({kind})" for name, kind in kinds.items())
        raise InvalidTypeError(
            f"X has columns that hold no real numbers: {listed}",
            argument="X",
            remedy="drop or encode them, name one of them as y, or choose others by "
            "open_rows(X, columns=[...])",
        )


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
    dtypes = [_column_dtype(kind, missing=False) for kind in _kinds(frame)]
    return [j for j, dtype in enumerate(dtypes) if dtype.kind in "iu" and dtype.itemsize == 8]


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
