"""Parquet files and folders, as other tools write them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from tests.acceptance.face import build, call, errors, estimators, open_rows

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask


def names_of(X: Any, **options: Any) -> list[str]:
    return list(build(X, size=3, random_state=0, **options).provenance["columns"])


# --- folders of tables -------------------------------------------------------------------


def delta_table(folder: Path) -> Path:
    """Return a Delta table of three versions, of which the last has three rows."""
    deltalake = pytest.importorskip("deltalake")
    for version in range(3):
        rows = pa.table({"a": np.arange(3.0) + version, "k": [1, 1, 2]})
        deltalake.write_deltalake(str(folder), rows, mode="overwrite", partition_by=["k"])
    return folder


@pytest.mark.parametrize("path", ["", "k=1", "k=*/*.parquet", ".."])
def test_build__a_folder_of_a_delta_table(tmp_path: Path, path: str) -> None:
    table = delta_table(tmp_path / "table")
    with pytest.raises(errors.InvalidInputError, match=r"Delta table.*deltalake\.DeltaTable"):
        build(table / path, size=2)


def test_build__what_reads_a_delta_table(tmp_path: Path) -> None:
    import deltalake

    table = deltalake.DeltaTable(str(delta_table(tmp_path)))
    for X in (table.to_pyarrow_dataset(), table.file_uris()):
        assert build(X, size=2).total_weight == pytest.approx(3.0, rel=0.5)


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
        with pytest.raises(errors.InvalidInputError, match=r"encrypted columns.*x\.parquet"):
            build(rows, size=1, **options)


def test_build__a_data_set_with_encrypted_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "0.parquet")
    write_encrypted(tmp_path / "1.parquet", "a", plain_footer=True)
    for X in (tmp_path, ds.dataset(tmp_path)):
        with pytest.raises(errors.InvalidInputError, match=r"encrypted columns.*1\.parquet"):
            build(X, size=1)
