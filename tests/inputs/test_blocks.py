"""Blocks of rows: cut, grouped and kept as their inputs store them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from daskcoreset import plan
from daskcoreset.inputs.blocks import row_blocks
from tests.acceptance.tools.input_kinds import (
    SIZE,
    stored,
)


def test_row_blocks__huge_chunk_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskcoreset.inputs.blocks.TARGET_BYTES", 1000 * 12)
    monkeypatch.setattr("daskcoreset.inputs.blocks.HUGE_BYTES", 4000 * 12)
    monkeypatch.setattr("daskcoreset.inputs.blocks.MEMORY_BYTES", 2000 * 12)
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
    monkeypatch.setattr("daskcoreset.inputs.blocks.TARGET_BYTES", 8 * 1000)
    made = stored(tmp_path, "X.zarr", np.zeros((1000, 2), np.float32), **stored_as)
    assert row_blocks(made).sizes == sizes
    assert granularity * (sizes[0] // granularity or 1) >= sizes[0]
    assert row_blocks(made, chunks=700).sizes == (700, 300), "the user's word counts"
