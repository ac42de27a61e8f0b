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

from tests.acceptance.face import build, errors, time_limit
from tests.acceptance.tools.cluster_harness import (
    PATIENCE,
    Certificates,
    Proxy,
    RealCluster,
    real_cluster,
    until,
)
from tests.acceptance.tools.entry_points import BLOCK, ENTRY_POINTS, Data, running
from tests.pairs import few

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.slow,
    # What coresets of sixty rows say about themselves is tested elsewhere.
    pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning"),
]

KILLED = ("size=auto", "CoresetTree", "CoresetStream", "audit", "coverage", "ActiveMaxMargin")
"""All others, too, in ``benchmarks/cluster_faults.py``."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data.make(tmp_path_factory.mktemp("data"), greed=700 * 2**20)


@pytest.fixture(scope="module")
def local(data: Data) -> Callable[[str], str]:
    """What an entry point gives on threads of this process."""

    @cache
    def digest(name: str) -> str:
        with dask.config.set(scheduler="threads"):
            return ENTRY_POINTS[name](data)

    return digest


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A scheduler and two workers with nannies, over TLS, that share no folder."""
    folder = tmp_path_factory.mktemp("encrypted")
    tls = Certificates.make(folder / "tls")
    with real_cluster(folder, 2, nanny=True, memory="1GiB", tls=tls) as cluster:
        cluster.client(2)
        yield cluster


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A scheduler without workers."""
    with real_cluster(tmp_path_factory.mktemp("bare"), 0) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Three workers of 512 MiB, each with a nanny."""
    folder = tmp_path_factory.mktemp("small")
    with real_cluster(folder, 3, nanny=True, memory="512MiB") as cluster:
        yield cluster


def limited_build(data: Data, seconds: float) -> None:
    with time_limit(seconds):
        build(data.X, size=60, chunks=BLOCK)


def kill_one(name: str, data: Data, client: Any) -> str:
    """Run an entry point, and kill a worker that reads for it."""
    with running(name, data, client) as (result, pid):
        os.kill(pid, signal.SIGKILL)
        data.gate.open()
        return str(result.result(PATIENCE))


def test_tls__processes_are_apart_and_encrypted(encrypted: RealCluster) -> None:
    client = encrypted.client(2)
    assert encrypted.address.startswith("tls://")
    folders = {*client.run(Path.cwd).values(), Path.cwd()}
    assert len(folders) == 3
    pids = {*client.run(os.getpid).values(), client.run_on_scheduler(os.getpid), os.getpid()}
    assert len(pids) == 4


def test_killed_worker__same_bits(
    encrypted: RealCluster, data: Data, local: Callable[[str], str]
) -> None:
    assert kill_one("two passes", data, encrypted.client(1)) == local("two passes")


@few("name", ["CoresetSVC", "CoresetTree", "audit", "two passes", *ENTRY_POINTS], 4)
def test_timeout__ends_every_call_and_leaves_nothing(
    name: str, encrypted: RealCluster, data: Data
) -> None:
    client = encrypted.client(1)
    before = _threads_of_ours()
    with running(name, data, client, timeout=0.1) as (result, _):
        with pytest.raises(
            errors.OutOfTimeError, match=r"timeout=0.1 seconds have passed; .+"
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
    encrypted: RealCluster, data: Data, local: Callable[[str], str]
) -> None:
    with running("one read", data, encrypted.client(1)) as (result, pid):
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
        short = {"daskcoreset.scheduler-ttl": "2s"}
        with dask.config.set(short), running("one read", data, client) as (result, _):
            scheduler.send(signal.SIGSTOP)
            with pytest.raises(
                errors.ClusterError, match="the scheduler is lost: the scheduler has not"
            ):
                result.result(PATIENCE)
            try:  # a call that begins now; the first question is which workers there are
                late = in_thread(client, "one read", data)
                with pytest.raises(
                    errors.ClusterError, match="the scheduler is lost: the scheduler has"
                ):
                    late.result(PATIENCE)
                late = in_thread(client, "one read", data, timeout=0.5)
                with pytest.raises(
                    errors.OutOfTimeError, match=r"the scheduler has not answered for"
                ):
                    late.result(PATIENCE)
            finally:
                scheduler.send(signal.SIGCONT)
        with running("CoresetTree", data, client) as (result, _):
            scheduler.kill()
            with pytest.raises(errors.ClusterError, match="its scheduler was ended or restarted"):
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


def test_no_worker__is_said_and_timed_out(bare: RealCluster, data: Data) -> None:
    said = "with 0 workers; no worker has come: start some"
    with bare.lent(), pytest.raises(errors.OutOfTimeError, match=said):
        limited_build(data, 3.0)


# --- the rest of the matrix --------------------------------------------------------------


@pytest.mark.nightly
def test_killed_worker__same_bits_at_entry_points_of_all_kinds(
    small: RealCluster, data: Data, local: Callable[[str], str]
) -> None:
    client = small.client(3)
    for name in KILLED:
        client.wait_for_workers(2, timeout=PATIENCE)
        assert kill_one(name, data, client) == local(name), name


@pytest.mark.nightly
def test_cut_network__of_the_client_and_of_a_worker_for_ten_seconds(
    tmp_path: Path, data: Data, local: Callable[[str], str]
) -> None:
    with RealCluster(tmp_path) as cluster:
        cluster.scheduler()
        proxies = [Proxy(cluster.address) for _ in range(2)]
        try:
            cluster.worker("near")
            far = cluster.worker("far", contact=proxies[0].address)
            client = cluster.client(2, proxies[1].address)
            with running("two passes", data, client) as (result, _):
                here = data.gate.folder / str(far.process.pid)
                until(here.exists, "the worker behind the proxy reads")
                for proxy in proxies:
                    proxy.cut()
                data.gate.open()
                time.sleep(10.0)  # how long they are cut
                assert not result.done()
                for proxy in proxies:
                    proxy.mend()
                assert result.result(PATIENCE) == local("two passes")
            short = {"daskcoreset.scheduler-ttl": "3s"}
            for name in ("size=auto", "CoresetStream"):  # cut for good
                with dask.config.set(short), running(name, data, client) as (result, _):
                    proxies[1].cut()
                    with pytest.raises(errors.ClusterError, match="the scheduler is lost"):
                        result.result(PATIENCE)
                    proxies[1].mend()
        finally:
            for proxy in proxies:
                proxy.close()


@pytest.mark.nightly
def test_silent_worker__others_do_its_work(
    tmp_path: Path, data: Data, local: Callable[[str], str]
) -> None:
    settings = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "8s"}
    with real_cluster(tmp_path, 2, settings=settings) as cluster:
        client = cluster.client(2)
        with running("one read", data, client) as (result, pid):
            os.kill(pid, signal.SIGSTOP)
            data.gate.open()
            assert result.result(PATIENCE) == local("one read")


@pytest.mark.nightly
def test_memory__a_worker_ended_by_its_nanny_once_and_again_and_again(
    small: RealCluster, data: Data, local: Callable[[str], str]
) -> None:
    client = small.client(2)
    data.gate.close("greed-once")
    data.gate.open()
    with client.as_current():
        assert ENTRY_POINTS["one read"](data) == local("one read")
    assert not (data.gate.folder / "greed-once").exists()
    data.gate.close("greed")
    data.gate.open()
    with (
        client.as_current(),
        pytest.raises(errors.ClusterError, match="4 workers ended while they"),
    ):
        limited_build(data, PATIENCE)
    (data.gate.folder / "greed").unlink()


@pytest.mark.nightly
def test_memory__paused_workers(bare: RealCluster, data: Data, local: Callable[[str], str]) -> None:
    paused = {"DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "0.01"}
    with bare.lent() as client:
        bare.worker("paused", memory="512MiB", settings=paused)
        until(lambda: "paused" in client.run_on_scheduler(_statuses), "the worker pauses")
        with pytest.raises(errors.OutOfTimeError, match="1 paused for want of memory"):
            limited_build(data, 1.0)
        bare.worker("running", memory="512MiB")
        client.wait_for_workers(1, timeout=PATIENCE)
        assert ENTRY_POINTS["one read"](data) == local("one read")


def _statuses(dask_scheduler: Any) -> list[str]:
    return [worker.status.name for worker in dask_scheduler.workers.values()]


@pytest.mark.nightly
def test_adaptive__from_none_to_three_and_back(
    data: Data, local: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client
    from distributed.deploy.subprocess import SubprocessCluster

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    with (
        SubprocessCluster(worker_kwargs={"nthreads": 1}, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=0, maximum=3, interval="200ms", wait_count=2)
        assert not client.nthreads()
        with client.as_current():
            assert ENTRY_POINTS["one read"](data) == local("one read")
        until(lambda: not client.nthreads(), "all workers leave")
