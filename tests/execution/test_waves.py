"""Reads in waves: the bits of one graph, in graphs of bounded size."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from dask.callbacks import Callback

from daskcoreset.build import build
from daskcoreset.core.coreset import Coreset
from daskcoreset.execution import progress, waves
from daskcoreset.execution.engine import tree_reduce
from daskcoreset.execution.lazy import leaf_layers
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import CountingArray

ROWS, N_BLOCKS, WAVE = 12, 75, 20
N = ROWS * N_BLOCKS
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.where(RNG.random(N) < 0.4, 1, -1)
WEIGHTS = RNG.uniform(0.5, 2.0, size=N)

BUILDS: dict[str, dict[str, Any]] = {
    "one read": {},
    "two reads": {"passes": 2},
    "independent draws": {"sampling": "multinomial"},
    "independent draws, two reads": {"sampling": "multinomial", "passes": 2},
    "tree": {"strategy": "tree"},
    "all rows": {"size": N},
    "uniform": {"method": "uniform"},
    "kmeans": {"method": "kmeans", "n_clusters": 3, "passes": 2},
    "svm": {"method": "svm"},
    "logistic": {"method": "logistic"},
    "least_squares": {"method": "least_squares"},
    "coverage": {"method": "coverage"},
}
KINDS: dict[str, Callable[[], Any]] = {
    "stored": lambda: CountingArray(X),
    "memory": lambda: X,
    "dask": lambda: da.from_zarr(zarr.array(X, chunks=(ROWS, 3))),
    "plain tasks": lambda: da.from_array(X, chunks=(ROWS // 2, 2)),
}


@pytest.fixture
def small_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves, "GRAPH_BLOCKS", WAVE)


def built(rows: Any, **options: Any) -> Any:
    settings: dict[str, Any] = {"size": 60, "chunks": ROWS, "random_state": 3, "split_every": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(rows, Y, sample_weight=WEIGHTS, **settings | options)


def bits(coreset: Coreset) -> tuple[Any, ...]:
    record = {name: value for name, value in coreset.provenance.items() if name != "source"}
    parts = (coreset.points, coreset.weights, coreset.indices, coreset.labels)
    return (*(np.asarray(part).tobytes() for part in parts), repr(record))


@pytest.mark.parametrize("name", BUILDS)
def test_build__in_waves_has_the_bits_of_one_graph(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = KINDS["stored"]
    with dask.config.set(scheduler="sync"):
        whole = bits(built(rows(), **BUILDS[name]))
        monkeypatch.setattr(waves, "GRAPH_BLOCKS", WAVE)
        assert bits(built(rows(), **BUILDS[name])) == whole


@pytest.mark.nightly
def test_build__many_blocks_take_a_tenth_of_the_tasks() -> None:
    n_blocks = waves.MANY_BLOCKS
    lazy = tree_reduce(row_blocks(np.zeros((n_blocks, 1)), chunks=1), first_block, _first)
    assert lazy.n_tasks <= n_blocks / 14
    assert sum(leaf_layers(lazy).values()) == n_blocks
    fewer = tree_reduce(row_blocks(np.zeros((n_blocks - 1, 1)), chunks=1), first_block, _first)
    assert fewer.n_tasks >= n_blocks - 1


def first_block(rows: Any, broadcast: None) -> int:
    del broadcast
    return int(rows.index)


def _first(parts: Sequence[int]) -> int:
    return min(parts)


@pytest.mark.nightly
@pytest.mark.usefixtures("small_waves")
@pytest.mark.parametrize("kind", KINDS)
def test_build__no_graph_holds_more_than_a_wave(kind: str) -> None:
    sizes: list[int] = []
    blocks = row_blocks(KINDS[kind](), chunks=ROWS)
    of_input = sum(len(array.dask) for array in blocks.arrays.values()) // N_BLOCKS

    def note(graph: Any) -> None:
        sizes.append(len(graph))

    with Callback(start=note), dask.config.set(scheduler="sync"):
        built(KINDS[kind](), passes=2)
    assert len(sizes) == 2 * -(-N_BLOCKS // 18)
    # The blocks, half as many merges, two roots and what the input takes to make them.
    assert max(sizes) <= 18 * (1.5 + 1 + of_input) + 10


@pytest.mark.nightly
@pytest.mark.usefixtures("small_waves")
@pytest.mark.parametrize("many", [10, waves.MANY_BLOCKS])
def test_progress__is_one_bar_for_all_waves(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves, "MANY_BLOCKS", many)
    bars: list[tuple[int, list[int]]] = []

    class Bar:
        def __init__(self, total: int, unit: str) -> None:
            del unit
            self.steps: list[int] = []
            bars.append((total, self.steps))

        def advance(self, steps: int) -> None:
            self.steps.append(steps)

        def show_compiling(self, begins: bool) -> None:
            pass

        def close(self) -> None:
            pass

    monkeypatch.setattr(progress, "_Bar", Bar)
    built(X, passes=2, progress=True)
    ((total, steps),) = bars
    assert total == sum(steps) == 2 * N_BLOCKS


class Deadly:
    """Rows of which one block ends the process that reads it, the first time."""

    dtype, ndim, shape = X.dtype, 2, X.shape

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __getitem__(self, rows: slice) -> Any:
        if rows.start == 40 * ROWS and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return X[rows]


@pytest.mark.nightly
@pytest.mark.distributed
def test_build__a_worker_killed_in_a_wave_changes_no_bit(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client
    from distributed.diagnostics.plugin import SchedulerPlugin

    class MostTasks(SchedulerPlugin):
        most = 0

        def transition(self, *_: Any, **__: Any) -> None:
            self.most = max(self.most, len(cluster.scheduler.tasks))

    whole = bits(built(X))
    monkeypatch.setattr(waves, "GRAPH_BLOCKS", WAVE)
    plugin = MostTasks()
    with Client(cluster) as client:
        cluster.scheduler.add_plugin(plugin, name="most-tasks")
        try:
            assert bits(built(Deadly(tmp_path / "mark"))) == whole
        finally:
            cluster.scheduler.remove_plugin("most-tasks")
        assert (tmp_path / "mark").exists()
        # A wave, and what is left of the one before it until the scheduler has forgotten it.
        assert WAVE <= plugin.most <= 3 * WAVE
        assert bits(built(Deadly(tmp_path / "mark"), compute=False).compute()) == whole
        client.wait_for_workers(2, timeout=120)  # its nanny starts another one
