"""Excess cost of linear classifiers on streams and on reservoirs."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from theme import GREEN, SKY, Theme, dots, results

METHODS = ("stream", "reservoir", "reservoir, same memory")
LEAST = 0.001  # per cent; smaller errors are drawn there


def draw(theme: Theme) -> Figure:
    """Excess cost of linear classifiers on streams and on reservoirs."""
    rows, stream, same, memory = [], [], [], []
    for one in results("svm_streaming")["results"]:
        size = min(int(key.split("|")[1]) for key in one["cells"])
        rows.append(f"{one['set']}, {size:,} rows")
        for found, method in zip((stream, same, memory), METHODS, strict=True):
            error = 100 * np.mean(one["cells"][f"{method}|{size}"]["errors"])
            found.append(max(error, LEAST))
    figure = Figure(figsize=(9.2, 2.9), layout="constrained")
    ax = figure.subplots()
    series = {
        "reservoir of the same size": (theme.ink, same),
        "CoresetStream": (GREEN, stream),
        "reservoir of the same memory": (SKY, memory),
    }
    dots(ax, theme, rows, series)
    ax.set(xscale="log", xlabel="cost above the classifier on all rows, %")
    ticks = [0.001, 0.01, 0.1, 1, 10, 100]
    ax.set_xticks(ticks, ["≤ 0.001", *(f"{tick:g}" for tick in ticks[1:])])
    ax.minorticks_off()
    return figure
