"""Blocks of rows: cut, grouped and kept as their inputs store them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr

from daskcoreset import build, open_rows, plan
from daskcoreset.inputs.blocks import row_blocks
from tests.acceptance.tools.input_kinds import (
    SIZE,
    stored,
)


def test_row_blocks__huge_chunk_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskcoreset.inputs.cuts.TARGET_BYTES", 1000 * 12)
    monkeypatch.setattr("daskcoreset.inputs.cuts.HUGE_BYTES", 4000 * 12)
    monkeypatch.setattr("daskcoreset.inputs.cuts.MEMORY_BYTES", 2000 * 12)
    big = np.zeros((10_001, 3), np.float32)
    split = (910,) * 2 + (909,) * 9
    assert row_blocks(da.from_array(big, chunks=-1)).sizes == split
    assert row_blocks(da.from_array(big[:4000], chunks=-1)).sizes == (4000,)
    assert row_blocks(big).sizes == (1000,) * 10 + (1,)
    assert row_blocks(big[:2000]).sizes == (2000,)
    assert row_blocks(big[:2001]).sizes == (1000, 1000, 1)
    assert row_blocks(pd.DataFrame(big)).sizes == (1000,) * 10 + (1,)


def test_row_blocks__tiny_chunks_are_grouped() -> None:
    chunks = 5000
    tiny = da.zeros((20 * chunks, 50), chunks=(20, 50), dtype=np.float32)
    lazy = plan(tiny, size=SIZE)
    blocks = row_blocks(tiny)
    assert blocks.n_rows == 20 * chunks
    assert blocks.n_blocks == 1  # 20 MB in all
    # Each chunk has its own task, made by the caller; all else is a handful.
    assert lazy.forecast.tasks <= chunks + 10
    few = da.zeros((200, 50), chunks=(10, 50))
    assert row_blocks(few).n_blocks == 20, "so few cost nothing"


@pytest.mark.parametrize(
    ("stored_as", "granularity", "sizes"),
    [
        ({"chunks": (300, 2)}, 300, (900, 100)),
        ({"chunks": (10, 1), "shards": (600, 2)}, 600, (600, 400)),
        ({"chunks": (2000, 2)}, 2000, (1000,)),
    ],
)
def test_row_blocks__zarr_in_whole_chunks(
    stored_as: dict[str, Any],
    granularity: int,
    sizes: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("daskcoreset.inputs.cuts.TARGET_BYTES", 8 * 1000)
    made = stored(tmp_path, "X.zarr", np.zeros((1000, 2), np.float32), **stored_as)
    assert row_blocks(made).sizes == sizes
    assert granularity * (sizes[0] // granularity or 1) >= sizes[0]
    assert row_blocks(made, chunks=700).sizes == (700, 300), "the user's word counts"


def unwritten(rows: int, chunk: int) -> Any:
    array = zarr.create_array({}, shape=(rows, 2), chunks=(chunk, 2), dtype="f4", fill_value=1.0)
    return open_rows(array, missing_chunks="fill")


def test_row_blocks__of_a_million_chunks_are_at_most_100_000() -> None:
    rows = unwritten(10**6 * 2**22, 2**22)  # each chunk is a block of 32 MiB
    blocks = row_blocks(rows)
    assert blocks.n_rows == 10**6 * 2**22
    assert 10_000 < blocks.n_blocks <= 100_000
    assert plan(rows, size=10).reads == 1


def test_build__of_more_chunks_than_blocks_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TARGET_BYTES": 8, "SMALL_BYTES": 8, "MAX_BLOCKS": 100}.items():
        monkeypatch.setattr(f"daskcoreset.inputs.cuts.{name}", value)
    coreset = build(unwritten(1000, 1), size=10, random_state=0)
    assert coreset.provenance["n_blocks"] <= 100
    assert coreset.weights.sum() == pytest.approx(1000)


def test_row_blocks__huge_chunks_and_row_groups_are_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskcoreset.inputs.cuts.HUGE_BYTES", 100 * 8)
    monkeypatch.setattr("daskcoreset.inputs.cuts.TARGET_BYTES", 50 * 8)
    X = np.arange(600, dtype=np.float32).reshape(300, 2)
    array = zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(250, 2))
    assert row_blocks(array).sizes == (84, 83, 83, 50)
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(tmp_path / "X.parquet", row_group_size=250)
    assert row_blocks(tmp_path / "X.parquet").sizes == (84, 83, 83, 50)
    for source in (array, tmp_path / "X.parquet"):
        coreset = build(source, size=50, random_state=0)
        np.testing.assert_array_equal(coreset.points, X[coreset.indices])
