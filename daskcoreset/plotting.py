"""Plots of coresets over the density of their data, and of audits.

matplotlib is imported at the first plot, and pyplot only if you pass no axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.messages import import_optional
from daskcoreset.core.moments import moments_of
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.core.validation import a_type, as_int, check_flag, check_type, shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.metrics.costs import data_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_coreset", "plot_coresets"]

COLORS = {
    "uniform": "#CC79A7", "lightweight": "#0072B2", "kmeans": "#D55E00", "svm": "#009E73",
    "logistic": "#999933", "mixture": "#E69F00", "coverage": "#56B4E9",
}  # fmt: skip
"""Colours of constructions, seen on white and on black; most are those of Okabe and Ito."""

OTHER = "#8C564B"
"""Colour of all else: other constructions, and audits."""

CLASSES = (
    ("#0072B2", "o"), ("#D55E00", "^"), ("#009E73", "s"), ("#CC79A7", "D"), ("#E69F00", "v"),
    ("#56B4E9", "P"), ("#7F7F7F", "X"), ("#8C564B", "*"), ("#999933", "<"), ("#6A4C93", ">"),
)  # fmt: skip
"""Colour and marker of the first, second, ... label."""

# Area of all markers together in square points, and the least and largest area of one.
_AREA, _SMALLEST, _LARGEST = 9000.0, 2.0, 350.0

# Cells of the histogram along an axis: by the number of rows, and as many as a user may ask for.
_BINS, _MOST_BINS = (30, 120), 10_000

# Columns among which principal axes are found: those of largest variance.
_COLUMNS = 512

# Panels side by side, before a new row begins.
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
    """Plot the rows of a coreset, sized by weight, over a density of the data.

    See :doc:`/guides/clusters`.

    Data of one or two columns are plotted directly. Data of more columns are projected on the two
    principal axes of the coreset.

    Parameters
    ----------
    coreset : Coreset
    X : array-like of shape (n, d), or path, optional
        The data, any X of `daskcoreset.build`, for the density. They are read once.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: a new figure of pyplot.
    sample_weight : array-like of shape (n,), optional
        Weights of the data.
    bins : int, optional
        Cells of the density along each axis. Default: 30 to 120, by the number of rows.
    legend : bool, default=True
        Whether to explain sizes, and labels if at most ten are different.
    on_invalid : {"raise", "drop"}, optional
        As in `Coreset.audit`.
    **style
        Options of ``Axes.scatter``, such as ``alpha`` or ``color``.

    Returns
    -------
    matplotlib.axes.Axes
        The area of a marker is proportional to the weight. Areas are limited, so that the lightest
        and the heaviest rows are visible.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If X has other columns than the coreset, or `bins` is not a positive int.
    MissingDependencyError
        If matplotlib is not installed (extra "plot").

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> from matplotlib.figure import Figure
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2)) * [3.0, 1.0]
    >>> coreset = daskcoreset.build(X, size=100, random_state=0)
    >>> plot_coreset(coreset, X, ax=Figure().add_subplot()).get_xlabel()
    'x0'
    """
    check_type("coreset", coreset, Coreset, "pass a Coreset")
    picture = _picture([coreset], X, sample_weight, bins, on_invalid, legend)
    ax = _axes_for(ax)
    _draw(ax, coreset, picture, style)
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
    """Plot several coresets of the same data beside each other, on the same axes and scale.

    See :doc:`/guides/clusters`.

    Parameters
    ----------
    coresets : mapping of str to Coreset, or Portfolio
        The keys are the titles of the panels.
    X, sample_weight, bins, on_invalid
        As in `plot_coreset`. The data are read once for all panels.
    axes : sequence of matplotlib.axes.Axes, optional
        One per coreset. Default: a new figure of pyplot.
    legend : bool, default=True
        Whether to explain sizes and labels in every panel.
    **style
        As in `plot_coreset`.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One per coreset. Markers of the same area have the same weight in all panels.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If `coresets` is not a mapping of coresets with the same columns, or the number of `axes` is
        wrong.
    MissingDependencyError
        If matplotlib is not installed (extra "plot").

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> from matplotlib.figure import Figure
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> both = {k: daskcoreset.build(X, size=100, n_clusters=k, method="kmeans") for k in (2, 9)}
    >>> axes = plot_coresets(both, X, axes=Figure().subplots(1, 2))
    >>> [ax.get_title() for ax in axes]
    ['2: 100 rows', '9: 100 rows']
    """
    given: Any = coresets
    several = list(given.values()) if isinstance(given, Mapping) else []
    if not several or not all(isinstance(one, Coreset) for one in several):
        raise InvalidTypeError(
            f"coresets is {shown(coresets)}",
            argument="coresets",
            remedy="pass a dict of names to coresets, or a Portfolio",
        )
    if len(widths := {one.n_features for one in several}) > 1:
        raise InvalidInputError(
            f"coresets have {sorted(widths)} columns",
            argument="coresets",
            remedy="pass coresets of the same data",
        )
    picture = _picture(several, X, sample_weight, bins, on_invalid, legend)
    panels = _panels(axes, len(several))
    for ax, (name, one) in zip(panels, coresets.items(), strict=True):
        _draw(_axes_for(ax), one, picture, style)
        ax.set_title(f"{_brief(name, 24)}: {counted(len(one), 'row')}", fontsize="medium")
    return panels


def plot_audit(
    names: Sequence[str], differences: FloatArray, title: str, ax: Axes | None = None
) -> Axes:
    """Plot the differences between costs on a coreset and on all data, for `Audit.plot`.

    Parameters
    ----------
    names : sequence of str
    differences : ndarray of shape (n,), float64
        Signed relative differences. Those that are not finite are drawn at the edge.
    title : str
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    import_optional("matplotlib")
    ax = _axes_for(ax)
    widest = float(np.abs(differences[np.isfinite(differences)]).max(initial=1e-3))
    placed = np.clip(np.nan_to_num(differences), -1.2 * widest, 1.2 * widest)
    ax.axvline(0.0, color="0.6", lw=0.8)
    titles = [_brief(name) for name in names]
    bars = ax.barh(range(len(names)), placed, 0.3, tick_label=titles, color=OTHER)
    ax.bar_label(bars, [f"{100 * value:+.2f} %" for value in differences], padding=4)
    ax.invert_yaxis()  # the first one on top
    ax.set_xlim(-1.8 * widest, 1.8 * widest)  # with room for the words
    ax.locator_params(axis="x", nbins=6)
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.3g} %")
    ax.set_xlabel("cost on the coreset, against that on all data")
    ax.set_title(_brief(title, 60), fontsize="medium")
    return ax


class _Picture(NamedTuple):
    """The properties that all panels of a picture share.

    Attributes
    ----------
    center, axes : ndarray of shape (d,) and (d, 1 or 2), float64
        Coordinates in which rows are drawn.
    shares : tuple of float or None
        Share of the variance along each axis. None for data shown as they are.
    edges : list of ndarray of shape (bins + 1,), float64
    counts : ndarray of shape (bins,) or (bins, bins), float64, or None
        Weight of the data in every cell.
    scale : float
        Area of a marker of weight one, in square points.
    labels : ndarray or None
        Different labels of all coresets, sorted, if there are at most ten.
    legend : bool
    """

    center: FloatArray
    axes: FloatArray
    shares: tuple[float, ...] | None
    edges: list[FloatArray]
    counts: FloatArray | None
    scale: float
    labels: AnyArray | None
    legend: bool

    def place(self, points: Any) -> FloatArray:
        """Return the coordinates of rows, float64 of shape (n, 1 or 2)."""
        return np.asarray(points @ self.axes - self.center @ self.axes, dtype=np.float64)


def _picture(  # noqa: PLR0917 - the arguments of both calls, in their order
    coresets: Sequence[Coreset],
    X: Any,
    sample_weight: Any,
    bins: int | None,
    on_invalid: Literal["raise", "drop"] | None,
    legend: bool,
) -> _Picture:
    """Check the arguments of a picture, and read what lies behind it."""
    check_flag("legend", legend)
    if bins is not None:
        as_int("bins", bins, maximum=_MOST_BINS)
    import_optional("matplotlib")
    center, axes, shares = _axes_of(coresets[0].points, coresets[0].weights)
    scale = min(_scale_of(one.weights) for one in coresets)
    picture = _Picture(center, axes, shares, [], None, scale, _labels_of(coresets), legend)
    placed = np.concatenate([picture.place(one.points) for one in coresets])
    blocks = None
    if X is not None:
        blocks = data_of(coresets[0], X, None, sample_weight, on_invalid=on_invalid)
    n_rows = None if blocks is None else blocks.n_rows
    usual = _BINS[1] if n_rows is None else int(np.clip(np.sqrt(n_rows) / 2, *_BINS))
    weights = np.concatenate([one.weights for one in coresets])
    edges = [_edges(column, weights, bins or usual) for column in placed.T]
    picture = picture._replace(edges=edges)
    if blocks is None:
        return picture
    counts = map_reduce(blocks, _histogram_of_block, add, broadcast=picture).value
    return picture._replace(counts=counts)


def _scale_of(weights: FloatArray) -> float:
    """Return the area, in square points, of a marker of weight one."""
    positive = weights[weights > 0]
    # One huge weight makes no specks of all others.
    typical = min(float(positive.mean()), 4 * float(np.median(positive))) if len(positive) else 1.0
    return float(np.clip(_AREA / len(weights), 6.0, 60.0)) / typical


def _labels_of(coresets: Sequence[Coreset]) -> AnyArray | None:
    """Return the different labels of all coresets, sorted. None if there are none or too many."""
    parts = [one.labels for one in coresets if one.labels is not None]
    if not parts:
        return None
    every = np.unique(np.concatenate(parts))
    return every if len(every) <= len(CLASSES) else None


def _axes_of(
    points: Any, weights: FloatArray
) -> tuple[FloatArray, FloatArray, tuple[float, ...] | None]:
    """Return the center and two principal axes of rows, with their shares of the variance."""
    d = int(points.shape[1])
    if d <= 2:
        return np.zeros(d), np.eye(d), None
    moments = moments_of(points, weights)
    columns = np.sort(np.argsort(-moments.m2, kind="stable")[:_COLUMNS])
    rows = dense_rows(points[:, columns]) - moments.mean[columns]
    values, vectors = np.linalg.eigh((rows * weights[:, np.newaxis]).T @ rows)
    axes = np.zeros((d, 2))
    axes[columns] = vectors[:, :-3:-1]
    # The signs are fixed, so that the same data always look the same.
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    shares = values[:-3:-1] / max(float(moments.m2.sum()), 1e-300)
    return moments.mean, axes, tuple(shares.tolist())


def _edges(column: FloatArray, weights: FloatArray, bins: int) -> FloatArray:
    """Return cells that hold all rows of the coreset, and nearly all of the data."""
    mean = np.average(column, weights=weights)
    reach = 3 * np.sqrt(np.average((column - mean) ** 2, weights=weights))
    low, high = min(column.min(), mean - reach), max(column.max(), mean + reach)
    pad = 0.03 * (high - low) or max(0.5, abs(mean) * 1e-3)
    edges: FloatArray = np.linspace(low - pad, high + pad, bins + 1)
    return edges


def _histogram_of_block(block: Block, _index: int, picture: _Picture) -> FloatArray:
    """Return the weight of rows in every cell."""
    if not len(block):
        return np.zeros([len(edge) - 1 for edge in picture.edges])
    placed = picture.place(block.points)
    counts, _ = np.histogramdd(placed, picture.edges, weights=block.weights)
    return counts


def _draw(ax: Axes, coreset: Coreset, picture: _Picture, style: dict[str, Any]) -> None:
    """Draw one panel."""
    placed = picture.place(coreset.points)
    names = coreset.provenance.get("columns") or [f"x{j}" for j in range(coreset.n_features)]
    if picture.shares is not None:
        names = [
            f"principal axis {i} ({share:.1%} of variance)"
            for i, share in enumerate(picture.shares, 1)
        ]
    names = [_brief(name, 40) for name in names]
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1] if len(names) > 1 else "density")
    if placed.shape[1] == 1:
        placed = _draw_line(ax, placed[:, 0], coreset, picture)
    else:
        _draw_density(ax, picture)
        ax.set_xlim(*picture.edges[0][[0, -1]])
        ax.set_ylim(*picture.edges[1][[0, -1]])
    _draw_rows(ax, placed, coreset, picture, style)
    if picture.legend:
        handles, _ = ax.get_legend_handles_labels()
        ax.legend(handles=handles + _sizes(coreset, picture), framealpha=0.85, fontsize="small")


def _draw_density(ax: Axes, picture: _Picture) -> None:
    """Draw the histogram of the data in one grey, from clear to dense."""
    from matplotlib.colors import ListedColormap, LogNorm

    if picture.counts is not None and picture.counts.any():
        cells = np.ma.masked_equal(picture.counts.T, 0.0)
        # On a logarithmic scale, because dense cells would leave nothing to see of the others.
        largest = float(cells.max())
        norm = LogNorm(max(float(cells.min()) / 3, largest * 1e-6), largest)
        greys = np.full((256, 4), 0.5)
        greys[:, 3] = np.linspace(0.05, 0.8, len(greys))
        look: dict[str, Any] = {"cmap": ListedColormap(greys), "norm": norm}
        ax.pcolormesh(*picture.edges, cells, lw=0, rasterized=True, **look)


def _draw_line(ax: Axes, values: FloatArray, coreset: Coreset, picture: _Picture) -> FloatArray:
    """Draw densities of one column. Return the places of its rows, which are below them."""
    (edge,) = picture.edges
    if picture.counts is not None and picture.counts.any():
        density = picture.counts / (picture.counts.sum() * (edge[1] - edge[0]))
        ax.stairs(density, edge, fill=True, label="data", color="0.5", alpha=0.4)
    # So few rows fill wider cells only.
    cells = max(5, min(len(edge) - 1, int(1.5 * np.sqrt(len(coreset)))))
    density, coarse = np.histogram(
        values, cells, (edge[0], edge[-1]), weights=coreset.weights, density=True
    )
    ax.stairs(density, coarse, color=_color(coreset), lw=1.5, label="coreset")
    top = ax.get_ylim()[1]
    ax.set_ylim(-0.14 * top, top)
    return np.column_stack([values, np.full(len(values), -0.07 * top)])


def _draw_rows(
    ax: Axes, placed: FloatArray, coreset: Coreset, picture: _Picture, style: dict[str, Any]
) -> None:
    """Draw rows as markers whose area is their weight, with a colour for each of few labels."""
    areas = np.clip(coreset.weights * picture.scale, _SMALLEST, _LARGEST)
    order = np.argsort(-areas, kind="stable")  # small ones on top of large ones
    parts: list[tuple[Any, dict[str, Any]]] = [(order, {"color": _color(coreset)})]
    labels, every = coreset.labels, picture.labels
    if labels is not None and every is not None and not style.keys() & {"c", "color"}:
        parts = [
            (order[labels[order] == name], {"color": color, "marker": marker, "label": name})
            for name, (color, marker) in zip(every, CLASSES, strict=False)
        ]
    for rows, look in parts:
        options = {"alpha": 0.75, "lw": 0.0, "zorder": 2, **look, **style}
        ax.scatter(placed[rows, 0], placed[rows, 1], s=areas[rows], **options)


def _sizes(coreset: Coreset, picture: _Picture) -> list[Any]:
    """Return legend handles for a light row, a heavy one, and one between."""
    from matplotlib.lines import Line2D

    weights = np.unique(np.quantile(coreset.weights, [0.05, 0.5, 1.0], method="nearest"))
    areas = np.clip(weights * picture.scale, _SMALLEST, _LARGEST)
    return [
        Line2D([], [], ls="", marker="o", ms=float(np.sqrt(area)), mec="none", color="0.5",
               label=f"weight {weight:,.3g}")
        for weight, area in zip(weights, areas, strict=True)
    ]  # fmt: skip


def _color(coreset: Coreset) -> str:
    return COLORS.get(str(coreset.provenance.get("method")), OTHER)


def _axes_for(ax: Axes | None) -> Axes:
    """Return the axes that were given, or new ones of pyplot."""
    if ax is None:
        created: Axes = _panels(None, 1)[0]
        return created
    if not callable(getattr(ax, "errorbar", None)):
        raise InvalidTypeError(
            f"ax is {a_type(ax)}", argument="ax", remedy="pass matplotlib's Axes, or None"
        )
    return ax


def _panels(axes: Any, n: int) -> AnyArray:
    """Return the axes that were given, or new ones of pyplot, for `n` coresets."""
    if axes is not None:
        given = np.array(axes, dtype=object).ravel()
        if len(given) != n:
            raise InvalidInputError(
                f"axes has {len(given)} axes for {n} coresets",
                argument="axes",
                remedy="pass one per coreset",
            )
        return given
    pyplot = import_optional("matplotlib.pyplot")
    high = -(-n // _PANELS)
    wide = -(-n // high)
    size = {"figsize": (4.2 * wide, 3.8 * high)} if n > 1 else {}
    _, grid = pyplot.subplots(high, wide, squeeze=False, layout="constrained", **size)
    for unused in grid.ravel()[n:]:
        unused.set_visible(False)
    made: AnyArray = grid.ravel()[:n]
    return made


def _brief(name: object, most: int = 30) -> str:
    """Return a name as text that a picture has room for, and that matplotlib reads unchanged.

    Text that is too long loses its middle: long names often differ in their last letters only.

    Examples
    --------
    >>> _brief("the age"), _brief("temperature of sensor 17", 16)
    ('the age', 'temperatur…or 17')
    """
    text = " ".join(str(name).split())
    if len(text) > most:
        tail = (most - 1) // 3
        text = f"{text[: most - 1 - tail]}…{text[-tail:]}"
    return text.replace("$", r"\$")
