"""Reads: values in the order of the blocks, few tasks a block, and rows mapped lazily."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask._task_spec import DataNode

from daskcoreset.build import build
from daskcoreset.core.blocks import Block, InvalidRow, ReadBlock
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.engine import (
    Engine,
    Reduction,
    map_reduce,
    map_rows,
    together,
)
from daskcoreset.execution.lazy import Alone, Lazy, leaf_layers
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import CountingArray
from tests.acceptance.tools.stored_rows import X, zarr_of
from tests.pairs import each
from tests.tools.graphs import (
    N_BLOCKS,
    READERS,
    Reader,
    Watcher,
    from_memory,
    name_of,
    two_passes,
)


def first_values(block: Block, block_index: int, factor: Any) -> list[tuple[int, float]]:
    return [(block_index, float(row[0]) * (factor or 1.0)) for row in np.asarray(block.points)]


def refuse_negative(block: Block, block_index: int, broadcast: Any) -> int | InvalidRow:
    del block_index, broadcast
    bad = np.flatnonzero(np.asarray(block.points)[:, 0] < 0)
    return InvalidRow("X is negative{row}; pass more.", int(bad[0])) if len(bad) else len(block)


@pytest.mark.parametrize("split_every", [2, 16])
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_map_reduce__merges_in_the_order_of_the_blocks(scheduler: str, split_every: int) -> None:
    X = da.from_array(np.arange(40.0)[:, None], chunks=(3, 1))
    with dask.config.set(scheduler=scheduler):
        found = map_reduce(row_blocks(X), first_values, add, broadcast=2.0, split_every=split_every)
    assert [value for _, value in found.value] == [2.0 * i for i in range(40)]
    assert found.n_rows == 40
    assert found.row(2, 1) == 7


def test_map_reduce__names_the_first_problem_by_its_row_in_the_data() -> None:
    values = np.ones((30, 1))
    values[[17, 25]] = -1
    X = da.from_array(values, chunks=(4, 1))
    with pytest.raises(InvalidInputError, match="negative at row 17;"):
        map_reduce(row_blocks(X), refuse_negative, add)
    values[5] = np.nan
    X = da.from_array(values, chunks=(4, 1))
    with pytest.raises(InvalidInputError, match="row 5"):
        map_reduce(row_blocks(X), refuse_negative, add)


def count_rows(rows: ReadBlock, broadcast: Any) -> int:
    del broadcast
    assert rows.block is not None
    return len(rows.block)


def sum_rows(rows: ReadBlock, factor: float) -> float:
    assert rows.block is not None
    return factor * float(np.asarray(rows.block.points).sum())


@pytest.mark.parametrize("lazy", [False, True])
def test_together__several_reductions_share_a_read(lazy: bool) -> None:
    array = CountingArray(np.random.default_rng(0).normal(size=(40, 2)))
    blocks = row_blocks(array, chunks=7)
    engine = Engine(blocks, split_every=2, lazy=lazy)
    counts: Reduction[int] = Reduction(count_rows, sum)
    sums: Reduction[float] = Reduction(sum_rows, sum)
    results = engine.compute(engine.read(together(counts, sums), (None, 3.0)))
    assert (array.reads == 1).all()
    apart = [engine.compute(engine.read(*one)).value for one in ((counts, None), (sums, 3.0))]
    assert list(results.value) == apart
    assert results.n_rows == results.n_kept == apart[0] == 40


def test_engine__counts_rows_that_are_dropped() -> None:
    X = np.arange(12.0)[:, np.newaxis]
    X[[2, 7]] = np.nan
    engine = Engine(row_blocks(X, chunks=5, on_invalid="drop"))
    results = engine.read(Reduction(count_rows, sum))
    assert (results.value, results.n_rows, results.n_kept) == (10, 12, 10)
    assert results.offsets() == {0: 0, 1: 5, 2: 10}
    with pytest.raises(InvalidInputError, match="none of the 3 rows of X is finite"):
        map_reduce(row_blocks(np.full((3, 1), np.nan), on_invalid="drop"), first_values, add)


def first(block: Block) -> Any:
    return np.asarray(block.points[:, 0])


def two(block: Block) -> Any:
    return np.asarray(block.points[:, :2])


@pytest.mark.parametrize("kind", ["numpy", "zarr", "from_zarr", "memory", "columns"])
@pytest.mark.parametrize(("function", "columns"), [(first, None), (two, 2)])
def test_map_rows__keeps_rows_in_order(
    kind: str, function: Any, columns: int | None, tmp_path: Path
) -> None:
    kinds: dict[str, Callable[[], Any]] = {
        "numpy": lambda: X,
        "zarr": lambda: zarr_of(tmp_path),
        "from_zarr": lambda: da.from_zarr(zarr_of(tmp_path)),
        "memory": lambda: da.from_array(X, chunks=(300, 3)),
        "columns": lambda: da.from_array(X, chunks=(300, 2)),
    }
    blocks = row_blocks(kinds[kind]())
    mapped = map_rows(blocks, function, dtype=X.dtype, columns=columns)
    assert mapped.chunks[0] == blocks.sizes
    assert mapped.dtype == X.dtype
    wanted = X[:, 0] if columns is None else X[:, :2]
    np.testing.assert_array_equal(mapped.compute(), wanted)
    np.testing.assert_array_equal(mapped[5:700].compute(), wanted[5:700])


@pytest.mark.parametrize("columns", [None, 2])
def test_map_rows__unknown_chunks_stay_unknown(columns: int | None) -> None:
    lazy = da.from_array(X, chunks=(300, 3))
    some = lazy[lazy[:, 0] > 0]
    mapped = map_rows(
        row_blocks(some), first if columns is None else two, dtype=X.dtype, columns=columns
    )
    assert np.isnan(mapped.shape[0])
    wanted = X[X[:, 0] > 0]
    np.testing.assert_array_equal(
        mapped.compute(), wanted[:, 0] if columns is None else wanted[:, :2]
    )


def test_map_rows__names_the_bad_row() -> None:
    bad = X.copy()
    bad[777, 1] = np.nan
    lazy = da.from_array(bad, chunks=(100, 3))
    # Rows left out would shift all that follow, so that the rule of the blocks does not count.
    mapped = map_rows(row_blocks(lazy, on_invalid="drop"), first, dtype=X.dtype)
    with pytest.raises(InvalidInputError, match="column 1 at row 777"):
        mapped.compute()
    np.testing.assert_array_equal(mapped[:300].compute(), X[:300, 0])
    filled = map_rows(
        row_blocks(lazy, on_invalid="drop"), first, dtype=X.dtype, missing=-1
    ).compute()
    np.testing.assert_array_equal(filled, np.where(np.arange(len(X)) == 777, -1, X[:, 0]))
    strict = map_rows(row_blocks(lazy, on_invalid="raise"), first, dtype=X.dtype, missing=-1)
    with pytest.raises(InvalidInputError, match="column 1 at row 777"):
        strict.compute()
    unknown = map_rows(row_blocks(lazy[lazy[:, 0] > -99]), first, dtype=X.dtype)
    with pytest.raises(InvalidInputError, match="column 1 at row 77 of block 7"):
        unknown.compute()


def block_index(rows: ReadBlock, broadcast: Any) -> Any:
    del broadcast
    return rows.index


def optimised(value: Lazy[Any]) -> dict[Any, Any]:
    return dict(Alone.optimize(value.__dask_graph__(), value.__dask_keys__()))


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_second_pass__shares_no_read_with_the_first(reader: Reader, tmp_path: Path) -> None:
    lazy = two_passes(reader(tmp_path, ("X",))["X"])
    graph = optimised(lazy)
    layers = list(leaf_layers(lazy))
    assert len(layers) == 2

    def below(layer: str) -> set[Any]:
        todo = {key for key in graph if name_of(key) == layer}
        seen: set[Any] = set()
        while todo:
            key = todo.pop()
            seen.add(key)
            # The plan is no read: what is below it belongs to the first pass.
            todo |= {
                dependency
                for dependency in graph[key].dependencies
                if dependency not in seen and not name_of(dependency).startswith("coreset-")
                and not name_of(dependency).startswith("checkpoint")
            }  # fmt: skip
        return {key for key in seen if isinstance(key, tuple)}  # blocks; opened arrays are not

    first, second = map(below, layers)
    assert len(first) >= N_BLOCKS
    assert len(second) >= N_BLOCKS
    shared = first & second
    # Literals are shared, for they are in memory at any rate.
    assert all(isinstance(graph[key], DataNode) for key in shared)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_second_pass__holds_no_block_of_the_first(reader: Reader, tmp_path: Path) -> None:
    lazy = two_passes(reader(tmp_path, ("X",))["X"])
    with Watcher() as watcher:
        lazy.compute(scheduler="sync")
    # The five chunks of a block and what they become; an array in memory is held at any rate.
    assert watcher.held <= (N_BLOCKS if reader is from_memory else 6)


# --- blocks that are not what they declare ---------------------------------------------------


def _odd(change: Any, **declared: Any) -> Any:
    def changed(block: Any, block_id: Any = None) -> Any:
        return change(block) if block_id[0] == 1 else block

    plain = da.from_array(np.random.default_rng(0).normal(size=(400, 3)), chunks=(100, 3))
    return plain.map_blocks(changed, **{"dtype": "f8", "meta": np.empty((0, 0)), **declared})


@each(
    change={
        "shorter": lambda b: b[:-10],
        "longer": lambda b: np.concatenate([b, b]),
        "empty": lambda b: b[:0],
        "narrower": lambda b: b[:, :2],
    },
    chunks=["auto", 50, 200],
)
def test_build__block_of_another_shape_is_named(change: Any, chunks: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"block \(?1"):
        build(_odd(change), size=50, chunks=chunks, random_state=0)


@pytest.mark.parametrize(
    ("dtype", "declared"),
    [("f8", "f4"), ("i8", "i2"), ("object", "f8"), ("c16", "f8"), ("U9", "f8")],
)
def test_build__block_of_a_dtype_that_changes_values_is_named(dtype: str, declared: str) -> None:
    wrong = _odd(lambda b: b.astype(dtype), dtype=declared, meta=np.empty((0, 0), declared))
    with pytest.raises(InvalidInputError, match=r"X has dtype .* in block \d, which is not"):
        build(wrong, size=50, random_state=0)
