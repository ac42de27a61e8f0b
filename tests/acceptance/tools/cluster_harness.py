"""Real processes of a Dask cluster, and what befalls them.

A `RealCluster` starts ``dask scheduler`` and ``dask worker`` as a user does: each a process of its
own in a folder of its own, on a free port that the system chooses. They are ended however the
body ends; should this process be killed, they end of themselves.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[3]

# Seconds for anything to happen that will happen: machines may be busy.
PATIENCE = 120.0

# Processes that nobody waits for any more end after so many seconds.
_ORPHAN = "300"

SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
    # Their ends are what is tested; nothing is told by the minutes that some of them take.
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s",
    "DASK_DISTRIBUTED__WORKER__LIFETIME__RESTART": "False",
}


def until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Wait until a condition holds; return what it gave."""
    end = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {patience:g} s")
        time.sleep(0.01)
    return value


@dataclass(eq=False)
class Node:
    """A process of the cluster, in a session of its own."""

    name: str
    process: subprocess.Popen[bytes]
    folder: Path

    def send(self, number: int) -> None:
        """Send a signal to the process and those that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End it at once, with all that it started."""
        if self.process.returncode is None:  # else its number may be another's by now
            self.send(signal.SIGKILL)
            self.process.wait(PATIENCE)

    @property
    def log(self) -> str:
        """What it printed."""
        return (self.folder / "log").read_text(errors="replace")


@dataclass(eq=False)
class RealCluster:
    """Scheduler and workers as processes; use it in a ``with`` statement.

    Attributes
    ----------
    folder : Path
        Where the folders of the processes go.
    """

    folder: Path
    nodes: dict[str, Node] = field(default_factory=dict)
    address: str = ""
    _clients: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._clients.close()
        finally:
            for node in self.nodes.values():
                node.kill()  # stopped processes die of it as well

    def scheduler(self, address: str | None = None) -> Node:
        """Start a scheduler, at any port or at the address of one before it."""
        file = self.folder / f"scheduler-{len(self.nodes)}.json"
        port = "0" if address is None else address.rpartition(":")[2]
        node = self._start(
            "scheduler",
            ["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard",
             "--scheduler-file", str(file), "--idle-timeout", _ORPHAN],
        )  # fmt: skip
        until(lambda: file.is_file() and file.read_text().endswith("}"), "a scheduler starts")
        self.address = json.loads(file.read_text())["address"]
        return node

    def worker(
        self,
        name: str,
        *,
        nanny: bool = False,
        memory: str = "1GiB",
        contact: str | None = None,
        path: Sequence[Path] = (),
    ) -> Node:
        """Start a worker of one thread.

        Parameters
        ----------
        contact : str, optional
            The scheduler's address as the worker sees it.
        path : sequence of Path, optional
            Folders that its Python looks into before all others.
        """
        return self._start(
            name,
            ["worker", contact or self.address, "--name", name, "--nthreads", "1",
             "--host", "127.0.0.1", "--memory-limit", memory, "--no-dashboard",
             "--nanny" if nanny else "--no-nanny", "--death-timeout", _ORPHAN,
             "--local-directory", str(self.folder / name / "spill")],
            path,
        )  # fmt: skip

    def joined(self, client: Any, **options: Any) -> Node:
        """Start a worker under a name of its own, and wait until it has joined."""
        count = len(client.nthreads()) + 1
        node = self.worker(f"worker-{len(self.nodes)}", **options)
        client.wait_for_workers(count, timeout=PATIENCE)
        return node

    @contextmanager
    def lent(self) -> Iterator[Any]:
        """Yield a client that is the current one; the workers that were started are ended."""
        client = self.client()
        try:
            with client.as_current():
                yield client
        finally:
            for name, node in self.nodes.items():
                if name != "scheduler":
                    node.kill()
            until(lambda: not client.nthreads(), "the workers are gone")
            client.close()

    def client(self, n_workers: int = 0, address: str | None = None) -> Any:
        """Connect, wait for workers, and be closed with the cluster."""
        from distributed import Client

        client = self._clients.enter_context(
            Client(
                address or self.address,
                timeout=PATIENCE,
                set_as_default=False,
            )
        )
        # It imports the package when it is first asked, which may take seconds.
        client.run_on_scheduler(_import)
        if n_workers:
            client.wait_for_workers(n_workers, timeout=PATIENCE)
        return client

    def _start(self, name: str, words: list[str], path: Sequence[Path] = ()) -> Node:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        folders = os.pathsep.join(filter(None, [*map(str, path), str(ROOT), *before]))
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                cwd=folder,  # of its own: none sees what lies beside another
                env={**os.environ, **SETTINGS, "PYTHONPATH": folders},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        node = self.nodes[name] = Node(name, process, folder)
        return node


@contextmanager
def real_cluster(
    folder: Path, n_workers: int = 2, *, nanny: bool = False, memory: str = "1GiB"
) -> Iterator[RealCluster]:
    """Start a scheduler and workers, named "worker-0" and so on."""
    with RealCluster(folder) as cluster:
        cluster.scheduler()
        for number in range(n_workers):
            cluster.worker(f"worker-{number}", nanny=nanny, memory=memory)
        yield cluster


# --- rows whose reads wait ---------------------------------------------------------------


@dataclass(frozen=True)
class Gate:
    """A read that waits: it says who has come, and lets nobody through until it is opened.

    Attributes
    ----------
    folder : Path
        Seen by all processes. Each that waits has a file there, named by its number.
    """

    folder: Path

    def close(self, *extra: str) -> None:
        """Let reads wait from now on, those excepted that wait already."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for file in self.folder.iterdir():
            file.unlink()
        for name in extra:
            (self.folder / name).touch()
        (self.folder / f"shut-{time.monotonic_ns()}").touch()

    def open(self) -> None:
        """Let all go on."""
        for file in self.folder.glob("shut-*"):
            file.unlink()

    def waiting(self) -> int | None:
        """Return the number of a process that waits, if there is one."""
        return next((int(file.name) for file in self.folder.iterdir() if file.name.isdigit()), None)

    def wait(self) -> None:
        """Wait until the gate is open; called where a block is read."""
        for shut in self.folder.glob("shut-*"):
            (self.folder / str(os.getpid())).touch()
            until(partial(_is_gone, shut), "the gate opens")


def _import() -> None:
    importlib.import_module("daskcoreset.estimators")


def _is_gone(file: Path) -> bool:
    return not file.exists()


@dataclass(frozen=True, eq=False)
class GatedRows:
    """Rows of a Zarr array on disk, where those of the second half pass a gate.

    Attributes
    ----------
    path : Path
    gate : Gate
    """

    path: Path
    gate: Gate

    def _array(self) -> Any:
        import zarr

        return zarr.open_array(self.path, mode="r")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array().shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        return self._array().dtype

    def __getitem__(self, index: Any) -> Any:
        array = self._array()
        first = index[0] if isinstance(index, tuple) else index
        if first.start is not None and first.start >= array.shape[0] // 2:
            self.gate.wait()
        return array[index]

    def __dask_tokenize__(self) -> Any:
        return str(self.path)
