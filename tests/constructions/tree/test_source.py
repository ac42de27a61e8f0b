from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from daskcoreset import CoresetTree, open_rows
from daskcoreset.constructions.tree.source import time_in_name
from daskcoreset.inputs.zarr import CheckedPipeline
from tests.acceptance.tools.view_histories import assert_alike

pytestmark = pytest.mark.usefixtures("quick_disk")

OPTIONS: dict[str, Any] = {"size": 20, "random_state": 0}


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("date=2026-03-01/part.0.parquet", "2026-03-01"),
        ("20260301.npy", "2026-03-01"),
        ("2025/x-2026-03-01T0930.npy", "2026-03-01T09:30:00"),
        ("x_20260301_093015.npy", "2026-03-01T09:30:15"),
        ("2026-06-31.npy", None),
        ("123202603011.npy", None),
        ("part-0.npy", None),
        ("day=2026-01-01/part-0-77890306-1c2d-4e5f-8a9b-0c1d2e3f4a5b-c000.parquet", "2026-01-01"),
        ("part-778903061c2d4e5f8a9b0c1d2e3f4a5b.parquet", None),
    ],
)
def test_time_in_name__finds_dates(name: str, time: str | None) -> None:
    assert time_in_name(name) == time


def test_follow__a_parquet_folder_with_dates_and_labels(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    folder = tmp_path / "parts"

    def put(day: str, part: int, n: int) -> None:
        (folder / f"date={day}").mkdir(parents=True, exist_ok=True)
        columns = {"a": rng.normal(size=n), "b": rng.normal(size=n), "t": rng.integers(2, size=n)}
        pq.write_table(pa.table(columns), folder / f"date={day}" / f"part.{part}.parquet")

    for i in range(1, 5):
        put(f"2026-01-0{i}", i, 50)
    options, source = {**OPTIONS, "y": "t"}, open_rows(folder, columns=["a", "b"])
    view = CoresetTree.follow(source, tmp_path / "view", **options)
    put("2026-01-02", 9, 30)
    put("2026-01-03", 3, 0)
    shutil.rmtree(folder / "date=2026-01-01")
    done = view.refresh()
    assert done.added == ("date=2026-01-02/part.9.parquet",)
    assert done.changed == ("date=2026-01-03/part.3.parquet",)
    assert done.removed == ("date=2026-01-01/part.1.parquet",)
    assert done.rows == 30
    assert view.leaves[0].time == "2026-01-02"
    assert_alike(view, CoresetTree.follow(source, tmp_path / "fresh", **options))


def test_follow__stores_by_other_ways_are_the_same_source(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "rows", shape=(20, 2), chunks=(5, 2), dtype="f8")
    array[:] = 1.0
    view = CoresetTree.follow(array, tmp_path / "view", **OPTIONS)
    for source in (str(tmp_path / "rows"), tmp_path / "rows", array.store_path.store):
        again = CoresetTree.follow(source, tmp_path / "view", **OPTIONS)
        assert again.last_refresh is not None
        assert not again.last_refresh.read
    # Another codec or fill value is another array, whatever the chunks say.
    shutil.rmtree(tmp_path / "rows")
    made = zarr.create_array(
        tmp_path / "rows", shape=(20, 2), chunks=(5, 2), dtype="f8", fill_value=3.0
    )
    made[:] = 1.0
    assert len(view.refresh().read) == 4


def test_refresh__reads_again_what_was_written_while_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = tmp_path / "rows", CheckedPipeline.read
    array = zarr.create_array(path, shape=(10, 2), chunks=(5, 2), dtype="f8", compressors=None)
    array[:] = 1.0

    async def rewritten(self: Any, batch: Any, *args: Any, **options: Any) -> None:
        batch = list(batch)
        await read(self, batch, *args, **options)
        if any(chunk.path.endswith("c/0/0") for chunk, *_ in batch):  # right after it is read
            (path / "c/0/0").write_bytes(np.full((5, 2), 2.0).tobytes())

    monkeypatch.setattr(CheckedPipeline, "read", rewritten)
    view = CoresetTree.follow(path, tmp_path / "view", size=9, random_state=0)
    monkeypatch.undo()
    done = view.refresh()
    assert (done.read, done.changed) == (("block-0",), ("block-0",))
    assert_alike(view, CoresetTree.follow(path, tmp_path / "fresh", size=9, random_state=0))


def test_refresh__of_a_link_whose_file_was_written_anew(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.npy").symlink_to(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.ones((9, 2)))
    view = CoresetTree.follow(f"{tmp_path}/links/*.npy", tmp_path / "view", **OPTIONS)
    np.save(tmp_path / "a.npy", np.full((9, 2), 2.0))
    assert view.refresh().changed == ("a.npy",)
