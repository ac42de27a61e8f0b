"""Client, scheduler, workers and store, and what moves between them."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from theme import GREEN, ORANGE, Theme, box, canvas


def draw(theme: Theme) -> Figure:
    """Draw client, scheduler, workers and store, and what moves between them."""
    figure, ax = canvas(8.2, 3.5)
    box(ax, theme, 0.0, 1.5, 1.6, "client:\nyour script", theme.ink, height=1.0)
    box(ax, theme, 3.0, 1.5, 1.5, "scheduler", theme.ink, height=0.8)
    for row in range(3):
        y = 2.7 - 1.2 * row
        box(ax, theme, 5.7, y, 1.4, f"worker {row + 1}", theme.blue, height=0.8)
        _move(ax, GREEN, (4.5, 1.6), (5.7, y + 0.12), 1.2)
        _move(ax, ORANGE, (5.7, y - 0.12), (4.5, 1.4), 1.2)
        _move(ax, theme.blue, (8.1, 1.5 + 0.45 * (1 - row)), (7.1, y), 3.2)
    box(ax, theme, 8.1, 1.5, 1.4, "shared disk\nor bucket", theme.blue, height=2.0)
    _move(ax, GREEN, (1.6, 1.6), (3.0, 1.6), 1.2)
    _move(ax, ORANGE, (3.0, 1.4), (1.6, 1.4), 1.2)
    ax.text(2.3, 1.78, "tasks", ha="center", color=GREEN, fontsize=10)
    ax.text(
        2.3, 1.06, "summaries,\ncandidates", ha="center", color=ORANGE, fontsize=10, va="center"
    )
    ax.text(7.75, 3.1, "blocks of rows", ha="center", color=theme.blue, fontsize=10)
    ax.text(
        0.8, 0.62, "the coreset\nends up here", ha="center", color=ORANGE, fontsize=10, va="center"
    )
    ax.set(xlim=(-0.1, 9.6), ylim=(-0.25, 3.35))
    return figure


def _move(
    ax: Axes, color: str, start: tuple[float, float], end: tuple[float, float], width: float
) -> None:
    style = {"arrowstyle": "-|>", "color": color, "lw": width, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style, zorder=0)
