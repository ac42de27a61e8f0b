"""Deadlines: one for all that a call reads."""

from __future__ import annotations

import time
from contextvars import copy_context
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import daskcoreset
from daskcoreset.core.deadline import check_time, deadline, time_limit
from daskcoreset.core.errors import CoresetError, OutOfTimeError
from daskcoreset.estimators import CoresetKMeans

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


def test_timeout__of_what_was_defined_before() -> None:
    rows = SlowRows()
    lazy = daskcoreset.build(rows, size=3, chunks=2, compute=False, random_state=0)
    with pytest.raises(OutOfTimeError):
        lazy.compute(timeout=0.2, scheduler="sync")
    assert len(lazy.compute(timeout=LONG, scheduler="threads")) == 3


def test_timeout__of_rows_in_memory_is_looked_at_before_every_block() -> None:
    X = np.zeros((100, 2))
    with time_limit(1e-9), pytest.raises(OutOfTimeError, match="0 of 1 blocks were read"):
        daskcoreset.build(X, size=3)


def test_timeout__is_one_for_all_reads_of_a_call() -> None:
    options: dict[str, Any] = {"size": "auto", "n_clusters": 2, "chunks": 2, "timeout": 0.2}
    with dask.config.set(num_workers=1), pytest.raises(OutOfTimeError):
        daskcoreset.build(SlowRows(), **options)
    X = da.from_array(SlowRows(), chunks=(20, 2), asarray=False)
    with pytest.raises(OutOfTimeError):
        CoresetKMeans(2, size=5, timeout=0.01, compute_inertia=True).fit(X)


def test_timeout__long_enough_changes_nothing() -> None:
    X = da.random.default_rng(0).normal(size=(400, 2), chunks=(50, 2))
    options: dict[str, Any] = {"size": 20, "random_state": 0}
    plain = daskcoreset.build(X, **options)
    limited = daskcoreset.build(X, **options, timeout=LONG)
    assert plain.points.tobytes() == limited.points.tobytes()
    assert deadline() is None


@pytest.mark.parametrize(
    ("timeout", "message"),
    [
        (0, "positive"),
        (-1.0, "positive"),
        (np.inf, "finite"),
        ("1 s", "a number"),
        (True, "number"),
    ],
)
def test_timeout__refused(timeout: Any, message: str) -> None:
    said = f"timeout must be .*{message}"
    with pytest.raises(CoresetError, match=said):
        daskcoreset.build(np.zeros((5, 1)), size=2, timeout=timeout)
    with pytest.raises(CoresetError, match=said):
        CoresetKMeans(2, timeout=timeout).fit(np.zeros((5, 1)))


@pytest.mark.parametrize("options", [{"compute": False}, {"dry_run": True}])
def test_timeout__with_nothing_to_wait_for(options: Any) -> None:
    with pytest.raises(CoresetError, match=r"timeout=1.0, but nothing is computed now"):
        daskcoreset.build(np.zeros((5, 1)), size=2, timeout=1.0, **options)


def test_timeout__of_more_time_than_clocks_know() -> None:
    rows = SlowRows()
    assert len(daskcoreset.build(rows, size=5, timeout=1e40)) == 5
    assert rows.reads


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
