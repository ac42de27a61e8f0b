"""Many blocks: the graph must not become the job. Counts, never times, are asserted."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, Literal

import dask.array as da
import pytest
import zarr
from dask._task_spec import DataNode

from daskcoreset import Draw, plan
from daskcoreset.execution.lazy import Lazy

Passes = Literal[1, 2]


def optimised(lazy: Lazy[Any]) -> dict[Any, Any]:
    return dict(lazy.__dask_optimize__(lazy.__dask_graph__(), lazy.__dask_keys__()))


def stores(folder: Path) -> dict[str, Any]:
    opened = {}
    for name, shape in (("X", (200, 5)), ("y", (200,)), ("sample_weight", (200,))):
        opened[name] = zarr.create_array(
            folder / f"{name}.zarr", shape=shape, chunks=(10, *shape[1:]), dtype="f8"
        )
    return opened


@pytest.mark.parametrize(
    ("kind", "names", "passes"),
    [("zarr", ("X",), 2), ("dask", ("X", "y", "sample_weight"), 1)],
)
def test_tasks__pickle_small(
    kind: str, names: tuple[str, ...], passes: Passes, tmp_path: Path
) -> None:
    stores_of = {name: array for name, array in stores(tmp_path).items() if name in names}
    arrays = stores_of
    if kind == "dask":
        arrays = {name: da.from_zarr(array) for name, array in stores_of.items()}
    lazy = plan(size=20, chunks=10, random_state=0, draw=Draw(passes=passes), **arrays)
    sizes = [
        len(pickle.dumps(node, protocol=5))
        for node in optimised(lazy).values()
        if not isinstance(node, DataNode)
    ]
    # A task has little beside the handles of its arrays, whose size depends on the version of Zarr.
    handles = sum(len(pickle.dumps(array, protocol=5)) for array in stores_of.values())
    assert max(sizes) < handles + 1536
