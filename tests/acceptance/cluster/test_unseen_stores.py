"""Workers that do not come, or do not see a Zarr store: real processes in folders of their own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

from tests.acceptance.face import (
    CoresetStream,
    CoresetTree,
    build,
    create_tree,
    errors,
    estimators,
    open_rows,
    stream as make_stream,
    time_limit,
)
from tests.acceptance.tools.cluster_harness import RealCluster, real_cluster

pytestmark = [pytest.mark.distributed, pytest.mark.slow]

X = np.random.default_rng(0).normal(5.0, 1.0, size=(2000, 2))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    pytest.importorskip("distributed")
    with real_cluster(tmp_path_factory.mktemp("cluster"), 0) as running:
        yield running


def write(path: Path) -> None:
    array = zarr.create_array(path, shape=X.shape, dtype="f8", chunks=(100, 2))
    array[:] = X


def sources(path: str) -> list[Any]:
    opened = zarr.open_array(path)
    return [path, opened, da.from_zarr(opened, inline_array=True)]


def test_no_worker__is_said_and_timed_out(cluster: RealCluster) -> None:
    said = "give the work more workers"
    with cluster.lent(), pytest.raises(errors.OutOfTimeError, match=said), time_limit(3.0):
        build(da.from_array(X, chunks=(100, 2)), size=60)


def test_build__relative_path_and_a_worker_in_another_folder(
    cluster: RealCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "X.zarr")
    monkeypatch.chdir(tmp_path)
    expected = build("X.zarr", size=100, random_state=0)
    with cluster.lent() as client:
        folder = cluster.joined(client).folder
        for source in sources("X.zarr"):
            found = build(source, size=100, chunks=100, random_state=0)
            assert found.points.min() > 0.5
            assert len(found) == 100
        whole = build("X.zarr", size=100, random_state=0)
        np.testing.assert_array_equal(whole.points, expected.points)
        model = estimators.CoresetKMeans(2, size=100, random_state=0).fit("X.zarr")
        assert model.cluster_centers_.min() > 0.5
        assert not (folder / "X.zarr").exists()


def build_until_all_have_read(rows: Any, options: dict[str, Any]) -> None:
    for _ in range(20):  # a worker may come too late for the blocks of one build
        build(rows, **options)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is another one for each process; this one's holds a store."""
    folder = Path("/proc/self/cwd")
    if not folder.exists():
        pytest.skip("needs Linux: a path that is another one in each process")
    (tmp_path / "client").mkdir()
    monkeypatch.chdir(tmp_path / "client")
    write(tmp_path / "client" / "X.zarr")
    return folder


@pytest.mark.parametrize(
    "missing_chunks", [pytest.param("raise", marks=pytest.mark.nightly), "fill"]
)
def test_build__one_worker_without_the_mount(
    cluster: RealCluster, here: Path, missing_chunks: Any
) -> None:
    with cluster.lent() as client:
        shutil.copytree("X.zarr", cluster.joined(client).folder / "X.zarr")
        options: dict[str, Any] = {"size": 100, "chunks": 100, "random_state": 0}
        rows = open_rows(here / "X.zarr", missing_chunks=missing_chunks)
        with_mount = build(rows, **options)
        assert with_mount.points.min() > 0.5
        lacking = cluster.joined(client).folder
        with pytest.raises(errors.StoreError, match=f"cannot be read on host .*{lacking.name}"):
            build_until_all_have_read(rows, options)
        assert not (lacking / "X.zarr").exists()


def test_tree_and_stream__worker_without_the_mount_or_some_chunks(
    cluster: RealCluster, here: Path, tmp_path: Path
) -> None:
    """A stream reads a path itself, and arrays of Dask on workers."""

    def fed(source: Any) -> CoresetStream:
        stream = make_stream(size=50, leaf_size=400, random_state=0)
        return stream.partial_fit(source)

    tree = create_tree(tmp_path / "tree", size=50)
    tree.append(X, name="first")
    stream = make_stream(size=50, leaf_size=400, random_state=0, store=tmp_path / "stream")
    path, opened, lazy = sources(str(here / "X.zarr"))
    expected = fed(path).coreset()
    with cluster.lent() as client:
        copy = cluster.joined(client).folder / "X.zarr"
        for source in (path, opened):
            np.testing.assert_array_equal(fed(source).coreset().points, expected.points)
        with pytest.raises(errors.StoreError, match="cannot be read on host"):
            stream.partial_fit(lazy)
        assert stream.n_rows == 0
        stream.partial_fit(X)
        for source in (path, opened, lazy):
            with pytest.raises(errors.StoreError, match="cannot be read on host"):
                tree.append(source)
        with pytest.raises(errors.StoreError, match="cannot be read on host"):
            tree.replace("first", path)
        shutil.copytree("X.zarr", copy)
        shutil.rmtree(copy / "c" / "7")
        for source in (path, lazy):
            with pytest.raises(errors.StoreError, match=r"c/7/0.*missing_chunks"):
                tree.append(source)
    tree.verify()
    assert [leaf.rows for leaf in tree.leaves] == [len(X)]
    assert CoresetTree.open(tmp_path / "tree").version == tree.version
    assert expected.points.min() > 0.5
    assert stream.coreset().points.min() > 0.5
