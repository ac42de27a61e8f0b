"""Many blocks: the graph must not become the job. Counts, never times, are asserted."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any, Literal

import dask.array as da
import numpy as np
import pytest
import zarr
from dask._task_spec import DataNode
from dask.callbacks import Callback

from daskcoreset.build import build
from daskcoreset.execution.lazy import Alone, Lazy
from daskcoreset.execution.waves import MANY_BLOCKS, TASK_BLOCKS
from daskcoreset.inputs.blocks import SMALL_BYTES, TARGET_BYTES, row_blocks

ROWS = 4
SPLIT_EVERY = 16

Passes = Literal[1, 2]


class Tasks(Callback):
    def __init__(self) -> None:
        self.count = 0
        super().__init__(posttask=self._add)  # type: ignore[no-untyped-call]

    def _add(self, *_: Any) -> None:
        self.count += 1


def rows_in(kind: str, n_blocks: int) -> Any:
    shape = (n_blocks * ROWS, 3)
    if kind == "self-reading":
        return np.random.default_rng(0).normal(size=shape).astype(np.float32)
    if kind == "blockwise":
        return da.ones(shape, chunks=(ROWS, 3)) * da.arange(3)
    return da.random.default_rng(0).normal(size=shape, chunks=(ROWS, 3))


def optimised(lazy: Lazy[Any]) -> dict[Any, Any]:
    return dict(Alone.optimize(lazy.__dask_graph__(), lazy.__dask_keys__()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "passes", "n_blocks"),
    [
        ("self-reading", 1, 20_000),
        ("self-reading", 1, 16_000),
        ("self-reading", 2, 10_000),
        ("blockwise", 1, 5000),
        ("blockwise", 2, 5000),
        ("random", 1, 5000),
        ("random", 2, 5000),
    ],
)
@pytest.mark.nightly
def test_build__many_blocks_cost_a_task_per_read(kind: str, passes: Passes, n_blocks: int) -> None:
    X = rows_in(kind, n_blocks)
    lazy = build(X, size=500, passes=passes, chunks=ROWS, random_state=0, compute=False)
    # From so many blocks on, a task reads and merges sixteen of them.
    n_leaves = math.ceil(n_blocks / TASK_BLOCKS) if n_blocks >= MANY_BLOCKS else n_blocks
    # A tree of 16 adds a fifteenth, and a part of a group on every level.
    tree = n_leaves / 15 + math.ceil(math.log(n_blocks, SPLIT_EVERY))
    # The second pass over what is not blockwise costs a task for the read and one for the leaf.
    per_block = passes + (kind == "random" and passes == 2)
    with Tasks() as tasks:
        coreset = lazy.compute()
    assert len(coreset) == 500
    assert coreset.provenance["n_blocks"] == n_blocks
    assert tasks.count == lazy.n_tasks
    assert per_block * n_leaves <= tasks.count <= per_block * n_leaves + passes * tree + 8


@pytest.mark.parametrize("count", [10_000, 100_000])
def test_row_blocks__groups_tiny_chunks(count: int) -> None:
    X = da.zeros((count * 10, 20), chunks=(10, 20), dtype=np.float32)
    blocks = row_blocks(X)
    assert X.nbytes / TARGET_BYTES <= blocks.n_blocks <= X.nbytes / SMALL_BYTES + 1
    assert blocks.n_rows == len(X)


# --- what travels to a worker ------------------------------------------------------------


def stores(folder: Path) -> dict[str, Any]:
    opened = {}
    for name, shape in (("X", (200, 5)), ("y", (200,)), ("sample_weight", (200,))):
        opened[name] = zarr.create_array(
            folder / f"{name}.zarr", shape=shape, chunks=(10, *shape[1:]), dtype="f8"
        )
    return opened


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("names", [("X",), ("X", "y", "sample_weight")], ids="+".join)
@pytest.mark.parametrize("kind", ["zarr", "dask"])
def test_tasks__pickle_small(
    kind: str, names: tuple[str, ...], passes: Passes, tmp_path: Path
) -> None:
    stores_of = {name: array for name, array in stores(tmp_path).items() if name in names}
    arrays = stores_of
    if kind == "dask":
        arrays = {name: da.from_zarr(array) for name, array in stores_of.items()}
    lazy = build(**arrays, size=20, passes=passes, chunks=10, random_state=0, compute=False)
    sizes = [
        len(pickle.dumps(node, protocol=5))
        for node in optimised(lazy).values()
        if not isinstance(node, DataNode)
    ]
    # A task has little beside the handles of its arrays, whose size depends on the version of Zarr.
    handles = sum(len(pickle.dumps(array, protocol=5)) for array in stores_of.values())
    assert max(sizes) < handles + 1536
