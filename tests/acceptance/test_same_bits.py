"""Same seed, same chunks: the same bytes, whatever runs the tasks; `cluster` lets workers die."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

from tests.acceptance import face

pytestmark = pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")

CHUNK, N_BLOCKS = 2_500, 12  # more rows in all than a coreset of this size has candidates
N = CHUNK * N_BLOCKS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows sorted by cluster, so that blocks differ and the order of sums matters."""
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    centers = np.sort(rng.normal(scale=20.0, size=(N_BLOCKS, 1)), axis=0) * np.ones(3)
    X = np.repeat(centers, CHUNK, axis=0) + rng.normal(size=(N, 3))
    X[:CHUNK] *= 1e-3  # a block with too small a share of the candidates is read again
    X[-1] = 900.0
    y = (X[:, 0] + rng.normal(size=N) > 0).astype(np.int64)
    zarr.create_array(folder / "X-f8", data=X, chunks=(CHUNK, 3))
    zarr.create_array(folder / "X-f4", data=X.astype("f4"), chunks=(CHUNK, 3))
    zarr.create_array(folder / "y", data=y, chunks=(CHUNK,), fill_value=-1)
    zarr.create_array(folder / "u", data=rng.uniform(0.1, 3, N), chunks=(CHUNK,))
    return folder


INDEPENDENT = face.Draw(sampling="multinomial", passes=2)

CALLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "one read": ("zarr", "f4", {}),
    "two reads": ("zarr", "f8", {"draw": face.Draw(passes=2, split_every=3)}),
    "two reads of Dask": ("dask", "f8", {"draw": face.Draw(passes=2, split_every=3)}),
    "independent": ("dask", "f4", {"draw": INDEPENDENT}),
    "independent of Zarr": ("zarr", "f8", {"draw": INDEPENDENT}),
    "kmeans": ("dask", "f8", {"method": face.StrongKMeans(6)}),
    "mixture": ("zarr", "f8", {"method": face.Mixture(3)}),
    "svm": ("dask", "f4", {"method": "svm"}),
    "logistic": ("dask", "f8", {"method": "logistic"}),
    "least_squares": ("zarr", "f4", {"method": "least_squares"}),
    "tree": ("dask", "f8", {"method": "svm", "draw": face.MergeReduce(split_every=3)}),
    "coverage": ("dask", "f8", {"method": face.Coverage(size=40), "random_state": None}),
}
"""What holds the rows, their dtype, and how a coreset is built of them."""


def called(call: Callable[..., Any], folder: Path, name: str) -> Any:
    """Build or plan a coreset of the stored rows."""
    source, dtype, options = CALLS[name]
    X, y, u = (zarr.open_array(folder / each, mode="r") for each in (f"X-{dtype}", "y", "u"))
    if source == "dask":
        X, y, u = (da.from_zarr(each) for each in (X, y, u))
    given: dict[str, Any] = {"random_state": 3, "chunks": CHUNK, "sample_weight": u, **options}
    if name != "coverage":
        given["size"] = 150
    return call(X, y, **given)


def digest(coreset: face.Coreset) -> str:
    assert coreset.labels is not None
    parts = coreset.points, coreset.weights, coreset.indices, coreset.labels
    described = [f"{part.dtype.str} {part.shape} ".encode() + part.tobytes() for part in parts]
    return hashlib.sha256(b"".join(described)).hexdigest()


def built(folder: Path, name: str, **how: Any) -> str:
    """Return the digest of a coreset that Dask computes as it is told."""
    with dask.config.set(**how):
        return digest(called(face.build, folder, name))


@pytest.fixture(scope="module")
def expected(store: Path) -> Any:
    """Digests on one thread."""

    @cache
    def of(name: str) -> str:
        return built(store, name, scheduler="sync")

    return of


def test_expected__is_blind_to_nothing(expected: Any, store: Path) -> None:
    """The digests tell samplings and dtypes apart, and what holds the rows does not matter."""
    assert len({expected(name) for name in CALLS}) == len(CALLS) - 1
    assert expected("two reads of Dask") == expected("two reads")
    coreset = called(face.build, store, "one read")
    coreset.weights.flags.writeable = True
    coreset.weights[0] = np.nextafter(coreset.weights[0], np.inf)
    assert digest(coreset) != expected("one read")


@pytest.mark.parametrize("name", CALLS)
def test_bits__on_four_threads(name: str, expected: Any, store: Path) -> None:
    assert built(store, name, scheduler="threads", num_workers=4) == expected(name)


WAYS = itertools.cycle(["beside", "persist", "optimize"])


@pytest.mark.parametrize(("name", "how"), [*zip([*CALLS][:-1], WAYS, strict=False)])
def test_bits__however_the_graph_is_computed(
    name: str, how: str, expected: Any, store: Path
) -> None:
    lazy = called(face.plan, store, name)
    if how == "beside":
        coreset, total = dask.compute(lazy, da.ones(10, chunks=2).sum())
        assert total == 10.0
    else:
        coreset = getattr(dask, how)(lazy)[0].compute()
    assert digest(coreset) == expected(name)


@pytest.mark.nightly
def test_bits__of_a_new_process_that_compiles_its_loops(
    expected: Any, store: Path, tmp_path: Path
) -> None:
    """Hashes, addresses and the order of imports have no part; workers of clusters share loops."""
    names = ["kmeans", "logistic", "least_squares"]
    script = f"""
from pathlib import Path
from tests.acceptance.test_same_bits import built
for name in {names!r}:
    print(built(Path({str(store)!r}), name))
"""
    environment = {"PYTHONHASHSEED": "7", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True,
        cwd=Path(__file__).parents[2], env=os.environ | environment,
    )  # fmt: skip
    assert done.stdout.split() == [expected(name) for name in names]


# --- clusters ----------------------------------------------------------------------------


@pytest.mark.distributed
def test_bits__on_two_worker_processes(cluster: Any, expected: Any, store: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as client:
        assert len(client.nthreads()) == 2
        for name in CALLS:
            assert built(store, name) == expected(name), name
        (kept,) = dask.persist(called(face.plan, store, "two reads"))
        assert digest(kept.compute()) == expected("two reads")


@pytest.mark.distributed
def test_bits__by_the_command_line(cluster: Any, store: Path, tmp_path: Path) -> None:
    words = [store / "X-f4", tmp_path / "c", "--size", 60, "--random-state", 7]
    assert face.program("build", *words, "--scheduler", cluster.scheduler_address) == 0
    here = face.build(store / "X-f4", size=60, random_state=7)
    assert face.Coreset.from_zarr(tmp_path / "c").equals(here)


@pytest.mark.distributed
def test_build__of_what_a_cluster_holds_warns_the_caller(cluster: Any) -> None:
    distributed = pytest.importorskip("distributed")
    X = da.random.default_rng(0).normal(size=(N, 3), chunks=(CHUNK, 3))
    few = da.ones((10, 2), chunks=(5, 2))
    for passes in (1, 2):
        options: Any = {"size": 60, "draw": face.Draw(passes=passes), "random_state": 0}
        here = face.build(X, **options)
        with distributed.Client(cluster):
            assert digest_of(face.build(X.persist(), **options)) == digest_of(here)
            with pytest.warns(face.CoresetWarning, match="nothing was reduced"):
                assert len(face.build(few, size=20)) == 10


def digest_of(coreset: face.Coreset) -> tuple[bytes, bytes]:
    return coreset.points.tobytes(), coreset.weights.tobytes()
