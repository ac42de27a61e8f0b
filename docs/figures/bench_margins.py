"""Balanced accuracy by the number of labels."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from theme import ORANGE, SKY, Theme, results

SETS = ("htru2, as it is", "w8a, as it is")


def draw(theme: Theme) -> Figure:
    """Balanced accuracy by the number of labels."""
    data = results("active_margin")
    looks = {
        "active max margin": ("ActiveMaxMarginClassifier", ORANGE, "o-"),
        "uncertainty": ("uncertainty sampling", SKY, "s--"),
        "random": ("random rows", theme.ink, "D:"),
    }
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    found = {one["set"]: one for one in data["results"]}
    for ax, name in zip(figure.subplots(1, 2), SETS, strict=True):
        for method, (label, color, look) in looks.items():
            values = 100 * np.array(found[name]["curves"][method])[:, :, 1].mean(axis=0)
            ax.plot(data["labels"], values, look, color=color, ms=6, label=label)
        ax.set_title(name.partition(",")[0], color=theme.ink)
        ax.set_xlabel("labels")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("balanced accuracy, %")
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        *handles, loc="outside upper center", ncols=3, frameon=False, labelcolor=theme.ink
    )
    return figure
