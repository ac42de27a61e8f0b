"""Time of a build beside that of a plain sum."""

from __future__ import annotations

from matplotlib.figure import Figure
from theme import ORANGE, Theme, results


def draw(theme: Theme) -> Figure:
    """Time of a build beside that of a plain sum."""
    rows = results("throughput")["results"]["stored"]
    named = {"plain sum": "X.sum(axis=0)", "passes=1": "build", "passes=2": "build, two passes"}
    ratios = {named[row["job"]]: row["ratio"][1] for row in rows if row["job"] in named}
    figure = Figure(figsize=(8, 2.1), layout="constrained")
    ax = figure.subplots()
    colors = [theme.ink, ORANGE, ORANGE]
    bars = ax.barh(list(ratios), list(ratios.values()), color=colors, height=0.55)
    ax.bar_label(bars, fmt="%.2f", padding=4, color=theme.ink)
    ax.invert_yaxis()
    ax.set(xlabel="processor time over that of a plain sum of the same store", xlim=(0, 2.3))
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return figure
