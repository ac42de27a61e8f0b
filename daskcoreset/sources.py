"""Readers of what is not a Dask collection: each turns a range of rows into an array.

A source hands out *loaders*, small picklable objects that read their own rows where the
task runs. No task holds data that another one needs, so nothing is kept in memory for
later, and a worker that dies takes nothing with it.
"""

from __future__ import annotations

import functools
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from daskcoreset.errors import InvalidInputError
from daskcoreset.typing import AnyArray

__all__ = [
    "ArraySource",
    "FrameSource",
    "HDF5Source",
    "IndexedSource",
    "Loader",
    "MemmapSource",
    "ParquetSource",
    "Source",
]


_PARQUET = (".parquet", ".parq", ".pq")


class Loader(ABC):
    """Reads one range of rows when called; picklable, cheap to make."""

    @abstractmethod
    def __call__(self) -> Any:
        """Return the rows: ndarray or SciPy sparse."""


class Source(ABC):
    """Rows that can be read range by range.

    Attributes
    ----------
    shape : tuple of int
        ``(n, d)``, or ``(n,)`` for labels and weights.
    dtype : numpy.dtype
        As stored.
    granularity : int
        Rows that are stored together; blocks are made of whole multiples of it.
    name : str or None
        Where the rows come from, for the provenance.
    columns : tuple of str or None
        Names of the features, where they have names.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    granularity: int = 1
    name: str | None = None
    columns: tuple[str, ...] | None = None

    @abstractmethod
    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""

    def cut(self, rows: int) -> tuple[int, ...]:
        """Cut the rows into block sizes of about `rows` rows each."""
        n_rows = self.shape[0]
        step = max(1, rows // self.granularity) * self.granularity
        full, rest = divmod(n_rows, step)
        return (step,) * full + ((rest,) if rest else ())


@dataclass(frozen=True)
class _Held(Loader):
    rows: Any

    def __call__(self) -> Any:
        """Read the rows."""
        return self.rows


class ArraySource(Source):
    """An ndarray or a CSR matrix in memory; blocks are views, and pickle alone."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape = tuple(array.shape)
        self.dtype = array.dtype

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        return _Held(self.array[start:stop])


@dataclass(frozen=True)
class _Sliced(Loader):
    array: Any
    start: int
    stop: int

    def __call__(self) -> Any:
        """Read the rows."""
        return np.asarray(self.array[self.start : self.stop])


class IndexedSource(Source):
    """Anything with ``shape``, ``dtype`` and slicing that pickles: a Zarr array, xarray."""

    def __init__(self, array: Any, *, granularity: int = 1, name: str | None = None) -> None:
        self.array = array
        self.shape = tuple(int(length) for length in array.shape)
        self.dtype = np.dtype(array.dtype)
        self.granularity = max(1, granularity)
        self.name = name

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        return _Sliced(self.array, start, stop)


@dataclass(frozen=True)
class _Mapped(Loader):
    path: str
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __call__(self) -> Any:
        """Read the rows."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


class MemmapSource(Source):
    """A memory-mapped file in C order; every task maps its own rows."""

    def __init__(self, array: np.memmap[Any, Any], offset: int) -> None:
        self.path = os.fspath(array.filename)  # type: ignore[arg-type]
        self.offset = offset
        self.shape = tuple(array.shape)
        self.dtype = array.dtype
        self.name = self.path

    @classmethod
    def of(cls, array: np.memmap[Any, Any]) -> Source:
        """Return a source that maps the file again, or the array where that is impossible."""
        base: Any = array
        while isinstance(base.base, np.memmap):
            base = base.base
        usable = isinstance(array.filename, (str, os.PathLike)) and array.flags.c_contiguous
        if not usable or not array.size:
            return ArraySource(np.asarray(array))
        # A view of a memmap keeps the offset of the map it was cut from.
        address = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return cls(array, base.offset + address)

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))
        shape = (stop - start, *self.shape[1:])
        return _Mapped(self.path, self.offset + start * row_bytes, self.dtype, shape)


@dataclass(frozen=True)
class _FromHDF5(Loader):
    path: str
    dataset: str
    start: int
    stop: int

    def __call__(self) -> Any:
        """Read the rows."""
        import h5py  # noqa: PLC0415 - optional

        with h5py.File(self.path, "r") as file:
            return file[self.dataset][self.start : self.stop]


class HDF5Source(Source):
    """An HDF5 data set; every task opens the file for itself, for handles do not pickle."""

    def __init__(self, dataset: Any) -> None:
        self.path = str(dataset.file.filename)
        self.dataset = str(dataset.name)
        self.shape = tuple(dataset.shape)
        self.dtype = dataset.dtype
        self.granularity = int(dataset.chunks[0]) if dataset.chunks else 1
        self.name = f"{self.path}:{self.dataset}"

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        return _FromHDF5(self.path, self.dataset, start, stop)


@dataclass(frozen=True)
class _FromFrame(Loader):
    frame: Any
    dtype: np.dtype[Any]

    def __call__(self) -> Any:
        """Read the rows."""
        return frame_to_numpy(self.frame, self.dtype)


class FrameSource(Source):
    """A pandas DataFrame or Series; blocks are converted one at a time."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.shape = tuple(frame.shape)
        self.dtype = frame_dtype(frame)
        if frame.ndim == 2:
            self.columns = tuple(str(column) for column in frame.columns)

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        return _FromFrame(self.frame.iloc[start:stop], self.dtype)


def frame_dtype(frame: Any) -> np.dtype[Any]:
    """Return the NumPy dtype that holds every column of a pandas object."""
    dtypes = list(frame.dtypes) if frame.ndim == 2 else [frame.dtype]
    found = []
    for dtype in dtypes:
        if isinstance(dtype, np.dtype):
            found.append(dtype)
        elif getattr(dtype, "_is_numeric", False) or getattr(dtype, "_is_boolean", False):
            # Nullable columns: a missing value becomes NaN, which integers cannot hold.
            plain = np.dtype(getattr(dtype, "numpy_dtype", np.float64))
            found.append(np.result_type(plain, np.float32))
        else:
            return np.dtype(object)
    return np.result_type(*found) if found else np.dtype(np.float64)


def frame_to_numpy(frame: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Convert a pandas object; missing values of nullable columns become NaN."""
    if dtype.kind == "f":
        return np.asarray(frame.to_numpy(dtype=dtype, na_value=np.nan))
    return np.asarray(frame.to_numpy())


@dataclass(frozen=True)
class _FromParquet(Loader):
    pieces: tuple[tuple[str, int, int, int], ...]  # path, row group, first row, last row
    columns: tuple[str, ...]
    dtype: np.dtype[Any]
    flat: bool

    def __call__(self) -> Any:
        """Read the rows."""
        import pyarrow as pa  # noqa: PLC0415 - optional
        import pyarrow.parquet as pq  # noqa: PLC0415

        tables = []
        for path, group, first, last in self.pieces:
            with pq.ParquetFile(path) as file:
                table = file.read_row_group(group, columns=list(self.columns))
            tables.append(table.slice(first, last - first))
        table = pa.concat_tables(tables)
        columns = [_column_to_numpy(table[name], self.dtype) for name in self.columns]
        return columns[0] if self.flat else np.column_stack(columns)


def _column_to_numpy(column: Any, dtype: np.dtype[Any]) -> AnyArray:
    values = column.to_numpy()
    if dtype.kind == "f" and column.null_count:
        values = column.cast("float64").to_numpy(zero_copy_only=False)
    return np.asarray(values) if dtype.hasobject else np.asarray(values).astype(dtype)


@dataclass(eq=False)
class ParquetSource(Source):
    """Columns of a Parquet file or folder; row counts come from the footers alone.

    Parameters
    ----------
    path : str
        A file, or a folder whose ``*.parquet`` files are read in the order of their names.
    selected : tuple of str or None, default=None
        Columns to read; None for all.
    flat : bool, default=False
        Whether one column is wanted, as a vector.
    """

    path: str
    selected: tuple[str, ...] | None = None
    flat: bool = False
    _groups: list[tuple[str, int, int]] = field(init=False, repr=False)  # path, group, rows

    def __post_init__(self) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 - optional

        files = parquet_files(self.path)
        self._groups = []
        for file in files:
            metadata = pq.read_metadata(file)
            self._groups += [
                (file, group, metadata.row_group(group).num_rows)
                for group in range(metadata.num_row_groups)
            ]
        schema = pq.read_schema(files[0])
        names = tuple(schema.names) if self.selected is None else self.selected
        missing = [name for name in names if name not in schema.names]
        if missing:
            raise InvalidInputError(
                f"column {missing[0]!r} is not in {self.path!r}, which has {schema.names}; "
                f"name one of these."
            )
        n_rows = sum(rows for _, _, rows in self._groups)
        self.columns = names
        self.shape = (n_rows,) if self.flat else (n_rows, len(names))
        self.dtype = _arrow_dtype([schema.field(name).type for name in names])
        self.name = self.path

    @functools.cached_property
    def _starts(self) -> AnyArray:
        return np.cumsum([0, *(rows for _, _, rows in self._groups)])

    def cut(self, rows: int) -> tuple[int, ...]:
        """Group row groups into blocks of about `rows` rows."""
        sizes: list[int] = []
        for _, _, count in self._groups:
            if sizes and sizes[-1] + count <= rows:
                sizes[-1] += count
            else:
                sizes.append(count)
        return tuple(sizes)

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        pieces: list[tuple[str, int, int, int]] = []
        for number in range(first, len(self._groups)):
            begin = int(self._starts[number])
            if begin >= stop and pieces:
                break
            path, group, rows = self._groups[number]
            pieces.append((path, group, max(0, start - begin), min(rows, stop - begin)))
        return _FromParquet(tuple(pieces), self.columns or (), self.dtype, self.flat)


def parquet_files(path: str) -> list[str]:
    """Return the Parquet files at a path, in the order of their names; empty if there are none."""
    if path.lower().endswith(_PARQUET) and not Path(path).is_dir():
        return [path]
    found = (file for file in Path(path).rglob("*") if file.suffix.lower() in _PARQUET)
    return sorted(str(file) for file in found if not file.name.startswith((".", "_")))


def _arrow_dtype(types: list[Any]) -> np.dtype[Any]:
    import pyarrow as pa  # noqa: PLC0415 - optional

    if any(
        not (pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_boolean(t))
        for t in types
    ):
        return np.dtype(object)
    # A null of any column becomes NaN, which only a floating dtype can hold.
    return np.result_type(np.float32, *(t.to_pandas_dtype() for t in types))
