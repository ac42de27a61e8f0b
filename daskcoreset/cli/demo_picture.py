"""The picture of the demonstration: what a uniform sample misses, and error against size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.looks import Look, add_legend, look_of
from daskcoreset.core.typing import FloatArray
from daskcoreset.metrics.plot_density import draw_rows, rows_frame, shades_of
from daskcoreset.metrics.plot_errors import label_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from daskcoreset.cli.demo_results import Comparison

# Below so many deviations of the best centers an axis is as usual, and logarithmic beyond.
_STRAIGHT = 0.3


def draw(comparison: Comparison) -> Figure:
    """Draw it; without pyplot, which would choose a window system."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.6), dpi=130, layout="constrained")
    panels = figure.subplots(1, 3)
    first, *_, last = comparison.examples
    n, d = comparison.shape
    for ax, name in zip(panels, (first, last), strict=False):
        _draw_example(ax, comparison, name)
    _draw_errors(panels[2], comparison)
    figure.suptitle(
        f"k-means on {comparison.cells[0].size:,} of {n:,} rows x {d} ({comparison.name}): "
        f"a uniform sample, a coreset, and the error of both"
    )
    return figure


def found_of(best: FloatArray, centers: FloatArray) -> np.ndarray:
    """Return which of the best centers a solution has.

    One of its own lies nearer then than half the way to the next of the best.
    """
    apart = np.linalg.norm(best[:, np.newaxis] - best, axis=2)
    np.fill_diagonal(apart, np.inf)
    near = np.linalg.norm(best[:, np.newaxis] - centers, axis=2).min(axis=1)
    found: np.ndarray = near < apart.min(axis=1) / 2
    return found


def _draw_example(ax: Axes, comparison: Comparison, name: str) -> None:
    coreset, centers = comparison.examples[name]
    best = comparison.best_centers
    frame = rows_frame(best, np.ones(len(best)))
    shades = shades_of([one for one, _ in comparison.examples.values()])
    draw_rows(ax, frame.of(coreset.points), coreset, {}, shades)
    found, places = found_of(best, centers), frame.of(best)
    ways: tuple[tuple[bool, dict[str, Any], str], ...] = (
        (True, {"marker": "+", "s": 90, "color": "black", "lw": 1.8}, "cluster, found"),
        (
            False,
            {"marker": "o", "s": 260, "ec": "black", "fc": "none", "lw": 2.2},
            "cluster, missed",
        ),
    )
    for flag, look, words in ways:
        chosen: Any = places[found == flag]
        if len(chosen):
            ax.scatter(*chosen.T, label=words, zorder=4, **look)
    for axis, values in (("x", places[:, 0]), ("y", places[:, 1])):
        straight = _STRAIGHT * float(values.std()) or 1.0
        getattr(ax, f"set_{axis}scale")("symlog", linthresh=straight)
        low, high = values.min(), values.max()
        getattr(ax, f"set_{axis}lim")(1.5 * min(low, -straight), 1.5 * max(high, straight))
    ax.set(xticks=[], yticks=[])
    ax.minorticks_off()
    ax.set_ylabel("two principal axes, logarithmic outside")
    ax.set_title(f"{name}: {found.sum()} of {len(best)} clusters found")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": 2, "markerscale": 0.6}
    add_legend(ax, frameon=False, **below)


def _draw_errors(ax: Axes, comparison: Comparison) -> None:
    names = list(dict.fromkeys(cell.contender.name for cell in comparison.cells))
    for i, name in enumerate(names):
        cells = [cell for cell in comparison.cells if cell.contender.name == name]
        mean = np.array([cell.errors.mean() for cell in cells])
        spread = np.array([cell.errors.std(ddof=1) for cell in cells])
        # Side by side, so that the bars of one method do not hide those of another.
        sizes = np.array([cell.size for cell in cells]) * 1.04 ** (i - 1)
        # A logarithm has no place for zero: the best solution of all may be one of these.
        shown, look = np.maximum(mean, 1e-6), look_of(name)
        ax.errorbar(sizes, shown, spread, label=name, capsize=3, **_line(look))
    label_errors(ax, np.array(comparison.scale.sizes))
    ax.set_ylabel("cost above that of the best solution")
    scale = comparison.scale
    ax.set_title(f"{scale.n_clusters} clusters, {scale.n_seeds} seeds")
    add_legend(ax, fontsize="small")


def _line(look: Look) -> dict[str, Any]:
    return {**look.line, "ms": 6, "lw": 1.8}
