"""Reads in waves: the bits of one graph, in graphs of bounded size."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

from daskcoreset.build import build
from daskcoreset.core.coreset import Coreset
from daskcoreset.execution import waves
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
