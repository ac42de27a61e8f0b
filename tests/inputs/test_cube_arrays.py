"""Cells to rows and columns, and back."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from daskcoreset import build
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.cube_arrays import Plane, flattened, unflattened


def test_flattened__is_a_view_where_cells_lie_as_rows() -> None:
    cells = np.arange(24.0).reshape(2, 3, 4)
    plane = Plane(("t", "x", "level"), ("t", "x"), ("level",))
    assert np.shares_memory(flattened([plane], [cells], (2, 3), flat=False), cells)
    turned = Plane(("level", "x", "t"), ("t", "x"), ("level",))
    rows = flattened([turned], [cells.transpose(2, 1, 0)], (2, 3), flat=False)
    np.testing.assert_array_equal(rows, cells.reshape(6, 4))


def test_unflattened__has_the_cells_of_every_block() -> None:
    blocks = da.from_array(np.arange(12), chunks=((4, 2, 4, 2),))
    cells = unflattened(blocks, ((2, 2), (2, 1)))
    assert cells.chunks == ((2, 2), (2, 1))
    assert cells.compute().tolist() == [[0, 1, 4], [2, 3, 5], [6, 7, 10], [8, 9, 11]]


def test_chunks__of_unknown_size_are_an_error() -> None:
    rows = da.ones((10, 2), chunks=(5, 2))
    unknown = xr.DataArray(rows[da.ones(10, chunks=5) > 0], dims=("x", "f"))
    with pytest.raises(InvalidInputError, match="chunks of unknown size along 'x'"):
        build(unknown, size=3, feature_dims="f")


@pytest.mark.parametrize("cut", [(5,), (3, 2), (2, 3)])
def test_dask_rows__of_variables_whose_features_are_cut_in_different_ways(
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
    rows = [build(one, size=4, feature_dims="level", random_state=0) for one in (cube, lazy)]
    for drawn in rows:
        np.testing.assert_array_equal(drawn.points, np.hstack([cells, -cells])[drawn.indices])
