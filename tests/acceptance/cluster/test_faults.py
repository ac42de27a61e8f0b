"""Clusters of real processes and what befalls them: the same bits, or one clear error in time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

import dask
import pytest

from tests.acceptance.face import errors, time_limit
from tests.acceptance.tools.cluster_harness import (
    PATIENCE,
    RealCluster,
    real_cluster,
    until,
)
from tests.acceptance.tools.entry_points import ENTRY_POINTS, Data, running
from tests.pairs import few

pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.slow,
    # What coresets of sixty rows say about themselves is tested elsewhere.
    pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning"),
]

KILLED = (
    "size=auto", "CoresetTree", "CoresetStream", "audit", "coverage", "ActiveMaxMarginClassifier"
)  # fmt: skip
"""All others, too, in ``benchmarks/cluster_faults.py``."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data.make(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def local(data: Data) -> Callable[[str], str]:
    """What an entry point gives on threads of this process."""

    @cache
    def digest(name: str) -> str:
        with dask.config.set(scheduler="threads"):
            return ENTRY_POINTS[name](data)

    return digest


@pytest.fixture(scope="module")
def nannies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A scheduler and two workers with nannies, that share no folder."""
    with real_cluster(tmp_path_factory.mktemp("nannies"), 2, nanny=True) as cluster:
        cluster.client(2)
        yield cluster


def kill_one(name: str, data: Data, client: Any) -> str:
    """Run an entry point, and kill a worker that reads for it."""
    with running(name, data, client) as (result, pid):
        os.kill(pid, signal.SIGKILL)
        data.gate.open()
        return str(result.result(PATIENCE))


@few("name", ["two passes", *KILLED], 1)
def test_killed_worker__same_bits(
    name: str, nannies: RealCluster, data: Data, local: Callable[[str], str]
) -> None:
    assert kill_one(name, data, nannies.client(1)) == local(name)


@few("name", ["CoresetSVC", "CoresetTree", "audit", "two passes", *ENTRY_POINTS], 4)
def test_timeout__ends_every_call_and_leaves_nothing(
    name: str, nannies: RealCluster, data: Data
) -> None:
    client = nannies.client(1)
    before = _threads_of_ours()
    with running(name, data, client, timeout=0.1) as (result, _):
        with pytest.raises(
            errors.OutOfTimeError, match=r"time limit of 0.1 seconds has passed; .+"
        ) as caught:
            result.result(PATIENCE)
        until(lambda: not tasks_of(client), "tasks are forgotten")
    assert isinstance(caught.value, TimeoutError)
    # A call that was not waited for, such as a look at the scheduler, ends by itself.
    until(lambda: not _threads_of_ours() - before, "threads have ended")


def _threads_of_ours() -> set[str]:
    names = {thread.name for thread in threading.enumerate()}
    return {name for name in names if name.startswith(("daskcoreset", "coreset"))}


def tasks_of(client: Any) -> list[str]:
    return list(client.run_on_scheduler(_tasks))


def _tasks(dask_scheduler: Any) -> list[str]:
    return [str(key) for key in dask_scheduler.tasks if "coreset" in str(key)]


def test_stopped_worker__goes_on_where_it_was(
    nannies: RealCluster, data: Data, local: Callable[[str], str]
) -> None:
    with running("one read", data, nannies.client(1)) as (result, pid):
        os.kill(pid, signal.SIGSTOP)
        try:
            data.gate.open()
            time.sleep(1.0)  # how long it is stopped
            assert not result.done()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert result.result(PATIENCE) == local("one read")


def test_scheduler__stopped_then_killed_then_started_again(
    tmp_path: Path, data: Data, local: Callable[[str], str]
) -> None:
    with real_cluster(tmp_path, 1) as cluster:
        client = cluster.client(1)
        scheduler = cluster.nodes["scheduler"]
        with running("one read", data, client, timeout=3.0) as (result, _):
            scheduler.send(signal.SIGSTOP)
            try:
                with pytest.raises(errors.OutOfTimeError, match="the cluster was at work"):
                    result.result(PATIENCE)
                # A call that begins now; the first question is which workers there are.
                late = in_thread(client, "one read", data, timeout=0.5)
                with pytest.raises(errors.OutOfTimeError, match=r"the scheduler has not answered"):
                    late.result(PATIENCE)
            finally:
                scheduler.send(signal.SIGCONT)
        with running("CoresetTree", data, client) as (result, _):
            scheduler.kill()
            with pytest.raises(errors.ClusterError, match="the cluster has lost the work"):
                result.result(PATIENCE)
        until(lambda: client.status == "connecting", "the loss is noticed")
        cluster.nodes["worker-0"].kill()
        cluster.scheduler(cluster.address)
        cluster.worker("worker-1")
        until(lambda: client.status == "running", "the same client connects again")
        client.wait_for_workers(1, timeout=PATIENCE)
        with client.as_current():
            assert ENTRY_POINTS["one read"](data) == local("one read")


def in_thread(client: Any, name: str, data: Data, timeout: float | None = None) -> Future[str]:
    """Start an entry point that nobody waits for if it hangs."""
    result: Future[str] = Future()

    def run() -> None:
        try:
            with client.as_current(), time_limit(timeout):
                result.set_result(ENTRY_POINTS[name](data))
        except Exception as error:  # noqa: BLE001 - for who asks
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result
