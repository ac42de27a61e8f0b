"""Workers with other versions than the client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset.errors import WorkerMismatchError
from daskcoreset.execution.versions import own_versions
from tests.acceptance.tools.cluster_harness import RealCluster, real_cluster


def pretended(folder: Path, package: str, version: str) -> Path:
    """Make a folder that, ahead in the path, gives a package another version."""
    about = folder / f"{package}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    pytest.importorskip("distributed")
    with real_cluster(tmp_path_factory.mktemp("cluster"), 0) as running:
        yield running


@pytest.fixture
def client(cluster: RealCluster) -> Iterator[Any]:
    with cluster.lent() as connected:
        yield connected


def build() -> Any:
    X = np.random.default_rng(0).normal(size=(1000, 3))
    return daskcoreset.build(X, size=50, chunks=100, random_state=0)


@pytest.mark.nightly
@pytest.mark.distributed
@pytest.mark.slow
def test_build__worker_of_another_version_of_the_package(
    cluster: RealCluster, client: Any, tmp_path: Path
) -> None:
    cluster.joined(client)
    build()  # no warning
    cluster.joined(client, path=[pretended(tmp_path / "old", "daskcoreset", "0.0.1")])
    odd = next(
        address for address, found in client.run(own_versions).items() if found != own_versions()
    )
    with pytest.raises(
        WorkerMismatchError, match=f"{odd} has daskcoreset 0.0.1, and the client has"
    ):
        build()
    with pytest.raises(WorkerMismatchError):  # until it is gone
        build()
    client.retire_workers([odd])
    build()


@pytest.mark.nightly
@pytest.mark.distributed
@pytest.mark.slow
def test_build__worker_that_joins_between_definition_and_run(
    cluster: RealCluster, client: Any, tmp_path: Path
) -> None:
    import dask

    cluster.joined(client, path=[pretended(tmp_path / "old", "numba", "0.1.2")])
    X = np.random.default_rng(0).normal(size=(1000, 3))
    lazy = daskcoreset.plan(X, size=50, chunks=100, random_state=0)
    with pytest.raises(
        WorkerMismatchError, match=r"process \d+ on host .* has numba 0\.1\.2, .*same versions"
    ):
        dask.compute(lazy)  # Dask's own call, which asks no worker before
