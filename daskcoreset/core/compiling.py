"""Word of loops that are being compiled, for whoever shows what a program is doing.

numba, which takes a second to import, is not imported here: its listener is beside the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_watchers: list[Callable[[bool], None]] = []


@contextmanager
def watch_compiling(tell: Callable[[bool], None]) -> Iterator[None]:
    """Call ``tell(True)`` when a loop begins to compile in this process, ``tell(False)`` after.

    A loop that numba finds in its cache is not compiled. One that calls others tells of each.
    """
    _watchers.append(tell)
    try:
        yield
    finally:
        _watchers.remove(tell)


def announce(begins: bool) -> None:
    """Tell those who watch that a loop begins to compile, or that it is compiled."""
    for tell in _watchers.copy():
        tell(begins)
