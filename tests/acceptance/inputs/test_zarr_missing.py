"""Zarr chunks and stores that are not there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from tests.acceptance.face import (
    build,
    call,
    create_tree,
    errors,
    estimators,
    open_rows,
    plan,
)
from tests.acceptance.face import (
    stream as make_stream,
)

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
    assert len(build(form(path), size=50, random_state=0)) == 50
    key = lose_chunk(path)
    with pytest.raises(
        errors.StoreError, match=r"is not stored.*missing_chunks=\"fill\""
    ) as caught:
        build(form(path), size=50, random_state=0)
    assert repr(key) in str(caught.value)
    assert "X.zarr" in str(caught.value)


def test_build__fill_where_it_is_meant(tmp_path: Path) -> None:
    X = rows()
    X[100:200] = 0.0
    path = tmp_path / "X.zarr"
    stored(path, X, config={"write_empty_chunks": False})
    with pytest.raises(errors.StoreError, match="chunk 'c/1/0'"):
        build(path, size=50, random_state=0)
    filled = build(open_rows(path, missing_chunks="fill"), size=50, random_state=0)
    same = build(X, size=50, random_state=0)
    assert filled.weights.sum() == pytest.approx(same.weights.sum())
    with pytest.raises(errors.InvalidInputError, match="missing_chunks"):
        build(open_rows(path, missing_chunks="zeros"))


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
    coreset = build(tmp_path / "group.zarr", "y", method="svm", size=100)
    assert coreset.labels is not None
    assert set(coreset.labels.tolist()) == {0, 1}


@pytest.mark.parametrize("fill", [np.nan, np.inf, -1.0])
def test_build__other_fill_values(tmp_path: Path, fill: float) -> None:
    stored(tmp_path / "X.zarr", rows(), fill_value=fill)
    lose_chunk(tmp_path / "X.zarr")
    with pytest.raises(errors.StoreError, match="chunk 'c/1/0'"):
        build(tmp_path / "X.zarr", size=50)
    if not np.isfinite(fill):
        with pytest.raises(errors.InvalidInputError, match="at row 100"):
            build(open_rows(tmp_path / "X.zarr", missing_chunks="fill"), size=50)


def test_build__no_fill_value_to_fill_with(tmp_path: Path) -> None:
    stored(tmp_path / "X.zarr", rows(), zarr_format=2, fill_value=None)
    lose_chunk(tmp_path / "X.zarr")
    with pytest.raises(errors.StoreError, match=r"'1.0' of .*; restore it\."):
        build(open_rows(tmp_path / "X.zarr", missing_chunks="fill"), size=50)


def test_stored_array__consolidated_metadata_alone(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "group.zarr", zarr_format=2)
    array = group.create_array("X", shape=(ROWS, 2), dtype="f8", chunks=(CHUNK, 2))
    array[:] = rows()
    zarr.consolidate_metadata(tmp_path / "group.zarr")
    (tmp_path / "group.zarr" / "X" / ".zarray").unlink()
    assert len(build(tmp_path / "group.zarr", size=50)) == 50
    (tmp_path / "group.zarr" / "X" / "1.0").unlink()
    with pytest.raises(errors.StoreError, match=r"chunk '1.0'"):
        build(tmp_path / "group.zarr", size=50)


@pytest.mark.parametrize("chunks", [None, {}])
def test_build__lost_chunk_of_xarray(tmp_path: Path, chunks: Any) -> None:
    xr = pytest.importorskip("xarray")
    path = tmp_path / "set.zarr"
    values = xr.DataArray(rows(), dims=("row", "column"))
    values.to_dataset(name="X").to_zarr(
        path, encoding={"X": {"chunks": (CHUNK, 2)}}, consolidated=False
    )
    shifted = xr.open_zarr(path, chunks=chunks, consolidated=False)["X"][20:]
    assert len(build(shifted, size=50)) == 50
    (path / "X" / "c" / "1" / "0").unlink()
    with pytest.raises(errors.StoreError, match="chunk 'c/1/0'"):
        build(shifted, size=50)


def test_tree_stream_estimators__missing_chunks(tmp_path: Path) -> None:
    path = tmp_path / "X.zarr"
    stored(path, rows())
    lose_chunk(path)
    tree = create_tree(tmp_path / "tree", size=50)
    stream = make_stream(method="lightweight", size=50)
    model = estimators.CoresetKMeans(2, size=50, random_state=0)
    filled = open_rows(path, missing_chunks="fill")
    calls: list[Callable[..., Any]] = [tree.append, stream.partial_fit, model.fit]
    for method in calls:
        with pytest.raises(errors.StoreError, match="chunk 'c/1/0'"):
            method(path)
        call(method, filled)
    with pytest.raises(errors.StoreError, match="chunk 'c/1/0'"):
        model.predict(path).compute()
    assert len(call(model.predict, filled).compute()) == ROWS
    coreset = build(rows(), size=100, random_state=0)
    with pytest.raises(errors.StoreError, match="chunk 'c/1/0'"):
        coreset.audit(path, n_clusters=2)
    assert call(coreset.audit, filled, n_clusters=2) is not None


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", ">f4", "string"])
def test_labels__of_every_dtype(tmp_path: Path, dtype: str) -> None:
    array: Any = zarr.create_array(tmp_path / "y.zarr", shape=(8,), dtype=dtype, chunks=(2,))
    array[:] = np.array(["1", "0"] * 4).astype(int).astype(array.dtype)
    X = np.arange(16.0).reshape(8, 2)
    found = build(X, tmp_path / "y.zarr", size=4, random_state=0)
    assert found.labels is not None
    np.testing.assert_array_equal(found.labels, array[:][found.indices])
    (tmp_path / "y.zarr" / "c" / "2").unlink()
    with pytest.raises(errors.StoreError, match="chunk 'c/2'"):
        build(X, tmp_path / "y.zarr", size=4)


@pytest.mark.parametrize("missing_chunks", ["raise", "fill"])
def test_store__that_is_gone_where_it_is_read(missing_chunks: Any, tmp_path: Path) -> None:
    stored(tmp_path / "X.zarr", rows())
    lazy = plan(open_rows(tmp_path / "X.zarr", missing_chunks=missing_chunks), size=50)
    shutil.move(tmp_path / "X.zarr", tmp_path / "elsewhere")
    with pytest.raises(errors.StoreError, match=r"X.zarr cannot be read on host .*every worker"):
        lazy.compute()
    assert not (tmp_path / "X.zarr").exists()  # a store that could be written would be made


def test_store__with_a_relative_path_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stored("X.zarr", rows())
    with zarr.storage.ZipStore("X.zip", mode="w") as store:
        stored(store, rows())
    zipped = zarr.open_array(zarr.storage.ZipStore("X.zip", mode="r"))
    lazies = [plan(X, size=50, random_state=0) for X in ("X.zarr", zipped)]
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    one, other = (lazy.compute() for lazy in lazies)
    np.testing.assert_array_equal(one.points, other.points)
    np.testing.assert_array_equal(one.points, rows()[one.indices])
