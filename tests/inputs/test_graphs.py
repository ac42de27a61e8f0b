"""Zarr arrays that functions in a graph are called with."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

from daskcoreset._build import build
from daskcoreset.core.errors import StoreError


def mapped(block: Any, array: Any = None) -> Any:
    del block
    return array[100:200]


def test_build__of_map_blocks_with_a_zarr_array(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "X.zarr", shape=(200, 2), chunks=(50, 2), dtype="f8")
    array[:150] = 5.0
    X = da.zeros((100, 2), chunks=(100, 2))
    options: dict[str, Any] = {"dtype": "f8", "meta": np.empty((0, 0))}
    X = X.map_blocks(partial(mapped, array=array), **options)
    with pytest.raises(StoreError, match="is not stored"):
        build(X, size=10)
