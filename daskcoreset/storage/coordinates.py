"""Coordinates of rows as they are stored: numbers and text as they are, dates as integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.coordinates import CALENDAR, form_of
from daskcoreset.core.messages import import_optional
from daskcoreset.core.typing import AnyArray

# The smallest step of cftime, of which int64 can count 292,000 years.
_UNITS = "microseconds since 1970-01-01"


def stored_values(values: AnyArray) -> tuple[AnyArray, str]:
    """Return what is stored of values that a coreset keeps, and their dtype or calendar."""
    form = form_of(values)
    if values.dtype.kind in "mM":
        return values.view(np.int64), form
    if values.dtype.kind != "O":
        return values, form
    numbers = import_optional("cftime").date2num(
        values, _UNITS, calendar=form.removeprefix(CALENDAR)
    )
    return np.asarray(numbers, dtype=np.int64), form


def loaded_values(stored: Any, form: str) -> AnyArray:
    """Return the values of `stored_values`, also from a list of them."""
    if form.startswith(CALENDAR):
        calendar = form.removeprefix(CALENDAR)
        dates = import_optional("cftime").num2date(
            np.asarray(stored, np.int64), _UNITS, calendar=calendar
        )
        return np.asarray(dates, dtype=object)
    dtype = np.dtype(form)
    if dtype.kind in "mM":
        return np.asarray(stored, np.int64).view(dtype)
    return np.asarray(stored, dtype)
