"""Reads in waves: the bits of one graph, in graphs of bounded size."""

from __future__ import annotations

import functools
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
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.execution import progress, waves
from daskcoreset.execution.engine import map_reduce, tree_reduce
from daskcoreset.execution.lazy import Lazy, leaf_layers
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import CountingArray
from tests.pairs import each, pairs

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


@pytest.mark.parametrize(
    ("n_blocks", "split_every", "limit"),
    [(75, 3, 20), (75, 2, 20), (300_000, 16, 2**17), (30, 50, 20), (1000, 7, 100), (21, 16, 20)],
)
def test_waves_of__whole_subtrees_of_bounded_size(
    n_blocks: int, split_every: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waves, "GRAPH_BLOCKS", limit)
    levels, parts = waves.waves_of(n_blocks, split_every)
    assert [block for part in parts for block in part] == list(range(n_blocks))
    assert max(map(len, parts)) <= limit
    assert all(part.start % split_every**levels == 0 for part in parts)
    # No more than twice as many as there must be.
    assert len(parts) <= 2 * -(-n_blocks // limit)


@pytest.mark.parametrize("name", BUILDS)
def test_build__in_waves_has_the_bits_of_one_graph(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = KINDS["stored"]
    with dask.config.set(scheduler="sync"):
        whole = bits(built(rows(), **BUILDS[name]))
        monkeypatch.setattr(waves, "GRAPH_BLOCKS", WAVE)
        assert bits(built(rows(), **BUILDS[name])) == whole


@functools.cache
def bits_of_one_graph(kind: str, split_every: int) -> Any:
    """Of two reads, with the settings as they are; made before any of them is changed."""
    return bits(built(KINDS[kind](), passes=2, split_every=split_every))


@pytest.mark.nightly
@each(kind=list(KINDS), split_every=[2, 3, 16, 50])
def test_build__in_waves_of_any_input(
    kind: str, split_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bits_of_one_graph(kind, split_every)
    monkeypatch.setattr(waves, "GRAPH_BLOCKS", WAVE)
    assert bits(built(KINDS[kind](), passes=2, split_every=split_every)) == whole


@pytest.mark.nightly
@pairs(kind=list(KINDS), split_every=[2, 3, 16, 17], limit=[WAVE, waves.GRAPH_BLOCKS])
def test_build__tasks_of_several_blocks_change_no_bit(
    kind: str, split_every: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bits_of_one_graph(kind, split_every)
    monkeypatch.setattr(waves, "MANY_BLOCKS", 10)
    monkeypatch.setattr(waves, "GRAPH_BLOCKS", limit)
    assert bits(built(KINDS[kind](), passes=2, split_every=split_every)) == whole


@pytest.mark.nightly
@pytest.mark.parametrize("name", BUILDS)
def test_build__tasks_of_several_blocks_in_every_construction(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dask.config.set(scheduler="sync"):
        whole = bits(built(KINDS["stored"](), **BUILDS[name]))
        monkeypatch.setattr(waves, "MANY_BLOCKS", 10)
        assert bits(built(KINDS["stored"](), **BUILDS[name])) == whole


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
def test_build__an_invalid_row_among_several_blocks_of_a_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waves, "MANY_BLOCKS", 10)
    bad = X.copy()
    bad[[400, 800], 1] = np.nan
    with pytest.raises(InvalidInputError, match="at row 400"):
        built(CountingArray(bad))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["one read", "two reads", "tree"])
def test_lazy__runs_its_waves_where_it_is_computed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bits(built(X, **BUILDS[name]))
    monkeypatch.setattr(waves, "GRAPH_BLOCKS", WAVE)
    lazy = built(X, **BUILDS[name], compute=False)
    assert isinstance(lazy, Lazy)
    assert bits(lazy.compute(scheduler="sync")) == whole
    coreset, ones = dask.compute(lazy, da.ones(4, chunks=2).sum())
    assert (bits(coreset), ones) == (whole, 4.0)


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
def test_build__a_plan_tells_the_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = built(X, passes=2, dry_run=True)
    monkeypatch.setattr(waves, "GRAPH_BLOCKS", WAVE)
    plan = built(X, passes=2, dry_run=True)
    assert (whole.waves, plan.waves) == (1, 5)
    assert plan.tasks == pytest.approx(whole.tasks, rel=0.2)
    assert "in waves, 5 a read" in str(plan)
    assert "waves" not in str(whole)


@pytest.mark.nightly
@pytest.mark.usefixtures("small_waves")
def test_build__the_first_invalid_row_ends_the_waves() -> None:
    bad = X.copy()
    bad[[400, 800], 1] = np.nan
    rows = CountingArray(bad)
    with pytest.raises(InvalidInputError, match="at row 400"):
        built(rows)
    assert rows.reads[:400].all()
    assert not rows.reads[600:].any()


def number_and_rows(block: Any, block_index: int, factor: Any) -> tuple[tuple[int, float], ...]:
    return ((block_index, factor * len(block)),)


@pytest.mark.nightly
@pytest.mark.usefixtures("small_waves")
def test_map_reduce__in_waves_keeps_the_order_of_the_blocks() -> None:
    found = map_reduce(
        row_blocks(X, chunks=ROWS), number_and_rows, lambda a, b: a + b, broadcast=2.0
    )
    assert found.value == tuple((i, 2.0 * ROWS) for i in range(N_BLOCKS))
    assert (found.n_rows, found.row(7, 3)) == (N, 7 * ROWS + 3)


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


@pytest.mark.nightly
def test_estimators__in_waves_as_in_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = da.from_array(X, chunks=(ROWS, 3))
    model = CoresetKMeans(3, size=60, random_state=0)
    centers = model.fit(rows).cluster_centers_
    monkeypatch.setattr(waves, "GRAPH_BLOCKS", WAVE)
    np.testing.assert_array_equal(model.fit(rows).cluster_centers_, centers)
