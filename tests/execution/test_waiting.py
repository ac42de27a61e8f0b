"""Waiting for a cluster: results, errors of tasks, and what those of the cluster mean."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskcoreset.core.deadline import time_limit
from daskcoreset.core.errors import ClusterError, OutOfTimeError
from daskcoreset.execution import waiting
from daskcoreset.execution.engine import apply
from daskcoreset.execution.waiting import compute_all, on_loop
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


def test_compute_all__several_collections_and_options(cluster: Any) -> None:
    with distributed.Client(cluster) as client:
        total, value = compute_all(da.ones(10, chunks=2).sum(), apply(abs, -3), retries=1)
        assert (total, value) == (10.0, 3)
        assert apply(abs, -3).compute(scheduler=client, direct=True) == 3
        until(lambda: not client.futures, "results are let go")


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
        with pytest.raises(OutOfTimeError):
            apply(wait, 1.0).compute(timeout=0.2)
        until(lambda: not client.futures, "results are let go")
        assert not [one for one in set(threading.enumerate()) - before if not one.daemon]
        assert apply(abs, -1).compute() == 1
    assert "never retrieved" not in caplog.text


def test_compute__cancelled_by_somebody_else(cluster: Any) -> None:
    with distributed.Client(cluster) as client, distributed.Client(cluster) as other:
        lazy = apply(wait, 3.0)

        def cancel() -> None:
            while not client.futures:
                time.sleep(0.01)
            client.cancel([distributed.Future(key, client) for key in list(client.futures)])

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(ClusterError, match="the cluster has lost the build"):
            lazy.compute(scheduler=client)
        thread.join()
        assert other.status == "running"


def test_compute__on_threads_beside_a_client(cluster: Any) -> None:
    with distributed.Client(cluster), time_limit(600.0):
        pid = apply(os.getpid).compute(scheduler="sync")
    assert pid == os.getpid()


def test_explained__errors_of_the_cluster_and_no_others() -> None:
    from distributed.comm.core import CommClosedError
    from distributed.scheduler import NoWorkerError

    assert "Start workers" in str(waiting._explained(NoWorkerError("x", 3.0)))
    for error in (CommClosedError("gone"), asyncio.CancelledError()):
        assert "has lost the build" in str(waiting._explained(error))
    assert waiting._explained(ValueError("x")) is None


def test_private_names__are_what_they_were() -> None:
    from distributed.client import _wait

    assert list(inspect.signature(_wait).parameters) == ["fs", "timeout", "return_when"]
    assert asyncio.iscoroutinefunction(_wait)


def test_on_loop__does_not_wait(cluster: Any) -> None:
    with distributed.Client(cluster) as client:
        answer = on_loop(client, client.run_on_scheduler, os.getpid)
        assert answer.result(60.0) == os.getpid()  # its scheduler is here


def test_explained__closed_client(cluster: Any) -> None:
    client = distributed.Client(cluster)
    client.close()
    with pytest.raises(Exception, match="clos"):
        apply(np.abs, -1).compute(scheduler=client)
    assert dask.config.get("scheduler", None) is None


def test_computations__with_deadlines_do_not_end_each_other() -> None:
    def block(i: int) -> Any:
        time.sleep(0.01)
        return np.full((2, 2), i)

    def compute(n_blocks: int) -> float:
        blocks = [da.from_delayed(dask.delayed(block)(i), (2, 2), float) for i in range(n_blocks)]
        with time_limit(600.0):
            return float(compute_all(da.concatenate(blocks).sum())[0])

    with ThreadPoolExecutor(4) as threads:
        lengths = [2 + 3 * (i % 4) for i in range(24)]  # some end while others run
        found = list(threads.map(compute, lengths))
    assert found == [2.0 * n * (n - 1) for n in lengths]


def test_compute_all__leaves_the_callbacks_of_other_threads_alone() -> None:
    # Two computes at once that exchange them leave one behind, which gives up all later work.
    from dask.callbacks import Callback

    before = Callback.active
    with Callback(posttask=lambda *_: None), time_limit(600.0):
        (same,) = compute_all(apply(lambda: Callback.active is before))
    assert same
