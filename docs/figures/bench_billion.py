"""Seconds of the steps on a billion rows, and how near two solutions come to each cluster."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from theme import ORANGE, Theme, results

STEPS = {
    "plain sum": "sum all rows",
    "build": "build a coreset",
    "cluster": "cluster the coreset",
    "label": "label all rows",
}


def draw(theme: Theme) -> Figure:
    """Draw bars of seconds, and the distance of each cluster to the nearest center found."""
    data = results("billion")
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])
    _seconds(left, theme, data)
    _distances(right, theme, data)
    return figure


def _seconds(ax: Axes, theme: Theme, data: dict[str, Any]) -> None:
    steps, made = data["results"]["steps"], data["stamp"]
    walls = [steps[name]["wall"] for name in STEPS]
    colors = [theme.ink, *[ORANGE] * (len(STEPS) - 1)]
    bars = ax.barh(list(STEPS.values()), walls, color=colors, height=0.55)
    ax.bar_label(bars, fmt="%.0f s", padding=4, color=theme.ink)
    ax.invert_yaxis()
    ax.set(
        title=f"{made['rows']:,} rows",
        xlim=(0, 1.2 * max(walls)),
        xlabel=f"seconds on two cores, with {made['limit'] / 1e9:.0f} GB",
    )
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _distances(ax: Axes, theme: Theme, data: dict[str, Any]) -> None:
    found, size = data["results"], f"{data['stamp']['size']:,}"
    series = {"uniform": (theme.ink, "uniform"), "coreset": (ORANGE, "weighted")}
    for name, (color, kind) in series.items():
        reached = found["reached"][name]
        times = found["costs"][name] / found["costs"]["planted"]
        ax.scatter(
            found["rows of clusters"], reached["distances"], color=color, s=36, linewidths=0,
            alpha=0.85, clip_on=False, zorder=3,
            label=f"{size} {kind} rows: {reached['found']} of {len(reached['distances'])} "
                  f"found, cost x {times:.2f}",
        )  # fmt: skip
    ax.set(
        xscale="log",
        ylim=(0, None),
        xlabel="rows of the cluster",
        ylabel="nearest center found,\nin radii of the cluster",
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False, labelcolor=theme.ink)
