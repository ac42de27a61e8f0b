"""Linear algebra on one thread: the same bits everywhere, and no threads that fight."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped] # no annotations

__all__ = ["one_thread"]

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@functools.cache
def _controller() -> Any:
    # To look the libraries up takes milliseconds, to set their threads microseconds. SciPy
    # brings a library of its own, which must be there when they are looked up.
    importlib.import_module("scipy.linalg")
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread in the body.

    The number of threads decides how a product is cut, and so its last bits. For work at the
    root: OpenBLAS heeds the setting in the main thread only, so that tasks, which run on
    threads of their own, cut their products themselves (`daskcoreset.core.products`). The
    setting is one of the process: the first of several bodies that overlap makes it and the
    last one undoes it.

    Notes
    -----
    On two busy cores a product of 262 x 22 by 22 x 500 took 250 times as long with two threads
    of BLAS as with one.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    global _inside, _limit  # noqa: PLW0603 - a setting of the process
    with _lock:
        if not _inside:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limit.restore_original_limits()
