"""Data in the memory of this process, with an active client and without."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask.callbacks import Callback

from daskcoreset import Draw, MergeReduce, build, grow
from daskcoreset.core.coreset import Coreset
from daskcoreset.errors import CoresetWarning
from daskcoreset.estimators import CoresetGaussianMixture, CoresetKMeans, CoresetSVC
from daskcoreset.execution import local
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.inputs.cuts import HUGE_BYTES, MEMORY_BYTES, TARGET_BYTES
from daskcoreset.metrics import kmeans_cost

ROWS = np.random.default_rng(0).normal(size=(4000, 5))
ROWS[:1000] += 20.0


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few thousand rows count as large."""
    monkeypatch.setattr("daskcoreset.inputs.cuts.MEMORY_BYTES", 40_000)
    monkeypatch.setattr("daskcoreset.inputs.cuts.TARGET_BYTES", 20_000)
    monkeypatch.setattr(local, "MEMORY_BYTES", 40_000)


class Tasks(Callback):
    """Counts tasks of local schedulers."""

    def __init__(self) -> None:
        super().__init__(posttask=self._count)  # type: ignore[no-untyped-call] # Dask has no types
        self.count = 0

    def _count(self, *_: Any) -> None:
        self.count += 1


def test_blocks__of_large_arrays_in_memory_are_cut() -> None:
    assert MEMORY_BYTES == 2 * TARGET_BYTES < HUGE_BYTES
    rows = MEMORY_BYTES // 8
    whole, larger = (np.broadcast_to(np.float64(1.0), (n, 1)) for n in (rows, rows + 1))
    assert row_blocks(whole).in_memory
    blocks = row_blocks(larger)
    assert not blocks.in_memory
    assert blocks.n_blocks == 3
    assert max(blocks.sizes or ()) * 8 == TARGET_BYTES


def same(first: Coreset, second: Coreset) -> bool:
    return bool(
        np.array_equal(first.points, second.points)
        and np.array_equal(first.weights, second.weights)
        and np.array_equal(first.indices, second.indices)
    )


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("options", [{}, {"draw": Draw(passes=2)}, {"draw": MergeReduce()}])
def test_build__of_large_arrays_has_the_same_bits_on_any_number_of_threads(
    options: dict[str, Any],
) -> None:
    coresets = []
    for threads in (1, 2, 5):
        with dask.config.set(num_workers=threads), Tasks() as tasks:
            coresets.append(
                build(ROWS, size=100, method="kmeans", random_state=0, n_clusters=4)
                if not options
                else build(ROWS, size=100, random_state=0, **options)
            )
        assert tasks.count >= 8
    assert all(same(coreset, coresets[0]) for coreset in coresets)
    assert coresets[0].provenance["n_blocks"] == 8


@pytest.mark.distributed
@pytest.mark.usefixtures("large")
def test_build__of_large_arrays_stays_here_with_an_active_client(cluster: Any) -> None:
    from distributed import Client

    expected = build(ROWS, size=100, random_state=0)
    searched = grow(ROWS, n_clusters=2, epsilon=0.3, random_state=0, method="lightweight")
    labels = (ROWS[:, 0] > 10).astype(int)
    jobs: dict[str, Callable[[], Any]] = {
        "lists": lambda: build(ROWS.tolist(), size=100, random_state=0),
        "pandas": lambda: build(
            pd.DataFrame(ROWS, columns=list("abcde")), size=100, random_state=0
        ),
        "sparse": lambda: build(sp.csr_array(ROWS), size=100, random_state=0),
        "tree": lambda: build(ROWS, size=100, random_state=0, draw=MergeReduce()),
        "cover": lambda: build(ROWS, size=20, method="coverage"),
        "k-means": lambda: CoresetKMeans(2, size=100, random_state=0).fit(ROWS).predict(ROWS),
        "mixture": lambda: CoresetGaussianMixture(2, size=100, random_state=0).fit(ROWS),
        "svm": lambda: CoresetSVC(size=100, random_state=0).fit(ROWS, labels).score(ROWS, labels),
        "cost": lambda: kmeans_cost(ROWS, ROWS[:2]),
    }
    with Client(cluster) as client:
        ran: list[Any] = []
        client.run_on_scheduler(_forget_tasks)
        with pytest.warns(CoresetWarning, match="memory of this process.*nothing is sent") as told:
            assert same(build(ROWS, size=100, random_state=0), expected)
        assert len(told) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message=".*memory of this process")  # once is enough
            again = grow(ROWS, n_clusters=2, epsilon=0.3, random_state=0, method="lightweight")
            assert same(again, searched)
            for job in jobs.values():
                job()
        ran = client.run_on_scheduler(_count_tasks)
        assert not ran
        # Who names the cluster gets it.
        with dask.config.set(scheduler="distributed"):
            assert same(build(ROWS, size=100, random_state=0), expected)
        assert client.run_on_scheduler(_count_tasks)


def _forget_tasks(dask_scheduler: Any) -> None:
    dask_scheduler.transition_log.clear()


def _count_tasks(dask_scheduler: Any) -> int:
    return len(dask_scheduler.transition_log)
