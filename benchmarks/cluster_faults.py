"""Kill, stop, cut and starve the processes of a cluster while every entry point runs.

Scheduler and workers are processes of their own (``tests/acceptance/tools/cluster_harness.py``).
Each fault falls while a read of the second half of the data is under way. What is told apart: the
same bits as on threads of one process, one clear error (`CoresetError`), a wrong answer, another
error, and a call that was still waiting after its limit.

    python benchmarks/cluster_faults.py --rounds 3
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common

sys.path.insert(0, str(Path(__file__).parent.parent))
from daskcoreset.errors import CoresetError
from tests.acceptance.tools.cluster_harness import (
    PATIENCE,
    GatedRows,
    RealCluster,
    real_cluster,
    until,
)
from tests.acceptance.tools.entry_points import ENTRY_POINTS, Data, running

NAME = "cluster_faults"

# Seconds after which a call counts as hung.
LIMIT = 180.0

Fault = Callable[[int, Data], None]


GREED = 700 * 2**20
"""Bytes that a read takes that no worker has."""


@dataclass(frozen=True, eq=False)
class GreedyRows(GatedRows):
    """Rows whose reads take memory, if a file called "greed-once" lies in the gate's folder."""

    def __getitem__(self, index: Any) -> Any:
        once = self.gate.folder / "greed-once"
        first = index[0] if isinstance(index, tuple) else index
        if once.exists() and first.start is not None and first.start >= self.shape[0] // 2:
            once.unlink(missing_ok=True)
            taken = bytearray(GREED)
            taken[::4096] = b"x" * len(taken[::4096])  # pages that are written to are there
            time.sleep(LIMIT)  # the nanny looks ten times a second
            raise AssertionError(f"nobody ended a worker with {len(taken)} bytes too many")
        return super().__getitem__(index)


class GreedyData(Data):
    """The rows of the tests, with reads that may take memory."""

    @property
    def X(self) -> GatedRows:  # noqa: N802 - the field's name for rows
        """Rows that tasks read themselves."""
        return GreedyRows(self.folder / "X.zarr", self.gate)


class Proxy:
    """A TCP proxy on a free port that can stop forwarding, as a broken network does.

    Nothing is closed then: who waits for an answer waits, and what was sent arrives when the
    proxy forwards again.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition("//")[2].rpartition(":")
        self._target = host, int(port)
        self._loop = asyncio.new_event_loop()
        self._forwards: asyncio.Event = asyncio.Event()
        self._ports: list[int] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        self.address = f"{target.partition('//')[0]}//127.0.0.1:{self._ports[0]}"

    def cut(self) -> None:
        """Forward nothing, in either direction."""
        self._loop.call_soon_threadsafe(self._forwards.clear)

    def mend(self) -> None:
        """Forward what was held back, and go on."""
        self._loop.call_soon_threadsafe(self._forwards.set)

    def close(self) -> None:
        """Close all connections."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._forwards.set()
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0)
        )
        self._ports.append(server.sockets[0].getsockname()[1])
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._forwards.wait()
            there, back = await asyncio.open_connection(*self._target)
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._forwards.wait()
                writer.write(data)
                await writer.drain()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@dataclass
class Tally:
    """What became of the calls under a fault."""

    runs: int = 0
    same: int = 0
    refused: int = 0
    wrong: int = 0
    other: int = 0
    hung: int = 0
    slowest: float = 0.0
    notes: list[str] = field(default_factory=list)

    def record(self, name: str, call: Any, expected: str) -> None:
        """Wait for a call, and count what it gave."""
        start = time.perf_counter()
        self.runs += 1
        try:
            same = call.result(LIMIT) == expected
            self.same += same
            self.wrong += not same
            if not same:
                self.notes.append(f"{name}: other bits")
        except CoresetError:
            self.refused += 1
        except TimeoutError:  # ours is a CoresetError; this one is of the wait
            self.hung += 1
            self.notes.append(f"{name}: hung")
        except Exception as error:  # noqa: BLE001 - counted, and told
            self.other += 1
            self.notes.append(f"{name}: {type(error).__name__}")
        self.slowest = max(self.slowest, time.perf_counter() - start)


def _kill(pid: int, data: Data) -> None:
    os.kill(pid, signal.SIGKILL)
    data.gate.open()


def _stop_and_continue(pid: int, data: Data) -> None:
    os.kill(pid, signal.SIGSTOP)
    data.gate.open()
    time.sleep(2.0)
    os.kill(pid, signal.SIGCONT)


def _nothing(pid: int, data: Data) -> None:
    del pid
    data.gate.open()


@contextmanager
def _nannies(folder: Path, fault: Fault) -> Iterator[tuple[Any, Fault]]:
    with real_cluster(folder, 3, nanny=True, memory="512MiB") as cluster:
        yield cluster.client(3), fault


@contextmanager
def _cut(folder: Path, *, of_client: bool, seconds: float) -> Iterator[tuple[Any, Fault]]:
    """Put a proxy before the scheduler for the client or for one worker of two."""
    with RealCluster(folder) as cluster:
        cluster.scheduler()
        proxy = Proxy(cluster.address)
        try:
            cluster.worker("near")
            far = cluster.worker("far", contact=None if of_client else proxy.address)
            client = cluster.client(2, proxy.address if of_client else None)

            def fault(pid: int, data: Data) -> None:
                del pid
                if not of_client and seconds:
                    here = data.gate.folder / str(far.process.pid)
                    with suppress(AssertionError):  # of calls of one read, which is the other's
                        until(here.exists, "the worker behind the proxy reads", 3.0)
                proxy.cut()
                data.gate.open()
                time.sleep(seconds)
                proxy.mend()

            yield client, fault
        finally:
            proxy.close()


@contextmanager
def _lost_scheduler(folder: Path) -> Iterator[tuple[Any, Fault]]:
    """Kill the scheduler, and start it and a worker anew at the same address."""
    with RealCluster(folder) as cluster:
        cluster.scheduler()
        cluster.worker("worker")
        client = cluster.client(1)

        def fault(pid: int, data: Data) -> None:
            del pid
            for node in ("scheduler", "worker"):
                cluster.nodes[node].kill()
            data.gate.open()
            cluster.scheduler(cluster.address)
            cluster.worker("worker")
            until(lambda: client.status == "running", "the client connects again")
            client.wait_for_workers(1, timeout=LIMIT)

        yield client, fault


@contextmanager
def _silent_scheduler(folder: Path) -> Iterator[tuple[Any, Fault]]:
    """Stop the scheduler for some seconds."""
    with real_cluster(folder, 1) as cluster:
        scheduler = cluster.nodes["scheduler"]

        def fault(pid: int, data: Data) -> None:
            del pid
            scheduler.send(signal.SIGSTOP)
            data.gate.open()
            time.sleep(7.0)
            scheduler.send(signal.SIGCONT)

        yield cluster.client(1), fault


FAULTS: dict[str, tuple[Callable[[Path], Any], tuple[str, ...]]] = {
    "none": (lambda f: _nannies(f, fault=_nothing), ()),
    "a worker killed (SIGKILL), 512 MiB each": (lambda f: _nannies(f, fault=_kill), ()),
    "a worker over its 512 MiB, ended by its nanny": (
        lambda f: _nannies(f, fault=_nothing), ("greed-once",),
    ),
    "a worker stopped for 2 s": (lambda f: _nannies(f, fault=_stop_and_continue), ()),
    "the network of a worker cut for 10 s": (lambda f: _cut(f, of_client=False, seconds=10.0), ()),
    "the network of the client cut for 10 s": (lambda f: _cut(f, of_client=True, seconds=10.0), ()),
    "the scheduler killed and started again": (_lost_scheduler, ()),
    "the scheduler stopped for 7 s": (_silent_scheduler, ()),
}  # fmt: skip


def run(fault: str, names: list[str], rounds: int, expected: dict[str, str]) -> Tally:
    """Let one fault fall on all entry points, on one cluster."""
    tally = Tally()
    start, signs = FAULTS[fault]
    folder = Path(tempfile.mkdtemp(prefix="daskcoreset-"))
    try:
        data = GreedyData.make(folder)
        (folder / "cluster").mkdir()
        with start(folder / "cluster") as (client, befall):
            for name in names * rounds:
                client.wait_for_workers(1, timeout=LIMIT)
                with running(name, data, client, *signs) as (call, pid):
                    befall(pid, data)
                    tally.record(name, call, expected[name])
                print(f"{fault}: {name}", tally.runs, tally.same, tally.refused, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tally


def main() -> None:
    """Run the matrix, and write its table."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="runs of every entry point")
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), help="which of them")
    parser.add_argument("--names", nargs="+", default=list(ENTRY_POINTS), help="entry points")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # what small coresets say about themselves
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        data = Data.make(Path(folder))
        # On a thread, as those on clusters are waited for.
        expected = {name: pool.submit(ENTRY_POINTS[name], data).result() for name in options.names}
    made: dict[str, Any] = {"stamp": common.stamp(rounds=options.rounds), "results": {}}
    for fault in options.faults:
        made["results"][fault] = vars(run(fault, options.names, options.rounds, expected))
        common.write(NAME, made, options.out)  # after each, for it takes long


if __name__ == "__main__":
    main()
