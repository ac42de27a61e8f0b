"""Bytes through a scheduler: those of results, and not of what they are made from."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from daskcoreset import Draw, build
from daskcoreset.core.coreset import Coreset
from tests.tools.traffic import Traffic

pytestmark = pytest.mark.distributed

KIB = 2**10

# Heartbeats, graphs, messages about tasks and their ends.
CONTROL = 256 * KIB


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of 60,000 rows in six blocks, with labels."""
    path = str(tmp_path_factory.mktemp("rows") / "rows.zarr")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 8))
    group = zarr.open_group(path, mode="w")
    group.create_array("X", data=X, chunks=(10_000, 8))
    group.create_array("y", data=(X[:, 0] + rng.normal(size=len(X)) > 0) * 1, chunks=(10_000,))
    return path


def traffic_of(cluster: Any, job: Callable[[], Any]) -> tuple[Any, Traffic]:
    from distributed import Client

    with Client(cluster) as client, Traffic(client) as traffic, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = job()
    return found, traffic


def test_traffic__counts_what_passes_through_and_between_workers(cluster: Any) -> None:
    from distributed import Client

    with Client(cluster) as client:
        first, second = client.scheduler_info(n_workers=-1)["workers"]
        with Traffic(client) as through:
            value = client.submit(np.random.default_rng(0).bytes, 1000 * KIB, workers=[first])
            assert len(value.result()) == 1000 * KIB
        with Traffic(client) as between:
            client.submit(len, value, workers=[second]).result()
    assert 2000 * KIB < through.scheduler < 2000 * KIB + CONTROL
    assert through.workers < CONTROL
    assert 1000 * KIB < between.workers < 1000 * KIB + CONTROL
    assert between.scheduler < CONTROL


def bytes_of(coreset: Coreset) -> int:
    arrays = (coreset.points, coreset.weights, coreset.indices, coreset.labels)
    return sum(np.asarray(array).nbytes for array in arrays if array is not None)


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("method", ["svm", "lightweight"])
def test_build__sends_the_coreset_and_no_candidates(
    cluster: Any, rows: str, method: str, passes: Any
) -> None:
    def job() -> Coreset:
        return build(
            rows,
            "y",
            method=method,
            size=5000,
            chunks=10_000,
            random_state=0,
            draw=Draw(passes=passes),
        )

    coreset, traffic = traffic_of(cluster, job)
    # Weights come twice: those of the rows, too. The candidates are four times as many rows.
    assert traffic.scheduler < 2 * 1.3 * bytes_of(coreset) + CONTROL
    here = job()
    np.testing.assert_array_equal(coreset.points, here.points)
    np.testing.assert_array_equal(coreset.weights, here.weights)
    assert coreset.provenance == here.provenance


def test_build__that_reads_blocks_again_is_the_same(cluster: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60_000, 3))
    X[55_000:] *= 1000.0  # nearly all of the scores are in one block
    path = str(tmp_path / "skewed.zarr")
    zarr.create_array(path, data=X, chunks=(5000, 3))
    coreset, _ = traffic_of(cluster, lambda: build(path, size=6000, chunks=5000, random_state=0))
    here = build(path, size=6000, chunks=5000, random_state=0)
    assert coreset.provenance["blocks_read_again"] == here.provenance["blocks_read_again"] == 1
    np.testing.assert_array_equal(coreset.points, here.points)
    np.testing.assert_array_equal(coreset.weights, here.weights)
