"""Values of Python in an array of objects, as text that a store keeps, and back.

Labelled data have coordinates that are no numbers of NumPy: missing names, months of pandas, bins,
the tuples of several levels. A value is JSON, and what JSON has no word for is an object of one
entry, whose name says what it is.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from daskcoreset.core.optional import import_optional
from daskcoreset.core.typing import AnyArray

_REMEDY = 'the coreset has coordinates of pandas; pip install "daskcoreset[dataframe]" brings it'


def spelled(values: AnyArray) -> list[str] | None:
    """Return the text of every value; None where one of them has no text that gives it back.

    Parameters
    ----------
    values : ndarray of shape (m,), object

    Examples
    --------
    >>> spelled(np.array([None, 1, "a"], dtype=object))
    ['null', '1', '"a"']
    """
    try:
        texts = [json.dumps(_word(value)) for value in values.tolist()]
        # Zones of time, for one, may be others than their names say.
        same = all(map(_same, values.tolist(), values_of(texts).tolist()))
    except (TypeError, ValueError, RecursionError):
        return None
    return texts if same else None


def values_of(texts: list[str]) -> AnyArray:
    """Return the values of `spelled`.

    Examples
    --------
    >>> values_of(["null", '{"tuple": [1, "a"]}']).tolist()
    [None, (1, 'a')]

    Raises
    ------
    MissingDependencyError
        They are of pandas, which is not installed.
    ValueError, TypeError, KeyError
        For other texts.
    """
    values = np.empty(len(texts), dtype=object)
    try:
        # One by one, for NumPy would make a second dimension of tuples.
        for place, text in enumerate(texts):
            values[place] = _value(json.loads(text))
    except OverflowError as error:
        raise ValueError(f"{error}") from error
    return values


def _same(first: Any, second: Any) -> bool:
    """Whether a value is the plain one, as it was, or of NumPy."""
    first = first.item() if isinstance(first, np.generic) else first
    return type(first) is type(second) and repr(first) == repr(second)


def _word(value: Any) -> Any:
    """Return a value as JSON has it."""
    value = value.item() if isinstance(value, np.number | np.bool_ | np.str_) else value
    kind: Any = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is tuple:
        return {"tuple": [_word(one) for one in value]}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind in (dt.date, dt.datetime):
        return {kind.__name__: value.isoformat()}
    return _word_of_pandas(value, kind, sys.modules.get("pandas"))


def _word_of_pandas(value: Any, kind: Any, pandas: Any) -> Any:
    if pandas is None:
        raise TypeError
    if value is pandas.NaT or value is pandas.NA:
        return {"missing": "NaT" if value is pandas.NaT else "NA"}
    if kind is pandas.Period:
        return {"period": [value.ordinal, value.freqstr]}
    if kind is pandas.Interval:
        return {"interval": [_word(value.left), _word(value.right), value.closed]}
    if kind is pandas.Timestamp:
        zone = None if value.tz is None else str(value.tz)
        return {"timestamp": [int(value.asm8.view(np.int64)), value.unit, zone]}
    if kind is pandas.Timedelta:
        return {"timedelta": [int(value.asm8.view(np.int64)), value.unit]}
    raise TypeError


def _value(word: Any) -> Any:
    """Return the value of a `_word`."""
    if not isinstance(word, dict):
        return word
    ((kind, parts),) = word.items()
    if kind in _OF_PYTHON:
        return _OF_PYTHON[kind](parts)
    if kind not in _OF_PANDAS:
        raise ValueError(f"{kind!r} is no kind of value that is known")
    return _OF_PANDAS[kind](import_optional("pandas", _REMEDY), parts)


def _timestamp(pandas: Any, parts: Any) -> Any:
    moment = pandas.Timestamp(np.datetime64(parts[0], parts[1]))
    return moment if parts[2] is None else moment.tz_localize("UTC").tz_convert(parts[2])


_OF_PYTHON: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda parts: tuple(map(_value, parts)),
    "complex": lambda parts: complex(*parts),
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
}

_OF_PANDAS: dict[str, Callable[[Any, Any], Any]] = {
    "missing": lambda pandas, name: {"NaT": pandas.NaT, "NA": pandas.NA}[name],
    "period": lambda pandas, parts: pandas.Period(ordinal=parts[0], freq=parts[1]),
    "interval": lambda pandas, parts: pandas.Interval(*map(_value, parts)),
    "timestamp": _timestamp,
    "timedelta": lambda pandas, parts: pandas.Timedelta(np.timedelta64(parts[0], parts[1])),
}
