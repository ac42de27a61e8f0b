"""Rows in a zarr store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zarr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 3))


class WrappedStore(zarr.storage.WrapperStore[Any]):
    """A store around another that can be opened for reading; those of zarr before 3.1.6 cannot."""

    def _with_store(self, store: Any) -> Any:
        return type(self)(store)

    def with_read_only(self, read_only: bool = False) -> Any:
        return self._with_store(self._store.with_read_only(read_only))


def zarr_of(folder: Path) -> Any:
    array = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=(50, 3), dtype=X.dtype)
    array[:] = X
    return array
