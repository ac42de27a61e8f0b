"""Deadlines: one for all that a call reads."""

from __future__ import annotations

import time
from contextvars import copy_context
from typing import Any

import dask
import numpy as np
import pytest

import daskcoreset
from daskcoreset.core.deadline import check_time, deadline, time_limit
from daskcoreset.core.errors import CoresetError, OutOfTimeError

LONG = 600.0


class SlowRows:
    """Rows that take a while to be read, and count how often they are."""

    shape, ndim, dtype = (40, 2), 2, np.dtype(float)

    def __init__(self, seconds: float = 0.05) -> None:
        self.reads, self.seconds = 0, seconds

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        time.sleep(self.seconds)
        return np.random.default_rng(0).normal(size=self.shape)[index]


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_timeout__ends_between_blocks_and_says_where(scheduler: str) -> None:
    rows = SlowRows(0.1)  # and time enough to begin, also on a machine with much to do
    with (
        dask.config.set(scheduler=scheduler, num_workers=1),
        pytest.raises(
            OutOfTimeError, match=r"timeout=1 .* (no task was|\d+ of 2\d tasks were) done"
        ) as error,
    ):
        daskcoreset.build(rows, size=3, chunks=2, timeout=1)
    assert rows.reads < 20
    assert isinstance(error.value, CoresetError)
    assert isinstance(error.value, TimeoutError)


def test_time_limit__the_earliest_of_several_counts() -> None:
    with time_limit(LONG):
        outer = deadline()
        with time_limit(2 * LONG):
            assert deadline() is outer
        with time_limit(1.0), time_limit(None):
            inner = deadline()
            assert inner is not None
            assert inner.seconds == 1.0
            assert copy_context().run(deadline) is inner
        check_time()
    check_time()
