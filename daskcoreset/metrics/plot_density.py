"""Axes, histogram and marks of a picture of a coreset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import dense
from daskcoreset.core.looks import CLASSES, INK, Look, add_legend, ink_of, look_of
from daskcoreset.core.moments import Scatter, merge_scatters, scatter_of_block
from daskcoreset.core.tables import brief
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Area of all markers together, in square points: some 15 % of a usual picture.
_INK = 9000.0

# Areas at which a marker can just be seen, and at which it hides its neighbours.
_SMALLEST, _LARGEST = 2.0, 350.0

# The least diameter of a marker in the legend, and the area above which markers have a rim.
_SMALLEST_IN_LEGEND, _RIM = 3.0, 16.0

# Times the median that the mean weight counts at most: one huge weight makes no specks of others.
_MEAN_OVER_MEDIAN = 4.0

# Of all labels beside those that are named.
_OTHERS = "0.5"

# Rows whose inner products are faster than iterations without a gap between the axes.
_FEW_ROWS = 2048

# Shares of the variance that are rounding of a covariance matrix.
_ROUNDING = 1e-15

# Entries that some corner of a picture has room for, and letters of one where there are more.
_SHORT_LEGEND, _SHORT_NAME = 6, 16

# Share of the width of axes that a legend may have beside the rows.
_MOST_OF_AXES = 0.5

# Weights that a legend explains at most, and what marks the handles of these.
_SIZES, _SIZED = 3, "weight"


@dataclass(frozen=True, eq=False)
class Shades:
    """What labels look like in all panels of a picture, and whose weights its legend explains.

    Attributes
    ----------
    classes : ndarray or None
        Few different labels, sorted; of many that are no numbers the heaviest. None where there
        are none, or many numbers.
    others : int
        Different labels beside `classes`.
    low, high : float
        Of labels that are many numbers.
    weights : ndarray of shape (m,), float64
        Of the rows of all panels.
    scale : float
        Area of a marker of weight one, in square points.
    """

    classes: AnyArray | None
    others: int
    low: float
    high: float
    weights: FloatArray
    scale: float


def shades_of(coresets: Sequence[Coreset]) -> Shades:
    """Return one look for the labels and sizes of coresets that are drawn beside each other."""
    weights = np.concatenate([one.weights for one in coresets])
    scale = min(area_scale(one.weights) for one in coresets)
    labels = [one.labels for one in coresets if one.labels is not None]
    if not labels:
        return Shades(None, 0, 0.0, 1.0, weights, scale)
    values, codes = np.unique(np.concatenate(labels), return_inverse=True)
    if len(values) <= len(CLASSES):
        return Shades(values, 0, 0.0, 1.0, weights, scale)
    if values.dtype.kind not in "fiu":
        labelled = np.concatenate([one.weights for one in coresets if one.labels is not None])
        heaviest = np.argsort(-np.bincount(codes, labelled), kind="stable")[: len(CLASSES) - 1]
        classes = values[np.sort(heaviest)]
        return Shades(classes, len(values) - len(classes), 0.0, 1.0, weights, scale)
    known = values[np.isfinite(values)]
    low, high = (float(known[0]), float(known[-1])) if len(known) else (0.0, 1.0)
    return Shades(None, 0, low, high, weights, scale)


def draw_density(ax: Axes, counts: FloatArray, edges: Sequence[FloatArray]) -> None:
    """Draw a histogram of the data in greys, from clear to dense."""
    from matplotlib.colors import ListedColormap, LogNorm

    if not counts.any():
        return
    # A logarithm, for dense cells would leave nothing to see of the others.
    cells = np.ma.masked_equal(counts.T, 0.0)
    largest = float(counts.max())
    norm = LogNorm(max(float(cells.min()) / 3, largest * 1e-6), largest)
    # One grey that hides more and more of what is behind it, be that white or black.
    greys = np.full((256, 4), 0.5)
    greys[:, 3] = np.linspace(0.05, 0.8, len(greys))
    ax.pcolormesh(*edges, cells, cmap=ListedColormap(greys), norm=norm, lw=0, rasterized=True)


def draw_rows(
    ax: Axes,
    shown: FloatArray,
    coreset: Coreset,
    style: dict[str, Any],
    shades: Shades | None = None,
) -> list[Any]:
    """Draw rows as markers whose area is their weight; return what a legend needs."""
    shades = shades_of([coreset]) if shades is None else shades
    areas = _areas(coreset.weights, shades.scale)
    order = np.argsort(-areas, kind="stable")  # large ones first, small ones on top of them
    options: dict[str, Any] = {
        "alpha": 0.75,
        # A rim would cover small markers.
        "linewidths": 0.4 if np.median(areas) > _RIM else 0.0,
        "edgecolors": "white",
        "zorder": 2,
    }
    look = look_of(coreset.provenance.get("method", "lightweight"))
    colors, markers, handles = _colors(coreset.labels, look, shades)
    if "norm" in style:  # which has limits of its own
        colors = {name: value for name, value in colors.items() if name not in {"vmin", "vmax"}}
    if style.keys() & {"c", "color"}:
        colors, handles = {}, []
    if style.keys() & {"c", "color", "marker"}:
        markers = None
    if "marker" in style:  # which may have no inside, and so no rim
        del options["edgecolors"]
    values = colors.get("c")
    if isinstance(values, np.ndarray):
        colors["c"] = values[order]
    drawn = ax.scatter(
        shown[order, 0], shown[order, 1], s=areas[order], **(options | colors | style)
    )
    if markers is not None:  # one collection, in which large rows are below small ones
        drawn.set_paths([_outline(marker) for marker in markers[order]])
    if "cmap" in colors and ax.figure is not None:
        bar = ax.figure.colorbar(drawn, ax=ax)
        bar.set_label("label", color=ink_of(ax))
        bar.ax.tick_params(colors=ink_of(ax))
    return handles + _sizes(shades)


def draw_line(
    ax: Axes,
    shown: FloatArray,
    coreset: Coreset,
    counts: FloatArray | None,
    edge: FloatArray,
    *,
    style: dict[str, Any],
    shades: Shades | None = None,
) -> list[Any]:
    """Draw one column: the density of the data, that of the coreset, and its rows below."""
    handles: list[Any] = []
    if counts is not None and counts.any():
        density = counts / (counts.sum() * (edge[1] - edge[0]))
        grey: dict[str, Any] = {"color": "0.5", "alpha": 0.4}
        handles.append(ax.stairs(density, edge, fill=True, label="data", **grey))
    # So few rows fill wider cells only.
    cells = max(5, min(len(edge) - 1, int(1.5 * np.sqrt(len(coreset)))))
    coarse = np.linspace(edge[0], edge[-1], cells + 1)
    sums, _ = np.histogram(shown, coarse, weights=coreset.weights)
    density = sums / (sums.sum() * (coarse[1] - coarse[0]))
    color = look_of(coreset.provenance.get("method", "lightweight")).color
    handles.append(ax.stairs(density, coarse, color=color, lw=1.5, label="coreset"))
    top = ax.get_ylim()[1]
    below = np.stack([shown, np.full(len(shown), -0.07 * top)], axis=1)
    handles += draw_rows(ax, below, coreset, style, shades)
    ax.set_ylim(-0.14 * top, top)
    ax.axhline(0.0, color="0.6", lw=0.8)
    return handles


def explain(ax: Axes, handles: list[Any], seen: FloatArray | None = None) -> None:
    """Draw the legend where it covers least of what is `seen`, of shape (n, 2), in the axes.

    Where a long one would cover something in every corner, it gets room beside the rows.
    """
    from matplotlib.font_manager import FontProperties

    look: dict[str, Any] = {"loc": "best", "framealpha": 0.85, "fontsize": "small"}
    # Markers as large as in the picture need rows as high as they are, and as wide a column.
    sized = [handle for handle in handles if handle.get_gid() == _SIZED]
    if sized:
        look["handler_map"] = dict.fromkeys(sized, _SizedHandler())
        letters = float(FontProperties(size=look["fontsize"]).get_size_in_points())
        look["handlelength"] = max(2.0, *(one.get_markersize() / letters for one in sized))
    legend = add_legend(ax, handles=handles, **look)
    if seen is None:
        return
    engine = getattr(ax.figure, "get_layout_engine", lambda: None)()
    if engine is not None and ax.figure.get_figure() is ax.figure:
        engine.execute(ax.figure)  # which may make the axes larger
    box = legend.get_window_extent()
    pad = 2 * legend.borderaxespad * legend.prop.get_size_in_points() * ax.figure.dpi / 72
    width, height = box.width + pad, box.height + pad
    x, y = ax.transData.transform(seen).T
    sides = {"right": x > ax.bbox.x1 - width, "left": x < ax.bbox.x0 + width}
    ends = {"upper": y > ax.bbox.y1 - height, "lower": y < ax.bbox.y0 + height}
    covered = {
        f"{end} {side}": int((below & beside).sum())
        for end, below in ends.items()
        for side, beside in sides.items()
    }
    corner = min(covered, key=lambda name: covered[name])
    share = width / ax.bbox.width
    if covered[corner] and len(handles) > _SHORT_LEGEND and share < _MOST_OF_AXES:
        low, high = ax.get_xlim()
        ax.set_xlim(low, low + (high - low) / (1 - share))
        corner = "upper right"
    legend.set_loc(corner)


class _SizedHandler:
    """Draws a marker in a row of a legend that is as high as the marker."""

    def legend_artist(self, _legend: Any, handle: Any, fontsize: float, box: Any) -> Any:
        diameter, middle = handle.get_markersize(), 0.35 * fontsize
        box.height = max(box.height, diameter)
        box.ydescent = max(box.ydescent, diameter / 2 - middle)
        marker = _dot(diameter, "", handle.get_markerfacecolor())
        marker.set_data([box.width / 2], [middle])
        box.add_artist(marker)
        return marker


def area_scale(weights: FloatArray) -> float:
    """Return the area, in square points, of a marker of weight one."""
    positive = weights[weights > 0]
    typical = 1.0
    if len(positive):
        typical = min(float(positive.mean()), _MEAN_OVER_MEDIAN * float(np.median(positive)))
    return min(60.0, max(6.0, _INK / len(weights))) / typical


def _areas(weights: FloatArray, scale: float) -> FloatArray:
    areas: FloatArray = np.clip(weights * scale, _SMALLEST, _LARGEST)
    return areas


def _colors(
    labels: AnyArray | None, look: Look, shades: Shades
) -> tuple[dict[str, Any], AnyArray | None, list[Any]]:
    """Colours of the rows, as options of a scatter, their markers, and what names them."""
    if labels is None:
        return {"color": look.color}, None, []
    if shades.classes is not None:
        from matplotlib.colors import to_rgba_array

        # NaN is the last class, and after all numbers in a search too.
        codes = np.searchsorted(shades.classes, labels)
        names = list(shades.classes)
        looks: list[tuple[str, Any]] = list(CLASSES[: len(names)])
        if shades.others:
            codes[~np.isin(labels, shades.classes)] = len(names)
            names.append(f"{shades.others:,} others")
            looks.append((_OTHERS, _bar()))
        colors, markers = zip(*looks, strict=True)
        most = 30 if len(colors) + _SIZES <= _SHORT_LEGEND else _SHORT_NAME
        handles = [
            _dot(7.0, brief(name, most), color, marker)
            for name, color, marker in zip(names, colors, markers, strict=True)
        ]
        return {"c": to_rgba_array(colors)[codes]}, np.array(markers, dtype=object)[codes], handles
    from matplotlib import colormaps

    values = labels.astype(np.float64)
    # Rows without a number are drawn, too.
    scale = {"vmin": shades.low, "vmax": shades.high, "plotnonfinite": True}
    unknown = [] if np.isfinite(values).all() else [_dot(7.0, "no number", "0.5")]
    cmap = colormaps["viridis"].with_extremes(bad="0.5")
    return {"c": values, "cmap": cmap, **scale}, None, unknown


@cache
def _bar() -> Any:
    """Return the marker of `_OTHERS`, which no class has: they are told apart without colour."""
    from matplotlib.path import Path

    return Path([(-0.25, -1.0), (0.25, -1.0), (0.25, 1.0), (-0.25, 1.0), (-0.25, -1.0)])


@cache
def _outline(marker: Any) -> Any:
    from matplotlib.markers import MarkerStyle

    style = MarkerStyle(marker)
    return style.get_path().transformed(style.get_transform())


def _sizes(shades: Shades) -> list[Any]:
    """Return legend handles for a light row, a heavy one, and one between, of sizes that differ.

    They are as large as in the picture, but for specks, which nobody would see alone.
    """
    weights = np.sort(shades.weights)
    diameters = np.maximum(np.sqrt(_areas(weights, shades.scale)), _SMALLEST_IN_LEGEND)
    light = len(weights) // 20
    between = np.searchsorted(diameters, (diameters[light] + diameters[-1]) / 2)
    rows = np.sort([light, min(int(between), len(weights) - 1), len(weights) - 1])
    shown, diameters = weights[rows], diameters[rows]
    handles: list[Any] = []
    for weight, diameter in zip(shown, diameters, strict=True):
        if handles and diameter < 1.15 * handles[-1].get_markersize():
            handles.pop()  # the heavier one stays
        handles.append(_dot(float(diameter), f"weight {_short(weight)}", INK))
        handles[-1].set_gid(_SIZED)
    return handles


def _short(weight: float) -> str:
    return f"{weight:,.0f}" if 100 <= weight < 1e7 else f"{weight:.3g}"


def _dot(diameter: float, label: str, color: Any, marker: Any = "o") -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], ls="", marker=marker, ms=diameter, color=color, mec="none", label=label)


# Above this a covariance matrix (8 MiB) is not gathered from the blocks.
MAX_COLUMNS = 1024


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates in which rows are drawn.

    Attributes
    ----------
    center : ndarray of shape (d,), float64
    axes : ndarray of shape (d, 1 or 2), float64
        Orthonormal columns; zeros for an axis without variance.
    shares : tuple of float or None
        Share of the variance along each axis; None for data shown as they are.
    reach : ndarray of shape (2, 1 or 2), float64, or None
        Coordinates between which nearly all of the data lie, where their scatter is known.
    """

    center: FloatArray
    axes: FloatArray
    shares: tuple[float, ...] | None = None
    reach: FloatArray | None = None

    def of(self, points: Any) -> FloatArray:
        """Return the coordinates of rows, float64 of shape (n, 1 or 2)."""
        if self.shares is None:
            return dense(points)
        if isinstance(points, np.ndarray):
            moved: FloatArray = (points - self.center) @ self.axes
            return moved
        return np.asarray(points @ self.axes - self.center @ self.axes, dtype=np.float64)


def rows_frame(points: Any, weights: FloatArray) -> Frame:
    """Two principal axes of weighted rows in memory; none for at most two columns."""
    d = int(points.shape[1])
    mean = np.asarray(weights @ points, dtype=np.float64) / weights.sum()
    if d <= 2:
        return Frame(np.zeros(d), np.eye(d))
    ends = dense(points.max(axis=0)), dense(points.min(axis=0))
    if np.array_equal(*ends):  # rounding would be all that axes are of
        return Frame(np.asarray(ends[0], np.float64).ravel(), np.eye(d, 2), (0.0, 0.0))
    root = np.sqrt(weights / weights.sum())
    if min(points.shape) <= 3:
        moved = root[:, np.newaxis] * (dense(points) - mean)
        _, spread, axes = np.linalg.svd(np.vstack([moved, np.zeros((2, d))]), full_matrices=False)
        return Frame(mean, *_upright(axes[:2].T, spread[:2] ** 2, float((spread**2).sum())))
    squares = points * points if isinstance(points, np.ndarray) else points.multiply(points)
    total = float((root**2 @ squares).sum() - mean @ mean)
    if isinstance(points, np.ndarray) and len(points) <= min(d, _FEW_ROWS):
        moved = root[:, np.newaxis] * (points - mean)
        values, vectors = np.linalg.eigh(moved @ moved.T)
        axes = moved.T @ vectors[:, [-1, -2]]
        axes /= np.maximum(np.linalg.norm(axes, axis=0), np.finfo(float).tiny)
        return Frame(mean, *_upright(axes, values[[-1, -2]], total))
    from scipy.sparse.linalg import LinearOperator, svds

    # Never formed: rows less their mean, which would make sparse rows dense.
    operator = LinearOperator(
        points.shape,
        matvec=lambda v: root * (points @ v.ravel() - mean @ v.ravel()),
        rmatvec=lambda v: points.T @ (root * v.ravel()) - mean * (root @ v.ravel()),
        dtype=np.float64,
    )
    start = np.random.default_rng(0).normal(size=min(points.shape))
    _, spread, axes = svds(operator, k=2, v0=start)
    order = np.argsort(-spread)
    return Frame(mean, *_upright(axes[order].T, spread[order] ** 2, total))


def data_frame(blocks: RowBlocks) -> Frame:
    """Two principal axes of all rows, in one read; none for at most two columns."""
    scatter: Scatter = map_reduce(blocks, scatter_of_block, merge_scatters).value
    d = len(scatter.mean)
    signs = np.array([[-3.0], [3.0]])
    if d <= 2:
        around = scatter.mean + signs * np.sqrt(np.diag(scatter.covariance))
        return Frame(np.zeros(d), np.eye(d), reach=around)
    if not np.isfinite(scatter.covariance).all():
        raise InvalidInputError(
            "X has no axes to be shown: sample_weight sums to zero, or X has values too large; "
            "correct them."
        )
    values, vectors = np.linalg.eigh(scatter.covariance)
    axes, shares = _upright(vectors[:, [-1, -2]], values[[-1, -2]], float(values.sum()))
    return Frame(scatter.mean, axes, shares, signs * np.sqrt(np.maximum(values[[-1, -2]], 0.0)))


def histogram(blocks: RowBlocks, frame: Frame, edges: Sequence[FloatArray]) -> FloatArray:
    """Weight of the rows in every cell of a grid, in one read.

    Parameters
    ----------
    blocks : RowBlocks
    frame : Frame
    edges : sequence of one or two ndarray of shape (bins + 1,), float64
        Evenly spaced. Rows outside are left out.

    Returns
    -------
    ndarray of shape (bins,) or (bins, bins), float64
    """
    grid = frame, tuple(edges)
    counts: FloatArray = map_reduce(blocks, _histogram_of_block, add, broadcast=grid).value
    return counts.reshape([len(edge) - 1 for edge in edges])


def _upright(
    axes: FloatArray, variances: FloatArray, total: float
) -> tuple[FloatArray, tuple[float, ...]]:
    """Fix the signs, so that the same data always look the same; divide the variances."""
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    shares = np.maximum(variances, 0.0) / total if total > 0 else np.zeros(len(variances))
    shares[shares < _ROUNDING] = 0.0
    signs = np.where(largest < 0, -1.0, 1.0) * (shares > 0)
    return axes * signs, tuple(float(share) for share in shares)


def _histogram_of_block(
    block: Block, _index: int, grid: tuple[Frame, tuple[FloatArray, ...]]
) -> FloatArray:
    frame, edges = grid
    shape = [len(edge) - 1 for edge in edges]
    values = np.zeros(int(np.prod(shape)))
    if len(block):
        shown = frame.of(block.points)
        cells = np.zeros(len(shown), dtype=np.int64)
        inside = np.ones(len(shown), dtype=bool)
        for j, edge in enumerate(edges):
            position = (shown[:, j] - edge[0]) / (edge[-1] - edge[0]) * shape[j]
            inside &= (position >= 0) & (position < shape[j])
            cells = cells * shape[j] + np.where(inside, position, 0.0).astype(np.int64)
        values += np.bincount(cells[inside], block.weights[inside], len(values))
    return values
