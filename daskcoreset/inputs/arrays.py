"""Row arrays: rows in memory or in a store, read as slices by the tasks that need them."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from daskcoreset.core.labels import LABELS
from daskcoreset.core.typing import IndexArray
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.inputs.cuts import cut_chunks, even_cut

# Rows that lie further apart are read by themselves, and no more than so many bytes at once.
_GAP_BYTES, _RANGE_BYTES = 2**20, 32 * 2**20

# Rows that are not stored in chunks are kept together up to this size.
_PIECE_BYTES = 4 * 2**20


class RowArray(ABC):
    """Rows that a task reads as a slice. Picklable, and nothing is open in it.

    Attributes
    ----------
    shape : tuple of int
        ``(n, d)``, or ``(n,)`` for labels and weights.
    dtype : numpy.dtype
        As stored.
    granularity : int
        Rows that are stored together: automatic blocks are whole multiples of it.
    name : str or None
        Origin of the rows, for the provenance.
    columns : tuple of str or None
        Names of the features.
    decoder : str or None
        Package that decodes what is stored.
    in_memory, sparse : bool
    in_process : bool
        Whether rows are stored in the memory of this process, so that workers cannot read them.
    attrs : mapping of str to object
        Attributes that are stored with the array.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    granularity: int = 1
    name: str | None = None
    columns: tuple[str, ...] | None = None
    decoder: str | None = None
    in_memory: bool = False
    sparse: bool = False
    in_process: bool = False
    attrs: Mapping[str, Any] = {}

    @abstractmethod
    def __getitem__(self, rows: slice) -> Any:
        """Return rows ``start:stop``, an ndarray or CSR."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        """Bytes of a dense row."""
        return max(1, self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64)))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows once decoded."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))

    def cut(self, start: int, stop: int) -> RowArray:
        """Return some rows as an array that pickles without the others."""
        return RowRange(self, start, stop)

    def take(self, rows: IndexArray) -> Any:
        """Return rows by increasing numbers. Rows that lie near are read together."""
        if not len(rows):
            return self[0:1][:0]
        together, apart = self.granularity, np.zeros(len(rows) - 1, bool)
        if together == 1:
            together = max(1, _RANGE_BYTES // self.row_bytes)
            apart = np.diff(rows) * self.row_bytes > _GAP_BYTES
        groups = np.split(rows, np.flatnonzero(apart | (np.diff(rows // together) > 0)) + 1)
        found = self.ranges([slice(int(own[0]), int(own[-1]) + 1) for own in groups])
        return stacked([part[own - own[0]] for own, part in zip(groups, found, strict=True)])

    def ranges(self, ranges: Sequence[slice]) -> list[Any]:
        """Return several ranges of rows, one or more."""
        return [self[rows] for rows in ranges]

    def pieces(self) -> tuple[int, ...]:
        """Return the numbers of rows that are kept together."""
        rows = self.granularity if self.granularity > 1 else _PIECE_BYTES // self.row_bytes
        return even_cut(self.shape[0], max(1, rows))

    def block_sizes(self, rows: int, most: int) -> tuple[int, ...]:
        """Cut the rows into blocks of about `rows` rows, of whole pieces.

        A piece of more than `most` rows is split, though each part decodes the whole piece.
        """
        whole = max(self.granularity, rows // self.granularity * self.granularity)
        return cut_chunks(even_cut(self.shape[0], whole), None, most, most)


class Group(ABC):
    """Arrays that are stored together: a Zarr group, an HDF5 file or a .npz file.

    Attributes
    ----------
    is_cube : bool
        Whether arrays of more than two dimensions with names are stored, as xarray stores them.
    attrs : mapping of str to object
        Attributes that are stored with the group.
    """

    is_cube: bool = False
    attrs: Mapping[str, Any] = {}

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the arrays."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""

    @abstractmethod
    def rows(self, name: str) -> RowArray:
        """Return the rows of an array."""


def is_sparse(part: Any) -> bool:
    """Whether rows are SciPy sparse."""
    if isinstance(part, RowArray):
        return part.sparse
    from dask.array.utils import meta_from_array

    return hasattr(meta_from_array(part), "tocsr")


def check_kind(name: str, dtype: np.dtype[Any]) -> None:
    """Check that an argument holds numbers, or text if it is labels."""
    what, kinds, example = "real numbers", "biuf", "'float32'"
    if name in LABELS:
        what, kinds, example = "numbers or text", "biufUSOT", "str"
    if dtype.kind not in kinds:
        raise InvalidTypeError(
            f"{name} must hold {what}, found dtype {dtype}",
            argument=name,
            remedy=f"convert it, for example with {name}.astype({example}), or name another column "
            "or array",
        )


def stacked(parts: Sequence[Any]) -> Any:
    """Return rows that follow one another, dense or sparse."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "tocsr"):
        import scipy.sparse as sp

        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)


class RowRange(RowArray):
    """Some rows of an array that is not in memory."""

    def __init__(self, array: RowArray, start: int, stop: int) -> None:
        self.array, self.start = array, start
        self.shape, self.dtype = (stop - start, *array.shape[1:]), array.dtype
        self.granularity, self.name, self.columns = array.granularity, array.name, array.columns

    def __getitem__(self, rows: slice) -> Any:
        return self.array[self.start + rows.start : self.start + rows.stop]


class MemoryRows(RowArray):
    """Rows of an ndarray, whose slices are views, or of a CSR array."""

    in_memory = True

    def __init__(self, array: Any) -> None:
        self.array, self.sparse = array, hasattr(array, "tocsr")
        self.shape, self.dtype = array.shape, array.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that are stored."""
        array = self.array
        parts = (array.data, array.indices, array.indptr) if self.sparse else (array,)
        return sum(int(part.nbytes) for part in parts)

    def __getitem__(self, rows: slice) -> Any:
        return self.array[rows]

    def cut(self, start: int, stop: int) -> RowArray:
        """Return a part."""
        return MemoryRows(self.array[start:stop])


def sparse_rows(matrix: Any) -> MemoryRows:
    """Return the rows of a SciPy sparse matrix of any form."""
    import scipy.sparse as sp

    return MemoryRows(sp.csr_array(matrix))


class JoinedRows(RowArray):
    """Rows of several arrays of one kind, one after the other."""

    def __init__(self, arrays: Sequence[RowArray]) -> None:
        first, self.arrays = arrays[0], arrays
        self.starts: IndexArray = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        self.shape, self.dtype = (int(self.starts[-1]), *first.shape[1:]), first.dtype
        attrs: Any = (array.attrs for array in arrays)
        self.columns, self.attrs = first.columns, ChainMap(*attrs)
        self.decoder = first.decoder
        self.in_memory = all(array.in_memory for array in arrays)
        self.in_process = any(array.in_process for array in arrays)

    @classmethod
    def of(cls, arrays: Sequence[RowArray], names: Sequence[str], argument: str) -> JoinedRows:
        """Join the arrays of files, which were passed as `argument`."""
        first = arrays[0]
        for array, name in zip(arrays, names, strict=True):
            if (array.shape[1:], array.dtype) != (first.shape[1:], first.dtype):
                raise InvalidInputError(
                    f"{argument} has files that differ: {name!r} has rows of shape "
                    f"{array.shape[1:]} and dtype {array.dtype}, and {names[0]!r} of shape "
                    f"{first.shape[1:]} and dtype {first.dtype}",
                    argument=argument,
                    remedy="pass files of one kind",
                )
        return cls(arrays)

    def pieces(self) -> tuple[int, ...]:
        """Return the numbers of rows that are kept together."""
        return tuple(itertools.chain.from_iterable(array.pieces() for array in self.arrays))

    def block_sizes(self, rows: int, most: int) -> tuple[int, ...]:
        """Cut the rows into blocks of whole pieces."""
        return cut_chunks(self.pieces(), rows, most, most)

    def __getitem__(self, rows: slice) -> Any:
        return stacked([own[0 : len(own)] for own in self.cut(rows.start, rows.stop).arrays])

    def cut(self, start: int, stop: int) -> JoinedRows:
        """Return some rows, without the files that have none of them."""
        parts = [
            array.cut(max(0, start - begin), min(len(array), stop - begin))
            for array, begin in zip(self.arrays, self.starts.tolist(), strict=False)
            if begin < stop and begin + len(array) > start
        ]
        return JoinedRows(parts or [self.arrays[0].cut(0, 0)])

    def take(self, rows: IndexArray) -> Any:
        """Return rows by increasing numbers."""
        if not len(rows):
            return self[0:0]
        owners = np.searchsorted(self.starts, rows, side="right") - 1
        return stacked(
            [self.arrays[i].take(rows[owners == i] - self.starts[i]) for i in np.unique(owners)]
        )
