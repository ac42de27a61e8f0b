"""Audits of a coreset that missed clusters, and of one that has them."""

from __future__ import annotations

from matplotlib.figure import Figure
from theme import Theme

from daskcoreset import build
from daskcoreset.datasets import make_near_mean


def draw(theme: Theme) -> Figure:
    """Draw the audits of two coresets of the same size on the same scale."""
    X = make_near_mean(50_000, 10, random_state=0)[0].compute()
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for ax, method in ((left, "lightweight"), (right, "kmeans")):
        coreset = build(X, size=1_000, method=method, n_clusters=50, random_state=0)
        report = coreset.audit(X, n_clusters=50, random_state=0)
        report.plot(ax)
        title = f"{method}: distortion {100 * report.distortion:.0f} %"
        ax.set(title=title, xlim=(-1.1, 0.4), xlabel="difference of costs")
        ax.tick_params(left=ax is left)
        ax.spines[:].set_color(theme.ink)
    return figure
