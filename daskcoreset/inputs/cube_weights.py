"""Labels and weights of the rows of a cube: by name, as a labelled array, or areas of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.cubes import Layout, is_xarray

# What the CF conventions (section 4.1 and 4.2) have for the units of latitude and longitude.
_UNITS = {
    "latitude": ("degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN"),
    "longitude": ("degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"),
}
_AXES = {"latitude": "Y", "longitude": "X"}

# UDUNITS has more names, and these are the ones in use.
_DEGREES = (*_UNITS["latitude"], "degrees", "degree", "deg")
_RADIANS = ("radians", "radian", "rad")


def variable_of(part: Any, name: str, layout: Layout) -> Any:
    """Return labels or weights as a variable with some of the sample dimensions.

    Parameters
    ----------
    part : str, xarray.DataArray or array
        The name of a variable or coordinate of X, "area" for weights, or an array.
    name : str
        The argument that it was passed as.
    layout : Layout

    Returns
    -------
    xarray.Variable
    """
    if isinstance(part, str):
        found = layout.data[part] if part in layout.data.variables else area_weights(layout)
    elif is_xarray(part):
        found = part
    else:
        return _of_array(part, name, layout)
    if hasattr(found, "data_vars"):
        raise InvalidInputError(f"{name} is a Dataset; pass one of its variables.")
    if strange := [dim for dim in found.dims if dim not in layout.sample_dims]:
        raise InvalidInputError(
            f"{name} has the dimensions {strange}, which are not in "
            f"sample_dims={layout.sample_dims}; select or sum along them first."
        )
    for dim in found.dims:
        expected = layout.data.sizes[dim]
        if found.sizes[dim] != expected:
            raise InvalidInputError(
                f"{name} has {found.sizes[dim]} cells along {dim!r}, and X has {expected}; pass "
                f"one for each."
            )
        indexes = [one.indexes[dim] for one in (found, layout.data) if dim in one.indexes]
        if len(indexes) == 2 and not indexes[0].equals(indexes[1]):
            raise InvalidInputError(
                f"{name} has other coordinates along {dim!r} than X; align them, for example with "
                f"{name}.reindex_like(X)."
            )
    return found.variable


def _of_array(part: Any, name: str, layout: Layout) -> Any:
    import xarray as xr

    array = part if hasattr(part, "__dask_graph__") else np.asarray(part)
    if array.shape == (np.prod(layout.shape, dtype=np.int64),) and isinstance(array, np.ndarray):
        array = array.reshape(layout.shape)
    if array.shape != layout.shape:
        raise InvalidInputError(
            f"{name} has the shape {array.shape}, and the rows of X lie along {layout.sample_dims} "
            f"in the shape {layout.shape}; pass a DataArray, or an array of this shape."
        )
    return xr.Variable(layout.sample_dims, array)


def area_weights(layout: Layout) -> Any:
    """Return the cosine of latitude: areas of the cells of a regular grid, but for a factor.

    Latitude is the coordinate that the attributes of the CF conventions name: ``units``,
    ``standard_name`` or ``axis``. Its units are degrees or radians; those that have none are
    degrees, if there are values that cannot be radians.
    """
    rows = set(layout.sample_dims)
    coords = list(layout.data.coords.values())
    of_rows = [coord for coord in coords if coord.dims and rows.issuperset(coord.dims)]
    latitude = _coordinate("latitude", of_rows)
    if latitude is None:
        if (other := _coordinate("latitude", coords)) is not None:
            raise InvalidInputError(
                f'sample_weight is "area", and {other.name!r} has the dimensions '
                f"{list(other.dims)}, and rows lie along {list(layout.sample_dims)}, so that it is "
                f"not of the rows; leave sample_weight out, or pass weights as a DataArray."
            )
        names = [str(name) for name in layout.data.coords]
        near = next((name for name in names if name.lower().startswith("lat")), "LATITUDE")
        raise InvalidInputError(
            f'sample_weight is "area", and of the coordinates of X, {names}, none says that it is '
            f'latitude; set X["{near}"].attrs["units"] = "degrees_north" of the one that is, or '
            f"pass the areas as a DataArray."
        )
    longitude = _coordinate("longitude", of_rows)
    shared = longitude is not None and set(longitude.dims) & set(latitude.dims)
    if latitude.ndim != 1 or shared:
        raise InvalidInputError(
            f'sample_weight is "area", and {latitude.name!r} has the dimensions '
            f"{list(latitude.dims)} of a grid that is not regular, where cells of one latitude "
            f"differ in area; pass the areas as a DataArray."
        )
    if latitude.dtype.kind not in "iuf":
        raise InvalidInputError(
            f'sample_weight is "area", and {latitude.name!r} holds {latitude.dtype}, which are no '
            f"degrees of latitude; correct it, or pass the areas as a DataArray."
        )
    angles, units = latitude.to_numpy().astype(np.float64), _attribute(latitude, "units")
    if units is not None and units not in (*_DEGREES, *_RADIANS):
        raise InvalidInputError(
            f'sample_weight is "area", and {latitude.name!r} has the units {units!r}; pass '
            f"degrees or radians of latitude, or the areas as a DataArray."
        )
    if units is None and (np.abs(angles) <= np.pi / 2).all():
        raise InvalidInputError(
            f'sample_weight is "area", and {latitude.name!r} has no units and may be in degrees or '
            f'in radians; set X[{latitude.name!r}].attrs["units"] to "degrees_north" or "radians".'
        )
    degrees = np.rad2deg(angles) if units in _RADIANS else angles
    if not (np.abs(degrees) <= 90.0 + 1e-4).all():
        raise InvalidInputError(
            f'sample_weight is "area", and {latitude.name!r} goes from {degrees.min():g} to '
            f"{degrees.max():g}, which are no degrees of latitude; correct it, or pass the areas "
            f"as a DataArray."
        )
    # At the poles rounding would leave less than nothing.
    return latitude.copy(data=np.maximum(np.cos(np.deg2rad(degrees)), 0.0))


def _coordinate(kind: str, coords: Sequence[Any]) -> Any:
    """Return the coordinate that is latitude or longitude, or None.

    That of a dimension goes before others; of several others none is better than the rest.
    """
    # An axis alone may be that of a map in metres.
    for attribute, values in (
        ("units", _UNITS[kind]),
        ("standard_name", (kind,)),
        ("axis", (_AXES[kind],)),
    ):
        found = [coord for coord in coords if _attribute(coord, attribute) in values]
        found = [coord for coord in found if coord.dims == (coord.name,)] or found
        if len(found) > 1 and kind == "latitude":
            raise InvalidInputError(
                f'sample_weight is "area", and the coordinates {[one.name for one in found]} of X '
                f"say all that they are latitude; leave one of them, for example with "
                f"X.drop_vars({str(found[-1].name)!r}), or pass the areas as a DataArray."
            )
        if found:
            return found[0]
    return None


def _attribute(coord: Any, name: str) -> str | None:
    """Return an attribute that is text, be it in a list of one."""
    found = np.asarray(coord.attrs.get(name, coord.encoding.get(name)), dtype=object)
    return str(found.item()).strip() if found.size == 1 and found.item() is not None else None
