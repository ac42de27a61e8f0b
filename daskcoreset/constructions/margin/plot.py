"""The gap closing: margin on the core set and on all data, against reads or labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.optional import axes_for
from daskcoreset.core.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from daskcoreset.constructions.margin.result import MarginCoreset

__all__ = ["plot_gap", "plot_margins"]

_MOST_MARKERS = 40
"""More would cover the line."""


def plot_margins(found: MarginCoreset, ax: Axes | None = None) -> Axes:
    """Draw the margin on the core set and on the data against the reads of the data.

    Parameters
    ----------
    found : MarginCoreset
    ax : matplotlib.axes.Axes or None, default=None
        Where to draw; None draws into a new figure of pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        With the band that holds the largest margin, and the share that is promised.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from daskcoreset.constructions.margin.batch import MaxMarginCoreset
    >>> X = np.random.default_rng(0).normal(size=(5000, 5))
    >>> found = MaxMarginCoreset(violators=1).run(X, X[:, 0] > 0)
    >>> plot_margins(found, Figure().add_subplot()).get_xlabel()
    'reads of the data'
    """
    return plot_gap(
        [step.reads for step in found.trace],
        [step.core_margin for step in found.trace],
        [step.margin for step in found.trace],
        epsilon=found.epsilon,
        xlabel="reads of the data",
        ax=ax,
    )


def plot_gap(
    place: Sequence[float],
    core_margin: Sequence[float],
    margin: Sequence[float],
    *,
    epsilon: float | None = None,
    xlabel: str = "reads of the data",
    ax: Axes | None = None,
) -> Axes:
    """Draw an upper and a lower bound of the largest margin as they close in on it.

    Parameters
    ----------
    place : sequence of float
        Reads of the data, or labels asked for.
    core_margin, margin : sequence of float
        On the core set and on the data. Margins below zero, of a separator that errs, are
        marked on the lower edge: how far below says little.
    epsilon : float or None, default=None
        Draws the share of the margin on the core set that is promised.
    xlabel : str, default="reads of the data"
    ax : matplotlib.axes.Axes or None, default=None
        Where to draw; None draws into a new figure of pyplot.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InvalidInputError
        If there is nothing to draw, or the lengths differ.
    MissingDependencyError
        matplotlib is not installed; the extra is "plot".
    """
    at, upper, lower = (np.asarray(one, dtype=np.float64) for one in (place, core_margin, margin))
    if not at.size or not at.shape == upper.shape == lower.shape:
        raise InvalidInputError(
            f"place, core_margin and margin have {at.size}, {upper.size} and {lower.size} values; "
            f"pass as many of each, and one at least."
        )
    ax = axes_for(ax)
    ax.locator_params(axis="x", integer=True)  # there is no half a read
    best = np.maximum.accumulate(lower)
    errs = lower <= 0
    size = 3.5 if len(at) <= _MOST_MARKERS else 0.0
    ax.plot(at, upper, color="C0", marker="o", ms=size, lw=1.5, label="on the core set")
    if epsilon is not None:
        promised = f"{1 - epsilon:.3g} of it"
        ax.plot(at, (1 - epsilon) * upper, color="C0", ls=":", lw=1.2, label=promised)
    shown = np.where(errs, np.nan, lower)
    ax.plot(at, shown, color="C1", marker="s", ms=size or 2.0, lw=1.5, label="on all data")
    # The largest margin of all lies between the two.
    ax.fill_between(at, np.maximum(best, 0.0), upper, color="C0", alpha=0.12, lw=0)
    if errs.any():
        edge = ax.get_xaxis_transform()
        ax.plot(
            at[errs],
            np.zeros(int(errs.sum())),
            transform=edge,
            clip_on=False,
            color="C1",
            marker="v",
            ms=5,
            ls="none",
            label="errs on the data",
        )
    good = upper[np.argmax(~errs) :] if not errs.all() else upper[-1:]
    ax.set_ylim(0.0, 1.8 * float(good.max()))
    ax.set_xlabel(xlabel)
    ax.set_ylabel("margin")
    ax.grid(visible=True, color="0.9")
    ax.set_axisbelow(True)
    ax.legend(frameon=False, loc="upper right")
    return ax
