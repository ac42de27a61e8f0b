"""Labels are numbers or text: dates, times and spans are an error, whichever way they come."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr

from tests.acceptance.face import build, errors, estimators, open_rows, stream

X = np.random.default_rng(0).normal(size=(40, 2))
DATES = np.array(["2020-01-01", "2021-06-01"], dtype="M8[ns]")[np.arange(40) % 2]
DAYS = [dt.date(2020, 1, 1 + i % 2) for i in range(40)]


def objects(values: Any) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


LABELS: dict[str, Any] = {
    "datetime64": DATES,
    "timedelta64": DATES - DATES[0],
    "series": pd.Series(DATES),
    "time zone": pd.Series(DATES).dt.tz_localize("Europe/Berlin"),
    "category": pd.Series(DATES).astype("category"),
    "period": pd.Series(pd.PeriodIndex(DATES, freq="D")),
    "timestamps": objects(pd.Series(DATES)),
    "scalars of NumPy": objects(DATES),
    "dates": objects(DAYS),
    "list": DAYS,
    "times": objects([dt.time(i % 2) for i in range(40)]),
    "spans": objects([dt.timedelta(i % 2) for i in range(40)]),
    "after text": objects(["a", "b", *DAYS[2:]]),
    "dask": da.from_array(DATES, chunks=10),
    "dask of objects": da.from_array(objects(DAYS), chunks=10),
    "dask series": dd.from_pandas(pd.Series(DATES), npartitions=4),
    "polars": pl.Series(DATES),
    "xarray": xr.DataArray(DATES, dims="row"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_build__dates_as_labels(kind: str) -> None:
    y = LABELS[kind]
    with pytest.raises(errors.CoresetError, match="must hold numbers or text, found"):
        build(X, y, method="uniform", size=5)
    with pytest.raises(errors.CoresetError, match="must hold numbers or text, found"):
        estimators.CoresetSVC(size=20).fit(X, y)


def test_build__the_first_row_with_a_date() -> None:
    with pytest.raises(errors.InvalidInputError, match=r"found a date at row 2;"):
        build(X, LABELS["after text"], method="uniform", size=5)
    with pytest.raises(errors.InvalidInputError, match=r"found a date"):
        stream(method="uniform", size=5).partial_fit(X, LABELS["dates"])


COLUMNS = {
    "timestamp": pa.array(DATES),
    "time zone": pa.array(DATES).cast(pa.timestamp("us", tz="Europe/Berlin")),
    "date": pa.array(DAYS),
    "time": pa.array([dt.time(1)] * 40),
    "duration": pa.array([dt.timedelta(1)] * 40),
    "dictionary": pa.array(DATES).dictionary_encode(),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_build__columns_of_dates_as_labels(tmp_path: Path, kind: str) -> None:
    table = pa.table({"a": X[:, 0], "y": COLUMNS[kind]})
    pq.write_table(table, tmp_path / "x.parquet")
    makers: list[Callable[[], Any]] = [lambda: tmp_path / "x.parquet", lambda: table]
    if kind != "dictionary":
        makers += [table.to_pandas, lambda: table.to_pandas(types_mapper=pd.ArrowDtype)]
    for make in makers:
        with pytest.raises(errors.CoresetError, match="must hold numbers or text, found"):
            build(make(), y="y", method="uniform", size=5)


def test_build__a_coordinate_of_dates_as_labels() -> None:
    cube = xr.Dataset({"v": (("time", "x"), X)}, coords={"time": DATES})
    rows = open_rows(cube, sample_dims=["time"])
    with pytest.raises(errors.InvalidTypeError, match="must hold numbers or text, found"):
        build(rows, cube.time, method="uniform", size=5)


@pytest.mark.parametrize("store", ["zarr 2", "zarr 3", "hdf5", "undecoded", "undecoded cube"])
def test_build__stored_numbers_of_dates_as_labels(store: str, tmp_path: Path) -> None:
    path = tmp_path / ("x.h5" if store == "hdf5" else "x.zarr")
    if store == "hdf5":
        with h5py.File(path, "w") as file:
            file["X"], file["y"] = X, np.arange(40) % 2
            file["y"].attrs["units"] = np.bytes_(b"days since 2020-01-01")
    else:
        data = xr.Dataset({"X": (("row", "x"), X), "y": ("row", DATES)})
        data.to_zarr(path, zarr_format=2 if store == "zarr 2" else 3, consolidated=False)
    source: Any = path
    y: Any = "y"
    if store.startswith("undecoded"):
        stored = xr.open_zarr(path, decode_times=False, consolidated=False)
        source, y = (X, stored.y) if store == "undecoded" else (stored[["X"]], stored.y)
    rows = open_rows(source, sample_dims=["row"]) if store == "undecoded cube" else source
    with pytest.raises(errors.InvalidTypeError, match=r"found dates, stored as .*days since 2020"):
        build(rows, y, method="uniform", size=5)


def test_build__units_that_are_no_dates(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"], file["y"], file["z"] = X, np.arange(40) % 2, np.arange(40) % 3
        file["y"].attrs["units"] = "days"
        file["z"].attrs["units"] = np.arange(3)
    for y in ("y", "z"):
        assert len(build(tmp_path / "x.h5", y, method="uniform", size=5)) == 5


def test_build__dates_as_text() -> None:
    labels = build(X, DATES.astype("M8[D]").astype(str), method="uniform", size=20).labels
    assert labels is not None
    assert {*labels.tolist()} == {"2020-01-01", "2021-06-01"}


def test_build__missing_labels_of_rows_that_are_kept() -> None:
    points, labels = X.copy(), objects(["a", "b"] * 20)
    points[3], labels[3], labels[7] = np.nan, None, None
    with pytest.raises(errors.InvalidInputError, match=r"y is missing.* at row 7"):
        build(points, labels, method="uniform", size=5, on_invalid="drop")
