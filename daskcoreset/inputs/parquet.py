"""Parquet files and tables of Arrow: columns by name, row groups whose lengths are known."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import PurePosixPath
from typing import Any, NoReturn

import numpy as np

from daskcoreset.core.errors import (
    CoresetError,
    InvalidInputError,
    InvalidTypeError,
    StoreError,
)
from daskcoreset.core.invalid import EXACT, find_inexact, inexact_row
from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs import dataframes
from daskcoreset.inputs.dataframes import (
    OBJECT,
    check_numeric,
    common_dtype,
    element_names,
    in_one_table,
    index_names,
    is_arrow_table,
    unequal_lists,
)
from daskcoreset.inputs.filesystems import (
    Place,
    clear_errors,
    here,
    is_glob,
    read_clearly,
    shortened,
)
from daskcoreset.inputs.sources import Loader, Source, Table, import_reader
from daskcoreset.storage.locations import clean_url

SUFFIXES = (".parquet", ".parq", ".pq")

# float64 holds every whole number of as many digits.
_EXACT_DIGITS = 15

# The name of a folder of rows without a value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

# Footers of remote files are waited for, not worked for.
_FOOTERS_AT_A_TIME = 16


class ArrowTable(Table):
    """Columns by name, in pieces that are read alone.

    Attributes
    ----------
    path : str
        Name in errors and the provenance.
    names : list of str
    index : set of str
        Columns that are an index of pandas or Dask.
    types : dict of str to list
        Arrow types that a column has in its pieces.
    elements : dict of str to tuple
        The column and the position of each feature that is an element of vectors.
    nulls : set of str
        Columns that may hold nulls.
    differing : dict of str to str
        Columns that some files lack, or that are numbers in some only, and what is to be said
        to those who ask for them.
    pieces : list
        `Piece` objects, in the order of the rows.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.in_process = False
        self.names: list[str] = []
        self.index: set[str] = set()
        self.types: dict[str, list[Any]] = {}
        self.elements: dict[str, tuple[str, int | None]] = {}
        self.nulls: set[str] = set()
        self.differing: dict[str, str] = {}
        self.pieces: list[Piece] = []

    @property
    def features(self) -> list[str]:
        """Names of the features, of which a column of vectors has one for each element."""
        return self.expanded(super().features)

    @property
    def known(self) -> list[str]:
        """Names of columns, and of the elements of vectors."""
        return [*self.names, *self.elements]

    def expanded(self, columns: Sequence[str]) -> list[str]:
        """Return names with those of elements for each column of vectors."""
        of_column: dict[str, list[str]] = {}
        for element, (name, _) in self.elements.items():
            of_column.setdefault(name, []).append(element)
        return [one for name in columns for one in of_column.get(name, [name])]

    def add_vectors(self, first_length: Callable[[str], int]) -> None:
        """Find the columns of vectors; of lists whose type tells no length the first one does."""
        for name in self.names:
            of_list = [_vector_of(kind) for kind in self.types[name] if not _is_null(kind)]
            if not of_list or None in of_list:
                continue
            values = [one[0] for one in of_list if one is not None]
            if not all(map(_is_number, values)):
                continue
            size = next((one[1] for one in of_list if one is not None), None)
            for i, element in enumerate(
                element_names(name, first_length(name) if size is None else size)
            ):
                self.elements[element] = name, i
                self.types[element] = values
                if name in self.differing:
                    self.differing[element] = self.differing[name]

    def table(self, columns: Sequence[str]) -> Source:
        """Return some columns as the matrix X."""
        self._check_types(columns)
        plain = {name: _plain_dtype(self.types[name]) for name in columns}
        others = {name: self.types[name][0] for name in columns if plain[name] == OBJECT}
        check_numeric(others, columns)
        # A null of any column becomes NaN, which only a floating dtype can hold.
        dtype = common_dtype([np.float32, *plain.values()])
        return self._source(tuple(columns), dtype)

    def column(self, name: str) -> Source:
        """Return one column as a vector of labels or weights."""
        import pyarrow.types as pt

        self._check_types([name])
        if len(self.expanded([name])) > 1:
            raise InvalidInputError(
                f"column {name!r} holds vectors, but labels and weights need one value per row",
                remedy=f"name another column, or one element, such as {name + '[0]'!r}",
            )
        kinds = [_of_values(kind) for kind in self.types[name]]
        for kind in filter(pt.is_temporal, kinds):
            raise InvalidTypeError(
                f"labels and weights must hold numbers or text, found {kind} in column {name!r}",
                argument="labels",
                remedy="name another column, or convert it where it is stored",
            )
        dtype = _plain_dtype(kinds)
        if name in self.nulls and dtype.kind in "biu":
            dtype = np.result_type(dtype, np.float32)
        return self._source((name,), dtype, flat=True)

    def _check_types(self, columns: Sequence[str]) -> None:
        for name in columns:
            if name in self.differing:
                raise InvalidInputError(
                    f"X has files with different {self.differing[name]}",
                    argument="X",
                    remedy="pass files of one schema, or choose columns that all of them have, "
                    "by open_rows(X, columns=[...])",
                )

    def _source(
        self, columns: tuple[str, ...], dtype: np.dtype[Any], *, flat: bool = False
    ) -> Source:
        starts = np.cumsum([0, *(piece.rows for piece in self.pieces)])
        n_rows = int(starts[-1])
        places = tuple(self.elements.get(name, (name, None)) for name in columns)
        stored = tuple(dict.fromkeys(name for name, _ in places))
        widths = Counter(name for name, _ in self.elements.values())

        def loader(start: int, stop: int) -> Loader:
            # Every task reads the pieces that its rows are in.
            first = int(np.searchsorted(starts, start, side="right")) - 1
            last = int(np.searchsorted(starts, stop, side="left"))
            reads = tuple(
                piece.cut(stored, max(0, start - begin), min(piece.rows, stop - begin))
                for piece, begin in zip(
                    self.pieces[first:last], starts[first:last].tolist(), strict=True
                )
            )
            return partial(_rows_of, reads, places, widths, dtype, start, flat=flat)

        in_memory = all(isinstance(piece, _InMemory) for piece in self.pieces)
        return Source(
            (n_rows,) if flat else (n_rows, len(columns)),
            dtype,
            loader,
            pieces=None if in_memory else tuple(piece.rows for piece in self.pieces),
            name=self.path or None,
            columns=columns,
            in_memory=in_memory,
            in_process=self.in_process,
        )


class Piece(ABC):
    """Rows of a table that are stored together.

    Attributes
    ----------
    rows : int
    """

    rows: int

    @abstractmethod
    def cut(self, columns: Sequence[str], first: int, last: int) -> Callable[[], Any]:
        """Return what reads some columns of some rows as an Arrow table. Picklable.

        Columns that the piece has not, while others have, are not in the table.
        """


def _rows_of(
    reads: Sequence[Callable[[], Any]],
    places: Sequence[tuple[str, int | None]],
    widths: Mapping[str, int],
    dtype: np.dtype[Any],
    start: int,
    *,
    flat: bool,
) -> AnyArray:
    """Read the pieces of a block, whose first row has the number `start`, one at a time."""
    of_column: dict[str, list[int]] = {}  # where the values of a column go
    for j, (name, _) in enumerate(places):
        of_column.setdefault(name, []).append(j)
    parts: list[AnyArray] = []
    for read in reads:
        table = read()
        part = np.empty((table.num_rows, len(places)), dtype)
        first_row = start + sum(map(len, parts))
        for name, at in of_column.items():
            if name in widths:
                matrix = _vectors(name, table[name], widths[name], dtype, first_row)
                part[:, at] = matrix[:, [places[j][1] or 0 for j in at]]
                continue
            if dtype.kind == "f":
                _check_exact(name, table[name], first_row)
            part[:, at[0]] = _column_to_numpy(table[name], dtype)
        parts.append(part)
    out = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return out[:, 0] if flat else out


def _vectors(name: str, column: Any, width: int, dtype: np.dtype[Any], start: int) -> AnyArray:
    """Return a column of lists as a matrix. A null list becomes NaN.

    Parameters
    ----------
    name : str
    column : pyarrow.ChunkedArray
    width : int
        Values of each list.
    dtype : numpy.dtype
    start : int
        Number of the first row.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    wide = np.result_type(dtype, np.float32)
    matrix = np.full((len(column), width), np.nan, wide)
    begin = 0
    for chunk in column.chunks:
        lists = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        present = np.flatnonzero(np.asarray(lists.is_valid()))
        lists = lists.drop_null()
        lengths = np.asarray(pc.list_value_length(lists))
        if len(bad := np.flatnonzero(lengths != width)):
            row = start + begin + int(present[bad[0]])
            raise unequal_lists(name, int(lengths[bad[0]]), width, row)
        values = pa.chunked_array([lists.flatten()])
        _check_exact(name, values, start + begin)
        matrix[begin + present] = _column_to_numpy(values, wide).reshape(-1, width)
        begin += len(chunk)
    return matrix


def _vector_of(kind: Any) -> tuple[Any, int | None] | None:
    """Return the type of the values of lists, and their number where the type tells it."""
    import pyarrow as pa
    import pyarrow.types as pt

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pt.is_fixed_size_list(kind):
        return kind.value_type, kind.list_size
    return (kind.value_type, None) if pt.is_list(kind) or pt.is_large_list(kind) else None


def first_length(column: Any) -> int:
    """Return the number of values of the first list of a column. Zero if there is none."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).drop_null()
    return lengths[0].as_py() if len(lengths) else 0


def with_vectors(X: Any) -> Any:
    """Return a frame or table in memory, or of Dask, with a column for each element of vectors."""
    if hasattr(type(X), "iloc") and hasattr(type(X), "columns"):
        return dataframes.with_vectors(X)
    if not (is_arrow_table(X) or type(X).__module__.partition(".")[0] == "polars"):
        return X
    table = as_table(X)
    if not getattr(table, "elements", None):
        return X
    import pandas as pd

    expanded = table.table(table.features)
    rows = expanded[0 : len(expanded)]
    return pd.DataFrame(rows, columns=list(expanded.columns))


def _column_to_numpy(column: Any, dtype: np.dtype[Any]) -> AnyArray:
    if dtype.kind == "f" and (column.null_count or _is_decimal(column.type)):
        column = column.cast("float64", safe=False)  # where a null becomes NaN
    elif column.null_count:  # of a dictionary it would be taken for the last value
        column = column.cast(_of_values(column.type))
    return np.asarray(column.to_numpy())


def check_exact_table(table: Any) -> None:
    """Raise an error for the first number of a table in memory that float64 does not hold.

    Parameters
    ----------
    table : polars.DataFrame or pyarrow.Table
    """
    table = table.to_arrow() if hasattr(table, "to_arrow") else table
    for name in table.column_names:
        _check_exact(name, table[name], 0)


def _check_exact(name: str, column: Any, start: int) -> None:
    """Raise an error for the first integer or decimal of a column that float64 does not hold.

    Parameters
    ----------
    name : str
    column : pyarrow.ChunkedArray
    start : int
        Number of the first row.
    """
    import pyarrow.compute as pc
    import pyarrow.types as pt

    kind = _of_values(column.type)
    if kind != column.type:
        column = column.cast(kind)
    if _is_decimal(kind):
        if kind.precision - kind.scale <= _EXACT_DIGITS:
            return
        floats = column.cast("float64", safe=False).to_numpy()
        for row in np.flatnonzero(abs(floats) >= EXACT).tolist():
            if column[row].as_py() != Decimal(floats[row]):
                raise inexact_row(f"column {name!r}", column[row].as_py(), row).error(start)
    elif pt.is_int64(kind) or pt.is_uint64(kind):
        values = pc.fill_null(column, 0).to_numpy() if column.null_count else column.to_numpy()
        problem = find_inexact(f"column {name!r}", values)
        if problem is not None:
            raise problem.error(start)


def _plain_dtype(kinds: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype that holds the types that one column has in all files."""
    # A file may have nothing but nulls in a column, whose type it does not tell then.
    known = [kind for kind in kinds if not _is_null(kind)]
    if known and all(map(_is_number, known)):
        return common_dtype(
            np.float64 if _is_decimal(kind) else kind.to_pandas_dtype() for kind in known
        )
    return OBJECT


def _is_number(kind: Any) -> bool:
    import pyarrow.types as pt

    plain = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind)
    return bool(plain) or _is_decimal(kind)


def _of_values(kind: Any) -> Any:
    """Return the type of what a dictionary holds, which writers make of categories."""
    import pyarrow.types as pt

    return kind.value_type if pt.is_dictionary(kind) else kind


def _is_null(kind: Any) -> bool:
    import pyarrow.types as pt

    return bool(pt.is_null(kind))


def _is_decimal(kind: Any) -> bool:
    import pyarrow.types as pt

    return bool(pt.is_decimal(kind))


def _check_names(names: Sequence[str], where: str) -> None:
    """Check that every column has a unique name, by which it is read."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(
            f"{where} has more than one column of each of the names {twice}",
            remedy="rename the duplicates",
        )


# --- tables in memory --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _InMemory(Piece):
    """A table, or some rows of one, in memory."""

    arrow: Any

    @property
    def rows(self) -> int:  # type: ignore[override] # known from the table
        return int(self.arrow.num_rows)

    def cut(self, columns: Sequence[str], first: int, last: int) -> Callable[[], Any]:
        return _InMemory(self.arrow.select(list(columns)).slice(first, last - first))

    def __call__(self) -> Any:
        return self.arrow

    def __reduce__(self) -> Any:
        # Arrow's own pickles hold the whole table of which this is a slice.
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.arrow.schema) as writer:
            writer.write_table(self.arrow)
        return _unpickled, (sink.getvalue().to_pybytes(),)


def _unpickled(stream: bytes) -> _InMemory:
    import pyarrow as pa

    with pa.ipc.open_stream(stream) as reader:
        return _InMemory(reader.read_all())


def as_table(X: Any, keys: Sequence[str] = ()) -> Any:
    """Return tables and data sets of Arrow, and frames of polars, as an `ArrowTable`.

    Anything else is returned unchanged.
    """
    library = type(X).__module__.partition(".")[0]
    if library == "polars":
        if type(X).__name__ == "LazyFrame":
            raise InvalidTypeError(
                "X is a LazyFrame of polars, which is not computed yet",
                argument="X",
                remedy="pass X.collect(), or write it with X.sink_parquet(path) and pass the path",
            )
        X = X.to_arrow() if type(X).__name__ == "DataFrame" else X
    if not type(X).__module__.startswith("pyarrow"):
        return X
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(X, pa.RecordBatchReader):
        raise InvalidTypeError(
            "X can be read only once", argument="X", remedy="pass the table, X.read_all()"
        )
    if isinstance(X, ds.Dataset):
        if getattr(X, "_scan_options", None):
            raise InvalidInputError(
                "X is a data set with a filter, so its number of rows is unknown",
                argument="X",
                remedy="pass the table, X.to_table(), or write it with "
                "pyarrow.dataset.write_dataset",
            )
        if not isinstance(X, ds.InMemoryDataset):
            return ParquetFiles(X, keys)
        X = X.to_table()
    X = in_one_table(X)
    if not isinstance(X, pa.Table):
        return X
    _check_names(X.schema.names, "X")
    table = ArrowTable("")
    table.names = list(X.schema.names)
    table.index = index_names(X.schema)
    table.types = {field.name: [field.type] for field in X.schema}
    table.nulls = {key for key in keys if key in table.types and X[key].null_count}
    table.pieces = [_InMemory(X)]
    table.add_vectors(lambda name: first_length(X[name]))
    return table


# --- files -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _RowGroup(Piece):
    """A row group. A task opens its file again.

    Attributes
    ----------
    path, filesystem
        As pyarrow takes them.
    name : str
        Name of the file, without secrets.
    footer : str
        Digest of the footer of the file.
    group : int
        Its number in the file.
    rows : int
    keys : mapping of str to object
        Columns that are one value in the whole file: those of the names of its folders.
    """

    path: str
    filesystem: Any
    name: str
    footer: str
    group: int
    rows: int
    keys: Mapping[str, Any]

    def cut(self, columns: Sequence[str], first: int, last: int) -> Callable[[], Any]:
        return partial(self._read, tuple(columns), first, last)

    def _read(self, columns: tuple[str, ...], first: int, last: int) -> Any:
        import pyarrow as pa

        file_format = _file_format(page_checksum_verification=True)
        what = f"row group {self.group} of {self.name!r} (its rows {first} to {last})"

        def read() -> Any:
            whole = file_format.make_fragment(self.path, filesystem=self.filesystem)
            with _plain_only(self.name):
                whole.ensure_complete_metadata()
            if _digest(whole.metadata) != self.footer:
                raise StoreError(
                    f"{self.name!r} on {here()} differs from the file that was opened, "
                    "in columns, types, rows or values",
                    remedy="let every worker see the same files, with the same version of "
                    "pyarrow, and open them again if they were rewritten",
                )
            fragment = whole.subset(row_group_ids=[self.group])
            # A column that other files have is left out; the threads are those of Dask.
            own = {*whole.physical_schema.names}.difference(self.keys)
            stored = [name for name in columns if name in own]
            return fragment.to_table(columns=stored, use_threads=False)

        table = read_clearly(lambda: what, read, self.path)
        if table.num_rows != self.rows:
            raise StoreError(
                f"{what} has {table.num_rows} rows instead of {self.rows}",
                remedy="open the file again, because it was rewritten since it was opened",
            )
        table = table.slice(first, last - first)
        for name in [name for name in columns if name in self.keys]:
            value = pa.scalar(self.keys[name])
            table = table.append_column(name, pa.repeat(value, table.num_rows))
        return table


class ParquetFiles(ArrowTable):
    """The footers of Parquet files: columns, row groups and their lengths.

    Parameters
    ----------
    source : pyarrow.dataset.Dataset, str, Place, or sequence of Place
        A data set of Parquet files; or files and folders, whose Parquet files are read in the
        natural order of their names: ``part.10.parquet`` after ``part.9.parquet``, as Dask reads
        what it writes. The names of folders such as ``year=2024`` are columns.
    keys : sequence of str
        Columns that will be read alone, as labels or weights.
    base : Place, optional
        The folder below which names of folders are columns. By default `source` itself.
    """

    def __init__(self, source: Any, keys: Sequence[str] = (), base: Place | None = None) -> None:
        import pyarrow.dataset as ds

        roots = [Place(source)] if isinstance(source, str) else source
        roots = [roots] if isinstance(roots, Place) else roots
        self._root: Place | None = None
        if not isinstance(roots, ds.Dataset):
            self._root = roots[0]
            files = [file for root in roots for file in parquet_files(root)]
            if not files:
                raise InvalidInputError(
                    f"X names no Parquet file: {roots[0].name!r}",
                    argument="X",
                    remedy="check the path",
                )
            with clear_errors("X", files[0].name, "a Parquet file"), _plain_only(files[0].name):
                source = _dataset_of(files, base or (roots[0] if len(roots) == 1 else None))
        super().__init__(shortened([root.name for root in roots]) if self._root else "")

        self.in_process = self._root is not None and self._root.in_process
        fragments = list(source.get_fragments())
        if not all(isinstance(fragment, ds.ParquetFileFragment) for fragment in fragments):
            raise InvalidInputError(
                "X is a data set of files that are not Parquet, so its number of "
                "rows is unknown before reading",
                argument="X",
                remedy="write it as Parquet, or pass the table, X.to_table()",
            )
        self._keys = keys
        with ThreadPoolExecutor(_FOOTERS_AT_A_TIME) as pool:
            footers = list(pool.map(self._read_footer, fragments))
        rows = [bool(fragment.metadata.num_rows) for fragment in fragments]
        for fragment, footer, some in zip(fragments, footers, rows, strict=True):
            if some or not any(rows):  # writers guess the types of files without rows
                self._add_file(fragment, footer, source.schema)
        self.names = list(self.types) or list(source.schema.names)
        self.add_vectors(partial(self._first_length, fragments))

    def _add_file(self, fragment: Any, footer: str, schema: Any) -> None:
        import pyarrow as pa
        import pyarrow.dataset as ds

        folders = ds.get_partition_keys(fragment.partition_expression)
        _check_names(fragment.physical_schema.names, repr(self._named(fragment)))
        self.index |= index_names(fragment.physical_schema)
        types = {field.name: field.type for field in fragment.physical_schema}
        constants = {key: folders[key] for key in schema.names if key in folders.keys() - types}
        types |= {key: schema.field(key).type for key in constants}
        for key in (key for key, value in constants.items() if value == _NO_VALUE):
            folders[key], constants[key], types[key] = None, None, pa.float64()
        name = self._named(fragment)
        self._add_columns(name, types)
        self.nulls |= {key for key in self._keys if key in folders and folders[key] is None}
        for group in fragment.row_groups:
            if group.num_rows:
                where = _absolute(fragment), fragment.filesystem, name, footer
                self.pieces.append(_RowGroup(*where, group.id, group.num_rows, constants))
                self._note_nulls(fragment.metadata.row_group(group.id))

    def _add_columns(self, file: str, types: Mapping[str, Any]) -> None:
        lacking = sorted(set(types) ^ set(self.types)) if self.types else []
        for name in lacking:
            self.differing.setdefault(
                name, f"columns: {file!r} and those before it differ in {lacking}"
            )
        for name, kind in types.items():
            before = self.types.setdefault(name, [])
            known = [other for other in before if not _is_null(other)]
            if known and not _is_null(kind) and _is_number(kind) != _is_number(known[0]):
                self.differing.setdefault(
                    name,
                    f"types: column {name!r} of {file!r} is {kind}, and {known[0]} in those before "
                    f"it",
                )
            before.append(kind)

    def _note_nulls(self, group: Any) -> None:
        for index in range(group.num_columns):
            column = group.column(index)
            if column.path_in_schema in self._keys:
                counted = column.statistics is not None and column.statistics.has_null_count
                # A footer that does not say may hide some.
                if not counted or column.statistics.null_count > 0:
                    self.nulls.add(column.path_in_schema)

    def _first_length(self, fragments: Sequence[Any], name: str) -> int:
        """Return the number of values of lists, told by the footers if all lists are alike."""
        found = set()
        for fragment in fragments:
            for i in range(fragment.metadata.num_row_groups):
                group = fragment.metadata.row_group(i)
                leaves = [group.column(j) for j in range(group.num_columns)]
                counts = [
                    leaf.num_values for leaf in leaves if leaf.path_in_schema.startswith(f"{name}.")
                ]
                found.add(divmod(sum(counts), group.num_rows) if group.num_rows else (0, 0))
        found.discard((0, 0))
        if len(found) == 1 and (length := next(iter(found)))[1] == 0 and length[0] > 1:
            return length[0]
        for fragment in fragments:
            if name in fragment.physical_schema.names and fragment.metadata.num_rows:
                with clear_errors("X", self._named(fragment), "a Parquet file"):
                    column = fragment.to_table(columns=[name])[name]
                if length_found := first_length(column):
                    return length_found
        return 0

    def _named(self, fragment: Any) -> str:
        """Return the name of a file, without secrets."""
        if self._root is None:
            return clean_url(fragment.path)
        return self._root.at(fragment.path).name

    def _read_footer(self, fragment: Any) -> str:
        """Read the footer of a file, and return its digest."""
        name = self._named(fragment)
        with clear_errors("X", name, "a Parquet file"), _plain_only(name):
            fragment.ensure_complete_metadata()
            if self._root is None:  # a data set may know of some row groups only
                where = _absolute(fragment), fragment.filesystem
                fragment = _file_format().make_fragment(*where)
            return _digest(fragment.metadata)


class _EncryptedError(CoresetError):
    """A file asks for keys."""


# What pyarrow says of files whose keys are not described as it describes them.
_OF_KEYS = ("No footer key", "encrypted metadata", "key material", "KeyMaterial")


@contextmanager
def _plain_only(name: str) -> Iterator[None]:
    """Turn the question for keys of a file into an error that names it."""
    try:
        yield
    except Exception as error:
        asked = isinstance(error, _EncryptedError)
        if not asked and not any(words in str(error) for words in _OF_KEYS):
            raise
        raise InvalidInputError(
            f"X has encrypted columns, which are not supported: {name!r}",
            argument="X",
            remedy="pass a table that pyarrow reads with its keys, or a file that is not encrypted",
        ) from None


def _file_format(**options: Any) -> Any:
    """Return the format of Parquet files without keys.

    A process crashes that writes a footer of encrypted columns. A file with such columns asks for
    keys before anything else of it is read.
    """
    import pyarrow.dataset as ds

    try:
        import pyarrow.parquet.encryption as pe
    except ImportError:  # pyarrow is built without encryption
        scan = ds.ParquetFragmentScanOptions(**options)
        return ds.ParquetFileFormat(default_fragment_scan_options=scan)

    class NoKeys(pe.KmsClient):  # type: ignore[misc] # of Cython
        def __init__(self, _connection: Any) -> None:
            super().__init__()

        def unwrap_key(self, _wrapped: Any, _identifier: str) -> bytes:
            raise _EncryptedError

    config = ds.ParquetDecryptionConfig(
        pe.CryptoFactory(NoKeys), pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    )
    scan = ds.ParquetFragmentScanOptions(decryption_config=config, **options)
    return ds.ParquetFileFormat(default_fragment_scan_options=scan)


def _digest(metadata: Any) -> str:
    """Return a digest of a footer: columns, and rows, places, sizes and extremes of their chunks.

    A Parquet file is never changed, so that another footer is that of another file.
    """
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    return hashlib.blake2b(sink.getvalue(), digest_size=8).hexdigest()


def _absolute(fragment: Any) -> str:
    """Return the path of a file, which workers may look for from another folder."""
    local = fragment.filesystem.type_name == "local"
    path = os.path.abspath(fragment.path) if local else fragment.path  # noqa: PTH100 - no links
    return str(path)


def _dataset_of(files: Sequence[Place], root: Place | None) -> Any:
    """Return the data set of some Parquet files, in this order. Nothing is read."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    dataset = partial(
        ds.dataset,
        [file.path for file in files],
        format=_file_format(),
        filesystem=files[0].filesystem if files else None,
        partition_base_dir=None if root is None else root.path,
    )
    try:
        return dataset(partitioning="hive")
    except pa.ArrowInvalid as error:
        if "No non-null segments" in str(error):  # Arrow does not guess a type of no value
            return dataset(partitioning=ds.HivePartitioning.discover(null_fallback=""))
        if "duplicate field names" not in str(error):
            raise
    raise InvalidInputError(
        f"{files[0].name!r} has more than one column of the same name",
        remedy="rename the duplicates, and write the file again",
    )


# What lies beside the files of tables whose current rows only their own reader knows.
_TABLES = {
    "_delta_log": ("a Delta table", "deltalake.DeltaTable(path).to_pyarrow_dataset()"),
    ".hoodie": (
        "a Hudi table",
        "a table of hudi.HudiTableBuilder.from_base_uri(path).build().read_snapshot()",
    ),
    "metadata": (
        "an Iceberg table",
        "pyiceberg.table.StaticTable.from_metadata(path).scan().to_arrow()",
    ),
}


def _refuse_table(name: str, marker: str) -> NoReturn:
    kind, reader = _TABLES[marker]
    raise InvalidInputError(
        f"X is in the folder of {kind}, whose files hold rows of all its versions: {name!r}",
        argument="X",
        remedy=f"pass {reader}, or a list of the files of one version",
    )


def _check_no_table(folder: Place, files: Sequence[Place]) -> None:
    """Raise an error for a folder, of these files, that is in a table or holds one."""
    for file in files:
        parts = PurePosixPath(file.path[len(folder.path) :].lstrip("/")).parts[:-1]
        for marker in _TABLES:
            if marker in parts and (marker != "metadata" or _is_iceberg(file)):
                _refuse_table(folder.name, marker)
    check_outside(folder.at(str(PurePosixPath(folder.path).parent)), folder)


def check_outside(parent: Place, place: Place) -> None:
    """Raise an error for a folder of partitions or of data, or a glob, in the folder of a table.

    Parameters
    ----------
    parent : Place
        Looked at if the name of `place` is that of a folder of partitions or of data.
    place : Place
    """
    name = PurePosixPath(place.path).name
    if not (is_glob(name) or "=" in name or name == "data"):
        return
    for marker in _TABLES:
        found = parent.at(f"{parent.path.rstrip('/')}/{marker}")
        if found.exists and (marker != "metadata" or any(map(_is_iceberg, found.files()))):
            _refuse_table(place.name, marker)
    check_outside(parent.at(str(PurePosixPath(parent.path).parent)), parent)


def _is_iceberg(file: Place) -> bool:
    return ".metadata.json" in file.path


def parquet_files(root: Place) -> list[Place]:
    """Return the Parquet files at a place. None without such files."""
    if not root.is_local and root.suffix in SUFFIXES:
        is_file = root.filesystem.info(root.path)["type"] == "file"  # or the error that says why
    else:
        is_file = root.is_file
    if is_file:
        return [root] if root.suffix in SUFFIXES else []
    files = root.files()
    _check_no_table(root, files)
    return [file for file in files if file.suffix in SUFFIXES and not _is_hidden(file, root)]


def data_files(root: Place) -> list[Place]:
    """Return the files in a folder, without logs, marks and unfinished writes of other tools."""
    return [file for file in root.files() if not _is_hidden(file, root)]


def _is_hidden(file: Place, root: Place) -> bool:
    below = PurePosixPath(file.path[len(root.path) :].lstrip("/"))
    return any(part.startswith((".", "_")) for part in below.parts)


def open_parquet(place: Place, name: str, stack: ExitStack, keys: Sequence[str] = ()) -> Any:
    """Open a Parquet file or folder, passed as the argument `name`. See `ParquetFiles`."""
    del stack  # every task opens its files for itself
    import_reader("pyarrow", "dataframe", name)
    return ParquetFiles(place, keys)
