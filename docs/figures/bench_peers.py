"""Cost of k-means against processor time, beside other libraries."""

from __future__ import annotations

from statistics import mean, median

from matplotlib.figure import Figure
from theme import GREEN, ORANGE, Theme, results

PURPLE = "#9467bd"


def draw(theme: Theme) -> Figure:
    """Cost of k-means against processor time, beside other libraries."""
    data = results("peers_kmeans")["results"]
    marks = {
        "CoresetKMeans": ("CoresetKMeans", "o", ORANGE),
        "sklearn.KMeans, all rows": ("KMeans, all rows", "s", GREEN),
        "sklearn.MiniBatchKMeans": ("MiniBatchKMeans", "v", GREEN),
        "uniform, 10,000 rows": ("10,000 uniform rows", "x", theme.ink),
        "uniform, 50,000 rows": ("50,000 uniform rows", "+", theme.ink),
        "dask_ml.KMeans": ("dask-ml KMeans", "D", PURPLE),
        "faiss.Kmeans, all rows": ("faiss, all rows", "^", theme.blue),
        "faiss.Kmeans": ("faiss, its sample", "<", theme.blue),
    }
    sets = list(dict.fromkeys(one["set"] for one in data))
    clusters = sorted({one["k"] for one in data})
    figure = Figure(figsize=(8, 1.2 + 1.25 * len(sets)), layout="constrained")
    axes = figure.subplots(len(sets), len(clusters), sharex="col", sharey=True, squeeze=False)
    for one in data:
        ax = axes[sets.index(one["set"]), clusters.index(one["k"])]
        best = min(run["cost"] for runs in one["runs"].values() for run in runs)
        for name, (label, marker, color) in marks.items():
            runs = one["runs"].get(name)
            if runs:
                above = 100 * (mean(run["cost"] for run in runs) / best - 1)
                seconds = median(run["cpu"] for run in runs)
                ax.plot(seconds, above, marker, color=color, ms=7, mew=1.8, label=label, zorder=3)
    for ax in axes.flat:
        ax.set(xscale="log", ylim=(-0.3, 1000))
        ax.set_yscale("symlog", linthresh=1)
        ax.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
        ax.minorticks_off()
        ax.xaxis.set_major_formatter("{x:g}")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    for ax, k in zip(axes[0], clusters, strict=True):
        ax.set_title(f"{k:,} clusters", fontsize=11)
    for ax, name in zip(axes[:, 0], sets, strict=True):
        ax.set_ylabel(name.replace("made", "synthetic"))
    figure.supxlabel("processor time, s", fontsize=11)
    figure.supylabel("cost above the best run, %", fontsize=11)
    labels = {}
    for ax in axes.flat:
        labels |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(
        labels.values(), labels.keys(), loc="outside upper center", ncols=4, frameon=False,
        labelcolor=theme.ink, fontsize=9.5,
    )  # fmt: skip
    return figure
