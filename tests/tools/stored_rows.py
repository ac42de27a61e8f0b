"""Rows in a zarr store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zarr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 3))


def zarr_of(folder: Path) -> Any:
    array = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=(50, 3), dtype=X.dtype)
    array[:] = X
    return array
