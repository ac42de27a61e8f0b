"""Rings with core points and a curved boundary, and a margin with its core set."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from theme import GREEN, ORANGE, Theme

from daskcoreset.estimators import CoresetKernelClassifier, MaxMarginClassifier


def draw(theme: Theme) -> Figure:
    """Draw both."""
    rng = np.random.default_rng(0)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)

    y = rng.integers(0, 2, 20_000)
    radius, angle = 1 + 1.2 * y + rng.normal(0, 0.22, len(y)), rng.uniform(0, 2 * np.pi, len(y))
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    machine = CoresetKernelClassifier(gamma=1.0, max_points=60, random_state=0).fit(X, y)
    _scatter(left, X, y == 1, theme)
    grid = np.linspace(-3.2, 3.2, 120)
    cells = np.column_stack([part.ravel() for part in np.meshgrid(grid, grid)])
    values = machine.decision_function(cells).reshape(120, 120)
    values[np.hypot(*cells.T).reshape(120, 120) > 2.8] = np.nan  # few rows lie outside
    left.contour(grid, grid, values, [0.0], colors=theme.ink, linewidths=2.0)
    points = machine.core_points_
    left.plot(*points.T, "o", ms=7, mfc=GREEN, mec=theme.ground, mew=1.2)
    left.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), title="60 core points, curved boundary")

    X = rng.normal(size=(20_000, 2)) * [2.0, 1.4]
    distance = X @ [0.8, -0.6]
    X, distance = X[np.abs(distance) > 0.3], distance[np.abs(distance) > 0.3]
    model = MaxMarginClassifier().fit(X, distance > 0)
    _scatter(right, X, distance > 0, theme)
    normal, offset = model.coef_[0], model.intercept_[0]
    for shift, style in ((0.0, "-"), (model.margin_, "--"), (-model.margin_, "--")):
        foot = (shift - offset) * normal
        right.axline(foot, slope=-normal[0] / normal[1], ls=style, color=theme.ink, lw=1.6)
    core = model.coreset_.points
    right.plot(*core.T, "o", ms=8, mfc=GREEN, mec=theme.ground, mew=1.2)
    right.set(xlim=(-4, 4), ylim=(-4, 4), title=f"largest margin, core set of {len(core)} rows")
    for ax in (left, right):
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.title.set_color(theme.ink)
        ax.spines[:].set_color(theme.ink)
    return figure


def _scatter(ax: Axes, X: Any, positive: Any, theme: Theme) -> None:
    for color, chosen in ((theme.blue, ~positive), (ORANGE, positive)):
        some = X[chosen][:1500]
        ax.scatter(*some.T, s=4, color=color, alpha=0.45, linewidths=0, rasterized=True)
