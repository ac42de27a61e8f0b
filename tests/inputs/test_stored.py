"""Zarr chunks and stores that are not there."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskcoreset
from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.inputs import stored as stored_module
from daskcoreset.inputs.options import MissingChunks
from daskcoreset.inputs.stored import StoredArray

ROWS, CHUNK = 400, 100
LAYOUTS: dict[str, dict[str, Any]] = {
    "v2": {"zarr_format": 2},
    "v3": {"zarr_format": 3},
    "sharded": {"zarr_format": 3, "shards": (200, 2)},
    "columns in chunks": {"chunks": (CHUNK, 1)},
}


def rows() -> Any:
    return np.random.default_rng(0).normal(5.0, 1.0, size=(ROWS, 2))


def stored(path: Any, data: Any, **layout: Any) -> Any:
    layout = {"chunks": (CHUNK, *data.shape[1:])} | layout
    array = zarr.create_array(path, shape=data.shape, dtype=data.dtype, **layout)
    array[:] = data
    return array


def lose_chunk(path: Path) -> str:
    """Remove the second file of chunks, and return its key."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and "zarr" not in file.name)
    files = [file for file in files if not file.name.startswith(".")]
    files[1].unlink()
    return str(files[1].relative_to(path))


def as_is(path: Path) -> Any:
    return path


def array_of(path: Path) -> Any:
    return zarr.open_array(path, mode="r")


def dask_of(path: Path) -> Any:
    da = pytest.importorskip("dask.array")
    return da.from_zarr(str(path)) + 1.0


def inlined_dask_of(path: Path) -> Any:
    da = pytest.importorskip("dask.array")
    return da.from_zarr(zarr.open_array(path, mode="r"), inline_array=True)[10:, :]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", [as_is, array_of, dask_of, inlined_dask_of])
def test_build__lost_chunk_is_named(
    tmp_path: Path, layout: str, form: Callable[[Path], Any]
) -> None:
    path = tmp_path / "X.zarr"
    stored(path, rows(), **LAYOUTS[layout])
    assert len(daskcoreset.build(form(path), size=50, random_state=0)) == 50
    key = lose_chunk(path)
    with pytest.raises(StoreError, match=r"is not stored.*missing_chunks=\"fill\"") as caught:
        daskcoreset.build(form(path), size=50, random_state=0)
    assert repr(key) in str(caught.value)
    assert "X.zarr" in str(caught.value)


def test_build__fill_where_it_is_meant(tmp_path: Path) -> None:
    X = rows()
    X[100:200] = 0.0
    path = tmp_path / "X.zarr"
    stored(path, X, config={"write_empty_chunks": False})
    with pytest.raises(StoreError, match="chunk 'c/1/0'"):
        daskcoreset.build(path, size=50, random_state=0)
    filled = daskcoreset.build(path, size=50, random_state=0, missing_chunks="fill")
    same = daskcoreset.build(X, size=50, random_state=0)
    assert filled.weights.sum() == pytest.approx(same.weights.sum())
    with pytest.raises(InvalidInputError, match="missing_chunks"):
        daskcoreset.build(path, missing_chunks="zeros")  # type: ignore[call-overload]


def test_build__stored_chunks_of_fill_values_are_data(tmp_path: Path) -> None:
    X, y = rows(), np.zeros(ROWS, np.int64)
    X[100:200], y[300:] = 0.0, 1
    group = zarr.create_group(tmp_path / "group.zarr")
    for name, part in {"X": X, "y": y}.items():
        array = group.create_array(
            name,
            shape=part.shape,
            dtype=part.dtype,
            chunks=(CHUNK, *part.shape[1:]),
            config={"write_empty_chunks": True},
        )
        array[:] = part
    coreset = daskcoreset.build(tmp_path / "group.zarr", "y", method="svm", size=100)
    assert coreset.labels is not None
    assert set(coreset.labels.tolist()) == {0, 1}


@pytest.mark.parametrize("part", ["y", "sample_weight"])
def test_build__lost_chunk_beside_X(tmp_path: Path, part: str) -> None:  # noqa: N802 - the argument
    values = np.arange(ROWS) % 2 + 1
    stored(tmp_path / "part.zarr", values)
    (tmp_path / "part.zarr" / "c" / "2").unlink()
    beside: dict[str, Any] = {part: tmp_path / "part.zarr"}
    with pytest.raises(StoreError, match=r"chunk 'c/2' of .*part.zarr is not stored \(row 200"):
        daskcoreset.build(rows(), **beside, method="uniform", size=50)
    filled = daskcoreset.build(rows(), **beside, method="uniform", size=50, missing_chunks="fill")
    assert len(filled) == 50


def test_build__chunk_inside_a_shard(tmp_path: Path) -> None:
    array = zarr.create_array(
        tmp_path / "X.zarr", shape=(ROWS, 2), dtype="f8", chunks=(50, 2), shards=(200, 2)
    )
    array[:50], array[150:] = rows()[:50], rows()[150:]
    with pytest.raises(StoreError, match=r"chunk 1\.0 in the shard 'c/0/0' .* \(row 50 of"):
        daskcoreset.build(tmp_path / "X.zarr", size=50)


@pytest.mark.parametrize("fill", [np.nan, np.inf, -1.0])
def test_build__other_fill_values(tmp_path: Path, fill: float) -> None:
    stored(tmp_path / "X.zarr", rows(), fill_value=fill)
    lose_chunk(tmp_path / "X.zarr")
    with pytest.raises(StoreError, match="chunk 'c/1/0'"):
        daskcoreset.build(tmp_path / "X.zarr", size=50)
    if not np.isfinite(fill):
        with pytest.raises(InvalidInputError, match="at row 100"):
            daskcoreset.build(tmp_path / "X.zarr", size=50, missing_chunks="fill")


def test_build__no_fill_value_to_fill_with(tmp_path: Path) -> None:
    stored(tmp_path / "X.zarr", rows(), zarr_format=2, fill_value=None)
    lose_chunk(tmp_path / "X.zarr")
    with pytest.raises(StoreError, match=r"'1.0' of .*; restore it\."):
        daskcoreset.build(tmp_path / "X.zarr", size=50, missing_chunks="fill")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", ">f4", "string"])
def test_stored_array__dtypes(tmp_path: Path, dtype: str) -> None:
    array = zarr.create_array(tmp_path / "y.zarr", shape=(8,), dtype=dtype, chunks=(2,))
    array[:4] = np.array(["1", "1", "1", "1"]).astype(array.dtype)
    checked = StoredArray.of(array)
    assert (checked[0:4] == array[0:4]).all()
    with pytest.raises(StoreError, match="chunk 'c/2'"):
        checked[3:8]
    assert len(StoredArray.of(array, "fill")[0:8]) == 8


def test_stored_array__keys(tmp_path: Path) -> None:
    array = stored(tmp_path / "X.zarr", rows())
    checked = pickle.loads(pickle.dumps(StoredArray.of(array)))
    keys: list[Any] = [
        slice(None), slice(-150, None), slice(150, 90), slice(None, None, 2), 3,
        (slice(5, 250), 1), (slice(50, 350), slice(0, 1)), np.array([1, 399]), ...,
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(checked[key], array[key])
    picked = ([1, 399], [0])
    np.testing.assert_array_equal(checked.oindex[picked], array.oindex[picked])
    np.testing.assert_array_equal(checked.vindex[picked], array.vindex[picked])
    lose_chunk(tmp_path / "X.zarr")
    for key in (slice(None, None, 2), (slice(5, 250), 1), np.array([1, 120]), 120):
        with pytest.raises(StoreError, match="is not stored"):
            checked[key]
    with pytest.raises(StoreError, match="a chunk of"):
        checked.oindex[[1, 120], [0]]
    np.testing.assert_array_equal(checked[0:100], array[0:100])


def test_stored_array__store_is_gone(tmp_path: Path) -> None:
    array = stored(tmp_path / "X.zarr", rows())
    choices: list[MissingChunks] = ["raise", "fill"]
    for missing_chunks in choices:
        checked = StoredArray.of(array, missing_chunks)
        shutil.move(tmp_path / "X.zarr", tmp_path / "elsewhere")
        with pytest.raises(StoreError, match=r"X.zarr cannot be read on host .*every worker"):
            checked[0:100]
        assert not (tmp_path / "X.zarr").exists()  # a store that could be written would be made
        with pytest.raises(StoreError, match="X\\.zarr"):
            StoredArray.of(array, "fill")
        shutil.move(tmp_path / "elsewhere", tmp_path / "X.zarr")


def test_stored_array__another_store_under_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = StoredArray.of(stored(tmp_path / "X.zarr", rows()))
    opened_before = array_of(tmp_path / "X.zarr")
    monkeypatch.setattr(stored_module, "_seen", set())  # as in another process
    zarr.open_array(tmp_path / "X.zarr").append(rows())
    assert len(checked[0:200]) == 200  # rows that were added meanwhile change nothing
    monkeypatch.setattr(stored_module, "_seen", set())
    stored(tmp_path / "X.zarr", rows(), chunks=(50, 2), overwrite=True)
    with pytest.raises(StoreError, match="holds another array on host"):
        checked[0:100]
    with pytest.raises(StoreError, match="holds another array on host"):
        daskcoreset.build(opened_before, size=50)


def test_stored_array__consolidated_metadata_alone(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "group.zarr", zarr_format=2)
    array = group.create_array("X", shape=(ROWS, 2), dtype="f8", chunks=(CHUNK, 2))
    array[:] = rows()
    zarr.consolidate_metadata(tmp_path / "group.zarr")
    (tmp_path / "group.zarr" / "X" / ".zarray").unlink()
    assert len(daskcoreset.build(tmp_path / "group.zarr", size=50)) == 50
    (tmp_path / "group.zarr" / "X" / "1.0").unlink()
    with pytest.raises(StoreError, match=r"chunk '1.0'"):
        daskcoreset.build(tmp_path / "group.zarr", size=50)


def test_stored_array__relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    array = stored("X.zarr", rows())
    with zarr.storage.ZipStore("X.zip", mode="w") as store:
        stored(store, rows())
    zipped = zarr.open_array(zarr.storage.ZipStore("X.zip", mode="r"))
    found = [StoredArray.of(array), StoredArray.of(zipped)]
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    for checked in found:
        np.testing.assert_array_equal(checked[:], rows())


@pytest.mark.parametrize("chunks", [None, {}])
def test_build__lost_chunk_of_xarray(tmp_path: Path, chunks: Any) -> None:
    xr = pytest.importorskip("xarray")
    path = tmp_path / "set.zarr"
    values = xr.DataArray(rows(), dims=("row", "column"))
    values.to_dataset(name="X").to_zarr(
        path, encoding={"X": {"chunks": (CHUNK, 2)}}, consolidated=False
    )
    shifted = xr.open_zarr(path, chunks=chunks, consolidated=False)["X"][20:]
    assert len(daskcoreset.build(shifted, size=50)) == 50
    (path / "X" / "c" / "1" / "0").unlink()
    with pytest.raises(StoreError, match="chunk 'c/1/0'"):
        daskcoreset.build(shifted, size=50)


def test_tree_stream_estimators__missing_chunks(tmp_path: Path) -> None:
    path = tmp_path / "X.zarr"
    stored(path, rows())
    lose_chunk(path)
    tree = daskcoreset.CoresetTree.create(tmp_path / "tree", size=50)
    stream = daskcoreset.CoresetStream("lightweight", 50)
    model = daskcoreset.estimators.CoresetKMeans(2, size=50, random_state=0)
    calls: list[Callable[..., Any]] = [tree.append, stream.partial_fit, model.fit]
    for call in calls:
        with pytest.raises(StoreError, match="chunk 'c/1/0'"):
            call(path)
        call(path, missing_chunks="fill")
    with pytest.raises(StoreError, match="chunk 'c/1/0'"):
        model.predict(path).compute()
    assert len(model.predict(path, missing_chunks="fill").compute()) == ROWS
    coreset = daskcoreset.build(rows(), size=100, random_state=0)
    with pytest.raises(StoreError, match="chunk 'c/1/0'"):
        coreset.audit(path, n_clusters=2)
    assert coreset.audit(path, n_clusters=2, missing_chunks="fill") is not None
