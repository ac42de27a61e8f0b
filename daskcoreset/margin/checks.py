"""Refusal of parameters that are out of range."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.errors import InvalidInputError, InvalidTypeError

__all__ = ["check_count", "check_share"]


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
