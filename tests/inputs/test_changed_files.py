"""Files that are others where they are read than where they were opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask import delayed

from tests.acceptance.face import build, errors, plan


def test_npy__that_grew(tmp_path: Path) -> None:
    path = tmp_path / "X.npy"
    np.save(path, np.ones((100, 2)))
    lazy = plan(path, size=10, random_state=0)
    path.unlink()
    np.save(path, np.ones((150, 2)))
    assert lazy.compute().weights.sum() == pytest.approx(100)


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


@pytest.mark.parametrize("url", ["http:/me:S3CRET@host/x.zarr", "s3:AK:S3CRET@bucket"])
def test_build__url_without_slashes(url: str) -> None:
    rows = np.ones((10, 2))
    calls: list[tuple[Any, Any]] = [(url, None), (rows, url)]
    for X, y in calls:
        with pytest.raises(errors.InvalidInputError, match="without its two slashes") as caught:
            build(X, y, size=5)
        assert "S3CRET" not in str(caught.value)
