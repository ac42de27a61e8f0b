"""Word of loops that are being compiled, for whoever shows what a program is doing.

numba, which takes a second to import, is not imported here: its listener is beside the loops.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_watchers: list[Callable[[bool], None]] = []

# Loops that are being compiled, each within the one before; numba compiles under a lock.
_depth = 0

# Whether the outermost of them has turned the collection of garbage off.
_collects = False


@contextmanager
def watch_compiling(tell: Callable[[bool], None]) -> Iterator[None]:
    """Call ``tell(True)`` when a loop begins to compile in this process, ``tell(False)`` after.

    A loop that numba finds in its cache is not compiled. One that calls others tells once, from
    its own begin to its own end.
    """
    _watchers.append(tell)
    try:
        yield
    finally:
        _watchers.remove(tell)


def announce(begins: bool) -> None:
    """Tell those who watch that compiling begins, or that it has ended, the outermost loop's.

    Between the two no garbage is collected: compiling makes very many objects that stay, of which
    the collector would look at all time and again, for a share of the time and to no end.
    """
    global _depth, _collects  # noqa: PLW0603 - one count for all loops of the process
    _depth += 1 if begins else -1
    if _depth == int(begins):
        if begins:
            _collects = gc.isenabled()
            gc.disable()
        elif _collects:
            gc.enable()
        for tell in _watchers.copy():
            tell(begins)
