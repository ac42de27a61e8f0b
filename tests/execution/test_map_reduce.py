"""One read here and now: values in the order of the blocks, problems by their global row."""

from __future__ import annotations

from operator import add
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskcoreset.core.blocks import Block, InvalidRow
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import row_blocks


def first_values(block: Block, number: int, given: Any) -> list[tuple[int, float]]:
    return [(number, float(row[0]) * (given or 1.0)) for row in np.asarray(block.points)]


def refuse_negative(block: Block, number: int, given: Any) -> int | InvalidRow:
    del number, given
    bad = np.flatnonzero(np.asarray(block.points)[:, 0] < 0)
    return InvalidRow("X is negative{row}; pass more.", int(bad[0])) if len(bad) else len(block)


@pytest.mark.parametrize("split_every", [2, 16])
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_gather__merges_in_the_order_of_the_blocks(scheduler: str, split_every: int) -> None:
    X = da.from_array(np.arange(40.0)[:, None], chunks=(3, 1))
    with dask.config.set(scheduler=scheduler):
        found = map_reduce(row_blocks(X), first_values, add, broadcast=2.0, split_every=split_every)
    assert [value for _, value in found.value] == [2.0 * i for i in range(40)]
    assert found.n_rows == 40
    assert found.row(2, 1) == 7


def test_gather__of_one_block_in_memory_asks_no_scheduler() -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a scheduler was asked")

    with dask.config.set(scheduler=refuse):
        assert map_reduce(row_blocks([[1.0], [2.0]]), first_values, add).value == [
            (0, 1.0),
            (0, 2.0),
        ]


def test_gather__names_the_first_problem_by_its_row_in_the_data() -> None:
    values = np.ones((30, 1))
    values[[17, 25]] = -1
    X = da.from_array(values, chunks=(4, 1))
    with pytest.raises(InvalidInputError, match="negative at row 17;"):
        map_reduce(row_blocks(X), refuse_negative, add)
    values[5] = np.nan
    X = da.from_array(values, chunks=(4, 1))
    with pytest.raises(InvalidInputError, match="row 5"):
        map_reduce(row_blocks(X), refuse_negative, add)


def test_gather__of_no_rows_is_an_error() -> None:
    X = da.from_array(np.arange(4.0)[:, None], chunks=(2, 1))
    with pytest.raises(InvalidInputError, match="no rows"):
        map_reduce(row_blocks(X[X[:, 0] > 9]), first_values, add)
