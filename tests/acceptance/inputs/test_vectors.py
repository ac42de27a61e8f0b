"""Columns of vectors, as embeddings are stored, are a matrix of features."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.acceptance.face import build, call, errors, estimators, open_rows

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask

VECTORS = np.random.default_rng(3).normal(size=(60, 5)).astype(np.float32)
NAMES = [f"emb[{i}]" for i in range(5)]


def table(vectors: Any = None, kind: Any = None) -> pa.Table:
    """Return a table of a number and a vector for each row."""
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 5)
    lists = fixed if vectors is None else pa.array(vectors, kind or pa.list_(pa.float32()))
    return pa.table({"size": np.arange(float(len(lists))), "emb": lists})


def write(path: Path, rows: pa.Table, **options: Any) -> Path:
    pq.write_table(rows, path, row_group_size=25, **options)
    return path


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"size": np.arange(60.0), "emb": list(VECTORS)} | columns)


def with_lists(frame: pd.DataFrame) -> Any:
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(frame, npartitions=3)


KINDS: dict[str, Callable[[Path], Any]] = {
    "fixed": lambda path: write(path, table()),
    "lists": lambda path: write(path, table(VECTORS.tolist())),
    "large lists": lambda path: write(path, table(VECTORS.tolist(), pa.large_list(pa.float64()))),
    "without a schema": lambda path: write(path, table(), store_schema=False),
    "table": lambda _: table(),
    "table of tensors": lambda _: pa.table(
        {"size": np.arange(60.0), "emb": pa.FixedShapeTensorArray.from_numpy_ndarray(VECTORS)}
    ),
    "table of lists": lambda _: table(VECTORS.tolist()),
    "polars": lambda _: pl.DataFrame({"size": np.arange(60.0), "emb": VECTORS}),
    "polars lists": lambda _: pl.DataFrame({"size": np.arange(60.0), "emb": VECTORS.tolist()}),
    "pandas": lambda _: frame(),
    "pandas lists": lambda _: frame(emb=VECTORS.tolist()),
    "pandas of Arrow": lambda _: table().to_pandas(types_mapper=pd.ArrowDtype),
    "dask": lambda _: with_lists(frame()),
    "dask of Parquet": lambda path: dd.read_parquet(write(path, table())),
    "dask of Arrow": lambda path: dd.read_parquet(write(path, table()), dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_build__columns_of_vectors(tmp_path: Path, kind: str) -> None:
    X = KINDS[kind](tmp_path / "x.parquet")
    coreset = build(X, size=12, random_state=0)
    assert list(coreset.provenance["columns"]) == ["size", *NAMES]
    rows = coreset.points[:, 0].astype(int)
    np.testing.assert_allclose(coreset.points[:, 1:], VECTORS[rows], rtol=1e-6)


@pytest.mark.parametrize("kind", ["lists", "table", "polars", "pandas", "dask"])
def test_build__some_elements_of_vectors(tmp_path: Path, kind: str) -> None:
    X = KINDS[kind](tmp_path / "x.parquet")
    for columns, found in ((["emb"], NAMES), (["emb[3]", "emb[0]"], ["emb[3]", "emb[0]"])):
        coreset = build(open_rows(X, columns=columns), size=12, random_state=0)
        assert list(coreset.provenance["columns"]) == found
        assert coreset.points.shape[1] == len(found)
    with pytest.raises(errors.InvalidInputError, match=r"emb\[5\]"):
        build(open_rows(X, columns=["emb[5]"]), size=3)


@pytest.mark.parametrize("kind", ["lists", "table", "polars", "pandas", "dask"])
def test_fit__columns_of_vectors(tmp_path: Path, kind: str) -> None:
    X = open_rows(KINDS[kind](tmp_path / "x.parquet"), columns=["emb"])
    model = call(estimators.CoresetKMeans(2, size=30, random_state=0).fit, X)
    assert model.feature_names_in_.tolist() == NAMES
    labels = [
        np.asarray(call(model.predict, open_rows(make(tmp_path / "y.parquet"), columns=["emb"])))
        for make in (KINDS["lists"], KINDS["table"], KINDS["pandas"], KINDS["dask"])
    ]
    assert all((found == labels[0]).all() for found in labels)


def test_build__vectors_with_labels_beside_them(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", table().append_column("y", pa.array([0, 1] * 30)))
    assert build(path, y="y", method="uniform", size=12).points.shape[1] == 6
    with pytest.raises(errors.InvalidInputError, match=r"y is 'emb'.*'emb\[0\]'"):
        build(path, y="emb", method="uniform", size=12)


def formed(kind: str, vectors: Any, folder: Path) -> Any:
    if "pandas" in kind or "dask" in kind:
        return frame(emb=vectors) if kind == "pandas" else with_lists(frame(emb=vectors))
    rows = table(vectors)
    return rows if kind == "table" else write(folder / "x.parquet", rows)


UNEQUAL = [*VECTORS.tolist()[:40], [1.0, 2.0], *VECTORS.tolist()[41:]]


@pytest.mark.parametrize("kind", ["path", "table", "pandas", "dask"])
def test_build__lists_of_unequal_length(tmp_path: Path, kind: str) -> None:
    row = "" if kind == "dask" else " at row 40"
    with pytest.raises(errors.InvalidInputError, match=rf"'emb' has a list of 2 values{row}.*5"):
        build(formed(kind, UNEQUAL, tmp_path), size=12)


@pytest.mark.parametrize("kind", ["path", "table", "pandas", "dask"])
def test_build__vectors_that_are_missing(tmp_path: Path, kind: str) -> None:
    vectors: list[Any] = VECTORS.tolist()
    vectors[30] = None
    vectors[31] = [*vectors[31][:2], None, *vectors[31][3:]]
    with pytest.raises(errors.InvalidInputError, match=r"NaN.*'emb\[0\]'.* at row 30"):
        build(formed(kind, vectors, tmp_path), size=12)
    kept = build(formed(kind, vectors, tmp_path), size=57, on_invalid="drop", random_state=0)
    assert not {30, 31} & {*kept.points[:, 0].astype(int)}


def test_build__lists_of_text_are_no_numbers(tmp_path: Path) -> None:
    texts = [["a", "b"]] * 4
    rows = pa.table({"emb": texts})
    for X in (rows, write(tmp_path / "x.parquet", rows), pd.DataFrame({"emb": texts})):
        with pytest.raises(errors.InvalidTypeError, match="no real numbers"):
            build(X, size=2)
    with pytest.raises(errors.InvalidInputError, match="'emb' has values that are no lists"):
        build(pd.DataFrame({"emb": [[1.0, 2.0], ["a", "b"]]}), size=2)
