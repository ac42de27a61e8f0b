"""Strong coresets of data in one long block: what no sample of its rows shows must be kept.

Every mode is judged by NumPy alone: which planted clusters have rows in the coreset, and what a
solution that was found on the coreset costs over all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans

from daskcoreset import (
    CoresetStream,
    MixtureCoreset,
    StrongBregman,
    StrongKMeans,
    build,
    datasets,
)
from daskcoreset.typing import AnyArray, FloatArray, IndexArray

N, K, SIZE = 120_000, 12, 600


@pytest.fixture(scope="module")
def hidden() -> tuple[AnyArray, IndexArray]:
    """Two far clusters, and ten of some 20 rows near the mean."""
    X, y = datasets.make_hidden(N, 5, hidden_rows=20, random_state=0)
    return X.compute(), y.compute()


def cost(X: AnyArray, centers: FloatArray) -> float:
    """Sum of squared distances to the nearest center."""
    least = np.full(len(X), np.inf)
    for center in centers:
        np.minimum(least, ((X - center) ** 2).sum(axis=1), out=least)
    return float(least.sum())


Made = Callable[[AnyArray, int], Any]


def built(method: Any, **options: Any) -> Made:
    return lambda X, seed: build(
        X, size=SIZE, method=method, random_state=seed, chunks=len(X), **options
    )


def streamed(X: AnyArray, seed: int) -> Any:
    stream = CoresetStream(size=SIZE, method=StrongKMeans(K), random_state=seed, leaf_size=len(X))
    return stream.partial_fit(X).coreset()


MODES: dict[str, tuple[Made, int]] = {
    "one read": (built(StrongKMeans(K)), 20),
    "two reads": (built(StrongKMeans(K), passes=2), 20),
    "independent draws": (built(StrongKMeans(K), passes=2, sampling="multinomial"), 5),
    "tree": (built(StrongKMeans(K), strategy="tree"), 20),
    "tree, independent": (built(StrongKMeans(K), strategy="tree", sampling="multinomial"), 5),
    "stream": (streamed, 5),
    "twice the clusters": (built(StrongKMeans(2 * K)), 5),
    "k-means||": (built(StrongKMeans(K, rough="kmeans||"), passes=2), 3),
    "k-means++": (built(StrongKMeans(K, rough="kmeans++"), passes=2), 3),
    "mixture": (built(MixtureCoreset(K)), 5),
    "mixture, two reads": (built(MixtureCoreset(K), passes=2), 5),
    "Bregman": (built(StrongBregman(K)), 5),
    "Bregman, tree": (built(StrongBregman(K), strategy="tree"), 5),
    "Mahalanobis, two reads": (built(StrongBregman(K, "mahalanobis"), passes=2), 5),
}
"""How a coreset is made, and of how many seeds one may miss a cluster (none of fewer than 20)."""


@pytest.mark.statistical
@pytest.mark.parametrize("mode", MODES)
def test_hidden_clusters__are_kept(mode: str, hidden: tuple[AnyArray, IndexArray]) -> None:
    """All clusters, in 19 of 20 fixed seeds; a solution within 5 % of the planted one.

    A cluster is expected to have a dozen rows in the coreset or more, so that the false-alarm
    rate for other seeds is below 1e-4.
    """
    (X, y), (make, seeds) = hidden, MODES[mode]
    planted = np.array([X[y == label].mean(axis=0) for label in range(K)])

    found = [make(X, seed) for seed in range(seeds)]

    whole = sum(len(np.unique(y[coreset.indices])) == K for coreset in found)
    assert whole >= 0.95 * seeds
    assert {len(coreset) for coreset in found} == {SIZE} or "independent" in mode
    model = KMeans(K, n_init=10, random_state=0)
    model.fit(np.asarray(found[0].points, float), sample_weight=found[0].weights)
    assert cost(X, model.cluster_centers_) < 1.05 * cost(X, planted)
