"""Pictures of coresets, over the density of their data.

matplotlib is imported when something is drawn, pyplot only where no axes are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.looks import axes_for, new_axes
from daskcoreset.core.optional import need_matplotlib
from daskcoreset.core.tables import brief, counted, percent
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.core.validation import check_flag, is_int, shown
from daskcoreset.metrics.costs import data_of
from daskcoreset.metrics.plot_density import (
    MAX_COLUMNS,
    Frame,
    Shades,
    data_frame,
    draw_density,
    draw_line,
    draw_rows,
    explain,
    histogram,
    rows_frame,
    shades_of,
)
from daskcoreset.metrics.plot_errors import plot_audit, plot_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_audit",
    "plot_coreset",
    "plot_coresets",
    "plot_error",
]

# Cells along an axis at most: a few pixels each.
_MAX_BINS = 120

# Of a user: pictures have fewer points, and a square of cells takes a gigabyte.
_MOST_BINS = 10_000

# Rows of a coreset below which the data say where they lie.
_FEW = 10

# Width of a letter, as a share of the size of the font.
_LETTER = 0.55

# Side by side, before a new row begins.
_PANELS = 3


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
    X : array-like of shape (n, d), or path, or None, default=None
        The data, any input of `daskcoreset.build`: read once for a histogram, and for three
        to 1024 columns once before, for the axes. Without it, and with more columns, the
        axes are those of the coreset, which estimate those of the data.
    ax : matplotlib.axes.Axes or None, default=None
        Where to draw; None draws into a new figure of pyplot.
    sample_weight : array-like of shape (n,), optional
        Input weights of the data.
    bins : int or None, default=None
        Cells of the histogram along each axis; between 30 and 120 by the number of rows.
    legend : bool, default=True
        Whether to explain sizes, and the colours of labels: of more than ten words those of the
        nine heaviest, and one for all others.
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
    _check_bins(bins)
    check_flag("legend", legend)
    if not isinstance(coreset, Coreset):
        raise InvalidTypeError(f"coreset is {shown(coreset)}; pass a Coreset.")
    need_matplotlib()
    behind = _behind([coreset], X, sample_weight, bins, on_invalid)
    ax = axes_for(ax)
    drawn = _draw(ax, coreset, behind, shades_of([coreset]), style)
    if legend:
        explain(ax, *drawn)
    return ax


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
        By the names that the panels get.
    X, sample_weight, bins, on_invalid
        As in `plot_coreset`; the data are read once for all panels.
    axes : sequence of matplotlib.axes.Axes or None, default=None
        One for each coreset; None draws into a new figure of pyplot.
    legend : bool, default=True
        Whether to explain sizes, and the colours of labels, in the first panel.
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
    behind = _behind(parts, X, sample_weight, bins, on_invalid)
    panels, wide = _panels(axes, len(parts))
    # The ticks that an axis is about are those of the panel below; axes of users have their own.
    lowest = 0 if axes is not None else max(0, len(parts) - wide)
    shades, drawn = shades_of(parts), []
    for i, (ax, name, part) in enumerate(zip(panels, coresets, parts, strict=True)):
        drawn.append(_draw(axes_for(ax), part, behind, shades, style))
        rows = counted(len(part), "row")
        ax.set_title(f"{brief(name, 24)}: {rows}", fontsize="medium")
        if i % wide:
            ax.set_ylabel("")
        if i < lowest:
            ax.set_xlabel("")
    if legend:
        explain(panels[0], *drawn[0])
    return panels


def _panels(axes: Any, n: int) -> tuple[AnyArray, int]:
    """Return the axes of users, or new ones, for `n` coresets, and how many are in a row."""
    if axes is not None:
        given = np.array(axes, dtype=object).ravel()
        if len(given) != n:
            raise InvalidInputError(f"axes has {len(given)} axes for {n} coresets.")
        return given, _PANELS
    high = -(-n // _PANELS)
    wide = -(-n // high)
    size = {"figsize": (4.2 * wide, 3.8 * high), "sharex": True, "sharey": True}
    grid = new_axes((high, wide), **size).ravel()
    for unused in grid[n:]:
        unused.set_visible(False)
    for ax in grid[max(0, n - wide) : n]:
        ax.xaxis.set_tick_params(labelbottom=True)
    return grid[:n], wide


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
    frame = rows_frame(points, weights)
    if X is None:
        return _Behind(frame, _edges(frame.of(points), weights, bins or _MAX_BINS), None)
    blocks = data_of(coresets[0], X, None, sample_weight, on_invalid=on_invalid)
    few = len(weights) < _FEW  # which do not know where the data lie
    if coresets[0].n_features <= MAX_COLUMNS and (few or coresets[0].n_features > 2):
        frame = data_frame(blocks)
    cells = bins or _auto_bins(blocks.n_rows)
    edges = _edges(frame.of(points), weights, cells, frame.reach if few else None)
    return _Behind(frame, edges, histogram(blocks, frame, edges))


def _draw(
    ax: Axes, coreset: Coreset, behind: _Behind, shades: Shades, style: dict[str, Any]
) -> tuple[list[Any], FloatArray | None]:
    """Draw a coreset; return what a legend needs, and what it should not cover."""
    frame, edges, counts = behind
    placed = frame.of(coreset.points)
    _name_axes(ax, coreset, frame)
    if placed.shape[1] == 1:
        line: dict[str, Any] = {"style": style, "shades": shades}
        return draw_line(ax, placed[:, 0], coreset, counts, edges[0], **line), None
    if counts is not None:
        draw_density(ax, counts, edges)
        middles = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
        cells = [middle[at] for middle, at in zip(middles, np.nonzero(counts), strict=True)]
        seen = np.vstack([placed, np.column_stack(cells)])
    else:
        seen = placed
    return draw_rows(ax, placed, coreset, style, shades), seen


def _name_axes(ax: Axes, coreset: Coreset, frame: Frame) -> None:
    if frame.shares is not None:
        names = [
            f"principal axis {i} ({percent(share)} of variance)"
            for i, share in enumerate(frame.shares, 1)
        ]
    else:
        d = coreset.n_features
        names = list(coreset.provenance.get("columns") or (f"x{j}" for j in range(d)))
    room = (ax.bbox.width, ax.xaxis), (ax.bbox.height, ax.yaxis)
    for name, (length, axis) in zip([*names, "density"], room, strict=False):
        points = length / ax.figure.dpi * 72
        size = axis.label.get_fontproperties().get_size_in_points()
        letters = max(12, min(60, int(points / (_LETTER * size))))
        # Words of our own take two lines where they are short, names lose their middle.
        two_lines = frame.shares is not None and len(name) > letters
        axis.set_label_text(name.replace(" (", "\n(") if two_lines else brief(name, letters))


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


def _edges(
    shown: FloatArray, weights: FloatArray, bins: int, reach: FloatArray | None = None
) -> list[FloatArray]:
    """Cells that hold all rows of the coreset, and nearly all of the data."""
    edges = []
    for j, column in enumerate(shown.T):
        mean = np.average(column, weights=weights)
        sigma = np.sqrt(np.average((column - mean) ** 2, weights=weights))
        low, high = min(column.min(), mean - 3 * sigma), max(column.max(), mean + 3 * sigma)
        if reach is not None and np.isfinite(reach).all():
            low, high = min(low, reach[0, j]), max(high, reach[1, j])
        # Equal rows lie in the middle of a cell, and of axes whose ticks have room.
        pad = 0.03 * (high - low) or max(0.5, abs(mean) * 1e-3)
        off = 0.0 if high > low or bins % 2 else pad / bins
        edges.append(np.linspace(low - pad, high + pad, bins + 1) + off)
    return edges
