"""Parquet files: columns by name, and row groups whose lengths are known before they are read."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
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
from daskcoreset.errors import InvalidInputError, InvalidTypeError, StoreError
from daskcoreset.inputs.arrays import JoinedRows, MemoryRows, RowArray
from daskcoreset.inputs.dataframes import (
    common_dtype,
    expanded,
    frame_dtype,
    from_arrow,
    number_dtype,
    stored_name,
    to_numpy,
    vector_of,
    vectors_of,
)
from daskcoreset.inputs.filesystems import (
    Place,
    clear_errors,
    here,
    is_glob,
    read_clearly,
    shortened,
)
from daskcoreset.inputs.options import ReadOptions, check_columns
from daskcoreset.storage.locations import clean_url

SUFFIXES = (".parquet", ".parq", ".pq")

# Footers of remote files are waited for, not worked for.
_FOOTERS_AT_A_TIME = 16


# --- rows --------------------------------------------------------------------------------


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
    keys : list of pyarrow.Field
        Columns that are one value in the whole file: those of the names of its folders.
    folder : pyarrow.compute.Expression
        Their values.
    """

    path: str
    filesystem: Any
    name: str
    footer: str
    keys: list[Any]
    folder: Any

    def read(self, group: int, columns: Sequence[str]) -> Any:
        """Return the columns of a row group that are there."""
        import pyarrow as pa

        arrow = _file_format(page_checksum_verification=True)
        whole = arrow.make_fragment(self.path, self.filesystem, self.folder)
        if _footer_of(whole) != self.footer:
            raise StoreError(
                f"{self.name!r} on {here()} differs from the file that was opened, "
                "in columns, types, rows or values",
                remedy="let every worker see the same files, with the same version of "
                "pyarrow, and open them again if they were rewritten",
            )
        schema = pa.schema([*whole.physical_schema, *self.keys])
        stored = [name for name in columns if name in schema.names]
        # The threads are those of Dask.
        return whole.subset(row_group_ids=[group]).to_table(schema, stored, use_threads=False)


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Rows of a file that are stored together, and the number of the first one in the data."""

    file: _File
    number: int
    rows: int
    first_row: int

    def read(self, columns: Sequence[str], start: int, stop: int) -> Any:
        """Return some columns of some rows as a table of Arrow. The whole group is decoded."""
        what = f"row group {self.number} of {self.file.name!r} (its rows {start} to {stop})"
        work = partial(self.file.read, self.number, columns)
        return read_clearly(lambda: what, work, self.file.path).slice(start, stop - start)


@dataclass(frozen=True, eq=False)
class GroupRows(RowArray):
    """Some columns of a row group as a matrix, or one as a vector.

    Attributes
    ----------
    group : RowGroup
    stored : list of str
        Columns that are read.
    vectors : dict
        Those that are vectors, as `vectors_of` returns them.
    """

    group: RowGroup
    stored: list[str]
    vectors: Mapping[int, tuple[int, np.dtype[Any]]]
    flat: bool
    dtype: np.dtype[Any]
    columns: tuple[str, ...]
    in_process: bool

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Rows, and columns of a matrix."""
        return (self.group.rows,) if self.flat else (self.group.rows, len(self.columns))

    @property
    def pieces(self) -> tuple[int, ...]:  # type: ignore[override]
        """Rows that are stored together: all."""
        return (self.group.rows,)

    def __getitem__(self, rows: slice) -> AnyArray:
        first_row = self.group.first_row + rows.start
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
        All columns, without rows. Vectors are lists of a fixed size.
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
            with clear_errors("X", files[0].name, "a Parquet file"):
                source = _dataset_of(files, base or (root if len(roots) == 1 else None))
        self._in_process = root is not None and root.in_process
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
        self.groups: list[RowGroup] = []
        # The types of a column, with a file of each. Files with nulls alone tell none.
        self._kinds: dict[str, dict[Any, str]] = {}
        self._n_found: Counter[str] = Counter()
        first_row = 0
        for file, fragment in self._files:
            for field in [*fragment.physical_schema, *file.keys]:
                kind = getattr(field.type, "storage_type", field.type)  # of an extension
                self._n_found[field.name] += 1
                known = self._kinds.setdefault(field.name, {})
                if not pa.types.is_null(kind):
                    known.setdefault(kind, file.name)
            for group in fragment.row_groups:
                if group.num_rows:
                    self.groups.append(RowGroup(file, group.id, group.num_rows, first_row))
                    first_row += group.num_rows
        metadata = self._files[0][1].physical_schema.metadata  # what pandas says of an index
        fields = [(name, self._type_of(name)) for name in self._kinds]
        self.table = pa.schema(fields, metadata).empty_table()

    def _type_of(self, name: str) -> Any:
        """Return the type that holds the types that a column has in all files."""
        import pyarrow as pa

        kinds = self._kinds[name]
        numbers = [dtype for kind in kinds if (dtype := number_dtype(kind)) is not None]
        vectors = [vector for kind in kinds if (vector := vector_of(kind)) is not None]
        if numbers and len(numbers) == len(kinds):
            return pa.from_numpy_dtype(common_dtype(numbers))
        if vectors and len(vectors) == len(kinds):
            width = vectors[0][0] or self._first_length(name)
            values = pa.from_numpy_dtype(common_dtype(dtype for _, dtype in vectors))
            return pa.list_(values, width) if width else pa.list_(values)
        return next(iter(kinds), pa.null())

    def _first_length(self, name: str) -> int:
        """Read the first list of a column, and return its length. Zero if there is none."""
        import pyarrow.dataset as ds

        for file, fragment in self._files:
            if name in fragment.physical_schema.names:
                with clear_errors("X", file.name, "a Parquet file"):
                    rows = fragment.head(1, columns=[name], filter=ds.field(name).is_valid())
                if len(rows) and rows[name][0].as_py():
                    return len(rows[name][0].as_py())
        return 0

    def rows(self, part: Any) -> RowArray:
        """Return columns and elements of vectors as a matrix, or one as a vector.

        Parameters
        ----------
        part : pandas.DataFrame or Series
            Some columns of `table` as a frame, without rows.
        """
        flat = part.ndim == 1
        columns = (part.name,) if flat else tuple(part.columns)
        stored = list(dict.fromkeys(stored_name(name, self.table.column_names) for name in columns))
        self._check(stored)
        # A null of any column becomes NaN, which only a floating dtype can hold.
        dtype = frame_dtype(part, missing=not flat or self._has_nulls(stored[0]))
        if not self.groups:
            return MemoryRows(np.empty((0,) if flat else (0, len(columns)), dtype))
        vectors = vectors_of(from_arrow(self.table.select(stored)))
        told = (stored, vectors, flat, dtype, columns, self._in_process)
        joined = JoinedRows([GroupRows(group, *told) for group in self.groups])
        joined.name = self.path or None
        return joined

    def _check(self, columns: Sequence[str]) -> None:
        """Check that columns are alike in all files."""
        for name in columns:
            kinds, problem = self._kinds[name], None
            if self._n_found[name] < len(self._files):
                some = [one for one in self._kinds if self._n_found[one] < len(self._files)]
                problem = f"columns: some lack {some}"
            elif len({number_dtype(kind) is None for kind in kinds}) > 1:
                found = " and ".join(f"{kind} in {file!r}" for kind, file in kinds.items())
                problem = f"types: column {name!r} is {found}"
            if problem is not None:
                raise InvalidInputError(
                    f"X has files with different {problem}",
                    argument="X",
                    remedy="pass files of one schema, or choose columns that all of them have, "
                    "by open_rows(X, columns=[...])",
                )

    def _has_nulls(self, name: str) -> bool:
        """Whether a column may hold nulls, as far as footers tell."""
        import pyarrow.dataset as ds

        for file, fragment in self._files:
            if name in {field.name for field in file.keys}:
                if ds.get_partition_keys(file.folder)[name] is None:
                    return True
                continue
            footer = fragment.metadata
            columns = [footer.schema.column(j).path for j in range(footer.num_columns)]
            for group in map(footer.row_group, range(footer.num_row_groups)):
                # Without statistics it is unknown.
                known = [group.column(j).statistics for j, one in enumerate(columns) if one == name]
                if any(one is None or one.null_count != 0 for one in known):
                    return True
        return False


def _opened(root: Place | None, schema: Any, fragment: Any) -> tuple[_File, Any]:
    """Read the footer of a file. Its name is below `root`, if that is known."""
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
        stored = fragment.physical_schema.names
        check_columns(stored, stored)
    folder = fragment.partition_expression
    keys = [schema.field(key) for key in ds.get_partition_keys(folder) if key not in stored]
    return _File(path, fragment.filesystem, name, footer, keys, folder), fragment


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


def open_parquet(
    place: Place, _name: str, _stack: ExitStack, _options: ReadOptions
) -> ParquetFiles:
    """Open a Parquet file or folder. Every task opens its files for itself."""
    return ParquetFiles(place)


def open_dataset(X: Any) -> Any:
    """Return a data set of Arrow as files or a table. Anything else is returned unchanged.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If the rows of a table or data set cannot be counted.
    """
    library, kind = type(X).__module__.partition(".")[0], type(X).__name__
    if library == "polars" and kind == "LazyFrame":
        raise InvalidTypeError(
            "X is a LazyFrame of polars, which is not computed yet",
            argument="X",
            remedy="pass X.collect(), or write it with X.sink_parquet(path) and pass the path",
        )
    if library == "pyarrow" and kind == "RecordBatchReader":
        raise InvalidTypeError(
            "X can be read only once", argument="X", remedy="pass the table, X.read_all()"
        )
    if library != "pyarrow" or not hasattr(type(X), "get_fragments"):
        return X
    if getattr(X, "_scan_options", None):
        raise InvalidInputError(
            "X is a data set with a filter, so its number of rows is unknown",
            argument="X",
            remedy="pass the table, X.to_table(), or write it with pyarrow.dataset.write_dataset",
        )
    return X.to_table() if kind == "InMemoryDataset" else ParquetFiles(X)


# --- folders -----------------------------------------------------------------------------

# What lies beside the files of tables whose current rows only their own reader knows.
_TABLES = ("_delta_log", ".hoodie", "metadata")
_OF_TABLE = re.compile(r"/(_delta_log|\.hoodie)/|/metadata/[^/]*\.metadata\.json$")


def parquet_files(root: Place) -> list[Place]:
    """Return the Parquet files at a place. None without such files."""
    # Or the error that says why.
    if root.suffix in SUFFIXES and root.filesystem.info(root.path)["type"] == "file":
        return [root]
    files = root.files()
    check_no_table(root, files)
    return [file for file in _visible(files, root) if file.suffix in SUFFIXES]


def data_files(root: Place) -> list[Place]:
    """Return the files in a folder, without logs, marks and unfinished writes of other tools."""
    return _visible(root.files(), root)


def _visible(files: Iterable[Place], root: Place) -> list[Place]:
    start = len(root.path.rstrip("/"))
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
