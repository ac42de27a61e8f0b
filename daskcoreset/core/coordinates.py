"""Coordinates of the rows of a coreset: checked, compared and united."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from daskcoreset.core.labels import plain_labels
from daskcoreset.core.points import same_bits
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import check_type
from daskcoreset.errors import InvalidInputError

CALENDAR = "cftime "
"""Begins the form of dates of the package cftime, before the name of their calendar."""


def kept_values(values: AnyArray) -> AnyArray:
    """Return values as a coreset keeps them: numbers, dates, and all others as text.

    Examples
    --------
    >>> kept_values(np.array(["a", "b"], dtype=object)), kept_values(np.array([1, None]))
    (array(['a', 'b'], dtype='<U1'), array(['1', 'None'], dtype='<U4'))
    """
    if values.dtype.kind in "biufcUmM":
        # Stores keep no longer floats. Those of NetCDF 3 are big-endian.
        dtype = {"g": "f8", "G": "c16"}.get(values.dtype.char, values.dtype.newbyteorder("="))
        return values.astype(dtype, copy=False)
    values = values.astype(object)
    if calendar_of(values) is not None:
        return values
    return plain_labels(values.ravel()).reshape(values.shape)


def check_coordinates(coordinates: Any, m: int) -> Mapping[str, AnyArray]:
    """Return read-only coordinates of `m` rows.

    Examples
    --------
    >>> check_coordinates({"lat": [10.0, 20.0]}, 3)
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: coordinates['lat'] has shape (2,) for 3 rows; pass one ...
    """
    check_type("coordinates", coordinates, Mapping, "pass a mapping of names to arrays")
    checked = {}
    for name, values in coordinates.items():
        array = kept_values(np.asarray(values)).view()
        if array.shape != (m,):
            raise InvalidInputError(
                f"coordinates[{name!r}] has shape {array.shape} for {m} rows",
                remedy="pass one value per row",
            )
        array.flags.writeable = False
        checked[str(name)] = array
    return MappingProxyType(checked)


def same_coordinates(first: Mapping[str, AnyArray], second: Mapping[str, AnyArray]) -> bool:
    """Return whether all names, dtypes and bits are the same."""
    return first.keys() == second.keys() and all(
        # Dates of two calendars cannot be compared.
        form_of(values) == form_of(second[name]) and same_bits(values, second[name])
        for name, values in first.items()
    )


def calendar_of(values: AnyArray) -> str | None:
    """Return the one calendar of dates of the package cftime. None for anything else."""
    if values.dtype.kind != "O" or not values.size:
        return None
    calendars = {
        date.calendar if type(date).__module__.partition(".")[0] == "cftime" else None
        for date in values.ravel()
    }
    return calendars.pop() if len(calendars) == 1 else None


def form_of(values: AnyArray) -> str:
    """Return the dtype of values that a coreset keeps, or the calendar of dates of cftime."""
    return f"{CALENDAR}{calendar_of(values)}" if values.dtype.kind == "O" else values.dtype.str


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
        and len({(part[name].dtype.kind, calendar_of(part[name])) for part in parts}) == 1
    }
