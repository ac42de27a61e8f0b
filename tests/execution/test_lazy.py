"""Lazy results: computed once, by the scheduler that is set, and pickled."""

from __future__ import annotations

import dask
import dask.array as da

import daskcoreset
from tests.acceptance.tools.counting import CountingScheduler


def test_repr__is_cheap_and_a_table_in_notebooks() -> None:
    rows, scheduler = da.ones((1000, 2), chunks=(100, 2)), CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        plan = daskcoreset.plan(rows, size=10)
        assert repr(plan).startswith("Plan(1 read of 1,000 rows in 10 blocks")
        for word in ("<td", "peak of a worker", "1,000", "Plan"):
            assert word in plan._repr_html_()
    assert scheduler.calls == 0
    assert "unknown" in daskcoreset.plan(rows[rows[:, 0] > 0])._repr_html_()
