from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from daskcoreset import CoresetTree, open_rows
from tests.acceptance.tools.view_histories import assert_alike

pytestmark = pytest.mark.usefixtures("quick_disk")

OPTIONS: dict[str, Any] = {"size": 20, "random_state": 0}


def repository(n: int = 60) -> Any:
    icechunk = pytest.importorskip("icechunk")
    made = icechunk.Repository.create(icechunk.in_memory_storage())
    session = made.writable_session("main")
    group = zarr.open_group(session.store)
    X = group.create_array("X", shape=(n, 2), chunks=(10, 2), dtype="f8")
    y = group.create_array("y", shape=(n,), chunks=(20,), dtype="i4")
    X[:], y[:] = np.random.default_rng(0).normal(size=(n, 2)), 1
    session.commit("rows")
    return made


def edit(made: Any, change: Callable[[Any], object]) -> None:
    session = made.writable_session("main")
    change(zarr.open_group(session.store))
    session.commit("change")


def test_icechunk__reads_what_the_snapshots_differ_in(tmp_path: Path) -> None:
    made = repository()
    options = {**OPTIONS, "y": "y"}
    view = CoresetTree.follow(made, tmp_path / "view", **options)
    first = made.lookup_branch("main")

    def grow(group: Any) -> None:
        group["X"].resize((70, 2))
        group["y"].resize((70,))
        group["X"][60:], group["y"][60:] = 2.0, 3

    for change, read in (
        (grow, ("block-6",)),
        (lambda group: group["X"].__setitem__(33, 9.0), ("block-3",)),
        (lambda group: group["y"].__setitem__(5, 4), ("block-0", "block-1")),
        (lambda group: group.attrs.update(seen=1), ()),
        (lambda group: group["X"].resize((68, 2)) or group["y"].resize((68,)), ("block-6",)),
    ):
        edit(made, change)
        assert view.refresh().read == read
        assert_alike(view, CoresetTree.follow(made, tmp_path / str(view.version), **options))
    made.reset_branch("main", first)
    assert view.refresh(allow_shrink=True).n_leaves == 6
    assert_alike(view, CoresetTree.follow(made, tmp_path / "fresh", **options))
    # A snapshot that is not there, as one that has expired: all is read.
    other = repository()
    view = CoresetTree.follow(other, tmp_path / "view", **options)
    assert view.last_refresh is not None
    assert len(view.last_refresh.read) == 6


def test_icechunk__of_rows_that_were_cut_off_in_between(tmp_path: Path) -> None:
    made = repository()
    options, source = {**OPTIONS, "y": "y"}, open_rows(made, missing_chunks="fill")
    view = CoresetTree.follow(source, tmp_path / "view", **options)
    edit(made, lambda group: group["X"].resize((35, 2)))
    edit(made, lambda group: group["X"].resize((60, 2)))
    assert view.refresh().read == ("block-4", "block-5")
    assert_alike(view, CoresetTree.follow(source, tmp_path / "fresh", **options))
