"""A picture of active learning: the gap between core set and pool closing, label by label."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.optional import axes_for, need_matplotlib
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.constructions.margin.labelled import Phase

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from daskcoreset.constructions.margin.active_found import ActiveMargin
    from daskcoreset.constructions.margin.run_state import Trace

__all__ = ["plot_labels"]

_SHADES = {Phase.SEEDING: "0.90", Phase.QUERYING: "1.0", Phase.VERIFYING: "0.95"}


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
    ax.step(labels, [step.margin for step in solved], where="post", label="margin on the core set")
    looked = [step for step in solved if np.isfinite(step.closest)]
    if looked:
        ax.plot(
            [step.n_labels for step in looked],
            [step.closest for step in looked],
            "o-",
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
        right.plot(counts, shares, "k:", lw=1.2, label="accuracy")
        right.set_ylabel("accuracy")
        more = right.get_legend_handles_labels()
        handles = (handles[0] + more[0], handles[1] + more[1])
    ax.legend(*handles, frameon=False, fontsize="small")
    return ax


def _shade(ax: Axes, trace: Trace) -> None:
    """Tell the phases apart by the ground they are drawn on."""
    start, last = 0, trace[-1].n_labels
    for before, step in itertools.pairwise(trace):
        if step.phase is not before.phase:
            _span(ax, start, before.n_labels, before.phase, last)
            start = before.n_labels
    _span(ax, start, last, trace[-1].phase, last)
    ax.set_xlim(0, last * 1.02)


def _span(ax: Axes, start: int, stop: int, phase: Phase, last: int) -> None:
    if stop > start and phase in _SHADES:
        ax.axvspan(start, stop, color=_SHADES[phase], lw=0, zorder=0)
        if stop - start > 0.1 * last:
            ax.text(
                (start + stop) / 2,
                1.01,
                phase.name.lower(),
                transform=ax.get_xaxis_transform(),
                ha="center",
                va="bottom",
                fontsize="x-small",
                color="0.4",
            )
