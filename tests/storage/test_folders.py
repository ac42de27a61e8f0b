"""One contract of folders of immutable objects with one root: on a disk, in memory, on a server."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from daskcoreset.errors import StoreError
from daskcoreset.storage.disk import DiskFolder, find_folder
from daskcoreset.storage.locations import RefusedError
from daskcoreset.storage.objects import ROOT
from tests.acceptance.tools.object_stores import ObjectServer

FILES = {"zarr.json": b"{}", "points/c/0/0": bytes(range(256))}


@pytest.fixture(params=["disk", "memory", "server"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "disk":
        return find_folder("path", tmp_path / "new" / "folder")
    obstore = pytest.importorskip("obstore.store")
    if request.param == "memory":
        from zarr.storage import ObjectStore

        return find_folder("path", ObjectStore(obstore.MemoryStore()))
    server: ObjectServer = request.getfixturevalue("objects")
    return find_folder("path", f"{server.bucket()}/folder", server.options)


def test_root__is_swapped_where_it_is_the_one_that_was_read(folder: Any) -> None:
    assert folder.root() is None
    assert folder.keys() == []
    first = folder.swap(b"one", None)
    assert first is not None
    assert folder.swap(b"other", None) is None
    found = folder.root()
    assert (found.data, found.tag) == (b"one", first)
    second = folder.swap(b"two", first)
    assert second is not None
    assert folder.swap(b"late", first) is None
    assert folder.root().data == b"two"
    assert folder.keys() == [ROOT]


def test_root__of_many_writers_one_is_first(folder: Any) -> None:
    tag = folder.swap(b"0", None)
    for turn in range(3):
        made: list[Any] = []
        barrier = threading.Barrier(4)

        def write(name: bytes, tag: Any = tag, said: Any = made, barrier: Any = barrier) -> None:
            barrier.wait()
            said.append(folder.swap(name, tag))

        names = [f"{turn} {i}".encode() for i in range(4)]
        threads = [threading.Thread(target=write, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [tag] = [new for new in made if new is not None]
        assert folder.root().tag == tag


def test_objects__are_put_read_listed_and_removed(folder: Any) -> None:
    assert folder.get("part/a") is None
    for key in ("part/a", "part/b", "part/a"):  # again: it is the same
        folder.put(key, FILES)
    assert folder.get("part/a") == FILES
    assert sorted(folder.keys()) == ["part/a", "part/b"]
    folder.remove(["part/a", "part/none"])
    assert folder.get("part/a") is None
    assert folder.keys() == ["part/b"]


def test_begun__is_there_with_its_root(folder: Any) -> None:
    folder.check("part/probe")
    assert folder.keys() == []
    with folder.begun() as new:
        new.put("part/a", FILES)
        assert new.swap(b"one", None) is not None
    assert folder.root().data == b"one"
    assert folder.get("part/a") == FILES


def test_begun__on_a_disk_leaves_nothing_of_what_failed(tmp_path: Path) -> None:
    folder = DiskFolder(tmp_path / "t")

    def fails() -> None:
        with folder.begun() as new:
            new.put("part/a", FILES)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert not list(tmp_path.iterdir())
    (tmp_path / "t").write_text("a file")
    for work in (folder.root, lambda: folder.check("part/a")):
        with pytest.raises(StoreError):
            work()


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX systems")
def test_disk__follows_no_links_when_it_removes(tmp_path: Path) -> None:
    (tmp_path / "home" / "photos").mkdir(parents=True)
    folder = DiskFolder(tmp_path / "t")
    folder.put("part/a", FILES)
    (tmp_path / "t" / "part" / "b").symlink_to(tmp_path / "home")
    (tmp_path / "t" / "linked").symlink_to(tmp_path / "home")
    assert sorted(folder.keys()) == ["linked", "part/a", "part/b"]
    folder.remove(["part/b", "linked"])
    assert (tmp_path / "home" / "photos").is_dir()


def test_disk__a_refused_swap_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DiskFolder(tmp_path)
    tag = folder.swap(b"one", None)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, full)
        with pytest.raises(RefusedError, match="No space left"):
            folder.swap(b"two", tag)
        monkeypatch.undo()
        assert sorted(os.listdir(tmp_path)) == [".lock", ROOT]  # noqa: PTH208
    assert folder.swap(b"two", tag) == b"two"
