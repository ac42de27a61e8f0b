"""Readers of what is not a Dask collection: each turns a range of rows into an array.

A source hands out *loaders*, small picklable objects that read their own rows where the
task runs. No task holds data that another one needs, so nothing is kept in memory for
later, and a worker that dies takes nothing with it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray

Loader: TypeAlias = Callable[[], Any]
"""Reads one range of rows when called, an ndarray or SciPy sparse; picklable, cheap to make."""


class Source(ABC):
    """Rows that can be read range by range.

    Attributes
    ----------
    shape : tuple of int
        ``(n, d)``, or ``(n,)`` for labels and weights.
    dtype : numpy.dtype
        As stored.
    granularity : int
        Rows that are stored together: blocks are made of whole multiples of it, unless the
        user says how many rows a block has.
    name : str or None
        Where the rows come from, for the provenance.
    columns : tuple of str or None
        Names of the features, where they have names.
    in_memory : bool
        Whether a block is a view of what is in memory already.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    granularity: int = 1
    name: str | None = None
    columns: tuple[str, ...] | None = None
    in_memory: bool = False

    @abstractmethod
    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""

    def cut(self, rows: int) -> tuple[int, ...]:
        """Cut the rows into block sizes of about `rows` rows each.

        What is stored together stays together, however large: a compressed chunk is
        decoded whole for each piece of it, so splitting would cost time and save nothing.
        """
        return even_cut(self.shape[0], max(1, rows // self.granularity) * self.granularity)

    @property
    def stored_bytes(self) -> int:
        """Bytes of all rows once decoded."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


def even_cut(n_rows: int, rows: int) -> tuple[int, ...]:
    """Cut `n_rows` into blocks of exactly `rows`, the last of what is left.

    Examples
    --------
    >>> even_cut(10, 4)
    (4, 4, 2)
    """
    full, rest = divmod(n_rows, rows)
    return (rows,) * full + ((rest,) if rest else ())


def _rows_in_memory(rows: AnyArray) -> AnyArray:
    return rows


class ArraySource(Source):
    """An ndarray in memory; blocks are views, and pickle alone."""

    in_memory = True

    def __init__(self, array: AnyArray) -> None:
        self.array = array
        self.shape = tuple(array.shape)
        self.dtype = array.dtype

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        return partial(_rows_in_memory, self.array[start:stop])


def _sparse_rows(data: AnyArray, indices: AnyArray, indptr: AnyArray, n_columns: int) -> Any:
    import scipy.sparse as sp

    parts = data, indices, indptr - indptr[0]
    return sp.csr_array(parts, shape=(len(indptr) - 1, n_columns))


class SparseSource(Source):
    """A SciPy sparse matrix in memory; blocks are views of its CSR arrays."""

    in_memory = True

    def __init__(self, array: Any) -> None:
        self.array = array.tocsr()  # itself, where it is CSR already
        self.shape = tuple(array.shape)
        self.dtype = array.dtype

    @property
    def stored_bytes(self) -> int:
        """Bytes of the three CSR arrays."""
        return int(sum(part.nbytes for part in self._parts))

    @property
    def _parts(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        return self.array.data, self.array.indices, self.array.indptr

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        data, indices, indptr = self._parts
        stored = slice(int(indptr[start]), int(indptr[stop]))
        parts = data[stored], indices[stored], indptr[start : stop + 1]
        return partial(_sparse_rows, *parts, self.shape[1])


def _sliced_rows(array: Any, start: int, stop: int) -> AnyArray:
    return np.asarray(array[start:stop])


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
        return partial(_sliced_rows, self.array, start, stop)


def _mapped_rows(
    path: str,
    first: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> AnyArray:
    """Map rows from the byte `first` of a file on; the system reads them as they are used."""
    reach = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    low = first + sum(min(0, r) for r in reach)
    high = first + sum(max(0, r) for r in reach) + dtype.itemsize
    raw = np.memmap(path, np.uint8, "r", low, (high - low,))
    return np.ndarray(shape, dtype, raw, first - low, strides)


class MemmapSource(Source):
    """A memory-mapped file, or a view of one; every task maps its own rows."""

    def __init__(self, array: np.memmap[Any, Any], path: str, first: int) -> None:
        self.path = path
        self.shape = tuple(array.shape)
        self.dtype = array.dtype
        self.name = path
        self._first = first
        self._strides = array.strides

    @classmethod
    def of(cls, array: np.memmap[Any, Any]) -> Source:
        """Return a source that maps the file again, or the array where that is impossible."""
        path: Any = array.filename
        # What was written into a copy-on-write map is in memory only.
        usable = isinstance(path, (str, os.PathLike)) and array.mode != "c" and array.size > 0
        if not usable or not Path(path).is_file():
            return ArraySource(np.asarray(array))
        base: Any = array
        while isinstance(base.base, np.memmap):
            base = base.base
        # A view keeps the offset of the map it was cut from.
        ahead = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return cls(array, os.fspath(path), base.offset + ahead)

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        first = self._first + start * self._strides[0]
        shape = (stop - start, *self.shape[1:])
        return partial(_mapped_rows, self.path, first, self.dtype, shape, self._strides)


def _hdf5_rows(path: str, dataset: str, start: int, stop: int) -> Any:
    import h5py

    with h5py.File(path, "r") as file:
        return file[dataset][start:stop]


class HDF5Source(Source):
    """An HDF5 data set; every task opens the file for itself, for handles do not pickle."""

    def __init__(self, dataset: Any) -> None:
        self.path = os.path.abspath(os.fsdecode(dataset.file.filename))  # noqa: PTH100 - no links
        self.dataset = str(dataset.name)
        if not Path(self.path).is_file():
            raise InvalidInputError(
                f"the HDF5 data set {self.dataset!r} is in memory, where workers cannot read it; "
                f"save its file to disk, or pass the array, dataset[:]."
            )
        self.shape = tuple(dataset.shape or ())
        self.dtype = dataset.dtype
        self.granularity = int(dataset.chunks[0]) if dataset.chunks else 1
        self.name = f"{self.path}:{self.dataset}"

    def loader(self, start: int, stop: int) -> Loader:
        """Return the loader of rows ``start`` to ``stop`` (exclusive)."""
        return partial(_hdf5_rows, self.path, self.dataset, start, stop)
