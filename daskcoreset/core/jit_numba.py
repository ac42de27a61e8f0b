"""How loops are compiled: by numba, when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba

# Sums may be formed in any order. NaN and infinity keep their meaning. Nothing calls a loop from C.
_njit = partial(
    numba.njit,
    nogil=True,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz"},
    no_cfunc_wrapper=True,
)


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """Decorate a loop that numba compiles when it is first called."""
    try:
        return _njit(function, cache=True, **options)
    except RuntimeError:  # no folder for the cache can be written
        return _njit(function, **options)
