"""Zarr arrays that functions in a graph are called with."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

from daskcoreset.build import build
from daskcoreset.core.errors import StoreError


def found(value: Any) -> Any:
    """Return the array in anything."""
    if isinstance(value, dict):
        return found(list(value.values()))
    return found(value[-1]) if isinstance(value, (list, tuple)) else value


def rows(value: Any, start: int = 100, how: str = "slices") -> Any:
    array = found(value)
    assert isinstance(array, zarr.Array)
    assert array.chunks == (50, 2)
    if how == "basic":
        return array.get_basic_selection(slice(start, start + 100))
    if how == "block":
        return array.get_block_selection(slice(start // 50, start // 50 + 2))
    if how == "oindex":
        return array.oindex[np.arange(start, start + 100), :]
    if how == "integers":
        return np.stack([array[i] for i in range(start, start + 100)])
    if how == "whole":
        return np.asarray(array)[start : start + 100]
    return array[start : start + 100]


def mapped(block: Any, array: Any = None) -> Any:
    del block
    return rows(array)


@pytest.mark.parametrize("function", ["partial", "name"])
def test_build__of_map_blocks_with_a_zarr_array(function: str, tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "X.zarr", shape=(200, 2), chunks=(50, 2), dtype="f8")
    array[:150] = 5.0
    X = da.zeros((100, 2), chunks=(100, 2))
    options: dict[str, Any] = {"dtype": "f8", "meta": np.empty((0, 0))}
    if function == "partial":
        X = X.map_blocks(partial(mapped, array=array), **options)
    else:
        X = X.map_blocks(mapped, array=array, **options)
    with pytest.raises(StoreError, match="is not stored"):
        build(X, size=10)
