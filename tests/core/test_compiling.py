"""What goes on while loops are compiled."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from numba.core.errors import NumbaError

from daskcoreset.core.compiling import announce, watch_compiling
from daskcoreset.core.jit_numba import IN_ORDER, jit


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


def test_announce__no_garbage_is_collected_until_the_outermost_loop_is_done() -> None:
    seen = []
    for begins in (True, True, False, False):
        announce(begins)
        seen.append(gc.isenabled())

    assert seen == [False, False, False, True]


def test_announce__leaves_collection_off_where_it_was() -> None:
    gc.disable()
    announce(True)
    announce(False)

    assert not gc.isenabled()


def test_compiling__collects_again_after_an_error() -> None:
    @jit(IN_ORDER)
    def fails(value: float) -> float:
        return value + "text"  # type: ignore[operator]

    states = []
    with watch_compiling(lambda _: states.append(gc.isenabled())), pytest.raises(NumbaError):
        fails(1.0)

    assert states == [False, True]
    assert gc.isenabled()
