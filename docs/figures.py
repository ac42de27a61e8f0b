"""The drawings of the pages, made by the build: ``python docs/figures.py FOLDER``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from daskcoreset import build
from daskcoreset.datasets import make_mixture
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.plotting import COLORS, plot_coresets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Theme(NamedTuple):
    """Colours of one of the two themes of the pages."""

    ground: str
    ink: str
    blue: str
    density: str


BLUE, GREEN, ORANGE, SKY = (COLORS[name] for name in ("lightweight", "svm", "kmeans", "coverage"))

# Grounds are those of the pages, which the drawings lie on without a frame.
THEMES = {
    "light": Theme("#ffffff", "#555555", BLUE, "Blues"),
    "dark": Theme("#14181e", "#b4b9c2", SKY, "Blues_r"),
}


def front(theme: Theme) -> Figure:
    """Many points, and the few weighted rows that stand for them."""
    rng = np.random.default_rng(4)
    shares = np.array([0.62, 0.28, 0.09, 0.01])
    middles = np.array([[0.0, 0.0], [5.0, 1.2], [2.2, 4.2], [11.0, 4.8]])
    spreads = np.array([1.0, 0.8, 0.5, 0.16])
    part = rng.choice(4, size=500_000, p=shares)
    X = middles[part] + spreads[part, None] * rng.normal(size=(part.size, 2))
    coreset = build(X, size=200, method="kmeans", n_clusters=4, random_state=0)
    centers = CoresetKMeans(4, size=2_000, random_state=0).fit(X).cluster_centers_

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    left.hexbin(*X.T, gridsize=70, bins="log", cmap=theme.density, mincnt=1, linewidths=0)
    left.set_title(f"{len(X):,} rows", color=theme.ink)
    right.scatter(
        *coreset.points.T,
        s=3 + 0.025 * coreset.weights,
        color=ORANGE,
        alpha=0.55,
        linewidths=0,
    )
    right.set_title(f"{len(coreset)} weighted rows", color=theme.ink)
    # Around the centers, for a cross hides the few rows of the smallest cluster.
    ring = {"markersize": 19, "fillstyle": "none"}
    for ax in (left, right):
        ax.spines[:].set_color(theme.ink)
        if ax is left:  # a rim, for the density behind is as dark or light as the ink
            ax.plot(*centers.T, "o", color=theme.ground, **ring, markeredgewidth=5.6)
        ax.plot(*centers.T, "o", color=theme.ink, **ring, markeredgewidth=2.2)
        ax.set(xticks=[], yticks=[], xlim=(-4, 12.5), ylim=(-4, 6.5))
    return figure


def how(theme: Theme) -> Figure:
    """Blocks, fold, root, draw."""
    figure, ax = _canvas(9.4, 4.2)
    for row in range(4):
        y = 3.2 - row
        _box(ax, theme, 0.0, y, 1.5, f"block {row + 1}", theme.blue)
        _box(ax, theme, 2.3, y + 0.22, 1.7, "summary", GREEN, height=0.34)
        _box(ax, theme, 2.3, y - 0.22, 1.7, "candidates", ORANGE, height=0.34)
        _arrow(ax, theme, (1.5, y), (2.3, y + 0.22))
        _arrow(ax, theme, (1.5, y), (2.3, y - 0.22))
    for pair, y in enumerate((2.92, 0.92)):
        _box(ax, theme, 4.8, y, 1.1, "merge", GREEN, height=0.42)
        for row in (2 * pair, 2 * pair + 1):
            _arrow(ax, theme, (4.0, 3.42 - row), (4.8, y))
    _box(ax, theme, 6.5, 1.92, 1.3, "root:\nscores of\nall data", theme.ink, height=1.1)
    for y in (2.92, 0.92):
        _arrow(ax, theme, (5.9, y), (6.5, 1.92))
    for row in range(4):
        ax.annotate(
            "", xy=(6.75, 1.36), xytext=(4.0, 2.98 - row), zorder=0,
            arrowprops={"arrowstyle": "-", "color": ORANGE, "alpha": 0.35},
        )  # fmt: skip
    _box(ax, theme, 8.5, 1.92, 1.3, "draw:\nm rows,\nweights", theme.blue, height=1.1)
    _arrow(ax, theme, (7.8, 1.92), (8.5, 1.92))
    for x, text in ((0.75, "read once"), (3.15, "fold, candidates"), (5.35, "in order"), (7.9, "")):
        ax.text(x, 3.95, text, ha="center", color=theme.ink, fontsize=11)
    ax.set(xlim=(-0.1, 9.9), ylim=(-0.5, 4.2))
    return figure


def choose(theme: Theme) -> Figure:
    """From the task to the method."""
    branches = (
        ("groups of rows", "k known", "CoresetKMeans"),
        ("", "k open", 'build(X)'),
        ("", "densities", "CoresetGaussianMixture"),
        ("", "counts, spectra", "CoresetBregman"),
        ("labels", "linear boundary", "CoresetSVC, CoresetLogisticRegression"),
        ("", "curved boundary", "CoresetKernelClassifier"),
        ("", "largest margin", "MaxMarginClassifier"),
        ("", "labels are dear", "ActiveMaxMarginClassifier"),
        ("a number", "linear", "CoresetRidge, CoresetElasticNet"),
        ("something else", "", 'CoresetEstimator, beside method="uniform"'),
    )  # fmt: skip
    figure, ax = _canvas(9.4, 5.0)
    top = len(branches) - 1
    for row, (task, case, method) in enumerate(branches):
        y = top - row
        if task:
            source = y
            _box(ax, theme, 0.0, y, 2.0, task, theme.ink, height=0.7)
        if case:
            _box(ax, theme, 2.9, y, 2.2, case, theme.blue, height=0.66)
            _arrow(ax, theme, (2.0, source), (2.9, y))
            _arrow(ax, theme, (5.1, y), (5.8, y))
        else:
            _arrow(ax, theme, (2.0, y), (5.8, y))
        _box(ax, theme, 5.8, y, 4.5, method, GREEN, height=0.66)
    ax.set(xlim=(-0.1, 10.4), ylim=(-0.6, top + 0.6))
    return figure


def beside(_theme: Theme) -> Figure:
    """Two coresets of the same data, as `plot_coresets` draws them."""
    X, _ = make_mixture(100_000, 6, n_clusters=60, imbalance=1000, random_state=0)
    methods = ["lightweight", "uniform"]
    found = {one: build(X, size=400, method=one, random_state=0) for one in methods}
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    plot_coresets(found, X, axes=figure.subplots(1, 2, sharex=True, sharey=True))
    return figure


FIGURES: dict[str, Callable[[Theme], Figure]] = {
    "front": front, "how": how, "choose": choose, "beside": beside,
}  # fmt: skip

# What takes the ink of a theme where a figure names none.
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")


def write(folder: Path) -> None:
    """Draw what is not there yet."""
    folder.mkdir(exist_ok=True)
    for (name, draw), (kind, theme) in product(FIGURES.items(), THEMES.items()):
        path = folder / f"{name}-{kind}.svg"
        if not path.exists() or path.stat().st_mtime < Path(__file__).stat().st_mtime:
            ink = dict.fromkeys(_INKED, theme.ink)
            clear = {"axes.facecolor": "none", "svg.hashsalt": name, "font.size": 11}
            with mpl.rc_context({**ink, **clear}):
                draw(theme).savefig(path, metadata={"Date": None}, transparent=True)


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    ax = figure.add_subplot()
    ax.axis("off")
    return figure, ax


def _box(  # noqa: PLR0917 - read in the order of the drawing
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


def _arrow(ax: Axes, theme: Theme, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": theme.ink})


if __name__ == "__main__":
    write(Path(sys.argv[1]))
