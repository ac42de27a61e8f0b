"""The marks of a picture of a coreset: its rows, its density, and what explains them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from daskcoreset.core.coreset import Coreset
    from daskcoreset.core.typing import AnyArray, FloatArray

__all__ = ["draw_density", "draw_line", "draw_rows", "explain"]

_INK = 9000.0
"""Area of all markers together, in square points: some 15 % of a usual picture."""

_SMALLEST, _LARGEST = 2.0, 350.0
"""Areas at which a marker can just be seen, and at which it hides its neighbours."""

_MOST_CLASSES = 10
"""So many colours can be told apart; labels of more values are shown on a scale."""


_SHORT_LEGEND = 6
"""Entries that some corner of a picture has room for."""


def draw_density(ax: Axes, counts: FloatArray, edges: Sequence[FloatArray]) -> None:
    """Draw a histogram of the data in greys, empty cells white."""
    from matplotlib.colors import LogNorm  # noqa: PLC0415 - optional

    if not counts.any():
        return
    # A logarithm, for dense cells would leave nothing to see of the others.
    cells = np.ma.masked_equal(counts.T, 0.0)
    most = float(counts.max())
    # Neither the lightest nor the darkest grey is used: one is lost, the other hides rows.
    norm = LogNorm(max(float(cells.min()) / 3, most * 1e-6), 2 * most)
    ax.pcolormesh(*edges, cells, cmap="Greys", norm=norm, alpha=0.65, lw=0, rasterized=True)


def draw_rows(ax: Axes, shown: FloatArray, coreset: Coreset, style: dict[str, Any]) -> list[Any]:
    """Draw rows as markers whose area is their weight; return what a legend needs."""
    areas = _areas(coreset.weights)
    order = np.argsort(-areas, kind="stable")  # large ones first, small ones on top of them
    options: dict[str, Any] = {
        "alpha": 0.75,
        "linewidths": 0.4,
        "edgecolors": "white",
        "zorder": 2,
    }
    colors, handles = _colors(coreset.labels)
    if style.keys() & {"c", "color"}:
        colors, handles = {}, []
    values = colors.get("c")
    if isinstance(values, np.ndarray):
        colors["c"] = values[order]
    drawn = ax.scatter(
        shown[order, 0], shown[order, 1], s=areas[order], **(options | colors | style)
    )
    if "cmap" in colors and ax.figure is not None:
        ax.figure.colorbar(drawn, ax=ax, label="label")
    return handles + _sizes(coreset.weights, areas)


def draw_line(
    ax: Axes,
    shown: FloatArray,
    coreset: Coreset,
    counts: FloatArray | None,
    edge: FloatArray,
    *,
    style: dict[str, Any],
) -> list[Any]:
    """Draw one column: the density of the data, that of the coreset, and its rows below."""
    handles: list[Any] = []
    if counts is not None and counts.any():
        density = counts / (counts.sum() * (edge[1] - edge[0]))
        handles.append(ax.stairs(density, edge, fill=True, color="0.8", label="data"))
    # So few rows fill wider cells only.
    cells = max(5, min(len(edge) - 1, int(1.5 * np.sqrt(len(coreset)))))
    coarse = np.linspace(edge[0], edge[-1], cells + 1)
    held, _ = np.histogram(shown, coarse, weights=coreset.weights)
    density = held / (held.sum() * (coarse[1] - coarse[0]))
    handles.append(ax.stairs(density, coarse, color="C0", lw=1.5, label="coreset"))
    top = ax.get_ylim()[1]
    places = np.stack([shown, np.full(len(shown), -0.07 * top)], axis=1)
    handles += draw_rows(ax, places, coreset, style)
    ax.set_ylim(-0.14 * top, top)
    ax.axhline(0.0, color="0.6", lw=0.8)
    return handles


def explain(ax: Axes, handles: list[Any]) -> None:
    """Draw the legend; a long one gets room of its own, for it would hide the rows."""
    place: Literal["best", "upper right"] = "best"
    if len(handles) > _SHORT_LEGEND:
        low, high = ax.get_xlim()
        ax.set_xlim(low, high + 0.3 * (high - low))
        place = "upper right"
    ax.legend(handles=handles, loc=place, framealpha=0.85, fontsize="small")


def _areas(weights: FloatArray) -> FloatArray:
    positive = weights[weights > 0]
    mean = float(positive.mean()) if len(positive) else 1.0
    each = min(60.0, max(6.0, _INK / len(weights)))
    areas: FloatArray = np.clip(weights * (each / mean), _SMALLEST, _LARGEST)
    return areas


def _colors(labels: AnyArray | None) -> tuple[dict[str, Any], list[Any]]:
    """Colours of the rows, as options of a scatter, and the handles that name them."""
    if labels is None:
        return {"color": "C0"}, []
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) <= _MOST_CLASSES:
        from matplotlib import colormaps  # noqa: PLC0415 - optional

        palette = np.asarray(colormaps["tab10"](np.arange(len(classes))))
        handles = [
            _dot(7.0, f"{name}", color) for name, color in zip(classes, palette, strict=True)
        ]
        return {"c": palette[codes]}, handles
    if labels.dtype.kind in "fiu":
        return {"c": labels.astype(np.float64), "cmap": "viridis"}, []
    return {"color": "C0"}, []  # text of many values: no colours would tell them apart


def _sizes(weights: FloatArray, areas: FloatArray) -> list[Any]:
    """Return handles for a light, a usual and a heavy row."""
    place = np.argsort(weights, kind="stable")[[len(weights) // 20, len(weights) // 2, -1]]
    names = {f"weight {_short(weights[i])}": float(areas[i]) for i in place}
    return [_dot(float(np.sqrt(area)), name, "0.5") for name, area in names.items()]


def _short(weight: float) -> str:
    return f"{weight:,.0f}" if weight >= 100 else f"{weight:.3g}"


def _dot(diameter: float, label: str, color: Any) -> Any:
    from matplotlib.lines import Line2D  # noqa: PLC0415 - optional

    return Line2D([], [], ls="", marker="o", ms=diameter, color=color, mec="white", label=label)
