"""Two coresets of the same data, as `plot_coresets` draws them."""

from __future__ import annotations

from matplotlib.figure import Figure
from theme import Theme

from daskcoreset import build
from daskcoreset.datasets import make_mixture
from daskcoreset.plotting import plot_coresets


def draw(_theme: Theme) -> Figure:
    """Two coresets of the same data, as `plot_coresets` draws them."""
    X, _ = make_mixture(100_000, 6, n_clusters=60, imbalance=1000, random_state=0)
    methods = ["lightweight", "uniform"]
    found = {one: build(X, size=400, method=one, random_state=0) for one in methods}
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    plot_coresets(found, X, axes=figure.subplots(1, 2, sharex=True, sharey=True))
    return figure
