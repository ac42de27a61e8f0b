"""How loops are compiled, and numba imported for it.

Numba, which takes a second to import, is imported when the first loop is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daskcoreset.core import compiling
from daskcoreset.core.optional import import_whole

# Before numba is imported here: an interrupted import would break it.
import_whole("daskcoreset.core.numba_whole")

import numba  # noqa: E402
from numba import extending  # noqa: E402
from numba.core import event  # noqa: E402

# NaN and infinity keep their meaning in both.
ROW_SUMS = {"reassoc", "contract", "nsz"}  # the sum along a row may be vectorised

IN_ORDER = {"contract"}  # sums along columns are vectorised as they stand

AS_WRITTEN: set[str] = set()  # every product is rounded, as by NumPy


class _Announcer(event.Listener):
    """What numba calls around every compilation that its cache did not save."""

    def on_start(self, event: Any) -> None:
        del event
        compiling.announce(True)

    def on_end(self, event: Any) -> None:
        del event
        compiling.announce(False)


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]


def jit(fastmath: set[str]) -> Callable[..., Any]:
    """Decorate a loop that numba compiles when it is first called.

    Parameters
    ----------
    fastmath : set of str
        `ROW_SUMS`, `IN_ORDER` or `AS_WRITTEN`.
    """
    # Without what C would call, which nothing does.
    options = {"no_cfunc_wrapper": True, **_options(fastmath)}

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder for the cache can be written
            return numba.njit(**options)(function)

    return decorate


def part(fastmath: set[str]) -> Callable[..., Any]:
    """Decorate a part of loops, which nothing but loops calls; Python runs it as it stands.

    numba compiles it for the loops alone: without what Python would call, which takes as long as
    the part, and not once more for each constant that it is called with.

    Parameters
    ----------
    fastmath : set of str
        `ROW_SUMS` or `IN_ORDER`.
    """
    decorate: Callable[..., Any] = extending.register_jitable(
        no_cfunc_wrapper=True, **_options(fastmath)
    )
    return decorate


def _options(fastmath: set[str]) -> dict[str, Any]:
    # A loop that calls another one without inlining it may find two machine codes of that: one when
    # it is compiled, and one when it comes from the cache, whose sums differ in their last bits.
    return {"nogil": True, "fastmath": fastmath, "error_model": "numpy", "forceinline": True}
