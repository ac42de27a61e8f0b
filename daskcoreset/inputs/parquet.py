"""Parquet files: columns by name, and row groups whose lengths are known before they are read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from daskcoreset.core.messages import import_optional
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidInputError, StoreError
from daskcoreset.inputs.arrays import JoinedRows, MemoryRows, RowArray
from daskcoreset.inputs.dataframes import (
    as_arrow,
    common_dtype,
    expanded,
    frame_dtype,
    from_arrow,
    number_dtype,
    stored_name,
    to_numpy,
    vector_dtype,
    vectors_of,
)
from daskcoreset.inputs.filesystems import (
    Place,
    here,
    is_glob,
    opening,
    reading,
    shortened,
)
from daskcoreset.inputs.options import ReadOptions, check_columns
from daskcoreset.storage.locations import clean_url

SUFFIXES = (".parquet", ".parq", ".pq")

# Footers of remote files are waited for, not worked for.
_FOOTERS_AT_A_TIME = 16


# --- rows --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Rows of a Parquet file that are stored together. Tasks open the file again.

    Attributes
    ----------
    path, filesystem
        As pyarrow takes them.
    name : str
        Name of the file, without secrets.
    footer : str
        Digest of its footer.
    keys : list of pyarrow.Field
        Columns that are one value in the whole file: those of the names of its folders.
    folder : pyarrow.compute.Expression
        Their values.
    number, rows : int
    """

    path: str
    filesystem: Any
    name: str
    footer: str
    keys: list[Any]
    folder: Any
    number: int
    rows: int

    def read(self, columns: Sequence[str], start: int, stop: int) -> Any:
        """Return those columns that are there, of some rows. The whole group is decoded."""
        what = f"row group {self.number} of {self.name!r} (its rows {start} to {stop})"
        with reading(what):
            return self._read(columns).slice(start, stop - start)

    def _read(self, columns: Sequence[str]) -> Any:
        import pyarrow as pa

        arrow = _file_format(page_checksum_verification=True)
        file = arrow.make_fragment(self.path, self.filesystem, self.folder)
        if _footer_of(file) != self.footer:
            raise StoreError(
                f"{self.name!r} on {here()} differs from the file that was opened, "
                "in columns, types, rows or values",
                remedy="let every worker see the same files, with the same version of "
                "pyarrow, and open them again if they were rewritten",
            )
        schema = pa.schema([*file.physical_schema, *self.keys])
        stored = [name for name in columns if name in schema.names]
        group = file.subset(row_group_ids=[self.number])
        return group.to_table(schema, stored, use_threads=False)  # the threads are those of Dask


@dataclass(frozen=True, eq=False)
class GroupRows(RowArray):
    """Some columns of a row group as a matrix, or one as a vector.

    Attributes
    ----------
    group : RowGroup
    first_row : int
        Number of its first row in the data.
    stored : list of str
        Columns that are read.
    vectors : dict
        Those that are vectors, as `vectors_of` returns them.
    """

    group: RowGroup
    first_row: int
    stored: list[str]
    vectors: Mapping[int, tuple[int, np.dtype[Any]]]
    flat: bool
    decoder = "pyarrow"
    dtype: np.dtype[Any]
    columns: tuple[str, ...]
    in_process: bool

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Rows, and columns of a matrix."""
        return (self.group.rows,) if self.flat else (self.group.rows, len(self.columns))

    @property
    def granularity(self) -> int:  # type: ignore[override]
        """Rows that are stored together: all."""
        return self.group.rows

    def __getitem__(self, rows: slice) -> AnyArray:
        first_row = self.first_row + rows.start
        table = self.group.read(self.stored, rows.start, rows.stop)
        frame = expanded(from_arrow(table, first_row), self.vectors, first_row)
        columns = self.columns[0] if self.flat else list(self.columns)
        return to_numpy(frame[columns], self.dtype, first_row)


# --- files -------------------------------------------------------------------------------


class ParquetFiles:
    """The footers of Parquet files: columns, row groups and their lengths.

    Parameters
    ----------
    source : pyarrow.dataset.Dataset, Place, or sequence of Place
        A data set of Parquet files; or files and folders, whose Parquet files are read in the
        natural order of their names: ``part.10.parquet`` after ``part.9.parquet``, as Dask reads
        what it writes. The names of folders such as ``year=2024`` are columns.
    base : Place, optional
        The folder below which names of folders are columns. By default `source` itself.

    Attributes
    ----------
    path : str
        Name in errors and the provenance.
    table : pyarrow.Table
        All columns, with the first vector of those that hold vectors in its only row.
    groups : list of RowGroup
        In the order of the rows.
    """

    def __init__(self, source: Any, base: Place | None = None) -> None:
        import_optional("pyarrow", "X")
        import pyarrow as pa
        import pyarrow.dataset as ds

        self.path, root = "", None
        if not isinstance(source, ds.Dataset):
            roots = [source] if isinstance(source, Place) else source
            self.path, root = shortened([one.name for one in roots]), roots[0]
            files = [file for one in roots for file in parquet_files(one)]
            if not files:
                raise InvalidInputError(
                    f"X names no Parquet file: {root.name!r}",
                    argument="X",
                    remedy="check the path",
                )
            base = base or (root if len(roots) == 1 else None)
            with opening("X", files[0].name, "a Parquet file"):
                source = ds.dataset(
                    [file.path for file in files],
                    format=_file_format(),
                    filesystem=root.filesystem,
                    partitioning="hive",
                    partition_base_dir=base and base.path,
                )
        self._in_process = root is not None and root.in_process
        with ThreadPoolExecutor(_FOOTERS_AT_A_TIME) as pool:
            work = partial(_opened, root, source.schema)
            opened = list(pool.map(work, source.get_fragments()))
        # Writers guess the types of files without rows.
        self._files = [one for one in opened if one[2]] or opened
        self.groups = [group for _, _, groups in self._files for group in groups]
        # Columns that differ from file to file, and how.
        self._unlike: dict[str, str] = {}
        schemas = {schema.remove_metadata(): file.path for file, schema, _ in self._files}
        names = dict.fromkeys(name for schema in schemas for name in schema.names)
        columns = {name: self._column(name, schemas) for name in names}
        # With what pandas says of an index.
        self.table = pa.table(columns, metadata=self._files[0][1].metadata)

    def _column(self, name: str, schemas: Mapping[Any, str]) -> Any:
        """Return the first vector of a column, or a null, of a type that holds all of them.

        Parameters
        ----------
        name : str
        schemas : mapping of pyarrow.Schema to str
            With a file of each.
        """
        import pyarrow as pa

        kinds = {}
        for schema, file in schemas.items():
            kind = schema.field(name).type if name in schema.names else None
            if kind != pa.null():  # files with nulls alone tell none
                kinds[getattr(kind, "storage_type", kind)] = file
        if len({kind if kind is None else number_dtype(kind) is None for kind in kinds}) > 1:
            self._unlike[name] = " and ".join(
                f"{kind or 'missing'} in {clean_url(file)!r}" for kind, file in kinds.items()
            )
        kinds.pop(None, None)
        numbers = [dtype for kind in kinds if (dtype := number_dtype(kind)) is not None]
        vectors = [dtype for kind in kinds if (dtype := vector_dtype(kind)) is not None]
        if numbers and len(numbers) == len(kinds):
            return pa.nulls(1, pa.from_numpy_dtype(common_dtype(numbers)))
        if vectors and len(vectors) == len(kinds):
            kind = pa.list_(pa.from_numpy_dtype(common_dtype(vectors)))
            return pa.array([self._first_list(name)], kind)
        return pa.nulls(1, next(iter(kinds), pa.null()))

    def _first_list(self, name: str) -> list[Any] | None:
        """Read the first list of a column that has values."""
        import pyarrow.dataset as ds

        is_valid = ds.field(name).is_valid()
        for file, schema, _ in self._files:
            if name in schema.names:
                with opening("X", file.path, "a Parquet file"):
                    (first,) = file.head(1, columns=[name], filter=is_valid)
                if len(first) and first[0].as_py():
                    return list(first[0].as_py())
        return None

    def rows(self, part: Any) -> RowArray:
        """Return columns and elements of vectors as a matrix, or one as a vector.

        Parameters
        ----------
        part : pandas.DataFrame or Series
            Some columns of `table` as a frame.
        """
        import pyarrow.dataset as ds

        flat = part.ndim == 1
        columns = (part.name,) if flat else tuple(part.columns)
        stored = list(dict.fromkeys(stored_name(name, self.table.column_names) for name in columns))
        for name in stored:
            if name in self._unlike:
                raise InvalidInputError(
                    f"X has files with different columns: {name!r} is {self._unlike[name]}",
                    argument="X",
                    remedy="pass files of one schema, or choose columns that all of them have, "
                    "by open_rows(X, columns=[...])",
                )
        # A null of any column becomes NaN, which only a floating dtype can hold.
        missing = not flat or any(
            one.subset(ds.field(stored[0]).is_null(), schema).row_groups
            for one, schema, _ in self._files
        )
        dtype = frame_dtype(part, missing=missing)
        if not self.groups:
            return MemoryRows(np.empty((0,) if flat else (0, len(columns)), dtype))
        vectors = vectors_of(from_arrow(self.table.select(stored)))
        parts, first_row = [], 0
        for group in self.groups:
            told = (group, first_row, stored, vectors, flat, dtype, columns)
            parts.append(GroupRows(*told, in_process=self._in_process))
            first_row += group.rows
        joined = JoinedRows(parts)
        joined.name = self.path or None
        return joined


def _opened(root: Place | None, schema: Any, fragment: Any) -> tuple[Any, Any, list[RowGroup]]:
    """Read the footer of a file, and return the file, its schema, and groups with rows.

    Its name is below `root`, if that is known.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not isinstance(fragment, ds.ParquetFileFragment):
        raise InvalidInputError(
            "X is a data set of files that are not Parquet, so its number of rows is unknown "
            "before reading",
            argument="X",
            remedy="write it as Parquet, or pass the table, X.to_table()",
        )
    name = clean_url(fragment.path) if root is None else root.at(fragment.path).name
    local = fragment.filesystem.type_name == "local"
    # Workers may look for it from another folder.
    path = os.path.abspath(fragment.path) if local else fragment.path  # noqa: PTH100 - no links
    with opening("X", name, "a Parquet file"):
        whole = fragment
        if root is None:  # a data set may know of some row groups only
            whole = _file_format().make_fragment(path, fragment.filesystem)
        footer = _footer_of(whole)
        fragment.ensure_complete_metadata()
        own, folder = fragment.physical_schema, fragment.partition_expression
        check_columns(own.names, own.names)
    keys = [schema.field(key) for key in ds.get_partition_keys(folder) if key not in own.names]
    file = (path, fragment.filesystem, name, footer, keys, folder)
    groups = [(group.id, group.num_rows) for group in fragment.row_groups if group.num_rows]
    stored = pa.schema([*own, *keys], own.metadata)
    return fragment, stored, [RowGroup(*file, *group) for group in groups]


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


def open_parquet(place: Place, _stack: ExitStack, _options: ReadOptions) -> ParquetFiles:
    """Open a Parquet file or folder. Every task opens its files for itself."""
    return ParquetFiles(place)


def open_table(X: Any) -> Any:
    """Return a frame of polars or a data set of Arrow as a table or files. Others are unchanged."""
    if (table := as_arrow(X)) is not None:
        return table
    if type(X).__module__ != "pyarrow._dataset":
        return X
    if getattr(X, "_scan_options", None):
        raise InvalidInputError(
            "X is a data set with a filter, so its number of rows is unknown",
            argument="X",
            remedy="pass the table, X.to_table(), or write it with pyarrow.dataset.write_dataset",
        )
    return X.to_table() if type(X).__name__ == "InMemoryDataset" else ParquetFiles(X)


# --- folders -----------------------------------------------------------------------------

# What lies beside the files of tables whose current rows only their own reader knows.
_TABLES = ("_delta_log", ".hoodie", "metadata")
_OF_TABLE = re.compile(r"/(_delta_log|\.hoodie)/|/metadata/[^/]*\.metadata\.json$")


def parquet_files(root: Place) -> list[Place]:
    """Return the Parquet files at a place. None without such files."""
    # Or the error that says why.
    if root.suffix in SUFFIXES and root.filesystem.info(root.path)["type"] == "file":
        return [root]
    return [file for file in data_files(root) if file.suffix in SUFFIXES]


def data_files(root: Place) -> list[Place]:
    """Return the files in a folder, without logs, marks and unfinished writes of other tools."""
    files, start = root.files(), len(root.path.rstrip("/"))
    check_no_table(root, files)
    return [file for file in files if not re.search(r"/[._]", file.path[start:])]


def check_no_table(place: Place, files: Iterable[Place] = ()) -> None:
    """Raise an error for a folder, or a glob, of files of a table of many versions.

    Parameters
    ----------
    place : Place
    files : iterable of Place
        All files in the folder.
    """
    paths, folder = [file.path for file in files], PurePosixPath(place.path)
    while is_glob(folder.name) or "=" in folder.name or folder.name == "data":
        folder = folder.parent
        beside = [place.at(str(folder / name)) for name in _TABLES]
        paths += [file.path for one in beside if one.exists for file in one.files()]
    if any(map(_OF_TABLE.search, paths)):
        raise InvalidInputError(
            "X is in the folder of a table (Delta table, Iceberg or Hudi), whose files "
            f"hold rows of all its versions: {place.name!r}",
            argument="X",
            remedy="pass deltalake.DeltaTable(path).to_pyarrow_dataset(), the table that "
            "pyiceberg or hudi reads, or a list of the files of one version",
        )
