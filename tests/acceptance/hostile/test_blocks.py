"""Strong coresets of data in one long block: what no sample of its rows shows must be kept.

Every mode is judged by NumPy alone: which planted clusters have rows in the coreset, and what a
solution that was found on the coreset costs over all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.acceptance.face import (
    Draw,
    MergeReduce,
    Mixture,
    StrongBregman,
    StrongKMeans,
    build,
    datasets,
    estimators,
)
from tests.acceptance.face import (
    stream as make_stream,
)
from tests.pairs import few

N, K, SIZE = 120_000, 12, 600


@pytest.fixture(scope="module")
def hidden() -> tuple[Any, Any]:
    """Two far clusters, and ten of some 20 rows near the mean."""
    X, y = datasets.make_hidden(N, 5, hidden_rows=20, random_state=0)
    return X.compute(), y.compute()


def squares(X: Any, centers: Any) -> Any:
    """Squared distances of rows to centers, by differences."""
    out = np.empty((len(X), len(centers)))
    for j, center in enumerate(centers):
        gaps = X - center.astype(np.float64)
        out[:, j] = np.einsum("ij,ij->i", gaps, gaps)
    return out


def cost(X: Any, centers: Any) -> float:
    """Sum of squared distances to the nearest center."""
    parts = np.array_split(np.arange(len(X)), 1 + len(X) // 8192)
    return float(sum(squares(X[part], centers).min(axis=1).sum() for part in parts))


def solution(coreset: Any, k: int, runs: int = 5) -> Any:
    """Centers of the best of some runs of greedy k-means++ and Lloyd on a coreset.

    scikit-learn expands squares and measures its tolerance by the variance of all rows: beside
    a giant it tells no clusters apart.
    """
    X, weights = np.asarray(coreset.points, dtype=np.float64), coreset.weights
    rng, best, least = np.random.default_rng(0), X[:k], np.inf
    for _ in range(runs):
        centers = X[rng.choice(len(X), 1, p=weights / weights.sum())]
        near = squares(X, centers)[:, 0]
        while len(centers) < k:
            mass = weights * near
            some = X[rng.choice(len(X), 2 + int(np.log(k)), p=mass / mass.sum())]
            then = np.minimum(near[:, None], squares(X, some))
            chosen = int((weights @ then).argmin())
            centers, near = np.vstack([centers, some[chosen]]), then[:, chosen]
        for _ in range(20):
            labels = squares(X, centers).argmin(axis=1)
            mass = np.bincount(labels, weights, minlength=k)[:, None]
            moves = (X - centers[labels]) * weights[:, None]
            shift = np.stack([np.bincount(labels, move, minlength=k) for move in moves.T], axis=1)
            centers = centers + shift / np.where(mass > 0, mass, 1)
        found = float((weights * squares(X, centers).min(axis=1)).sum())
        if found < least:
            best, least = centers, found
    return np.asarray(best)


Made = Callable[[Any, int], Any]


def built(method: Any, **options: Any) -> Made:
    return lambda X, seed: build(
        X, size=SIZE, method=method, random_state=seed, chunks=len(X), **options
    )


def streamed(X: Any, seed: int) -> Any:
    stream = make_stream(size=SIZE, method=StrongKMeans(K), random_state=seed, leaf_size=len(X))
    return stream.partial_fit(X).coreset()


MODES: dict[str, tuple[Made, int]] = {
    "one read": (built(StrongKMeans(K)), 10),
    "two reads": (built(StrongKMeans(K), draw=Draw(passes=2)), 10),
    "independent draws": (built(StrongKMeans(K), draw=Draw("multinomial", 2)), 5),
    "tree": (built(StrongKMeans(K), draw=MergeReduce()), 10),
    "tree, independent": (built(StrongKMeans(K), draw=MergeReduce(sampling="multinomial")), 5),
    "stream": (streamed, 5),
    "twice the clusters": (built(StrongKMeans(2 * K)), 5),
    "k-means||": (built(StrongKMeans(K, rough="kmeans||"), draw=Draw(passes=2)), 3),
    "k-means++": (built(StrongKMeans(K, rough="kmeans++"), draw=Draw(passes=2)), 3),
    "mixture": (built(Mixture(K)), 5),
    "mixture, two reads": (built(Mixture(K), draw=Draw(passes=2)), 5),
    "Bregman": (built(StrongBregman(K)), 5),
    "Bregman, tree": (built(StrongBregman(K), draw=MergeReduce()), 5),
    "Mahalanobis, two reads": (built(StrongBregman(K, "mahalanobis"), draw=Draw(passes=2)), 5),
}
"""How a coreset is made, and with how many seeds, of which none may miss a cluster."""

ALWAYS = ["two reads", "independent draws", "stream", "k-means||", "Bregman, tree"]


@pytest.mark.statistical
@few("mode", [*ALWAYS, *(mode for mode in MODES if mode not in ALWAYS)], len(ALWAYS))
def test_hidden_clusters__are_kept(mode: str, hidden: tuple[Any, Any]) -> None:
    """All clusters, with every seed; a solution within 5 % of the planted one.

    A cluster is expected to have a dozen rows in the coreset or more, so that the false-alarm
    rate for other seeds is below 1e-4.
    """
    (X, y), (make, seeds) = hidden, MODES[mode]
    planted = np.array([X[y == label].mean(axis=0) for label in range(K)])

    found = [make(X, seed) for seed in range(seeds)]

    whole = sum(len(np.unique(y[coreset.indices])) == K for coreset in found)
    assert whole == seeds
    assert {len(coreset) for coreset in found} == {SIZE} or "independent" in mode
    # Of single runs three in four end in worse solutions of the coreset itself: not its fault.
    assert cost(X, solution(found[0], K, runs=50)) < 1.05 * cost(X, planted)


@pytest.mark.parametrize("size", [SIZE, "auto"])
def test_hidden_clusters__by_the_estimator(size: Any, hidden: tuple[Any, Any]) -> None:
    X, y = hidden
    planted = np.array([X[y == label].mean(axis=0) for label in range(K)])

    model = estimators.CoresetKMeans(K, size=size, n_init=10, random_state=0).fit(X)

    assert cost(X, model.cluster_centers_) < 1.05 * cost(X, planted)


def test_long_block__is_read_again_when_it_is_short() -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((200_000, 2))
    X[-20_000:] = rng.normal(size=(20_000, 2)) * rng.lognormal(sigma=2, size=(20_000, 1))

    coreset = build(X, size=8000, method=StrongKMeans(5), chunks=20_000, random_state=0)

    assert coreset.provenance["blocks_read_again"] == 1
    assert len(coreset) == 8000
