"""A tree of eight days, and the nodes that answer for a window of five."""

from __future__ import annotations

from matplotlib.figure import Figure
from theme import ORANGE, Theme, box, canvas

# The nodes that a window of the leaves 2 to 6 is drawn from: a level and a number each.
_COVER = {(1, 1), (1, 2), (0, 6)}


def draw(theme: Theme) -> Figure:
    """Draw a tree of eight days, and the nodes that answer for a window of five."""
    figure, ax = canvas(7.6, 3.7)
    for level in range(4):
        for number in range(8 >> level):
            x = _middle(level, number)
            if level:
                for child in (2 * number, 2 * number + 1):
                    below = _middle(level - 1, child)
                    ax.plot([x, below], [level - 0.24, level - 0.76], color=theme.ink, lw=1.0)
            chosen = (level, number) in _COVER
            text = f"day {number + 1}" if not level else f"{1 << level} days"
            box(ax, theme, x - 0.42, level, 0.84, text, ORANGE if chosen else theme.blue,
                height=0.48)  # fmt: skip
    ax.plot([1.55, 6.45], [-0.5, -0.5], color=ORANGE, lw=3.0, solid_capstyle="butt")
    ax.text(4.0, -0.85, "window: days 3 to 7, from three nodes", ha="center", color=ORANGE)
    ax.text(-0.45, 3.0, "each node: a coreset,\nkept in the store", color=theme.blue, va="center")
    ax.text(7.45, 3.0, "each day is\nread once", color=theme.ink, va="center", ha="right")
    ax.set(xlim=(-0.6, 7.6), ylim=(-1.1, 3.4))
    return figure


def _middle(level: int, number: int) -> float:
    return (number + 0.5) * (1 << level) - 0.5
