"""Colors of the two themes of the pages, and the shapes of diagrams and of charts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from daskcoreset.plotting import COLORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

BLUE, GREEN, ORANGE, SKY = (COLORS[name] for name in ("lightweight", "svm", "kmeans", "coverage"))


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def results(name: str) -> dict[str, Any]:
    """Return the results of a benchmark."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


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


def dots(
    ax: Axes, theme: Theme, rows: Sequence[str], series: Mapping[str, tuple[str, Sequence[float]]]
) -> None:
    """Draw a value of each series per row, from top to bottom; a series is color and values."""
    places = range(len(rows), 0, -1)
    for place, *values in zip(places, *(values for _, values in series.values()), strict=True):
        ax.plot([min(values), max(values)], [place, place], color=theme.ink, lw=1, alpha=0.5)
    for marker, (name, (color, values)) in zip("osD^", series.items(), strict=False):
        ax.plot(values, places, marker, color=color, ms=9, label=name)
    ax.set_yticks(places, rows)
    ax.set_ylim(0.4, len(rows) + 0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", alpha=0.25)
    ax.figure.legend(
        loc="outside upper center", ncols=len(series), frameon=False, labelcolor=theme.ink
    )
