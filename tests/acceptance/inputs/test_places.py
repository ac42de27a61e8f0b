"""Inputs by URL, glob and list: the same rows from every place, and errors that say what to set."""

from __future__ import annotations

import io
import json
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from tests.acceptance.face import (
    Coreset,
    WeightedPoints,
    build,
    errors,
    estimators,
    open_rows,
    plan,
)
from tests.acceptance.tools.input_kinds import all_rows
from tests.acceptance.tools.object_stores import KEY, SECRET, ObjectServer
from tests.acceptance.tools.servers import FileServer
from tests.pairs import each, few

N, D, CHUNK = 240, 3, 60
X = np.random.default_rng(1).normal(size=(N, D))
Y = np.arange(N) % 3
SECRETS = ("S3CRET", SECRET, "t0ken")


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def hdf5(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, chunks=(20, *array.shape[1:]))
    return buffer.getvalue()


def parquet(rows: slice = slice(None)) -> bytes:
    table = pa.table({**{f"f{j}": X[rows, j] for j in range(D)}, "y": Y[rows]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=25)
    return bytes(sink.getvalue())


def contents() -> Iterator[tuple[str, bytes]]:
    """Files of every format, whole and in four parts."""
    yield "x.npy", npy(X)
    yield "y.npy", npy(Y)
    yield "d.npz", npz(X=X, y=Y)
    yield "d.h5", hdf5(X=X, y=Y)
    yield "d.parquet", parquet()
    for i in range(4):
        rows = slice(i * 60, (i + 1) * 60)
        # Natural order: 9 before 10.
        yield f"parts/x-{i + 8}.npy", npy(X[rows])
        yield f"parts/y-{i + 8}.npy", npy(Y[rows])
        yield f"parts/d-{i + 8}.npz", npz(X=X[rows], y=Y[rows])
        yield f"parts/d-{i + 8}.h5", hdf5(X=X[rows], y=Y[rows])
        yield f"parts/p-{i + 8}.parquet", parquet(rows)
        yield f"hive/part={i + 8}/a.parquet", parquet(rows)


def write(filesystem: Any, base: str) -> None:
    for name, data in contents():
        path = f"{base}/{name}"
        filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
        with filesystem.open(path, "wb") as file:
            file.write(data)


@pytest.fixture(scope="module")
def bucket(objects: ObjectServer) -> str:
    base = objects.bucket()
    write(objects.filesystem(), base)
    stored = zarr.create_group(f"{base}/d.zarr", storage_options=objects.options)
    for name, array in (("X", X), ("y", Y)):
        stored.create_array(name, data=array, chunks=(CHUNK, *array.shape[1:]))
    return base


@pytest.fixture(scope="module")
def reference() -> Coreset:
    return build(X, Y, size=40, random_state=0, chunks=CHUNK)


SINGLE: list[tuple[str, str]] = [
    ("x.npy", "y.npy"), ("d.npz", "y"), ("d.h5", "y"), ("d.parquet", "y"),
]  # fmt: skip
SEVERAL: list[tuple[str, str]] = [
    ("parts/x-*.npy", "parts/y-*.npy"), ("parts/d-*.npz", "y"), ("parts/d-*.h5", "y"),
    ("parts/p-*.parquet", "y"), ("hive", "y"),
]  # fmt: skip


def check(base: str, paths: tuple[str, str], reference: Coreset, **options: Any) -> None:
    rows, y = paths
    labels = f"{base}/{y}" if "." in y else y
    if rows == "hive":
        options["columns"] = [f"f{j}" for j in range(D)]
    found = build(
        open_rows(f"{base}/{rows}", **options), labels, size=40, random_state=0, chunks=CHUNK
    )
    assert WeightedPoints.equals(found, reference)
    if "*" not in rows:
        assert str(found.provenance["source"]).startswith(f"{base}/{rows}")


@pytest.mark.parametrize("paths", SINGLE + SEVERAL)
def test_paths__of_a_folder(paths: tuple[str, str], reference: Coreset, tmp_path: Path) -> None:
    write(fsspec.filesystem("file"), str(tmp_path))
    check(str(tmp_path), paths, reference)


@few("paths", [*SINGLE[:2], *SEVERAL[::3], *SINGLE[2:], *SEVERAL[1:3], SEVERAL[4]], 4)
def test_urls__of_memory(paths: tuple[str, str], reference: Coreset) -> None:
    base = f"memory://{uuid.uuid4().hex}"
    filesystem = fsspec.filesystem("memory")
    write(filesystem, base)
    check(base, paths, reference)
    filesystem.rm(base, recursive=True)


@few("paths", [("d.zarr", "y"), *SINGLE[:2], *SEVERAL, *SINGLE[2:]], 4)
def test_urls__of_s3(
    paths: tuple[str, str], bucket: str, objects: ObjectServer, reference: Coreset
) -> None:
    check(bucket, paths, reference, storage_options=objects.options)


@pytest.mark.parametrize("paths", SINGLE)
def test_urls__of_http(paths: tuple[str, str], files: FileServer, reference: Coreset) -> None:
    write(fsspec.filesystem("file"), str(files.folder))
    check(files.url, paths, reference)
    login = files.url.replace("://", "://me:S3CRET@")
    rows, y = paths
    labels = f"{login}/{y}?sig=t0ken" if "." in y else y
    found = build(f"{login}/{rows}?sig=t0ken#x", labels, size=40, random_state=0, chunks=CHUNK)
    assert WeightedPoints.equals(found, reference)
    assert_no_secret(str(found), json.dumps(dict(found.provenance), default=str))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (npy(X[:, :2]), r"b.npy' has rows of shape \(2,\) and .*a.npy' of shape \(3,\)"),
        (npy(X.astype("f4")), "b.npy' has rows of .* dtype float32, and .*a.npy' of .* float64"),
        (npy(Y), r"b.npy' has rows of shape \(\)"),
        (b"nonsense", "b.npy' .*give the path"),
    ],
)
def test_lists__of_files_that_differ(other: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy(X))
    (tmp_path / "b.npy").write_bytes(other)
    with pytest.raises(errors.InvalidInputError, match=message):
        build(str(tmp_path / "*.npy"))


def assert_no_secret(*texts: str) -> None:
    for text in texts:
        for secret in SECRETS:
            assert secret not in text


def shown(call: Callable[[], Any]) -> tuple[str, str]:
    """The message of the error that a call raises, and its traceback as Python prints it."""
    with pytest.raises(errors.CoresetError) as caught:
        call()
    error = caught.value
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    # Without the lines of source, which hold what the test itself passes.
    lines = traceback.format_exception_only(error)
    return str(error), "".join(lines)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nix.npy", "cannot be opened as an array of numbers.*check the URL"),
        ("nix.h5", "cannot be opened as an HDF5 file.*check the URL"),
        ("nix.parquet", "check the URL"),
        ("nix.zarr", "cannot be opened as a Zarr store.*check the URL"),
        ("nix-*.npy", "matches no file"),
    ],
)
def test_errors__of_what_is_not_there(
    name: str, message: str, bucket: str, objects: ObjectServer
) -> None:
    with pytest.raises(FileNotFoundError, match=message) as caught:
        build(open_rows(f"{bucket}/{name}", storage_options=objects.options))
    assert f"{bucket}/{name}" in str(caught.value)
    assert SECRET not in str(caught.value)


@each(name=["x.npy", "d.npz", "d.h5", "d.parquet", "d.zarr"], status=[403, 404, 500])
def test_errors__of_servers(name: str, status: int, files: FileServer) -> None:
    url = f"{files.url.replace('://', '://me:S3CRET@')}/{name}?sig=t0ken"
    files.failing[""] = status
    message, printed = shown(lambda: build(url))
    assert_no_secret(message, printed)
    assert f"{files.url}/{name}" in message
    assert "pass storage_options" in message


def test_errors__of_servers_that_are_not_there() -> None:
    options = {"key": KEY, "secret": SECRET, "endpoint_url": "http://127.0.0.1:9"}
    options["config_kwargs"] = {"retries": {"max_attempts": 1}}  # type: ignore[assignment]
    message, _ = shown(lambda: build(open_rows("s3://bucket/x.npy", storage_options=options)))
    assert "s3://bucket/x.npy" in message
    assert "storage_options with the endpoint" in message
    assert_no_secret(message)
    message, _ = shown(lambda: build("http://127.0.0.1:9/x.npy?sig=t0ken"))
    assert "ConnectionRefusedError" in message
    message, _ = shown(lambda: build("nix://a/x.npy"))
    assert "Protocol not known: nix" in message


def test_errors__while_rows_are_read(files: FileServer) -> None:
    write(fsspec.filesystem("file"), str(files.folder))
    lazy = plan(f"{files.url}/x.npy?sig=t0ken", size=9, chunks=60)
    (files.folder / "x.npy").write_bytes(npy(X)[:3000])
    message, printed = shown(lazy.compute)
    assert "rows 60 to 120" in message or "rows 120 to 180" in message or "180 to 240" in message
    assert "cut short" in message or "cannot be read" in message
    assert_no_secret(message, printed)
    files.failing["x.npy"] = 403
    message, printed = shown(lazy.compute)
    assert "403, message='Forbidden'" in message
    assert f"{files.url}/x.npy" in message
    assert_no_secret(message, printed)


def test_errors__of_a_short_remote_file(files: FileServer) -> None:
    (files.folder / "x.npy").write_bytes(npy(X)[:3000])
    with pytest.raises(errors.StoreError, match=r"rows 0 to 240 of .*x.npy' cannot be read"):
        build(f"{files.url}/x.npy", size=9)
    (files.folder / "f.npy").write_bytes(npy(np.asfortranarray(X)))
    with pytest.raises(errors.InvalidInputError, match="stored column by column"):
        build(f"{files.url}/f.npy")
    (files.folder / "o.npy").write_bytes(npy(np.array([[{}]])))
    with pytest.raises(errors.InvalidInputError, match="holds objects"):
        build(f"{files.url}/o.npy")


def test_errors__of_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        message = "Please install paramiko"
        raise ImportError(message)

    monkeypatch.setattr(fsspec, "url_to_fs", missing)
    with pytest.raises(
        errors.MissingDependencyError, match=r"'sftp://b/x.npy' .*paramiko\); install"
    ):
        build("sftp://me:S3CRET@b/x.npy")


@pytest.mark.parametrize("name", ["x.npy", "x.zarr"])
def test_errors__of_the_web_name_the_extra(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(errors.MissingDependencyError, match=r'"daskcoreset\[remote\]"'):
        build(f"http://127.0.0.1:9/{name}")


def test_build__of_a_name_that_is_too_long_names_the_argument() -> None:
    with pytest.raises(
        errors.InvalidInputError, match=r"X cannot be opened as a file or store: 'xxx"
    ):
        build("x" * 10_000)


def test_lists__are_read_in_the_order_given(tmp_path: Path) -> None:
    write(fsspec.filesystem("file"), str(tmp_path))
    parts = [tmp_path / f"parts/x-{i}.npy" for i in (10, 8)]
    expected = np.vstack([X[120:180], X[:60]])
    np.testing.assert_array_equal(all_rows(parts).points, expected)
    tables = [str(tmp_path / f"parts/p-{i}.parquet") for i in (10, 8)]
    found = all_rows(tables, "y")
    np.testing.assert_array_equal(found.points, expected)
    assert found.provenance["source"] == ", ".join(tables)
    labels = [tmp_path / f"parts/y-{i}.npy" for i in (10, 8)]  # paths, where text would be labels
    expected = np.concatenate([Y[120:180], Y[:60]])
    np.testing.assert_array_equal(all_rows(parts, labels).labels, expected)
    model = estimators.CoresetKMeans(2, size=50, random_state=0).fit(parts)
    assert model.predict(parts).compute().shape == (120,)


def test_globs__are_not_taken_for_files_that_are_there(tmp_path: Path) -> None:
    odd = tmp_path / "a[1].npy"
    odd.write_bytes(npy(X))
    assert build(odd, size=10, random_state=0).n_features == D
