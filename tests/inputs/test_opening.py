"""Every kind of input, the same rows in the same chunks: the same coreset, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from daskcoreset import plan
from tests.acceptance.tools.input_kinds import (
    SIZE,
    stored,
)

# --- frames ------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", ["names", "series", "none"])
def test_build__partition_read_once_with_one_pass(beside: str) -> None:
    reads: list[int] = []
    partitions = 6

    def load(number: int) -> pd.DataFrame:
        reads.append(number)
        rng = np.random.default_rng(number)
        frame = pd.DataFrame(rng.normal(size=(30 + number, 4)), columns=list("abyw"))
        return frame.assign(w=1.0 + len(beside))  # Dask takes equal functions for one

    with dask.config.set(scheduler="synchronous"):
        frame = dd.from_map(load, range(partitions), meta=load(0))
        reads.clear()
        named: dict[str, Any] = {} if beside == "none" else {"y": "y", "sample_weight": "w"}
        rows = frame
        if beside == "series":
            rows, named = frame[["a", "b"]], {name: frame[key] for name, key in named.items()}
        lazy = plan(rows, size=SIZE, random_state=0, **named)
        assert reads == []
        coreset = lazy.compute()
    assert sorted(reads) == list(range(partitions))
    assert coreset.provenance["n"] == sum(30 + number for number in range(partitions))
    assert coreset.provenance["columns"] == (("a", "b") if named else tuple("abyw"))
    # Reading fuses with the work on the partition; Dask gives some tasks two names.
    assert lazy.forecast.tasks <= 2 * (partitions + 1)


# --- blocks ------------------------------------------------------------------------------


def test_build__tasks_of_a_block(tmp_path: Path) -> None:
    n_blocks = 100
    array = da.zeros((n_blocks * 10, 8), chunks=(10, 8))
    labels = da.zeros(n_blocks * 10, chunks=10)
    options: dict[str, Any] = {"size": 5, "chunks": 10}
    tree = 7 + 1  # sixteen at a time
    assert plan(array, labels, **options).forecast.tasks <= n_blocks + tree + 1
    in_columns = da.zeros((n_blocks * 10, 8), chunks=(10, 4))
    assert plan(in_columns, **options).forecast.tasks <= 4 * n_blocks + tree + 1
    made = stored(tmp_path, "X.zarr", np.zeros((1000, 8), np.float32), chunks=(10, 8))
    assert plan(made, **options).forecast.tasks <= n_blocks + tree + 1
