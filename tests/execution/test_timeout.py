"""Waiting for a cluster: results, errors of tasks, and what those of the cluster mean."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import dask
import numpy as np
import pytest

from daskcoreset.core.deadline import time_limit
from daskcoreset.errors import OutOfTimeError
from daskcoreset.execution.engine import apply
from tests.acceptance.tools.cluster_harness import until

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.distributed


def refuse(value: int) -> int:
    raise FileNotFoundError(f"no file {value}")


def run_out(value: int) -> int:
    raise TimeoutError(f"a store, after {value} s")


def wait(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@pytest.mark.parametrize("function", [refuse, run_out])
def test_compute__errors_of_tasks_come_as_they_are(cluster: Any, function: Any) -> None:
    with distributed.Client(cluster), pytest.raises(OSError, match=r"no file 7|after 7 s") as error:
        apply(function, 7).compute(timeout=600.0)
    assert not isinstance(error.value, OutOfTimeError)


def test_compute__leaves_no_thread_and_no_unread_error(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with distributed.Client(cluster) as client:
        apply(abs, 1).compute()
        before = set(threading.enumerate())
        with pytest.raises(OutOfTimeError), time_limit(0.2):
            apply(wait, 1.0).compute()
        until(lambda: not client.futures, "results are let go")
        assert not [one for one in set(threading.enumerate()) - before if not one.daemon]
        assert apply(abs, -1).compute() == 1
    assert "never retrieved" not in caplog.text


def test_compute__on_threads_beside_a_client(cluster: Any) -> None:
    with distributed.Client(cluster), time_limit(600.0):
        pid = apply(os.getpid).compute(scheduler="sync")
    assert pid == os.getpid()


def test_explained__closed_client(cluster: Any) -> None:
    client = distributed.Client(cluster)
    client.close()
    with pytest.raises(Exception, match="clos"):
        apply(np.abs, -1).compute(scheduler=client)
    assert dask.config.get("scheduler", None) is None
