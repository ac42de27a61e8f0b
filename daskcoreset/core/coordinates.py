"""Coordinates of the rows of a coreset: checked, united and stored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from daskcoreset.core.contents import NAME
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.typing import AnyArray

_PREFIX = "coordinate_"

_TIMES = "mM"


def check_coordinates(coordinates: Any, m: int) -> Mapping[str, AnyArray]:
    """Return read-only coordinates of `m` rows.

    Examples
    --------
    >>> check_coordinates({"lat": [10.0, 20.0]}, 3)
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: coordinates['lat'] has shape (2,) for 3 rows; pass one ...
    """
    if not isinstance(coordinates, Mapping):
        raise InvalidTypeError(f"coordinates is a {type(coordinates).__name__}; pass a mapping")
    checked = {}
    for name, values in coordinates.items():
        array = np.asarray(values)
        # As stores hand them back: NetCDF 3, for one, has its numbers in the order of big-endian.
        array = array.astype(array.dtype.newbyteorder("="), copy=False).view()
        if array.dtype.kind not in "biufU" + _TIMES:
            msg = f"coordinates[{name!r}] has dtype {array.dtype}; pass numbers, dates or text"
            raise InvalidTypeError(msg)
        if array.shape != (m,):
            msg = (
                f"coordinates[{name!r}] has shape {array.shape} for {m} rows; pass one value a row"
            )
            raise InvalidInputError(msg)
        array.flags.writeable = False
        checked[str(name)] = array
    return MappingProxyType(checked)


def same_coordinates(first: Mapping[str, AnyArray], second: Mapping[str, AnyArray]) -> bool:
    """Return whether all names, dtypes and bits are the same."""
    return first.keys() == second.keys() and all(
        values.dtype == second[name].dtype and values.tobytes() == second[name].tobytes()
        for name, values in first.items()
    )


def union_of_coordinates(parts: Sequence[Mapping[str, AnyArray]]) -> dict[str, AnyArray]:
    """Return the coordinates that all parts have, of one kind, one part after the other.

    Examples
    --------
    >>> union_of_coordinates([{"lat": np.zeros(1), "lon": np.ones(1)}, {"lat": np.ones(1)}])
    {'lat': array([0., 1.])}
    """
    return {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
        if all(name in part for part in parts)
        and len({part[name].dtype.kind for part in parts}) == 1
    }


def _key(name: str) -> str:
    """Return the name of the array that holds a coordinate: a digest where its own cannot be one.

    Examples
    --------
    >>> _key("lat"), _key("Länge")
    ('coordinate_lat', 'coordinate-...')
    """
    key = f"{_PREFIX}{name}"
    if NAME.fullmatch(key):
        return key
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"coordinate-{digest}"


def stored_coordinates(
    coordinates: Mapping[str, AnyArray],
) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Return arrays to store, and the dtypes by name; dates become integers."""
    arrays = {
        _key(name): values.view(np.int64) if values.dtype.kind in _TIMES else values
        for name, values in coordinates.items()
    }
    return arrays, {name: values.dtype.str for name, values in coordinates.items()}


def loaded_coordinates(
    arrays: dict[str, AnyArray], dtypes: Mapping[str, str]
) -> dict[str, AnyArray]:
    """Take the coordinates that `stored_coordinates` named out of loaded arrays."""
    return {
        name: np.ascontiguousarray(arrays.pop(_key(name))).view(np.dtype(dtype))
        if np.dtype(dtype).kind in _TIMES
        else arrays.pop(_key(name))
        for name, dtype in dtypes.items()
    }
