"""Arrays that are expressions: the rows, blocks and reads of those of tasks."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np

from daskcoreset import Draw, build, plan
from daskcoreset.inputs.blocks import row_blocks
from tests.acceptance.tools.counting import CountingScheduler


class Expression:
    """An array with the protocol of expressions, whose graph is a plain mapping of tasks."""

    def __init__(self, array: Any) -> None:
        self.array = self.expr = array
        self.chunks, self.shape = array.chunks, array.shape
        self.dtype, self.ndim, self._meta = array.dtype, array.ndim, array._meta

    @property
    def numblocks(self) -> tuple[int, ...]:
        return self.array.numblocks  # type: ignore[no-any-return]

    def __dask_graph__(self) -> dict[Any, Any]:
        return dict(self.array.__dask_graph__())

    def __dask_keys__(self) -> list[Any]:
        return self.array.__dask_keys__()  # type: ignore[no-any-return]


def test_build__of_the_protocol_of_expressions() -> None:
    rows = np.random.default_rng(0).normal(size=(900, 3))
    X = da.from_array(rows, chunks=(200, 3))
    y = X[:, 0] > 0
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        blocks = row_blocks(Expression(X), Expression(y), Expression(X[:, 1] ** 2))
        lazy = plan(
            Expression(X), Expression(y), size=60, method="svm", random_state=0, draw=Draw(passes=2)
        )
    assert scheduler.calls == 0
    assert blocks.sizes == (200, 200, 200, 200, 100)
    expected = build(X, y, size=60, method="svm", random_state=0, draw=Draw(passes=2))
    found = lazy.compute()
    np.testing.assert_array_equal(found.points, expected.points)
    np.testing.assert_array_equal(found.weights, expected.weights)
    unknown = build(Expression(X[y]), size=60, random_state=0)
    np.testing.assert_array_equal(unknown.points, build(X[y], size=60, random_state=0).points)
