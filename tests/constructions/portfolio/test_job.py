"""Several coresets from one read: reads, bits, memory, errors that name the member."""

from __future__ import annotations

import pickle
import shutil
import warnings
import weakref
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import daskcoreset
from daskcoreset import (
    SVM,
    Coreset,
    Lightweight,
    Logistic,
    MixtureCoreset,
    Portfolio,
    StrongKMeans,
    Uniform,
)
from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.execution import engine, waves
from daskcoreset.execution.engine import load_parts
from daskcoreset.testing import CountingArray, CountingScheduler
from tests.pairs import few

ROWS, CHUNK, D = 6000, 500, 4

METHODS: dict[str, Any] = {
    "clusters": StrongKMeans(5),
    "mixture": MixtureCoreset(3),
    "svm": SVM(),
    "churn": Logistic(),
    "plain": Uniform(),
}


def make_data(rows: int = ROWS, seed: int = 0) -> tuple[Any, Any]:
    """Heavy tails, sorted by class, one class rare, so that blocks differ much."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(rows, D))
    y = np.sort(rng.choice(3, rows, p=(0.05, 0.25, 0.7)))
    X += y[:, np.newaxis]
    return X, y


def own(X: Any, y: Any, name: str, **options: Any) -> Any:
    return daskcoreset.build(X, y, method=METHODS[name], random_state=7, **options)


@few("mode", ["memory", "chunks", "threads", "lazy", "two reads", "waves"], always=3)
def test_build__gives_each_member_the_bits_of_its_own_build(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = make_data()
    options: dict[str, Any] = {"size": 300, "split_every": 3}
    if mode != "memory":
        X, y = da.from_array(X, chunks=(CHUNK, D)), da.from_array(y, chunks=CHUNK)
    if mode == "two reads":
        options["passes"] = 2
    if mode == "waves":
        monkeypatch.setattr(waves, "GRAPH_BLOCKS", 4)
    scheduler = "threads" if mode == "threads" else "synchronous"
    with dask.config.set(scheduler=scheduler):
        expected = {name: own(X, y, name, **options) for name in METHODS}
        if mode == "lazy":
            lazy = daskcoreset.build(X, y, method=METHODS, random_state=7, compute=False, **options)
            (portfolio,) = dask.compute(lazy)
        else:
            portfolio = daskcoreset.build(X, y, method=METHODS, random_state=7, **options)
    assert list(portfolio) == list(METHODS)
    for name, coreset in expected.items():
        assert portfolio[name].equals(coreset), name


def test_build__of_a_tree_and_independent_draws_has_the_same_bits() -> None:
    X, y = make_data()
    methods: dict[str, Any] = {"means": Lightweight(), "plain": Uniform()}
    choices: list[dict[str, Any]] = [
        {"strategy": "tree"},
        {"sampling": "multinomial"},
        {"sampling": "multinomial", "passes": 2, "normalize": True},
    ]
    for options in choices:
        shared: dict[str, Any] = {"chunks": CHUNK, "size": 100, "random_state": 1, **options}
        portfolio = daskcoreset.build(X, y, method=methods, **shared)
        for name, method in methods.items():
            assert portfolio[name].equals(daskcoreset.build(X, y, method=method, **shared))


def delayed_array(rows: CountingArray, size: float) -> Any:
    """The rows as a Dask array whose chunks have so many rows, or an unknown number."""
    blocks = [dask.delayed(rows.__getitem__)(slice(i, i + CHUNK)) for i in range(0, ROWS, CHUNK)]
    parts = [da.from_delayed(block, (size, D), rows.dtype) for block in blocks]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


@pytest.mark.parametrize(
    ("methods", "reads"),
    [
        (METHODS, 2),
        ({name: METHODS[name] for name in ("clusters", "mixture", "plain")}, 1),
    ],
)
def test_build__reads_as_often_as_the_member_that_needs_most(
    methods: dict[str, Any], reads: int
) -> None:
    X, y = make_data()
    rows = CountingArray(X)
    counted = delayed_array(rows, CHUNK)
    options: dict[str, Any] = {"size": 200, "random_state": 7}
    plan = daskcoreset.build(counted, y, method=methods, dry_run=True, **options)
    lazy = daskcoreset.build(counted, y, method=methods, compute=False, **options)
    assert plan.reads == reads
    assert not rows.reads.any()
    with dask.config.set(scheduler="synchronous"):
        portfolio = lazy.compute()
    assert portfolio.provenance["passes"] == reads
    extra = portfolio.provenance["blocks_read_again"]
    assert rows.reads.min() == reads
    assert rows.reads.max() <= reads + (extra > 0)


class CountingStore(zarr.storage.WrapperStore[Any]):
    """A Zarr store that counts how often each chunk is asked for."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.counts: dict[str, int] = {}

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        if "/c/" in f"/{key}":
            self.counts[key] = self.counts.get(key, 0) + 1
        return await super().get(key, *args, **kwargs)


def test_build__reads_every_chunk_of_a_store_twice_for_five_members() -> None:
    X, y = make_data()
    store = CountingStore(zarr.storage.MemoryStore())
    array = zarr.create_array(store, shape=X.shape, chunks=(CHUNK, D), dtype=X.dtype)
    array[:] = X
    store.counts.clear()
    with dask.config.set(scheduler="synchronous"):
        alone = {name: own(array, y, name, size=3000) for name in METHODS}
        separately = sum(store.counts.values())
        store.counts.clear()
        portfolio = daskcoreset.build(array, y, size=3000, method=METHODS, random_state=7)
    assert all(portfolio[name].equals(coreset) for name, coreset in alone.items())
    assert len(store.counts) == ROWS // CHUNK
    assert max(store.counts.values()) <= 2 + (portfolio.provenance["blocks_read_again"] > 0)
    assert separately >= 3 * sum(store.counts.values()) / 2


def test_build__blocks_that_propose_all_their_rows_are_read_once() -> None:
    X, _ = make_data()
    rows = CountingArray(X)
    X = delayed_array(rows, np.nan)
    sizes = {"one": ROWS, "two": ROWS + 5, "three": 50}
    methods = {"one": Lightweight(), "two": Uniform(), "three": Uniform()}
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        portfolio = daskcoreset.build(X, size=sizes, method=methods, random_state=0)
    # The sizes are above the number of rows, which only the first read tells.
    assert {name: len(coreset) for name, coreset in portfolio.items()} == {
        "one": ROWS,
        "two": ROWS,
        "three": 50,
    }
    assert set(rows.reads) == {1}
    assert [str(warning.message).partition(":")[0] for warning in caught] == [
        "member 'one'",
        "member 'two'",
    ]


def test_build__defines_a_portfolio_without_computing() -> None:
    X, y = make_data()
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        lazy = daskcoreset.build(
            da.from_array(X, chunks=(CHUNK, D)),
            y,
            size=300,
            method=METHODS,
            random_state=7,
            compute=False,
        )
        assert scheduler.calls == 0
        portfolio = lazy.compute()
    assert isinstance(portfolio, Portfolio)
    assert {coreset.provenance["seed"] for coreset in portfolio.values()} == {
        portfolio.provenance["seed"]
    }


@pytest.mark.distributed
def test_build__has_the_same_bits_on_a_cluster() -> None:
    from distributed import Client

    from daskcoreset.testing import shared_cluster

    X, y = make_data()
    here = daskcoreset.build(X, y, chunks=CHUNK, size=200, method=METHODS, random_state=3)
    lazy = daskcoreset.build(
        da.from_array(X, chunks=(CHUNK, D)),
        da.from_array(y, chunks=CHUNK),
        size=200,
        method=METHODS,
        random_state=3,
        compute=False,
    )
    with Client(shared_cluster()):
        (there,) = dask.compute(lazy)
    for name in METHODS:
        assert here[name].points.tobytes() == there[name].points.tobytes()
        assert here[name].weights.tobytes() == there[name].weights.tobytes()


def test_build__names_members_of_a_list_by_their_methods() -> None:
    X, _ = make_data(1000)
    portfolio = daskcoreset.build(X, size=20, method=["uniform", StrongKMeans(3)])
    assert list(portfolio) == ["uniform", "kmeans"]


def test_build__sizes_by_name_leave_others_at_the_default() -> None:
    X, _ = make_data(1000)
    with pytest.warns(CoresetWarning, match="member 'b': nothing was reduced"):
        portfolio = daskcoreset.build(
            X, size={"a": 20}, method={"a": "uniform", "b": "lightweight"}
        )
    assert [len(coreset) for coreset in portfolio.values()] == [20, 1000]


@pytest.mark.parametrize("chunks", [1000, 100])
def test_build__names_the_member_that_the_data_do_not_suit(chunks: int) -> None:
    X, y = make_data(1000)
    one_class = np.zeros(1000)
    with pytest.raises(InvalidInputError, match=r"^member '\{s\}': (?!member)"):
        daskcoreset.build(
            X, one_class, chunks=chunks, size=50, method={"a": "uniform", "{s}": SVM()}
        )
    labels = y.astype(float)
    labels[712] = np.nan
    with pytest.raises(InvalidInputError, match=r"^member '\{s\}': y is .*712"):
        daskcoreset.build(X, labels, chunks=chunks, size=50, method={"a": "uniform", "{s}": SVM()})


def test_to_zarr__brings_all_back(tmp_path: Path) -> None:
    X, y = make_data(1000)
    names = np.array(["no", "perhaps", "yes"])[y]
    portfolio = daskcoreset.build(X, names, size=400, method={**METHODS, "a b/ü": Uniform()})
    portfolio.to_zarr(tmp_path / "p.zarr")
    again = Portfolio.from_zarr(tmp_path / "p.zarr")
    assert again.equals(portfolio)
    assert pickle.loads(pickle.dumps(portfolio)).equals(portfolio)
    with pytest.raises(daskcoreset.errors.StoreError, match="exists"):
        portfolio.to_zarr(tmp_path / "p.zarr")
    position = list(portfolio).index("a b/ü")
    shutil.rmtree(tmp_path / "p.zarr" / f"member{position}_points" / "c")
    with pytest.raises(daskcoreset.errors.StoreError, match="array 'points' of member 'a b/ü'"):
        Portfolio.from_zarr(tmp_path / "p.zarr")
    portfolio.to_zarr(tmp_path / "p.zarr", overwrite=True)
    with pytest.raises(daskcoreset.errors.StoreError, match="not a 'coreset'"):
        Coreset.from_zarr(tmp_path / "p.zarr")
    assert "6 coresets of 1,000 rows, 4 features, 2 reads" in repr(portfolio)
    assert "<table>" in portfolio._repr_html_()
    with pytest.raises(KeyError, match="no member is named 'trees'"):
        portfolio["trees"]


def test_portfolio__is_told_in_words_that_fit_and_with_a_short_seed() -> None:
    seed = 163658991865484104730248038907061454586
    one = daskcoreset.build(np.ones((50, 1)), size=5, method=["uniform"], random_state=seed)
    title = "Portfolio(1 coreset of 50 rows, 1 feature, 1 read, seed 163658…454586)"
    assert repr(one).splitlines()[0] == title
    assert title in one._repr_html_()


# --- several lazy builds in one compute ---


class TrackedRows(np.ndarray):
    """Rows that can be watched."""


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_compute__of_lazy_builds_of_a_dask_array_shares_the_first_read(scheduler: str) -> None:
    X, y = make_data(12_000)
    reads = dict.fromkeys(range(0, len(X), CHUNK), 0)
    held: list[int] = [0, 0]

    def let_go() -> None:
        held[0] -= 1

    def read(start: int) -> Any:
        rows = X[start : start + CHUNK].copy().view(TrackedRows)
        reads[start] += 1
        held[:] = [held[0] + 1, max(held[1], held[0] + 1)]
        weakref.finalize(rows, let_go)
        return rows

    blocks = [da.from_delayed(dask.delayed(read)(i), (CHUNK, D), X.dtype) for i in reads]
    shared = da.concatenate(blocks)
    names = ("clusters", "svm", "plain")
    lazy = [own(shared, y, name, size=2000, chunks=CHUNK, compute=False) for name in names]
    with dask.config.set(scheduler=scheduler, num_workers=2):
        found = dask.compute(*lazy)
    # One, two and one by themselves; blocks may be read again by single members.
    assert min(reads.values()) == 2
    assert sum(reads.values()) < 2.5 * len(reads)
    # Of 24 blocks a few are in memory at a time.
    assert held[1] <= 8
    for name, coreset in zip(names, found, strict=True):
        alone = own(X, y, name, size=2000, chunks=CHUNK)
        np.testing.assert_array_equal(coreset.indices, alone.indices)
        np.testing.assert_array_equal(coreset.weights, alone.weights)


def test_build__of_a_cube_keeps_the_coordinates_of_every_member() -> None:
    xr = pytest.importorskip("xarray")
    X, _ = make_data(6000)
    cube = xr.DataArray(
        X.reshape(10, 20, 30, D),
        dims=("time", "lat", "lon", "level"),
        coords={"lat": np.arange(20)},
    ).chunk(time=2, lat=10)
    dims: dict[str, Any] = {"sample_dims": ("time", "lat", "lon"), "feature_dims": "level"}
    options: dict[str, Any] = {"size": 50, "random_state": 1, **dims}
    methods: dict[str, Any] = {"means": Lightweight(), "plain": Uniform()}
    portfolio = daskcoreset.build(cube, method=methods, summaries=["sample"], **options)
    for name, method in methods.items():
        assert portfolio[name].equals(daskcoreset.build(cube, method=method, **options))
    np.testing.assert_array_equal(portfolio["plain"].points, X[portfolio["plain"].indices])
    assert portfolio.sample is not None
    np.testing.assert_array_equal(portfolio.sample.points, X[portfolio.sample.indices])
    np.testing.assert_allclose(portfolio.all_rows.mean, X.mean(axis=0))
    lazy = daskcoreset.build(cube, method=methods, compute=False, **options)
    assert lazy.compute()["means"].equals(portfolio["means"])
    store = zarr.storage.MemoryStore()
    portfolio.to_zarr(store)
    assert Portfolio.from_zarr(store).equals(portfolio)


class Watched(dict[str, Any]):
    """The parts of a block, which can be watched."""


@pytest.mark.parametrize(
    ("kind", "scheduler"),
    [
        ("array", "synchronous"),
        *((kind, "threads") for kind in ("path", "npy", "h5", "parquet")),
    ],
)
def test_compute__of_lazy_builds_of_a_store_shares_the_first_read(
    kind: str, scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = make_data(12_000)
    source: Any = str(tmp_path / f"x.{kind}")
    if kind in {"array", "path"}:
        source = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(CHUNK, D))
        source = str(tmp_path / "x.zarr") if kind == "path" else source
    elif kind == "npy":
        np.save(source, X)
    elif kind == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(source, "w") as file:
            file.create_dataset("X", data=X, chunks=(CHUNK, D))
    else:
        table = pytest.importorskip("pyarrow").table({f"x{i}": X[:, i] for i in range(D)})
        pytest.importorskip("pyarrow.parquet").write_table(table, source, row_group_size=CHUNK)
    reads, held = [0], [0, 0]

    def let_go() -> None:
        held[0] -= 1

    def load(spec: Any) -> Any:
        parts = Watched(load_parts(spec))
        if "X" in parts:
            reads[0] += 1
            held[:] = [held[0] + 1, max(held[1], held[0] + 1)]
            weakref.finalize(parts, let_go)
        return parts

    names = ("mixture", "svm", "plain")
    options: dict[str, Any] = {"size": 1000, "chunks": CHUNK}
    alone = [own(source, y, name, **options) for name in names]
    monkeypatch.setattr(engine, "load_parts", load)
    lazy = [own(source, y, name, compute=False, **options) for name in names]
    with dask.config.set(scheduler=scheduler, num_workers=2):
        found = dask.compute(*lazy)
    n_blocks = len(X) // CHUNK
    # One, two and one by themselves; blocks may be read again by single members.
    assert 2 * n_blocks <= reads[0] < 2.5 * n_blocks
    assert held[1] <= 8
    for coreset, of_its_own in zip(found, alone, strict=True):
        assert coreset.equals(of_its_own)


def test_compute__of_other_stores_chunks_or_columns_shares_nothing(tmp_path: Path) -> None:
    X, _ = make_data(4_000)
    for name, rows in {"a": X, "b": X + 100.0}.items():
        zarr.create_array(tmp_path / f"{name}.zarr", data=rows, chunks=(CHUNK, D))
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    for name, rows in {"a": X, "b": X + 100.0}.items():
        group.create_array(name, data=rows, chunks=(CHUNK, D))
    paths = [str(tmp_path / place) for place in ("a.zarr", "b.zarr", "g.zarr/a", "g.zarr/b")]
    lazy = [
        own(path, None, "plain", size=100, chunks=chunks, compute=False)
        for path in paths
        for chunks in (CHUNK, 2 * CHUNK)
    ]
    alone = [
        own(path, None, "plain", size=100, chunks=chunks)
        for path in paths
        for chunks in (CHUNK, 2 * CHUNK)
    ]
    assert all(map(Coreset.equals, dask.compute(*lazy), alone))
