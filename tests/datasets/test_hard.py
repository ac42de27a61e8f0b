"""Hard instances for sampling have the properties that make them hard."""

from __future__ import annotations

import math

import dask
import numpy as np
import pytest
import scipy.stats

from daskcoreset import datasets

ALARM = 1e-6  # false-alarm rate of every statistical test here; the seeds are fixed besides


@pytest.mark.statistical
def test_near_mean__lightweight_scores_overlook_the_small_clusters() -> None:
    X, y = datasets.make_near_mean(100_000, 10, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    distances = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    chances = 0.5 / len(points) + 0.5 * distances / distances.sum()
    small = labels >= 40
    assert scipy.stats.binomtest(int(small.sum()), 100_000, 0.02).pvalue > ALARM
    assert chances[small].sum() == pytest.approx(0.01, rel=0.1)
    assert np.sqrt(distances[small]).max() < 12
    assert np.sqrt(distances[~small]).min() > 50


def test_hidden__a_sample_of_a_block_expects_less_than_a_row_of_a_cluster() -> None:
    X, y = datasets.make_hidden(1_000_000, 5, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    sizes = np.bincount(labels)
    assert len(sizes) == 12
    assert sizes[2:].min() > 20
    assert sizes[2:].max() < 90
    center = points.mean(axis=0)
    distances = ((points - center) ** 2).sum(axis=1)
    chances = 0.5 / len(points) + 0.5 * distances / distances.sum()
    assert 16_384 * np.bincount(labels, chances)[2:].max() < 1
    planted = np.array([points[labels == j].mean(axis=0) for j in range(12)])
    best = ((points - planted[labels]) ** 2).sum()
    without = sizes[2] * ((planted[2] - planted[3:]) ** 2).sum(axis=1).min()
    assert without > best / 2


def test_giants__each_holds_its_share_of_what_is_left() -> None:
    X, y = datasets.make_giants(100_000, 5, share=0.9, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    squares = np.sort(((points - np.median(points, axis=0)) ** 2).sum(axis=1))
    assert (labels == -1).sum() == 5
    shares = squares / squares.cumsum()
    np.testing.assert_allclose(shares[-5:], 0.9, atol=0.02)
    assert squares[-6] < 100


def test_geometric__every_cluster_contributes_alike() -> None:
    X, y = datasets.make_geometric(200_000, 5, n_clusters=6, ratio=3, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    costs = np.array(
        [points[labels == j].var(axis=0).sum() * (labels == j).mean() for j in range(6)]
    )
    np.testing.assert_allclose(costs / costs[0], 1, rtol=0.2)
    norms = [np.linalg.norm(points[labels == j].mean(axis=0)) for j in range(6)]
    np.testing.assert_allclose(norms, math.sqrt(3) ** np.arange(6), rtol=0.02)
