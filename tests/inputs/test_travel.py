"""Rows in memory, packed to be sent."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs.travel import PackedRows, RowsInMemory

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "rows",
    [
        RNG.integers(0, 10, 50_000),
        RNG.integers(0, 10, 50_000)[::-3],
        np.full(50_000, -np.pi),
        np.tile([np.nan, np.inf, -0.0, 5e-324], 5000),
        np.arange(50_000, dtype=">i4"),
        RNG.integers(0, 2, (1000, 7)).astype(bool),
        np.asfortranarray(np.ones((1000, 7), dtype=np.float32)),
    ],
)
def test_packed_rows__come_back_as_they_were(rows: AnyArray) -> None:
    loader = RowsInMemory(rows)
    assert loader() is rows
    sent = pickle.dumps(loader)
    assert len(sent) < rows.nbytes / 2
    came = pickle.loads(sent)
    assert isinstance(came, PackedRows)
    assert pickle.loads(pickle.dumps(came))().tobytes() == rows.tobytes()
    assert (came().dtype, came().shape) == (rows.dtype, rows.shape)
