"""Rows in memory, packed to be sent."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs.travel import PackedRows, RowsInMemory, bytes_to_send

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


@pytest.mark.parametrize(
    "rows",
    [RNG.random(1000), np.array(["a", None] * 100), np.array(["a", "b"] * 100), np.empty((0, 3))],
)
def test_rows_in_memory__that_do_not_pack_travel_as_they_are(rows: Any) -> None:
    came = pickle.loads(pickle.dumps(RowsInMemory(rows)))
    assert isinstance(came, RowsInMemory)
    np.testing.assert_array_equal(came(), rows)


def test_bytes_to_send__are_told_from_some() -> None:
    loaders = [RowsInMemory(RNG.random(1000)) for _ in range(100)]
    assert 100 * 8000 < bytes_to_send(loaders) < 100 * 8600
