"""How loops are compiled: by numba, when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import extending

# NaN and infinity keep their meaning in both.
ROW_SUMS = {"reassoc", "contract", "nsz"}  # the sum along a row may be vectorised

IN_ORDER = {"contract"}  # sums along columns are vectorised as they stand

AS_WRITTEN: set[str] = set()  # every product is rounded, as by NumPy


def jit(fastmath: set[str]) -> Callable[..., Any]:
    """Decorate a loop that numba compiles when it is first called.

    Parameters
    ----------
    fastmath : set of str
        `ROW_SUMS`, `IN_ORDER` or `AS_WRITTEN`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **_options(fastmath))(function)
        except RuntimeError:  # no folder for the cache can be written
            return numba.njit(**_options(fastmath))(function)

    return decorate


def part(fastmath: set[str]) -> Callable[..., Any]:
    """Decorate a part of loops, which nothing but loops calls. Python runs it as it stands.

    Parameters
    ----------
    fastmath : set of str
        `ROW_SUMS` or `IN_ORDER`.
    """
    decorate: Callable[..., Any] = extending.register_jitable(**_options(fastmath))
    return decorate


def _options(fastmath: set[str]) -> dict[str, Any]:
    # A loop that calls another one without inlining it may find two machine codes of that: one when
    # it is compiled, and one when it comes from the cache, whose sums differ in their last bits.
    # Without a wrapper for C, which nothing calls, compiling takes less time.
    return {
        "nogil": True, "fastmath": fastmath, "error_model": "numpy", "forceinline": True,
        "no_cfunc_wrapper": True,
    }  # fmt: skip
