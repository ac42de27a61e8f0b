"""Where to draw, with an error that says what to install."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from daskcoreset.core.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
