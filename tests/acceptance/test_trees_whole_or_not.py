"""A change of a tree or stream is whole or not at all, wherever the process is killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.acceptance import face

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


def days(n: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(40, 2)) + day for day in range(n)]


def change(tree: Any, kind: str, part: Any) -> None:
    if kind == "append":
        tree.append(part, name="new")
    elif kind == "replace":
        tree.replace("d1", part)
    else:
        tree.delete("d2")


@pytest.mark.parametrize("kind", ["append", "replace", "delete"])
def test_tree__is_whole_wherever_the_process_is_killed(kind: str, tmp_path: Path) -> None:
    parts = days(5)
    tree = face.create_tree(tmp_path / "tree", size=5, random_state=0)
    for i, part in enumerate(parts[:4]):
        tree.append(part, name=f"d{i}")
    before, version = tree.coreset(), tree.version
    wanted = {"append": [0, 1, 2, 3, 4], "replace": [0, 4, 2, 3], "delete": [0, 1, 3]}[kind]
    names = {"append": "d0 d1 d2 d3 new", "replace": "d0 d1 d2 d3", "delete": "d0 d1 d3"}[kind]
    step = {"append": 1, "replace": 4, "delete": 7}[kind]  # so that the places differ
    while killed_at(step, lambda: change(face.CoresetTree.open(tmp_path / "tree"), kind, parts[4])):
        step += 9
        found = face.CoresetTree.open(tmp_path / "tree")
        found.verify()
        if found.version > version:
            break
        assert found.coreset().equals(before)
    assert step > 40
    found = face.CoresetTree.open(tmp_path / "tree")
    assert [leaf.name for leaf in found.leaves] == names.split()
    c = found.coreset()
    _, numbers = found.locate(c.indices)
    rows = [parts[wanted[i // 40]][n] for i, n in zip(c.indices, numbers, strict=True)]
    assert np.array_equal(c.points, np.array(rows))
    found.append(parts[0], name="later")
    found.verify()


def test_create__killed_anywhere_can_be_done_again(tmp_path: Path) -> None:
    step = 0
    while True:
        step += 3
        path = tmp_path / f"t{step}"
        killed = killed_at(step, partial(face.create_tree, path, size=5))
        if not killed:
            break
        try:
            tree = face.CoresetTree.open(path)
        except face.errors.StoreError:
            tree = face.create_tree(path, size=5, random_state=0)
        tree.append(days(1)[0])
        tree.verify()
    assert step > 2


def test_stream__is_whole_wherever_the_process_is_killed(tmp_path: Path) -> None:
    X = np.concatenate(days(8))
    options: dict[str, Any] = {"size": 5, "leaf_size": 30, "random_state": 0}
    face.stream(**options, store=tmp_path / "s").partial_fit(X[:100])
    plain = face.stream(**options).partial_fit(X[:100])
    states = [plain.coreset(), plain.partial_fit(X[100:200]).coreset()]
    step = 0
    while True:
        step += 3
        killed = killed_at(
            step, lambda: face.CoresetStream.load(tmp_path / "s").partial_fit(X[100:200])
        )
        found = face.CoresetStream.load(tmp_path / "s")
        if found.n_rows == 100:
            assert found.coreset().equals(states[0])
            assert killed
            continue
        assert found.coreset().equals(states[1])
        break
    assert step > 2


def test_coreset__is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    c = face.build(days(1)[0], size=10, random_state=0)
    other = face.build(days(2)[1], size=12, random_state=0)
    c.to_zarr(tmp_path / "c")
    step = 0
    while True:
        step += 2
        killed = killed_at(step, lambda: other.to_zarr(tmp_path / "c", overwrite=True))
        found = face.Coreset.from_zarr(tmp_path / "c")
        assert found.equals(c) or found.equals(other)
        if not killed:
            assert found.equals(other)
            break
    assert step > 2


def test_tree__on_an_object_store_is_whole_whichever_request_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    obstore = pytest.importorskip("obstore")
    from zarr.storage import ObjectStore

    parts = days(4)

    def grown() -> tuple[Any, Any]:
        place = ObjectStore(obstore.store.MemoryStore())
        tree = face.create_tree(place, size=5, random_state=0)
        for i, part in enumerate(parts[:3]):
            tree.append(part, name=f"d{i}")
        return place, tree

    place, tree = grown()
    before = tree.coreset()
    tree.append(parts[3], name="new")
    after = tree.coreset()
    failing, step = True, 0
    while failing:
        step += 1
        place, tree = grown()
        count = 0
        failing = False

        def fails(call: Callable[..., Any], step: int = step) -> Callable[..., Any]:
            def counted(*args: Any, **options: Any) -> Any:
                nonlocal count, failing
                count += 1
                if count >= step:
                    failing = True
                    raise OSError("the network is down")
                return call(*args, **options)

            return counted

        for name in ("put", "delete"):
            monkeypatch.setattr(obstore, name, fails(getattr(obstore, name)))
        try:
            with face.time_limit(20):
                tree.append(parts[3], name="new")
        except (face.CoresetError, OSError):
            assert failing
        monkeypatch.undo()
        found = face.CoresetTree.open(place)
        found.verify()
        c = found.coreset()
        assert c.equals(after) if "new" in found else c.equals(before)
    assert "new" in found
    assert step > 1
