"""Arguments that look like numbers or names and are none."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.validation import (
    as_float,
    as_int,
    check_choice,
    check_count,
    check_number,
    check_share,
    is_choice,
    is_int,
    is_number,
)

SPAN: Any = np.timedelta64(20, "s")
EMPTY: Any = np.array([])


@pytest.mark.parametrize("value", [True, np.True_, SPAN, 2.0, "2", None, EMPTY, np.array([2])])
def test_is_int__takes_integers_alone(value: Any) -> None:
    assert not is_int(value)
    assert all(map(is_int, (2, np.uint8(2), np.int64(-2))))


@pytest.mark.parametrize("value", [True, np.True_, SPAN, "2", None, EMPTY, 2j])
def test_is_number__takes_real_numbers_alone(value: Any) -> None:
    assert not is_number(value)
    assert all(map(is_number, (2, 2.5, np.float32(2), Fraction(1, 2), np.nan)))


@pytest.mark.parametrize("value", [EMPTY, np.array(["a"]), np.array(["a", "b"]), None, ["a"], "c"])
def test_is_choice__takes_names_alone(value: Any) -> None:
    assert not is_choice(value, ("a", "b"))
    assert is_choice(np.str_("a"), ("a", "b"))


def test_checks__say_what_to_pass() -> None:
    with pytest.raises(InvalidTypeError, match=r"k must be an integer, got .*20.*; pass an int"):
        as_int("k", SPAN)
    with pytest.raises(InvalidInputError, match="k must be at least 2, got 1; pass more"):
        as_int("k", 1, 2)
    with pytest.raises(InvalidTypeError, match=r"p must be a number, got .*20.*; pass a float"):
        as_float("p", SPAN)
    with pytest.raises(InvalidInputError, match=r"p must lie between 0 and 1, got 1; .* 0\.1"):
        as_float("p", 1)
    for check in (check_count, check_number, check_share):
        with pytest.raises(InvalidTypeError, match=r"n is .*20.*; pass a"):
            check("n", SPAN)
    with pytest.raises(InvalidInputError, match=r'way must be "a", "b" or "c", got array\('):
        check_choice("way", EMPTY, "a", "b", "c")
