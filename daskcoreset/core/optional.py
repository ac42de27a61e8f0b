"""Packages that are imported when they are needed: those that may be missing, and a fragile one."""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from daskcoreset.core.errors import MissingDependencyError

_PLOTS = 'plots need matplotlib; pip install "daskcoreset[plot]" brings it.'


def import_optional(module: str, message: str) -> Any:
    """Import a package that may be missing, or raise an error with this message."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(message) from error


def import_whole(module: str) -> Any:
    """Import a package in a thread of its own, which a `KeyboardInterrupt` does not reach.

    For one that an interrupt would leave half imported, and broken for as long as the process
    lives, as numba. The interrupt comes at once, and the import goes on.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix=f"import {module}")
    try:
        return pool.submit(importlib.import_module, module).result()
    finally:
        pool.shutdown(wait=False)


def need_matplotlib(module: str = "matplotlib") -> Any:
    """Import matplotlib, or a module of it; called before data are read for a picture."""
    return import_optional(module, _PLOTS)
