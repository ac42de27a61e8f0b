"""Cubes of xarray."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools.models import MODELS, rows, targets

xr = pytest.importorskip("xarray")


def _cube(X: Any) -> Any:
    return xr.Dataset({name: (("t", "u"), X[:, k].reshape(30, 10)) for k, name in enumerate("ab")})


@pytest.mark.parametrize("name", ["ridge", "elastic net", "logistic", "any regressor", "kernel"])
def test_estimators__take_y_of_two_dimensions_with_a_cube(name: str) -> None:
    make, kind = MODELS[name]
    X = rows()
    cube, y = _cube(X), targets(kind, X).reshape(30, 10)
    labels = xr.DataArray(y, dims=("t", "u"))
    known = make().fit(X, y.ravel()).score(X, y.ravel())
    for given in (y, labels, labels.T.chunk({"t": 7})):
        for data in (cube, cube.chunk({"t": 10}).to_dataarray("feature")):
            model = make().fit(data, given, sample_dims=("t", "u"))
            assert model.score(data, given, sample_dims=("t", "u")) == pytest.approx(known, abs=0.1)
            assert model.predict(data, sample_dims=("t", "u")).shape == (30, 10)


def test_ridge__refuses_several_targets_of_a_cube() -> None:
    cube = _cube(rows()).isel(u=0, drop=True)
    model = face.estimators.CoresetRidge(size=20)
    with pytest.raises(face.CoresetError, match="y"):
        model.fit(cube, np.ones((30, 2)), sample_dims="t")
