"""Readers of arrays and files: each turns a range of rows into an array.

A source hands out *loaders*, small picklable objects that read their own rows where the
task runs. No task holds data that another one needs, so nothing is kept in memory for
later, and a worker that dies takes nothing with it.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.optional import import_optional
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.core.validation import without_mask
from daskcoreset.inputs.places import read_clearly
from daskcoreset.inputs.zarr_stores import damaged_chunk

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
        Origin of the rows, for the provenance.
    columns : tuple of str or None
        Names of the features, where they have names.
    in_memory : bool
        Whether a block is a view of what is in memory already.
    sparse_bytes : int or None
        Bytes of all rows of a sparse matrix. None for dense rows.
    in_process : bool
        Whether rows are stored in the memory of this process, where no other one sees them.
    decoder : str or None
        Decoder of the chunks of a Zarr array.
    take : callable or None
        ``take(rows)`` returns rows by increasing numbers, of what is opened once for all of them.
        None if ranges of rows are read one by one.
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
    in_process: bool = False
    decoder: str | None = None
    take: Callable[[IndexArray], Any] | None = None

    def rows_at(self, rows: IndexArray) -> Any:
        """Return rows by increasing numbers, of which those that lie near are read together."""
        if not len(rows):
            return self.loader(0, 1)()[:0]
        if self.take is not None:
            return self.take(rows)
        if self.in_memory:
            groups = [rows]
        elif self.pieces is not None:
            owner = np.searchsorted(np.cumsum(self.pieces), rows, side="right")
            groups = np.split(rows, np.flatnonzero(np.diff(owner)) + 1)
        else:
            chunked = self.granularity > 1 or self.decoder is not None
            groups = near(rows, self.row_bytes, self.granularity if chunked else None)
        parts = [self.loader(int(own[0]), int(own[-1]) + 1)()[own - own[0]] for own in groups]
        return stacked(parts)

    @property
    def row_bytes(self) -> int:
        """Bytes of a dense row."""
        return max(1, self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64)))

    def cut(self, rows: int) -> tuple[int, ...]:
        """Cut the rows into block sizes of about `rows` rows each.

        Data that are stored together stay together, however large: a compressed chunk is
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

    def cut_out(self, start: int, stop: int) -> Source:
        """Return the source of some of the rows."""
        loader = partial(_moved_loader, self.loader, start)
        return replace(
            self, shape=(stop - start, *self.shape[1:]), loader=loader, pieces=None, take=None
        )

    @property
    def stored_bytes(self) -> int:
        """Bytes of all rows once decoded."""
        if self.sparse_bytes is not None:
            return self.sparse_bytes
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


# Rows that lie further apart are read by themselves, and no more than so many bytes at once.
_GAP_BYTES, _RANGE_BYTES = 2**20, 32 * 2**20


def near(rows: IndexArray, row_bytes: int, chunk: int | None) -> list[IndexArray]:
    """Cut increasing row numbers into groups that are read together.

    Parameters
    ----------
    rows : ndarray of int64
    row_bytes : int
    chunk : int or None
        Rows of a chunk, which is read as a whole. None if rows lie one after another.

    Examples
    --------
    >>> rows = np.array([0, 1, 5, 9])
    >>> [own.tolist() for own in near(rows, 2**19, None)]
    [[0, 1], [5], [9]]
    >>> [own.tolist() for own in near(rows, 2**19, 5)]
    [[0, 1], [5, 9]]
    """
    apart = np.diff(rows) * row_bytes > _GAP_BYTES if chunk is None else False
    together = max(1, _RANGE_BYTES // row_bytes) if chunk is None else chunk
    return np.split(rows, np.flatnonzero(apart | (np.diff(rows // together) > 0)) + 1)


def stacked(parts: Sequence[Any]) -> Any:
    """Return rows that follow one another, dense or sparse."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "tocsr"):
        import scipy.sparse as sp

        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)


def _moved_loader(
    loader: Callable[[int, int], Loader], first: int, start: int, stop: int
) -> Loader:
    return loader(first + start, first + stop)


class Table(ABC):
    """Files with columns by name, such as Parquet: the base of file formats of that kind.

    Attributes
    ----------
    path : str
    names : list of str
        Names of the columns.
    index : set of str
        Columns that are features only if they are named.
    """

    path: str
    names: list[str]
    index: set[str]

    @property
    def features(self) -> list[str]:
        """Names of the columns that are features."""
        return [name for name in self.names if name not in self.index]

    @property
    def known(self) -> list[str]:
        """Names by which columns are chosen."""
        return self.names

    def expanded(self, columns: Sequence[str]) -> list[str]:
        """Return the names of the features that some columns are."""
        return list(columns)

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
            f"X has {n_rows:,} rows, which chunks of {rows} cut into {full:,} blocks",
            argument="X",
            remedy="pass larger chunks, or check the shape in the store",
        )
    return (rows,) * full + ((remainder,) if remainder else ())


def array_source(array: AnyArray) -> Source:
    """Return the source of an ndarray in memory. Blocks are views, and pickle alone."""

    def loader(start: int, stop: int) -> Loader:
        return partial(_rows_in_memory, array[start:stop])

    return Source(array.shape, array.dtype, loader, in_memory=True)


def _rows_in_memory(rows: AnyArray) -> AnyArray:
    return rows


def sparse_source(matrix: Any) -> Source:
    """Return the source of a SciPy sparse matrix in memory. Blocks are views of CSR arrays."""
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
    shape = tuple(int(length) for length in array.shape)
    dtype = np.dtype(array.dtype)
    if type(array).__module__.startswith("netCDF4"):  # which says how values are packed
        dtype = array[:0].dtype
    # Loaders of what is stored are partial functions, which pickle by name: a graph has sources.
    loader = partial(partial, _sliced_rows, array, name)
    return Source(shape, dtype, loader, max(1, granularity), name=name)


def _sliced_rows(array: Any, name: str | None, start: int, stop: int) -> AnyArray:
    def what() -> str:
        where = "" if name is None else f" of {name!r}"
        return f"{damaged_chunk(array, start, stop)}rows {start} to {stop}{where}"

    return read_clearly(what, lambda: np.asarray(without_mask(array[start:stop])))


def concatenated_source(sources: Sequence[Source], names: Sequence[str], argument: str) -> Source:
    """Return the rows of several sources, one after the other.

    Parameters
    ----------
    sources : sequence of Source
    names : sequence of str
        Names of their files.
    argument : str
        The argument that they were passed as.
    """
    first = sources[0]
    for source, name in zip(sources, names, strict=True):
        for what, one, other in (
            ("shape", source.shape[1:], first.shape[1:]),
            ("dtype", source.dtype, first.dtype),
        ):
            if one != other:
                raise InvalidInputError(
                    f"{argument} has files that differ: {name!r} has rows of {what} {one}, and "
                    f"{names[0]!r} of {other}",
                    argument=argument,
                    remedy="pass files of one kind",
                )
    lengths = [source.shape[0] for source in sources]
    starts = np.cumsum([0, *lengths])

    def loader(start: int, stop: int) -> Loader:
        parts = tuple(
            source.loader(max(0, start - begin), min(length, stop - begin))
            for source, length, begin in zip(sources, lengths, starts.tolist(), strict=False)
            if begin < stop and begin + length > start
        )
        return partial(_concatenated_rows, parts)

    row_bytes = max(1, first.dtype.itemsize * int(np.prod(first.shape[1:], dtype=np.int64)))
    pieces = (source.pieces or _pieces_of(source, row_bytes) for source in sources)
    return Source(
        (int(starts[-1]), *first.shape[1:]),
        first.dtype,
        loader,
        pieces=tuple(itertools.chain.from_iterable(pieces)),
        columns=first.columns,
        in_memory=all(source.in_memory for source in sources),
        in_process=any(source.in_process for source in sources),
        decoder=first.decoder,
        take=partial(_concatenated_at, sources, starts),
    )


def _concatenated_at(sources: Sequence[Source], starts: IndexArray, rows: IndexArray) -> Any:
    owners = np.searchsorted(starts, rows, side="right") - 1
    parts = [sources[i].rows_at(rows[owners == i] - starts[i]) for i in np.unique(owners)]
    return stacked(parts)


# Of rows that are not stored in chunks, so many bytes are kept together.
_PIECE_BYTES = 4 * 2**20


def _pieces_of(source: Source, row_bytes: int) -> tuple[int, ...]:
    rows = source.granularity if source.granularity > 1 else max(1, _PIECE_BYTES // row_bytes)
    return even_cut(source.shape[0], rows)


def _concatenated_rows(parts: Sequence[Loader]) -> Any:
    return parts[0]() if len(parts) == 1 else np.concatenate([part() for part in parts])
