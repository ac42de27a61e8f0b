"""Cells of lazy cubes as rows."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from daskcoreset import build, open_rows
from daskcoreset.errors import InvalidInputError


def test_chunks__of_unknown_size_are_an_error() -> None:
    rows = da.ones((10, 2), chunks=(5, 2))
    unknown = xr.DataArray(rows[da.ones(10, chunks=5) > 0], dims=("x", "f"))
    with pytest.raises(InvalidInputError, match="along 'x', or chunks of unknown size"):
        build(open_rows(unknown, feature_dims="f"), size=3)


@pytest.mark.parametrize("cut", [(5,), (3, 2)])
def test_rows__of_variables_whose_features_are_cut_in_different_ways(
    cut: tuple[int, ...],
) -> None:
    cells = np.arange(40.0).reshape(8, 5)
    cube = xr.Dataset({"a": (("x", "level"), cells), "b": (("level", "x"), -cells.T)})
    lazy = xr.Dataset(
        {
            "a": (("x", "level"), da.from_array(cells, chunks=(3, (2, 2, 1)))),
            "b": (("level", "x"), da.from_array(-cells.T, chunks=(cut, 5))),
        }
    )
    rows = [
        build(open_rows(one, feature_dims="level"), size=4, random_state=0) for one in (cube, lazy)
    ]
    for drawn in rows:
        np.testing.assert_array_equal(drawn.points, np.hstack([cells, -cells])[drawn.indices])
