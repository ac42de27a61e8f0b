"""Mixtures have the shares, the scatter and the outliers asked for."""

from __future__ import annotations

import math
from typing import Any

import dask
import numpy as np
import pytest
import scipy.stats

from daskcoreset import datasets
from daskcoreset.datasets import lazy

ALARM = 1e-6  # false-alarm rate of every statistical test here; the seeds are fixed besides


# Mixtures


@pytest.mark.statistical
def test_mixture__clusters_have_the_shares_asked_for() -> None:
    _, labels = datasets.make_mixture(
        100_000, 1, n_clusters=5, imbalance=16, chunks=7_000, random_state=3
    )
    shares = 16.0 ** -np.linspace(0, 1, 5)
    counts = np.bincount(labels.compute(), minlength=5)
    assert scipy.stats.chisquare(counts, 100_000 * shares / shares.sum()).pvalue > ALARM


@pytest.mark.statistical
def test_mixture__rows_scatter_normally_about_their_centre() -> None:
    X, y = datasets.make_mixture(
        20_000, 3, n_clusters=2, center_scale=0, spread=2.5, offset=7, chunks=3_000, random_state=1
    )
    points = (X.compute().astype(np.float64) - 7) / 2.5
    assert scipy.stats.kstest(points.ravel(), "norm").pvalue > ALARM
    # Columns and neighbouring rows are independent: correlations are about N(0, 1/n).
    limit = scipy.stats.norm.isf(ALARM / 12) / math.sqrt(20_000)
    correlations = np.corrcoef(points.T)[np.triu_indices(3, 1)]
    assert (np.abs(correlations) < limit).all()
    assert (np.abs((points[1:] * points[:-1]).mean(axis=0)) < limit).all()
    assert set(y.compute()) == {0, 1}


@pytest.mark.statistical
def test_mixture__outliers_are_as_many_and_as_far_as_asked_for() -> None:
    X, y = datasets.make_mixture(
        50_000, 4, outliers=0.02, outlier_scale=30, center_scale=2, chunks=9_000, random_state=0
    )
    points, labels = dask.compute(X, y)
    far = labels == -1
    assert scipy.stats.binomtest(int(far.sum()), 50_000, 0.02).pvalue > ALARM
    assert scipy.stats.kstest(points[far].ravel() / 60, "norm").pvalue > ALARM


@pytest.mark.statistical
def test_mixture__dof_gives_students_t() -> None:
    X, _ = datasets.make_heavy_tailed(20_000, 3, n_clusters=1, dof=2.5, random_state=5)
    centered = datasets.make_mixture(20_000, 3, n_clusters=1, center_scale=0, dof=2.5)[0].compute()
    # The squared length of a multivariate t vector over d follows F(d, dof).
    radii = (centered.astype(np.float64) ** 2).sum(axis=1) / 3
    assert scipy.stats.kstest(radii, scipy.stats.f(3, 2.5).cdf).pvalue > ALARM
    assert X.shape == (20_000, 3)


def test_mixture__offset_is_rounded_once() -> None:
    options: dict[str, Any] = {"n_clusters": 3, "offset": 1e6, "random_state": 0}
    single = datasets.make_mixture(1_000, 2, **options)[0].compute()
    assert np.abs(single - 1e6).max() < 100
    # float32 has a spacing of 1/16 at 1e6, and no rounding leaves more than half of it behind.
    centers = 10 * lazy.block_stream(0, lazy.Part.CENTERS).standard_normal((3, 2)) + 1e6
    labels = datasets.make_mixture(1_000, 2, **options)[1].compute()
    noise = lazy.block_stream(0, lazy.Part.POINTS).standard_normal((1_000, 2), dtype=np.float32)
    assert np.abs(single - (noise + centers[labels])).max() <= 1 / 32


@pytest.mark.statistical
def test_imbalanced__smallest_cluster_is_rare() -> None:
    labels = datasets.make_imbalanced(200_000, 1, random_state=0)[1].compute()
    counts = np.bincount(labels, minlength=60)
    shares = 1000.0 ** -np.linspace(0, 1, 60)
    assert scipy.stats.chisquare(counts, 200_000 * shares / shares.sum()).pvalue > ALARM
