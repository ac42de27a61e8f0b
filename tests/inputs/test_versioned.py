from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from daskcoreset import CoresetTree
from daskcoreset.core.errors import InvalidInputError, StoreError
from tests.acceptance.tools.view_histories import assert_alike

pytestmark = pytest.mark.usefixtures("light_trees")

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
    version = view.version
    with pytest.raises(StoreError, match="another repository, or the snapshot has expired"):
        CoresetTree.follow(repository(50), tmp_path / "view", **options)
    with pytest.raises(InvalidInputError, match="branch"):
        CoresetTree.follow(made, tmp_path / "view", branch="other", **options)
    assert CoresetTree.open(tmp_path / "view").version == version


def test_icechunk__of_rows_that_were_cut_off_in_between(tmp_path: Path) -> None:
    made = repository()
    options = {**OPTIONS, "y": "y", "missing_chunks": "fill"}
    view = CoresetTree.follow(made, tmp_path / "view", **options)
    edit(made, lambda group: group["X"].resize((35, 2)))
    edit(made, lambda group: group["X"].resize((60, 2)))
    assert view.refresh().read == ("block-4", "block-5")
    assert_alike(view, CoresetTree.follow(made, tmp_path / "fresh", **options))


def test_delta__reads_the_files_that_the_log_adds(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    pa = pytest.importorskip("pyarrow")
    rng, path = np.random.default_rng(0), str(tmp_path / "table")

    def put(day: str, n: int) -> None:
        columns = {"a": rng.normal(size=n), "b": rng.normal(size=n), "day": [day] * n}
        table = pa.table({**columns, "t": rng.integers(2, size=n)})
        deltalake.write_deltalake(path, table, mode="append", partition_by=["day"])

    put("2026-01-01", 60)
    put("2026-01-02", 40)
    options = {**OPTIONS, "y": "t", "columns": ["a", "b"]}
    view = CoresetTree.follow(path, tmp_path / "view", **options)
    assert [leaf.time for leaf in view.leaves] == ["2026-01-01", "2026-01-02"]
    put("2026-01-02", 30)
    assert view.refresh().rows == 30
    deltalake.DeltaTable(path).delete("day = '2026-01-01'")  # the file is still there
    done = view.refresh()
    assert (len(done.removed), done.rows) == (1, 0)
    deltalake.DeltaTable(path).optimize.compact()
    assert view.refresh().rows == 70
    table = deltalake.DeltaTable(path)
    again = CoresetTree.follow(table, tmp_path / "view", **options)
    assert again.last_refresh is not None
    assert not again.last_refresh.read
    put("2026-01-03", 20)
    assert again.refresh().rows == 20
    assert_alike(again, CoresetTree.follow(path, tmp_path / "fresh", **options))
