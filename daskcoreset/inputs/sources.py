"""Readers of arrays and files: each turns a range of rows into an array.

A source hands out *loaders*, small picklable objects that read their own rows where the
task runs. No task holds data that another one needs, so nothing is kept in memory for
later, and a worker that dies takes nothing with it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.optional import import_optional
from daskcoreset.core.typing import AnyArray

# Reads one range of rows when called, an ndarray or SciPy sparse; picklable, cheap to make.
Loader: TypeAlias = Callable[[], Any]


@dataclass(frozen=True, eq=False)
class Source:
    """Rows that can be read range by range.

    Attributes
    ----------
    shape : tuple of int
        ``(n, d)``, or ``(n,)`` for labels and weights.
    dtype : numpy.dtype
        As stored.
    loader : callable
        ``loader(start, stop)`` returns the loader of rows ``start`` to ``stop`` (exclusive).
    granularity : int
        Rows that are stored together: blocks are made of whole multiples of it, unless the
        user says how many rows a block has.
    pieces : tuple of int or None
        The same where not equally many rows are stored together: how many in each piece.
    name : str or None
        Where the rows come from, for the provenance.
    columns : tuple of str or None
        Names of the features, where they have names.
    in_memory : bool
        Whether a block is a view of what is in memory already.
    sparse_bytes : int or None
        Bytes of all rows of a sparse matrix; None for dense rows.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    loader: Callable[[int, int], Loader]
    granularity: int = 1
    pieces: tuple[int, ...] | None = None
    name: str | None = None
    columns: tuple[str, ...] | None = None
    in_memory: bool = False
    sparse_bytes: int | None = None

    def cut(self, rows: int) -> tuple[int, ...]:
        """Cut the rows into block sizes of about `rows` rows each.

        What is stored together stays together, however large: a compressed chunk is
        decoded whole for each piece of it, so splitting would cost time and save nothing.
        """
        if self.pieces is None:
            return even_cut(self.shape[0], max(1, rows // self.granularity) * self.granularity)
        sizes: list[int] = []
        for piece in self.pieces:
            if sizes and sizes[-1] + piece <= rows:
                sizes[-1] += piece
            else:
                sizes.append(piece)
        return tuple(sizes)

    @property
    def stored_bytes(self) -> int:
        """Bytes of all rows once decoded."""
        if self.sparse_bytes is not None:
            return self.sparse_bytes
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


class Table(ABC):
    """Files with columns by name, such as Parquet: the base of file formats of that kind.

    Attributes
    ----------
    path : str
    names : list of str
        Of the columns.
    """

    path: str
    names: list[str]

    @abstractmethod
    def table(self, columns: Sequence[str]) -> Source:
        """Return some columns as the matrix X."""

    @abstractmethod
    def column(self, name: str) -> Source:
        """Return one column as a vector of labels or weights."""


def import_reader(module: str, extra: str, name: str) -> Any:
    """Return the optional package that reads a file, which was passed as the argument `name`."""
    install = f'install it with: pip install "daskcoreset[{extra}]".'
    return import_optional(module, f"{name} needs the package {module}; {install}")


# A list of more blocks takes gigabytes, and minutes, before the first is read.
_MAX_BLOCKS = 10**7


def even_cut(n_rows: int, rows: int) -> tuple[int, ...]:
    """Cut `n_rows` into blocks of exactly `rows`, the last one of the rest.

    Examples
    --------
    >>> even_cut(10, 4)
    (4, 4, 2)
    """
    full, remainder = divmod(n_rows, rows)
    if full > _MAX_BLOCKS:
        raise InvalidInputError(
            f"X has {n_rows:,} rows, which chunks of {rows} cut into {full:,} blocks; pass larger "
            f"chunks, or look whether the store says its shape rightly."
        )
    return (rows,) * full + ((remainder,) if remainder else ())


def array_source(array: AnyArray) -> Source:
    """Return the source of an ndarray in memory; blocks are views, and pickle alone."""

    def loader(start: int, stop: int) -> Loader:
        return partial(_rows_in_memory, array[start:stop])

    return Source(array.shape, array.dtype, loader, in_memory=True)


def _rows_in_memory(rows: AnyArray) -> AnyArray:
    return rows


def sparse_source(matrix: Any) -> Source:
    """Return the source of a SciPy sparse matrix in memory; blocks are views of CSR arrays."""
    csr = matrix.tocsr()  # itself, where it is CSR already
    data, indices, indptr = csr.data, csr.indices, csr.indptr

    def loader(start: int, stop: int) -> Loader:
        stored = slice(int(indptr[start]), int(indptr[stop]))
        parts = data[stored], indices[stored], indptr[start : stop + 1]
        return partial(_sparse_rows, *parts, csr.shape[1])

    sparse_bytes = int(data.nbytes + indices.nbytes + indptr.nbytes)
    return Source(csr.shape, csr.dtype, loader, in_memory=True, sparse_bytes=sparse_bytes)


def _sparse_rows(data: AnyArray, indices: AnyArray, indptr: AnyArray, n_columns: int) -> Any:
    import scipy.sparse as sp

    parts = data, indices, indptr - indptr[0]
    return sp.csr_array(parts, shape=(len(indptr) - 1, n_columns))


def indexed_source(array: Any, *, granularity: int = 1, name: str | None = None) -> Source:
    """Return the source of arrays with ``shape``, ``dtype`` and slices: Zarr, xarray."""

    def loader(start: int, stop: int) -> Loader:
        return partial(_sliced_rows, array, start, stop)

    shape = tuple(int(length) for length in array.shape)
    return Source(shape, np.dtype(array.dtype), loader, max(1, granularity), name=name)


def _sliced_rows(array: Any, start: int, stop: int) -> AnyArray:
    return np.asarray(array[start:stop])


def memmap_source(array: np.memmap[Any, Any]) -> Source:
    """Return a source whose tasks map the file again, or the array where that is impossible."""
    filename: Any = array.filename
    # What was written into a copy-on-write map is in memory only.
    usable = isinstance(filename, (str, os.PathLike)) and array.mode != "c" and array.size > 0
    if not usable or not Path(filename).is_file():
        return array_source(np.asarray(array))
    base: Any = array
    while isinstance(base.base, np.memmap):
        base = base.base
    # A view keeps the offset of the map it was cut from.
    ahead = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    path, first, strides = os.fspath(filename), base.offset + ahead, array.strides
    shape, dtype = array.shape, array.dtype  # the array itself would stay mapped

    def loader(start: int, stop: int) -> Loader:
        rows = (stop - start, *shape[1:])
        return partial(_mapped_rows, path, first + start * strides[0], dtype, rows, strides)

    return Source(shape, dtype, loader, name=path)


def _mapped_rows(
    path: str,
    first: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> AnyArray:
    """Map rows from the byte `first` of a file on; the system reads them as they are used."""
    # A negative stride leads to bytes before the first one.
    reach = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    low = first + sum(min(0, r) for r in reach)
    high = first + sum(max(0, r) for r in reach) + dtype.itemsize
    raw = np.memmap(path, np.uint8, "r", low, (high - low,))
    return np.ndarray(shape, dtype, raw, first - low, strides)


def hdf5_source(dataset: Any) -> Source:
    """Return the source of an HDF5 data set; tasks open the file, for handles do not pickle."""
    path = os.path.abspath(os.fsdecode(dataset.file.filename))  # noqa: PTH100 - no links
    key = str(dataset.name)
    if not Path(path).is_file():
        raise InvalidInputError(
            f"the HDF5 data set {key!r} is in memory, where workers cannot read it; "
            f"save its file to disk, or pass the array, dataset[:]."
        )

    def loader(start: int, stop: int) -> Loader:
        return partial(_hdf5_rows, path, key, start, stop)

    shape = tuple(dataset.shape or ())
    granularity = int(dataset.chunks[0]) if dataset.chunks else 1
    return Source(shape, dataset.dtype, loader, granularity, name=f"{path}:{key}")


def _hdf5_rows(path: str, dataset: str, start: int, stop: int) -> Any:
    import h5py

    with h5py.File(path, "r") as file:
        return file[dataset][start:stop]
