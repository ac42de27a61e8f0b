"""A change of what is stored is whole or not at all, wherever the process is killed."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import face
from tests.acceptance.tools.disk import Connection, Fault, Killed, Kind
from tests.acceptance.tools.object_stores import Objects
from tests.acceptance.tools.places import THINGS, Folder, Place, Thing, labels_of
from tests.acceptance.tools.trees import day

STEPS = ("fsync", "rename", "replace", "unlink", "rmdir", "mkdir", "link")


def killed_at(step: int, work: Callable[[], Any]) -> bool:
    """Do the work in a child that ends hard before its n-th change of the disk."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    count = 0

    def counting(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                os._exit(9)
            return call(*args, **options)

        return counted

    code = 1
    try:
        for name in STEPS:
            setattr(os, name, counting(getattr(os, name)))
        work()
        code = 0
    finally:
        os._exit(code)


TREE = THINGS["tree"]

Change = Callable[[Any], Any]

CHANGES: dict[str, tuple[Thing, Change, int]] = {
    "append": (TREE, lambda tree: TREE.change(tree, 5), 9),
    "replace": (TREE, lambda tree: tree.replace("day 1", day(5), labels_of(day(5))), 9),
    "delete": (TREE, lambda tree: tree.delete("day 0"), 9),
    "stream": (THINGS["stream"], lambda stream: THINGS["stream"].change(stream, 5), 3),
    "coreset": (THINGS["coreset"], lambda place: THINGS["coreset"].change(place, 5), 2),
}
"""How something is changed, and at which of the calls that change the disk it is killed."""

same = face.WeightedPoints.equals


@pytest.mark.parametrize("name", CHANGES)
def test_change__is_whole_wherever_the_process_is_killed(name: str, tmp_path: Path) -> None:
    thing, change, stride = CHANGES[name]
    place, peaceful = (Place(tmp_path / one, Folder(tmp_path / one)) for one in ("s", "peaceful"))
    thing.make(place)
    before = thing.read(place)
    shutil.copytree(place.location, peaceful.location)
    change(thing.opened(peaceful))
    after = thing.read(peaceful)
    assert not same(before, after)
    for step in itertools.count(1, stride):
        killed = killed_at(step, lambda: change(thing.opened(place)))
        found = thing.read(place)
        if not same(found, before):
            break
        assert killed
    assert step > 2
    assert same(found, after)
    thing.change(thing.opened(place), 7)
    thing.read(place)


def test_create__killed_anywhere_can_be_done_again(tmp_path: Path) -> None:
    for step in itertools.count(3, 3):
        path = tmp_path / f"t{step}"
        killed = killed_at(step, partial(face.create_tree, path, size=5))
        if not killed:
            break
        try:
            tree = face.CoresetTree.open(path)
        except face.errors.StoreError:
            tree = face.create_tree(path, size=5, random_state=0)
        tree.append(day(0))
        tree.verify()
    assert step > 3


KINDS: tuple[Kind, ...] = ("killed", "power cut", "full")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "coreset"])
def test_change__on_an_object_store_is_whole_whichever_request_fails(name: str) -> None:
    from obstore.store import MemoryStore
    from zarr.storage import ObjectStore

    thing, change, _ = CHANGES[name]

    def holding(objects: dict[str, bytes]) -> Place:
        store = MemoryStore()
        place = Place(ObjectStore(store), Objects(store))
        for key, content in objects.items():
            place.kept.write(key, content)
        return place

    place = holding({})
    thing.make(place)
    made, before = place.snapshot(), thing.read(place)
    change(thing.opened(place))
    after = thing.read(place)
    with Connection().installed() as connection:
        for at in range(100):
            place, connection.calls = holding(made), 100
            fault = Fault(KINDS[at % 3], (at + 0.5) / 100)
            try:
                with connection.armed(Path(), fault, lambda: None):
                    change(thing.opened(place))
            except (Killed, face.errors.StoreError):
                pass
            found = thing.read(place)
            assert same(found, after) or (same(found, before) and not connection.finished)
            if connection.finished:
                break
    assert 3 < at < 99
