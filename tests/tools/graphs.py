"""Inputs by how their reads fuse, folds over them, and what their graphs hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import zarr
from dask.callbacks import Callback

from daskcoreset.execution.engine import apply, tree_reduce
from daskcoreset.execution.lazy import Lazy
from daskcoreset.inputs.blocks import row_blocks

if TYPE_CHECKING:
    from daskcoreset.core.blocks import ReadBlock


N_BLOCKS = 20
ROWS = 50
N = N_BLOCKS * ROWS
Reader = Callable[[Path, tuple[str, ...]], dict[str, Any]]


def rows_of(names: tuple[str, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    values = {
        "X": rng.normal(size=(N, 3)),
        "y": rng.integers(0, 3, size=N),
        "sample_weight": rng.uniform(0.5, 2.0, size=N),
    }
    return {name: values[name] for name in names}


def zarr_arrays(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    opened = {}
    for name, values in rows_of(names).items():
        chunks = (ROWS, *values.shape[1:])
        array = zarr.create_array(
            folder / f"{name}.zarr", shape=values.shape, chunks=chunks, dtype=values.dtype
        )
        array[:] = values
        opened[name] = array
    return opened


def from_zarr(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = zarr_arrays(folder, names)
    return {name: da.from_zarr(array) for name, array in arrays.items()}


def from_array_like(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = zarr_arrays(folder, names)
    return {name: da.from_array(array, chunks=array.chunks) for name, array in arrays.items()}


def from_random(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    del folder
    rng = da.random.default_rng(0)
    arrays = {
        "X": rng.normal(size=(N, 3), chunks=(ROWS, 3)),
        "y": rng.integers(0, 3, size=N, chunks=ROWS),
        "sample_weight": rng.uniform(0.5, 2.0, size=N, chunks=ROWS),
    }
    return {name: arrays[name] for name in names}


def from_columns(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = from_zarr(folder, names)
    # Ones are blockwise, so that the concatenation is all that is added to the reads.
    return arrays | {"X": da.concatenate([arrays["X"], da.ones((N, 2), chunks=(ROWS, 2))], axis=1)}


def from_small_chunks(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = from_zarr(folder, names)
    return {name: array.rechunk({0: ROWS // 5}) for name, array in arrays.items()}


def from_slices(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: array[::-1] for name, array in from_zarr(folder, names).items()}


def from_memory(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    del folder
    return {name: da.from_array(values, chunks=ROWS) for name, values in rows_of(names).items()}


SELF_READING: dict[str, Reader] = {"zarr": zarr_arrays}


# Their reads are blockwise layers, which Dask fuses with a blockwise leaf.
FUSING: dict[str, Reader] = {"from_zarr": from_zarr, "from_array": from_array_like}


MATERIALISED: dict[str, Reader] = {
    "random": from_random,
    "columns": from_columns,
    "rechunked": from_small_chunks,
    "sliced": from_slices,
    "memory": from_memory,
}


READERS = SELF_READING | FUSING | MATERIALISED


def second_moment(rows: ReadBlock, mean: Any) -> float:
    assert rows.block is not None
    return float(((np.asarray(rows.block.points) - mean) ** 2).sum())


def first_moment(rows: ReadBlock, broadcast: Any) -> float:
    del broadcast
    assert rows.block is not None
    return float(np.asarray(rows.block.points).sum())


def total(parts: Sequence[float]) -> float:
    return float(sum(parts))


def mean_of(value: float) -> float:
    return value / (3 * N)


def two_passes(X: Any) -> Lazy[float]:
    blocks = row_blocks(X, chunks=ROWS)
    mean = apply(mean_of, tree_reduce(blocks, first_moment, total))
    return tree_reduce(blocks, second_moment, total, broadcast=mean)


def name_of(key: Any) -> str:
    return str(key[0] if isinstance(key, tuple) else key)


def is_leaf(key: Any) -> bool:
    return name_of(key).startswith("coreset-leaf-")


class Watcher(Callback):
    """Notes the order of tasks and the most blocks that the scheduler held at a time."""

    def __init__(self) -> None:
        self.order: list[Any] = []
        self.held = 0
        super().__init__(posttask=self._note)  # type: ignore[no-untyped-call]

    def _note(self, key: Any, result: Any, graph: Any, state: Any, worker: Any) -> None:
        del result, graph, worker
        self.order.append(key)
        blocks = [value for value in state["cache"].values() if isinstance(value, np.ndarray)]
        self.held = max(self.held, len(blocks))
