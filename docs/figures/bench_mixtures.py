"""Log-likelihood of mixtures on uniform rows and on a coreset."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from theme import ORANGE, Theme, dots, results

SIZE = 1000


def draw(theme: Theme) -> Figure:
    """Log-likelihood of mixtures on uniform rows and on a coreset."""
    data = [one for one in results("mixtures")["results"] if one["size"] == SIZE]

    def gaps(method: str) -> list[float]:
        return [float(np.mean(one[method])) - one["all"] for one in data]

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    ax = figure.subplots()
    series = {
        f"{SIZE:,} uniform rows": (theme.ink, gaps("alone")),
        f"coreset of {SIZE:,} rows": (ORANGE, gaps("mixture")),
    }
    dots(ax, theme, [one["set"] for one in data], series)
    ax.axvline(0, color=theme.ink, lw=1)
    ax.set_xscale("symlog", linthresh=0.1)
    ticks = [-20, -5, -1, -0.1, 0, 0.1, 1]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xlim(-40, 0.3)
    ax.minorticks_off()
    ax.set_xlabel("log-likelihood above scikit-learn on all rows, nats per row")
    return figure
