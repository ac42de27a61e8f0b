"""Zarr stores as objects, damaged chunks by name, and pipelines that decode the same values."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import FsspecStore, MemoryStore, ObjectStore, StorePath, ZipStore

from tests.acceptance.face import Coreset, build, errors, forecast, plan
from tests.acceptance.tools.object_stores import ObjectServer
from tests.acceptance.tools.servers import FileServer

N, D, CHUNK = 200, 3, 50
X = np.random.default_rng(2).normal(size=(N, D))
Y = np.arange(N) % 3


def fill(store: Any) -> Any:
    group = zarr.create_group(store)
    for name, array in (("X", X), ("y", Y)):
        group.create_array(name, data=array, chunks=(CHUNK, *array.shape[1:]))
    return store


def assert_reads(X: Any, y: Any = "y", **options: Any) -> Coreset:
    found: Coreset = build(X, y, size=20, random_state=0, **options)
    expected = build(globals()["X"], Y, size=20, random_state=0, chunks=CHUNK)
    np.testing.assert_array_equal(found.points, expected.points)
    np.testing.assert_array_equal(found.labels, expected.labels)
    return found


OPTIONS: dict[str, Any] = {"chunks": CHUNK}


def test_stores__memory_and_places_in_it() -> None:
    store = fill(MemoryStore())
    assert_reads(store, **OPTIONS)
    assert_reads(StorePath(store), **OPTIONS)
    assert_reads(StorePath(store, "X"), StorePath(store, "y"), **OPTIONS)


def test_stores__fsspec_and_obstore(objects: ObjectServer) -> None:
    obstore = pytest.importorskip("obstore.store", reason="obstore is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    base = objects.bucket()
    store = FsspecStore.from_url(f"{base}/d.zarr", storage_options=objects.options)
    fill(store)
    found = assert_reads(store, **OPTIONS)
    assert found.provenance["source"] == f"{base}/d.zarr/X"
    options = objects.options
    other = ObjectStore(
        obstore.S3Store(
            base.removeprefix("s3://"),
            prefix="d.zarr",
            endpoint=objects.endpoint,
            region="eu-west-1",
            access_key_id=options["key"],
            secret_access_key=options["secret"],
            client_options={"allow_http": True},
        ),
        read_only=True,
    )
    found = assert_reads(other, **OPTIONS)
    assert options["secret"] not in str(found.provenance)
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
                errors.InvalidInputError, match="the workers of a cluster do not see"
            ):
                build(store, "y", size=20, chunks=CHUNK)


# --- damage ------------------------------------------------------------------------------


def store_of(path: Path, **options: Any) -> Any:
    array = zarr.create_array(path, shape=X.shape, dtype=X.dtype, **options)
    array[:] = X
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


@pytest.mark.parametrize("how", ["cut", "empty", "flipped"])
@pytest.mark.parametrize(
    ("options", "file", "named"),
    [
        ({"chunks": (25, 3)}, "c/5/0", "chunk 'c/5/0', which holds rows 125 to 150"),
        ({"chunks": (25, 2)}, "c/5/1", "chunk 'c/5/1', which holds rows 125 to 150"),
        ({"chunks": (25, 3), "shards": (50, 3)}, "c/2/0", r"chunk 'c/2/0' \(chunk \d.0\)"),
        ({"chunks": (25, 3), "zarr_format": 2}, "5.0", "chunk '5.0', which holds rows 125"),
    ],
)
def test_damage__names_store_chunk_and_rows(
    how: str, options: dict[str, Any], file: str, named: str, tmp_path: Path
) -> None:
    store_of(tmp_path / "a.zarr", **options)
    damage(tmp_path / "a.zarr" / file, how)
    with pytest.raises(errors.StoreError, match=named) as caught:
        build(tmp_path / "a.zarr", size=20, chunks=CHUNK)
    message = str(caught.value)
    assert f"rows 100 to 150 of 'file://{tmp_path}/a.zarr'" in message
    assert "restore it from a copy" in message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


@pytest.mark.distributed
def test_damage__is_named_by_workers_too(cluster: Any, tmp_path: Path) -> None:
    from distributed import Client

    store_of(tmp_path / "a.zarr", chunks=(25, 3))
    damage(tmp_path / "a.zarr" / "c/5/0", "cut")
    with (
        Client(cluster),
        pytest.raises(errors.StoreError, match="chunk 'c/5/0', which holds rows 125"),
    ):
        build(str(tmp_path / "a.zarr"), size=20, chunks=CHUNK)


def test_damage__of_a_presigned_url_shows_no_token(files: FileServer) -> None:
    store_of(files.folder / "a.zarr", chunks=(25, 3))
    lazy = plan(f"{files.url}/a.zarr", size=20, chunks=CHUNK)
    damage(files.folder / "a.zarr" / "c/5/0", "cut")
    with pytest.raises(errors.CoresetError, match=f"of '{files.url}/a.zarr'"):
        lazy.compute()


# --- pipelines ---------------------------------------------------------------------------


def test_plan__of_other_inputs_names_no_decoder() -> None:
    plan = forecast(X, size=20)
    assert plan.decoder is None
    assert "decoded" not in str(plan)


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
    with pytest.raises(errors.StoreError, match="access is denied") as caught:
        build(f"{url}?sig=S3CRET", size=10)
    assert "S3CRET" not in str(caught.value)
    files.failing["zarr.json"] = 403
    with pytest.raises(errors.InvalidInputError, match="access is denied") as denied:
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
