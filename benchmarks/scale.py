"""Seconds and memory of scheduler, client and workers, by the number of blocks, with instant reads.

The blocks have a few rows, which take no time to read: what is left is what a build costs whatever
the blocks hold. A scheduler and two workers of one thread are processes of their own; a new set of
them for every number of blocks. Writes ``results/scale.json`` and ``results/scale.md``, and
``docs/scale.md`` has what follows from them for builds of 10^9 to 10^13 rows.

    python benchmarks/scale.py
    python benchmarks/scale.py --blocks 1_000 3_000 --out /tmp/scale
    python benchmarks/scale.py --wave 16_384        # another bound of the graphs
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import common
import numpy as np

import daskcoreset
from daskcoreset.execution import waves
from daskcoreset.inputs.blocks import row_blocks

NAME = "scale"
BLOCKS = (10_000, 100_000, 1_000_000)
ROWS, COLUMNS, SIZE = 20, 4, 1_000
BUILDS = {"sampling": {}, "tree": {"strategy": "tree"}}

# Rows of every block are a slice of these.
_TABLE = np.random.default_rng(0).standard_normal((4 * ROWS, COLUMNS), dtype=np.float32)


class Instant:
    """An array of so many blocks, whose rows cost nothing to read."""

    dtype = _TABLE.dtype
    ndim = 2

    def __init__(self, n_blocks: int) -> None:
        self.shape = (n_blocks * ROWS, COLUMNS)

    def __getitem__(self, rows: slice) -> np.ndarray:
        start = rows.start // ROWS % 3
        return _TABLE[start : start + rows.stop - rows.start]


def peak(pid: int) -> int:
    """Peak resident bytes of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def cpu(pid: int) -> float:
    """Seconds that a process has had of the processors."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """Start a scheduler and two workers; yield the file of its address, and their processes."""
    file = str(folder / "scheduler.json")
    command = [sys.executable, "-m", "distributed.cli.dask_{}", "--scheduler-file", file]
    local = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
    worker = [
        "--nthreads",
        "1",
        "--no-nanny",
        "--memory-limit",
        "0",
        "--local-directory",
        str(folder),
    ]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    started = []
    with (folder / "log").open("w") as log:
        for kind, options in (
            ("scheduler", ["--port", "0"]),
            ("worker", worker),
            ("worker", worker),
        ):
            words = [word.format(kind) for word in command] + local + options
            started.append(
                subprocess.Popen(
                    words, stderr=log, stdout=log, env=os.environ | {"PYTHONPATH": path}
                )
            )
        try:
            yield file, [process.pid for process in started]
        finally:
            for process in started:  # there is nothing that they should still do
                process.kill()
                process.wait(30)


def known_tasks(dask_scheduler: Any = None) -> int:
    """Return the tasks that a scheduler knows."""
    return len(dask_scheduler.tasks)


def measured(n_blocks: int, options: dict[str, Any], wave: int) -> dict[str, Any]:
    """Build once on a new cluster; return what it took."""
    from distributed import Client

    import scale  # by its name, as workers import it

    waves.GRAPH_BLOCKS = wave
    tasks = 0
    done = threading.Event()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        file, pids = stack.enter_context(cluster(Path(folder)))
        with Client(scheduler_file=file, timeout=120) as client:
            client.wait_for_workers(2, timeout=120)
            small = row_blocks(scale.Instant(100), chunks=ROWS)
            build = {"size": SIZE, "random_state": 0, "progress": False, **options}
            daskcoreset.build(small, **build)  # workers import and compile once
            base = [peak(pid) for pid in pids]
            own, used = common.reset_high_water(), [cpu(pid) for pid in pids]

            def watch() -> None:
                nonlocal tasks
                while not done.wait(0.5):
                    tasks = max(tasks, client.run_on_scheduler(scale.known_tasks))

            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            with common.timed() as clock:
                blocks = row_blocks(scale.Instant(n_blocks), chunks=ROWS)
                coreset = daskcoreset.build(blocks, **build)
            done.set()
            watcher.join(30)
            spent = [cpu(pid) - before for pid, before in zip(pids, used, strict=True)]
            return {
                "blocks": n_blocks,
                "rows": len(coreset),
                "seconds": clock.wall,
                "scheduler_cpu": spent[0],
                "worker_cpu": sum(spent[1:]),
                "client_cpu": clock.cpu,
                "scheduler_bytes": peak(pids[0]) - base[0],
                "worker_bytes": max(
                    peak(pid) - b for pid, b in zip(pids[1:], base[1:], strict=True)
                ),
                "client_bytes": common.high_water() - own,
                "tasks": tasks,
                "waves": len(waves.waves_of(n_blocks, 16)[1]),
            }


def run(counts: list[int], wave: int) -> dict[str, Any]:
    """Measure every build with every number of blocks."""
    results: dict[str, Any] = {}
    for name, options in BUILDS.items():
        for n_blocks in counts:
            cell = measured(n_blocks, options, wave)
            results.setdefault(name, []).append(cell)
            common.printed([name, *cells(cell)])
    return {"stamp": common.stamp(wave=wave, rows=ROWS, size=SIZE), "results": results}


def cells(cell: dict[str, Any]) -> list[str]:
    """Return the words of a row of the table."""
    n_blocks = cell["blocks"]
    micro = [1e6 * cell[f"{who}_cpu"] / n_blocks for who in ("scheduler", "client", "worker")]
    mega = [cell[f"{who}_bytes"] / 2**20 for who in ("scheduler", "client", "worker")]
    return [
        f"{n_blocks:,}", str(cell["waves"]), f"{cell['seconds']:.1f}",
        *(f"{value:.0f}" for value in micro), *(f"{value:.0f}" for value in mega),
        f"{cell['tasks']:,}",
    ]  # fmt: skip


HEADS = [
    "build", "blocks", "waves", "seconds", "scheduler, us a block", "client, us", "workers, us",
    "scheduler, MiB", "client, MiB", "a worker, MiB", "tasks known",
]  # fmt: skip


def report(data: dict[str, Any]) -> str:
    """Return the report of the results."""
    made = data["stamp"]
    rows = [[name, *cells(cell)] for name, found in data["results"].items() for cell in found]
    lines = [
        "# Builds by the number of blocks, with instant reads",
        "",
        common.stamped(data),
        "",
        (
            f"Two workers of one thread; blocks of {made['rows']} rows that cost nothing to read, "
            f"a coreset of {made['size']:,} rows, graphs of at most {made['wave']:,} blocks. "
            "Microseconds are of the processors; megabytes are what a process took at most beyond "
            "what it had before; tasks are the most that the scheduler knew at a time."
        ),
        "",
        *common.table(HEADS, rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the results."""
    parser = common.arguments(__doc__)
    parser.add_argument("--blocks", type=int, nargs="+", default=list(BLOCKS))
    parser.add_argument("--wave", type=int, default=waves.GRAPH_BLOCKS, help="blocks of a graph")
    args = parser.parse_args()
    common.write(NAME, run(args.blocks, args.wave), args.out, report)


if __name__ == "__main__":
    main()
