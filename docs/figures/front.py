"""Many points, and the few weighted rows that represent them."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from theme import ORANGE, Theme

from daskcoreset import build
from daskcoreset.estimators import CoresetKMeans


def draw(theme: Theme) -> Figure:
    """Many points, and the few weighted rows that stand for them."""
    rng = np.random.default_rng(4)
    shares = np.array([0.62, 0.28, 0.09, 0.01])
    middles = np.array([[0.0, 0.0], [5.0, 1.2], [2.2, 4.2], [11.0, 4.8]])
    spreads = np.array([1.0, 0.8, 0.5, 0.16])
    part = rng.choice(4, size=500_000, p=shares)
    X = middles[part] + spreads[part, None] * rng.normal(size=(part.size, 2))
    coreset = build(X, size=200, method="kmeans", n_clusters=4, random_state=0)
    centers = CoresetKMeans(4, size=2_000, random_state=0).fit(X).cluster_centers_

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    left.hexbin(*X.T, gridsize=70, bins="log", cmap=theme.density, mincnt=1, linewidths=0)
    left.set_title(f"{len(X):,} rows", color=theme.ink)
    right.scatter(
        *coreset.points.T,
        s=3 + 0.025 * coreset.weights,
        color=ORANGE,
        alpha=0.55,
        linewidths=0,
    )
    right.set_title(f"{len(coreset)} weighted rows", color=theme.ink)
    # Around the centers, for a cross hides the few rows of the smallest cluster.
    ring = {"markersize": 19, "fillstyle": "none"}
    for ax in (left, right):
        ax.spines[:].set_color(theme.ink)
        if ax is left:  # a rim, for the density behind is as dark or light as the ink
            ax.plot(*centers.T, "o", color=theme.ground, **ring, markeredgewidth=5.6)
        ax.plot(*centers.T, "o", color=theme.ink, **ring, markeredgewidth=2.2)
        ax.set(xticks=[], yticks=[], xlim=(-4, 12.5), ylim=(-4, 6.5))
    return figure
