"""Arrays that are expressions: the rows, blocks and reads of those of tasks."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskcoreset import Draw, build, plan
from daskcoreset.inputs.blocks import row_blocks
from tests.acceptance.tools.counting import CountingScheduler

# A program, for Dask decides what its arrays are when it is imported. It prints what builds draw,
# blocks and the reads of every row.
_PROGRAM = """
import hashlib
import dask, numpy as np, scipy.sparse as sp
import daskcoreset
import dask.dataframe as dd, pandas as pd
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.inputs.blocks import row_blocks
from tests.acceptance.tools.counting import CountingArray, CountingScheduler

import dask.array as da
rows = np.random.default_rng(0).normal(size=(1000, 5))

class Counted(CountingArray):
    ndim = 2
    def __getitem__(self, index):
        self.reads[index[0]] += 1
        return self.array[index]
    def __dask_tokenize__(self):
        return id(self)

def digest(*arrays):
    whole = hashlib.blake2b(digest_size=8)
    for array in arrays:
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()

def show(name, parts, **options):
    counted = Counted(rows.copy())
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        array = da.from_array(counted, chunks=(100, 5))
        parts = parts(array)
        lazy = daskcoreset.plan(**parts, size=50, random_state=0, **options)
        sizes = row_blocks(**parts).sizes
    assert not counted.reads.any() and not scheduler.calls
    with dask.config.set(scheduler="sync"):
        coreset = lazy.compute()
    drawn = digest(coreset.points, coreset.weights, coreset.indices)
    print(name, drawn, sizes, counted.reads.min(), counted.reads.max())

show("plain", lambda a: {"X": a})
show("parts", lambda a: {"X": a[:, :-1], "y": a[:, -1] > 0})
show("weights", lambda a: {"X": a, "sample_weight": np.abs(a[:, 0])})
show("columns", lambda a: {"X": a.rechunk((250, 2))})
show("twice", lambda a: {"X": da.concatenate([a, a])})
sparse = da.from_array(rows, chunks=(100, 5)).map_blocks(sp.csr_array, dtype=float)
coreset = daskcoreset.build(sparse, size=50, random_state=0)
print("sparse", digest(coreset.points.toarray(), coreset.weights))
model = CoresetKMeans(3, size=100, random_state=0).fit(da.from_array(rows, chunks=(100, 5)))
labels = model.predict(da.from_array(rows, chunks=(100, 5)))
print("fit", digest(model.cluster_centers_), labels.chunks, digest(labels.compute()))
frame = dd.from_pandas(pd.DataFrame(rows, columns=list("abcde")), npartitions=4)
coreset = daskcoreset.build(frame, sample_weight=None, size=50, random_state=0)
print("frame", digest(coreset.points, coreset.weights))
"""


def printed_of_expressions() -> str:
    """Run the program where Dask's own arrays are expressions too."""
    environment = {**os.environ, "DASK_ARRAY__QUERY_PLANNING": "True"}
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def printed_of_tasks() -> str:
    """Run the program here."""
    with redirect_stdout(StringIO()) as printed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(_PROGRAM, {"__name__": "program"})  # noqa: S102 - the text above
    return printed.getvalue()


@pytest.mark.nightly
def test_build__of_expressions_is_that_of_tasks() -> None:
    assert printed_of_expressions() == printed_of_tasks()


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
