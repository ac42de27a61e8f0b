"""Packages that may be missing, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from daskcoreset.errors import MissingDependencyError

_PLOTS = 'plots need matplotlib; pip install "daskcoreset[plot]" brings it.'


def import_optional(module: str, message: str) -> Any:
    """Import a package that may be missing, or raise an error with this message."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(message) from error


def need_matplotlib(module: str = "matplotlib") -> Any:
    """Import matplotlib, or a module of it. Called before data are read for a picture."""
    return import_optional(module, _PLOTS)


def import_reader(module: str, extra: str, name: str) -> Any:
    """Return the optional package that reads a file, which was passed as the argument `name`."""
    install = f'install it with: pip install "daskcoreset[{extra}]".'
    return import_optional(module, f"{name} needs the package {module}; {install}")
