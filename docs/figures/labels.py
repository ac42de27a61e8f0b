"""Rows that two methods choose for a classifier with a rare class, and its boundary."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from theme import ORANGE, Theme

from daskcoreset import build

SIZE = 300
METHODS = ("uniform", "logistic")


def draw(theme: Theme) -> Figure:
    """Rows that two methods choose for a classifier with a rare class, and its boundary."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 2))
    y = X @ [0.8, 0.6] + 0.3 * rng.normal(size=len(X)) > 2.6
    everything = LogisticRegression().fit(X, y)
    across = np.array([-4.5, 4.5])

    figure = Figure(figsize=(7.2, 3.3), layout="constrained")
    for ax, method in zip(figure.subplots(1, 2), METHODS, strict=True):
        rows = build(X, y, size=SIZE, method=method, random_state=0)
        model = LogisticRegression().fit(rows.points, rows.labels, sample_weight=rows.weights)
        for label, marker, color in ((False, "o", theme.blue), (True, "^", ORANGE)):
            chosen = rows.labels == label
            area = np.clip(rows.weights[chosen] / 8, 16, 40)
            ax.scatter(
                *rows.points[chosen].T, s=area, marker=marker, color=color, alpha=0.75, linewidths=0
            )
        for fitted, style in ((everything, "--"), (model, "-")):
            (a, b), c = fitted.coef_[0], fitted.intercept_[0]
            ax.plot(across, -(a * across + c) / b, style, color=theme.ink, linewidth=1.8)
        rare = int(np.sum(rows.labels))
        ax.set_title(f"{method}: {rare} of {SIZE} rows are rare", color=theme.ink)
        ax.set(xticks=[], yticks=[], xlim=(-4.4, 4.4), ylim=(-4.4, 4.4))
        ax.spines[:].set_color(theme.ink)
    return figure
