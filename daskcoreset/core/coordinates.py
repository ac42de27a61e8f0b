"""Coordinates of the rows of a coreset: checked, united and stored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from daskcoreset.core.contents import NAME
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.optional import import_optional
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import a_type

_PREFIX = "coordinate_"

_TIMES = "mM"

# Dates of other calendars, as cftime has them, are stored in its smallest step, of which int64 can
# count 292,000 years.
_CALENDAR = "cftime "
_UNITS = "microseconds since 1970-01-01"


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
        raise InvalidTypeError(f"coordinates is {a_type(coordinates)}; pass a mapping")
    checked = {}
    for name, values in coordinates.items():
        array = np.asarray(values)
        # As stores hand them back: NetCDF 3, for one, has its numbers in the order of big-endian.
        array = array.astype(array.dtype.newbyteorder("="), copy=False).view()
        if array.dtype.kind not in "biufU" + _TIMES and calendar_of(array) is None:
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
        _form(values) == _form(second[name]) and _bits(values) == _bits(second[name])
        for name, values in first.items()
    )


def calendar_of(values: AnyArray) -> str | None:
    """Return the one calendar of dates of the package cftime; None for anything else.

    Two calendars of one name differ where only one of them has a year 0.
    """
    if values.dtype.kind != "O" or not values.size:
        return None
    calendars = {
        f"{date.calendar} {int(date.has_year_zero)}"
        if type(date).__module__.partition(".")[0] == "cftime" and date.calendar
        else None
        for date in values.ravel()
    }
    return calendars.pop() if len(calendars) == 1 else None


def _form(values: AnyArray) -> str:
    calendar = calendar_of(values)
    return values.dtype.str if calendar is None else f"{_CALENDAR}{calendar}"


def _bits(values: AnyArray) -> bytes:
    return (values if values.dtype.kind != "O" else _stored(values)).tobytes()


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
    """Return arrays to store, and the dtypes or calendars by name; dates become integers."""
    arrays = {_key(name): _stored(values) for name, values in coordinates.items()}
    return arrays, {name: _form(values) for name, values in coordinates.items()}


def _stored(values: AnyArray) -> AnyArray:
    if values.dtype.kind in _TIMES:
        return values.view(np.int64)
    if values.dtype.kind != "O":
        return values
    numbers = _cftime().date2num(values, _UNITS, **_keywords(calendar_of(values) or ""))
    return np.asarray(numbers, dtype=np.int64)


def loaded_coordinates(
    arrays: dict[str, AnyArray], dtypes: Mapping[str, str]
) -> dict[str, AnyArray]:
    """Take the coordinates that `stored_coordinates` named out of loaded arrays.

    Raises
    ------
    MissingDependencyError
        They have dates of another calendar, and cftime is not installed.
    """
    return {name: _loaded(arrays.pop(_key(name)), form) for name, form in dtypes.items()}


def _loaded(values: AnyArray, form: str) -> AnyArray:
    if form.startswith(_CALENDAR):
        keywords = _keywords(form.removeprefix(_CALENDAR))
        return np.asarray(_cftime().num2date(values, _UNITS, **keywords), dtype=object)
    times = np.dtype(form).kind in _TIMES
    return np.ascontiguousarray(values).view(np.dtype(form)) if times else values


def _keywords(calendar: str) -> dict[str, Any]:
    name, _, has_year_zero = calendar.partition(" ")
    return {"calendar": name, "has_year_zero": has_year_zero == "1"}


def _cftime() -> Any:
    remedy = (
        'the coreset has dates of another calendar; "pip install cftime" brings what reads them.'
    )
    return import_optional("cftime", remedy)
