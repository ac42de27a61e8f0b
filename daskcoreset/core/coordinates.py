"""Coordinates of the rows of a coreset: checked, united and stored."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from daskcoreset.core.blocks import plain_labels
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


def kept_values(values: AnyArray) -> AnyArray:
    """Return values as a coreset keeps them: numbers, dates, and all others as text.

    Examples
    --------
    >>> kept_values(np.array(["a", "b"], dtype=object)), kept_values(np.array([1, None]))
    (array(['a', 'b'], dtype='<U1'), array(['1', 'None'], dtype='<U4'))
    """
    if values.dtype.kind in "biufcU" + _TIMES:
        most = {"f": 8, "c": 16}.get(values.dtype.kind, values.dtype.itemsize)
        if values.dtype.itemsize > most:
            return values.astype(f"{values.dtype.kind}{most}")
        # As stores hand them back: NetCDF 3, for one, has its numbers in the order of big-endian.
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    values = values.astype(object)
    if calendar_of(values) is not None:
        return values
    texts = [one if isinstance(one, str | bytes) else str(one) for one in values.ravel().tolist()]
    return plain_labels(np.array(texts, dtype=object)).reshape(values.shape)


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
        raise InvalidTypeError(f"coordinates is {a_type(coordinates)}", remedy="pass a mapping")
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
        _form(values) == _form(second[name]) and _bits(values) == _bits(second[name])
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


def _form(values: AnyArray) -> str:
    return f"{_CALENDAR}{calendar_of(values)}" if values.dtype.kind == "O" else values.dtype.str


def _bits(values: AnyArray) -> bytes:
    return stored_values(values)[0].tobytes()


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
        if all(name in part for part in parts) and len({_family(part[name]) for part in parts}) == 1
    }


def _family(values: AnyArray) -> str:
    """Return what can be put one after the other."""
    return _form(values) if values.dtype.kind == "O" else values.dtype.kind


def _key(name: str) -> str:
    """Return the name of the array that holds a coordinate: a digest where its own cannot be one.

    Examples
    --------
    >>> _key("lat"), _key("Länge")
    ('coordinate_lat', 'coordinate-...')
    """
    key = f"{_PREFIX}{name}"
    if re.fullmatch(r"[A-Za-z0-9_-]+", key):
        return key
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"coordinate-{digest}"


def stored_coordinates(
    coordinates: Mapping[str, AnyArray],
) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Return arrays to store, and the dtypes or calendars by name. Dates become integers."""
    stored = {name: stored_values(values) for name, values in coordinates.items()}
    arrays = {_key(name): array for name, (array, _) in stored.items()}
    return arrays, {name: form for name, (_, form) in stored.items()}


def stored_values(values: AnyArray) -> tuple[AnyArray, str]:
    """Return what is stored of values that a coreset keeps, and their dtype or calendar."""
    form = _form(values)
    if values.dtype.kind in _TIMES:
        return values.view(np.int64), form
    if values.dtype.kind != "O":
        return values, form
    numbers = _cftime().date2num(values, _UNITS, calendar=form.removeprefix(_CALENDAR))
    return np.asarray(numbers, dtype=np.int64), form


def stored_dtype(form: str) -> Any:
    """Return the dtype of what `stored_values` stores under a name."""
    whole = form.startswith(_CALENDAR) or np.dtype(form).kind in _TIMES
    return np.int64 if whole else np.dtype(form)


def loaded_coordinates(
    arrays: dict[str, AnyArray], dtypes: Mapping[str, str]
) -> dict[str, AnyArray]:
    """Take the coordinates that `stored_coordinates` named out of loaded arrays.

    Raises
    ------
    MissingDependencyError
        If they have dates of another calendar, and cftime is not installed.
    """
    return {name: loaded_values(arrays.pop(_key(name)), form) for name, form in dtypes.items()}


def loaded_values(values: AnyArray, form: str) -> AnyArray:
    """Return the values of `stored_values`."""
    if form.startswith(_CALENDAR):
        dates = _cftime().num2date(values, _UNITS, calendar=form.removeprefix(_CALENDAR))
        return np.asarray(dates, dtype=object)
    times = np.dtype(form).kind in _TIMES
    return np.ascontiguousarray(values).view(np.dtype(form)) if times else values


def _cftime() -> Any:
    remedy = (
        'the coreset has dates of another calendar; "pip install cftime" brings what reads them.'
    )
    return import_optional("cftime", remedy)
