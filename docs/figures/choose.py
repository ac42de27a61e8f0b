"""From the task to the method."""

from __future__ import annotations

from matplotlib.figure import Figure
from theme import GREEN, Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """From the task to the method."""
    branches = (
        ("groups of rows", "k known", "CoresetKMeans"),
        ("", "k unknown", "build(X, n_clusters=largest_k)"),
        ("", "densities", "CoresetGaussianMixture"),
        ("", "counts, spectra", "CoresetBregman"),
        ("labels", "linear boundary", "CoresetSVC, CoresetLogisticRegression"),
        ("", "curved boundary", "CoresetKernelClassifier"),
        ("", "largest margin", "MaxMarginClassifier"),
        ("", "labels are expensive", "ActiveMaxMarginClassifier"),
        ("a number", "linear", "CoresetRidge, CoresetElasticNet"),
        ("something else", "", 'CoresetEstimator(model, method="uniform")'),
    )  # fmt: skip
    figure, ax = canvas(9.4, 5.0)
    top = len(branches) - 1
    for row, (task, case, method) in enumerate(branches):
        y = top - row
        if task:
            source = y
            box(ax, theme, 0.0, y, 2.0, task, theme.ink, height=0.7)
        if case:
            box(ax, theme, 2.9, y, 2.2, case, theme.blue, height=0.66)
            arrow(ax, theme, (2.0, source), (2.9, y))
            arrow(ax, theme, (5.1, y), (5.8, y))
        else:
            arrow(ax, theme, (2.0, y), (5.8, y))
        box(ax, theme, 5.8, y, 4.5, method, GREEN, height=0.66)
    ax.set(xlim=(-0.1, 10.4), ylim=(-0.6, top + 0.6))
    return figure
