"""Pictures: a coreset over the density of its data, and error against size.

matplotlib is imported when something is drawn, pyplot only where no axes are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.looks import add_legend, axes_for, ink_of, look_of, new_axes
from daskcoreset.core.optional import need_matplotlib
from daskcoreset.core.portfolio import Portfolio
from daskcoreset.core.tables import brief
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.core.validation import as_float, as_numbers, check_flag, is_int, shown
from daskcoreset.inputs.options import takes_reading
from daskcoreset.metrics.costs import data_of
from daskcoreset.metrics.explore import Exploration, explore
from daskcoreset.metrics.plot_density import (
    MAX_COLUMNS,
    Frame,
    area_scale,
    data_frame,
    draw_density,
    draw_line,
    draw_rows,
    explain,
    frame_of,
    histogram,
    histogram_of_rows,
    rows_frame,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Exploration",
    "explore",
    "plot_audit",
    "plot_coreset",
    "plot_coresets",
    "plot_error",
]

# Cells along an axis at most: a few pixels each.
_MAX_BINS = 120

# Of a user: pictures have fewer points, and a square of cells takes a gigabyte.
_MOST_BINS = 10_000

# Side by side, before a new row begins.
_PANELS = 3

# Sizes named on the axis; more would run into each other.
_MAX_TICKS = 8


@takes_reading
def plot_coreset(
    coreset: Coreset,
    X: Any = None,
    *,
    ax: Axes | None = None,
    sample_weight: Any = None,
    bins: int | None = None,
    legend: bool = True,
    on_invalid: Literal["raise", "drop"] | None = None,
    **style: Any,
) -> Axes:
    """Draw the rows of a coreset, sized by weight, over a density of the data.

    Three columns or more are shown along two principal axes, one or two as they are.

    Parameters
    ----------
    coreset : Coreset
    X : array-like of shape (n, d), or path, or Portfolio, or None, default=None
        The data, any input of `daskcoreset.build`: read once for a histogram, and for three
        to 1024 columns once before, for the axes. Without it, and with more columns, the
        axes are those of the coreset, which estimate those of the data. A `Portfolio` built with
        ``summaries=["sample"]`` stands for its data, which are not read: its moments give the same
        axes, and its sample a coarser histogram.
    ax : matplotlib.axes.Axes or None, default=None
        Where to draw; None draws into a new figure of pyplot.
    sample_weight : array-like of shape (n,), optional
        Input weights of the data.
    bins : int or None, default=None
        Cells of the histogram along each axis; between 30 and 120 by the number of rows.
    legend : bool, default=True
        Whether to explain sizes, and the colours of labels.
    on_invalid : {"raise", "drop"} or None, default=None
        As in `daskcoreset.audit`.
    storage_options, columns, missing_chunks, sample_dims, feature_dims
        As in `daskcoreset.build`.
    **style
        For ``Axes.scatter``, over what is chosen here: ``alpha``, ``cmap``, ``color``, ...

    Returns
    -------
    matplotlib.axes.Axes
        With its labels and legend set, to be restyled. The area of a marker is in proportion
        to the weight, but for the lightest and heaviest, which stay visible and bounded.

    Raises
    ------
    InvalidInputError
        If X has other columns than the coreset, or bins is not a positive int.
    MissingDependencyError
        matplotlib is not installed; the extra is "plot".

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> from matplotlib.figure import Figure
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> coreset = daskcoreset.build(X, size=100, random_state=0)
    >>> ax = plot_coreset(coreset, X, ax=Figure().add_subplot())
    >>> ax.get_xlabel()
    'principal axis 1 (34 % of variance)'
    """
    _check_bins(bins)
    check_flag("legend", legend)
    if not isinstance(coreset, Coreset):
        raise InvalidTypeError(f"coreset is {shown(coreset)}; pass a Coreset.")
    need_matplotlib()
    behind = _behind([coreset], X, sample_weight, bins, on_invalid)
    return _draw(axes_for(ax), coreset, behind, None, legend=legend, style=style)


@takes_reading
def plot_coresets(
    coresets: Mapping[str, Coreset],
    X: Any = None,
    *,
    axes: Any = None,
    sample_weight: Any = None,
    bins: int | None = None,
    legend: bool = True,
    on_invalid: Literal["raise", "drop"] | None = None,
    **style: Any,
) -> AnyArray:
    """Draw several coresets of the same data beside each other, on the same axes and scale.

    Parameters
    ----------
    coresets : mapping of str to Coreset, or Portfolio
        By the names that the panels get. A `Portfolio` with a sample stands for its data, too.
    X, sample_weight, bins, on_invalid
        As in `plot_coreset`; the data are read once for all panels.
    axes : sequence of matplotlib.axes.Axes or None, default=None
        One for each coreset; None draws into a new figure of pyplot.
    legend : bool, default=True
        Whether to explain sizes, and the colours of labels, in the first panel.
    storage_options, columns, missing_chunks, sample_dims, feature_dims
        As in `daskcoreset.build`.
    **style
        As in `plot_coreset`.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        A panel for each. Markers of the same area have the same weight in all of them, so that
        what one coreset has many rows for, and another one few, is seen at a glance.

    Raises
    ------
    InvalidInputError
        If there is no coreset, their columns differ, or `axes` are not as many.
    InvalidTypeError
        If `coresets` is no mapping of names to coresets.
    MissingDependencyError
        matplotlib is not installed; the extra is "plot".

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> from matplotlib.figure import Figure
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> methods = {"light": "lightweight", "plain": "uniform"}
    >>> both = daskcoreset.build(X, size=100, method=methods, random_state=0)
    >>> axes = plot_coresets(both, X, axes=Figure().subplots(1, 2))
    >>> [ax.get_title() for ax in axes]
    ['light: 100 rows', 'plain: 100 rows']
    """
    _check_bins(bins)
    check_flag("legend", legend)
    given: Any = coresets
    values = list(given.values()) if isinstance(given, Mapping) else [given, None]
    if not all(isinstance(one, Coreset) for one in values):
        raise InvalidTypeError(
            f"coresets is {shown(coresets)}; pass a dict of names to coresets, or a Portfolio."
        )
    parts: list[Coreset] = values
    if len({part.n_features for part in parts}) != 1:
        raise InvalidInputError(
            f"coresets has {len(parts)} coresets, of {sorted({p.n_features for p in parts})} "
            f"columns; pass at least one, all of the same data."
        )
    need_matplotlib()
    if X is None and isinstance(coresets, Portfolio) and coresets.sample and coresets.summary:
        X = coresets
    behind = _behind(parts, X, sample_weight, bins, on_invalid)
    if axes is None:
        wide = min(len(parts), _PANELS)
        shape = -(-len(parts) // wide), wide
        size: dict[str, Any] = {
            "figsize": (4.2 * wide, 3.8 * shape[0]),
            "sharex": True,
            "sharey": True,
        }
        grid = new_axes(shape, **size).ravel()
        for unused in grid[len(parts) :]:
            unused.set_visible(False)
        axes = grid[: len(parts)]
    panels = np.array(axes, dtype=object).ravel()
    if len(panels) != len(parts):
        raise InvalidInputError(f"axes has {len(panels)} axes for {len(parts)} coresets.")
    scale = min(area_scale(part.weights) for part in parts)
    for i, (ax, name, part) in enumerate(zip(panels, coresets, parts, strict=True)):
        shows = legend and i == 0
        _draw(axes_for(ax), part, behind, scale, legend=shows, style=style)
        ax.set_title(f"{brief(name)}: {len(part):,} row{'s' * (len(part) != 1)}", fontsize="medium")
        if i % _PANELS:
            ax.set_ylabel("")
    return panels


class _Behind(NamedTuple):
    """What coresets are drawn over: coordinates, cells, and the weight in them if it is known."""

    frame: Frame
    edges: list[FloatArray]
    counts: FloatArray | None


def _behind(
    coresets: Sequence[Coreset],
    X: Any,
    sample_weight: Any,
    bins: int | None,
    on_invalid: Literal["raise", "drop"] | None,
) -> _Behind:
    points = coresets[0].points
    if len(coresets) > 1:
        several = [coreset.points for coreset in coresets]
        if all(isinstance(one, np.ndarray) for one in several):
            points = np.vstack(several)
        else:
            import scipy.sparse as sp

            points = sp.vstack(several)
    weights = np.concatenate([coreset.weights for coreset in coresets])
    if isinstance(X, Portfolio):
        sample, frame = X.sample_of_all, frame_of(X.all_rows.rows)
        if sample.n_features != coresets[0].n_features:
            raise InvalidInputError(
                f"X is a Portfolio of {sample.n_features} columns and the coreset has "
                f"{coresets[0].n_features}; pass that of the same data."
            )
        edges = _edges(frame.of(points), weights, bins or _auto_bins(len(sample)))
        return _Behind(frame, edges, histogram_of_rows(sample, frame, edges))
    frame = rows_frame(points, weights)
    if X is None:
        return _Behind(frame, _edges(frame.of(points), weights, bins or _MAX_BINS), None)
    blocks = data_of(coresets[0], X, None, sample_weight, on_invalid=on_invalid)
    if 2 < coresets[0].n_features <= MAX_COLUMNS:
        frame = data_frame(blocks)
    edges = _edges(frame.of(points), weights, bins or _auto_bins(blocks.n_rows))
    return _Behind(frame, edges, histogram(blocks, frame, edges))


def _draw(
    ax: Axes,
    coreset: Coreset,
    behind: _Behind,
    scale: float | None,
    *,
    legend: bool,
    style: dict[str, Any],
) -> Axes:
    frame, edges, counts = behind
    placed = frame.of(coreset.points)
    if placed.shape[1] == 1:
        line: dict[str, Any] = {"style": style, "scale": scale}
        handles = draw_line(ax, placed[:, 0], coreset, counts, edges[0], **line)
    else:
        if counts is not None:
            draw_density(ax, counts, edges)
        handles = draw_rows(ax, placed, coreset, style, scale)
    _name_axes(ax, coreset, frame)
    if legend:
        explain(ax, handles)
    return ax


def _name_axes(ax: Axes, coreset: Coreset, frame: Frame) -> None:
    if frame.shares is not None:
        names = [
            f"principal axis {i} ({share:.0%} of variance)".replace("%", " %")
            for i, share in enumerate(frame.shares, 1)
        ]
    else:
        d = coreset.n_features
        names = list(coreset.provenance.get("columns") or (f"x{j}" for j in range(d)))
    ax.set_xlabel(brief(names[0], 60))
    ax.set_ylabel(brief(names[1], 60) if len(names) > 1 else "density")


def plot_error(
    results: Mapping[str, Mapping[int, Sequence[float]]],
    ax: Axes | None = None,
    *,
    confidence: float = 0.95,
) -> Axes:
    """Draw error against size, with intervals, on two logarithmic axes.

    Parameters
    ----------
    results : mapping of str to mapping of int to sequence of float
        For every method, for every size, the relative errors of repeated runs.
    ax : matplotlib.axes.Axes or None, default=None
        Where to draw; None draws into a new figure of pyplot.
    confidence : float, default=0.95
        Of the intervals for the mean, by Student's t; a single run has none.

    Returns
    -------
    matplotlib.axes.Axes
        A mean of zero or less, which a logarithm has no place for, is shown as a marker on
        the lower edge, and an interval that reaches zero ends there in an arrow head.

    Raises
    ------
    InvalidInputError
        If there is nothing to draw, or something is not a positive size or finite error.
    MissingDependencyError
        matplotlib is not installed; the extra is "plot".

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> errors = {"uniform": {1000: [0.5, 0.6], 5000: [0.2, 0.25]}}
    >>> plot_error(errors, Figure().add_subplot()).get_xscale()
    'log'
    """
    confidence = as_float("confidence", confidence, "0.95")
    if not isinstance(results, Mapping):
        raise InvalidTypeError(f"results is {shown(results)}; pass a dict of errors by size.")
    lines = {name: _means(name, by_size, confidence) for name, by_size in results.items()}
    if not lines:
        raise InvalidInputError("results is empty; pass the errors of at least one method.")
    need_matplotlib()
    ax = axes_for(ax)
    sizes = np.unique(np.concatenate([line[0] for line in lines.values()]))
    for i, (name, (size, mean, width)) in enumerate(lines.items()):
        look = look_of(name, i)
        # Side by side, so that the bars of one method do not hide those of another.
        x = size * 1.03 ** (i - (len(lines) - 1) / 2)
        above = np.where(mean > 0, mean, np.nan)
        label = brief(name)
        ax.errorbar(x, above, width, label=label, capsize=3, ms=5, lw=1.5, **look.line)
        color, marker = look.color, look.marker
        edge = ax.get_xaxis_transform()
        # What has no logarithm stands on the lower edge; an interval that reaches below it goes on.
        below = x[(mean > 0) & (mean <= width)]
        ax.plot(below, np.zeros(len(below)), "v", transform=edge, clip_on=False, color=color, ms=5)
        for x_zero in x[mean <= 0]:
            ax.plot(x_zero, 0, transform=edge, clip_on=False, marker=marker, color=color, ms=5)
            ax.annotate("≤ 0", (x_zero, 0), (0, 7), edge, "offset points", color=color, ha="center")
    label_errors(ax, sizes)
    ax.set_ylabel("relative error")
    add_legend(ax, frameon=False)
    return ax


def plot_audit(
    names: Sequence[str], differences: FloatArray, title: str, ax: Axes | None = None
) -> Axes:
    """Draw how far costs on a coreset are from those on all data; see `daskcoreset.Audit.plot`.

    Parameters
    ----------
    names : sequence of str
    differences : ndarray of shape (n,), float64
        Relative ones, with a sign; infinite ones, of a cost of zero on all data, are shown at
        the edge.
    title : str
    ax : matplotlib.axes.Axes or None, default=None

    Returns
    -------
    matplotlib.axes.Axes
    """
    need_matplotlib()
    ax = axes_for(ax)
    differences = as_numbers("differences", differences)
    if isinstance(names, str) or differences.shape != (np.size(np.asarray(names, object)),):
        raise InvalidInputError(
            f"names is {shown(names)} beside differences of shape {differences.shape}; pass a name "
            f"for each."
        )
    finite = np.isfinite(differences)
    widest = float(np.abs(differences[finite]).max(initial=1e-3))
    placed = np.where(finite, differences, 1.15 * widest)
    heights = np.arange(len(names))[::-1]
    ax.axvline(0.0, color="0.6", lw=0.8)
    color = look_of("kmeans").color
    ax.hlines(heights, 0.0, placed, color=color, lw=1.5)
    for y, x, value in zip(heights, placed, differences, strict=True):
        marker = "o" if np.isfinite(value) else ">"
        ax.plot(x, y, marker=marker, color=color, ms=6, ls="none", clip_on=False)
        side = "left" if x >= 0 else "right"
        text = f"{value:+.2%}".replace("%", " %") if np.isfinite(value) else "∞"
        away = 7 if x >= 0 else -7
        place: dict[str, Any] = {"textcoords": "offset points", "ha": side, "va": "center"}
        ax.annotate(text, (x, y), (away, 0), color=ink_of(ax), **place)
    ax.set_yticks(heights, labels=[brief(name) for name in names])
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlim(-1.5 * widest, 1.5 * widest)
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.3g} %")
    ax.grid(visible=True, which="major", axis="x", color="0.5", alpha=0.2)
    ax.set_axisbelow(True)
    ax.set_xlabel("cost on the coreset, against that on all data")
    ax.set_title(title, fontsize="medium")
    return ax


def _means(name: str, by_size: Any, confidence: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sizes, mean errors, and half the widths of their intervals."""
    from scipy.special import stdtrit

    rows = []
    if not isinstance(by_size, Mapping):
        problem = f"results[{name!r}] is {shown(by_size)}; pass errors by size."
        raise InvalidTypeError(problem)
    for size, errors in sorted(by_size.items()):
        values = np.asarray(errors, dtype=np.float64)
        if size <= 0 or values.ndim != 1 or not len(values) or not np.isfinite(values).all():
            raise InvalidInputError(
                f"results[{name!r}][{size}] is {errors!r}; pass a positive size with at least one "
                f"finite error."
            )
        n = len(values)
        width = 0.0
        if n > 1:
            t = float(stdtrit(n - 1, 0.5 + confidence / 2))
            width = t * float(values.std(ddof=1)) / np.sqrt(n)
        rows.append((float(size), float(values.mean()), float(width)))
    if not rows:
        raise InvalidInputError(f"results[{name!r}] is empty; pass errors of at least one size.")
    sizes, means, widths = np.array(rows).T
    return sizes, means, widths


def label_errors(ax: Axes, sizes: FloatArray) -> None:
    """Make both axes of a picture of errors logarithmic, with sizes and per cent on them."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

    ax.set_xscale("log")
    ax.margins(x=0.08)
    ax.set_yscale("log", nonpositive="clip")
    step = -(-len(sizes) // _MAX_TICKS)
    ax.xaxis.set_major_locator(FixedLocator(sizes[::step].tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:,.0f}")
    low, high = ax.get_ylim()
    # Over few decades 1, 2 and 5 are named; over many they would run into each other.
    few = np.log10(high / low) < 3.5
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.4g} %")
    ax.set_xlabel("rows in the coreset")
    ax.grid(visible=True, which="major", color="0.5", alpha=0.2)
    ax.set_axisbelow(True)


def _check_bins(bins: Any) -> None:
    if bins is None:
        return
    if not is_int(bins):
        raise InvalidTypeError(f"bins must be an int or None, got {bins!r}; pass an int.")
    if int(bins) < 1:
        raise InvalidInputError(f"bins must be at least 1, got {bins}; pass a larger int.")
    if int(bins) > _MOST_BINS:
        raise InvalidInputError(f"bins must be at most {_MOST_BINS}, got {bins}; pass fewer.")


def _auto_bins(n_rows: int | None) -> int:
    # Four rows a cell, if they were spread evenly: fewer show single rows and no density.
    return _MAX_BINS if n_rows is None else int(np.clip(np.sqrt(n_rows) / 2, 30, _MAX_BINS))


def _edges(shown: FloatArray, weights: FloatArray, bins: int) -> list[FloatArray]:
    """Cells that hold all rows of the coreset, and nearly all of the data."""
    edges = []
    for column in shown.T:
        mean = np.average(column, weights=weights)
        sigma = np.sqrt(np.average((column - mean) ** 2, weights=weights))
        low, high = min(column.min(), mean - 3 * sigma), max(column.max(), mean + 3 * sigma)
        pad = 0.03 * (high - low) or max(1.0, abs(mean)) * 1e-3
        edges.append(np.linspace(low - pad, high + pad, bins + 1))
    return edges
