"""Pictures of errors: against size, and those that an audit found.

matplotlib is imported when something is drawn, pyplot only where no axes are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.looks import AUDITED, add_legend, axes_for, ink_of, looks_of, new_axes
from daskcoreset.core.optional import need_matplotlib
from daskcoreset.core.tables import brief
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import as_float, as_numbers, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Sizes named on the axis; more would run into each other.
_MAX_TICKS = 8

# Names that a corner of a picture has room for; a longer legend hides what is behind it.
_FEW_NAMES = 6

# Names of an audit that usual axes have room for, and height of a further one in inches.
_FEW_SOLUTIONS, _LINE = 16, 0.25


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
    looks = looks_of(lines)
    for i, (name, (size, mean, width)) in enumerate(lines.items()):
        look = looks[i]
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
    add_legend(ax, frameon=len(lines) > _FEW_NAMES)
    return ax


def plot_audit(
    names: Sequence[str],
    differences: FloatArray,
    title: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw how far costs on a coreset are from those on all data; see `daskcoreset.Audit.plot`.

    Parameters
    ----------
    names : sequence of str
    differences : ndarray of shape (n,), float64
        Relative ones, with a sign; infinite ones, of a cost of zero on all data, are shown at
        the edge, and those that are not known by a cross.
    title : str
    ax : matplotlib.axes.Axes or None, default=None

    Returns
    -------
    matplotlib.axes.Axes
    """
    need_matplotlib()
    differences = as_numbers("differences", differences)
    if isinstance(names, str) or differences.shape != (np.size(np.asarray(names, object)),):
        raise InvalidInputError(
            f"names is {shown(names)} beside differences of shape {differences.shape}; pass a name "
            f"for each."
        )
    if ax is None and len(names) > _FEW_SOLUTIONS:
        height = 0.8 + _LINE * len(names)
        ax = new_axes((1, 1), figsize=(6.4, height))[0, 0]
    ax = axes_for(ax)
    known = np.isfinite(differences)
    widest = float(np.abs(differences[known]).max(initial=1e-3))
    placed = np.where(known, differences, 1.15 * widest * np.nan_to_num(np.sign(differences)))
    heights = np.arange(len(names))[::-1]
    letters = _letters(ax, len(names))
    ax.axvline(0.0, color="0.6", lw=0.8)
    color = AUDITED
    ax.hlines(heights, 0.0, placed, color=color, lw=1.5)
    for y, x, value in zip(heights, placed, differences, strict=True):
        ax.plot(x, y, marker=_marker(value), color=color, ms=min(6.0, letters), ls="none")
        text = _difference(value)
        away = -7.0 if x < 0 and text != "0.00 %" else 7.0
        place: dict[str, Any] = {"textcoords": "offset points", "fontsize": letters}
        place |= {"ha": "left" if away > 0 else "right", "va": "center"}
        ax.annotate(text, (x, y), (away, 0.0), color=ink_of(ax), **place)
    ax.set_yticks(heights, labels=[brief(name) for name in names], fontsize=letters)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlim(-1.8 * widest, 1.8 * widest)  # with room for the words
    ax.locator_params(axis="x", nbins=6)
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.3g} %")
    ax.grid(visible=True, which="major", axis="x", color="0.5", alpha=0.2)
    ax.set_axisbelow(True)
    ax.set_xlabel("cost on the coreset, against that on all data")
    ax.set_title(brief(title, 60), fontsize="medium")
    return ax


def _letters(ax: Axes, lines: int) -> float:
    """Return the size of letters, in points, of which so many lines fit beside axes."""
    usual = ax.yaxis.label.get_fontproperties().get_size_in_points()
    room = 0.8 * ax.bbox.height / ax.figure.dpi * 72 / lines
    return max(3.0, min(usual, room))


def _marker(difference: float) -> str:
    if np.isnan(difference):
        return "x"
    return "o" if np.isfinite(difference) else (">" if difference > 0 else "<")


def _difference(value: float) -> str:
    """Say a difference in few letters."""
    if np.isnan(value):
        return "unknown"
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 100:
        return f"{100 * value:+.3g} %"
    text = f"{100 * value:+.2f} %"
    return "0.00 %" if text[1:] == "0.00 %" else text


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
    if high <= 0 or low <= 0:  # nothing above zero, which has a logarithm
        low, high = 1e-3, 1.0
        ax.set_ylim(low, high)
    # Over few decades 1, 2 and 5 are named; over many they would run into each other.
    few = np.log10(high / low) < 3.5
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.4g} %")
    ax.set_xlabel("rows in the coreset")
    ax.grid(visible=True, which="major", color="0.5", alpha=0.2)
    ax.set_axisbelow(True)
