"""A scheduler and workers as processes of their own, each worker in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

# Seconds for processes to start on a machine that is busy.
_PATIENCE = 120.0


@dataclass
class RealCluster:
    """A client, and a way to start workers."""

    client: Any
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(
        self, *, path: Sequence[Path] = (), env: Mapping[str, str] | None = None
    ) -> Path:
        """Start a worker in a new, empty folder, which is returned, and wait until it is there.

        Parameters
        ----------
        path : sequence of Path, optional
            Folders that Python looks into before all others.
        env : mapping of str to str, optional
            Variables of its environment.
        """
        number = len(self.processes)
        folder = self.folder / f"worker-{number}"
        folder.mkdir()
        address = self.client.scheduler.address
        command = ["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        command += ["--host", "127.0.0.1", "--local-directory", str(folder)]
        self.processes.append(start(command, folder, path, env))
        self.client.wait_for_workers(number, timeout=_PATIENCE)
        return folder


def start(
    command: Sequence[str],
    folder: Path,
    path: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command of Dask in a folder."""
    found = {"PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT])), "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=folder,
            env=os.environ | found | dict(env or {}),
            stdout=log,
            stderr=log,
        )


@contextmanager
def real_cluster(folder: Path) -> Iterator[RealCluster]:
    """Yield a cluster without workers; all of its processes are stopped at the end."""
    import distributed

    folder.mkdir()
    file = folder / "scheduler.json"
    command = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    processes = [start([*command, "--scheduler-file", str(file)], folder)]
    try:
        deadline = time.monotonic() + _PATIENCE
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(file), timeout=_PATIENCE) as client:
            yield RealCluster(client, folder, processes)
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
