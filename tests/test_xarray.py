"""Cubes in, maps out: reads, labels, and the same answers as of rows in memory."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import daskcoreset.xarray
from daskcoreset import (
    Coreset,
    CoresetStream,
    CoresetTree,
    Draw,
    MergeReduce,
    build,
    open_rows,
    plan,
)
from daskcoreset.errors import (
    CoresetWarning,
    InvalidInputError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.estimators import (
    CoresetGaussianMixture,
    CoresetKMeans,
    CoresetLogisticRegression,
    CoresetSVC,
    MaxMarginClassifier,
    StructuredMaxMargin,
)
from tests.acceptance.tools.counting import CountingScheduler
from tests.acceptance.tools.cubes import DIMS, SHAPE, rows_of, stored, weather

assert daskcoreset.xarray.__all__


def in_memory(cube: xr.Dataset, k: int = 3, weights: Any = None) -> tuple[CoresetKMeans, Any]:
    """Return k-means of the rows in memory, and the labels of all cells."""
    rows = rows_of(cube)
    there = np.isfinite(rows).all(axis=1)
    if weights is not None:
        weights = np.broadcast_to(weights, SHAPE).ravel()[there]
    model = CoresetKMeans(k, n_init=1, random_state=0).fit(rows[there], sample_weight=weights)
    labels = np.full(len(rows), np.nan)
    labels[there] = model.labels_
    return model, labels.reshape([cube.sizes[dim] for dim in DIMS])


def area_of(cube: Any) -> Any:
    return np.cos(np.deg2rad(cube.lat))


# --- the same as in memory -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "weights"),
    [("lazy", True), ("mixed", False), ("transposed", True)],
)
def test_kmeans__is_that_of_the_rows_in_memory(kind: str, weights: bool) -> None:
    cube = weather()
    store, opening = stored(cube, (5, 8, 4))
    given_cubes = {
        "lazy": xr.open_zarr(store, chunks=None, **opening)[["t2m", "u10"]],
        "mixed": cube.assign(t2m=cube.t2m.chunk(time=5, lon=3)),
        "transposed": cube.chunk(time=5, lon=3).transpose("lon", "time", "lat"),
    }
    X = given_cubes[kind]
    areas = area_of(cube) if weights else None
    model = X.coreset.kmeans(3, sample_dims=DIMS, weights=areas, n_init=1, random_state=0)
    plain = None if areas is None else areas.to_numpy()[:, None]
    expected, labels = in_memory(cube, weights=plain)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    predicted = model.predict(X)
    assert predicted.dims == X.t2m.dims
    assert dict(predicted.coords).keys() == dict(X.coords).keys()
    if kind == "transposed":
        assert predicted.chunks == X.t2m.chunks
    assert predicted.chunks is not None  # lazy
    np.testing.assert_array_equal(predicted.transpose(*DIMS).to_numpy(), labels)
    xr.testing.assert_equal(predicted.transpose(*DIMS).lat, cube.lat)


@given(data=st.data())
@settings(max_examples=25)
def test_build__any_chunks_masks_and_orders_of_dimensions(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.integers(1, 5)) for _ in DIMS)
    n_features = data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    values = rng.normal(size=(*shape, n_features))
    values[rng.random(values.shape) < data.draw(st.sampled_from([0.0, 0.2]))] = np.nan
    whole = xr.DataArray(values, dims=(*DIMS, "band"))
    order = data.draw(st.permutations([*DIMS, "band"]))
    chunks = {dim: data.draw(st.integers(1, length)) for dim, length in whole.sizes.items()}
    samples = data.draw(st.permutations(DIMS))
    rows = whole.transpose(*samples, "band").to_numpy().reshape(-1, n_features)
    there = np.isfinite(rows).all(axis=1)
    X = whole.transpose(*order)
    if data.draw(st.booleans()):
        X = X.chunk(chunks)
    if not there.any():
        return
    with pytest.warns(UserWarning, match="is not below"):
        coreset = build(
            open_rows(X, sample_dims=samples), size=10**6, on_invalid="drop", random_state=0
        )
    np.testing.assert_array_equal(coreset.indices, np.flatnonzero(there))
    np.testing.assert_array_equal(coreset.points, rows[there])


@pytest.mark.parametrize(
    "options", [{}, {"draw": Draw(passes=2)}, {"draw": MergeReduce()}], ids=str
)
def test_build__rows_have_their_numbers_and_coordinates(options: dict[str, Any]) -> None:
    cube = weather().chunk(time=5, lat=3, lon=4)
    coreset = cube.coreset.build(60, random_state=0, **options)
    np.testing.assert_array_equal(coreset.points, rows_of(cube)[coreset.indices])
    assert (np.diff(coreset.indices) > 0).all()
    rows = coreset.to_xarray()
    found = cube.load().t2m.sel(time=rows.time, lat=rows.lat, lon=rows.lon)
    np.testing.assert_array_equal(found, coreset.points[:, 0])
    assert rows.feature.values.tolist() == ["t2m", "u10"]


def test_coordinates__of_curved_grids_and_of_many_kinds(tmp_path: Path) -> None:
    cube = weather(masked=0.0).assign_coords(
        nav=(("lat", "lon"), np.arange(80.0).reshape(8, 10)),
        site=("lat", [f"s{i}" for i in range(8)]),
        points=("lon", np.arange(10)),
        one=3.0,
        late=("time", dask.array.ones(12)),
    )
    coreset = cube.coreset.build(20, random_state=0)
    assert set(coreset.coordinates) == {*DIMS, "nav", "site", "points"}
    assert coreset.to_xarray().points_.dims == ("row",)
    np.testing.assert_array_equal(coreset.coordinates["nav"], coreset.indices % 80)
    coreset.to_zarr(tmp_path / "c")
    assert Coreset.from_zarr(tmp_path / "c").equals(coreset)


# --- reads ---------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, {}], ids=["lazy", "dask"])
def test_reads__every_chunk_once_and_none_at_definition(chunks: Any) -> None:
    store, opening = stored(weather(), (5, 8, 4))
    cube = xr.open_zarr(store, chunks=chunks, **opening)
    n_chunks = 2 * 3 * 3
    store.reads.clear()  # of coordinates
    counting = CountingScheduler()
    with dask.config.set(scheduler=counting):
        rows = open_rows(cube, feature_dims=())
        plan(rows, size=50, sample_weight=np.cos(np.deg2rad(cube.lat)))
        assert "1 read" in str(plan(rows, size=50))
        model = CoresetKMeans(3, random_state=0)
        assert counting.calls == 0
    assert not [key for key in store.reads if key.startswith(("t2m", "u10"))]

    def reads() -> list[int]:
        counts = [n for key, n in store.reads.items() if key.startswith(("t2m", "u10"))]
        store.reads.clear()
        return counts

    cube.coreset.fit(model, weights=area_of(cube))
    assert reads() == [1] * n_chunks
    predicted, distances = model.predict(cube), model.transform(cube)
    assert reads() == []
    predicted.compute()
    assert reads() == [1] * n_chunks
    assert distances.dims == (*DIMS, "cluster")
    cube.coreset.build(50, draw=Draw(passes=2), random_state=0)
    assert reads() == [2] * n_chunks
    assert predicted.isel(time=0).compute().notnull().any()
    # The chunks of one time alone; of a small store that Dask has not cut, one block is all.
    assert len(reads()) == (n_chunks if chunks is None else 2 * 3)


# --- what is not there, and what is not as declared -----------------------------------------


@pytest.mark.parametrize("chunks", [None, {"time": 10}], ids=["lazy", "merged"])
def test_missing_chunks__are_errors_unless_they_are_to_be_filled(
    tmp_path: Path, chunks: Any
) -> None:
    path = tmp_path / "cube.zarr"
    encoding = {name: {"chunks": (5, 8, 4), "fill_value": np.nan} for name in ("t2m", "u10")}
    cube = abs(weather(masked=0.0))
    cube.to_zarr(path, encoding=encoding, consolidated=False, zarr_format=3)
    model = CoresetKMeans(2, random_state=0).fit(open_rows(cube, sample_dims=DIMS))
    (path / "u10" / "c" / "1" / "0" / "2").unlink()
    lost = xr.open_zarr(path, chunks=chunks, consolidated=False)
    works: list[Callable[[], Any]] = [
        lambda: lost.coreset.build(10),
        lambda: lost[["t2m"]].coreset.build(10, weights=lost.u10),
        lambda: model.predict(lost).compute(),
    ]
    for work in works:
        with pytest.raises(StoreError, match=r"(?s)c(/1/0/2|hunk) .* is not stored"):
            work()
    options: Any = {"missing_chunks": "fill", "random_state": 0}
    assert lost.coreset.build(10, **options).provenance["n_dropped"] == 5 * 8 * 2
    assert lost.coreset.kmeans(2, **options).coreset_.provenance["n_dropped"] == 5 * 8 * 2
    predicted = model.predict(open_rows(lost, missing_chunks="fill"))
    shutil.rmtree(path)
    with pytest.raises(StoreError, match="cannot be read on host"):
        predicted.compute()


def test_blocks__that_are_not_as_declared_are_errors() -> None:
    ones = dask.array.ones((12, 8, 10), chunks=(6, 8, 5))
    short = xr.Dataset({"t2m": (DIMS, ones.map_blocks(lambda block: block[:1], dtype="f8"))})
    wide = ones.astype("f4").map_blocks(
        lambda block: block.astype("f8"), dtype="f4", meta=np.empty((0, 0, 0), "f4")
    )
    with pytest.raises(InvalidInputError, match=r"X has shape \(1, 8, 5\) in a block"):
        short.coreset.build(10)
    with pytest.raises(InvalidInputError, match="sample_weight has shape"):
        weather().coreset.build(10, weights=short.t2m)
    with pytest.raises(InvalidInputError, match="X has dtype float64 in block 0"):
        xr.Dataset({"t2m": (DIMS, wide)}).coreset.build(10)


# --- what models remember ------------------------------------------------------------------


def test_predict__takes_other_cubes_with_these_features() -> None:
    cube = weather()
    model = cube.coreset.kmeans(3, n_init=1, random_state=0)
    at_a_place = cube.isel(lat=2, lon=4)
    assert model.predict(at_a_place).dims == ("time",)
    np.testing.assert_array_equal(model.predict(cube).isel(lat=2, lon=4), model.predict(at_a_place))
    assert model.score(cube, sample_weight=area_of(cube)) < 0
    rows = rows_of(cube)[np.isfinite(rows_of(cube)).all(axis=1)]
    with pytest.warns(UserWarning, match="valid feature names"):
        assert model.predict(rows).shape == (len(rows),)
    # Variables go by their names: stores hand them out in any order, and more of them are ignored.
    for other in (cube[["u10", "t2m"]], cube.assign(name=("time", list("abcdefghijkl")))):
        np.testing.assert_array_equal(model.predict(other), model.predict(cube))
    with pytest.raises(InvalidInputError, match=r"columns \['t2', 'u10'\], and the fit has"):
        model.predict(cube.rename(t2m="t2"))
    with pytest.raises(TypeError, match="sample_dims"):
        CoresetKMeans(3).fit(rows).predict(cube)


@pytest.mark.parametrize(
    "levels",
    [
        np.array(["2020-01-01", "2020-02-01", "2020-03-01"], "M8[ns]"),
        np.array(["low", "middle", "top"]),
        np.array([1 / 3, 7e-20, 1.0], ">f4"),
        None,
    ],
)
def test_coreset__of_a_cube_knows_its_features(levels: Any, tmp_path: Path) -> None:
    attrs = {"units": "K", "valid_range": np.array([0.0, 1.0]), "missing": np.nan}
    values = np.random.default_rng(0).normal(size=(30, 3, 8))
    coords = {} if levels is None else {"level": levels}
    air = xr.DataArray(values, coords, ("time", "level", "x"), "air", attrs).chunk(time=10)
    build(open_rows(air, feature_dims="level"), size=50, random_state=0, on_invalid="drop").to_zarr(
        tmp_path / "c"
    )
    coreset = Coreset.from_zarr(tmp_path / "c")
    model = CoresetKMeans(2, random_state=0).fit(coreset)
    assert model.predict(air).dims == ("time", "x")
    with pytest.raises(InvalidInputError, match=r"2 features|feature names should match"):
        model.predict(air.isel(level=[0, 1]))
    if levels is not None:
        with pytest.raises(InvalidInputError, match="feature names should match"):
            model.predict(air.isel(level=[1, 0, 2]))
    centers = model.centers_to_xarray()
    assert centers.air.dims == ("cluster", "level")
    assert centers.air.attrs == {"units": "K"}
    if levels is not None:
        assert centers.level.equals(air.level)


def test_estimators__answer_with_maps() -> None:
    cube = weather().chunk(time=5)
    there = cube.t2m.notnull()
    warm = (cube.t2m > 10).where(there, 0).astype(int)
    classifier = cube.coreset.fit(CoresetLogisticRegression(size=100, random_state=0), warm)
    predicted = classifier.predict(cube)
    assert predicted.dtype == np.float64
    np.testing.assert_array_equal(predicted.isnull(), ~there)
    assert classifier.score(cube, warm) > 0.95
    shares = classifier.predict_proba(cube)
    assert shares.dims == (*DIMS, "class")
    assert shares["class"].to_numpy().tolist() == classifier.classes_.tolist() == [0, 1]
    warmer = shares.sel({"class": 1}) > 0.5
    np.testing.assert_array_equal(warmer.where(there), predicted)
    text = cube.coreset.fit(CoresetSVC(size=100, random_state=0), warm.astype(str))
    assert set(text.predict(cube).to_numpy()[there.to_numpy()]) == {"0", "1"}
    mixture = cube.coreset.fit(CoresetGaussianMixture(2, random_state=0))
    assert mixture.score_samples(cube).dims == DIMS
    assert mixture.predict_proba(cube).dims == (*DIMS, "component")
    means = mixture.means_to_xarray()
    assert dict(means.sizes)["component"] == 2
    assert means.t2m.attrs == cube.t2m.attrs
    np.testing.assert_array_equal(means.t2m, mixture.means_[:, 0])


def test_streams__say_how_the_rows_of_a_cube_are_passed(tmp_path: Path) -> None:
    cube = open_rows(weather(), feature_dims=())
    takers: tuple[Callable[..., Any], ...] = (
        CoresetStream(size=10).partial_fit,
        CoresetTree.create(tmp_path / "tree", size=10).append,
        StructuredMaxMargin().fit,
        partial(MaxMarginClassifier().fit, y=np.arange(2)),
    )
    for take in takers:
        with pytest.raises(InvalidInputError, match=r"numbers rows in their order.*X\.stack\("):
            take(cube)


def test_predictions__are_written_in_another_format_of_zarr(tmp_path: Path) -> None:
    """Coordinates remember the codecs of their store, which no other format has."""
    encoding = {"lat": {"chunks": (3,)}, "time": {"units": "hours since 2020-01-01"}}
    weather().to_zarr(tmp_path / "in", encoding=encoding, consolidated=False, zarr_format=3)
    cube = xr.open_zarr(tmp_path / "in", consolidated=False)
    before = {name: dict(coord.encoding) for name, coord in cube.coords.items()}
    model = cube.coreset.kmeans(2, columns=["t2m", "u10"], random_state=0)
    for name, made in (("labels", model.predict(cube)), ("distances", model.transform(cube))):
        path = tmp_path / name
        made.rename(name).to_dataset().to_zarr(path, consolidated=False, zarr_format=2)
        again = xr.open_zarr(path, consolidated=False)
        xr.testing.assert_equal(again[name], made)
    assert {name: dict(coord.encoding) for name, coord in cube.coords.items()} == before


# --- workers -------------------------------------------------------------------------------


def test_predict__of_a_single_cell_is_a_label() -> None:
    cube = weather(masked=0.0)
    cube = cube.assign(height=cube.t2m.isel(time=0, drop=True))
    model = cube.coreset.kmeans(3, random_state=0)
    labels = model.predict(cube)
    for chunks in (None, 1):
        X = cube if chunks is None else cube.chunk(chunks)
        one = model.predict(X.isel(time=2, lat=3, lon=4))
        xr.testing.assert_identical(one.compute(), labels.isel(time=2, lat=3, lon=4).compute())
        # Of a place the height is the same at all times.
        place = model.predict(X.isel(lat=3, lon=4))
        xr.testing.assert_identical(place.compute(), labels.isel(lat=3, lon=4).compute())
    assert model.transform(cube.isel(time=2, lat=3, lon=4)).dims == ("cluster",)
    regions = cube.t2m.coreset.kmeans(3, feature_dims="time", random_state=0)
    region = regions.predict(cube.t2m.isel(lat=3, lon=4))
    xr.testing.assert_identical(
        region.compute(), regions.predict(cube.t2m).isel(lat=3, lon=4).compute()
    )


def test_predict__another_variable_than_was_fitted_warns() -> None:
    cube = weather(masked=0.0)
    regions = cube.t2m.coreset.kmeans(3, feature_dims="time", random_state=0)
    for X in (cube.u10, cube[["u10"]]):
        with pytest.warns(CoresetWarning, match="'u10', but the model was fitted on 't2m'"):
            regions.predict(X)
    for X in (cube.t2m, cube, cube.u10.rename("t2m"), cube.t2m.rename(None)):
        regions.predict(X)


def test_source_rows__of_a_cube_names_a_selection_that_works() -> None:
    values = np.random.default_rng(0).normal(size=(2, 3, 4))
    cube = xr.Dataset({name: (("time", "place"), values[i]) for i, name in enumerate("tp")})
    rows = open_rows(cube, sample_dims=["time", "place"])
    coreset = build(rows, size=5, random_state=0)
    with pytest.raises(InvalidInputError, match="X is a cube") as caught:
        coreset.source_rows(0, rows)
    told = str(caught.value.remedy).partition("for example ")[2]
    cell = eval(told, {"X": cube, "coreset": coreset, "np": np})  # noqa: S307 - our own message
    assert [float(cell["t"]), float(cell["p"])] == coreset.points[0].tolist()


def test_import__without_xarray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    monkeypatch.delitem(sys.modules, "daskcoreset.xarray")
    with pytest.raises(MissingDependencyError, match=r'pip install "daskcoreset\[xarray\]"'):
        importlib.import_module("daskcoreset.xarray")
