from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from daskcoreset import CoresetTree, open_rows
from tests.acceptance.tools.object_stores import ObjectServer, object_server
from tests.acceptance.tools.servers import FileServer, file_server
from tests.acceptance.tools.view_histories import assert_alike

pytestmark = pytest.mark.usefixtures("quick_disk")

OPTIONS: dict[str, Any] = {"size": 20, "random_state": 0}


@pytest.mark.slow
@pytest.mark.nightly
def test_follow__objects_by_their_entity_tags(tmp_path: Path) -> None:
    import fsspec

    with object_server() as server:
        assert isinstance(server, ObjectServer)
        url = server.bucket()
        filesystem, root = fsspec.url_to_fs(url, **server.options)

        def put(name: str, rows: Any) -> None:
            with filesystem.open(f"{root}/{name}", "wb") as file:
                np.save(file, rows)

        for i in range(3):
            put(f"{i}.npy", np.full((9, 2), float(i)))
        files = open_rows(f"{url}/*.npy", storage_options=server.options)
        view = CoresetTree.follow(files, tmp_path / "files", **OPTIONS)
        put("1.npy", np.full((9, 2), 7.0))
        put("3.npy", np.full((9, 2), 8.0))
        assert view.refresh().read == ("1.npy", "3.npy")
        array = zarr.create_array(
            f"{url}/rows.zarr",
            shape=(20, 2),
            chunks=(5, 2),
            dtype="f8",
            storage_options=dict(server.options),
        )
        array[:] = 1.0
        rows = open_rows(f"{url}/rows.zarr", storage_options=server.options)
        stored = CoresetTree.follow(rows, tmp_path / "view", **OPTIONS)
        array[7] = 3.0
        assert stored.refresh().read == ("block-1",)
        assert not stored.refresh().read


@pytest.fixture
def on_the_web(tmp_path: Path) -> Iterator[tuple[Any, FileServer]]:
    """An array, and the server of its folder, which lists no folders."""
    pytest.importorskip("aiohttp")
    (tmp_path / "www").mkdir()
    array = zarr.create_array(tmp_path / "www" / "a.zarr", shape=(20, 2), chunks=(5, 2), dtype="f8")
    array[:] = np.arange(40.0).reshape(20, 2)
    with file_server(tmp_path / "www") as server:
        yield array, server


def test_follow__reads_all_of_a_server_without_entity_tags(
    on_the_web: tuple[Any, FileServer], tmp_path: Path
) -> None:
    array, server = on_the_web
    url = f"{server.url}/a.zarr"
    view = CoresetTree.follow(url, tmp_path / "view", **OPTIONS)
    several = CoresetTree.follow([url], tmp_path / "list", **OPTIONS)
    array[7] = -1.0
    array.append(np.ones((5, 2)))
    done = view.refresh()
    assert (len(done.read), done.changed, done.added) == (5, ("block-1",), ("block-4",))
    version = view.version
    assert not view.refresh()
    assert view.version == version
    assert several.refresh().changed == (url,)
    assert not several.refresh()


def test_follow__files_of_the_web_by_their_entity_tags(
    on_the_web: tuple[Any, FileServer], tmp_path: Path
) -> None:
    _, server = on_the_web
    server.tagged = True
    for i in range(2):
        np.save(tmp_path / "www" / f"{i}.npy", np.full((9, 2), float(i)))
    urls = [f"{server.url}/{i}.npy" for i in range(2)]
    view = CoresetTree.follow(urls, tmp_path / "view", **OPTIONS)
    np.save(tmp_path / "www" / "1.npy", np.full((9, 2), 7.0))
    assert view.refresh().read == (urls[1],)


def test_follow__an_array_of_the_user_by_what_its_file_system_lists(tmp_path: Path) -> None:
    store = zarr.storage.FsspecStore.from_url("memory://followed")
    group = zarr.open_group(store, mode="w")
    X = group.create_array("X", shape=(20, 4), chunks=(5, 2), dtype="f8")
    X[:] = np.arange(80.0).reshape(20, 4)
    view = CoresetTree.follow(X, tmp_path / "view", **OPTIONS)
    assert not view.refresh().read
    X[7, 3] = -1.0
    X.append(np.ones((5, 4)))
    assert view.refresh().read == ("block-1", "block-4")
    assert not view.refresh().read
    assert_alike(view, CoresetTree.follow(X, tmp_path / "fresh", **OPTIONS))


def test_follow__chunks_behind_links(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "rows", shape=(20, 2), chunks=(5, 2), dtype="f8")
    array[:] = 1.0
    (tmp_path / "rows" / "c").rename(tmp_path / "elsewhere")
    (tmp_path / "rows" / "c").symlink_to(tmp_path / "elsewhere")
    view = CoresetTree.follow(tmp_path / "rows", tmp_path / "view", **OPTIONS)
    array[7] = 3.0
    assert view.refresh().read == ("block-1",)
    assert not view.refresh().read
