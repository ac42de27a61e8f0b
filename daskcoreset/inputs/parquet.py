"""Parquet files: row groups as blocks, their lengths known from the footers alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs.dataframes import OBJECT, check_numeric, common_dtype
from daskcoreset.inputs.sources import Loader, Source, Table, import_reader

_PARQUET = (".parquet", ".parq", ".pq")


def open_parquet(path: str, name: str, stack: ExitStack, keys: Sequence[str] = ()) -> ParquetFiles:
    """Open a Parquet file or folder, passed as the argument `name`; see `ParquetFiles`."""
    del stack  # every task opens its files for itself
    import_reader("pyarrow", "dataframe", name)
    return ParquetFiles(path, keys)


class ParquetFiles(Table):
    """The footers of a Parquet file or folder: columns, row groups and their lengths.

    Parameters
    ----------
    path : str
        A file, or a folder whose Parquet files are read in the natural order of their
        names: ``part.10.parquet`` after ``part.9.parquet``, as Dask reads what it writes.
    keys : sequence of str
        Columns that will be read alone, as labels or weights.
    """

    def __init__(self, path: str, keys: Sequence[str] = ()) -> None:
        import pyarrow.parquet as pq

        self.path = path
        self.groups: list[tuple[str, int, int]] = []  # file, number in the file, rows
        self._types: dict[str, list[Any]] = {}  # of every file, by the names of the columns
        self._nulls = dict.fromkeys(keys, False)
        for file in parquet_files(path):
            metadata = pq.read_metadata(file)
            self._add_columns(file, metadata.schema.to_arrow_schema())
            for index in range(metadata.num_row_groups):
                group = metadata.row_group(index)
                if group.num_rows:
                    self.groups.append((file, index, group.num_rows))
                    self._note_nulls(group)
        self.names = list(self._types)

    def _add_columns(self, file: str, schema: Any) -> None:
        if self._types and set(schema.names) != set(self._types):
            differing = sorted(set(schema.names) ^ set(self._types))
            raise InvalidInputError(
                f"X has files with different columns: {file!r} and those before it differ in "
                f"{differing}; pass files of one schema."
            )
        for field in schema:
            self._types.setdefault(field.name, []).append(field.type)

    def _note_nulls(self, group: Any) -> None:
        for index in range(group.num_columns):
            column = group.column(index)
            if column.path_in_schema in self._nulls:
                counted = column.statistics is not None and column.statistics.has_null_count
                # A footer that does not say may hide some.
                self._nulls[column.path_in_schema] |= (
                    not counted or column.statistics.null_count > 0
                )

    def table(self, columns: Sequence[str]) -> Source:
        """Return some columns as the matrix X."""
        plain = {name: _plain_dtype(self._types[name]) for name in columns}
        check_numeric({name: self._types[name][0] for name in columns if plain[name] == OBJECT})
        # A null of any column becomes NaN, which only a floating dtype can hold.
        dtype = common_dtype([np.float32, *plain.values()])
        return self._source(tuple(columns), dtype)

    def column(self, name: str) -> Source:
        """Return one column as a vector of labels or weights."""
        dtype = _plain_dtype(self._types[name])
        if self._nulls.get(name, True) and dtype.kind in "biu":
            dtype = np.result_type(dtype, np.float32)
        return self._source((name,), dtype, flat=True)

    def _source(
        self, columns: tuple[str, ...], dtype: np.dtype[Any], *, flat: bool = False
    ) -> Source:
        starts = np.cumsum([0, *(rows for _, _, rows in self.groups)])
        n_rows = int(starts[-1])

        def loader(start: int, stop: int) -> Loader:
            # Every task reads the row groups that its rows are in.
            first = int(np.searchsorted(starts, start, side="right")) - 1
            last = int(np.searchsorted(starts, stop, side="left"))
            pieces = tuple(
                (path, group, max(0, start - begin), min(rows, stop - begin))
                for (path, group, rows), begin in zip(
                    self.groups[first:last], starts[first:last].tolist(), strict=True
                )
            )
            return partial(_parquet_rows, pieces, columns, dtype, flat=flat)

        return Source(
            (n_rows,) if flat else (n_rows, len(columns)),
            dtype,
            loader,
            pieces=tuple(rows for _, _, rows in self.groups),
            name=self.path,
            columns=columns,
        )


def _parquet_rows(
    pieces: Sequence[tuple[str, int, int, int]],
    columns: tuple[str, ...],
    dtype: np.dtype[Any],
    *,
    flat: bool,
) -> AnyArray:
    """Read rows, one row group at a time; a piece is a path, a group, first and last row."""
    import pyarrow.parquet as pq

    out = np.empty((sum(last - first for _, _, first, last in pieces), len(columns)), dtype)
    start = 0
    for path, group, first, last in pieces:
        with pq.ParquetFile(path) as file:
            table = file.read_row_group(group, columns=list(columns))
        rows = slice(start, start + last - first)
        for j, name in enumerate(columns):
            out[rows, j] = _column_to_numpy(table[name].slice(first, last - first), dtype)
        start = rows.stop
    return out[:, 0] if flat else out


def _column_to_numpy(column: Any, dtype: np.dtype[Any]) -> AnyArray:
    if dtype.kind == "f" and column.null_count:
        column = column.cast("float64")  # where a null becomes NaN
    return np.asarray(column.to_numpy())


def _plain_dtype(kinds: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype that holds the types that one column has in all files."""
    import pyarrow.types as pt

    if all(pt.is_integer(k) or pt.is_floating(k) or pt.is_boolean(k) for k in kinds):
        return common_dtype(kind.to_pandas_dtype() for kind in kinds)
    return OBJECT


def parquet_files(path: str) -> list[str]:
    """Return the Parquet files at a path; empty if there are none."""
    from dask.utils import natural_sort_key

    root = Path(path)
    if root.is_file():
        return [path] if root.suffix.lower() in _PARQUET else []
    files = (
        file
        for file in root.rglob("*")
        if file.suffix.lower() in _PARQUET
        # Logs and unfinished writes of other tools.
        and not any(part.startswith((".", "_")) for part in file.relative_to(root).parts)
    )
    return sorted(map(str, files), key=natural_sort_key)
