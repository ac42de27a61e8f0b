"""Optional packages, with an error that names the extra to install; axes to draw on."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from daskcoreset.core.errors import InvalidTypeError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLOTS = 'plots need matplotlib; pip install "daskcoreset[plot]" brings it.'


def import_optional(module: str, message: str) -> Any:
    """Import a package that may be missing, or raise an error with this message."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(message) from error


def need_matplotlib() -> Any:
    """Import matplotlib; called before data are read for a picture."""
    return import_optional("matplotlib", _PLOTS)


def axes_for(ax: Axes | None) -> Axes:
    """Return the axes that were given, or new ones of pyplot."""
    if ax is not None:
        if not callable(getattr(ax, "errorbar", None)):
            raise InvalidTypeError(f"ax is a {type(ax).__name__}; pass matplotlib's Axes, or None.")
        return ax
    created: Axes = import_optional("matplotlib.pyplot", _PLOTS).subplots(layout="constrained")[1]
    return created
