"""Coresets: bits kept by stores and pickles, unions, records, conversions."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from dask.base import tokenize
from sklearn.cluster import KMeans
from zarr.storage import MemoryStore

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.points import WeightedPoints
from daskcoreset.errors import (
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)
from tests.tools.coresets import RECORD, make_coreset, rows

if TYPE_CHECKING:
    from pathlib import Path


TEXT = np.array(["red", "blue", "Zoë", ""])


VARIANTS = {
    "plain": make_coreset(),
    "float32": dataclasses.replace(make_coreset(), points=rows().astype(np.float32)),
    "numbers": make_coreset(labels=np.array([1, 0, 1, 0])),
    "truths": make_coreset(labels=np.array([True, False, True, True])),
    "targets": make_coreset(labels=np.array([0.5, np.nan, -0.0, np.inf])),
    "text": make_coreset(labels=TEXT),
    "variable-text": make_coreset(labels=TEXT.astype(np.dtypes.StringDType())),
    "sparse": make_coreset(sparse=True, labels=TEXT),
    "empty-record": Coreset(rows(), np.ones(4), np.arange(4)),
}


variants = pytest.mark.parametrize("coreset", VARIANTS.values(), ids=VARIANTS.keys())
some_variants = pytest.mark.parametrize(
    "coreset", [VARIANTS[name] for name in ("float32", "variable-text", "sparse")]
)


@variants
def test_from_zarr__reads_what_is_on_disk(coreset: Coreset, tmp_path: Path) -> None:
    coreset.to_zarr(tmp_path / "c")
    loaded = Coreset.from_zarr(tmp_path / "c")
    assert loaded.equals(coreset)
    assert loaded.provenance == coreset.provenance
    with pytest.raises(StoreError, match="overwrite=True"):
        coreset.to_zarr(tmp_path / "c")
    coreset.take(slice(2))
    VARIANTS["plain"].to_zarr(tmp_path / "c", overwrite=True)
    assert Coreset.from_zarr(str(tmp_path / "c")).equals(VARIANTS["plain"])


@some_variants
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


@some_variants
def test_pickle__keeps_bits_and_read_only_arrays(coreset: Coreset) -> None:
    for again in (
        pickle.loads(pickle.dumps(coreset)),
        pickle.loads(pickle.dumps(coreset, protocol=2)),
        copy.deepcopy(coreset),
        copy.copy(coreset),
    ):
        assert type(again) is Coreset
        assert again.equals(coreset)
        with pytest.raises(ValueError, match="read-only"):
            again.weights[0] = 1.0
        with pytest.raises(TypeError, match="assignment"):
            again.provenance["seed"] = 1  # type: ignore[index]


@some_variants
def test_tokenize__is_deterministic(coreset: Coreset) -> None:
    again = pickle.loads(pickle.dumps(coreset))
    assert tokenize(coreset, ensure_deterministic=True) == tokenize(again)
    other = dataclasses.replace(coreset, weights=coreset.weights * 2)
    assert tokenize(other) != tokenize(coreset)


def test_equals__compares_bits_and_identity_is_identity() -> None:
    zero, nan = np.array([[0.0]]), np.array([np.nan])
    parts = ((zero, None), (-zero, None), (zero, nan), (zero, nan.copy()))
    one = [WeightedPoints(x, np.ones(1), np.arange(1), labels) for x, labels in parts]
    assert not one[0].equals(one[1])
    assert one[2].equals(one[3])
    assert one[2] != one[3]
    assert len(set(one)) == 4
    assert not Coreset(zero, np.ones(1), np.arange(1)).equals(one[0])
    variable = TEXT.astype(np.dtypes.StringDType())
    assert make_coreset(labels=variable).equals(make_coreset(labels=variable.copy()))
    assert not make_coreset(labels=variable).equals(make_coreset(labels=variable[::-1]))


@some_variants
def test_merge__is_the_union(coreset: Coreset) -> None:
    union = coreset.merge(coreset, coreset, offsets=[0, 1000, 2000])
    assert len(union) == 12
    assert union.total_weight == 3 * coreset.total_weight
    for i in range(3):
        part = union.take(slice(4 * i, 4 * i + 4))
        moved = dataclasses.replace(coreset, indices=coreset.indices + 1000 * i)
        assert WeightedPoints.equals(part, moved)


def test_merge__records_its_parts() -> None:
    one, two, three = (make_coreset(seed=seed) for seed in (1, 2, 3))
    union = one.merge(two, offsets=np.array([0, 1000])).merge(three, offsets=[10, 2000])  # type: ignore[arg-type]
    said = union.provenance
    assert [part["offset"] for part in said["parts"]] == [10, 1010, 2000]
    assert [part["provenance"]["seed"] for part in said["parts"]] == [1, 2, 3]
    assert said["method"] == "merge"
    assert (said["n"], said["size"], said["total_weight"]) == (3000, 12, 3000.0)
    assert (said["m"], said["d"], said["columns"]) == (12, 3, ("height", "width", "<b>"))
    assert repr(union).startswith("Coreset(merge: 12 of 3,000 rows")
    store = MemoryStore()
    union.to_zarr(store)
    assert Coreset.from_zarr(store).equals(union)
    unnamed = one.merge(Coreset(rows(), np.ones(4), np.arange(4)))
    assert unnamed.provenance["columns"] == ("height", "width", "<b>")
    assert "n" not in unnamed.provenance
    assert unnamed.indices.tolist() == [5, 7, 7, 999, 0, 1, 2, 3]


def test_provenance__is_a_frozen_copy() -> None:
    record: dict[str, Any] = {"nested": {"list": [1, {"a": np.float32(0.5)}]}, "n": np.int64(9)}
    coreset = Coreset(rows(), np.ones(4), np.arange(4), provenance=record)
    record["nested"]["list"][1]["a"] = 2.0
    assert coreset.provenance == {"nested": {"list": (1, {"a": 0.5})}, "n": 9}
    assert type(coreset.provenance["n"]) is int
    assert isinstance(coreset.provenance["nested"]["list"][1], MappingProxyType)


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ({"m": 5}, InvalidInputError, r"provenance\['m'\] is 5, for 4 rows"),
        ({"d": 2}, InvalidInputError, r"provenance\['d'\] is 2, for 4 rows of 3"),
        ({"n": 0}, InvalidInputError, r"provenance\['n'\] is 0"),
        ({"columns": ["a", "b"]}, InvalidInputError, r"provenance\['columns'\]"),
        ({"a": [0, float("inf")]}, InvalidInputError, "provenance is not plain JSON"),
        ({"a": {"b": np.ones(2)}}, InvalidTypeError, "it holds an ndarray"),
        ([1], InvalidTypeError, r"provenance is \[1\]"),
    ],
)
def test_provenance__is_checked(record: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Coreset(rows(), np.ones(4), np.arange(4), provenance=record)


def test_to_xarray__names_dimensions_and_columns() -> None:
    coreset = make_coreset(labels=TEXT)
    dataset = coreset.to_xarray()
    assert dict(dataset.sizes) == {"row": 4, "feature": 3}
    assert dataset["points"].dims == ("row", "feature")
    assert list(dataset["feature"].to_numpy()) == RECORD["columns"]
    assert np.array_equal(dataset["points"].sel(feature="width"), rows()[:, 1])
    assert list(dataset["labels"].to_numpy()) == list(TEXT)
    assert json.loads(dataset.attrs["provenance"]) == RECORD
    assert np.shares_memory(dataset["points"].to_numpy(), coreset.points)
    assert "feature" not in VARIANTS["empty-record"].to_xarray().coords


def test_to_dataframe__has_a_row_for_each_point() -> None:
    frame = make_coreset(labels=TEXT).to_dataframe(weight="w")
    assert list(frame.columns) == ["height", "width", "<b>", "w", "index", "label"]
    assert np.array_equal(frame.iloc[:, :3], rows())
    assert frame["w"].tolist() == [100.0, 200.0, 300.5, 399.5]
    assert frame["index"].tolist() == [5, 7, 7, 999]
    assert frame["label"].tolist() == list(TEXT)
    assert list(VARIANTS["empty-record"].to_dataframe().columns) == [
        "x0",
        "x1",
        "x2",
        "weight",
        "index",
    ]


def test_to_dataframe__keeps_sparse_points_sparse() -> None:
    frame = make_coreset(sparse=True).to_dataframe()
    assert isinstance(frame["height"].dtype, pd.SparseDtype)
    assert np.array_equal(frame[RECORD["columns"]].to_numpy(), rows())


@pytest.mark.parametrize(
    ("module", "method", "extra"),
    [("xarray", "to_xarray", "xarray"), ("pandas", "to_dataframe", "dataframe")],
)
def test_conversions__name_the_missing_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, method: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf'pip install "daskcoreset\[{extra}\]"'):
        getattr(make_coreset(), method)()


def test_repr__is_one_line() -> None:
    assert repr(make_coreset(seed=3)) == (
        "Coreset(lightweight: 4 of 1,000 rows, 3 features, no labels, seed 3)"
    )
    assert repr(VARIANTS["empty-record"]) == ("Coreset(4 rows, 3 features, no labels)")


def test_coreset__is_no_array_and_says_what_to_pass() -> None:
    with pytest.raises(InvalidTypeError, match=r"X=coreset\.points with sample_weight"):
        KMeans(2).fit(make_coreset())
