"""Values that are not what is stored: packed numbers, and numbers that mark missing ones."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import shown
from daskcoreset.errors import InvalidTypeError

# Attributes of the conventions CF, with the values that change nothing.
_NEUTRAL = {"scale_factor": 1.0, "add_offset": 0.0, "_FillValue": np.nan, "missing_value": np.nan}

# Units of numbers that are dates, by the conventions CF.
_DATES = re.compile(r"^\s*\w+ since ")


def packed_remark(part: Any, name: str) -> str | None:
    """Return a warning about an array whose attributes say that its values are coded.

    Parameters
    ----------
    part : RowArray or xarray.DataArray
        Other arrays have no such attributes.
    name : str
        The argument that they were passed as.

    Returns
    -------
    str or None
        None if the values are what is stored.

    Raises
    ------
    InvalidTypeError
        If labels are dates, which are stored as numbers.
    """
    if not getattr(part, "attrs", None) or part.dtype.kind not in "iuf":
        return None
    if name == "y":
        _refuse_dates(part)
    found = [
        f"{key}={value:.6g}"
        for key, values in _attributes(part)
        for value in values.tolist()[:1]
        if not np.array_equal([value], [_NEUTRAL[key]], equal_nan=True)
    ]
    if not found:
        return None
    return (
        f"{name} is stored with {' and '.join(found)}, and is read as it is stored; pass what "
        f"xarray.open_dataset opens, which decodes values and leaves out those that are missing."
    )


def _refuse_dates(labels: Any) -> None:
    units: Any = None
    with suppress(Exception):  # of HDF5 attributes may be of any type
        units = labels.attrs.get("units")
    units = units.decode(errors="replace") if isinstance(units, bytes) else units
    if isinstance(units, str) and _DATES.search(units):
        raise InvalidTypeError(
            f"y must hold numbers or text, found dates, stored as {shown(units)}",
            argument="y",
            remedy="name another column or array, or convert it where it is stored",
        )


def _attributes(part: Any) -> Iterator[tuple[str, FloatArray]]:
    attrs: Mapping[str, Any] = part.attrs
    for key in _NEUTRAL:
        with suppress(Exception):  # of HDF5 attributes may be of any type
            yield key, _numbers(attrs.get(key))
    array: Any = getattr(part, "array", None)
    metadata = getattr(array, "metadata", None)
    if getattr(metadata, "zarr_format", None) == 2 and "_ARRAY_DIMENSIONS" in attrs:
        # In this format xarray keeps the fill value of an array there.
        yield "_FillValue", _numbers(array.fill_value)


def _numbers(value: Any) -> FloatArray:
    """Return the numbers of an attribute. None of None and of text that is none.

    Examples
    --------
    >>> _numbers([7]), _numbers("AAAAAAAA+H8="), _numbers(None)
    (array([7.]), array([nan]), array([], dtype=float64))
    """
    if value is None:
        return np.empty(0)
    try:
        return np.asarray(value, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        # Text of the bytes of one number, as xarray writes it in format 3 of Zarr.
        stored = base64.standard_b64decode(value)
        return np.frombuffer(stored, "<f8").astype(np.float64)
