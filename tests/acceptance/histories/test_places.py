"""One contract of whatever is stored, in a folder, in objects and on a server of objects."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore

from tests.acceptance.face import (
    CoresetStream,
    CoresetTree,
    WeightedPoints,
    create_tree,
    errors,
    follow,
    stream as make_stream,
)
from tests.acceptance.tools.object_stores import SECRET, Objects, ObjectServer
from tests.acceptance.tools.places import THINGS, Folder, Place, Thing
from tests.acceptance.tools.servers import FileServer
from tests.acceptance.tools.trees import day, made
from tests.pairs import each

KINDS = ["folder", "memory", pytest.param("server", marks=pytest.mark.nightly)]


def make_place(kind: str, folder: Path, request: pytest.FixtureRequest, name: str = "s") -> Place:
    if kind == "folder":
        return Place(folder / name, Folder(folder / name))
    obstore = pytest.importorskip("obstore.store")
    if kind == "memory":
        store = obstore.MemoryStore()
        return Place(ObjectStore(store), Objects(store))
    server: ObjectServer = request.getfixturevalue("objects")
    url = f"{server.bucket()}/{name}"
    return Place(url, server.folder(url), server.options)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return make_place(request.param, tmp_path, request)


@pytest.fixture(params=THINGS)
def thing(request: pytest.FixtureRequest) -> Thing:
    return THINGS[request.param]


@pytest.fixture(params=["tree", "stream"])
def growing(request: pytest.FixtureRequest) -> Thing:
    return THINGS[request.param]


# --- what is stored ------------------------------------------------------------------------


def test_thing__is_read_as_it_was_written(thing: Thing, place: Place) -> None:
    held = thing.make(place)
    for number in (2, 3):
        thing.change(held, number)
        held = thing.opened(place)
    found = thing.read(place)
    peaceful = thing.make(other := Place(place_in_memory(), Objects(None)))
    for number in (2, 3):
        thing.change(peaceful, number)
    assert WeightedPoints.equals(found, thing.read(other))


def place_in_memory() -> Any:
    from obstore.store import MemoryStore as Memory

    return ObjectStore(Memory())


def test_changes__of_two_writers_at_once_one_wins(growing: Thing, place: Place) -> None:
    growing.make(place)
    for turn in range(3):
        rivals = [growing.opened(place) for _ in range(2)]
        barrier = threading.Barrier(2)
        results: list[str] = []

        def write(rival: Any, number: int, barrier: Any = barrier, said: Any = results) -> None:
            barrier.wait()
            try:
                growing.change(rival, number)
                said.append("made")
            except errors.StoreError as error:
                said.append(str(error))

        numbers = (20 + 2 * turn, 21 + 2 * turn)
        threads = [
            threading.Thread(target=write, args=pair) for pair in zip(rivals, numbers, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted("another writer" in result for result in results) == [False, True]
        growing.read(place)


def test_create__over_what_is_there(thing: Thing, place: Place) -> None:
    thing.make(place)
    before = place.snapshot()
    for other in THINGS.values():
        with pytest.raises(errors.StoreError, match=r"exists|holds a"):
            other.make(place)
    with pytest.raises(errors.StoreError):
        make_stream(size=3).save(place.location, overwrite=thing is not THINGS["stream"],
                                 **place.storage)  # fmt: skip
    assert place.snapshot() == before
    thing.read(place)


def test_change__where_all_was_removed(growing: Thing, place: Place) -> None:
    held = growing.make(place)
    place.clear()
    with pytest.raises(errors.StoreError):
        growing.change(held, 3)
    growing.make(place)
    with pytest.raises(errors.StoreError):
        growing.change(held, 3)
    growing.read(place)


# --- damage --------------------------------------------------------------------------------


def test_read__damage_of_any_file_is_an_error_or_no_matter(thing: Thing, place: Place) -> None:
    held = thing.make(place)
    if thing is THINGS["stream"]:
        held.save()  # twice, so that the state before is one of the same rows
    right = thing.read(place)
    n_seen = 0
    for name, content in place.snapshot().items():
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        for damaged in (content[:middle], flipped, b"", None):
            if damaged is None:
                place.kept.remove(name)
            else:
                place.kept.write(name, damaged)
            try:
                assert WeightedPoints.equals(thing.read(place), right)
            except errors.StoreError:
                n_seen += 1
        place.kept.write(name, content)
    assert n_seen >= 8
    assert WeightedPoints.equals(thing.read(place), right)


def test_open__what_was_before_is_not_taken_for_what_is(growing: Thing, place: Place) -> None:
    """Any one file of an earlier state: the state of then in part is an error, or no matter."""
    held = growing.make(place)
    before = place.snapshot()
    growing.change(held, 2)
    growing.change(growing.opened(place), 3)
    right, now = growing.read(place), place.snapshot()
    for name, content in before.items():
        if now.get(name) == content:
            continue
        place.kept.write(name, content)
        with suppress(errors.StoreError):
            assert WeightedPoints.equals(growing.read(place), right)
        if name in now:
            place.kept.write(name, now[name])
        else:
            place.kept.remove(name)


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX systems")
def test_thing__may_lie_behind_a_link_of_the_user(thing: Thing, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    path = tmp_path / "link" / "s"
    held = thing.make(Place(path, Folder(path)))
    (tmp_path / "direct").symlink_to(tmp_path / "disk" / "s")
    for number, way in enumerate((path, tmp_path / "direct")):
        place = Place(way, Folder(way))
        thing.change(thing.opened(place), number + 3)
        thing.read(place)
    assert held is not None
    assert (tmp_path / "direct").is_symlink()


def test_save__replaces_no_folder_that_holds_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "s"
    stream = make_stream(size=20, random_state=0, store=path).partial_fit(day(0))
    other = make_stream(size=20, random_state=1).partial_fit(day(1))
    for folder in [path, *(one for one in path.iterdir() if one.is_dir())]:
        (folder / "notes.txt").write_text("dear")
        with pytest.raises(errors.StoreError, match=r"also holds 'notes\.txt', so it is never"):
            other.save(path, overwrite=True)
        assert (folder / "notes.txt").read_text() == "dear"
        assert CoresetStream.load(path).n_rows == stream.n_rows
        (folder / "notes.txt").unlink()
    other.save(path, overwrite=True)
    assert CoresetStream.load(path).coreset().equals(other.coreset())


# --- servers of objects --------------------------------------------------------------------


@pytest.fixture
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return make_place("server", tmp_path, request, "folder/days")


@each(fault=["503", "503 done", "cut", "cut done", "half"], kind=["tree", "stream"])
def test_changes__while_requests_fail(
    fault: str, kind: str, served: Place, objects: ObjectServer, tmp_path: Path
) -> None:
    growing = THINGS[kind]
    growing.make(served)
    peaceful = growing.make(Place(tmp_path / "t", Folder(tmp_path / "t")))
    size = len(growing.opened(served))
    with objects.faults(fault, rate=0.15, seed=3):
        for number in range(2, 5):
            for _ in range(20):  # where no answer came it is opened again
                try:
                    held = growing.opened(served)
                    if len(held) == size:
                        growing.change(held, number)
                    break
                except errors.StoreError:
                    continue
            growing.change(peaceful, number)
            size = len(peaceful)
    found = growing.read(served)
    assert WeightedPoints.equals(found, peaceful.coreset())


@pytest.mark.parametrize("status", ["409", "412"])
@pytest.mark.parametrize("first", [0, 3])
def test_create__a_conflict_is_not_a_store_without_conditions(
    status: str, first: int, objects: ObjectServer, served: Place
) -> None:
    """One answer that says that there is a conflict, to one of the first requests that write."""
    with objects.faults(status, methods="PUT", skip=first, limit=1):
        tree = made(served.location, 0, **served.storage)
    tree.append(day(0))


def test_create__on_a_store_without_conditions(objects: ObjectServer, served: Place) -> None:
    with (
        objects.faults("ignored"),
        pytest.raises(errors.StoreError, match="takes no notice of condit"),
    ):
        made(served.location, **served.storage)
    assert not served.kept.names()


def test_open__by_http_is_read_only(served: Place, files: FileServer) -> None:
    tree = made(served.location, 3, **served.storage)
    for name, content in served.snapshot().items():
        file = files.folder / "days" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    address = f"{files.url}/days"
    opened = CoresetTree.open(address)
    opened.verify()
    assert WeightedPoints.equals(opened.coreset(), tree.coreset())
    for write in (lambda: opened.append(day(3)), lambda: create_tree(address, size=9)):
        with pytest.raises(errors.StoreError, match="which is read-only"):
            write()


def test_places__that_are_none(tmp_path: Path) -> None:
    from obstore.store import LocalStore as FolderStore

    # Its files can be replaced on no condition.
    with pytest.raises(errors.StoreError, match="cannot be written"):
        made(ObjectStore(FolderStore(str(tmp_path))))
    assert not list(tmp_path.rglob("*.*"))
    for store_of_zarr in (MemoryStore(), FsspecStore.from_url("memory://days")):
        with pytest.raises(errors.InvalidTypeError, match="has no conditional writes"):
            made(store_of_zarr)
    for url in ("memory://days", "ftp://host/days"):
        with pytest.raises(errors.InvalidInputError, match="not of an object store; pass a path"):
            made(url)
    with pytest.raises(errors.InvalidInputError, match="storage_options are for URLs"):
        made(tmp_path / "t", storage_options={"key": "some"})
    made(LocalStore(tmp_path / "local"), 1)
    assert len(CoresetTree.open(tmp_path / "local")) == 1


def test_errors__say_what_to_set(
    objects: ObjectServer, served: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, options = served.location, served.options
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with (
        objects.faults("403"),
        pytest.raises(errors.StoreError, match=r"PermissionDenied.*storage_options") as refused,
    ):
        made(url, storage_options=options)
    assert SECRET not in str(refused.value)
    with pytest.raises(errors.StoreError, match=r"no-such-bucket/days cannot be .*check the URL"):
        made("s3://no-such-bucket/days", storage_options=options)
    with pytest.raises(errors.InvalidInputError, match="'word' is not valid for store"):
        made(url, storage_options={"word": SECRET})
    with pytest.raises(errors.InvalidInputError, match="a user, a password or a query") as found:
        made(f"s3://me:{SECRET}@bucket/days")
    assert SECRET not in str(found.value)


# --- views and processes -------------------------------------------------------------------


def test_follow__whose_first_read_was_refused_may_be_told_better(
    place: Place, tmp_path: Path
) -> None:
    np.save(tmp_path / "a.npy", np.array([[1.0, 2.0], [np.nan, 3.0]]))
    source = f"{tmp_path}/*.npy"
    with pytest.raises(errors.InvalidInputError, match="X contains NaN"):
        follow(source, place.location, size=5, **place.storage)
    assert not place.kept.names()
    view = follow(source, place.location, size=6, on_invalid="drop", **place.storage)
    assert view.coreset().points.tolist() == [[1.0, 2.0]]
    np.save(tmp_path / "b.npy", day(1))
    view.refresh()
    for tree in (view, CoresetTree.open(place.location, **place.storage)):
        tree.verify()
        assert len(tree.as_of(1)) == 1
        tree.as_of(1).verify()
