"""Parquet files and folders: order, columns, row groups, and what other tools write."""

from __future__ import annotations

import base64
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from tests.acceptance.face import build, call, errors, estimators, open_rows, plan, source_rows
from tests.acceptance.tools.input_kinds import all_rows
from tests.pairs import each, pairs

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask


def write(path: Path, **columns: Any) -> None:
    pq.write_table(pa.table(columns), path)


def test_parquet__other_columns_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", a=[1], b=[2])
    write(tmp_path / "1.parquet", a=[1], c=[2])
    for columns in (None, ["b"], ["a", "c"]):
        with pytest.raises(
            errors.InvalidInputError, match=r"different columns: '[bc]' is .*missing.*one schema"
        ):
            build(open_rows(tmp_path, columns=columns))
    assert len(build(open_rows(tmp_path, columns=["a"]), size=1)) == 1


@pytest.mark.parametrize(("missing", "kind"), [(False, "int64"), (True, "float64")])
def test_column__categories_that_are_numbers_are_numbers(missing: bool, kind: str) -> None:
    labels = [3, 7, None if missing else 3] * 2
    frame = pd.DataFrame({"a": np.arange(6.0), "y": pd.Categorical(labels)})
    for source in (frame, pa.Table.from_pandas(frame)):
        rows = build(source, y="y", size=3, random_state=0)
        assert rows.labels is not None
        assert rows.labels.dtype == kind
        np.testing.assert_array_equal(rows.labels, np.array(labels, float)[rows.indices])


def test_parquet__damaged_pages_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=400), "b": rng.normal(size=400)})
    pq.write_table(table, path, row_group_size=100, write_page_checksum=True, compression="none")
    column = pq.read_metadata(path).row_group(2).column(1)
    offset = min(x for x in (column.dictionary_page_offset, column.data_page_offset) if x)
    data = bytearray(path.read_bytes())
    data[offset + column.total_compressed_size - 9] ^= 4  # one bit of one value
    path.write_bytes(bytes(data))
    named = r"row group 2 of '.*a.parquet' \(its rows 0 to 100\) cannot be read .*restore it"
    with pytest.raises(errors.StoreError, match=named) as caught:
        build(path, size=10, chunks=100)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@each(
    as_dataset=[False, True],
    other={
        "values": lambda: (rows(4000) + 500.0, 500, "abc"),
        "types": lambda: (rows(4000).astype("f4"), 500, "abc"),
        "order": lambda: (rows(4000), 500, "cba"),
        "fewer rows": lambda: (rows(3900), 500, "abc"),
        "other groups": lambda: (rows(6400), 800, "abc"),
    },
)
def test_parquet__another_file_where_it_is_read(
    other: Any, as_dataset: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"

    def written(values: Any, group: int, order: str) -> None:
        columns = {name: values[:, "abc".index(name)] for name in order}
        pq.write_table(pa.table(columns), path, row_group_size=group)

    written(rows(4000), 500, "abc")
    X: Any = ds.dataset(path) if as_dataset else path
    lazy = plan(X, size=50, random_state=0, chunks=500)
    expected = lazy.compute()
    written(rows(4000), 500, "abc")  # the same file, as a copy is
    assert expected.equals(lazy.compute())
    written(*other())
    with pytest.raises(
        errors.StoreError, match=r"a.parquet' on host .* differs from the file that was opened"
    ):
        lazy.compute()


def rows(n: int) -> Any:
    values: Any = np.random.default_rng(0).normal(size=(n, 3))
    return values


def test_dataset__that_knows_of_its_row_groups(tmp_path: Path) -> None:
    collected: list[Any] = []
    table = pa.table({"a": np.arange(100.0), "b": np.arange(100.0)})
    pq.write_to_dataset(
        table, tmp_path, metadata_collector=collected, basename_template="{i}.parquet"
    )
    pq.write_metadata(table.schema, tmp_path / "_metadata", collected)
    X = ds.parquet_dataset(tmp_path / "_metadata")
    assert set(build(X, size=10, random_state=0).points[:, 0]) <= set(range(100))


def test_columns__of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "twice.parquet"
    table = pa.table([pa.array(np.arange(20.0))] * 3, names=["a", "a", "b"])
    pq.write_table(table, path)
    for X in (path, [path, path]):
        with pytest.raises(errors.InvalidInputError, match=r"twice.parquet.*duplicate field names"):
            build(X, size=5)
    with pytest.raises(errors.InvalidInputError, match=r"more than one.*rename the duplicates"):
        build(table, size=5)
    coreset = build(open_rows(table, columns=["b"]), size=5)
    assert coreset.provenance["columns"] == ("b",)
    with pytest.raises(errors.InvalidInputError, match="rename the duplicates"):
        source_rows(coreset, table)
    frame = pd.DataFrame(np.ones((20, 3)), columns=["a", "a", "b"])
    assert build(frame, "b", size=5).points.shape == (5, 2)
    with pytest.raises(errors.InvalidInputError, match=r"y is 'a', but .*'a', 'a'"):
        build(frame, "a", size=5)
    with pytest.raises(errors.InvalidInputError, match=r"X has more than one column named \['a'\]"):
        build(open_rows(frame, columns=["a"]), size=5)
    with pytest.raises(errors.InvalidInputError, match="none of them twice"):
        build(open_rows(frame, columns=["b", "b"]), size=5)


@pytest.mark.parametrize("stored", [False, True])
def test_columns__of_decimals(stored: bool, tmp_path: Path) -> None:
    values = np.arange(40) / 4
    numbers = {"a": values, "b": values[::-1], "y": np.arange(40) % 2, "w": values + 1}
    decimals = {
        name: pa.array([Decimal(str(value)) for value in column], pa.decimal128(20, 2))
        for name, column in numbers.items()
    }
    X: Any = pa.table(decimals)
    if stored:
        X = tmp_path / "decimals.parquet"
        pq.write_table(pa.table(decimals), X)
    options: dict[str, Any] = {"size": 10, "random_state": 0}
    expected = build(
        np.stack([values, values[::-1]], axis=1), numbers["y"], sample_weight=values + 1, **options
    )
    found = build(X, "y", sample_weight="w", **options)
    assert np.array_equal(found.points, expected.points)
    assert np.array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.labels, expected.labels)
    null = pa.table({"a": pa.array([Decimal(1), None] * 10), "b": np.ones(20)})
    with pytest.raises(
        errors.InvalidInputError, match=r"X contains NaN in column 0 \('a'\) at row 1;"
    ):
        build(null, size=5)


def test_folder__natural_order_without_hidden_files(tmp_path: Path) -> None:
    for value, name in enumerate(("part.10.parquet", "part.9.parquet", "deep/b.pq")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, a=[1.0 * value])
    for name in ("_metadata.parquet", ".x.parquet", "a.txt"):
        (tmp_path / name).touch()
    np.testing.assert_array_equal(all_rows(tmp_path).points[:, 0], [2, 1, 0])
    with pytest.raises(errors.InvalidInputError, match="X"):
        build(tmp_path / "a.txt")


def test_files__columns_in_another_order_and_of_another_type(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", a=[1, 2], b=[10, 20])
    write(tmp_path / "1.parquet", b=[30.5], a=[3])
    found = all_rows(tmp_path).points
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1, 10], [2, 20], [3, 30.5]])
    write(tmp_path / "1.parquet", a=["x"], b=[1])
    with pytest.raises(
        errors.InvalidInputError, match=r"'a' is int64 in .* and string in .*1.parquet'"
    ):
        build(tmp_path)


@pairs(statistics=[True, False], last=[3, None])
def test_labels__are_integers_unless_some_are_missing(
    statistics: bool, last: int | None, tmp_path: Path
) -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0], "y": pa.array([1, 2, last])})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=2, write_statistics=statistics)
    labels = all_rows(path, "y", chunks=2).labels
    # Without statistics nobody knows before reading: the dtype must be the same in all blocks.
    assert labels.dtype == (np.int64 if statistics and last is not None else np.float64)
    np.testing.assert_array_equal(labels, [1, 2, np.nan if last is None else last])


def test_names_of_folders__are_columns(tmp_path: Path) -> None:
    for year, city in ((2024, "Rome"), (2025, "Oslo")):
        folder = tmp_path / "run=1" / "data" / f"year={year}" / f"city={city}"
        folder.mkdir(parents=True)
        write(folder / "a.parquet", a=[1.0 * year, 2.0])
    X = tmp_path / "run=1" / "data"
    found = all_rows(X, "city")
    # Not of the folders above the one that is read.
    assert found.provenance["columns"] == ("a", "year")
    np.testing.assert_array_equal(found.points, [[2024, 2024], [2, 2024], [2025, 2025], [2, 2025]])
    assert found.labels.tolist() == ["Rome", "Rome", "Oslo", "Oslo"]
    with pytest.raises(errors.InvalidTypeError, match=r"no real numbers: 'city' \(string\)"):
        build(X)


def test_names_of_folders__without_a_value_are_missing(tmp_path: Path) -> None:
    for value in ("1", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"y={value}").mkdir()
        write(tmp_path / f"y={value}" / "a.parquet", a=[1.0])
    np.testing.assert_array_equal(all_rows(tmp_path, "y").labels, [1, np.nan])


def test_files__without_rows_or_values_tell_no_type(tmp_path: Path) -> None:
    # What pandas writes of columns of text and of numbers, where nothing is in them.
    write(tmp_path / "0.parquet", t=pa.array([], "double"), a=pa.array([], "null"))
    write(tmp_path / "1.parquet", t=["x", "y"], a=[1, 2])
    write(tmp_path / "2.parquet", t=["z"], a=pa.array([None], "null"))
    found = all_rows(tmp_path, "t", on_invalid="drop")
    np.testing.assert_array_equal(found.points, [[1], [2]])
    assert found.labels.tolist() == ["x", "y"]
    assert found.provenance["n_dropped"] == 1


def test_arrow__tables_batches_data_sets_and_categories(tmp_path: Path) -> None:
    labels = pa.array(["web", *["shop"] * 19]).dictionary_encode()
    table = pa.table({"a": np.arange(20.0), "y": labels})
    pq.write_table(table, tmp_path / "a.parquet")
    stored = ds.dataset(tmp_path / "a.parquet")
    for X in (table, stored, ds.dataset(table), table.to_batches()[0]):
        found = all_rows(X, "y")
        np.testing.assert_array_equal(found.points[:, 0], np.arange(20.0))
        assert found.labels.tolist()[:3] == ["web", "shop", "shop"]
    missing = table.set_column(1, "y", pa.array(["web", None] * 10).dictionary_encode())
    with pytest.raises(errors.InvalidInputError, match="y is missing or not finite at row 1"):
        build(missing, "y")


def test_arrow__what_cannot_be_counted_is_refused(tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(20.0)})
    pa_csv.write_csv(table, tmp_path / "a.csv")
    pq.write_table(table, tmp_path / "a.parquet")
    stored = ds.dataset(tmp_path / "a.parquet")
    for X, message in (
        (stored.filter(ds.field("a") > 3), r"X is a data set with a filter.*X.to_table\(\)"),
        (ds.dataset(tmp_path / "a.csv", format="csv"), r"files that are not Parquet"),
        (table.to_reader(), "X is a RecordBatchReader"),
        (pl.LazyFrame({"a": [1.0]}), "X is a LazyFrame"),
    ):
        with pytest.raises(errors.CoresetError, match=message):
            build(X)


def names_of(X: Any, **options: Any) -> list[str]:
    return list(build(X, size=3, random_state=0, **options).provenance["columns"])


# --- folders of tables -------------------------------------------------------------------


def delta_table(folder: Path) -> Path:
    """Return a folder of three versions of a Delta table: its log, and a file for each."""
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "k=1").mkdir()
    for version in range(3):
        (folder / f"_delta_log/{version:020d}.json").write_text("{}")
        pq.write_table(pa.table({"a": np.arange(2.0) + version}), folder / f"k=1/{version}.parquet")
    return folder


@pytest.mark.parametrize("path", ["", "k=1", "k=*/*.parquet", ".."])
def test_build__a_folder_of_a_delta_table(tmp_path: Path, path: str) -> None:
    table = delta_table(tmp_path / "table")
    with pytest.raises(errors.InvalidInputError, match=r"Delta table.*deltalake\.DeltaTable"):
        build(table / path, size=2)


@pytest.mark.parametrize(
    ("marker", "path", "reader"),
    [
        ("metadata/v1.metadata.json", "", "Iceberg.*pyiceberg"),
        ("metadata/00000-b2.gz.metadata.json", "data", "Iceberg.*pyiceberg"),
        ("metadata/v1.metadata.json", "data/k=1", "Iceberg.*pyiceberg"),
        (".hoodie/hoodie.properties", "", "Hudi.*hudi"),
    ],
)
def test_build__a_folder_of_an_iceberg_or_hudi_table(
    tmp_path: Path, marker: str, path: str, reader: str
) -> None:
    for file in (marker, "data/k=1/x.parquet"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / marker).touch()
    pq.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "data/k=1/x.parquet")
    with pytest.raises(errors.InvalidInputError, match=reader):
        build(tmp_path / path, size=1)


def test_build__a_folder_beside_other_metadata(tmp_path: Path) -> None:
    for name in ("data", "metadata"):
        (tmp_path / name).mkdir()
    (tmp_path / "metadata" / "notes.json").touch()
    pq.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "data" / "x.parquet")
    assert len(build(tmp_path / "data", size=1)) == 1


# --- columns that are an index -----------------------------------------------------------


def frame() -> pd.DataFrame:
    """Return rows whose index is no range, so that it is stored as a column."""
    t = np.arange(30)
    return pd.DataFrame({"a": t**0.5, "b": t % 7, "t": t})[t % 3 > 0]


def test_build__index_columns_that_dask_writes(tmp_path: Path) -> None:
    dd.from_pandas(frame(), npartitions=2).to_parquet(tmp_path / "plain")
    dd.from_pandas(frame().set_index("t"), npartitions=2).to_parquet(tmp_path / "named")
    assert names_of(tmp_path / "plain") == ["a", "b", "t"]
    assert names_of(tmp_path / "named") == ["a", "b"]


@pytest.mark.parametrize("index", [["t"], ["t", "b"], []])
def test_build__index_columns_that_pandas_writes(tmp_path: Path, index: list[str]) -> None:
    rows = frame().set_index(index) if index else frame()
    rows.to_parquet(tmp_path / "x.parquet")
    left = [name for name in ("a", "b", "t") if name not in index]
    for X in (tmp_path, tmp_path / "x.parquet", pa.Table.from_pandas(rows)):
        assert names_of(X) == left
    if not index:  # polars reads no metadata of pandas
        assert names_of(pl.read_parquet(tmp_path / "x.parquet")) == left


def test_build__an_index_column_that_is_named(tmp_path: Path) -> None:
    rows = frame().set_index("t")
    rows.to_parquet(tmp_path / "x.parquet")
    for X in (tmp_path / "x.parquet", pa.Table.from_pandas(rows)):
        assert names_of(open_rows(X, columns=["t", "a"])) == ["t", "a"]
        labels = build(X, y="t", method="uniform", size=3).labels
        assert labels is not None
        assert {*labels} <= {*rows.index}


@pytest.mark.filterwarnings("ignore:column")
def test_predict__tables_with_an_index_column(tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "x.parquet")
    tables = [
        frame(),
        pa.Table.from_pandas(frame()),
        pl.read_parquet(tmp_path / "x.parquet"),
        tmp_path / "x.parquet",
    ]
    for table in tables[1:]:
        model = call(estimators.CoresetKMeans(2, size=10, random_state=0).fit, table)
        assert model.feature_names_in_.tolist() == ["a", "b", "t"]
        answers = [np.asarray(model.predict(other)) for other in tables]
        assert all((answer == answers[0]).all() for answer in answers)


# --- encrypted files ---------------------------------------------------------------------


class Keys(pe.KmsClient):  # type: ignore[misc] # of Cython
    """Keys that are wrapped by nothing."""

    def __init__(self, _connection: Any) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _identifier: str) -> bytes:
        return base64.b64encode(key)


def write_encrypted(path: Path, column: str, *, plain_footer: bool) -> None:
    config = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"key": [column]}, plaintext_footer=plain_footer
    )
    properties = pe.CryptoFactory(Keys).file_encryption_properties(pe.KmsConnectionConfig(), config)
    table = pa.table({"a": [1.0, 2.0, 3.0], "b": [3.0, 4.0, 5.0]})
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("plain_footer", [True, False])
def test_build__encrypted_columns(tmp_path: Path, plain_footer: bool) -> None:
    path = tmp_path / "x.parquet"
    write_encrypted(path, "b", plain_footer=plain_footer)
    X = np.ones((3, 1))
    calls: list[tuple[Any, dict[str, Any]]] = [
        (path, {}),
        (open_rows([path], columns=["a"]), {}),
        (X, {"y": str(path), "method": "svm"}),
    ]
    for rows, options in calls:
        with pytest.raises(errors.InvalidInputError, match=r"x\.parquet.*encrypt"):
            build(rows, size=1, **options)


def test_build__a_data_set_with_encrypted_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "0.parquet")
    write_encrypted(tmp_path / "1.parquet", "a", plain_footer=True)
    for X in (tmp_path, ds.dataset(tmp_path)):
        with pytest.raises(errors.InvalidInputError, match=r"1\.parquet.*encrypt"):
            build(X, size=1)
