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
from tests.acceptance.tools.processes import shared_pool
from tests.pairs import few

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
    with dask.config.set(scheduler="processes", pool=shared_pool()):
        there = built(store, name)
    assert there.equals(here)


def digest(c: face.Coreset) -> str:
    return hashlib.sha256(c.points.tobytes() + c.weights.tobytes()).hexdigest()


@few("loops", ["cached", "compiled"], 1)
def test_build__in_a_new_process(loops: str, store: Path, tmp_path: Path) -> None:
    """Hashes, addresses, the order of imports and what is cached have no part in it."""
    names = ["kmeans", "logistic", "least_squares"]
    script = f"""
import warnings
warnings.simplefilter("ignore")
from pathlib import Path
from tests.acceptance.test_same_bits import built, digest
for name in {names!r}:
    print(digest(built(Path({str(store)!r}), name)))
"""
    environment = {"PYTHONHASHSEED": "7"}
    if loops == "compiled":
        environment["NUMBA_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True,
        cwd=Path(__file__).parents[2], env=os.environ | environment,
    )  # fmt: skip
    assert done.stdout.split() == [digest(built(store, name)) for name in names]
