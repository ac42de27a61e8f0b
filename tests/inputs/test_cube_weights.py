"""Weights and labels of cells."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset import build, open_rows
from daskcoreset.core.errors import InvalidInputError
from tests.acceptance.tools.cubes import DIMS, weather


def test_area__of_latitude_in_radians() -> None:
    cube = weather(masked=0.0)
    degrees = cube.lat.to_numpy()
    expected = build(
        open_rows(cube, sample_dims=DIMS), size=50, sample_weight="area", random_state=0
    )
    for units, lat in (("radians", np.deg2rad(degrees)), ("degrees", degrees), (None, degrees)):
        attrs = {"standard_name": "latitude"} | ({} if units is None else {"units": units})
        named = cube.assign_coords(lat=("lat", lat, attrs))
        coreset = build(
            open_rows(named, sample_dims=DIMS), size=50, sample_weight="area", random_state=0
        )
        np.testing.assert_array_equal(coreset.indices, expected.indices)
        np.testing.assert_allclose(coreset.weights, expected.weights)
    for attrs, message in (
        ({}, "may be in degrees or in radians"),
        ({"units": "m"}, "has the units 'm'"),
    ):
        attrs["standard_name"] = "latitude"
        named = cube.assign_coords(lat=("lat", np.deg2rad(degrees), attrs))
        with pytest.raises(InvalidInputError, match=message):
            build(open_rows(named, sample_dims=DIMS), size=50, sample_weight="area")
    named = cube.assign_coords(lat=("lat", degrees.astype(str), cube.lat.attrs))
    with pytest.raises(InvalidInputError, match=r"holds <U.*no degrees of latitude"):
        build(open_rows(named, sample_dims=DIMS), size=50, sample_weight="area")
