"""Zarr chunks and stores that are not there."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from daskcoreset.core.errors import StoreError
from daskcoreset.inputs.stored import StoredArray

ROWS, CHUNK = 400, 100


def rows() -> Any:
    return np.random.default_rng(0).normal(5.0, 1.0, size=(ROWS, 2))


def stored(path: Any, data: Any, **layout: Any) -> Any:
    layout = {"chunks": (CHUNK, *data.shape[1:])} | layout
    array = zarr.create_array(path, shape=data.shape, dtype=data.dtype, **layout)
    array[:] = data
    return array


def lose_chunk(path: Path) -> str:
    """Remove the second file of chunks, and return its key."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and "zarr" not in file.name)
    files = [file for file in files if not file.name.startswith(".")]
    files[1].unlink()
    return str(files[1].relative_to(path))


def test_stored_array__keys(tmp_path: Path) -> None:
    array = stored(tmp_path / "X.zarr", rows())
    checked = pickle.loads(pickle.dumps(StoredArray.of(array)))
    keys: list[Any] = [
        slice(None), slice(-150, None), slice(150, 90), slice(None, None, 2), 3,
        (slice(5, 250), 1), (slice(50, 350), slice(0, 1)), np.array([1, 399]), ...,
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(checked[key], array[key])
    picked = ([1, 399], [0])
    np.testing.assert_array_equal(checked.oindex[picked], array.oindex[picked])
    np.testing.assert_array_equal(checked.vindex[picked], array.vindex[picked])
    lose_chunk(tmp_path / "X.zarr")
    for key in (slice(None, None, 2), (slice(5, 250), 1), np.array([1, 120]), 120):
        with pytest.raises(StoreError, match="is not stored"):
            checked[key]
    with pytest.raises(StoreError, match="a chunk of"):
        checked.oindex[[1, 120], [0]]
    np.testing.assert_array_equal(checked[0:100], array[0:100])
