"""A folder of files, the leaves of its view, and what a refresh makes again."""

from __future__ import annotations

from matplotlib.figure import Figure
from theme import GREEN, ORANGE, Theme, arrow, box, canvas

_FILES = (
    ("2026-03-01.npy", "same"), ("2026-03-02.npy", "same"),
    ("2026-03-03.npy", "changed"), ("2026-03-04.npy", "new"),
)  # fmt: skip


def draw(theme: Theme) -> Figure:
    """Draw a folder of files, the leaves of its view, and what a refresh makes again."""
    figure, ax = canvas(8.2, 3.5)
    for row, (name, state) in enumerate(_FILES):
        y, is_read = 3.0 - row, state != "same"
        color = ORANGE if is_read else theme.blue
        box(ax, theme, 0.0, y, 2.2, name, color, height=0.62)
        box(ax, theme, 4.4, y, 1.3, "coreset", color, height=0.62)
        if is_read:
            arrow(ax, theme, (2.2, y), (4.4, y))
        else:
            ax.plot([2.2, 4.4], [y, y], color=theme.ink, lw=1.0, ls=":")
        said = f"{state}: read" if is_read else "unchanged: not read"
        ax.text(3.3, y + 0.14, said, ha="center", color=color, fontsize=9.5)
    for y, color in ((2.5, theme.blue), (0.5, ORANGE)):
        box(ax, theme, 6.5, y, 1.1, "node", color, height=0.62)
        for below in (y - 0.5, y + 0.5):
            ax.plot([5.7, 6.5], [below, y], color=theme.ink, lw=1.0)
        ax.plot([7.6, 8.3], [y, 1.5], color=theme.ink, lw=1.0)
    box(ax, theme, 8.3, 1.5, 1.1, "root", ORANGE, height=0.62)
    for x, text in ((1.1, "the folder"), (5.05, "leaves"), (7.9, "nodes above them")):
        ax.text(x, 3.62, text, ha="center", color=theme.ink, fontsize=11)
    ax.text(8.85, 2.05, "made again", ha="center", color=ORANGE, fontsize=9.5)
    ax.text(7.05, 2.98, "kept", ha="center", color=theme.blue, fontsize=9.5)
    ax.text(8.85, 0.95, "view.coreset()", ha="center", color=GREEN, fontsize=10)
    ax.set(xlim=(-0.1, 9.5), ylim=(-0.45, 3.85))
    return figure
