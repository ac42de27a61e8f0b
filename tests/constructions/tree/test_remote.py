"""Trees and streams on an object store: the bits of a local one, and every change whole or not."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore

from daskcoreset import Coreset, CoresetStream, CoresetTree, WeightedPoints
from daskcoreset.constructions.tree import remote
from daskcoreset.core.errors import (
    CoresetWarning,
    InvalidInputError,
    InvalidTypeError,
    StoreError,
)
from tests.tools import killing
from tests.tools.object_stores import SECRET, ObjectServer, object_server
from tests.tools.servers import FileServer
from tests.tools.trees import day, made, refuse_late_writers


@pytest.fixture
def url(objects: ObjectServer) -> str:
    return objects.bucket() + "/folder/days"


@pytest.fixture
def tree(objects: ObjectServer, url: str) -> CoresetTree:
    """Three days."""
    return made(url, 3, storage_options=objects.options)


@pytest.fixture
def reopened(objects: ObjectServer, url: str) -> Callable[[], CoresetTree]:
    return lambda: CoresetTree.open(url, storage_options=objects.options)


def rows(number: int) -> Any:
    return np.random.default_rng(number).normal(number, 1.0, size=(300, 2))


# --- as on a disk --------------------------------------------------------------------------


def test_tree__has_the_bits_of_a_local_one(
    objects: ObjectServer, url: str, reopened: Callable[[], CoresetTree], tmp_path: Path
) -> None:
    trees = [made(tmp_path / "t"), made(url, storage_options=objects.options)]
    for tree in trees:
        for number in range(9):
            tree.append(day(number), name=f"day {number}", time=number)
        tree.delete(["day 3", "day 5"])
        tree.replace("day 2", day(20))
        tree.append(day(9), name="day 9")
    local, there = trees
    for now in (there, reopened(), pickle.loads(pickle.dumps(there))):
        now.verify()
        assert now.path == url
        assert (now.version, now.leaves) == (12, local.leaves)
        for window in (None, slice("day 1", "day 6"), ["day 9", "day 0"]):
            assert WeightedPoints.equals(now.coreset(window), local.coreset(window))
    assert reopened().coreset().provenance["source"] == url
    # What changes leave behind is removed, and nothing else is there.
    keys = objects.folder(url).keys()
    assert len(keys) <= 2 * 8 + 6 + 3
    assert sum("manifest" in key for key in keys) == 2
    with pytest.raises(InvalidInputError, match="there is a leaf"):
        there.append(day(1), name="day 9")


def test_stream__has_the_bits_of_a_local_one(
    objects: ObjectServer, url: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"size": 10, "random_state": 1}
    local = CoresetStream(**options, store=tmp_path / "s")
    there = CoresetStream(**options, store=url, storage_options=objects.options)
    for number in range(7):
        local.partial_fit(rows(number))
        there.partial_fit(rows(number))
        there = CoresetStream.load(url, storage_options=objects.options)
    assert there.n_rows == 2100
    assert WeightedPoints.equals(there.rows(), CoresetStream.load(tmp_path / "s").rows())
    assert len(objects.folder(url).keys()) == 3
    there.save()
    with pytest.raises(StoreError, match=r"exists; CoresetStream\.load goes on"):
        local.save(url, storage_options=objects.options)
    late = CoresetStream.load(url, storage_options=objects.options)
    local.partial_fit(rows(7)).save(url, overwrite=True, storage_options=objects.options)
    assert CoresetStream.load(url, storage_options=objects.options).n_rows == 2400
    with pytest.raises(StoreError, match="another writer has changed it"):
        late.partial_fit(rows(7))
    assert late.n_rows == 2100


def test_create__over_what_is_there(
    objects: ObjectServer, url: str, tree: CoresetTree, reopened: Callable[[], CoresetTree]
) -> None:
    options = objects.options
    with pytest.raises(StoreError, match=r"exists; CoresetTree\.open opens"):
        made(url, storage_options=options)
    with pytest.raises(StoreError, match="exists and holds 'days"):
        made(url.removesuffix("/days"), storage_options=options)
    with pytest.raises(StoreError, match="holds a 'coreset-tree', not a 'coreset-stream'"):
        CoresetStream(store=url, storage_options=options)
    with pytest.raises(StoreError, match="holds a 'coreset-tree', not a 'coreset-stream'"):
        CoresetStream().save(url, overwrite=True, storage_options=options)
    tree.coreset().to_zarr(url + "-coreset", storage_options=options)
    for use in (made, CoresetTree.open):
        with pytest.raises(StoreError, match="holds a 'coreset', not a 'coreset-tree'"):
            use(url + "-coreset", storage_options=options)
    with pytest.raises(StoreError, match="nothing is there; check the URL"):
        CoresetTree.open(url + "-none", storage_options=options)
    assert len(reopened()) == 3


def test_open__by_http_is_read_only(
    objects: ObjectServer, url: str, tree: CoresetTree, files: FileServer
) -> None:
    folder = objects.folder(url.removesuffix("/days"))
    tree.coreset().to_zarr(f"{url}-coreset", storage_options=objects.options)
    for key in folder.keys():  # noqa: SIM118 - no dict
        file = files.folder / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(folder.get(key).data)
    address = f"{files.url}/days"
    served = CoresetTree.open(address)
    served.verify()
    assert WeightedPoints.equals(served.coreset(), tree.coreset())
    assert Coreset.from_zarr(f"{address}-coreset").equals(tree.coreset())
    with pytest.raises(StoreError, match="which is only read"):
        served.append(day(3))
    with pytest.raises(StoreError, match="which is only read"):
        CoresetTree.create(address)


def test_places__stores_of_zarr(tmp_path: Path) -> None:
    from obstore.store import LocalStore as FolderStore
    from obstore.store import MemoryStore as Objects

    store = ObjectStore(Objects())
    tree = made(store, 3)
    assert WeightedPoints.equals(CoresetTree.open(store).coreset(), tree.coreset())
    assert tree.path == "MemoryStore"
    # Its files can be replaced on no condition.
    with pytest.raises(StoreError, match="could not be written"):
        made(ObjectStore(FolderStore(str(tmp_path))))
    assert not list(tmp_path.rglob("*.*"))
    for store_of_zarr in (MemoryStore(), FsspecStore.from_url("memory://days")):
        with pytest.raises(InvalidTypeError, match="cannot write on a condition"):
            made(store_of_zarr)
    for url in ("memory://days", "ftp://host/days"):
        with pytest.raises(InvalidInputError, match="of no object store; pass a path"):
            made(url)
    with pytest.raises(InvalidInputError, match="storage_options belong to"):
        made(tmp_path / "t", storage_options={"key": "some"})
    made(LocalStore(tmp_path / "local"), 1)
    assert len(CoresetTree.open(tmp_path / "local")) == 1


# --- two writers ---------------------------------------------------------------------------


def test_changes__of_two_writers_one_wins(
    tree: CoresetTree, reopened: Callable[[], CoresetTree], objects: ObjectServer, url: str
) -> None:
    refuse_late_writers(tree, reopened)
    # Both past the first look: the condition decides.
    for _ in range(5):
        rivals, barrier = [reopened(), reopened()], threading.Barrier(2)
        results: list[str] = []

        def write(tree: CoresetTree, name: str, barrier: Any, results: list[str]) -> None:
            place = tree._manifest.place
            folder = place.folder  # type: ignore[attr-defined]
            swing = folder.put_if

            def together(key: str, *args: Any) -> Any:
                if key == "zarr.json":
                    barrier.wait(60)
                return swing(key, *args)

            folder.put_if = together
            try:
                tree.append(day(9), name=name)
                results.append(name)
            except StoreError as error:
                results.append(str(error))

        before = len(reopened())
        threads = [
            threading.Thread(target=write, args=(t, f"{n} {before}", barrier, results))
            for t, n in zip(rivals, "ab", strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum("another writer" in result for result in results) == 1
        last = reopened()
        assert len(last) == before + 1
        assert last.leaves.names[-1] in results
        last.verify()
    # The loser's members are gone.
    used = {member for member in last._manifest.needed if member[1] != "manifest"}
    there = {remote.RemotePlace._parse(last._manifest.place, k) for k in objects.folder(url).keys()}  # type: ignore[arg-type] # noqa: SIM118
    assert used <= there


_RACER = """
import json, sys
from daskcoreset import CoresetTree
from daskcoreset.core.errors import StoreError
from tests.tools.trees import day
url, options, who = json.loads(sys.stdin.read())
refused = 0
for number in range(4):
    for _ in range(100):
        tree = CoresetTree.open(url, storage_options=options)
        try:
            tree.append(day(number), name=f"{who} {number}")
            break
        except StoreError as error:
            assert "another writer" in str(error), error
            refused += 1
    else:
        raise AssertionError("never")
print(refused)
"""


@pytest.mark.nightly
def test_changes__of_processes_that_race(
    objects: ObjectServer, url: str, reopened: Callable[[], CoresetTree]
) -> None:
    import json

    made(url, storage_options=objects.options)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, cwd=Path(__file__).parents[3],
        )
        for _ in range(2)
    ]  # fmt: skip
    try:
        for who, racer in enumerate(racers):
            assert racer.stdin is not None
            racer.stdin.write(json.dumps([url, objects.options, who]))
            racer.stdin.close()
        assert [racer.wait(300) for racer in racers] == [0, 0]
    finally:
        for racer in racers:
            racer.kill()
            assert racer.stdout is not None
            racer.stdout.close()
    tree = reopened()
    tree.verify()
    assert sorted(tree.leaves.names) == sorted(f"{w} {n}" for w in range(2) for n in range(4))
    assert tree.version == 8


# --- answers that are lost -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["503", "503 done", "cut", "cut done", "half"])
def test_changes__while_requests_fail(
    kind: str, objects: ObjectServer, url: str, reopened: Callable[[], CoresetTree], tmp_path: Path
) -> None:
    made(url, storage_options=objects.options)
    local = made(tmp_path / "t", 4)
    with objects.faults(kind, rate=0.15, seed=3):
        for number in range(4):
            for _ in range(20):  # where no answer came it is opened again
                try:
                    tree = reopened()
                    if f"day {number}" not in tree:
                        tree.append(day(number), name=f"day {number}")
                    break
                except StoreError:
                    continue
    tree = reopened()
    tree.verify()
    assert tree.leaves == local.leaves
    assert tree.version == 4
    assert WeightedPoints.equals(tree.coreset(), local.coreset())


@pytest.mark.parametrize("kind", ["503 done", "cut"])
def test_stream__while_requests_fail(kind: str, objects: ObjectServer, url: str) -> None:
    """A history of batches, reloads, copies and a rival, against the same rows in peace."""
    given: dict[str, Any] = {"size": 10, "leaf_size": 250, "random_state": 1}
    options = objects.options
    CoresetStream(**given, store=url, storage_options=options)
    with objects.faults(kind, rate=0.15, seed=5):
        for number in range(4):
            for attempt in range(20):
                try:
                    stream = CoresetStream.load(url, storage_options=options)
                    rival = CoresetStream.load(url, storage_options=options)
                    if stream.n_rows == 300 * number:
                        stream.partial_fit(rows(number))
                        with pytest.raises(StoreError):
                            rival.partial_fit(rows(99))
                    if number == 2:
                        copy = f"{url}-copy-{attempt}"
                        stream.save(copy, storage_options=options)
                    break
                except StoreError:
                    continue
    peace = CoresetStream(**given)
    for number in range(4):
        peace.partial_fit(rows(number))
        if number == 2:
            copied = CoresetStream.load(copy, storage_options=options)
            assert WeightedPoints.equals(copied.rows(), peace.rows())
    stream = CoresetStream.load(url, storage_options=options)
    assert stream.n_rows == 1200
    assert WeightedPoints.equals(stream.rows(), peace.rows())
    stream.partial_fit(rows(4))
    assert len(objects.folder(url).keys()) == 3


def test_save__to_the_url_of_another_server(objects: ObjectServer, url: str) -> None:
    """The folder there is another one; it is not the one that the stream came from."""
    stream = CoresetStream(size=10, random_state=1, store=url, storage_options=objects.options)
    stream.partial_fit(rows(0))
    before = {key: objects.folder(url).get(key).data for key in objects.folder(url).keys()}  # noqa: SIM118 - no dict
    with object_server() as elsewhere:
        elsewhere.bucket(url.removeprefix("s3://").partition("/")[0])
        stream.save(url, storage_options=elsewhere.options)
        copied = CoresetStream.load(url, storage_options=elsewhere.options)
        assert copied.n_rows == 300
        copied.partial_fit(rows(1))
        with pytest.raises(StoreError, match=r"exists; CoresetStream\.load goes on"):
            stream.save(url, storage_options=elsewhere.options)
    now = {key: objects.folder(url).get(key).data for key in objects.folder(url).keys()}  # noqa: SIM118 - no dict
    assert now == before
    stream.partial_fit(rows(1))  # goes on where it was
    assert CoresetStream.load(url, storage_options=objects.options).n_rows == 600


def test_create__asks_for_few_folders(objects: ObjectServer, url: str) -> None:
    counted = []
    for folder in ("", "/a/b", "/a/b/c/d/e/f/g"):
        objects.counts()
        made(f"{url}-{folder}/tree", storage_options=objects.options)
        counted.append(sum(objects.counts().values()))
    assert counted[1:] == [counted[0]] * 2
    made(f"{url}/s", storage_options=objects.options)
    for inner in ("x", "x/y", "versions/x/y"):
        with pytest.raises(StoreError, match=r"would lie in .*/s, which is a coreset-tree"):
            made(f"{url}/s/{inner}", storage_options=objects.options)


@pytest.mark.parametrize("kind", ["503 done", "cut done", "half"])
def test_append__whose_answer_is_lost_is_made_once(
    kind: str, tree: CoresetTree, reopened: Callable[[], CoresetTree], objects: ObjectServer
) -> None:
    folder: Any = tree._manifest.place.folder  # type: ignore[attr-defined]
    put_if = folder.put_if

    def lost(key: str, *args: Any) -> Any:
        with objects.faults(*([kind] if key == "zarr.json" else []), methods="PUT", limit=1):
            return put_if(key, *args)

    folder.put_if = lost
    tree.append(day(3), name="day 3")
    assert reopened().leaves.names == ["day 0", "day 1", "day 2", "day 3"]
    assert reopened().version == 4
    tree.append(day(4), name="day 4")
    reopened().verify()


def test_append__whose_answer_is_lost_while_others_go_on(
    tree: CoresetTree, reopened: Callable[[], CoresetTree], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Any = tree._manifest.place.folder  # type: ignore[attr-defined]
    put_if = folder.put_if

    def lost(key: str, *args: Any) -> Any:
        done = put_if(key, *args)
        if key == "zarr.json" and done:
            reopened().append(day(8), name="by another")
            raise StoreError("no answer")
        return done

    folder.put_if = lost
    tree.append(day(3), name="day 3")
    assert reopened().leaves.names[3:] == ["day 3", "by another"]
    with pytest.raises(StoreError, match="another writer has changed it"):
        tree.append(day(5))
    # Where the store stays silent, the error says that it is not known.
    silent = reopened()
    folder = silent._manifest.place.folder  # type: ignore[attr-defined]
    put_if = folder.put_if

    def no_answer(*_: Any) -> Any:
        raise StoreError("no answer")

    def cut(key: str, *args: Any) -> Any:
        put_if(key, *args)
        folder.get = no_answer
        raise StoreError("no answer")

    monkeypatch.setattr(remote, "_PAUSE", 0.0)
    silent.append(day(6), name="before")
    folder.put_if = cut
    with pytest.raises(StoreError, match="as a whole or not at all; open it again and look"):
        silent.append(day(6), name="day 6")
    last = reopened()
    last.verify()
    assert last.leaves.names[-2:] == ["before", "day 6"]


def test_append__that_is_interrupted_while_the_head_is_written(
    tree: CoresetTree, reopened: Callable[[], CoresetTree]
) -> None:
    folder: Any = tree._manifest.place.folder  # type: ignore[attr-defined]
    put_if = folder.put_if

    def interrupted(key: str, *args: Any) -> Any:
        done = put_if(key, *args)
        if key == "zarr.json":
            raise KeyboardInterrupt
        return done

    folder.put_if = interrupted
    with pytest.raises(KeyboardInterrupt):
        tree.append(day(3), name="day 3")
    reopened().verify()
    assert "day 3" in reopened()


@pytest.mark.parametrize("status", ["409", "412"])
@pytest.mark.parametrize("first", range(4))
def test_create__a_conflict_is_not_a_store_without_conditions(
    status: str, first: int, objects: ObjectServer, url: str
) -> None:
    """One answer that says that there is a conflict, to any of the first requests that write."""
    with objects.faults(status, methods="PUT", skip=first, limit=1):
        tree = made(url, 0, storage_options=objects.options)
    tree.append(day(0))
    assert len(objects.folder(url).keys()) == 3


def test_create__on_a_store_without_conditions(objects: ObjectServer, url: str) -> None:
    with objects.faults("ignored"), pytest.raises(StoreError, match="takes no notice of condit"):
        made(url, storage_options=objects.options)
    assert not objects.folder(url).keys()


def test_errors__say_what_to_set(objects: ObjectServer, url: str, monkeypatch: Any) -> None:
    with objects.faults("403"), pytest.raises(StoreError, match="access was refused; pass") as e:
        made(url, storage_options=objects.options)
    assert SECRET not in str(e.value)
    with pytest.raises(StoreError, match="there is no such bucket; make it first"):
        made("s3://no-such-bucket/days", storage_options=objects.options)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    few = {"retry_config": {"max_retries": 0}}
    options = {**objects.options, **few}
    bare = {k: v for k, v in options.items() if k not in {"key", "secret"}}
    metadata = {"metadata_endpoint": objects.endpoint}
    with objects.faults("403"), pytest.raises(StoreError, match="no credentials were found; pass"):
        made(url, storage_options={**bare, **metadata})
    with pytest.raises(InvalidInputError, match="have a name that this kind of store does not"):
        made(url, storage_options={"word": SECRET})
    with pytest.raises(InvalidTypeError, match="storage_options is a str"):
        made(url, storage_options=SECRET)
    with pytest.raises(InvalidInputError, match="a user, a password or a query") as found:
        made(f"s3://me:{SECRET}@bucket/days")
    assert SECRET not in str(found.value)
    with pytest.raises(StoreError, match="check the network and the endpoint"):
        made(url, storage_options={**options, "client_kwargs": {"endpoint_url": _closed()}})


def _closed() -> str:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


# --- what is left, late, lost or damaged ---------------------------------------------------


def test_sweep__leaves_what_a_living_writer_may_commit(
    tree: CoresetTree, reopened: Callable[[], CoresetTree], objects: ObjectServer, url: str
) -> None:
    """A writer that stops with its members written, before the head, loses or wins whole."""
    folder = objects.folder(url)
    place: Any = tree._manifest.place
    swing = place._swing
    seen: list[set[str]] = []

    def stopped(*args: Any) -> bool:
        seen.append(set(folder.keys()))
        # Others open the tree, and one fails to change it: nothing of this writer is swept.
        failing = reopened()
        other: Any = failing._manifest.place
        other._swing = lambda *_: False
        with pytest.raises(StoreError):
            failing.append(day(9))
        needed, version = failing._manifest.needed, failing.version
        other.sweep(lambda made_in, member: (made_in, member) in needed or made_in > version)
        assert {key for key in seen[0] if f"/{2:012d}/manifest" not in key} == set(folder.keys())
        return bool(swing(*args))

    place._swing = stopped
    tree.append(day(3), name="day 3")
    reopened().verify()
    # What a killed writer of this or an earlier version left is removed, however young it is.
    names = [f"versions/{4:012d}/node-77.zip", f"versions/{5:012d}/manifest-{'0' * 32}.zip",
             "versions/readme.txt"]  # fmt: skip
    for name in names:
        folder.put(name, b"left")
    for number in (4, 5, 6):
        reopened().append(day(number))
    there = folder.keys()
    assert [name in there for name in names] == [False, False, True]
    reopened().verify()


def test_create__over_what_a_killed_one_left(objects: ObjectServer, url: str) -> None:
    objects.folder(url).put(f"states/{1:012d}/manifest-{'0' * 32}.zip", b"left")
    stream = CoresetStream(size=10, store=url, storage_options=objects.options)
    stream.partial_fit(rows(0)).partial_fit(rows(1))
    assert len(objects.folder(url).keys()) == 3


@pytest.mark.usefixtures("tree")
def test_open__with_a_list_that_is_late(
    url: str, objects: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(objects.folder(url))
    monkeypatch.setattr(kind, "keys", lambda *_, **__: [])
    late = CoresetTree.open(url, storage_options=objects.options)
    late.append(day(3))
    CoresetTree.open(url, storage_options=objects.options).verify()


@pytest.mark.parametrize("kind", ["tree", "stream"])
def test_open__a_root_of_before(kind: str, objects: ObjectServer, url: str) -> None:
    """What lies there says that a later version was made, whose root is gone."""
    options, folder = objects.options, objects.folder(url)

    def change(number: int) -> None:
        if kind == "tree":
            CoresetTree.open(url, storage_options=options).append(day(number))
        else:
            CoresetStream.load(url, storage_options=options).partial_fit(rows(number))

    if kind == "tree":
        made(url, 1, storage_options=options)
    else:
        CoresetStream(size=10, store=url, storage_options=options)
    roots = []
    for number in range(4):
        roots.append(folder.get("zarr.json").data)
        change(number)
    newest = folder.get("zarr.json").data
    for old in roots[:-1]:
        folder.put("zarr.json", old)
        with pytest.raises(StoreError, match=r"says that version \d is the newest, and there are"):
            change(9)
    folder.delete(["zarr.json"])
    remake = partial(made, url) if kind == "tree" else partial(CoresetStream, store=url)
    with pytest.raises(StoreError, match="its root is missing, and members of version"):
        remake(storage_options=options)
    folder.put("zarr.json", newest)
    change(9)


def test_append__where_all_was_deleted(tree: CoresetTree, url: str, objects: ObjectServer) -> None:
    folder = objects.folder(url)
    folder.delete(folder.keys())
    with pytest.raises(StoreError, match="nothing is there"):
        tree.append(day(3))
    with pytest.raises(StoreError, match="nothing is there"):
        tree.coreset()
    assert folder.keys() == []
    again = made(url, 3, storage_options=objects.options)
    with pytest.raises(StoreError):
        tree.append(day(3))
    again.verify()


@pytest.mark.usefixtures("tree")
def test_open__damage(
    url: str,
    objects: ObjectServer,
    reopened: Callable[[], CoresetTree],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = objects.folder(url)
    needed = [key for key in folder.keys() if f"{2:012d}/manifest" not in key]  # noqa: SIM118
    assert len(needed) == 7
    for key in needed:
        content = folder.get(key).data
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        for damaged in (content[:middle], flipped, b"", None):
            if damaged is None:
                folder.delete([key])
            else:
                folder.put(key, damaged)
            with pytest.raises(StoreError):
                reopened().verify()
        folder.put(key, content)
    reopened().verify()
    # One that is longer than it can be.
    for key, length in {"zarr.json": 2**21, needed[0]: 10**7}.items():
        content = folder.get(key).data
        folder.put(key, bytes(length))
        with monkeypatch.context() as patch:
            patch.setattr(remote, "MOST_METADATA", 2**20)
            with pytest.raises(StoreError, match=f"has {length:,} bytes, and can have"):
                reopened().verify()
        folder.put(key, content)
    # A small object that says that it is large.
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zarr.json", bytes(10**7))
    folder.put(next(key for key in needed if "node" in key), bomb.getvalue())
    with pytest.raises(StoreError):
        reopened().verify()


# --- killed --------------------------------------------------------------------------------

_SCRIPT = """
import json, sys
import numpy as np, obstore
from daskcoreset import Coreset, CoresetStream, CoresetTree
from daskcoreset.core.errors import StoreError
from tests.tools.trees import day, made
url, options, n = json.loads({told!r})

def opened(url):
    return CoresetTree.open(url, storage_options=options)

def work(_):
    try:
        tree = opened(url)
    except StoreError as error:
        assert "nothing is there" in str(error), error
        tree = made(url, storage_options=options)
    for number in range(tree.version, n):
        tree.append(day(number), name=f"day {{number}}")
    tree.replace("day 1", day(50), time=7)
    if "day 0" in tree:
        tree.delete("day 0")
    try:
        stream = CoresetStream.load(url + "-stream", storage_options=options)
    except StoreError as error:
        assert "nothing is there" in str(error), error
        stream = CoresetStream(
            size=10, leaf_size=50, random_state=0, store=url + "-stream", storage_options=options
        )
    for start in range(stream.n_rows, 40 * n, 40):
        stream.partial_fit(np.random.default_rng(start).normal(size=(40, 2)))

def report(_):
    try:
        tree = opened(url)
        tree.verify()
    except StoreError as error:
        assert "nothing is there" in str(error), error
        return [0, 0]
    try:
        stream = CoresetStream.load(url + "-stream", storage_options=options)
    except StoreError as error:
        assert "nothing is there" in str(error), error
        return [tree.version, 0]
    assert stream.n_rows % 40 == 0
    return [tree.version, stream.n_rows]
"""


@pytest.mark.parametrize(
    ("timed", "n"),
    [
        (False, 3),
        pytest.param(False, 12, marks=[pytest.mark.nightly, pytest.mark.long]),
        pytest.param(True, 12, marks=pytest.mark.nightly),
    ],
)
def test_changes__killed_anywhere(
    timed: bool, n: int, objects: ObjectServer, url: str, tmp_path: Path
) -> None:
    import json

    script = _SCRIPT.format(told=json.dumps([url, objects.options, n]))
    found = killing.run(script, tmp_path, seed=n, timed=timed, step=4 if n == 3 else 1)
    reports = found["reports"]
    assert found["kills"] >= 4
    assert reports == sorted(reports)
    assert reports[-1][1] == 40 * n
    tree = CoresetTree.open(url, storage_options=objects.options)
    assert tree.leaves.names == [f"day {number}" for number in range(1, n)]
    local = made(tmp_path / "local", n)
    for _ in range(tree.leaves["day 1"].revision):
        local.replace("day 1", day(50), time=7)
    local.delete("day 0")
    assert WeightedPoints.equals(tree.coreset(), local.coreset())
    stream = CoresetStream(size=10, leaf_size=50, random_state=0)
    for start in range(0, 40 * n, 40):
        stream.partial_fit(np.random.default_rng(start).normal(size=(40, 2)))
    there = CoresetStream.load(url + "-stream", storage_options=objects.options)
    assert WeightedPoints.equals(there.rows(), stream.rows())
    # Nothing is left over but what the two newest versions need, and one more change sweeps.
    tree.append(day(99))
    tree.append(day(98))
    assert len(objects.folder(url).keys()) <= 4 * (n + 2) + 12
    there.partial_fit(np.ones((1, 2)))
    assert len(objects.folder(url + "-stream").keys()) == 3


def test_follow__whose_first_read_was_refused_may_be_told_better(
    objects: ObjectServer, url: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "a.npy", np.array([[1.0, 2.0], [np.nan, 3.0]]))
    source = f"{tmp_path}/*.npy"
    options: dict[str, Any] = {"storage_options": objects.options}
    with pytest.raises(InvalidInputError, match="X contains NaN"):
        CoresetTree.follow(source, url, size=5, **options)
    assert not objects.folder(url).keys()
    view = CoresetTree.follow(source, url, size=6, on_invalid="drop", **options)
    assert view.coreset().points.tolist() == [[1.0, 2.0]]


def test_follow__without_a_leaf_takes_other_settings(
    objects: ObjectServer, url: str, tmp_path: Path
) -> None:
    source = f"{tmp_path}/*.npy"
    options: dict[str, Any] = {"storage_options": objects.options}
    with pytest.warns(CoresetWarning, match="no file"):
        stale = CoresetTree.follow(source, url, size=5, metric="cosine", **options)
    with pytest.warns(CoresetWarning, match="no file"):
        again = CoresetTree.follow(source, url, size=5, metric="cosine", **options)
    assert again.version == 1
    np.save(tmp_path / "a.npy", day(0))
    view = CoresetTree.follow(source, url, size=6, random_state=0, **options)
    assert (len(view.coreset()), view.version) == (6, 2)  # numbers go on
    with pytest.raises(StoreError, match="another writer has changed it"):
        stale.refresh()
    np.save(tmp_path / "b.npy", day(1))
    view.refresh()
    for tree in (view, CoresetTree.open(url, **options)):
        tree.verify()
        assert len(tree.as_of(2)) == 1
        tree.as_of(2).verify()
        with pytest.raises(InvalidInputError, match=r"version 1 is not kept: .* is 2"):
            tree.as_of(1)
