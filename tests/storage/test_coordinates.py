"""Coordinates of the rows of a coreset."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from daskcoreset import Coreset
from daskcoreset.errors import InvalidInputError, InvalidTypeError, MissingDependencyError

COORDINATES: dict[str, Any] = {
    "time": np.array(["2020-01-01", "NaT"], "M8[ns]"),
    "step": np.array([1, 2], "m8[h]"),
    "lat": np.array([10.0, -20.0]),
    "name": np.array(["Uccle", "Trappes"]),
    "indices": np.array([True, False]),
    "phase": np.array([1j, complex("nan")]),
    "station": np.array(["Uccle", None]),
    "month": np.array([pd.Period("2020-01", "M"), pd.NaT]),
    "mixed": np.array(["a", 1], dtype=object),
}


def make(coordinates: Any) -> Coreset:
    return Coreset(np.eye(2), np.ones(2), np.arange(2), None, {}, coordinates)


def test_coordinates__survive_pickles_and_stores(tmp_path: Path) -> None:
    coreset = make(COORDINATES)
    coreset.to_zarr(tmp_path / "c")
    for copy in (Coreset.from_zarr(tmp_path / "c"), pickle.loads(pickle.dumps(coreset))):
        assert copy.equals(coreset)
        assert copy.coordinates["time"].dtype == "M8[ns]"
        assert copy.coordinates["station"].tolist() == ["Uccle", "None"]
        assert copy.coordinates["month"].tolist() == ["2020-01", "NaT"]
        assert copy.coordinates["mixed"].tolist() == ["a", "1"]
        assert not copy.coordinates["lat"].flags.writeable
    assert not coreset.equals(make({**COORDINATES, "lat": np.zeros(2)}))
    assert not coreset.equals(make({}))


def test_coordinates__of_any_name_and_byte_order_are_stored(tmp_path: Path) -> None:
    names = ["Länge", "lat (deg)", "a/b", "..", "2nd", "", "x" * 40, "\udc80"]
    dtypes: list[Any] = [
        ">f4",
        ">i8",
        ">M8[ns]",
        ">m8[s]",
        ">U3",
        ">c8",
        np.longdouble,
        np.clongdouble,
    ]
    found = {
        name: np.array([1, 2]).astype(dtype) for name, dtype in zip(names, dtypes, strict=True)
    }
    coreset = make(found)
    assert all(values.dtype.isnative for values in coreset.coordinates.values())
    coreset.to_zarr(tmp_path / "c")
    assert Coreset.from_zarr(tmp_path / "c").equals(coreset)


def test_coordinates__are_those_of_the_rows_in_xarray() -> None:
    dataset = make(COORDINATES).to_xarray()
    assert dataset.time.dims == ("row",)
    assert dataset["indices_"].values.tolist() == [True, False]  # beside the numbers of rows
    assert dataset["indices"].values.tolist() == [0, 1]


def test_coordinates__of_other_calendars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cftime = pytest.importorskip("cftime")

    def dated(calendar: str, *, days: Any = (30, 28)) -> Coreset:
        dates = [cftime.datetime(4000, 1, day, 0, 0, 0, 1, calendar=calendar) for day in days]
        return make({"time": np.array(dates)})

    coreset = dated("360_day")
    coreset.to_zarr(tmp_path / "c")
    for copy in (Coreset.from_zarr(tmp_path / "c"), pickle.loads(pickle.dumps(coreset))):
        assert copy.equals(coreset)
        assert copy.coordinates["time"].tolist() == coreset.coordinates["time"].tolist()
        assert not copy.coordinates["time"].flags.writeable
    for other in (
        dated("noleap"),
        dated("360_day", days=(30, 27)),
        make({"time": coreset.coordinates["time"].astype(str)}),
    ):
        assert not coreset.equals(other)
    assert coreset.merge(coreset).coordinates["time"].shape == (4,)
    assert not coreset.merge(dated("noleap")).coordinates
    monkeypatch.setitem(sys.modules, "cftime", None)
    with pytest.raises(MissingDependencyError, match="pip install cftime"):
        Coreset.from_zarr(tmp_path / "c")


@pytest.mark.parametrize(
    ("coordinates", "error", "message"),
    [
        ([1], InvalidTypeError, r"coordinates is \[1\]"),
        ({"a": [1.0]}, InvalidInputError, r"coordinates\['a'\] has shape \(1,\) for 2 rows"),
    ],
)
def test_coordinates__that_do_not_fit(
    coordinates: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(coordinates)
