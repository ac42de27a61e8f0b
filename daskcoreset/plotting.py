"""Pictures: a coreset over the density of its data, and error against size.

matplotlib is imported when something is drawn, pyplot only where no axes are given.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import stdtrit

from daskcoreset.coreset import Coreset
from daskcoreset.errors import InvalidInputError, MissingDependencyError
from daskcoreset.inputs import row_blocks
from daskcoreset.projection import MOST_COLUMNS, Frame, data_frame, histogram, rows_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from daskcoreset.typing import AnyArray, FloatArray

__all__ = ["plot_coreset", "plot_error"]

_INK = 9000.0
"""Area of all markers together, in square points: some 15 % of a usual picture."""

_SMALLEST, _LARGEST = 2.0, 350.0
"""Areas at which a marker can just be seen, and at which it hides its neighbours."""

_MOST_CLASSES = 10
"""So many colours can be told apart; labels of more values are shown on a scale."""

_MOST_TICKS = 8
"""Sizes named on the axis; more would run into each other."""

_LINES = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", "-"), ("P", "--"))
"""Told apart without colour, too."""


def plot_coreset(
    coreset: Coreset,
    X: Any = None,
    *,
    ax: Axes | None = None,
    sample_weight: Any = None,
    bins: int = 120,
    legend: bool = True,
    on_invalid: Literal["raise", "drop"] | None = None,
    **style: Any,
) -> Axes:
    """Draw the rows of a coreset, sized by weight, over a density of the data.

    Three columns or more are shown along two principal axes, one or two as they are.

    Parameters
    ----------
    coreset : Coreset
    X : array-like of shape (n, d), or path, or None, default=None
        The data, any input of `daskcoreset.build`: read once for a histogram, and for three
        to 1024 columns once before, for the axes. Without it, and with more columns, the
        axes are those of the coreset, which estimate those of the data.
    ax : matplotlib.axes.Axes or None, default=None
        Where to draw; None draws into a new figure of pyplot.
    sample_weight : array-like of shape (n,), optional
        Input weights of the data.
    bins : int, default=120
        Cells of the histogram along each axis.
    legend : bool, default=True
        Whether to explain sizes, and the colours of labels.
    on_invalid : {"raise", "drop"} or None, default=None
        As in `daskcoreset.audit`.
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
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise InvalidInputError(f"bins must be an int of at least 1, got {bins!r}; pass one.")
    _need_matplotlib()
    frame = rows_frame(coreset.points, coreset.weights)
    counts = edges = None
    if X is not None:
        if on_invalid is None:
            on_invalid = "drop" if coreset.provenance.get("n_dropped") else "raise"
        blocks = row_blocks(X, None, sample_weight, on_invalid=on_invalid)
        d = blocks.rules.n_features
        if d != coreset.n_features:
            raise InvalidInputError(
                f"X has {d} columns and the coreset {coreset.n_features}; pass the data that it "
                f"is of."
            )
        if 2 < d <= MOST_COLUMNS:
            frame = data_frame(blocks, frame.center)
        edges = _edges(frame.of(coreset.points), coreset.weights, int(bins))
        counts = histogram(blocks, frame, edges)
    ax = _axes(ax)
    shown = frame.of(coreset.points)
    if shown.shape[1] == 1:
        _draw_line(ax, shown[:, 0], coreset, counts, edges, bins=int(bins), style=style)
    else:
        _draw_plane(ax, shown, coreset, counts, edges, style=style)
    _name_axes(ax, coreset, frame)
    if legend:
        _explain(ax)
    return ax


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
        the lower edge.

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
    if not 0 < confidence < 1:
        raise InvalidInputError(
            f"confidence must lie between 0 and 1, got {confidence}; pass for example 0.95."
        )
    lines = {name: _means(name, by_size, confidence) for name, by_size in results.items()}
    if not lines:
        raise InvalidInputError("results is empty; pass the errors of at least one method.")
    _need_matplotlib()
    ax = _axes(ax)
    sizes = np.unique(np.concatenate([line[0] for line in lines.values()]))
    for i, (name, (size, mean, width)) in enumerate(lines.items()):
        marker, dash = _LINES[i % len(_LINES)]
        # Side by side, so that the bars of one method do not hide those of another.
        place = size * 1.03 ** (i - (len(lines) - 1) / 2)
        above = np.where(mean > 0, mean, np.nan)
        drawn = ax.errorbar(
            place, above, width, label=name, marker=marker, ls=dash, capsize=3, ms=5, lw=1.5
        )
        color = drawn.lines[0].get_color()
        for x in place[mean <= 0]:
            edge = ax.get_xaxis_transform()
            ax.plot(x, 0, transform=edge, clip_on=False, marker=marker, color=color, ms=5)
            ax.annotate("≤ 0", (x, 0), (7, 4), edge, "offset points", color=color)
    _scale_logarithmically(ax, sizes)
    ax.set_xlabel("rows in the coreset")
    ax.set_ylabel("relative error")
    ax.grid(visible=True, which="major", color="0.9")
    ax.set_axisbelow(True)
    ax.legend(frameon=False)
    return ax


def _means(
    name: str, by_size: Mapping[int, Sequence[float]], confidence: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sizes, mean errors, and half the widths of their intervals."""
    rows = []
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


def _scale_logarithmically(ax: Axes, sizes: FloatArray) -> None:
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator  # noqa: PLC0415 - optional

    ax.set_xscale("log")
    ax.set_yscale("log", nonpositive="clip")
    step = -(-len(sizes) // _MOST_TICKS)
    ax.xaxis.set_major_locator(FixedLocator(sizes[::step].tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:,.0f}")
    low, high = ax.get_ylim()
    # Over few decades 1, 2 and 5 are named; over many they would run into each other.
    few = np.log10(high / low) < 3.5
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.4g} %")


def _need_matplotlib() -> Any:
    try:
        return importlib.import_module("matplotlib")
    except ImportError as error:
        raise MissingDependencyError(
            'plots need matplotlib; pip install "daskcoreset[plot]" brings it.'
        ) from error


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    pyplot = importlib.import_module("matplotlib.pyplot")
    _, new = pyplot.subplots(layout="constrained")
    created: Axes = new
    return created


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


def _draw_plane(
    ax: Axes,
    shown: FloatArray,
    coreset: Coreset,
    counts: FloatArray | None,
    edges: list[FloatArray] | None,
    *,
    style: dict[str, Any],
) -> None:
    if counts is not None and edges is not None:
        from matplotlib.colors import LogNorm  # noqa: PLC0415 - optional

        # A logarithm, for dense cells would leave nothing to see of the others; empty is white.
        cells = np.ma.masked_equal(counts.T, 0.0)
        most = max(float(counts.max()), 1e-300)
        norm = LogNorm(max(float(cells.min()) / 3, most * 1e-6) if counts.any() else most / 10, most)
        ax.pcolormesh(*edges, cells, cmap="Greys", norm=norm, alpha=0.65, lw=0, rasterized=True)
    areas = _areas(coreset.weights)
    order = np.argsort(-areas, kind="stable")  # large ones first, small ones on top of them
    options = {"alpha": 0.75, "linewidths": 0.4, "edgecolors": "white", "zorder": 2}
    _scatter(ax, shown[order, 0], shown[order, 1], areas[order], order, coreset, options | style)
    ax.set_aspect("auto")


def _draw_line(
    ax: Axes,
    shown: FloatArray,
    coreset: Coreset,
    counts: FloatArray | None,
    edges: list[FloatArray] | None,
    *,
    bins: int,
    style: dict[str, Any],
) -> None:
    """One column: the density of the data, that of the coreset, and its rows below."""
    (edge,) = edges or _edges(shown[:, np.newaxis], coreset.weights, bins)
    width = edge[1] - edge[0]
    if counts is not None and counts.any():
        density = counts / (counts.sum() * width)
        ax.stairs(density, edge, fill=True, color="0.8", label="data")
    # So few rows fill wider cells only.
    coarse = np.linspace(edge[0], edge[-1], max(5, min(bins, int(np.sqrt(len(coreset)) * 1.5))) + 1)
    held, _ = np.histogram(shown, coarse, weights=coreset.weights)
    ax.stairs(held / (held.sum() * (coarse[1] - coarse[0])), coarse, color="C0", label="coreset")
    top = ax.get_ylim()[1]
    areas = _areas(coreset.weights)
    order = np.argsort(-areas, kind="stable")
    options = {"alpha": 0.6, "linewidths": 0.4, "edgecolors": "white", "zorder": 2}
    below = np.full(len(order), -0.06 * top)
    _scatter(ax, shown[order], below, areas[order], order, coreset, options | style)
    ax.set_ylim(-0.14 * top, top)
    ax.axhline(0.0, color="0.6", lw=0.8)


def _areas(weights: FloatArray) -> FloatArray:
    positive = weights[weights > 0]
    mean = float(positive.mean()) if len(positive) else 1.0
    each = min(60.0, max(6.0, _INK / len(weights)))
    areas: FloatArray = np.clip(weights * (each / mean), _SMALLEST, _LARGEST)
    return areas
