"""Order, period, long blocks, rare groups and heavy tails do not fool a default."""

from __future__ import annotations

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools import readings as read

N, SIZE = 60_000, 600


def rows_of(order: str) -> Any:
    i, rng = np.arange(N), np.random.default_rng(0)
    kinds: dict[str, Any] = {
        "remainder of 50": lambda: (i % 50)[:, np.newaxis].astype(float),
        "alternating": lambda: np.where(i % 2, 1.0, -1.0)[:, np.newaxis],
        "hours": lambda: np.stack([np.cos(i % 24 * 0.2618), np.sin(i % 24 * 0.2618)], axis=1),
        "one-hot": lambda: np.eye(10)[i % 10],
        "sorted": lambda: np.sort(rng.normal(size=N))[:, np.newaxis],
        "giant": lambda: np.where(i == 77, 250.0, i % 3 / 3.0)[:, np.newaxis],
        "heavy tail": lambda: rng.standard_cauchy(size=(N, 2)),
    }
    return kinds[order]()


@pytest.mark.parametrize("mode", ["one read", "two reads"])
@pytest.mark.parametrize(
    "order",
    ["remainder of 50", "alternating", "hours", "one-hot", "sorted", "giant", "heavy tail"],
)
def test_build__errs_no_more_than_independent_draws(order: str, mode: str) -> None:
    """Mean squares of 5 seeds and 3 solutions at most 3 times the variance of the formula."""
    X = rows_of(order)
    lazy = da.from_array(X, chunks=(15_000, X.shape[1]))
    u = np.ones(N)
    rng = np.random.default_rng(2)
    queries = [X[rng.integers(0, N, k)] + 0.3 for k in (1, 3, 5)]
    losses = np.stack([read.distances(X, q).min(axis=1) for q in queries])
    for method, q in (("uniform", u / N), ("lightweight", read.lightweight(X, u))):
        exact = losses.sum(axis=1)
        variance = ((losses**2 / q).sum(axis=1) - exact**2).clip(min=0.0) / SIZE
        squares = np.zeros(3)
        for seed in range(5):
            draw = face.Draw(passes=2 if mode == "two reads" else 1)
            c = face.build(lazy, method=method, size=SIZE, random_state=seed, draw=draw)
            assert len(c) == SIZE
            squares += (losses[:, c.indices] @ c.weights - exact) ** 2 / 5
        assert (squares <= 3 * variance + (1e-9 * exact) ** 2).all()


@pytest.mark.parametrize("period", [7, 50, 64])
def test_build__every_value_of_a_period_comes_back(period: int) -> None:
    X = (np.arange(N) % period)[:, np.newaxis].astype(float)
    c = face.build(da.from_array(X, chunks=(6400, 1)), size=500, random_state=0)
    assert len(np.unique(c.points)) == period
    counts = np.bincount(c.points[:, 0].astype(int), c.weights)
    assert np.abs(counts / (N / period) - 1).max() < 0.6


def test_build__values_too_rare_to_be_seen_in_few_rows_have_their_share() -> None:
    """One of 200 rows, which has the length of the others."""
    for seed in range(6):
        X = np.ones((8000, 1))
        X[np.random.default_rng(seed).choice(8000, 40, replace=False)] = -1.0
        c = face.build(X, method="uniform", size=2000, random_state=seed)
        assert abs((c.points < 0).sum() - 10) <= 1


def hidden(n: int) -> tuple[Any, Any]:
    """Twelve clusters of 30 rows near the mean of a wide one, in one long block."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2)) * 0.05 + np.where(rng.random((n, 1)) < 0.5, -50.0, 50.0)
    at = rng.permutation(n)[:360]
    angles = np.arange(12) * 0.5236
    X[at] = 8 * np.stack([np.cos(angles), np.sin(angles)], axis=1)[np.arange(360) % 12]
    X[at] += 0.01 * rng.normal(size=(360, 2))
    return X, at


@pytest.mark.parametrize("method", ["kmeans", "strong_bregman"])
def test_build__small_clusters_of_a_long_block_are_kept(method: str) -> None:
    X, at = hidden(40_000)
    cluster = np.full(len(X), -1)
    cluster[at] = np.arange(360) % 12
    make = {"kmeans": face.StrongKMeans(14), "strong_bregman": face.StrongBregman(14)}[method]
    for seed in range(2):
        c = face.build(X, method=make, size=300, random_state=seed)
        kept = cluster[c.indices]
        weights = np.bincount(kept[kept >= 0], c.weights[kept >= 0], minlength=12)
        assert (weights > 0).all()
        assert np.abs(weights / 30 - 1).max() < 0.8


@pytest.mark.parametrize("mode", ["one read", "two reads", "tree"])
def test_build__one_row_with_nearly_all_of_the_scores(mode: str) -> None:
    """It is certain, and does not take the places of the others."""
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[1234] = 1e6
    draws: dict[str, Any] = {"one read": face.Draw(), "two reads": face.Draw(passes=2),
                             "tree": face.MergeReduce()}  # fmt: skip
    c = face.build(da.from_array(X, chunks=(700, 2)), size=80, random_state=0, draw=draws[mode])
    assert len(c) == 80
    assert c.weights[c.indices == 1234] == pytest.approx(1.0)
    assert c.weights.sum() == pytest.approx(3000, rel=0.2)


def test_kmeans__interleaved_clusters_are_found() -> None:
    rng = np.random.default_rng(0)
    centers = 9.0 * rng.normal(size=(10, 3))
    X = centers[np.arange(12_000) % 10] + 0.05 * rng.normal(size=(12_000, 3))
    model = face.estimators.CoresetKMeans(10, random_state=0)
    model.fit(da.from_array(X, chunks=(3000, 3)))
    found = read.kmeans_cost(X, np.ones(len(X)), model.cluster_centers_)
    assert found < 1.05 * len(X) * 3 * 0.05**2


def test_merge_reduce__order_of_arrival_does_not_matter() -> None:
    """Rows that drift: the stream errs as little as one build, and knows all of them."""
    X = np.linspace(-5, 5, 12_000)[:, np.newaxis] + rows_of("hours")[:12_000]
    exact = read.kmeans_cost(X, np.ones(len(X)), X[::3000])
    errors = []
    for seed in range(4):
        stream = face.stream(size=300, leaf_size=1500, random_state=seed)
        for start in range(0, len(X), 1000):
            stream.partial_fit(X[start : start + 1000])
        c = stream.coreset()
        errors.append(c.cost(X[::3000]) / exact - 1)
    assert np.abs(errors).max() < 0.12


def test_build__fewer_rows_with_a_score_than_size_are_said() -> None:
    X = np.zeros((500, 2))
    u = np.zeros(500)
    u[:30] = 1.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        c = face.build(X, sample_weight=u, size=50, random_state=0)
    assert sorted(c.indices) == list(range(30))
    assert (c.weights == 1).all()
    assert all(issubclass(one.category, face.CoresetWarning) for one in caught)
