"""Zarr arrays that functions in a graph are called with."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from dask import delayed

from daskcoreset.build import build
from daskcoreset.core.errors import StoreError
from daskcoreset.inputs.graphs import with_stored_in_graph


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


def by_name(i: int, *, array: Any) -> Any:
    return rows(array, i)


def mapped(block: Any, array: Any = None) -> Any:
    del block
    return rows(array)


READ: Any = delayed(rows)
FORMS: dict[str, Callable[[Any], Any]] = {
    "position": lambda z: READ(z, 100),
    "name": lambda z: delayed(by_name)(100, array=z),
    "list": lambda z: READ([0, [z]]),
    "tuple": lambda z: READ((0, z)),
    "dictionary": lambda z: READ({"array": z}),
    "beside another task": lambda z: READ([delayed(abs)(-1), {"array": z}]),
    "partial": lambda z: delayed(partial(rows, z))(100),
    "delayed": lambda z: READ([delayed(z)]),
    "method": lambda z: delayed(z.get_basic_selection)(slice(100, 200)),
    **{
        how: partial(READ, start=100, how=how)
        for how in ("basic", "block", "oindex", "integers", "whole")
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_build__of_functions_that_get_a_zarr_array(form: str, tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "X.zarr", shape=(200, 2), chunks=(50, 2), dtype="f8")
    array[:] = np.arange(1.0, 401.0).reshape(200, 2)
    X = da.from_delayed(FORMS[form](array), (100, 2), dtype="f8")
    expected = build(np.asarray(X), size=10, random_state=0)
    assert np.array_equal(build(X, size=10, random_state=0).points, expected.points)
    (tmp_path / "X.zarr" / "c" / "3" / "0").unlink()
    with pytest.raises(StoreError, match="is not stored"):
        build(X, size=10)
    filled = build(X, size=60, random_state=0, missing_chunks="fill")
    assert (filled.points == 0).all(axis=1).any()


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


def test_with_stored_in_graph__opens_an_array_once(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "X.zarr", shape=(200, 2), chunks=(50, 2), dtype="f8")
    array[:] = 1.0
    parts = [da.from_delayed(READ(array, i), (100, 2), dtype="f8") for i in (0, 100)]
    X = with_stored_in_graph(da.concatenate(parts), "raise")
    arrays = {
        id(node.args[0])
        for node in dict(X.dask).values()
        if isinstance(getattr(node, "args", (0,))[0], zarr.Array)
    }
    assert len(arrays) == 1
    again = with_stored_in_graph(X, "fill")
    sent = pickle.loads(pickle.dumps(again))
    assert np.array_equal(sent.compute(scheduler="sync"), array[:])
    plain = da.ones((5, 2)) + 1
    assert with_stored_in_graph(plain, "raise") is plain
