"""Seconds and memory of scheduler, client and workers, by the number of blocks, with instant reads.

The blocks have a few rows, which take no time to read: what is left is what a build costs whatever
the blocks hold. A scheduler and two workers of one thread are processes of their own; a new set of
them for every number of blocks. Writes ``results/scale.json`` and ``results/scale.md``, and
``docs/guide/scale.md`` has what follows from them for builds of 10^9 to 10^13 rows.

    python benchmarks/scale.py
    python benchmarks/scale.py --blocks 1_000 3_000 --out /tmp/scale
    python benchmarks/scale.py --wave 16_384        # another bound of the graphs
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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

# Of the page: blocks of a million rows of 20 float32 numbers, 80 MB.
BLOCK_ROWS, D = 1_000_000, 20
ROWS_OF_PAGE, WORKERS_OF_PAGE = (1e9, 1e11, 1e13), (1, 100, 10_000)

# Bytes a second that a large object store gives one user; an assumption, not a measurement.
STORE_BYTES = 100e9

TITLES = {
    "sampling": "## `build(X)`, one read",
    "tree": '## `build(X, strategy="tree")`',
}

PAGE = """# Builds of very many blocks

<!-- Written by benchmarks/readme.py from benchmarks/results/scale.json and benchmarks/scale.py. -->

A build reads its blocks as tasks of a graph. Up to 131,072 blocks a read is one graph; what is sent
to the scheduler holds a few tens of bytes a block, and stays below the 10 MB at which Dask warns,
with labels and weights, of Zarr arrays and of Dask arrays by `from_zarr`, and with `compute=False`.
A Dask array whose tasks each hold something of their own, such as the seeds of `dask.array.random`,
is larger by itself. A build adds little to it, and a second read (`passes=2`) repeats its tasks.
Dask may then warn, and the build runs all the same; an array that is written to Zarr first needs no
such graph.

Above, reads run in *waves*: graphs of neighbouring blocks, one after another. A wave leaves its
merged results with the client, and the scheduler forgets its tasks before the next one. Merges
follow the tree that one graph would have, so that waves change no bit; a worker that dies costs
blocks of the running wave, which are read again. The progress bar counts the blocks of all waves,
`dry_run=True` tells how many there are, and an invalid row ends them early. With `compute=False`
the collection is one task, which runs the waves where it is computed. Blocks of Dask arrays are
read by the tasks of the array: what all blocks need, such as a mean of all rows, is computed in
every wave unless it is persisted.

From 16,384 blocks on, a task reads up to 16 neighbouring blocks, one after another, and merges them
as the tree would, so that scheduler and workers have a sixteenth of the tasks. Blocks of Dask
arrays stay tasks of their own.

## What a block costs

Seconds of a core for one block. The overheads of Dask and of this library are measured with blocks
that cost nothing to read, on a scheduler and two workers; reading and scoring with blocks of a
million rows of 20 float32 numbers in a local Zarr store of the default codec.
""".splitlines()

LIMITS = """
The limit is what takes longest where all parts work side by side, each at its full speed; real runs
take longer.

- *Workers*: more of them help.
- *Scheduler*: one process, whatever the number of workers. Larger blocks (`chunks=`)
  help, for they need fewer tasks.
- *Store*: taken to give 100 GB a second to one user, which is an assumption.
- *Client and root*: the client defines the waves and merges what they leave. It keeps numbers of
  every block as arrays, and, where scores follow from summaries of the blocks, those summaries and
  at least one candidate row a block: gigabytes for millions of blocks of `build(X)`. The tree
  keeps a few coresets whatever the number of blocks.
""".splitlines()
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
    import scale  # by its name, as workers import it
    from distributed import Client

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
                "wave": wave,
                "commit": common.stamp()["commit"],
            }


def work_of_a_block() -> dict[str, float]:
    """Seconds of one core for a block of a million rows, read from a local store and scored."""
    n_blocks = 3
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.zarr"
        common.write_rows(path, n_blocks * BLOCK_ROWS, D, BLOCK_ROWS, common.gaussian(D))
        spent = {}
        for name, options in BUILDS.items():
            build = {"size": SIZE, "random_state": 0, "progress": False, **options}
            daskcoreset.build(path, **build)
            with common.timed() as clock:
                daskcoreset.build(path, **build)
            spent[name] = clock.cpu / n_blocks
    return spent


def run(counts: list[int], wave: int) -> dict[str, Any]:
    """Measure every build with every number of blocks."""
    results: dict[str, Any] = {"work": work_of_a_block()}
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
        f"{n_blocks:,}", str(cell["waves"]), f"{cell['wave']:,}", f"{cell['seconds']:.1f}",
        *(f"{value:.0f}" for value in micro), *(f"{value:.0f}" for value in mega),
        f"{cell['tasks']:,}", cell["commit"],
    ]  # fmt: skip


HEADS = [
    "build", "blocks", "waves", "blocks a wave", "seconds",
    "scheduler, us a block", "client, us", "workers, us",
    "scheduler, MiB", "client, MiB", "a worker, MiB", "tasks known",
    "commit",
]  # fmt: skip


def report(data: dict[str, Any]) -> str:
    """Return the report of the results."""
    made = data["stamp"]
    rows = [[name, *cells(cell)] for name in BUILDS for cell in data["results"][name]]
    lines = [
        "# Builds by the number of blocks, with instant reads",
        "",
        common.stamped(data),
        "",
        (
            f"Two workers of one thread; blocks of {made['rows']} rows that cost nothing to read, "
            f"a coreset of {made['size']:,} rows, tasks of 16 blocks from "
            f"{waves.MANY_BLOCKS:,} blocks on. "
            "Microseconds are of the processors; megabytes are what a process took at most beyond "
            "what it had before; tasks are the most that the scheduler knew at a time."
        ),
        "",
        *common.table(HEADS, rows),
    ]
    return "\n".join(lines) + "\n"


# --- what follows from the costs of a block ----------------------------------------------


@dataclass(frozen=True)
class Costs:
    """Seconds of a core that a block of a million rows costs each part of a cluster."""

    scheduler: float
    client: float
    worker: float
    work: float
    blocks: int

    @classmethod
    def measured(cls, results: dict[str, Any], build: str, n_blocks: float) -> Costs:
        """Return the costs in the results: overheads of the largest number of blocks.

        Of few blocks where there are few: a task reads one.
        """
        many = n_blocks >= waves.MANY_BLOCKS
        like = [c for c in results[build] if (c["blocks"] >= waves.MANY_BLOCKS) == many]
        cell = max(like or results[build], key=lambda cell: cell["blocks"])
        shares = (cell[f"{who}_cpu"] / cell["blocks"] for who in ("scheduler", "client", "worker"))
        return cls(*shares, work=results["work"][build], blocks=cell["blocks"])

    def seconds(self, n_rows: float, n_workers: int) -> dict[str, float]:
        """Return what each part takes for one read of so many rows; they work side by side.

        Parameters
        ----------
        n_rows : float
        n_workers : int
            Of one core each.
        """
        n_blocks = max(1.0, n_rows / BLOCK_ROWS)
        n_tasks = n_blocks / (waves.TASK_BLOCKS if n_blocks >= waves.MANY_BLOCKS else 1)
        return {
            "workers": n_blocks * (self.worker + self.work) / min(n_workers, n_tasks),
            "scheduler": n_blocks * self.scheduler,
            "store": n_rows * D * 4 / STORE_BYTES,
            "client and root": n_blocks * self.client,
        }


def duration(seconds: float) -> str:
    """Say how long something takes, with two digits that count."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return (
                f"{seconds / size:.2g} {unit}"
                if seconds < 99 * size
                else f"{seconds / size:,.0f} {unit}"
            )
    return f"{seconds:.2g} s"


def projection(results: dict[str, Any], build: str) -> list[str]:
    """Return the lines of a table: the time of builds, and what decides it."""
    rows = []
    for n_rows in ROWS_OF_PAGE:
        costs = Costs.measured(results, build, n_rows / BLOCK_ROWS)
        cells = []
        for n_workers in WORKERS_OF_PAGE:
            parts = costs.seconds(n_rows, n_workers)
            limit = max(parts, key=lambda part: parts[part])
            cells.append(f"{duration(parts[limit])} ({limit})")
        blocks = int(n_rows / BLOCK_ROWS)
        n_waves = len(waves.waves_of(blocks, 16)[1])
        size = n_rows * D * 4 / 1e12
        rows.append(
            [f"10^{round(math.log10(n_rows))}", f"{size:g} TB", f"{blocks:,}", n_waves, *cells]
        )
    heads = ["rows", "data", "blocks", "waves", *(f"{n:,} workers" for n in WORKERS_OF_PAGE)]
    heads[4] = "1 worker"
    return common.table(heads, rows)


def page(data: dict[str, Any]) -> str:
    """Return the page of the documentation."""
    results = data["results"]
    largest = max(results["sampling"], key=lambda cell: cell["blocks"])
    costs = [
        [name, f"{c.blocks:,}",
         *(f"{1e3 * value:.2f}" for value in (c.scheduler, c.client, c.worker, c.work))]
        for name in BUILDS
        for c in {Costs.measured(results, name, n): None for n in (1, waves.MANY_BLOCKS)}
    ]  # fmt: skip
    lines = [
        *PAGE,
        "",
        "<!-- results:scale -->",
        common.stamped(data) + " Other work ran beside the benchmark.",
        "",
        *common.table(
            [
                "build",
                "blocks",
                "scheduler, ms",
                "client and root, ms",
                "workers, ms",
                "reading and scoring, ms",
            ],
            costs,
        ),
        "",
        *textwrap.wrap(
            f"With {largest['blocks']:,} blocks in {largest['waves']} waves of at most "
            f"{largest['wave']:,} the scheduler knew {largest['tasks']:,} tasks at most, and took "
            f"{largest['scheduler_bytes'] / 2**20:.0f} MiB beyond what it had before "
            "([all numbers](#all-numbers)).",
            width=100,
        ),
        "",
        *(line for name in BUILDS for line in ("", TITLES[name], "", *projection(results, name))),
        "",
        "<!-- /results:scale -->",
        *LIMITS,
        "",
        "## All numbers",
        "",
        "```{include} ../../benchmarks/results/scale.md",
        ":start-line: 1",
        "```",
    ]
    return "\n".join(lines) + "\n"


def joined(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Keep what an earlier run found of other numbers of blocks; each row names its commit."""
    if not (folder / f"{NAME}.json").exists():
        return data
    was = common.read(NAME, folder)
    if any(was["stamp"][key] != data["stamp"][key] for key in ("rows", "size")):
        return data
    for name in BUILDS:
        cells_now = data["results"][name]
        run_now = {cell["blocks"] for cell in cells_now}
        cells_now += [cell for cell in was["results"][name] if cell["blocks"] not in run_now]
        cells_now.sort(key=lambda cell: cell["blocks"])
    return data


def main() -> None:
    """Measure, and write the results."""
    parser = common.arguments(__doc__)
    parser.add_argument("--blocks", type=int, nargs="+", default=list(BLOCKS))
    parser.add_argument("--wave", type=int, default=waves.GRAPH_BLOCKS, help="blocks of a graph")
    args = parser.parse_args()
    common.write(NAME, joined(run(args.blocks, args.wave), args.out), args.out, report)


if __name__ == "__main__":
    main()
