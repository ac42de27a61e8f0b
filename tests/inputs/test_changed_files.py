"""Files that are others where they are read than where they were opened."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import dask.array as da
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from dask import delayed

from tests.acceptance.face import build, errors, plan


@pytest.mark.parametrize("change", ["dtype", "rows"])
def test_zarr__that_was_rewritten_between_plan_and_build(change: str, tmp_path: Path) -> None:
    path = tmp_path / "X.zarr"
    rows = np.arange(200.0).reshape(100, 2)
    zarr.create_array(str(path), data=rows, chunks=(50, 2))
    build(path, size=10, random_state=0)  # this process knows the store
    lazy = plan(path, size=10, random_state=0)
    shutil.rmtree(path)
    other = rows.astype("i8") if change == "dtype" else rows[:50]
    zarr.create_array(str(path), data=other, chunks=(50, 2))
    with pytest.raises(errors.StoreError, match="differs from the array that was opened"):
        lazy.compute()


@pytest.mark.parametrize("block", [[[1.0, 2.0]] * 10, None, np.float64(1.0)])
def test_build__block_that_is_no_array(block: Any) -> None:
    def make(value: Any) -> Any:
        return value

    parts = [
        da.from_delayed(delayed(make)(v), (10, 2), dtype="f8") for v in (np.ones((10, 2)), block)
    ]
    with pytest.raises(errors.InvalidInputError, match="in block 1, in place of"):
        build(da.concatenate(parts), size=5)


@pytest.mark.parametrize("paths", ["X.h5", "X.parquet", "X*.npy"])
def test_build__file_that_a_worker_cannot_see(paths: Any, tmp_path: Path) -> None:
    rows = np.ones((100, 2))
    folder = tmp_path / "here"
    folder.mkdir()
    np.save(folder / "X.npy", rows)
    pq.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), folder / "X.parquet")
    with h5py.File(folder / "X.h5", "w") as file:
        file["X"] = rows
    X = [str(folder / name) for name in ([paths] if isinstance(paths, str) else paths)]
    lazy = plan(X, size=10, random_state=0)
    folder.rename(tmp_path / "gone")
    seen = (
        r"cannot be read on host '.*' \(process \d+ in '.*'\).*visible to every worker, by the sam"
    )
    with pytest.raises(errors.StoreError, match=seen):
        lazy.compute()


def test_build__hdf5_that_tasks_cannot_open(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "X.h5", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("X", data=np.ones((100, 2)))
        with pytest.raises(errors.InvalidInputError, match="closed or in memory"):
            build(dataset, size=10)
    with pytest.raises(errors.InvalidInputError, match="closed or in memory"):
        build(dataset, size=10)


def test_build__file_of_another_format_is_there(tmp_path: Path) -> None:
    (tmp_path / "X.csv").write_text("1,2\n")
    with pytest.raises(errors.InvalidInputError, match="cannot be opened") as caught:
        build(tmp_path / "X.csv", size=10)
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("url", ["http:/me:S3CRET@host/x.zarr", "s3:AK:S3CRET@bucket"])
def test_build__url_without_slashes(url: str) -> None:
    rows = np.ones((10, 2))
    calls: list[tuple[Any, Any]] = [(url, None), (rows, url)]
    for X, y in calls:
        with pytest.raises(errors.InvalidInputError, match="without its two slashes") as caught:
            build(X, y, size=5)
        assert "S3CRET" not in str(caught.value)
