"""Same seed, same chunks: the same bytes, whatever runs the tasks."""

from __future__ import annotations

import hashlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

from daskcoreset.build import build
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.core.typing import Sampling
from daskcoreset.execution.engine import tree_reduce
from daskcoreset.execution.lazy import Lazy, leaf_layers
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import shared_pool

N_BLOCKS = 12
ROWS = 2500  # more in all than a coreset of this size has candidates
N = N_BLOCKS * ROWS
SIZE = 60

Mode = tuple[Literal["zarr", "dask"], Literal["float32", "float64"], Literal[1, 2], Sampling]
MODES: list[Mode] = list(
    itertools.product(
        ("zarr", "dask"), ("float32", "float64"), (1, 2), ("systematic", "multinomial")
    )
)

# Every value of all four, where all their combinations take long.
SOME = [MODES[i] for i in (0, 6, 11, 13)]


def rows() -> dict[str, Any]:
    """Rows in clusters, sorted by cluster: blocks differ, and float64 sums are not exact."""
    rng = np.random.default_rng(0)
    centers = np.sort(rng.normal(scale=30.0, size=(N_BLOCKS, 1)), axis=0) * np.ones(4)
    X = np.repeat(centers, ROWS, axis=0) + rng.normal(size=(N, 4))
    X[:ROWS] *= 1e-3  # a block with too small a share of the candidates is read again
    X[-1] = 1e4
    return {"X": X, "y": rng.integers(0, 5, size=N), "sample_weight": rng.uniform(0.1, 3.0, size=N)}


def write(folder: Path) -> Path:
    for name, values in rows().items():
        for dtype in ("float32", "float64") if name != "y" else ("int64",):
            array = zarr.create_array(
                folder / f"{name}-{dtype}.zarr",
                shape=values.shape,
                chunks=(ROWS, *values.shape[1:]),
                dtype=dtype,
            )
            array[:] = values.astype(dtype)
    return folder


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("stores"))


def defined(folder: Path, mode: Mode) -> Lazy[Coreset]:
    source, dtype, passes, sampling = mode
    names = {"X": dtype, "y": "int64", "sample_weight": dtype}
    arrays: dict[str, Any] = {
        name: zarr.open_array(folder / f"{name}-{kind}.zarr", mode="r")
        for name, kind in names.items()
    }
    if source == "dask":
        arrays = {name: da.from_zarr(array) for name, array in arrays.items()}
    lazy: Lazy[Coreset] = build(
        **arrays, size=SIZE, passes=passes, sampling=sampling, chunks=ROWS, random_state=7,
        split_every=3, compute=False,
    )  # fmt: skip
    return lazy


def digest(coreset: Coreset) -> str:
    assert coreset.labels is not None
    parts = coreset.points, coreset.weights, coreset.indices, coreset.labels
    described = [f"{part.dtype.str} {part.shape} ".encode() + part.tobytes() for part in parts]
    return hashlib.sha256(b"".join(described)).hexdigest()


def digests(coresets: Iterator[Coreset] | list[Coreset]) -> dict[Mode, str]:
    return {mode: digest(coreset) for mode, coreset in zip(MODES, coresets, strict=True)}


@pytest.fixture(scope="module")
def expected(stores: Path) -> dict[Mode, str]:
    return digests([defined(stores, mode).compute(scheduler="sync") for mode in MODES])


def test_expected__is_blind_to_nothing(expected: dict[Mode, str], stores: Path) -> None:
    """The digests tell samplings and dtypes apart, and input kinds must not matter."""
    assert len(set(expected.values())) == len(MODES) // 2
    for mode in MODES:
        assert expected[mode] == expected["zarr", mode[1], mode[2], mode[3]]
    again = defined(stores, MODES[0]).compute(scheduler="sync")
    again.weights.flags.writeable = True
    again.weights[0] = np.nextafter(again.weights[0], np.inf)
    assert digest(again) != expected[MODES[0]]


# --- schedulers of one machine -----------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 7])
def test_bits__on_threads(n_threads: int, expected: dict[Mode, str], stores: Path) -> None:
    built = (
        defined(stores, mode).compute(scheduler="threads", num_workers=n_threads) for mode in MODES
    )
    assert digests(built) == expected


def test_bits__on_processes(expected: dict[Mode, str], stores: Path) -> None:
    lazies = [defined(stores, mode) for mode in SOME]
    built = dask.compute(*lazies, scheduler="processes", pool=shared_pool())
    assert [digest(coreset) for coreset in built] == [expected[mode] for mode in SOME]


def test_bits__however_the_graph_is_computed(expected: dict[Mode, str], stores: Path) -> None:
    for mode in SOME:
        lazy = defined(stores, mode)
        coreset, total = dask.compute(lazy, da.ones(10, chunks=2).sum())
        assert total == 10.0
        assert digest(coreset) == expected[mode]
        (kept,) = dask.persist(lazy)
        assert digest(kept.compute()) == expected[mode]
        (optimised,) = dask.optimize(lazy)
        assert digest(optimised.compute()) == expected[mode]


def test_bits__with_the_front_door_computing(expected: dict[Mode, str], stores: Path) -> None:
    for mode in MODES:
        _, dtype, passes, sampling = mode
        arrays: dict[str, Any] = {
            name: zarr.open_array(stores / f"{name}-{kind}.zarr", mode="r")
            for name, kind in (("X", dtype), ("y", "int64"), ("sample_weight", dtype))
        }
        coreset = build(
            **arrays, size=SIZE, passes=passes, sampling=sampling, chunks=ROWS, random_state=7,
            split_every=3, compute=True,
        )  # fmt: skip
        assert digest(coreset) == expected[mode]


def test_bits__in_memory_without_a_scheduler() -> None:
    """One block takes a path of its own: the same leaves, tree and root."""
    given = rows()
    for passes, sampling in itertools.product((1, 2), ("systematic", "multinomial")):
        options: Any = {
            "size": SIZE, "passes": passes, "sampling": sampling, "random_state": 7, "chunks": N,
        }  # fmt: skip
        here = build(**given, **options)
        with_dask = build(**given, **options, compute=False).compute(scheduler="threads")
        assert digest(here) == digest(with_dask)


def print_digests(folder: str) -> None:
    """Entry point of the processes of the next test."""
    path = Path(folder)
    found = digests([defined(path, mode).compute(scheduler="threads") for mode in MODES])
    sys.stdout.write(" ".join(found.values()))


@pytest.mark.nightly
def test_bits__whatever_numerical_threads(expected: dict[Mode, str], stores: Path) -> None:
    """Leaves are compiled loops of one thread each and call no BLAS."""
    started = []
    code = f"from {__name__} import print_digests; print_digests({str(stores)!r})"
    for count in ("1", "2"):
        threads = {f"{name}_NUM_THREADS": count for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", code],
                env=os.environ | threads,
                cwd=Path(__file__).parents[2],
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    outputs = [process.communicate(timeout=900)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert [output.split() for output in outputs] == [list(expected.values())] * 2


# --- clusters ----------------------------------------------------------------------------


@dataclass(eq=False)
class SlowRows:
    """Rows that take their time, so that a worker can be killed half-way through."""

    array: Any
    seconds: float = 0.1

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def __getitem__(self, index: Any) -> Any:
        time.sleep(self.seconds)
        return self.array[index]


@pytest.mark.distributed
def test_bits__on_two_worker_processes(
    cluster: Any, expected: dict[Mode, str], stores: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as client:
        assert len(client.nthreads()) == 2
        for mode in SOME:
            assert digest(defined(stores, mode).compute()) == expected[mode]
        together = dask.compute(*[defined(stores, mode) for mode in MODES])
        assert digests(list(together)) == expected
        (kept,) = dask.persist(defined(stores, MODES[-1]))
        assert digest(kept.compute()) == expected[MODES[-1]]


@pytest.mark.nightly
@pytest.mark.distributed
def test_bits__on_one_worker_process(expected: dict[Mode, str], stores: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as one,
        distributed.Client(one),
    ):
        assert digests([defined(stores, mode).compute() for mode in MODES]) == expected
        # Whoever else computes it leaves the end to a worker, which has but one thread.
        assert dask.compute(_computing_again(), da.ones(4).sum()) == ((28.0, 28.0), 4.0)


@pytest.mark.distributed
@pytest.mark.slow
@pytest.mark.nightly
def test_bits__with_workers_killed_half_way(stores: Path) -> None:
    """One worker of three is lost in the middle of one read, another in a second read."""
    distributed = pytest.importorskip("distributed")
    assert dask.config.get("distributed.scheduler.allowed-failures") == 3
    array = zarr.open_array(stores / "X-float64.zarr", mode="r")
    options: Any = {"size": SIZE, "chunks": ROWS // 4, "random_state": 7, "split_every": 8}
    labels = rows()["y"]
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as fragile,
        distributed.Client(fragile) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        for passes, share in ((1, 0.5), (2, 0.75)):
            options["passes"] = passes
            whole = build(array, labels, **options, compute=False).compute(scheduler="sync")
            lazy = build(SlowRows(array), labels, **options, compute=False)
            leaves = leaf_layers(lazy)
            n_leaves = sum(leaves.values())
            processes = client.run(os.getpid)
            building = pool.submit(lazy.compute, scheduler=client)
            done, holder = _half_way(client, list(leaves), int(share * n_leaves))
            assert share * n_leaves - 1 <= done < n_leaves
            os.kill(processes[holder], signal.SIGKILL)
            assert not building.done()
            assert digest(building.result(timeout=600)) == digest(whole)
            assert holder not in client.nthreads()


def _half_way(client: Any, names: list[str], wanted: int) -> tuple[int, str]:
    """Wait until so many leaves are done; name a worker that holds results of some."""
    for _ in range(1200):
        done, holders = client.run_on_scheduler(_leaves_done, names=names)
        if done >= wanted and holders:
            return done, holders[0]
        time.sleep(0.02)
    raise AssertionError("the build did not get half-way")


def _leaves_done(names: list[str], dask_scheduler: Any = None) -> tuple[int, list[str]]:
    """Count finished leaves, and name workers that hold their results; runs on the scheduler."""
    groups = [dask_scheduler.task_groups.get(name) for name in names]
    finished = ("memory", "released", "forgotten")
    done = sum(group.states[state] for group in groups if group for state in finished)
    holders = [
        address
        for address, worker in dask_scheduler.workers.items()
        if any(task.group_key in names for task in worker.has_what)
    ]
    return done, holders


def _first_numbers(rows: Any, broadcast: object) -> float:
    del broadcast
    return float(rows.index)


def _total(parts: Any) -> float:
    return float(sum(parts))


def _sum_of_numbers() -> Lazy[float]:
    return tree_reduce(row_blocks(np.zeros((8, 1)), chunks=1), _first_numbers, _total)


def _twice(value: float) -> tuple[float, float]:
    return value, _sum_of_numbers().compute()


def _computing_again() -> Lazy[tuple[float, float]]:
    """A value whose end computes another graph, as a block that is read again does."""
    return _sum_of_numbers().then(_twice)


@pytest.mark.distributed
def test_compute__warns_the_caller_of_a_cluster(cluster: Any) -> None:
    distributed = pytest.importorskip("distributed")
    X = da.ones((10, 2), chunks=(5, 2))
    with distributed.Client(cluster), pytest.warns(CoresetWarning, match="whole data set"):
        assert len(build(X, size=20)) == 10


@pytest.mark.distributed
@pytest.mark.parametrize("passes", [1, 2])
def test_build__reads_what_a_cluster_holds(passes: Literal[1, 2], cluster: Any) -> None:
    distributed = pytest.importorskip("distributed")
    X = da.random.default_rng(0).normal(size=(N, 3), chunks=(ROWS, 3))
    options: Any = {"size": SIZE, "passes": passes, "chunks": ROWS, "random_state": 0}
    there = build(X, **options)
    with distributed.Client(cluster):
        kept = X.persist()
        coreset = build(kept, **options)
    assert coreset.points.tobytes() == there.points.tobytes()
    assert coreset.weights.tobytes() == there.weights.tobytes()
