"""Centers of k-means on rows of three methods, over data with small clusters."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from theme import GREEN, ORANGE, Theme

from daskcoreset import build

LARGE, SMALL, SIZE = 5, 11, 200
METHODS = ("uniform", "lightweight", "kmeans")


def _data() -> tuple[np.ndarray, np.ndarray]:
    """Five large clusters on a circle, and eleven small ones inside and outside of it."""
    rng = np.random.default_rng(1)
    turns = 2 * np.pi * np.arange(LARGE) / LARGE + 0.3
    far = 2 * np.pi * np.arange(8) / 8 + 0.1
    near = 2 * np.pi * np.arange(3) / 3
    middles = np.concatenate(
        [
            radius * np.column_stack([np.cos(angle), np.sin(angle)])
            for radius, angle in ((8.0, turns), (12.5, far), (3.2, near))
        ]
    )
    counts = np.array([40_000] * LARGE + [500] * SMALL)
    spreads = np.array([0.4] * LARGE + [0.2] * SMALL)
    part = rng.permutation(np.repeat(np.arange(LARGE + SMALL), counts))
    return middles[part] + spreads[part, None] * rng.normal(size=(part.size, 2)), middles


def draw(theme: Theme) -> Figure:
    """Centers of k-means on rows of three methods, over data with small clusters."""
    X, middles = _data()
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    for ax, method in zip(figure.subplots(1, 3), METHODS, strict=True):
        k = LARGE + SMALL
        found = build(X, size=SIZE, method=method, n_clusters=k, random_state=0)
        model = KMeans(k, n_init=100, random_state=0)
        centers = model.fit(found.points, sample_weight=found.weights).cluster_centers_
        nearest = np.linalg.norm(middles[:, None] - centers, axis=2).min(axis=1)
        missed = nearest > 0.9
        ax.hexbin(*X.T, gridsize=70, bins="log", cmap=theme.density, mincnt=1, linewidths=0)
        ax.scatter(*found.points.T, s=5, color=GREEN, linewidths=0)
        ax.plot(*centers.T, "+", color=theme.ink, markersize=8, markeredgewidth=1.6)
        ring = {"markersize": 15, "fillstyle": "none", "markeredgewidth": 2.2}
        ax.plot(*middles[missed].T, "o", color=ORANGE, **ring)
        ax.set_title(f"{method}: {missed.sum()} missed", color=theme.ink)
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_color(theme.ink)
    return figure
