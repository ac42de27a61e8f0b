"""Values of Python as text, and back."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from daskcoreset.core.errors import MissingDependencyError
from daskcoreset.core.python_values import spelled, values_of


def objects(*values: Any) -> Any:
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


@pytest.mark.parametrize(
    "values",
    [
        (None, True, 1, 2.5, "a", -0.0, float("nan"), float("inf"), 10**30, "\udc80"),
        (1j, complex("nan")),
        ((1, ("a", None)), (pd.Timestamp("2020"), "x"), ()),
        (dt.date(2020, 1, 1), dt.datetime.fromisoformat("2020-01-01T01:02:03.000004")),
        (pd.Period("2020-01", "M"), pd.Period("2020-01-15 10:00", "2h"), pd.NaT, pd.NA),
        (pd.Interval(0, 1), pd.Interval(pd.Timestamp(0), pd.Timestamp(1), closed="left")),
        (pd.Timestamp("2020-07-01", tz="Europe/Brussels"), pd.Timestamp(1, unit="ns")),
        (pd.Timestamp("2020-10-25 02:30+01:00").tz_convert("Europe/Brussels"),),
        (pd.Timedelta("1D"), pd.Timedelta(1, unit="ns")),
    ],
)
def test_values__come_back(values: Any) -> None:
    texts = spelled(objects(*values))
    assert texts is not None
    back = values_of(texts).tolist()
    assert [(type(one), repr(one)) for one in back] == [(type(one), repr(one)) for one in values]
    units = [getattr(one, "unit", None) for one in values]
    assert [getattr(one, "unit", None) for one in back] == units


def test_values__of_numpy_are_those_of_python() -> None:
    texts = spelled(objects(np.int64(3), np.float32(0.1), np.True_, np.str_("a")))
    assert texts is not None
    assert values_of(texts).tolist() == [3, float(np.float32(0.1)), True, "a"]


@pytest.mark.parametrize("value", [object(), [1], {"tuple": []}, b"a", np.array([1]), {1}])
def test_values__that_have_no_text(value: Any) -> None:
    assert spelled(objects(None, value)) is None


def test_values__of_a_zone_that_is_another_one_than_its_name() -> None:
    zone = dt.timezone(dt.timedelta(hours=1), "UTC")
    assert spelled(objects(dt.datetime(2020, 1, 1, tzinfo=zone))) is None


@pytest.mark.parametrize(
    "text",
    ['{"period": [1e999, "M"]}', f'{{"period": [{10**30}, "M"]}}', '{"a": 1}', "{}", "[", "{"],
)
def test_values_of__what_is_none_of_them(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        values_of([text])


def test_values_of__pandas_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = spelled(objects(pd.Period("2020-01", "M")))
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert texts is not None
    with pytest.raises(MissingDependencyError, match="dataframe"):
        values_of(texts)
