"""Plans: their sentence is known without a read."""

from __future__ import annotations

import dask
import dask.array as da

import daskcoreset
from tests.acceptance.tools.counting import CountingScheduler


def test_repr__is_cheap_and_says_what_a_build_costs() -> None:
    rows, scheduler = da.ones((1000, 2), chunks=(100, 2)), CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        plan = daskcoreset.plan(rows, size=10)
        assert repr(plan).startswith("Plan(1 read of 1,000 rows in 10 blocks")
        assert "peak" in plan._repr_html_()
    assert scheduler.calls == 0
    assert "unknown" in daskcoreset.plan(rows[rows[:, 0] > 0])._repr_html_()
