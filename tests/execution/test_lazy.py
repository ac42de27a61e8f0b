"""Lazy results: computed once, by the scheduler that is set, and pickled."""

from __future__ import annotations

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import is_dask_collection, tokenize
from dask.delayed import delayed

import daskcoreset
from daskcoreset.execution.engine import tree_reduce
from daskcoreset.execution.lazy import Lazy
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import CountingScheduler
from tests.tools.graphs import (
    Watcher,
    first_moment,
    is_leaf,
    total,
)


def lazy_sum() -> Lazy[float]:
    return tree_reduce(row_blocks(np.ones((40, 2)), chunks=4), first_moment, total)


def in_words(value: float) -> str:
    return f"sum {value:.0f}"


def test_lazy__computes_with_other_work() -> None:
    lazy, other = lazy_sum(), da.ones(10, chunks=5).sum()
    words, number, plain = dask.compute(lazy.then(in_words), other, lazy, scheduler="sync")
    assert (words, number, plain) == ("sum 80", 10.0, 80.0)


def test_lazy__inside_containers_and_delayed() -> None:
    lazy = lazy_sum().then(in_words)
    assert dask.compute({"a": [lazy]}, scheduler="sync") == ({"a": ["sum 80"]},)
    assert delayed(str.upper)(lazy).compute(scheduler="sync") == "SUM 80"
    assert delayed(len)([lazy, lazy]).compute(scheduler="sync") == 2


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_lazy__persists(scheduler: str) -> None:
    (kept,) = dask.persist(lazy_sum().then(in_words), scheduler=scheduler)
    assert isinstance(kept, Lazy)
    with Watcher() as watcher:
        assert kept.compute(scheduler="sync") == "sum 80"
    assert not any(is_leaf(key) for key in watcher.order)


def test_lazy__pickles() -> None:
    again = pickle.loads(pickle.dumps(lazy_sum().then(in_words)))
    assert again.compute(scheduler="sync") == "sum 80"


def test_lazy__tokens_differ_between_folds_and_not_between_copies() -> None:
    lazy = lazy_sum()
    assert is_dask_collection(lazy)
    assert tokenize(lazy) == tokenize(pickle.loads(pickle.dumps(lazy)))
    assert tokenize(lazy) != tokenize(lazy_sum())


def test_compute__obeys_the_setting_of_the_scheduler() -> None:
    counting = CountingScheduler()
    with dask.config.set(scheduler=counting):
        assert lazy_sum().compute() == 80.0
    assert counting.calls == 1


def test_repr__is_cheap_and_a_table_in_notebooks() -> None:
    rows, scheduler = da.ones((1000, 2), chunks=(100, 2)), CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        lazy = daskcoreset.build(rows, size=10, compute=False)
        plan = daskcoreset.build(rows, size=10, dry_run=True)
        assert repr(lazy) == "Lazy(10 blocks to read; compute() gives the value)"
        assert "<td" in lazy._repr_html_()
        assert "compute()" in lazy._repr_html_()
        for word in ("<td", "peak of a worker", "1,000", "BuildPlan"):
            assert word in plan._repr_html_()
    assert scheduler.calls == 0
    assert "unknown" in daskcoreset.build(rows[rows[:, 0] > 0], dry_run=True)._repr_html_()
