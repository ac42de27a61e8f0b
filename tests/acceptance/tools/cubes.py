"""Labelled cubes, small ones, and the same rows in memory; a store that counts reads of chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
import zarr

DIMS = ("time", "lat", "lon")
SHAPE = (12, 8, 10)


class WrappedStore(zarr.storage.WrapperStore[Any]):
    """A store around another that can be opened for reading; those of zarr before 3.1.6 cannot."""

    def _with_store(self, store: Any) -> Any:
        return type(self)(store)

    def with_read_only(self, read_only: bool = False) -> Any:
        return self._with_store(self._store.with_read_only(read_only))


class CountingStore(WrappedStore):
    """A store in memory that counts how often each chunk is read."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.reads: Counter[str] = Counter()

    def _with_store(self, store: Any) -> CountingStore:
        other = CountingStore(store)
        other.reads = self.reads
        return other

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        if "/c/" in key:
            self.reads[key] += 1
        return await super().get(key, *args, **kwargs)


def weather(seed: int = 0, shape: Sequence[int] = SHAPE, masked: float = 0.3) -> xr.Dataset:
    """Return two variables in two groups of cells, and a mask of land that both have."""
    rng = np.random.default_rng(seed)
    land = rng.random(shape[1:]) < masked
    warm = 20 * (np.arange(shape[1]) % 2)[:, None]

    def field(units: str) -> Any:
        values = (rng.normal(size=shape) + warm).astype(np.float32)
        values[:, land] = np.nan
        return DIMS, values, {"units": units}

    coords = {
        "time": pd.date_range("2020-01-01", periods=shape[0]),
        "lat": ("lat", np.linspace(-80, 80, shape[1]), {"units": "degrees_north"}),
        "lon": ("lon", np.arange(shape[2]) * 10.0, {"units": "degrees_east"}),
    }
    return xr.Dataset({"t2m": field("K"), "u10": field("m s-1")}, coords)


def stored(cube: xr.Dataset, chunks: Sequence[int]) -> tuple[CountingStore, dict[str, Any]]:
    """Write a cube; return the store, whose reads count from zero, and how xarray opens it."""
    store = CountingStore(zarr.storage.MemoryStore())
    encoding = {name: {"chunks": tuple(chunks)} for name in cube}
    cube.to_zarr(store, encoding=encoding, consolidated=False, zarr_format=3)
    store.reads.clear()
    return store, {"consolidated": False, "zarr_format": 3}


def rows_of(cube: xr.Dataset, dims: Sequence[str] = DIMS) -> Any:
    """Return the rows in memory, in C order of the sample dimensions."""
    sizes = {dim: cube.sizes[dim] for dim in dims}
    columns = [
        np.broadcast_to(
            array.transpose(*(dim for dim in dims if dim in array.dims))
            .to_numpy()
            .reshape([length if dim in array.dims else 1 for dim, length in sizes.items()]),
            tuple(sizes.values()),
        ).ravel()
        for array in cube.values()
    ]
    return np.stack(columns, axis=1)
