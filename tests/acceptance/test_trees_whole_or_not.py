"""A change of what is stored is whole or not at all, whichever call or request fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore
from zarr.storage import ObjectStore

from tests.acceptance import face
from tests.acceptance.tools.disk import Connection, Disk, Fault, Killed, Kind
from tests.acceptance.tools.object_stores import Objects
from tests.acceptance.tools.places import THINGS, Folder, Place, Thing, labels_of
from tests.acceptance.tools.trees import day

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

TREE = THINGS["tree"]

Change = Callable[[Any], Any]

CHANGES: dict[str, tuple[Thing, Change]] = {
    "append": (TREE, lambda tree: TREE.change(tree, 5)),
    "replace": (TREE, lambda tree: tree.replace("day 1", day(5), labels_of(day(5)))),
    "delete": (TREE, lambda tree: tree.delete("day 0")),
    "stream": (THINGS["stream"], lambda stream: THINGS["stream"].change(stream, 5)),
    "coreset": (THINGS["coreset"], lambda place: THINGS["coreset"].change(place, 5)),
}
"""How something is changed."""

KINDS: tuple[Kind, ...] = ("killed", "full", "power cut")

same = face.WeightedPoints.equals


def on_disk(folder: Path) -> tuple[Place, Any]:
    """Return a place, and what fails of it."""
    return Place(folder / "s", Folder(folder / "s")), Disk()


def in_objects(_: Path) -> tuple[Place, Any]:
    store = MemoryStore()
    return Place(ObjectStore(store), Objects(store)), Connection()


CASES = [
    *((name, on_disk) for name in CHANGES),
    *((name, in_objects) for name in CHANGES if name != "coreset"),
]

N_FAULTS = 15
"""The least number of faults in one change, where it has as many calls."""


@pytest.mark.parametrize(("name", "where"), CASES)
def test_change__is_whole_whichever_call_fails(
    name: str, where: Callable[[Path], Any], tmp_path: Path
) -> None:
    thing, change = CHANGES[name]
    place, failing = where(tmp_path)
    thing.make(place)
    made, before = place.snapshot(), thing.read(place)
    with failing.installed():
        with failing.armed(tmp_path, Fault(), lambda: None):
            change(thing.opened(place))
        after, n_calls = thing.read(place), failing.calls
        assert not same(before, after)
        # A coreset is read in no time. It is replaced by two renames, with nothing between them.
        stride = 1 if name == "coreset" else max(1, n_calls // N_FAULTS)
        for number, call in enumerate(range(0, 2 * n_calls, stride)):
            place.clear()
            for file, content in made.items():
                place.kept.write(file, content)
            failing.calls = 1000
            fault = Fault(KINDS[number % len(KINDS)], (call + 0.5) / 1000)
            with (
                suppress(Killed, face.errors.StoreError),
                failing.armed(tmp_path, fault, lambda: None),
            ):
                change(thing.opened(place))
            found = thing.read(place)
            assert same(found, after) or (same(found, before) and not failing.finished)
            if failing.finished and call >= failing.calls:  # no call was left that could fail
                break
    assert failing.finished
    assert number > 3
    thing.change(thing.opened(place), 7)
    thing.read(place)


def test_create__that_is_killed_anywhere_can_be_done_again(tmp_path: Path) -> None:
    with Disk().installed() as disk:
        for call in itertools.count(0, 3):
            path = tmp_path / f"t{call}"
            disk.calls = 100
            create = partial(face.create_tree, path, size=5, random_state=0)
            with (
                suppress(Killed),
                disk.armed(tmp_path, Fault("killed", (call + 0.5) / 100), lambda: None),
            ):
                create()
            if disk.finished:
                break
            try:
                tree = face.CoresetTree.open(path)
            except face.errors.StoreError:
                tree = create()
            tree.append(day(0))
            tree.verify()
    assert call > 3
