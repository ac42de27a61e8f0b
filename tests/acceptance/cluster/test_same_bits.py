"""Same seed, same chunks: the same bytes, whatever runs the tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

from tests.acceptance.face import Coreset, Draw, build, errors, plan, program
from tests.pairs import few

N_BLOCKS = 12
ROWS = 2500  # more in all than a coreset of this size has candidates
N = N_BLOCKS * ROWS
SIZE = 60

Mode = tuple[Literal["zarr", "dask"], Literal["float32", "float64"], Literal[1, 2], Any]
# Every pair of values of all four that may be.
MODES: list[Mode] = [
    ("zarr", "float32", 1, "systematic"),
    ("zarr", "float64", 2, "systematic"),
    ("dask", "float64", 1, "systematic"),
    ("dask", "float32", 2, "multinomial"),
    ("zarr", "float64", 2, "multinomial"),
    ("dask", "float64", 2, "systematic"),
]


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


def defined(folder: Path, mode: Mode) -> Any:
    source, dtype, passes, sampling = mode
    names = {"X": dtype, "y": "int64", "sample_weight": dtype}
    arrays: dict[str, Any] = {
        name: zarr.open_array(folder / f"{name}-{kind}.zarr", mode="r")
        for name, kind in names.items()
    }
    if source == "dask":
        arrays = {name: da.from_zarr(array) for name, array in arrays.items()}
    draw = Draw(sampling, passes, split_every=3)
    return plan(**arrays, size=SIZE, chunks=ROWS, random_state=7, draw=draw)


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
    assert len(set(expected.values())) == len(MODES) - 1
    assert expected[MODES[5]] == expected[MODES[1]]
    again = defined(stores, MODES[0]).compute(scheduler="sync")
    again.weights.flags.writeable = True
    again.weights[0] = np.nextafter(again.weights[0], np.inf)
    assert digest(again) != expected[MODES[0]]


# --- schedulers of one machine -----------------------------------------------------------


@few("n_threads", [7, 1], 1)
def test_bits__on_threads(n_threads: int, expected: dict[Mode, str], stores: Path) -> None:
    built = (
        defined(stores, mode).compute(scheduler="threads", num_workers=n_threads) for mode in MODES
    )
    assert digests(built) == expected


def test_bits__however_the_graph_is_computed(expected: dict[Mode, str], stores: Path) -> None:
    for mode in MODES:
        lazy = defined(stores, mode)
        coreset, total = dask.compute(lazy, da.ones(10, chunks=2).sum())
        assert total == 10.0
        assert digest(coreset) == expected[mode]
        (kept,) = dask.persist(lazy)
        assert digest(kept.compute()) == expected[mode]
        (optimised,) = dask.optimize(lazy)
        assert digest(optimised.compute()) == expected[mode]


# --- clusters ----------------------------------------------------------------------------


@pytest.mark.distributed
def test_bits__on_two_worker_processes(
    cluster: Any, expected: dict[Mode, str], stores: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as client:
        assert len(client.nthreads()) == 2
        for mode in MODES:
            assert digest(defined(stores, mode).compute()) == expected[mode]
        (kept,) = dask.persist(defined(stores, MODES[-1]))
        assert digest(kept.compute()) == expected[MODES[-1]]


@pytest.mark.distributed
def test_bits__by_the_command_line(cluster: Any, stores: Path, tmp_path: Path) -> None:
    words = [stores / "X-float32.zarr", tmp_path / "c", "--size", SIZE, "--random-state", 7]
    assert program("build", *words, "--scheduler", cluster.scheduler_address) == 0
    here = build(stores / "X-float32.zarr", size=SIZE, random_state=7)
    assert Coreset.from_zarr(tmp_path / "c").equals(here)


@pytest.mark.distributed
def test_compute__warns_the_caller_of_a_cluster(cluster: Any) -> None:
    distributed = pytest.importorskip("distributed")
    X = da.ones((10, 2), chunks=(5, 2))
    with (
        distributed.Client(cluster),
        pytest.warns(errors.CoresetWarning, match="nothing was reduced"),
    ):
        assert len(build(X, size=20)) == 10


@pytest.mark.distributed
@pytest.mark.parametrize("passes", [1, 2])
def test_build__reads_what_a_cluster_holds(passes: Literal[1, 2], cluster: Any) -> None:
    distributed = pytest.importorskip("distributed")
    X = da.random.default_rng(0).normal(size=(N, 3), chunks=(ROWS, 3))
    options: Any = {"size": SIZE, "draw": Draw(passes=passes), "chunks": ROWS, "random_state": 0}
    there = build(X, **options)
    with distributed.Client(cluster):
        kept = X.persist()
        coreset = build(kept, **options)
    assert coreset.points.tobytes() == there.points.tobytes()
    assert coreset.weights.tobytes() == there.weights.tobytes()
