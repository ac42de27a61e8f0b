"""Deadlines: one for all that a call reads."""

from __future__ import annotations

from contextvars import copy_context

from daskcoreset.core.deadline import check_time, deadline, time_limit

LONG = 600.0


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
