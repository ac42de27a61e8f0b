"""Parquet files and tables of Arrow: columns by name, row groups whose lengths are known."""

from __future__ import annotations

import hashlib
import itertools
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from daskcoreset.core.invalid import EXACT, find_inexact, inexact_row
from daskcoreset.core.optional import import_reader
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidInputError, InvalidTypeError, StoreError
from daskcoreset.inputs.arrays import RowArray, stacked
from daskcoreset.inputs.dataframes import (
    OBJECT,
    check_numeric,
    common_dtype,
    element_names,
    in_one_table,
    index_names,
    is_arrow_table,
)
from daskcoreset.inputs.filesystems import (
    Place,
    clear_errors,
    here,
    is_glob,
    read_clearly,
    shortened,
)
from daskcoreset.inputs.options import ReadOptions
from daskcoreset.storage.locations import clean_url

SUFFIXES = (".parquet", ".parq", ".pq")

# float64 holds every whole number of as many digits.
_EXACT_DIGITS = 15

# The name of a folder of rows without a value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

# Footers of remote files are waited for, not worked for.
_FOOTERS_AT_A_TIME = 16


@dataclass(frozen=True, eq=False)
class ArrowRows(RowArray):
    """Some columns of a table as a matrix, or one as a vector.

    Attributes
    ----------
    parts : sequence of _InMemory or _RowGroup
        Rows that are stored together, or some of them.
    places : tuple of (str, int or None)
        The column of each feature, and the position in its vectors.
    widths : dict of str to int
        Lengths of vectors, by the name of the column.
    flat : bool
        Whether it is a vector.
    first_row : int
        Number of the first row in the table, for errors.
    """

    parts: Sequence[_InMemory | _RowGroup]
    places: tuple[tuple[str, int | None], ...]
    widths: Mapping[str, int]
    dtype: np.dtype[Any]
    flat: bool
    columns: tuple[str, ...]
    name: str | None
    in_memory: bool
    in_process: bool
    first_row: int = 0

    @cached_property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Rows, and columns of a matrix."""
        n_rows = sum(part.rows for part in self.parts)
        return (n_rows,) if self.flat else (n_rows, len(self.places))

    @property
    def pieces(self) -> tuple[int, ...] | None:  # type: ignore[override]
        """Rows that are stored together."""
        return None if self.in_memory else tuple(part.rows for part in self.parts)

    def cut(self, start: int, stop: int) -> ArrowRows:
        """Return some rows, without the pieces that have none of them."""
        ends = itertools.accumulate(part.rows for part in self.parts)
        parts = [
            part.cut(max(0, start - end + part.rows), min(part.rows, stop - end + part.rows))
            for part, end in zip(self.parts, ends, strict=True)
            if end - part.rows < stop and end > start
        ]
        return replace(self, parts=parts, first_row=self.first_row + start)

    def __getitem__(self, rows: slice) -> AnyArray:
        own = self.cut(rows.start, rows.stop)
        blocks = [np.empty((0, len(self.places)), self.dtype)]
        first_row = own.first_row
        for part in own.parts:
            blocks.append(self._read(part, first_row))
            first_row += part.rows
        block: AnyArray = stacked(blocks[1:] or blocks)
        return block[:, 0] if self.flat else block

    def _read(self, part: _InMemory | _RowGroup, first_row: int) -> AnyArray:
        of_column: dict[str, list[int]] = {}  # where the values of a column go
        for j, (name, _) in enumerate(self.places):
            of_column.setdefault(name, []).append(j)
        table = part.read(list(of_column))
        block = np.empty((part.rows, len(self.places)), self.dtype)
        for name, at in of_column.items():
            if name in self.widths:
                matrix = _vectors(name, table[name], self.widths[name], self.dtype, first_row)
                block[:, at] = matrix[:, [self.places[j][1] or 0 for j in at]]
                continue
            if self.dtype.kind == "f":
                _check_exact(name, table[name], first_row)
            block[:, at[0]] = _column_to_numpy(table[name], self.dtype)
        return block


class ArrowTable(ABC):
    """Columns by name, in pieces that are read alone.

    Parameters
    ----------
    path : str
        Name in errors and the provenance.
    schemas : dict of str to sequence of pyarrow.Field
        Columns, by the name of the file.
    pieces : list
        `_InMemory` or `_RowGroup` objects, in the order of the rows.
    index : set of str
        Columns that are an index of pandas or Dask, and features only if they are named.

    Attributes
    ----------
    names : list of str
    types : dict of str to dict
        Arrow types that a column has, with a file of each. Files with nulls alone tell none.
    elements : dict of str to tuple
        The column and the position of each feature that is an element of vectors.
    """

    in_memory = in_process = False

    def __init__(
        self,
        path: str,
        schemas: Mapping[str, Sequence[Any]],
        pieces: Sequence[_InMemory | _RowGroup],
        index: set[str],
    ) -> None:
        self.path, self.pieces, self.index = path, pieces, index
        self.types: dict[str, dict[Any, str]] = {}
        self._n_found: Counter[str] = Counter()
        self._n_files = len(schemas)
        for file, schema in schemas.items():
            for field in schema:
                self._n_found[field.name] += 1
                known = self.types.setdefault(field.name, {})
                if not _is_null(field.type):
                    known.setdefault(field.type, file)
        self.names = list(self.types)
        self.elements: dict[str, tuple[str, int]] = {}
        for name in self.names:
            vectors = [_vector_of(kind) for kind in self.types[name]]
            values = [vector[0] for vector in vectors if vector and _is_number(vector[0])]
            if vectors and len(values) == len(vectors):
                width = (vectors[0] and vectors[0][1]) or self.first_length(name)
                for i, element in enumerate(element_names(name, width)):
                    self.elements[element] = name, i
                    self.types[element] = dict.fromkeys(values, path)

    def check_unique(self, columns: Iterable[str]) -> None:
        """Check that no other column has the name of one of these, by which it is read."""
        twice = [name for name in columns if self._n_found[name] > self._n_files]
        if twice:
            raise InvalidInputError(
                f"X has more than one column of each of the names {twice}",
                argument="X",
                remedy="rename the duplicates",
            )

    def check_types(self, columns: Iterable[str]) -> None:
        """Check that columns are alike in all pieces."""
        stored = [self.elements.get(name, (name, 0))[0] for name in columns]
        self.check_unique(stored)
        for name in stored:
            kinds, problem = self.types[name], None
            if self._n_found[name] < self._n_files:
                some = [one for one in self.names if self._n_found[one] < self._n_files]
                problem = f"columns: some lack {some}"
            elif len({_is_number(kind) for kind in kinds}) > 1:
                found = " and ".join(f"{kind} in {file!r}" for kind, file in kinds.items())
                problem = f"types: column {name!r} is {found}"
            if problem is not None:
                raise InvalidInputError(
                    f"X has files with different {problem}",
                    argument="X",
                    remedy="pass files of one schema, or choose columns that all of them have, "
                    "by open_rows(X, columns=[...])",
                )

    @abstractmethod
    def has_nulls(self, name: str) -> bool:
        """Whether a column may hold nulls."""

    @abstractmethod
    def first_length(self, name: str) -> int:
        """Return the number of values of the first list of a column. Zero if there is none."""

    @property
    def features(self) -> list[str]:
        """Names of the features, of which a column of vectors has one for each element."""
        return self.expanded([name for name in self.names if name not in self.index])

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

    def table(self, columns: Sequence[str]) -> ArrowRows:
        """Return some columns as the matrix X."""
        self.check_types(columns)
        plain = {name: _plain_dtype(self.types[name]) for name in columns}
        others = {
            name: next(iter(self.types[name]), "null") for name in columns if plain[name] == OBJECT
        }
        check_numeric(others)
        # A null of any column becomes NaN, which only a floating dtype can hold.
        return self._rows(columns, common_dtype([np.float32, *plain.values()]), flat=False)

    def column(self, name: str) -> ArrowRows:
        """Return one column as a vector of labels or weights."""
        import pyarrow.types as pt

        self.check_types([name])
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
        if dtype.kind in "biu" and self.has_nulls(name):
            dtype = np.result_type(dtype, np.float32)
        return self._rows([name], dtype, flat=True)

    def _rows(self, columns: Sequence[str], dtype: np.dtype[Any], *, flat: bool) -> ArrowRows:
        return ArrowRows(
            self.pieces,
            tuple(self.elements.get(name, (name, None)) for name in columns),
            Counter(name for name, _ in self.elements.values()),
            dtype,
            flat,
            tuple(columns),
            self.path or None,
            self.in_memory,
            self.in_process,
        )


def _vectors(
    name: str, column: Any, width: int, dtype: np.dtype[Any], start: int | None
) -> AnyArray:
    """Return a column of lists as a matrix. A null list becomes NaN.

    Parameters
    ----------
    name : str
    column : pyarrow.ChunkedArray
    width : int
        Values of each list.
    dtype : numpy.dtype
    start : int or None
        Number of the first row, if it is known.
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
            where = "" if start is None else f" at row {start + begin + int(present[bad[0]])}"
            raise InvalidInputError(
                f"column {name!r} has a list of {lengths[bad[0]]} values{where}, and its first one "
                f"has {width}",
                remedy="make all lists equally long, or pass open_rows(X, columns=[...])",
            )
        values = pa.chunked_array([lists.flatten()])
        _check_exact(name, values, None if start is None else start + begin)
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


def _first_length(column: Any) -> int:
    """Return the number of values of the first list of a column. Zero if there is none."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).drop_null()
    return lengths[0].as_py() if len(lengths) else 0


def with_vectors(X: Any) -> Any:
    """Return a frame or table in memory, or of Dask, with a column for each element of vectors.

    Vectors are lists or arrays of numbers, equally many in each row. A row without one has NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> with_vectors(pd.DataFrame({"id": [7, 8], "emb": [[0.5, 1.0], [2.0, 3.0]]}))
       id  emb[0]  emb[1]
    0   7     0.5     1.0
    1   8     2.0     3.0
    """
    if is_arrow_table(X) or type(X).__module__.partition(".")[0] == "polars":
        table = as_table(X)
        if not getattr(table, "elements", None):
            return X
        import pandas as pd

        rows = table.table(table.features)
        return pd.DataFrame(rows[0 : len(rows)], columns=list(rows.columns))
    return vectors_of_frame(X)


def vectors_of_frame(X: Any) -> Any:
    """Return a frame of pandas or Dask with a column for each element of vectors, or X."""
    if not (hasattr(type(X), "iloc") and hasattr(type(X), "columns")):
        return X
    stored = [j for j, kind in enumerate(X.dtypes) if kind == OBJECT or "list" in str(kind)]
    if hasattr(X, "__dask_graph__"):
        columns = {j: X[[X.columns[j]]].partitions for j in stored}
    else:
        columns = {j: [X.iloc[:, [j]]] for j in stored}
    found = {j: kind for j, parts in columns.items() if (kind := _vector_kind(parts)) is not None}
    if not found:
        return X
    if not hasattr(X, "__dask_graph__"):
        return _expanded(X, found, 0)
    from dask.dataframe.dispatch import make_meta

    return X.map_partitions(_expanded, found, meta=_expanded(make_meta(X), found))


def _vector_kind(parts: Iterable[Any]) -> tuple[int, np.dtype[Any]] | None:
    """Return length and dtype of the vectors of a column of pandas or Dask. None of others."""
    import dask

    for part in parts:
        (frame,) = dask.compute(part)
        present = frame.iloc[:, 0].dropna()
        if not len(present):
            continue
        if isinstance(present.iloc[0], (list, tuple, np.ndarray)):
            import pyarrow as pa

            with suppress(pa.ArrowException):
                lists = _lists_of(present.iloc[:1])
                vector, width = _vector_of(lists.type), _first_length(lists)
                if vector is not None and _is_number(vector[0]) and width:
                    return width, _plain_dtype([vector[0]])
        return None
    return None


def _lists_of(column: Any) -> Any:
    """Return a column of pandas as lists of Arrow."""
    import pyarrow as pa

    lists = pa.table([pa.array(column, from_pandas=True)], ["lists"])["lists"]
    # Nothing tells a type if there is no value.
    return lists.cast(pa.list_(pa.float32())) if _is_null(lists.type) else lists


def _expanded(
    frame: Any, vectors: Mapping[int, tuple[int, np.dtype[Any]]], first_row: int | None = None
) -> Any:
    """Return a frame of pandas with a column for each element of the columns of some positions."""
    import pandas as pd

    columns = []
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        if j in vectors:
            width, dtype = vectors[j]
            matrix = _vectors(column.name, _lists_of(column), width, dtype, first_row)
            names = element_names(column.name, width)
            column = pd.DataFrame(matrix, index=frame.index, columns=names)
        columns.append(column)
    return pd.concat(columns, axis=1)


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


def _check_exact(name: str, column: Any, start: int | None) -> None:
    """Raise an error for the first integer or decimal of a column that float64 does not hold.

    Parameters
    ----------
    name : str
    column : pyarrow.ChunkedArray
    start : int or None
        Number of the first row, if it is known.
    """
    import pyarrow.compute as pc
    import pyarrow.types as pt

    kind = _of_values(column.type)
    if kind != column.type:
        column = column.cast(kind)
    problem = None
    if _is_decimal(kind) and kind.precision - kind.scale > _EXACT_DIGITS:
        floats = column.cast("float64", safe=False).to_numpy()
        for row in np.flatnonzero(abs(floats) >= EXACT).tolist():
            if column[row].as_py() != Decimal(floats[row]):
                problem = inexact_row(f"column {name!r}", column[row].as_py(), row)
                break
    elif pt.is_int64(kind) or pt.is_uint64(kind):
        values = pc.fill_null(column, 0).to_numpy() if column.null_count else column.to_numpy()
        problem = find_inexact(f"column {name!r}", values)
    if problem is not None:
        raise problem.error_at("") if start is None else problem.error(start)


def _plain_dtype(kinds: Collection[Any]) -> np.dtype[Any]:
    """Return the dtype that holds the types that one column has in all files."""
    if kinds and all(map(_is_number, kinds)):
        return common_dtype(
            np.float64 if _is_decimal(kind) else kind.to_pandas_dtype() for kind in kinds
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


# --- tables in memory --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _InMemory:
    """A table, or some rows of one, in memory."""

    arrow: Any

    @property
    def rows(self) -> int:
        return int(self.arrow.num_rows)

    def cut(self, first: int, last: int) -> _InMemory:
        return _InMemory(self.arrow.slice(first, last - first))

    def read(self, columns: Sequence[str]) -> Any:
        return self.arrow.select(columns)

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


class _MemoryTable(ArrowTable):
    """A table of Arrow in memory."""

    in_memory = True

    def __init__(self, arrow: Any) -> None:
        self.arrow = arrow
        super().__init__("", {"X": arrow.schema}, [_InMemory(arrow)], index_names(arrow.schema))

    def has_nulls(self, name: str) -> bool:
        return name in self.names and self.arrow[name].null_count > 0

    def first_length(self, name: str) -> int:
        return _first_length(self.arrow[name])


def as_table(X: Any) -> Any:
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
            return ParquetFiles(X)
        X = X.to_table()
    X = in_one_table(X)
    return _MemoryTable(X) if isinstance(X, pa.Table) else X


# --- files -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _File:
    """A Parquet file, which tasks open again.

    Attributes
    ----------
    path, filesystem
        As pyarrow takes them.
    name : str
        Without secrets.
    footer : str
        Digest of its footer.
    keys : mapping of str to pyarrow.Scalar
        Columns that are one value in the whole file: those of the names of its folders.
    """

    path: str
    filesystem: Any
    name: str
    footer: str
    keys: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class _RowGroup:
    """Rows `first` to `last` of a row group."""

    file: _File
    group: int
    first: int
    last: int

    @property
    def rows(self) -> int:
        return self.last - self.first

    def cut(self, first: int, last: int) -> _RowGroup:
        return replace(self, first=self.first + first, last=self.first + last)

    def read(self, columns: Sequence[str]) -> Any:
        import pyarrow as pa

        file = self.file
        what = f"row group {self.group} of {file.name!r} (its rows {self.first} to {self.last})"
        table = read_clearly(lambda: what, lambda: self._read(columns), file.path)
        table = table.slice(self.first, self.rows)
        for name in [name for name in columns if name in file.keys]:
            table = table.append_column(name, pa.repeat(file.keys[name], self.rows))
        return table

    def _read(self, columns: Sequence[str]) -> Any:
        file, arrow = self.file, _file_format(page_checksum_verification=True)
        whole = arrow.make_fragment(file.path, filesystem=file.filesystem)
        if _footer_of(whole) != file.footer:
            raise StoreError(
                f"{file.name!r} on {here()} differs from the file that was opened, "
                "in columns, types, rows or values",
                remedy="let every worker see the same files, with the same version of "
                "pyarrow, and open them again if they were rewritten",
            )
        # A column that other files have is left out; the threads are those of Dask.
        own = {*whole.physical_schema.names}.difference(file.keys)
        stored = [name for name in columns if name in own]
        fragment = whole.subset(row_group_ids=[self.group])
        return fragment.to_table(columns=stored, use_threads=False)


class ParquetFiles(ArrowTable):
    """The footers of Parquet files: columns, row groups and their lengths.

    Parameters
    ----------
    source : pyarrow.dataset.Dataset, Place, or sequence of Place
        A data set of Parquet files; or files and folders, whose Parquet files are read in the
        natural order of their names: ``part.10.parquet`` after ``part.9.parquet``, as Dask reads
        what it writes. The names of folders such as ``year=2024`` are columns.
    base : Place, optional
        The folder below which names of folders are columns. By default `source` itself.
    """

    def __init__(self, source: Any, base: Place | None = None) -> None:
        import pyarrow as pa
        import pyarrow.dataset as ds

        path, root = "", None
        if not isinstance(source, ds.Dataset):
            roots = [source] if isinstance(source, Place) else source
            path, root = shortened([one.name for one in roots]), roots[0]
            files = [file for one in roots for file in parquet_files(one)]
            if not files:
                raise InvalidInputError(
                    f"X names no Parquet file: {root.name!r}",
                    argument="X",
                    remedy="check the path",
                )
            with clear_errors("X", files[0].name, "a Parquet file"):
                source = _dataset_of(files, base or (root if len(roots) == 1 else None))
            self.in_process = root.in_process
        fragments = list(source.get_fragments())
        if not all(isinstance(fragment, ds.ParquetFileFragment) for fragment in fragments):
            raise InvalidInputError(
                "X is a data set of files that are not Parquet, so its number of "
                "rows is unknown before reading",
                argument="X",
                remedy="write it as Parquet, or pass the table, X.to_table()",
            )
        with ThreadPoolExecutor(_FOOTERS_AT_A_TIME) as pool:
            opened = list(pool.map(partial(_opened, root, source.schema), fragments))
        # Writers guess the types of files without rows.
        self._files = [one for one in opened if one[1].metadata.num_rows] or opened
        schemas: dict[str, list[Any]] = {}
        index: set[str] = set()
        pieces = []
        for file, fragment in self._files:
            keys = [pa.field(key, value.type) for key, value in file.keys.items()]
            schemas[file.name] = [*fragment.physical_schema, *keys]
            index |= index_names(fragment.physical_schema)
            groups = [(group.id, group.num_rows) for group in fragment.row_groups]
            pieces += [_RowGroup(file, i, 0, n_rows) for i, n_rows in groups if n_rows]
        super().__init__(path, schemas, pieces, index)

    def has_nulls(self, name: str) -> bool:
        """Whether a column may hold nulls, as far as footers tell."""
        return any(
            not file.keys[name].is_valid if name in file.keys else _may_hold_nulls(fragment, name)
            for file, fragment in self._files
        )

    def first_length(self, name: str) -> int:
        """Read the first list of a column."""
        import pyarrow.dataset as ds

        for file, fragment in self._files:
            if name in fragment.physical_schema.names:
                with clear_errors("X", file.name, "a Parquet file"):
                    rows = fragment.head(1, columns=[name], filter=ds.field(name).is_valid())
                if length := _first_length(rows[name]):
                    return length
        return 0


def _opened(root: Place | None, schema: Any, fragment: Any) -> tuple[_File, Any]:
    """Read the footer of a file. Its name is below `root`, if that is known."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    name = clean_url(fragment.path) if root is None else root.at(fragment.path).name
    local = fragment.filesystem.type_name == "local"
    # Workers may look for it from another folder.
    path = os.path.abspath(fragment.path) if local else fragment.path  # noqa: PTH100 - no links
    with clear_errors("X", name, "a Parquet file"):
        whole = fragment
        if root is None:  # a data set may know of some row groups only
            whole = _file_format().make_fragment(path, fragment.filesystem)
        footer = _footer_of(whole)
        fragment.ensure_complete_metadata()
    keys = {
        key: pa.scalar(None if value == _NO_VALUE else value, _of_values(schema.field(key).type))
        for key, value in ds.get_partition_keys(fragment.partition_expression).items()
        if key not in fragment.physical_schema.names
    }
    return _File(path, fragment.filesystem, name, footer, keys), fragment


def _may_hold_nulls(fragment: Any, name: str) -> bool:
    """Whether some row group has nulls in a column, or statistics do not tell."""
    footer = fragment.metadata
    for column in range(footer.num_columns):
        if footer.schema.column(column).path != name:
            continue
        for group in map(footer.row_group, range(footer.num_row_groups)):
            counts = group.column(column).statistics
            known = counts is not None and counts.has_null_count
            if group.num_rows and (not known or counts.null_count > 0):
                return True
    return False


def _file_format(**options: Any) -> Any:
    """Return the format of Parquet files without keys.

    A process crashes that looks at the footer of encrypted columns. A file with such columns asks
    for keys before anything else of it is read.
    """
    import pyarrow.dataset as ds
    import pyarrow.parquet.encryption as pe

    class NoKeys(pe.KmsClient):  # type: ignore[misc] # of Cython
        def __init__(self, _connection: Any) -> None:
            super().__init__()

        def unwrap_key(self, _wrapped: Any, _identifier: str) -> bytes:
            message = "it has encrypted columns, which are not supported"
            raise ValueError(message)

    config = ds.ParquetDecryptionConfig(
        pe.CryptoFactory(NoKeys), pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    )
    scan = ds.ParquetFragmentScanOptions(decryption_config=config, **options)
    return ds.ParquetFileFormat(default_fragment_scan_options=scan)


def _footer_of(fragment: Any) -> str:
    """Read the footer of a file, and return its digest.

    It tells columns, and rows, places, sizes and extremes of their chunks. A Parquet file is never
    changed, so that another footer is that of another file.
    """
    import pyarrow as pa

    fragment.ensure_complete_metadata()
    sink = pa.BufferOutputStream()
    fragment.metadata.write_metadata_file(sink)
    return hashlib.blake2b(sink.getvalue(), digest_size=8).hexdigest()


def _dataset_of(files: Sequence[Place], root: Place | None) -> Any:
    """Return the data set of some Parquet files, in this order. One schema is read."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        return ds.dataset(
            [file.path for file in files],
            format=_file_format(),
            filesystem=files[0].filesystem,
            partitioning="hive",
            partition_base_dir=None if root is None else root.path,
        )
    except pa.ArrowInvalid as error:
        if "duplicate field names" not in str(error):
            raise
    raise InvalidInputError(
        f"{files[0].name!r} has more than one column of the same name",
        remedy="rename the duplicates, and write the file again",
    )


# What lies beside the files of tables whose current rows only their own reader knows.
_TABLES = ("_delta_log", ".hoodie", "metadata")


def _check_no_table(place: Place, folder: str, files: Iterable[Place]) -> None:
    """Raise an error if some files below a folder are metadata of a table."""
    for file in files:
        parts = PurePosixPath(file.path[len(folder) :].lstrip("/")).parts[:-1]
        for marker in _TABLES:
            if marker in parts and (marker != "metadata" or ".metadata.json" in file.path):
                raise InvalidInputError(
                    "X is in the folder of a table (Delta table, Iceberg or Hudi), whose files "
                    f"hold rows of all its versions: {place.name!r}",
                    argument="X",
                    remedy="pass deltalake.DeltaTable(path).to_pyarrow_dataset(), the table that "
                    "pyiceberg or hudi reads, or a list of the files of one version",
                )


def check_outside(place: Place) -> None:
    """Raise an error for a folder of partitions or of data, or a glob, in the folder of a table."""
    path = PurePosixPath(place.path)
    while is_glob(path.name) or "=" in path.name or path.name == "data":
        path = path.parent
        for marker in _TABLES:
            metadata = place.at(str(path / marker))
            if metadata.exists:
                _check_no_table(place, str(path), metadata.files())


def parquet_files(root: Place) -> list[Place]:
    """Return the Parquet files at a place. None without such files."""
    if not root.is_local and root.suffix in SUFFIXES:
        is_file = root.filesystem.info(root.path)["type"] == "file"  # or the error that says why
    else:
        is_file = root.is_file
    if is_file:
        return [root] if root.suffix in SUFFIXES else []
    files = root.files()
    _check_no_table(root, root.path, files)
    check_outside(root)
    return [file for file in files if file.suffix in SUFFIXES and not _is_hidden(file, root)]


def data_files(root: Place) -> list[Place]:
    """Return the files in a folder, without logs, marks and unfinished writes of other tools."""
    return [file for file in root.files() if not _is_hidden(file, root)]


def _is_hidden(file: Place, root: Place) -> bool:
    below = PurePosixPath(file.path[len(root.path) :].lstrip("/"))
    return any(part.startswith((".", "_")) for part in below.parts)


def open_parquet(place: Place, name: str, _stack: ExitStack, _options: ReadOptions) -> Any:
    """Open a Parquet file or folder, passed as the argument `name`. See `ParquetFiles`."""
    import_reader("pyarrow", "dataframe", name)
    return ParquetFiles(place)
