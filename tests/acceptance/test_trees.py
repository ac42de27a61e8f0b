"""Trees and views: what their versions hold, on a disk and on an object store."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.acceptance.face import Coreset, CoresetError, CoresetTree, CoresetWarning
from tests.pairs import each

OPTIONS: dict[str, Any] = {"size": 5, "random_state": 0}


def remote_place() -> Any:
    obstore = pytest.importorskip("obstore")
    from zarr.storage import ObjectStore

    return ObjectStore(obstore.store.MemoryStore())


def write_day(path: Path, number: int) -> None:
    rng = np.random.default_rng(number)
    np.save(path, rng.standard_t(2, size=(12 + number, 2)))


def changed(source: Path, place: Any, keep: int | None, n: int) -> dict[int, Coreset]:
    """Make `n` versions of a view of two files, and return the coresets of the first ones."""
    write_day(source / "stays.npy", 0)
    write_day(source / "changes.npy", 1)
    view = CoresetTree.follow(f"{source}/*.npy", place, keep=keep, **OPTIONS)
    coresets = {1: view.coreset()}
    for version in range(2, n + 1):
        write_day(source / "changes.npy", version)
        view.refresh()
        if version <= 5:
            coresets[version] = view.coreset()
    assert view.version == n
    return coresets


@pytest.mark.usefixtures("quick_disk")
@each(keep=[None, 1, 3], remote=[False, True])
def test_as_of__has_as_many_versions_as_are_kept(
    keep: int | None, remote: bool, tmp_path: Path
) -> None:
    place = remote_place() if remote else tmp_path / "view"
    coresets = changed(tmp_path, place, keep, 5)
    view, first = CoresetTree.open(place), {None: 1, 1: 4, 3: 3}[keep]
    for version in range(first, 6):
        old = view.as_of(version)
        old.verify()
        assert (old.version, len(old)) == (version, 2)
        assert old.coreset().equals(coresets[version])
    for lost in range(1, first):
        with pytest.raises(CoresetError, match=f"oldest one is {first}"):
            view.as_of(lost)
    for wrong in (0, 6, -1):
        with pytest.raises(CoresetError, match="version"):
            view.as_of(wrong)


def test_as_of__has_many_versions_on_an_object_store(tmp_path: Path) -> None:
    place = remote_place()
    coresets = changed(tmp_path, place, None, 66)
    write_day(tmp_path / "changes.npy", 67)
    for keep, first in ((None, 1), (67, 2)):
        view = CoresetTree.follow(f"{tmp_path}/*.npy", place, keep=keep, **OPTIONS)
        old = view.as_of(first)
        old.verify()
        assert old.coreset().equals(coresets[first])
        write_day(tmp_path / "changes.npy", 68)
    with pytest.raises(ValueError, match=r"version 1 is not kept: .* is 2"):
        view.as_of(1)


def test_refresh__removes_nothing_while_the_store_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    obstore = pytest.importorskip("obstore")
    place = remote_place()
    coresets = changed(tmp_path, place, None, 4)

    n_asked = 0

    def first_fail(ask: Callable[..., Any], *args: Any, **options: Any) -> Any:
        nonlocal n_asked
        n_asked += 1
        if n_asked <= 3:
            raise NotImplementedError("no answer")
        return ask(*args, **options)

    again = CoresetTree.follow(f"{tmp_path}/*.npy", place, keep=None, **OPTIONS)
    write_day(tmp_path / "changes.npy", 5)
    for name in ("head", "list"):
        monkeypatch.setattr(obstore, name, partial(first_fail, getattr(obstore, name)))
    again.refresh()
    monkeypatch.undo()
    assert n_asked > 3
    for version, coreset in coresets.items():
        assert again.as_of(version).coreset().equals(coreset)


# --- times ---------------------------------------------------------------------------------

TIMES = {
    "0": np.int64(0),
    "7": np.uint8(7),
    "0.1": np.float32(0.1),
    "-2.5": np.float64(-2.5),
    "3": np.array(3),
    "1.50": Decimal("1.50"),
}


def test_append__takes_numbers_as_times(tmp_path: Path) -> None:
    tree = CoresetTree.create(tmp_path / "tree", **OPTIONS)
    for time in TIMES.values():
        tree.append(np.ones((9, 2)), time=time)
    assert [leaf.time for leaf in CoresetTree.open(tmp_path / "tree").leaves] == [*TIMES]
    for wrong in (np.float64("nan"), np.inf, np.bool_(True), np.array([3]), 1j):
        with pytest.raises((ValueError, TypeError), match="time is"):
            tree.append(np.ones((9, 2)), time=wrong)


def test_append__takes_a_date_of_an_array(tmp_path: Path) -> None:
    tree = CoresetTree.create(tmp_path / "tree", **OPTIONS)
    tree.append(np.ones((9, 2)), time=np.array("2026-03-01", "M8[D]"))
    assert tree.leaves[0].time == "2026-03-01"


def test_follow__takes_other_settings_until_there_is_a_leaf(tmp_path: Path) -> None:
    follow = partial(CoresetTree.follow, f"{tmp_path}/*.npy", tmp_path / "v", random_state=0)
    for size in (8, 9):
        with pytest.warns(CoresetWarning, match="npy"):
            follow(size=size)
    write_day(tmp_path / "a.npy", 0)
    view = follow(size=9)
    assert len(view.coreset()) == 9
    with pytest.raises(CoresetError, match=r"size is 10, but the view .* created with 9"):
        follow(size=10)
    assert follow(size=9).coreset().equals(view.coreset())
