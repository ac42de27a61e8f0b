"""A dry run tells what really happens."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback
from dask.system import CPU_COUNT

from daskcoreset import Draw, build, plan
from daskcoreset.errors import CoresetWarning
from tests.pairs import pairs

N, D, ROWS = 3000, 4, 100


RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
Y = RNG.integers(0, 3, size=N)
WEIGHTS = RNG.uniform(0.5, 2.0, size=N)


@dataclass(eq=False)
class Counted:
    """Rows that count the bytes that are read, in any thread."""

    array: Any
    read: int = 0
    lock: Any = field(default_factory=threading.Lock)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def __getitem__(self, index: Any) -> Any:
        rows = self.array[index]
        with self.lock:
            self.read += rows.nbytes
        return rows


class Tasks(Callback):
    def __init__(self) -> None:
        self.count = 0
        super().__init__(posttask=self._add)  # type: ignore[no-untyped-call]

    def _add(self, *_: Any) -> None:
        self.count += 1


def sources() -> dict[str, Counted]:
    return {"X": Counted(X), "y": Counted(Y), "sample_weight": Counted(WEIGHTS)}


def as_dask(parts: dict[str, Counted]) -> dict[str, Any]:
    return {
        name: da.from_array(part, chunks=(ROWS, D)[: part.ndim], name=False)
        for name, part in parts.items()
    }


@pairs(kind=["self-reading", "dask"], draw=[Draw(), Draw(passes=2), Draw("multinomial", 2)])
def test_dry_run__is_what_really_happens(kind: str, draw: Draw) -> None:
    parts, passes = sources(), draw.passes
    arguments: Any = parts if kind == "self-reading" else as_dask(parts)
    # Rows without order, and not few of a block: candidates suffice, so that none is read again.
    options: Any = {"size": 600, "random_state": 0, "chunks": ROWS, "draw": draw}
    planned = plan(**arguments, **options)
    assert sum(part.read for part in parts.values()) == 0
    with Tasks() as tasks:
        coreset = build(**arguments, **options)
    assert coreset.provenance["blocks_read_again"] == 0
    assert planned.bytes_read == sum(part.read for part in parts.values())
    assert planned.bytes_read == passes * (X.nbytes + Y.nbytes + WEIGHTS.nbytes)
    assert planned.forecast.tasks == tasks.count
    assert (planned.reads, planned.forecast.n_rows, planned.forecast.n_blocks) == (
        passes,
        N,
        N // ROWS,
    )
    assert planned.forecast.block_bytes == ROWS * D * 8
    assert coreset.provenance["passes"] == planned.reads


def test_dry_run__unknown_chunks_are_told_as_unknown() -> None:
    array = da.from_array(X, chunks=(ROWS, D))
    planned = plan(array[array[:, 0] > 0], size=50, random_state=0)
    assert (
        planned.forecast.n_rows
        is planned.bytes_read
        is planned.forecast.block_bytes
        is planned.peak_bytes
        is None
    )
    assert planned.forecast.n_blocks == N // ROWS
    assert str(planned).startswith(
        "Plan(1 read of an unknown number of rows in 30 blocks: an unknown size"
    )


@pytest.mark.parametrize(
    ("settings", "threads"),
    [
        ({"num_workers": 3}, 3),
        ({"num_workers": 3, "scheduler": "threads"}, 3),
        ({"scheduler": "sync"}, 1),
        ({"scheduler": "processes", "num_workers": 8}, 1),
    ],
)
def test_dry_run__threads_are_those_of_the_scheduler(
    settings: dict[str, Any], threads: int
) -> None:
    with dask.config.set(settings):
        forecast = plan(Counted(X), size=50, chunks=ROWS).forecast
    assert forecast.threads == threads


@pytest.mark.distributed
def test_plan__warns_once_of_workers_without_the_memory(cluster: Any) -> None:
    from distributed import Client

    # Nothing is read: blocks of 80 GB, on workers of a few.
    array = da.zeros((10**11, 10), chunks=(10**9, 10))
    with Client(cluster):
        planned = plan(array, size=50, chunks=10**9)
        with pytest.warns(CoresetWarning, match="per worker, and a worker has") as warned:
            assert planned.forecast.threads == 1
        assert len(warned) == 1
        assert planned.peak_bytes == planned.forecast.peak_bytes


class Waiting(Counted):
    """Rows whose first reads wait for one another."""

    barrier: Any = None

    def __getitem__(self, index: Any) -> Any:
        if self.barrier is not None:
            self.barrier.wait(timeout=60)
        return super().__getitem__(index)


@pytest.mark.skipif(CPU_COUNT == 1, reason="one processor has one thread")
def test_build__reads_by_one_thread_more_than_processors() -> None:
    threads = CPU_COUNT + 1
    rows = Waiting(np.resize(X, (10 * threads, D)))
    options: Any = {"size": 15, "chunks": 10, "random_state": 0}
    assert plan(rows, **options).forecast.threads == threads
    rows.barrier = threading.Barrier(threads)
    assert len(build(rows, **options)) == 15
    with dask.config.set(num_workers=CPU_COUNT):
        assert plan(rows, **options).forecast.threads == CPU_COUNT
    assert plan(X, **options).forecast.threads == CPU_COUNT
