"""Excess cost of k-means on uniform rows and on a coreset."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from theme import ORANGE, Theme, dots, results

SIZE = 1000


def draw(theme: Theme) -> Figure:
    """Excess cost of k-means on uniform rows and on a coreset."""
    data = results("quality")["results"]

    def errors(method: str) -> list[float]:
        return [100 * np.mean(one["cells"][f"{method}|{SIZE}"]["errors"]) for one in data]

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    ax = figure.subplots()
    series = {
        f"{SIZE:,} uniform rows": (theme.ink, errors("uniform")),
        f"CoresetKMeans(size={SIZE})": (ORANGE, errors("`CoresetKMeans`")),
    }
    dots(ax, theme, [one["set"] for one in data], series)
    ax.set(xscale="log", xlabel="cost above k-means on all rows, %")
    ticks = [1, 2, 5, 10, 20, 50, 100, 200]
    ax.set_xticks(ticks, [f"{tick}" for tick in ticks])
    ax.minorticks_off()
    return figure
