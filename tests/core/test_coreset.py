"""Coresets: bits kept by stores and pickles, unions, records, conversions."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from dask.base import tokenize

from daskcoreset.core.coreset import Coreset
from daskcoreset.errors import InvalidInputError, InvalidTypeError, MissingDependencyError
from tests.tools.coresets import RECORD, make_coreset, rows

TEXT = np.array(["red", "blue", "Zoë", ""])
EMPTY = Coreset(rows(), np.ones(4), np.arange(4))

variants = pytest.mark.parametrize(
    "coreset",
    [
        dataclasses.replace(make_coreset(), points=rows().astype(np.float32)),
        make_coreset(labels=np.array([0.5, np.nan, -0.0, np.inf])),
        make_coreset(labels=TEXT.astype(np.dtypes.StringDType())),
        make_coreset(sparse=True, labels=TEXT),
        EMPTY,
    ],
    ids=["float32", "numbers", "variable-text", "sparse", "empty-record"],
)


@variants
def test_coreset__keeps_its_bits(coreset: Coreset, tmp_path: Path) -> None:
    coreset.to_zarr(tmp_path / "c")
    pickled: Any = pickle.loads(pickle.dumps(coreset))
    assert tokenize(coreset, ensure_deterministic=True) == tokenize(pickled)
    for again in (pickled, copy.deepcopy(coreset), Coreset.from_zarr(tmp_path / "c")):
        assert again.equals(coreset)
        with pytest.raises(ValueError, match="read-only"):
            again.weights[0] = 1.0
        with pytest.raises(TypeError, match="assignment"):
            again.provenance["seed"] = 1  # type: ignore[index, unused-ignore]
    other = dataclasses.replace(coreset, weights=coreset.weights * 2)
    assert tokenize(other) != tokenize(coreset)


@variants
def test_to_zarr__opens_in_xarray(coreset: Coreset, tmp_path: Path) -> None:
    coreset.to_zarr(tmp_path / "c")
    with xr.open_zarr(tmp_path / "c", consolidated=False) as stored:
        made = coreset.to_xarray().drop_vars("feature", errors="ignore")
        both = [stored.drop_attrs(), made.drop_attrs()]
        if coreset.labels is not None and coreset.labels.dtype.kind == "T":
            # With NumPy 2.2 xarray finds no text of variable width equal to itself.
            both = [one.assign(labels=one.labels.astype(object)) for one in both]
        assert both[0].equals(both[1])
        assert json.loads(made.attrs["provenance"]) == stored.attrs["provenance"]


def test_merge__records_its_parts() -> None:
    one, two, three = (make_coreset(seed=seed) for seed in (1, 2, 3))
    union = one.merge(two, offsets=np.array([0, 1000])).merge(three, offsets=[10, 2000])  # type: ignore[arg-type]
    said = union.provenance
    assert [part["offset"] for part in said["parts"]] == [10, 1010, 2000]
    assert [part["provenance"]["seed"] for part in said["parts"]] == [1, 2, 3]
    assert (said["n"], said["size"], said["total_weight"]) == (3000, 12, 3000.0)
    assert repr(union).startswith("Coreset(merge: 12 of 3,000 rows")
    unnamed = one.merge(EMPTY)
    assert unnamed.provenance["columns"] == ("height", "width", "<b>")
    assert "n" not in unnamed.provenance
    for wrong in ([1], [0, -1], [0, 2**62], [0, 0.5], 3, ["a", "b"]):
        with pytest.raises(InvalidInputError, match="for 2 coresets"):
            one.merge(two, offsets=wrong)  # type: ignore[arg-type]


def test_provenance__is_a_frozen_copy() -> None:
    record: dict[str, Any] = {"nested": {"list": [1, {"a": np.float32(0.5)}]}, "n": np.int64(9)}
    coreset = dataclasses.replace(EMPTY, provenance=record)
    record["nested"]["list"][1]["a"] = 2.0
    assert coreset.provenance == {"nested": {"list": (1, {"a": 0.5})}, "n": 9}
    assert type(coreset.provenance["n"]) is int
    assert isinstance(coreset.provenance["nested"]["list"][1], MappingProxyType)


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ({"m": 5}, InvalidInputError, r"provenance\['m'\] is 5, for 4 rows"),
        ({"n": 0}, InvalidInputError, r"provenance\['n'\] is 0"),
        ({"columns": ["a", "b"]}, InvalidInputError, r"provenance\['columns'\]"),
        ({"a": [0, float("inf")]}, InvalidInputError, "provenance is not plain JSON"),
        ({"a": {"b": np.ones(2)}}, InvalidTypeError, "it holds an ndarray"),
        ([1], InvalidTypeError, r"provenance is \[1\]"),
    ],
)
def test_provenance__is_checked(record: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        dataclasses.replace(EMPTY, provenance=record)


def test_conversions__name_dimensions_and_columns() -> None:
    coreset = make_coreset(labels=TEXT)
    dataset, frame = coreset.to_xarray(), coreset.to_dataframe()
    assert dataset["points"].dims == ("row", "feature")
    assert list(dataset["feature"].to_numpy()) == RECORD["columns"]
    assert json.loads(dataset.attrs["provenance"]) == RECORD
    assert np.shares_memory(dataset["points"].to_numpy(), coreset.points)
    assert list(frame.columns) == ["height", "width", "<b>", "weight", "index", "label"]
    assert frame["label"].tolist() == list(TEXT)
    other = make_coreset(columns=["weight", "width", "weight_"]).to_dataframe()
    assert list(other.columns) == ["weight", "width", "weight_", "weight__", "index"]
    thin = make_coreset(sparse=True).to_dataframe()
    assert isinstance(thin["height"].dtype, pd.SparseDtype)
    assert np.array_equal(thin[RECORD["columns"]].to_numpy(), rows())


@pytest.mark.parametrize(
    ("module", "method", "extra"),
    [("xarray", "to_xarray", "xarray"), ("pandas", "to_dataframe", "dataframe")],
)
def test_conversions__name_the_missing_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, method: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf'pip install "daskcoreset\[{extra}\]"'):
        getattr(EMPTY, method)()
