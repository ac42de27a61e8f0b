"""Reads: values in the order of the blocks, invalid rows by their number, several users of one."""

from __future__ import annotations

from operator import add
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskcoreset.core.blocks import Block, InvalidRow, ReadBlock
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.engine import Engine, Reduction, map_reduce, together
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import CountingArray


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


def test_map_reduce__of_one_block_in_memory_asks_no_scheduler() -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a scheduler was asked")

    with dask.config.set(scheduler=refuse):
        assert map_reduce(row_blocks([[1.0], [2.0]]), first_values, add).value == [
            (0, 1.0),
            (0, 2.0),
        ]


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


def test_map_reduce__of_no_rows_is_an_error() -> None:
    X = da.from_array(np.arange(4.0)[:, None], chunks=(2, 1))
    with pytest.raises(InvalidInputError, match="no rows"):
        map_reduce(row_blocks(X[X[:, 0] > 9]), first_values, add)


def count_rows(rows: ReadBlock, broadcast: Any) -> int:
    del broadcast
    assert rows.block is not None
    return len(rows.block)


def sum_rows(rows: ReadBlock, factor: float) -> float:
    assert rows.block is not None
    return factor * float(np.asarray(rows.block.points).sum())


def refuse_large(rows: ReadBlock, broadcast: Any) -> int | InvalidRow:
    del broadcast
    assert rows.block is not None
    large = np.flatnonzero(np.asarray(rows.block.points)[:, 0] > 35)
    return InvalidRow("X is large{row}.", int(large[0])) if len(large) else 0


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


def test_together__names_the_first_invalid_row_of_any_reduction() -> None:
    X = da.from_array(np.arange(40.0)[:, None], chunks=(6, 1))
    engine = Engine.now(row_blocks(X))
    both = together(Reduction(count_rows, sum), Reduction(refuse_large, sum))
    results = engine.compute(engine.read(both, (None, None)))
    with pytest.raises(InvalidInputError, match=r"X is large at row 36\."):
        results.check()


def test_engine__counts_rows_that_are_dropped() -> None:
    X = np.arange(12.0)[:, np.newaxis]
    X[[2, 7]] = np.nan
    engine = Engine(row_blocks(X, chunks=5, on_invalid="drop"))
    results = engine.read(Reduction(count_rows, sum))
    assert (results.value, results.n_rows, results.n_kept) == (10, 12, 10)
    assert results.offsets() == {0: 0, 1: 5, 2: 10}
    with pytest.raises(InvalidInputError, match="none of the 3 rows of X is finite"):
        map_reduce(row_blocks(np.full((3, 1), np.nan), on_invalid="drop"), first_values, add)
