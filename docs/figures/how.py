"""Blocks, summaries, scores and the draw."""

from __future__ import annotations

from matplotlib.figure import Figure
from theme import GREEN, ORANGE, Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """Draw blocks, their summaries and candidates, the merge and the draw."""
    figure, ax = canvas(9.4, 4.2)
    for row in range(4):
        y = 3.2 - row
        box(ax, theme, 0.0, y, 1.5, f"block {row + 1}", theme.blue)
        box(ax, theme, 2.3, y + 0.22, 1.7, "summary", GREEN, height=0.34)
        box(ax, theme, 2.3, y - 0.22, 1.7, "candidates", ORANGE, height=0.34)
        arrow(ax, theme, (1.5, y), (2.3, y + 0.22))
        arrow(ax, theme, (1.5, y), (2.3, y - 0.22))
    for pair, y in enumerate((2.92, 0.92)):
        box(ax, theme, 4.8, y, 1.1, "merge", GREEN, height=0.42)
        for row in (2 * pair, 2 * pair + 1):
            arrow(ax, theme, (4.0, 3.42 - row), (4.8, y))
    box(ax, theme, 6.5, 1.92, 1.3, "summary of\nall data,\nscores", theme.ink, height=1.1)
    for y in (2.92, 0.92):
        arrow(ax, theme, (5.9, y), (6.5, 1.92))
    for row in range(4):
        ax.annotate(
            "", xy=(6.75, 1.36), xytext=(4.0, 2.98 - row), zorder=0,
            arrowprops={"arrowstyle": "-", "color": ORANGE, "alpha": 0.35},
        )  # fmt: skip
    box(ax, theme, 8.5, 1.92, 1.3, "coreset:\nrows and\nweights", theme.blue, height=1.1)
    arrow(ax, theme, (7.8, 1.92), (8.5, 1.92))
    heads = ("read once", "one task per block", "in order", "score", "draw")
    for x, text in zip((0.75, 3.15, 5.35, 7.15, 9.15), heads, strict=True):
        ax.text(x, 3.95, text, ha="center", color=theme.ink, fontsize=11)
    ax.set(xlim=(-0.1, 9.9), ylim=(-0.5, 4.2))
    return figure
