"""Random rows miss small clusters, and weighted rows find them."""

from __future__ import annotations

from functools import cache

import dask
import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from theme import ORANGE, Theme

from daskcoreset import build
from daskcoreset.datasets import make_geometric

ROWS, CLUSTERS, KEPT = 1_200_000, 16, 500


@cache
def _drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return places of the rows, their clusters, the two draws, the weights of the second."""
    X, y = dask.compute(*make_geometric(ROWS, 10, n_clusters=CLUSTERS, random_state=0))
    chance = np.random.default_rng(0).choice(ROWS, KEPT, replace=False)
    coreset = build(X, size=KEPT, n_clusters=CLUSTERS, random_state=0, progress=False)
    return _places(X[:, :2], y), y, chance, coreset.indices, coreset.weights


def _middles() -> np.ndarray:
    """Return where clusters are drawn: along a spiral, the largest in its middle."""
    place = np.arange(CLUSTERS) + 0.7
    turn = np.pi * (3 - np.sqrt(5)) * place
    return 5 * np.sqrt(place)[:, None] * np.c_[np.cos(turn), np.sin(turn)]


def _places(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return two columns of the rows, with clusters moved apart and scaled to one spread."""
    places = np.empty_like(X)
    for cluster, middle in enumerate(_middles()):
        rows = X[y == cluster]
        places[y == cluster] = middle + (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return places


def draw(theme: Theme) -> Figure:
    """Return three panels: all rows, random rows, weighted rows."""
    points, y, chance, chosen, weights = _drawn()
    missed = sorted(set(range(CLUSTERS)) - {*y[chance]})
    found = len({*y[chosen]})
    dense = ListedColormap(colormaps[theme.density](np.linspace(0.25, 1, 256)))
    titles = (
        f"{ROWS:,} rows\nin {CLUSTERS} clusters",
        f"{KEPT} random rows:\n{len(missed)} of {CLUSTERS} clusters missed",
        f"{KEPT} weighted rows:\n{'all ' if found == CLUSTERS else ''}{found} clusters found",
    )
    figure = Figure(figsize=(10, 3.95))
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=0.83, wspace=0.02)
    for ax, title in zip(panels, titles, strict=True):
        ax.set_title(title, color=theme.ink, fontsize=15)
        ax.hexbin(
            *points.T,
            gridsize=90,
            bins="log",
            cmap=dense,
            mincnt=1,
            linewidths=0,
            rasterized=True,
            alpha=None if ax is panels[0] else 0.2,
        )
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(False)
    panels[1].scatter(*points[chance].T, s=9, color=theme.blue, linewidths=0)
    rings = {"color": ORANGE, "markersize": 30, "fillstyle": "none", "markeredgewidth": 2.4}
    panels[1].plot(*_middles()[missed].T, "o", **rings)
    panels[2].scatter(
        *points[chosen].T,
        s=7 + 110 * np.sqrt(weights / weights.max()),
        color=theme.blue,
        alpha=0.7,
        linewidths=0,
    )
    return figure
