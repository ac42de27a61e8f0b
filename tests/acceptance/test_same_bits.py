"""The same bits on threads and processes; `cluster` has those where workers die."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

from tests.acceptance import face

N, CHUNK = 24_000, 2_000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows sorted by cluster, so that blocks differ, and labels and weights of them."""
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(scale=20.0, size=N))[:, np.newaxis] + rng.normal(size=(N, 3))
    y = (X[:, 0] + rng.normal(size=N) > 0).astype(np.int64)
    X[-1] = 900.0
    zarr.create_array(folder / "X.zarr", data=X, chunks=(CHUNK, 3))
    zarr.create_array(folder / "y.zarr", data=y, chunks=(CHUNK,), fill_value=-1)
    zarr.create_array(folder / "u.zarr", data=rng.uniform(0.1, 3, N), chunks=(CHUNK,))
    return folder


CALLS: dict[str, tuple[Any, bool]] = {
    "lightweight": ({"method": "lightweight"}, False),
    "independent": (
        {"method": "lightweight", "draw": face.Draw(sampling="multinomial", passes=2)},
        False,
    ),
    "kmeans": ({"method": face.StrongKMeans(6)}, False),
    "mixture": ({"method": face.Mixture(3)}, False),
    "svm": ({"method": "svm"}, True),
    "logistic": ({"method": "logistic"}, True),
    "least_squares": ({"method": "least_squares"}, True),
    "tree": ({"method": "svm", "draw": face.MergeReduce(split_every=3)}, True),
    "coverage": ({"method": face.Coverage(size=40)}, False),
}


def planned(folder: Path, name: str) -> Any:
    options, labelled = CALLS[name]
    X = da.from_zarr(str(folder / "X.zarr"))
    y = da.from_zarr(str(folder / "y.zarr")) if labelled else None
    given = options if name == "coverage" else {"size": 150, "random_state": 3} | options
    u = None if name == "coverage" else da.from_zarr(str(folder / "u.zarr"))
    return X, y, given | {"sample_weight": u}


def built(folder: Path, name: str) -> face.Coreset:
    X, y, options = planned(folder, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        return face.build(X, y, **options)


@pytest.mark.parametrize("name", CALLS)
def test_build__on_one_thread_and_four(name: str, store: Path) -> None:
    with dask.config.set(scheduler="synchronous"):
        one = built(store, name)
    with dask.config.set(scheduler="threads", num_workers=4):
        four = built(store, name)
    assert one.equals(four)
    assert one.points.tobytes() == four.points.tobytes()
    assert one.weights.tobytes() == four.weights.tobytes()


@pytest.mark.parametrize("name", ["lightweight", "svm"])
def test_build__on_processes(name: str, store: Path) -> None:
    here = built(store, name)
    with dask.config.set(scheduler="processes", pool=face.testing.shared_pool()):
        there = built(store, name)
    assert there.equals(here)


def digest(c: face.Coreset) -> str:
    return hashlib.sha256(c.points.tobytes() + c.weights.tobytes()).hexdigest()


def in_a_new_process(store: Path, names: list[str], **environment: str) -> list[str]:
    script = f"""
import warnings
warnings.simplefilter("ignore")
from pathlib import Path
from tests.acceptance.test_same_bits import built, digest
for name in {names!r}:
    print(digest(built(Path({str(store)!r}), name)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True,
        cwd=Path(__file__).parents[2], env=os.environ | environment,
    )  # fmt: skip
    return done.stdout.split()


def test_build__in_a_new_process(store: Path) -> None:
    """Hashes, addresses and the order of imports have no part in it."""
    names = ["kmeans", "logistic"]
    wanted = [digest(built(store, name)) for name in names]
    assert in_a_new_process(store, names, PYTHONHASHSEED="7") == wanted


def test_build__with_loops_that_are_compiled_or_cached(store: Path, tmp_path: Path) -> None:
    names = ["lightweight", "least_squares"]
    compiled, cached = (
        in_a_new_process(store, names, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)
    )
    assert cached == compiled


@pytest.mark.parametrize("name", ["lightweight", "svm"])
def test_plan__computes_nothing_until_it_is_told(name: str, store: Path) -> None:
    reads = []

    def noted(block: Any) -> Any:
        reads.append(len(block))
        return block

    X, y, options = planned(store, name)
    X = X.map_blocks(noted, dtype=X.dtype, meta=np.empty((0, 3)))
    lazy = face.plan(X, y, **options)
    assert reads == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        (c,) = dask.compute(lazy, scheduler="synchronous")
    assert sum(reads) == N * (2 if name == "svm" else 1)
    assert c.equals(built(store, name))


@pytest.mark.parametrize("name", ["CoresetKMeans", "CoresetLogisticRegression"])
def test_models__have_the_same_bits_on_threads(name: str, store: Path) -> None:
    X, y, _ = planned(store, "svm")
    found = []
    for threads in (1, 4):
        with (
            dask.config.set(scheduler="threads", num_workers=threads),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            model = getattr(face.estimators, name)(size=200, random_state=0).fit(X, y)
        found.append(model.cluster_centers_ if name == "CoresetKMeans" else model.coef_)
    assert found[0].tobytes() == found[1].tobytes()
