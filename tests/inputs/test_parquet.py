"""Parquet files: their order, columns, labels and row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.parquet import ParquetFiles, parquet_files
from daskcoreset.inputs.places import Place
from tests.tools.sources import read


def write(path: Path, **columns: Any) -> None:
    pq.write_table(pa.table(columns), path)


def test_parquet_files__natural_order_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("part.10.parquet", "part.9.parquet", "_metadata.parquet", ".x.parquet", "a.txt"):
        (tmp_path / name).touch()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.pq").touch()
    found = [Path(file.path).name for file in parquet_files(Place(str(tmp_path)))]
    assert found == ["b.pq", "part.9.parquet", "part.10.parquet"]
    assert parquet_files(Place(str(tmp_path / "a.txt"))) == []


def test_parquet__columns_in_another_order(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", a=[1, 2], b=[10, 20])
    write(tmp_path / "1.parquet", b=[30.5], a=[3])
    files = ParquetFiles(str(tmp_path))
    source = files.table(files.names)
    assert source.dtype == np.float64
    np.testing.assert_array_equal(read(source, 0, 3), [[1, 10], [2, 20], [3, 30.5]])


def test_parquet__other_columns_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", a=[1], b=[2])
    write(tmp_path / "1.parquet", a=[1], c=[2])
    with pytest.raises(InvalidInputError, match=r"different columns.*'b', 'c'.*one schema"):
        ParquetFiles(str(tmp_path))


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("last", [3, None])
def test_parquet__labels_are_integers_unless_some_are_missing(
    statistics: bool, last: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"y": pa.array([1, 2, last])})
    pq.write_table(table, path, row_group_size=2, write_statistics=statistics)
    source = ParquetFiles(str(path), ("y",)).column("y")
    # Without statistics nobody knows before reading: the dtype must be the same in all blocks.
    whole = statistics and last is not None
    assert source.dtype == (np.int64 if whole else np.float64)
    expected = np.array([1, 2, np.nan if last is None else last])
    np.testing.assert_array_equal(read(source, 0, 3), expected)


def test_parquet__cut_keeps_row_groups(tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(100.0)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=30)
    source = ParquetFiles(str(tmp_path / "a.parquet")).column("a")
    assert source.cut(70) == (60, 40)
    assert source.cut(10) == (30, 30, 30, 10)
