"""Pictures: a coreset over the density of its data, and error against size.

matplotlib is imported when something is drawn, pyplot only where no axes are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.optional import axes_for, need_matplotlib
from daskcoreset.core.portfolio import Portfolio
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import as_float, as_numbers, check_flag, is_int, shown
from daskcoreset.inputs.options import takes_reading
from daskcoreset.metrics.costs import data_of
from daskcoreset.metrics.plot_density import (
    MAX_COLUMNS,
    Frame,
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

__all__ = ["plot_audit", "plot_coreset", "plot_error"]

# Cells along an axis at most: a few pixels each.
_MAX_BINS = 120

# Of a user: pictures have fewer points, and a square of cells takes a gigabyte.
_MOST_BINS = 10_000

# Sizes named on the axis; more would run into each other.
_MAX_TICKS = 8

# Told apart without colour, too.
_LINES = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", "-"), ("P", "--"))


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
    frame = rows_frame(coreset.points, coreset.weights)
    counts = edges = None
    if isinstance(X, Portfolio):
        sample, frame = X.sample_of_all, frame_of(X.all_rows.rows)
        if sample.n_features != coreset.n_features:
            raise InvalidInputError(
                f"X is a Portfolio of {sample.n_features} columns and the coreset has "
                f"{coreset.n_features}; pass that of the same data."
            )
        edges = _edges(frame.of(coreset.points), coreset.weights, bins or _auto_bins(len(sample)))
        counts = histogram_of_rows(sample, frame, edges)
    elif X is not None:
        blocks = data_of(coreset, X, None, sample_weight, on_invalid=on_invalid)
        if 2 < coreset.n_features <= MAX_COLUMNS:
            frame = data_frame(blocks)
        edges = _edges(frame.of(coreset.points), coreset.weights, bins or _auto_bins(blocks.n_rows))
        counts = histogram(blocks, frame, edges)
    ax = axes_for(ax)
    placed = frame.of(coreset.points)
    if placed.shape[1] == 1:
        edge = (edges or _edges(placed, coreset.weights, bins or _MAX_BINS))[0]
        handles = draw_line(ax, placed[:, 0], coreset, counts, edge, style=style)
    else:
        if counts is not None and edges is not None:
            draw_density(ax, counts, edges)
        handles = draw_rows(ax, placed, coreset, style)
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
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1] if len(names) > 1 else "density")


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
        marker, dash = _LINES[i % len(_LINES)]
        # Side by side, so that the bars of one method do not hide those of another.
        x = size * 1.03 ** (i - (len(lines) - 1) / 2)
        above = np.where(mean > 0, mean, np.nan)
        drawn = ax.errorbar(
            x, above, width, label=name, marker=marker, ls=dash, capsize=3, ms=5, lw=1.5
        )
        color = drawn.lines[0].get_color()
        edge = ax.get_xaxis_transform()
        # What has no logarithm stands on the lower edge; an interval that reaches below it goes on.
        below = x[(mean > 0) & (mean <= width)]
        ax.plot(below, np.zeros(len(below)), "v", transform=edge, clip_on=False, color=color, ms=5)
        for x_zero in x[mean <= 0]:
            ax.plot(x_zero, 0, transform=edge, clip_on=False, marker=marker, color=color, ms=5)
            ax.annotate("≤ 0", (x_zero, 0), (0, 7), edge, "offset points", color=color, ha="center")
    label_errors(ax, sizes)
    ax.set_ylabel("relative error")
    ax.legend(frameon=False)
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
    ax.hlines(heights, 0.0, placed, color="C0", lw=1.5)
    for y, x, value in zip(heights, placed, differences, strict=True):
        marker = "o" if np.isfinite(value) else ">"
        ax.plot(x, y, marker=marker, color="C0", ms=6, ls="none", clip_on=False)
        side = "left" if x >= 0 else "right"
        text = f"{value:+.2%}".replace("%", " %") if np.isfinite(value) else "∞"
        away = 7 if x >= 0 else -7
        ax.annotate(text, (x, y), (away, 0), textcoords="offset points", ha=side, va="center")
    ax.set_yticks(heights, labels=list(names))
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlim(-1.5 * widest, 1.5 * widest)
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.3g} %")
    ax.grid(visible=True, which="major", axis="x", color="0.9")
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
    ax.grid(visible=True, which="major", color="0.9")
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
