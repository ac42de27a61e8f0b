"""Values that are packed or filled, bounds of cells, and metadata that are old."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

from tests.acceptance.face import Coreset, CoresetTree, CoresetWarning, build, open_rows

RNG = np.random.default_rng(11)

VALUES = RNG.normal(15.0, 4.0, size=(40, 3))

DECODER = "xarray.open_dataset"

# How a variable is stored, and what the warning says of it.
CODED: dict[str, tuple[dict[str, Any], str]] = {
    "scale": ({"dtype": "i2", "scale_factor": 0.01, "_FillValue": -1}, "scale_factor=0.01"),
    "offset": ({"dtype": "i4", "add_offset": 273.15, "_FillValue": -9}, "add_offset=273.15"),
    "fill": ({"dtype": "f4", "_FillValue": -9999.0}, "_FillValue="),
    "missing": ({"dtype": "f8", "_FillValue": None, "missing_value": 1e20}, "missing_value=1e"),
    "unsigned": ({"dtype": "u1", "_FillValue": 255}, "_FillValue=255"),
}

PLAIN: list[dict[str, Any]] = [
    {},
    {"dtype": "f4", "scale_factor": 1.0, "add_offset": 0.0, "_FillValue": np.nan},
    {"_FillValue": None},
]


def rows(missing: float = np.nan) -> xr.Dataset:
    values = VALUES.clip(0, 200)
    values[7, 1] = missing
    return xr.Dataset({"t2m": (("time", "site"), values)})


def by_zarr(path: Path, data: xr.Dataset, encoding: dict[str, Any], version: Any) -> Any:
    data.to_zarr(path, encoding={"t2m": encoding}, zarr_format=version, consolidated=False)
    return path


def by_hdf5(path: Path, data: xr.Dataset, encoding: dict[str, Any]) -> Any:
    """Write what xarray writes to NetCDF-4 files, which are HDF5 files."""
    path = path.with_suffix(".h5")
    stored = data["t2m"].variable.copy(deep=False)
    stored.encoding = encoding
    coded = xr.conventions.encode_cf_variable(stored, name="t2m")
    with h5py.File(path, "w") as file:
        file["t2m"] = coded.to_numpy()
        for key, value in coded.attrs.items():
            file["t2m"].attrs[key] = np.atleast_1d(value)
    return path


def by_zarr_2(path: Path, data: xr.Dataset, encoding: dict[str, Any]) -> Any:
    return by_zarr(path, data, encoding, 2)


def by_zarr_3(path: Path, data: xr.Dataset, encoding: dict[str, Any]) -> Any:
    return by_zarr(path, data, encoding, 3)


WRITERS: dict[str, Callable[[Path, xr.Dataset, dict[str, Any]], Any]] = {
    "zarr 2": by_zarr_2,
    "zarr 3": by_zarr_3,
    "hdf5": by_hdf5,
    "undecoded": lambda *args: xr.open_zarr(
        by_zarr_3(*args), mask_and_scale=False, consolidated=False
    )["t2m"],
    "undecoded cube": lambda *args: open_rows(
        xr.open_zarr(by_zarr_2(*args), mask_and_scale=False, chunks=None, consolidated=False),
        sample_dims=["time"],
    ),
}


@pytest.mark.parametrize(
    ("writer", "coded"),
    [
        ("zarr 2", "fill"),
        ("zarr 2", "offset"),
        ("zarr 3", "scale"),
        ("zarr 3", "fill"),
        ("hdf5", "missing"),
        ("hdf5", "unsigned"),
        ("undecoded", "offset"),
        ("undecoded", "missing"),
        ("undecoded cube", "scale"),
        ("undecoded cube", "unsigned"),
    ],
)
def test_build__warns_of_values_that_are_coded(writer: str, coded: str, tmp_path: Path) -> None:
    encoding, said = CODED[coded]
    source = WRITERS[writer](tmp_path / "x", rows(0.0), dict(encoding))
    with pytest.warns(CoresetWarning, match=DECODER) as caught:
        build(source, size=9, random_state=0)
    assert any(said in str(one.message) for one in caught)


@pytest.mark.parametrize("writer", WRITERS)
def test_build__does_not_warn_without_cause(writer: str, tmp_path: Path) -> None:
    for number, encoding in enumerate(PLAIN):
        source = WRITERS[writer](tmp_path / str(number), rows(0.0), dict(encoding))
        assert len(build(source, size=9, random_state=0)) == 9


@pytest.mark.parametrize("version", [2, 3])
def test_build__of_integers_without_fill_value_does_not_warn(version: Any, tmp_path: Path) -> None:
    data = rows(0.0).astype("i2")
    assert len(build(by_zarr(tmp_path / "x", data, {}, version), size=9, random_state=0)) == 9
    zarr.create_array(tmp_path / "y", data=VALUES, zarr_format=version, fill_value=7.0)
    assert len(build(tmp_path / "y", size=9, random_state=0)) == 9


def test_build__of_decoded_values_does_not_warn(tmp_path: Path) -> None:
    path = by_zarr(tmp_path / "x", rows(), CODED["scale"][0], 3)
    data = xr.open_zarr(path, consolidated=False)
    coreset = build(open_rows(data, sample_dims=["time"]), size=9, random_state=0)
    assert coreset.points.max() < 40
    with pytest.raises(ValueError, match="NaN"):
        build(data["t2m"], size=9)


def test_warning__names_labels_and_weights_that_are_coded(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"], file["w"] = VALUES, np.ones(40)
        file["w"].attrs["scale_factor"] = np.float32(0.5)
        file["X"].attrs["units"] = "K"
    with pytest.warns(CoresetWarning, match=r"sample_weight is stored with scale_factor=0\.5"):
        build(tmp_path / "x.h5", sample_weight="w", size=9)


def test_warning__names_the_first_of_several_files_that_is_coded(tmp_path: Path) -> None:
    paths = [tmp_path / "0.h5", tmp_path / "1.h5"]
    for path in paths:
        with h5py.File(path, "w") as file:
            file["X"] = VALUES
    with h5py.File(paths[1], "a") as file:
        file["X"].attrs["add_offset"] = 9.0
    with pytest.warns(CoresetWarning, match=r"X is stored with add_offset=9"):
        build(paths, size=9)


# --- bounds --------------------------------------------------------------------------------


def with_bounds() -> xr.Dataset:
    """Return a cube of 6 x 4 x 5 cells, with the bounds of two coordinates and of a climatology."""
    cube = xr.Dataset(
        {
            "t2m": (("time", "lat", "lon"), RNG.normal(size=(6, 4, 5))),
            "lat_bnds": (("lat", "bounds2"), RNG.normal(size=(4, 2))),
            "lon_bnds": (("lon", "bounds2"), RNG.normal(size=(5, 2))),
            "season_limits": (("time", "bounds2"), RNG.normal(size=(6, 2))),
            "u10": (("time", "lat", "lon"), RNG.normal(size=(6, 4, 5))),
        },
        {"time": np.arange(6), "lat": np.arange(4.0), "lon": np.arange(5.0)},
    )
    cube.lat.attrs["bounds"], cube.lon.encoding["bounds"] = "lat_bnds", "lon_bnds"
    cube.time.attrs["climatology"] = "season_limits"
    return cube


def features(coreset: Coreset) -> list[str]:
    return [one["name"] for one in coreset.provenance["cube"]["features"]]


@pytest.mark.parametrize(
    "dims",
    [{"sample_dims": ["time", "lat", "lon"]}, {"feature_dims": []}, {"feature_dims": ["lon"]}],
    ids=str,
)
def test_bounds__are_no_features_and_no_rows(dims: dict[str, Any]) -> None:
    cube = with_bounds()
    bare = cube.drop_vars(["lat_bnds", "lon_bnds", "season_limits"])
    options: dict[str, Any] = {"size": 9, "random_state": 0}
    coreset, other = (build(open_rows(one, **dims), **options) for one in (cube, bare))
    assert features(coreset) == ["t2m", "u10"]
    assert coreset.provenance["sample_shape"] == other.provenance["sample_shape"]
    np.testing.assert_array_equal(coreset.points, other.points)


def test_bounds__that_are_asked_for_are_features() -> None:
    coreset = build(open_rows(with_bounds(), sample_dims=["lat"], columns=["lat_bnds"]), size=3)
    assert features(coreset) == ["lat_bnds"]


def test_variables__that_nothing_names_as_bounds_are_features() -> None:
    cube = with_bounds()
    del cube.lat.attrs["bounds"]
    with pytest.raises(ValueError, match="bounds2"):
        build(open_rows(cube, sample_dims=["time", "lat", "lon"], feature_dims=[]), size=9)


# --- metadata that are old -----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
@pytest.mark.parametrize("version", [2, 3])
def test_rows__that_were_appended_count_whatever_is_consolidated(
    version: Any, tmp_path: Path
) -> None:
    path = tmp_path / "x.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=version)
    group.create_array("X", data=VALUES[:20], chunks=(5, 3))
    group.create_array("y", data=np.arange(20) % 2, chunks=(20,))
    zarr.consolidate_metadata(path)
    view = CoresetTree.follow(path, tmp_path / "view", y="y", size=5, random_state=0)
    zarr.open_array(path / "X", mode="r+").append(VALUES[20:])
    zarr.open_array(path / "y", mode="r+").append(np.arange(20) % 2)
    options: dict[str, Any] = {"size": 9, "random_state": 0, "method": "uniform"}
    plain = build(VALUES, np.arange(40) % 2, **options)
    for source in (path, zarr.open_group(path, mode="r")):
        coreset = build(source, "y", **options)
        np.testing.assert_array_equal(coreset.indices, plain.indices)
        np.testing.assert_array_equal(coreset.points, plain.points)
    assert view.refresh().added
    assert len(view.leaves) == 8
