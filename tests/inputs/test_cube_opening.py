"""Blocks of xarray objects that no Dask array has cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from daskcoreset.core.errors import StoreError
from daskcoreset.inputs.cube_opening import open_cube
from daskcoreset.inputs.options import ReadOptions
from tests.acceptance.tools.cubes import DIMS, CountingStore, rows_of, stored, weather

OPTIONS = ReadOptions(sample_dims=DIMS)


def lengths(X: Any, target: int, huge: int) -> Any:
    opened = open_cube(X, None, None, OPTIONS, target=target, memory=huge, huge=huge)
    for box in opened.boxes:  # what blocks read are the rows of their numbers
        found = opened.loaders(box)["X"]()
        np.testing.assert_array_equal(found, rows_of(X)[box.numbers(np.arange(len(box)))])
    return opened.cube.chunks


def test_blocks__of_arrays_in_memory_are_cut_where_they_are_huge() -> None:
    cube = weather()
    assert lengths(cube, 10**6, 10**6) == ((12,), (8,), (10,))
    assert lengths(cube, 4 * 640, 10**3) == ((4, 4, 4), (8,), (10,))
    assert lengths(cube, 4 * 80, 10**3)[1:] == ((4, 4), (10,))


def test_blocks__of_variables_in_other_chunks_stay_small() -> None:
    cube = weather()
    cube.t2m.encoding["chunks"], cube.u10.encoding["chunks"] = (3, 8, 10), (4, 8, 10)
    for variable in cube.values():  # not in memory, as far as is known
        lazily: Any = xr.core.indexing.LazilyIndexedArray(variable.to_numpy())
        variable.variable._data = lazily
    assert lengths(cube, 1, 10**6) == ((12,), (8,), (10,))
    assert lengths(cube, 1, 10**3)[0] == (4, 4, 4)


def test_read__that_fails_says_which_block(monkeypatch: pytest.MonkeyPatch) -> None:
    store, opening = stored(weather(), (5, 8, 4))
    cube = xr.open_zarr(store, chunks=None, **opening)
    opened = open_cube(cube, None, None, OPTIONS, target=1, memory=1, huge=1)

    async def broken(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(CountingStore, "get", broken)
    with pytest.raises(StoreError, match="block of X at time 5 to 10, lat 0 to 8, lon 4 to 8"):
        opened.loaders(opened.boxes[4])["X"]()
