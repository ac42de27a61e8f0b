"""Pictures of the margins on the core set and on all data, against reads or labels."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.margin.active_state import ActiveMargin, Trace
from daskcoreset.constructions.margin.core_set import MarginCoreset
from daskcoreset.constructions.margin.labels import Phase
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.looks import ORANGE, add_legend, axes_for, ink_of, look_of
from daskcoreset.core.optional import need_matplotlib
from daskcoreset.core.validation import a_type, as_numbers, check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More would cover the line.
_MAX_MARKERS = 40

# Inches that two columns of a legend need.
_NARROW = 3.2


def plot_margins(found: Any, ax: Axes | None = None) -> Axes:
    """Draw the margin on the core set and on the data against the reads of the data.

    Parameters
    ----------
    found : MarginCoreset or MaxMarginClassifier
        What `MaxMarginCoreset.run` returned, or an estimator that was fitted to two classes.
    ax : matplotlib.axes.Axes or None, default=None
        Where to draw; None draws into a new figure of pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        With the band that holds the largest margin, and the share that is promised.

    Raises
    ------
    InvalidTypeError
        If `found` is something else, or an estimator without one core set.
    MissingDependencyError
        matplotlib is not installed; the extra is "plot".

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from daskcoreset.constructions.margin.max_margin import MaxMarginCoreset
    >>> X = np.random.default_rng(0).normal(size=(5000, 5))
    >>> found = MaxMarginCoreset(violators=1).run(X, X[:, 0] > 0)
    >>> plot_margins(found, Figure().add_subplot()).get_xlabel()
    'reads of the data'
    """
    core = getattr(found, "core_", found)
    if not isinstance(core, MarginCoreset):
        raise InvalidTypeError(
            f"found is {a_type(found)} without one core set of two classes; pass what "
            f"MaxMarginCoreset().run(X, y) returns, a MaxMarginClassifier that was fitted to two "
            f"classes which a plane separates, or one of its core_ where it has several."
        )
    return plot_gap(
        [step.reads for step in core.trace],
        [step.core_margin for step in core.trace],
        [step.margin for step in core.trace],
        epsilon=core.epsilon,
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
    at, upper = as_numbers("place", place), as_numbers("core_margin", core_margin)
    lower = as_numbers("margin", margin)
    if epsilon is not None:
        check_number("epsilon", epsilon)
    if not at.size or not at.shape == upper.shape == lower.shape:
        raise InvalidInputError(
            f"place, core_margin and margin have {at.size}, {upper.size} and {lower.size} values; "
            f"pass as many of each, and one at least."
        )
    ax = axes_for(ax)
    ax.locator_params(axis="x", integer=True)  # there is no half a read
    best = np.maximum.accumulate(lower)
    errs = lower <= 0
    size = 3.5 if len(at) <= _MAX_MARKERS else 0.0
    inner, outer = look_of("margin").color, ORANGE
    ax.plot(at, upper, color=inner, marker="o", ms=size, lw=1.5, label="on the core set")
    if epsilon is not None:
        promised = f"{1 - epsilon:.12g} of it, as promised"
        ax.plot(at, (1 - epsilon) * upper, color=inner, ls=":", lw=1.2, label=promised)
    shown = np.where(errs, np.nan, lower)
    line: dict[str, Any] = {"color": outer, "marker": "s", "ls": "--", "lw": 1.5}
    ax.plot(at, shown, ms=size or 2.0, label="on all data", **line)
    # The largest margin of all lies between the two.
    low = np.maximum(best, 0.0)
    name = "holds the largest margin"
    ax.fill_between(at, low, upper, color=inner, alpha=0.2, lw=0, label=name)
    if errs.any():
        edge = ax.get_xaxis_transform()
        ax.plot(
            at[errs],
            np.zeros(int(errs.sum())),
            transform=edge,
            clip_on=False,
            color=outer,
            marker="v",
            ms=5,
            ls="none",
            label="errs on the data",
        )
    good = upper[np.argmax(~errs) :] if not errs.all() else upper[-1:]
    ax.set_ylim(0.0, 1.8 * float(good.max()))
    ax.set_xlabel(xlabel)
    ax.set_ylabel("margin")
    ax.grid(visible=True, color="0.5", alpha=0.2)
    ax.set_axisbelow(True)
    if len(np.unique(at)) == 1:
        ax.set_xlim(at[0] - 1, at[0] + 1)
    _explain(ax)
    return ax


def _explain(ax: Axes, above: float = 1.0, **named: Any) -> None:
    """Draw the legend above the axes, where no curve runs, in two columns."""
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, above), "ncols": 2}
    if ax.bbox.width / ax.figure.dpi < _NARROW:
        # Two columns would be wider than these axes, and several lines as high.
        place = {"loc": "best", "framealpha": 0.6, "labelspacing": 0.2}
        add_legend(ax, fontsize="xx-small", **place, **named)
    else:
        add_legend(ax, fontsize="small", frameon=False, **place, **named)


# Opacity of the grey behind each phase.
_SHADES = {Phase.SEEDING: 0.2, Phase.QUERYING: 0.0, Phase.VERIFYING: 0.1}


def plot_labels(
    found: ActiveMargin,
    ax: Axes | None = None,
    *,
    accuracy: Mapping[int, float] | None = None,
) -> Axes:
    """Draw the margin on the core set, and the closest row of the pool, against labels.

    Parameters
    ----------
    found : ActiveMargin
        With its trace; of a run that goes on, too.
    ax : matplotlib.axes.Axes or None, default=None
        Where to draw; None draws into a new figure of pyplot.
    accuracy : mapping of int to float or None, default=None
        Accuracy by number of labels, where it is known, on an axis of its own at the right.

    Returns
    -------
    matplotlib.axes.Axes
        Grey where random rows were labelled: to find both classes, and to verify.

    Raises
    ------
    InvalidInputError
        If the run has not seen both classes yet.
    MissingDependencyError
        matplotlib is not installed; the extra is "plot".

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from daskcoreset.constructions.margin.active import ActiveMaxMargin
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> found = ActiveMaxMargin(lambda rows: rows[:, 0] > 0, random_state=0).run(X)
    >>> plot_labels(found, Figure().add_subplot()).get_xlabel()
    'labels'
    """
    solved = [step for step in found.trace if np.isfinite(step.margin)]
    if not solved:
        raise InvalidInputError("found has no margin yet; tell labels of both classes first.")
    need_matplotlib()
    ax = axes_for(ax)
    _shade(ax, found.trace)
    labels = [step.n_labels for step in solved]
    margins = [step.margin for step in solved]
    look = look_of("active")
    ax.step(labels, margins, where="post", color=look.color, label="margin on the core set")
    reads = [step for step in solved if np.isfinite(step.closest)]
    if reads:
        ax.plot(
            [step.n_labels for step in reads],
            [step.closest for step in reads],
            "o--",
            color=ORANGE,
            ms=3,
            lw=0.8,
            label="closest row of the pool",
        )
    ax.set_yscale("log")
    ax.set_xlabel("labels")
    ax.set_ylabel("distance from the boundary")
    handles = ax.get_legend_handles_labels()
    if accuracy:
        right = ax.twinx()
        counts = sorted(accuracy)
        shares = [accuracy[count] for count in counts]
        right.plot(counts, shares, ":", color=ink_of(ax), lw=1.2, label="accuracy")
        right.set_ylabel("accuracy", color=ink_of(ax))
        right.tick_params(colors=ink_of(ax))
        right.spines[:].set_visible(False)  # those of the left axis are there
        more = right.get_legend_handles_labels()
        handles = (handles[0] + more[0], handles[1] + more[1])
    _explain(ax, 1.05, handles=handles[0], labels=handles[1])
    return ax


def _shade(ax: Axes, trace: Trace) -> None:
    """Shade the phases of a run in the background."""
    start, last = 0, trace[-1].n_labels
    for phase, steps in itertools.groupby(trace, key=lambda step: step.phase):
        stop = [step.n_labels for step in steps][-1]
        if stop > start and phase in _SHADES:
            ax.axvspan(start, stop, color="0.5", alpha=_SHADES[phase], lw=0, zorder=0)
            if stop - start > 0.1 * last:
                ax.text(
                    (start + stop) / 2,
                    1.01,
                    phase.name.lower(),
                    transform=ax.get_xaxis_transform(),
                    ha="center",
                    va="bottom",
                    fontsize="x-small",
                    color=ink_of(ax),
                )
        start = stop
    ax.set_xlim(0, last * 1.02)
