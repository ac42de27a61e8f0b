"""Calls on the same block, by several threads."""

import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial

import dask
import pytest

from daskcoreset.core.deadline import deadline, time_limit
from daskcoreset.execution.threads import at_once


def test_values__come_in_the_order_of_the_calls() -> None:
    second_is_done = threading.Event()

    def first() -> int:
        assert second_is_done.wait(30)
        return 1

    def second() -> int:
        second_is_done.set()
        return 2

    with dask.config.set(num_workers=2):
        assert list(at_once([first, second])) == [1, 2]


def test_calls__see_the_deadline() -> None:
    with dask.config.set(num_workers=2), time_limit(1000.0):
        assert list(at_once([deadline] * 3)) == [deadline()] * 3


def test_an_error__leaves_no_call_running_and_makes_no_other() -> None:
    made: list[int] = []

    def fail() -> None:
        raise KeyError("first")

    calls: list[Callable[[], None]] = [fail, *[partial(made.append, i) for i in range(100)]]
    with dask.config.set(num_workers=2):
        with pytest.raises(KeyError, match="first"):
            list(at_once(calls))
        before = list(made)
        assert list(at_once([int, int])) == [0, 0]  # the threads go on
    assert made == before


def test_a_caller_that_leaves__waits_for_what_has_begun() -> None:
    begun, ended = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        threading.Event().wait(0.05)
        ended.set()

    def first() -> None:
        begun.wait(30)

    with dask.config.set(num_workers=2), closing(at_once([first, slow])) as made:
        next(made)
    assert ended.is_set()
