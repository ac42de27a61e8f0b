"""Labelled arrays of several dimensions: dimensions, variables and what bad ones get."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.acceptance.face import Coreset, build, call, errors, estimators, open_rows
from tests.acceptance.tools.cubes import DIMS, SHAPE, rows_of, weather
from tests.acceptance.tools.models import MODELS, rows, targets

LEVELS = xr.DataArray(
    np.random.default_rng(1).normal(size=(4, 3, 5)),
    {"level": [500.0, 850.0, 1000.0], "x": [10, 20, 30, 40, 50]},
    ("time", "level", "x"),
    "z",
    {"units": "m"},
)


@pytest.mark.parametrize(
    ("sample_dims", "feature_dims"),
    [(("time", "x"), "level"), (("time", "x"), None), (None, ["level"])],
)
def test_dims__one_that_is_not_given_is_the_rest(sample_dims: Any, feature_dims: Any) -> None:
    coreset = build(
        open_rows(LEVELS, sample_dims=sample_dims, feature_dims=feature_dims),
        size=7,
        random_state=0,
    )
    rows = LEVELS.transpose("time", "x", "level").to_numpy().reshape(-1, 3)
    np.testing.assert_array_equal(coreset.points, rows[coreset.indices])
    assert coreset.provenance["columns"] == ("500", "850", "1000")
    assert coreset.provenance["sample_dims"] == ("time", "x")
    assert coreset.to_xarray().x.dims == ("row",)


def test_columns__name_variables() -> None:
    cube = weather(masked=0.0)
    coreset = build(open_rows(cube, sample_dims=DIMS, columns=["u10"]), size=5, random_state=0)
    assert coreset.provenance["columns"] == ("u10",)
    np.testing.assert_array_equal(coreset.points[:, 0], rows_of(cube)[coreset.indices, 1])


def test_columns__of_several_dtypes_are_promoted() -> None:
    cube = weather(masked=0.0).assign(d=(DIMS, np.arange(960.0).reshape(SHAPE)))
    for X in (cube, cube.chunk(time=5)):
        coreset = build(open_rows(X, sample_dims=DIMS), size=7, random_state=0)
        assert coreset.points.dtype == np.float64
        np.testing.assert_array_equal(coreset.points[:, 2], coreset.indices)


def built(X: Any, **options: Any) -> Coreset:
    reading = ("sample_dims", "feature_dims", "columns")
    rows = open_rows(X, **{name: options.pop(name) for name in reading if name in options})
    return build(rows, size=3, **options)


@pytest.mark.filterwarnings("ignore:columns has")  # of a column that y names, too
@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (None, {"sample_dims": ("tim",)}, errors.InvalidInputError,
         r"sample_dims=\['tim'\] .* the dimensions \['time', 'lat', 'lon'\] of X"),
        (None, {"sample_dims": DIMS, "feature_dims": "level"}, errors.InvalidInputError,
         r"feature_dims=\['level'\]"),
        (None, {"sample_dims": DIMS, "feature_dims": "lat"}, errors.InvalidInputError,
         r"feature_dims=\['lat'\].*in one of them"),
        (None, {"sample_dims": "time", "feature_dims": "lat"}, errors.InvalidInputError,
         r"feature_dims=\['lat'\].*name each dimension.*X\.isel"),
        (None, {"feature_dims": DIMS}, errors.InvalidInputError, "at least one in sample_dims"),
        (None, {"sample_dims": ("time", "time")}, errors.InvalidInputError, "each dimension once"),
        (None, {"sample_dims": 3}, errors.InvalidTypeError, "sample_dims is 3; pass names"),
        (None, {"sample_dims": DIMS, "columns": ["v10"]}, errors.InvalidInputError, r"\['v10'\]"),
        (None, {"sample_dims": DIMS, "chunks": 5}, errors.InvalidInputError, r"X\.chunk\(...\)"),
        (None, {"sample_dims": DIMS, "y": "v10"}, errors.InvalidInputError,
         "y does not fit X .*'v10'"),
        (None, {"sample_dims": DIMS, "columns": ["t2m"], "y": "t2m"}, errors.InvalidInputError,
         r"dimensions \[\] of X"),
        ({"d": (DIMS, np.full(SHAPE, "a"))}, {"sample_dims": DIMS}, errors.InvalidTypeError,
         r"no real numbers: 'd' \(<U1\)"),
        ({"crs": np.float32(0)}, {"sample_dims": DIMS}, errors.InvalidInputError,
         r"variable 'crs' of X has the dimensions \[\]"),
        ({"b": (("time", "bnds"), np.ones((12, 2), "f4"))}, {"feature_dims": ()},
         errors.InvalidInputError, "nan"),
    ],
)  # fmt: skip
def test_cubes__that_cannot_be_used(
    change: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    cube = weather() if change is None else weather().assign(change)
    if message == "nan":  # a dimension of one variable alone: the others are broadcast
        assert built(cube, random_state=0, **options).n_features == 3
        return
    with pytest.raises(error, match=message):
        built(cube, **options)


@pytest.mark.parametrize("X", [np.ones((3, 2)), da.ones((3, 2)), "a.zarr"])
def test_dims__of_what_has_none(X: Any) -> None:
    with pytest.raises(
        errors.InvalidTypeError, match="are for a DataArray or Dataset of xarray, and X is"
    ):
        build(open_rows(X, sample_dims="time"), size=3)


def test_dims__of_a_dataset_are_asked_for() -> None:
    with pytest.raises(TypeError, match=r'sample_dims=.*X\["variable"\]'):
        build(weather(), size=3)
    with pytest.raises(errors.InvalidInputError, match=r"cells along 'time'"):
        build(open_rows(weather().isel(time=slice(0)), sample_dims=DIMS), size=3)
    with pytest.raises(errors.InvalidInputError, match=r"columns has \['level'\]"):
        build(open_rows(LEVELS, sample_dims="time", columns=["level"]), size=3)


def test_dims__whose_name_is_no_text() -> None:
    cube = xr.DataArray(np.zeros((3, 2, 2)), dims=("a", ("q", "r"), "z"))
    with pytest.raises(errors.InvalidTypeError, match=r"\('q', 'r'\).*X\.rename\(\{\('q', 'r'\)"):
        build(open_rows(cube, sample_dims="a"))
    assert (
        build(open_rows(cube.rename({("q", "r"): "cell"}), sample_dims="a"), size=2).n_features == 4
    )


def test_on_invalid__says_where_in_the_dimensions() -> None:
    cube = weather(masked=0.0).chunk(time=5, lat=3)
    values = cube.t2m.to_numpy()
    values[7, 4, 2] = np.nan
    broken = weather(masked=0.0).assign(t2m=(DIMS, values)).chunk(time=5, lat=3)
    with pytest.raises(errors.InvalidInputError, match=r"row 602 \(time 7, lat 4, lon 2\)"):
        build(open_rows(broken, sample_dims=DIMS), size=3, on_invalid="raise")


def test_coordinates__that_are_bytes_become_text() -> None:
    cells = xr.DataArray(np.ones((2, 1)), {"x": np.array([b"a", b"b"])}, ("x", "f"))
    with pytest.warns(UserWarning, match="is not below"):
        coreset = build(open_rows(cells, sample_dims="x"), size=9)
    assert coreset.coordinates["x"].tolist() == ["a", "b"]


class Place:
    def __str__(self) -> str:
        return "here"


def objects(*values: Any) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def test_coordinates__that_cannot_be_stored_are_text_and_the_warning_says_so() -> None:
    cells = xr.DataArray(np.eye(9), {"x": objects(*[Place() for _ in range(9)])}, ("x", "f"))
    with pytest.warns(
        errors.CoresetWarning, match="coordinate 'x' of X holds Place, which a coreset"
    ):
        coreset = build(open_rows(cells, sample_dims="x"), size=3, random_state=0)
    assert coreset.coordinates["x"].tolist() == ["here"] * 3


@pytest.mark.parametrize("lazy", [False, True])
def test_predict__cells_that_are_masked_have_no_label(lazy: bool) -> None:
    cube = weather()
    land, X = np.isnan(cube.t2m.to_numpy()), rows_of(cube)
    model = call(estimators.CoresetKMeans(2, random_state=0).fit, open_rows(cube, sample_dims=DIMS))
    labels = model.predict(cube.chunk(time=5) if lazy else cube).to_numpy()
    assert land.any()
    assert (np.isnan(labels) == land).all()
    frame = pd.DataFrame(X[~land.ravel()], columns=list(cube))
    assert (labels[~land] == model.predict(frame)).all()


def test_variables__with_feature_dims_and_without() -> None:
    cube = xr.Dataset({"z": LEVELS, "p": LEVELS.isel(level=0, drop=True), "h": ("x", np.ones(5))})
    rows = open_rows(cube, feature_dims="level")
    names = ["z[level=500]", "z[level=850]", "z[level=1000]", "p", "h"]
    assert list(build(rows, size=5, random_state=0).provenance["columns"]) == names
    model = call(estimators.CoresetKMeans(2, random_state=0).fit, rows)
    centers = model.centers_to_xarray()
    assert centers.z.dims == ("cluster", "level")
    assert centers.z.attrs["units"] == "m"
    np.testing.assert_array_equal(centers.z.sel(level=850), model.cluster_centers_[:, 1])
    np.testing.assert_array_equal(centers.p, model.cluster_centers_[:, 3])


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (np.array(["2026-02-09", "2026-02-09T12"], "M8[ns]"), ["2026-02-09", "2026-02-09T12:00"]),
        (np.array([10**15, 10**15 + 1]), ["1000000000000000", "1000000000000001"]),
        (np.array([0.1 + 0.2, 850.0]), ["0.3", "850"]),
        (np.array([850.0, 500.0], np.float32), ["850", "500"]),
        (np.array([1, 2], "m8[s]"), ["1 seconds", "2 seconds"]),
        (np.array(["low", "high"]), ["low", "high"]),
    ],
)
def test_columns__are_called_by_their_coordinates(values: Any, names: list[str]) -> None:
    cube = xr.DataArray(np.arange(8.0).reshape(4, 2), {"step": values}, ("x", "step"))
    assert list(built(cube, feature_dims="step").provenance["columns"]) == names


def test_names__that_are_no_text() -> None:
    with pytest.raises(errors.InvalidTypeError, match="names are not text: \\[0\\]"):
        built(xr.Dataset({0: ("x", np.ones(2))}), sample_dims="x")
    with pytest.raises(errors.InvalidTypeError, match="X is a Variable"):
        built(xr.Variable("x", np.ones(2)), sample_dims="x")


def two_dimensional(X: Any) -> Any:
    return xr.Dataset({name: (("t", "u"), X[:, k].reshape(30, 10)) for k, name in enumerate("ab")})


@pytest.mark.parametrize("name", ["ridge", "elastic net", "logistic", "any regressor", "kernel"])
def test_estimators__take_y_of_two_dimensions_with_a_cube(name: str) -> None:
    make, kind = MODELS[name]
    X = rows()
    cube, y = two_dimensional(X), targets(kind, X).reshape(30, 10)
    labels = xr.DataArray(y, dims=("t", "u"))
    known = make().fit(X, y.ravel()).score(X, y.ravel())
    for given in (y, labels, labels.T.chunk({"t": 7})):
        for data in (cube, cube.chunk({"t": 10}).to_dataarray("feature")):
            model = make().fit(open_rows(data, sample_dims=("t", "u")), given)
            assert model.score(open_rows(data, sample_dims=("t", "u")), given) == pytest.approx(
                known, abs=0.1
            )
            assert model.predict(open_rows(data, sample_dims=("t", "u"))).shape == (30, 10)


def test_ridge__refuses_several_targets_of_a_cube() -> None:
    cube = two_dimensional(rows()).isel(u=0, drop=True)
    model = estimators.CoresetRidge(size=20)
    with pytest.raises(errors.CoresetError, match="y"):
        model.fit(open_rows(cube, sample_dims="t"), np.ones((30, 2)))
