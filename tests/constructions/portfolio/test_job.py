"""Several coresets from one read: reads, bits, memory, errors that name the member."""

from __future__ import annotations

import pickle
import shutil
import warnings
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
from daskcoreset.execution import waves
from daskcoreset.testing import CountingArray
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


# --- several lazy builds in one compute ---


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
    portfolio = daskcoreset.build(cube, method=methods, **options)
    for name, method in methods.items():
        assert portfolio[name].equals(daskcoreset.build(cube, method=method, **options))
    np.testing.assert_array_equal(portfolio["plain"].points, X[portfolio["plain"].indices])
    lazy = daskcoreset.build(cube, method=methods, compute=False, **options)
    assert lazy.compute()["means"].equals(portfolio["means"])
    store = zarr.storage.MemoryStore()
    portfolio.to_zarr(store)
    assert Portfolio.from_zarr(store).equals(portfolio)
