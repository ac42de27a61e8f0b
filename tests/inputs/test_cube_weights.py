"""Weights and labels of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from daskcoreset import build
from daskcoreset.core.errors import InvalidInputError
from tests.acceptance.tools.cubes import DIMS, SHAPE, weather

ALL = 10**6


def weights_of(cube: xr.Dataset, weights: Any) -> Any:
    """Return the weight of every row that is there, by its number."""
    with pytest.warns(UserWarning, match="is not below"):
        coreset = build(cube, size=ALL, sample_weight=weights, sample_dims=DIMS, random_state=0)
    found = np.zeros(np.prod(SHAPE))
    found[coreset.indices] = coreset.weights
    return found.reshape(SHAPE)


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
