"""Picture of a stored tree: its leaves, the nodes above them, their ages, and a window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.tree.leaf_table import LeafTable
from daskcoreset.constructions.tree.shape import Part
from daskcoreset.core.looks import BLUE, INK, ORANGE, axes_for
from daskcoreset.core.optional import need_matplotlib
from daskcoreset.core.tables import brief

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Names that an axis has room for, and leaves beside which each node can carry a number.
_MAX_NAMES, _MAX_NUMBERED = 12, 24

# Opacity of the oldest node and of the newest one.
_OLD, _NEW = 0.15, 0.85


def plot_tree(
    top: Part,
    leaves: LeafTable,
    ages: Mapping[str, int],
    window: Sequence[Part] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw a stored tree; see `daskcoreset.CoresetTree.plot`.

    Parameters
    ----------
    top : Part
    leaves : LeafTable
    ages : mapping of str to int
        By the names of nodes, the changes since they were made.
    window : sequence of Part, default=()
        Those that answer for a window.
    ax : matplotlib.axes.Axes or None, default=None

    Returns
    -------
    matplotlib.axes.Axes
    """
    need_matplotlib()
    from matplotlib.collections import PolyCollection

    ax = axes_for(ax)
    parts = list(top)
    heights = _heights(parts)
    boxes = [_corners(part, heights[part.name]) for part in parts]
    age = np.array([ages[part.name] for part in parts], dtype=np.float64)
    colors = np.tile(_rgba(BLUE), (len(parts), 1))
    colors[:, 3] = _NEW - (_NEW - _OLD) * age / max(1.0, float(age.max()))
    ax.add_collection(PolyCollection(boxes, facecolors=colors, edgecolors="none"))
    if len(leaves) <= _MAX_NUMBERED:
        # On a ground of their own: the boxes are light or dark, and hatched.
        ground = {"boxstyle": "round,pad=0.2", "facecolor": BLUE, "edgecolor": "none"}
        number: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "bbox": ground}
        for part, changes in zip(parts, age, strict=True):
            place = (part.start + part.stop) / 2, heights[part.name] + 0.5
            ax.text(*place, f"{changes:.0f}", zorder=4, **number)
    chosen = [_corners(part, heights[part.name]) for part in window]
    if chosen:
        marked = PolyCollection(chosen, facecolors="none", edgecolors=ORANGE, hatch="///", lw=1.5)
        ax.add_collection(marked)
    rows = np.array([leaf.rows for leaf in leaves], dtype=np.float64)
    deep = 0.15 + 0.7 * rows / max(1.0, float(rows.max()))
    ax.bar(np.arange(len(leaves)) + 0.5, -deep, width=0.7, color=INK, alpha=0.6)
    _name_axes(ax, leaves, max(heights.values()))
    title = "changes since a node was made; the stronger the colour, the newer"
    ax.set_title(f"{title}\nhatched: read for the window" if chosen else title, fontsize=9)
    return ax


def _name_axes(ax: Axes, leaves: LeafTable, top: int) -> None:
    step = -(-len(leaves) // _MAX_NAMES)
    names = [brief(leaf.time or leaf.name, 16) for leaf in leaves][::step]
    at = np.arange(len(leaves))[::step] + 0.5
    ax.set_xticks(at, labels=names, rotation=30, ha="right")
    levels = [f"level {level}" for level in range(1, top + 1)]
    ax.set_yticks([-0.5, *(np.arange(top + 1) + 0.5)], labels=["rows", "leaves", *levels])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlim(0, len(leaves))
    ax.set_ylim(-1.0, top + 1.05)


def _heights(parts: Collection[Part]) -> dict[str, int]:
    """Levels of parts, those below before those above."""
    heights: dict[str, int] = {}
    for part in parts:
        heights[part.name] = 1 + max((heights[below.name] for below in part.below), default=-1)
    return heights


def _corners(part: Part, height: int) -> list[tuple[float, float]]:
    left, right, low, high = part.start + 0.04, part.stop - 0.04, height + 0.05, height + 0.95
    return [(left, low), (right, low), (right, high), (left, high)]


def _rgba(color: str) -> np.ndarray:
    from matplotlib.colors import to_rgba

    return np.array(to_rgba(color))
