"""Accuracy of kernel machines above that of LightGBM."""

from __future__ import annotations

from matplotlib.figure import Figure
from theme import ORANGE, SKY, Theme, dots, results


def draw(theme: Theme) -> Figure:
    """Accuracy of kernel machines above that of LightGBM."""
    sets = results("kernels")["results"]["ceilings"]

    def gaps(*methods: str) -> list[float]:
        best = (max(found[method]["median"][0] for method in methods) for found in sets.values())
        light = (found["LightGBM"]["median"][0] for found in sets.values())
        return [100 * (one - other) for one, other in zip(best, light, strict=True)]

    figure = Figure(figsize=(9.2, 3.2), layout="constrained")
    ax = figure.subplots()
    size = "1,200 points"
    series = {
        "CoresetKernelClassifier": (ORANGE, gaps(f"ours, {size}")),
        "Nystroem, same size": (
            SKY, gaps(f"Nystroem + ridge, {size}", f"Nystroem + logistic, {size}"),
        ),
        "LightGBM, 40,000 rows": (theme.ink, gaps("LightGBM, more rows")),
    }  # fmt: skip
    dots(ax, theme, list(sets), series)
    ax.axvline(0, color=theme.ink, lw=1)
    ax.set_xlabel("accuracy above LightGBM on 10,000 rows, points of percent")
    return figure
