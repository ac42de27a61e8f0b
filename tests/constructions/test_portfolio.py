"""Several coresets from one read: reads, bits, memory, errors that name the member."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskcoreset
from daskcoreset import (
    SVM,
    Coreset,
    Lightweight,
    Logistic,
    Mixture,
    Portfolio,
    StrongKMeans,
    Uniform,
)
from daskcoreset.errors import InvalidInputError

ROWS, CHUNK, D = 6000, 500, 4

METHODS: dict[str, Any] = {
    "clusters": StrongKMeans(5),
    "mixture": Mixture(3),
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


def test_build__sizes_by_name_leave_others_at_the_default() -> None:
    X, _ = make_data(1000)
    methods = {"a": "uniform", "b": "lightweight"}
    portfolio = daskcoreset.build_many(X, sizes={"a": 20}, methods=methods)
    assert [len(coreset) for coreset in portfolio.values()] == [20, 1000]


@pytest.mark.parametrize("chunks", [1000, 100])
def test_build__names_the_member_that_the_data_do_not_suit(chunks: int) -> None:
    X, y = make_data(1000)
    one_class = np.zeros(1000)
    with pytest.raises(InvalidInputError, match=r"^member '\{s\}': (?!member)"):
        daskcoreset.build_many(
            X, one_class, chunks=chunks, sizes=50, methods={"a": "uniform", "{s}": SVM()}
        )
    labels = y.astype(float)
    labels[712] = np.nan
    with pytest.raises(InvalidInputError, match=r"^member '\{s\}': y is .*712"):
        daskcoreset.build_many(
            X, labels, chunks=chunks, sizes=50, methods={"a": "uniform", "{s}": SVM()}
        )


def test_to_zarr__brings_all_back(tmp_path: Path) -> None:
    X, y = make_data(1000)
    names = np.array(["no", "perhaps", "yes"])[y]
    portfolio = daskcoreset.build_many(X, names, sizes=400, methods={**METHODS, "a b/ü": Uniform()})
    portfolio.to_zarr(tmp_path / "p.zarr")
    again = Portfolio.from_zarr(tmp_path / "p.zarr")
    assert again.equals(portfolio)
    assert pickle.loads(pickle.dumps(portfolio)).equals(portfolio)
    with pytest.raises(daskcoreset.errors.StoreError, match="exists"):
        portfolio.to_zarr(tmp_path / "p.zarr")
    position = list(portfolio).index("a b/ü")
    shutil.rmtree(tmp_path / "p.zarr" / f"member{position}" / "points" / "c")
    with pytest.raises(daskcoreset.errors.StoreError, match="does not match"):
        Portfolio.from_zarr(tmp_path / "p.zarr")
    portfolio.to_zarr(tmp_path / "p.zarr", overwrite=True)
    with pytest.raises(daskcoreset.errors.StoreError, match="not a 'coreset'"):
        Coreset.from_zarr(tmp_path / "p.zarr")
    assert "6 coresets of 1,000 rows, 4 features, 2 reads" in repr(portfolio)
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
    rows = daskcoreset.open_rows(cube, **dims)
    methods: dict[str, Any] = {"means": Lightweight(), "plain": Uniform()}
    portfolio = daskcoreset.build_many(rows, methods=methods, sizes=50, random_state=1)
    for name, method in methods.items():
        alone = daskcoreset.build(rows, method=method, size=50, random_state=1)
        assert portfolio[name].equals(alone)
    np.testing.assert_array_equal(portfolio["plain"].points, X[portfolio["plain"].indices])
    store = zarr.storage.MemoryStore()
    portfolio.to_zarr(store)
    assert Portfolio.from_zarr(store).equals(portfolio)


def test_moments__of_very_many_columns_are_left_out() -> None:
    X = np.random.default_rng(0).normal(size=(30, 1025))
    methods = ["uniform"]
    assert daskcoreset.build_many(X, methods=methods, sizes=5).moments is None
    known = daskcoreset.build_many(X[:, :1024], methods=methods, sizes=5).moments
    assert known is not None
    assert known.count == 30
