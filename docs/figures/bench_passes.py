"""What five coresets read, one after another and together."""

from __future__ import annotations

from matplotlib.figure import Figure
from theme import ORANGE, Theme, results

ALL = "all together"


def draw(theme: Theme) -> Figure:
    """Draw what five coresets read, one after another and together."""
    found = results("one_read")["results"]
    alone = sum(one["bytes"] for name, one in found.items() if name != ALL) / 1e6
    shown = {"five builds": alone, "build_many": found[ALL]["bytes"] / 1e6}
    figure = Figure(figsize=(8, 1.7), layout="constrained")
    ax = figure.subplots()
    bars = ax.barh(list(shown), list(shown.values()), color=[theme.ink, ORANGE], height=0.55)
    ax.bar_label(bars, fmt="%.0f MB", padding=4, color=theme.ink)
    ax.invert_yaxis()
    ax.set(xlabel="MB read from the store", xlim=(0, 1.15 * alone))
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return figure
