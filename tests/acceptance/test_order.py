"""Order, period, long blocks, rare groups and heavy tails do not fool a default."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools import readings as read

N = 60_000


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
    hours = np.arange(12_000) % 24 * 0.2618
    X = np.linspace(-5, 5, 12_000)[:, np.newaxis] + np.stack([np.cos(hours), np.sin(hours)], axis=1)
    exact = read.kmeans_cost(X, np.ones(len(X)), X[::3000])
    errors = []
    for seed in range(4):
        stream = face.stream(size=300, leaf_size=1500, random_state=seed)
        for start in range(0, len(X), 1000):
            stream.partial_fit(X[start : start + 1000])
        c = stream.coreset()
        errors.append(c.cost(X[::3000]) / exact - 1)
    assert np.abs(errors).max() < 0.12
