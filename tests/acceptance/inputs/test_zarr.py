"""Zarr stores as objects, chunks and stores that are not there, and damage by name."""

from __future__ import annotations

import importlib.util
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore, StorePath, ZipStore

from tests.acceptance.face import (
    Coreset,
    build,
    errors,
    open_rows,
    plan,
)
from tests.acceptance.tools.object_stores import SECRET, ObjectServer, store_at
from tests.acceptance.tools.servers import FileServer
from tests.pairs import each

ROWS, CHUNK = 400, 100


def rows() -> Any:
    return np.random.default_rng(0).normal(5.0, 1.0, size=(ROWS, 2))


def stored(path: Any, data: Any, **layout: Any) -> Any:
    layout = {"chunks": (CHUNK, *data.shape[1:])} | layout
    array = zarr.create_array(path, shape=data.shape, dtype=data.dtype, **layout)
    array[:] = data
    return array


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


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", ">f4", "string"])
def test_labels__of_every_dtype(tmp_path: Path, dtype: str) -> None:
    array: Any = zarr.create_array(tmp_path / "y.zarr", shape=(8,), dtype=dtype, chunks=(2,))
    array[:] = np.array(["1", "0"] * 4).astype(int).astype(array.dtype)
    X = np.arange(16.0).reshape(8, 2)
    found = build(X, tmp_path / "y.zarr", size=4, random_state=0)
    assert found.labels is not None
    np.testing.assert_array_equal(found.labels, array[:][found.indices])


def test_plan__names_the_decoder(tmp_path: Path) -> None:
    class OwnStore(LocalStore):
        """What it reads could differ from its files, so Zarr reads it."""

    stored(tmp_path / "X.zarr", rows())
    by_path = plan(tmp_path / "X.zarr", size=50, random_state=0)
    by_zarr = plan(zarr.open_array(OwnStore(tmp_path / "X.zarr")), size=50, random_state=0)
    fastest = "zarr" if importlib.util.find_spec("zarrs") is None else "zarrs"
    assert f"decoded by {fastest}," in str(by_path)
    assert "decoded by zarr," in str(by_zarr)
    assert "decoded" not in str(plan(rows(), size=50))
    np.testing.assert_array_equal(by_path.compute().indices, by_zarr.compute().indices)


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


N, D, BLOCK = 200, 3, 50
VALUES = np.random.default_rng(2).normal(size=(N, D))
Y = np.arange(N) % 3


def fill(store: Any) -> Any:
    group = zarr.create_group(store)
    for name, array in (("X", VALUES), ("y", Y)):
        group.create_array(name, data=array, chunks=(BLOCK, *array.shape[1:]))
    return store


def assert_reads(source: Any, y: Any = "y", **options: Any) -> Coreset:
    found: Coreset = build(source, y, size=20, random_state=0, **options)
    expected = build(VALUES, Y, size=20, random_state=0, chunks=BLOCK)
    np.testing.assert_array_equal(found.points, expected.points)
    np.testing.assert_array_equal(found.labels, expected.labels)
    return found


OPTIONS: dict[str, Any] = {"chunks": BLOCK}


def test_stores__memory_and_places_in_it() -> None:
    store = fill(MemoryStore())
    assert_reads(store, **OPTIONS)
    assert_reads(StorePath(store), **OPTIONS)
    assert_reads(StorePath(store, "X"), StorePath(store, "y"), **OPTIONS)


def test_stores__fsspec_and_obstore(objects: ObjectServer) -> None:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    base = objects.bucket()
    store = FsspecStore.from_url(f"{base}/d.zarr", storage_options=objects.options)
    fill(store)
    found = assert_reads(store, **OPTIONS)
    assert found.provenance["source"] == f"{base}/d.zarr/X"
    opened = store_at(objects.endpoint, base.removeprefix("s3://"), "d.zarr")
    found = assert_reads(ObjectStore(opened, read_only=True), **OPTIONS)
    assert SECRET not in str(found.provenance)
    assert found.provenance["source"] == f"{base}/d.zarr/X"


def icechunk_repository(folder: Path) -> Any:
    icechunk = pytest.importorskip("icechunk", reason="icechunk is not installed")
    storage = icechunk.local_filesystem_storage(str(folder / "ice"))
    return icechunk.Repository.create(storage)


def test_stores__of_nothing() -> None:
    with pytest.raises(
        errors.InvalidInputError, match=r"X cannot be opened as a Zarr store \(MemoryStore"
    ):
        build(MemoryStore())


@pytest.mark.distributed
@pytest.mark.filterwarnings("default")
def test_stores__of_this_process_are_refused_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    from distributed import Client

    with Client(cluster):
        stores = [fill(MemoryStore()), fill(FsspecStore.from_url("memory://on-a-cluster"))]
        if importlib.util.find_spec("icechunk"):
            stores.append(fill(icechunk_repository(tmp_path).writable_session("main").store))
        for store in stores:
            with pytest.raises(
                errors.InvalidInputError, match="the workers of a cluster cannot see"
            ):
                build(store, "y", size=20, chunks=BLOCK)


# --- damage ------------------------------------------------------------------------------


def store_of(path: Path, **options: Any) -> Any:
    array = zarr.create_array(path, shape=VALUES.shape, dtype=VALUES.dtype, **options)
    array[:] = VALUES
    return array


def damage(file: Path, how: str) -> None:
    data = bytearray(file.read_bytes())
    if how == "cut":
        del data[len(data) // 2 :]
    elif how == "empty":
        data.clear()
    else:
        data[: len(data) // 2] = b"\xff" * (len(data) // 2)
    file.write_bytes(bytes(data))


@each(
    how=["cut", "empty", "flipped"],
    stored={
        "chunks": ({"chunks": (25, 3)}, "c/5/0"),
        "columns": ({"chunks": (25, 2)}, "c/5/1"),
        "shards": ({"chunks": (25, 3), "shards": (50, 3)}, "c/2/0"),
        "format 2": ({"chunks": (25, 3), "zarr_format": 2}, "5.0"),
    },
)
def test_damage__names_store_and_chunk(
    how: str, stored: tuple[dict[str, Any], str], tmp_path: Path
) -> None:
    options, file = stored
    store_of(tmp_path / "a.zarr", **options)
    damage(tmp_path / "a.zarr" / file, how)
    with pytest.raises(errors.StoreError, match=f"chunk '{file}' of .* cannot be read") as caught:
        build(tmp_path / "a.zarr", size=20, chunks=BLOCK)
    message = str(caught.value)
    assert f"file://{tmp_path}/a.zarr" in message
    assert "restore it from a copy" in message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


def test_damage__of_a_presigned_url_shows_no_token(files: FileServer) -> None:
    store_of(files.folder / "a.zarr", chunks=(25, 3))
    lazy = plan(f"{files.url}/a.zarr", size=20, chunks=BLOCK)
    damage(files.folder / "a.zarr" / "c/5/0", "cut")
    with pytest.raises(errors.CoresetError, match=f"of {files.url}/a.zarr"):
        lazy.compute()


# --- pipelines ---------------------------------------------------------------------------


def test_http__with_a_query(files: FileServer) -> None:
    array = zarr.create_array(files.folder / "X.zarr", shape=(100, 2), chunks=(50, 2), dtype="f8")
    array[:] = np.random.default_rng(0).random((100, 2))
    expected = build(array[:], size=10, random_state=0)
    url = f"{files.url}/X.zarr"
    for location in (f"{url}?sv=1&sig=S3CRET%2Ba%3D", f"{url}/?sv=1&sig=S3CRET%2Ba%3D"):
        files.requests.clear()
        found = build(location, size=10, random_state=0, chunks=100)
        assert np.array_equal(found.points, expected.points)
        asked = [request for request in files.requests if "/c/" in request]
        assert len(asked) == 2
        assert all(request.endswith("?sv=1&sig=S3CRET%2Ba%3D") for request in asked)
        assert "S3CRET" not in str(found.provenance)
    files.failing["/c/1/0"] = 403
    with pytest.raises(
        errors.StoreError, match=r"'c/1/0' of .* \(ClientResponseError: 403"
    ) as caught:
        build(f"{url}?sig=S3CRET", size=10)
    assert "S3CRET" not in str(caught.value)
    files.failing["zarr.json"] = 403
    with pytest.raises(errors.InvalidInputError, match=r"\(ClientResponseError: 403") as denied:
        build(f"{url}?sig=S3CRET", size=10)
    assert "S3CRET" not in str(denied.value)


def test_stores__zip(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w") as written:
        fill(written)
    with ZipStore(tmp_path / "a.zip", mode="r") as store:
        found = assert_reads(store, **OPTIONS)
    assert str(found.provenance["source"]).endswith("a.zip/X")


@pytest.mark.filterwarnings("default")  # of a storage that is not safe for many writers
def test_stores__icechunk(tmp_path: Path) -> None:
    repository = icechunk_repository(tmp_path)
    session = repository.writable_session("main")
    fill(session.store)
    snapshot = session.commit("rows")
    found = assert_reads(repository.readonly_session("main").store, **OPTIONS)
    assert found.provenance["source"] == f"IcechunkStore({snapshot})/X"
