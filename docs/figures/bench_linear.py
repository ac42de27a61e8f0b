"""Excess cost of linear classifiers on uniform rows and on a coreset."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from theme import GREEN, SKY, Theme, dots, results


def draw(theme: Theme) -> Figure:
    """Excess cost of linear classifiers on uniform rows and on a coreset."""
    rows, uniform, ours, gradients = [], [], [], []
    for one in results("svm_offline")["results"]:
        sizes = {int(key.split("|")[1]) for key in one["errors"]}
        wanted = min(1200, one["shape"][0] / 4)
        size = min(sizes, key=lambda size: abs(math.log(size / wanted)))
        rows.append(f"{one['set']}, {size:,} rows")
        for found, method in ((uniform, "uniform"), (ours, "default")):
            found.append(100 * np.mean(one["errors"][f"{method}|{size}"]))
        gradients.append(100 * np.mean(one["sgd"]["errors"]))
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    ax = figure.subplots()
    series = {
        "uniform rows": (theme.ink, uniform),
        'build(method="svm")': (GREEN, ours),
        "averaged SGD on all rows": (SKY, gradients),
    }
    dots(ax, theme, rows, series)
    ax.set(xscale="log", xlabel="cost above the classifier on all rows, %")
    ticks = [0.001, 0.01, 0.1, 1, 10, 100]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    return figure
