"""Optional packages, with an error that says what to install."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from daskcoreset.core.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def import_optional(module: str, extra: str | None = None) -> Any:
    """Import a package, or name the extra of this one that brings it, by default of its name."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        install = f'pip install "daskcoreset[{extra or module}]"'
        raise MissingDependencyError(f"{module} is not installed; {install} brings it") from error


def need_matplotlib() -> Any:
    """Import matplotlib, before any data are read for a picture that cannot be drawn."""
    return _imported("matplotlib")


def axes_for(ax: Axes | None) -> Axes:
    """Return the axes that were given, or new ones of pyplot."""
    if ax is not None:
        return ax
    created: Axes = _imported("matplotlib.pyplot").subplots(layout="constrained")[1]
    return created


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            'plots need matplotlib; pip install "daskcoreset[plot]" brings it.'
        ) from error
