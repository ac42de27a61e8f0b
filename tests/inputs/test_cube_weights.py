"""Weights and labels of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from daskcoreset import build
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from tests.tools.cubes import DIMS, SHAPE, rows_of, weather

ALL = 10**6


def weights_of(cube: xr.Dataset, weights: Any) -> Any:
    """Return the weight of every row that is there, by its number."""
    with pytest.warns(UserWarning, match="is not below"):
        coreset = build(cube, size=ALL, sample_weight=weights, sample_dims=DIMS, random_state=0)
    found = np.zeros(np.prod(SHAPE))
    found[coreset.indices] = coreset.weights
    return found.reshape(SHAPE)


@pytest.mark.parametrize("chunks", [None, {"time": 5, "lat": 3, "lon": 4}])
@pytest.mark.parametrize("attribute", ["units", "standard_name", "axis"])
def test_area__is_the_cosine_of_latitude(chunks: Any, attribute: str) -> None:
    cube = weather()
    cube.lat.attrs = {attribute: {"units": "degree_N", "axis": "Y"}.get(attribute, "latitude")}
    cube = cube if chunks is None else cube.chunk(chunks)
    present = np.isfinite(weather().t2m.to_numpy())
    expected = np.cos(np.deg2rad(cube.lat.to_numpy()))[:, None] * present
    np.testing.assert_allclose(weights_of(cube, "area"), expected)


def test_weights__by_name_or_as_a_labelled_array_are_broadcast() -> None:
    cube = weather().chunk(time=5)
    areas = xr.DataArray(np.random.default_rng(0).random((10, 8)), dims=("lon", "lat"))
    present = np.isfinite(cube.t2m.to_numpy())
    expected = areas.to_numpy().T * present
    np.testing.assert_allclose(weights_of(cube, areas), expected)
    np.testing.assert_allclose(weights_of(cube, areas.chunk(lat=2)), expected)
    named = cube.assign_coords(area=areas.transpose())
    np.testing.assert_allclose(weights_of(named, "area"), expected)
    assert (
        "w"
        not in build(
            cube.assign(w=areas), size=5, sample_weight="w", feature_dims=(), random_state=0
        ).provenance["columns"]
    )
    masked = areas.transpose().expand_dims(time=12).where(present)
    np.testing.assert_allclose(weights_of(cube, masked), expected)
    flat = masked.to_numpy().ravel()
    np.testing.assert_allclose(weights_of(cube, flat), expected)


def test_labels__of_cells() -> None:
    cube = weather().chunk(time=5)
    labels = xr.DataArray(np.arange(960).reshape(SHAPE) % 2, dims=DIMS)
    for y in (labels, labels.chunk(lat=2), labels.transpose(), labels.to_numpy()):
        coreset = build(cube, y, size=50, sample_dims=DIMS, random_state=0)
        np.testing.assert_array_equal(coreset.labels, coreset.indices % 2)
        np.testing.assert_array_equal(coreset.points, rows_of(cube)[coreset.indices])


def changed(name: str, values: Any, **attrs: str) -> xr.Dataset:
    return weather().assign_coords({name: (name, values, attrs)})


@pytest.mark.parametrize(
    ("cube", "weights", "message"),
    [
        (
            changed("lat", np.arange(8)),
            "area",
            r'none says that it is latitude; set X\["lat"\].attrs',
        ),
        (
            weather().drop_vars(["lat"]).assign_coords(y0=("lat", np.arange(8.0))),
            "area",
            r'none says that it is latitude; set X\["LATITUDE"\].* of the one that is',
        ),
        (changed("lat", np.arange(8) * 1e5, axis="Y"), "area", "which are no degrees of latitude"),
        (weather(), "areas", "sample_weight is 'areas', but X has the variables"),
        (weather(), xr.DataArray(np.ones(3), dims="lat"), "3 cells along 'lat', and X has 8"),
        (weather(), xr.DataArray(np.ones(3), dims="z"), r"dimensions \['z'\]"),
        (weather(), weather().lat[::-1], "other coordinates along 'lat'.*reindex_like"),
        (weather(), np.ones((3, 4)), r"shape \(3, 4\), and the rows of X"),
        (weather(), weather(), "is a Dataset; pass one of its variables"),
        (weather(), xr.DataArray(-np.ones(8), dims="lat"), r"weight is -1.0 at row 0 \(time 0"),
    ],
)
def test_weights__that_cannot_be_used(cube: xr.Dataset, weights: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        build(cube, size=3, sample_weight=weights, sample_dims=DIMS)


def test_area__of_several_latitudes_is_by_that_of_a_dimension() -> None:
    north = {"units": "degrees_north"}
    first = weather().drop_vars("lat").assign_coords(start=("lat", np.arange(8.0), north))
    expected = weights_of(weather(), "area")
    both = first.assign_coords(lat=weather().lat)
    assert list(both.coords).index("start") < list(both.coords).index("lat")
    np.testing.assert_array_equal(weights_of(both, "area"), expected)
    ends = first.assign_coords(end=("lat", np.arange(8.0) + 1, north))
    with pytest.raises(InvalidInputError, match=r"\['start', 'end'\] .*drop_vars\('end'\)"):
        build(ends, size=3, sample_weight="area", sample_dims=DIMS)


def test_area__of_a_grid_that_is_not_regular() -> None:
    north, east = {"units": "degrees_north"}, {"units": "degrees_east"}
    bent = weather().drop_vars("lat").assign_coords(nav=(("lat", "lon"), np.ones((8, 10)), north))
    cells = xr.Dataset(
        {"t": ("cell", np.ones(4))},
        {"y": ("cell", np.ones(4), north), "x": ("cell", np.ones(4), east)},
    )
    for cube in (bent, cells):
        with pytest.raises(InvalidInputError, match="pass the areas as a DataArray"):
            build(cube, size=3, sample_weight="area", feature_dims=())


def test_area__of_a_latitude_that_is_not_of_the_rows() -> None:
    for cube, rows in ((weather(), ("time", "lon")), (weather().isel(lat=3), ("time", "lon"))):
        with pytest.raises(InvalidInputError, match=r"'lat' has the dimensions .*not of the rows"):
            build(cube, size=3, sample_weight="area", sample_dims=rows)


def test_labels__that_hold_no_labels() -> None:
    times = xr.DataArray(np.zeros(12, "M8[ns]"), dims="time")
    with pytest.raises(InvalidTypeError, match="y must hold numbers or text"):
        build(weather(), times, size=3, sample_dims=DIMS)
    with pytest.raises(InvalidTypeError, match="sample_weight must hold numbers, found"):
        build(weather(), size=3, sample_weight=times, sample_dims=DIMS)


def test_area__of_latitude_in_radians() -> None:
    cube = weather(masked=0.0)
    degrees = cube.lat.to_numpy()
    expected = build(cube, size=50, sample_dims=DIMS, sample_weight="area", random_state=0)
    for units, lat in (("radians", np.deg2rad(degrees)), ("degrees", degrees), (None, degrees)):
        attrs = {"standard_name": "latitude"} | ({} if units is None else {"units": units})
        named = cube.assign_coords(lat=("lat", lat, attrs))
        coreset = build(named, size=50, sample_dims=DIMS, sample_weight="area", random_state=0)
        np.testing.assert_array_equal(coreset.indices, expected.indices)
        np.testing.assert_allclose(coreset.weights, expected.weights)
    for attrs, message in (
        ({}, "may be in degrees or in radians"),
        ({"units": "m"}, "has the units 'm'"),
    ):
        attrs["standard_name"] = "latitude"
        named = cube.assign_coords(lat=("lat", np.deg2rad(degrees), attrs))
        with pytest.raises(InvalidInputError, match=message):
            build(named, size=50, sample_dims=DIMS, sample_weight="area")
    named = cube.assign_coords(lat=("lat", degrees.astype(str), cube.lat.attrs))
    with pytest.raises(InvalidInputError, match=r"holds <U.*no degrees of latitude"):
        build(named, size=50, sample_dims=DIMS, sample_weight="area")
