"""Refusal of parameters that are out of range, or of another kind than they look."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.errors import InvalidInputError, InvalidTypeError

__all__ = ["check_count", "check_flag", "check_number", "check_positive", "check_share"]


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither true nor false: text and numbers are true to Python too.

    Examples
    --------
    >>> check_flag("compute", "no")
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidTypeError: compute is 'no'; pass True or False.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidTypeError(f"{name} is {value!r}; pass True or False.")


def check_number(name: str, value: Any) -> None:
    """Refuse what is no real number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidTypeError(f"{name} is {value!r}; pass a number.")


def check_positive(name: str, value: Any) -> None:
    """Refuse what is no number above zero; infinity is one."""
    check_number(name, value)
    if not value > 0:
        raise InvalidInputError(f"{name} must be positive, got {value!r}; pass a larger number.")


def check_share(name: str, value: Any) -> None:
    """Refuse what does not lie between zero and one."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise InvalidTypeError(f"{name} is {value!r}; pass a number between 0 and 1.")
    if not 0.0 < value < 1.0:
        raise InvalidInputError(f"{name} is {value}; pass a number between 0 and 1.")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is not a count."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidTypeError(f"{name} is {value!r}; pass an int of at least {least}.")
    if value < least:
        raise InvalidInputError(f"{name} is {value}; pass an int of at least {least}.")
