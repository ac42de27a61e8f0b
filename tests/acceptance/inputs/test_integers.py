"""Integers that float64 does not hold are errors, whatever they come in."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

from tests.acceptance.face import build, call, errors, estimators, open_rows, stream as make_stream

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask

LARGE = 2**53 + 1


def integers(dtype: Any = np.int64) -> Any:
    values = np.arange(40, dtype=dtype).reshape(20, 2)
    values[13, 1] = LARGE
    return values


def frame() -> pd.DataFrame:
    return pd.DataFrame(integers(), columns=["a", "id"]).assign(real=0.5)


ARRAYS: dict[str, Callable[[], Any]] = {
    "numpy": integers,
    "uint64": lambda: integers(np.uint64),
    "negative": lambda: -integers(),
    "dask": lambda: da.from_array(integers(np.uint64), chunks=(6, 1)),
    "zarr": lambda: zarr.array(integers(), chunks=(6, 2)),
    "sparse": lambda: sp.csr_matrix(integers(np.uint64)),
    "xarray": lambda: xr.DataArray(integers(), dims=["row", "column"]),
}

FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": frame,
    "polars": lambda: pl.from_pandas(frame()),
    "arrow": lambda: pa.Table.from_pandas(frame()),
    "dask": lambda: dd.from_pandas(frame(), npartitions=2),
    "nullable": lambda: frame().convert_dtypes(),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_build__integers_beyond_float64_in_arrays(kind: str) -> None:
    with pytest.raises(errors.InvalidInputError, match=rf"column 1 is -?{LARGE} at row 13.*offset"):
        build(ARRAYS[kind](), size=5, on_invalid="drop")


@pytest.mark.parametrize("kind", FRAMES)
def test_build__integers_beyond_float64_in_frames(kind: str) -> None:
    with pytest.raises(errors.InvalidInputError, match=rf"'id' is {LARGE}.*cannot hold exactly"):
        build(FRAMES[kind](), size=5)
    with pytest.raises(errors.InvalidInputError, match=rf"'?(id|sample_weight)'? is {LARGE}"):
        build(FRAMES[kind](), sample_weight="id", size=5)


def test_build__large_integers_that_float64_holds(tmp_path: Path) -> None:
    held = np.where(integers() == LARGE, 2**60, integers())
    table = pd.DataFrame(held, columns=["a", "id"])
    table.to_parquet(tmp_path / "x.parquet")
    for X in (held, table, tmp_path / "x.parquet", dd.from_pandas(table, npartitions=2)):
        assert 2**60 in build(X, size=5).points


@pytest.mark.parametrize("as_dask", [False, True])
def test_build__parquet_with_a_null_and_an_integer_beyond_float64(
    tmp_path: Path, as_dask: bool
) -> None:
    values = [None if i == 3 else int(value) for i, value in enumerate(integers()[:, 1])]
    columns = {"id": pa.array(values, pa.int64()), "real": np.ones(20)}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=5)
    X = dd.read_parquet(tmp_path) if as_dask else tmp_path
    with pytest.raises(errors.InvalidInputError, match=r"column 'id' is .*float64 cannot hold"):
        build(X, size=5, on_invalid="drop")
    with pytest.raises(errors.InvalidInputError, match=r"column 'id' is .*float64 cannot hold"):
        build(X, sample_weight="id", size=5)


def test_build__parquet_with_decimals_beyond_float64(tmp_path: Path) -> None:
    values = [Decimal(0), Decimal(LARGE), Decimal(2**60)]
    pq.write_table(pa.table({"id": pa.array(values, pa.decimal128(30, 0))}), tmp_path / "x.parquet")
    with pytest.raises(errors.InvalidInputError, match=rf"'id' is {LARGE} at row 1"):
        build(tmp_path, size=2)


@pytest.mark.parametrize("kind", ["numpy", "list", "sparse", "pandas", "polars", "arrow"])
def test_predict__integers_beyond_float64(kind: str) -> None:
    names = ["a", "id", "real"] if kind in FRAMES else ["a", "id"]
    known = pd.DataFrame(np.random.default_rng(0).normal(size=(50, len(names))), columns=names)
    model = estimators.CoresetKMeans(2, size=20, random_state=0)
    model.fit(known if kind in FRAMES else known.to_numpy())
    X = integers().tolist() if kind == "list" else {**ARRAYS, **FRAMES}[kind]()
    with pytest.raises(errors.InvalidInputError, match=str(LARGE)):
        model.predict(X)


@pytest.mark.parametrize("large", [LARGE, -LARGE, 2**64 - 1, 10**400])
def test_fit__objects_that_are_integers_beyond_float64(large: int) -> None:
    X = np.array([[None, 2**60], [0.5, np.uint64(2**63)], [1.5, large]], dtype=object)[:, 1:]
    with pytest.raises(errors.InvalidInputError, match=rf"column 0 is {large} at row 2"):
        estimators.CoresetKMeans(1, size=2).fit(X)
    assert estimators.CoresetKMeans(1, size=2).fit(X[:2]).cluster_centers_[0, 0] > 2**60


def test_fit__targets_and_weights_beyond_float64() -> None:
    X, large = np.arange(40.0).reshape(20, 2) ** 0.5, integers()[:, 1]
    for y in (large, da.from_array(large, chunks=5)):
        with pytest.raises(errors.InvalidInputError, match=f"y is {LARGE} at row 13"):
            estimators.CoresetRidge(size=10).fit(X if y is large else da.from_array(X, chunks=5), y)
    with pytest.raises(errors.InvalidInputError, match=f"sample_weight is {LARGE} at row 13"):
        estimators.CoresetKMeans(2, size=10).fit(X, sample_weight=large)


def test_partial_fit__integers_beyond_float64() -> None:
    with pytest.raises(errors.InvalidInputError, match=f"{LARGE} at row 13"):
        make_stream(size=5).partial_fit(integers(np.uint64))


def test_build__columns_without_the_identifier(tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "x.parquet")
    rows = open_rows(tmp_path / "x.parquet", columns=["a", "real"])
    assert build(rows, size=5).points.shape == (5, 2)
    model = estimators.CoresetRidge(size=10)
    assert call(model.fit, rows, np.ones(20)).coef_.shape == (2,)
