"""Colors of the two themes of the pages, and the shapes of diagrams."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from daskcoreset.plotting import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, GREEN, ORANGE, SKY = (COLORS[name] for name in ("lightweight", "svm", "kmeans", "coverage"))


class Theme(NamedTuple):
    """Colors of one of the two themes of the pages."""

    ground: str
    ink: str
    blue: str
    density: str


# Grounds are those of the pages, on which the drawings lie without a frame.
THEMES = {
    "light": Theme("#ffffff", "#555555", BLUE, "Blues"),
    "dark": Theme("#14181e", "#b4b9c2", SKY, "Blues_r"),
}


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure for a diagram, in inches, and its axes without ticks."""
    figure = Figure(figsize=(width, height), layout="constrained")
    ax = figure.add_subplot()
    ax.axis("off")
    return figure, ax


def box(  # noqa: PLR0917 - read in the order of the drawing
    ax: Axes,
    theme: Theme,
    x: float,
    y: float,
    width: float,
    text: str,
    color: str,
    *,
    height: float = 0.78,
) -> None:
    """Draw a box whose left edge is at x and whose middle is at height y."""
    style = "round,pad=0,rounding_size=0.08"
    corner = (x, y - height / 2)
    ax.add_patch(
        FancyBboxPatch(corner, width, height, boxstyle=style, fc=theme.ground, ec=color, lw=1.6)
    )
    ax.text(x + width / 2, y, text, ha="center", va="center", color=color, fontsize=10.5)


def arrow(ax: Axes, theme: Theme, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow."""
    ax.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": theme.ink})
