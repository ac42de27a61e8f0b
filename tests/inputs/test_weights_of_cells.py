"""Weights and labels of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from tests.acceptance.face import build, errors, open_rows
from tests.acceptance.tools.cubes import DIMS, SHAPE, rows_of, weather

ALL = 10**6


def weights_of(cube: xr.Dataset, weights: Any) -> Any:
    """Return the weight of every row that is there, by its number."""
    with pytest.warns(UserWarning, match="is not below"):
        coreset = build(
            open_rows(cube, sample_dims=DIMS), size=ALL, sample_weight=weights, random_state=0
        )
    found = np.zeros(np.prod(SHAPE))
    found[coreset.indices] = coreset.weights
    return found.reshape(SHAPE)


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
            open_rows(cube.assign(w=areas), feature_dims=()),
            size=5,
            sample_weight="w",
            random_state=0,
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
        coreset = build(open_rows(cube, sample_dims=DIMS), y, size=50, random_state=0)
        np.testing.assert_array_equal(coreset.labels, coreset.indices % 2)
        np.testing.assert_array_equal(coreset.points, rows_of(cube)[coreset.indices])


@pytest.mark.parametrize(
    ("cube", "weights", "message"),
    [
        (weather(), "areas", "sample_weight does not fit X .*'areas'"),
        (
            weather(),
            xr.DataArray(np.ones(3), dims="lat"),
            "along dimension 'lat' because of conflicting dimension sizes",
        ),
        (weather(), xr.DataArray(np.ones(3), dims="z"), r"'z'"),
        (weather(), weather().lat[::-1], "does not fit X .*'lat'"),
        (weather(), np.ones((3, 4)), r"array of the shape \(12, 8, 10\)"),
        (weather(), weather(), "Dataset.*pass a variable of X"),
        (weather(), xr.DataArray(-np.ones(8), dims="lat"), r"weight is -1.0 at row 0 \(time 0"),
    ],
)
def test_weights__that_cannot_be_used(cube: xr.Dataset, weights: Any, message: str) -> None:
    with pytest.raises(errors.InvalidInputError, match=message):
        build(open_rows(cube, sample_dims=DIMS), size=3, sample_weight=weights)


def test_labels__that_hold_no_labels() -> None:
    times = xr.DataArray(np.zeros(12, "M8[ns]"), dims="time")
    with pytest.raises(errors.InvalidTypeError, match="y must hold numbers or text"):
        build(open_rows(weather(), sample_dims=DIMS), times, size=3)
    with pytest.raises(errors.InvalidTypeError, match="sample_weight must hold real numbers"):
        build(open_rows(weather(), sample_dims=DIMS), size=3, sample_weight=times)
