"""Generators: what they promise of every array, and what makes their rows hard."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.stats

from daskcoreset.datasets import make_geometric, make_mixture, make_near_mean
from daskcoreset.errors import CoresetError

ALARM = 1e-6
"""False-alarm rate of every statistical test here; the seeds are fixed besides."""

Make = Callable[..., tuple[da.Array, da.Array]]
MAKERS: dict[str, Make] = {
    "mixture": make_mixture,
    "outliers": partial(make_mixture, outliers=0.1, dof=3.0),
    "sorted": partial(make_mixture, shuffle=False),
    "near mean": make_near_mean,
    "geometric": make_geometric,
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("something was computed while the arrays were defined")


@every_maker
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays__are_lazy_and_a_block_stands_alone(make: Make, dtype: str) -> None:
    with dask.config.set(scheduler=refuse):
        arrays = make(250, 4, chunks=100, dtype=dtype, random_state=0)
    assert arrays[0].dtype == dtype
    for array in arrays:
        assert array.numblocks[0] == len(dict(array.__dask_graph__())) == 3
        whole = array.compute(scheduler="synchronous")
        assert (whole.shape, whole.dtype) == (array.shape, array.dtype)
        assert np.isfinite(whole).all()
        np.testing.assert_array_equal(array.blocks[1].compute(), whole[100:200])


@every_maker
def test_random_state__changes_points_and_names(make: Make) -> None:
    one, other = (make(250, 4, random_state=seed)[0] for seed in (1, 2))
    assert one.name != other.name
    assert not np.array_equal(one.compute(), other.compute())
    assert make(250, 4, random_state=1)[0].name == one.name


@pytest.mark.parametrize(
    ("make", "wrong", "argument"),
    [
        (make_mixture, {"n": 0}, "n"),
        (make_mixture, {"n": 2.5}, "n"),
        (make_mixture, {"d": 2**21}, "d"),
        (make_mixture, {"imbalance": 0.5}, "imbalance"),
        (make_mixture, {"outliers": math.nan}, "outliers"),
        (make_mixture, {"dof": "t"}, "dof"),
        (make_mixture, {"shuffle": 1}, "shuffle"),
        (make_mixture, {"chunks": "many"}, "chunks"),
        (make_mixture, {"chunks": 1, "n": 10**8}, "chunks"),
        (make_mixture, {"dtype": "int8"}, "dtype"),
        (make_mixture, {"dtype": "float33"}, "dtype"),
        (make_near_mean, {"n_clusters": 11}, "n_clusters"),
        (make_near_mean, {"near_share": 2.0}, "near_share"),
        (make_geometric, {"ratio": 0.5}, "ratio"),
    ],
)
def test_errors__name_the_argument(make: Make, wrong: dict[str, Any], argument: str) -> None:
    with pytest.raises(CoresetError, match=rf"^{argument} "):
        make(**({"n": 100, "d": 2} | wrong))


@pytest.mark.statistical
def test_mixture__shares_scatter_and_outliers_are_those_asked_for() -> None:
    options: dict[str, Any] = {"n_clusters": 5, "imbalance": 16, "chunks": 7_000}
    labels = make_mixture(100_000, 1, random_state=3, **options)[1].compute()
    shares = 16.0 ** -np.linspace(0, 1, 5)
    expected = 100_000 * shares / shares.sum()
    assert scipy.stats.chisquare(np.bincount(labels), expected).pvalue > ALARM

    options = {"center_scale": 2, "spread": 2.5, "outliers": 0.02, "chunks": 9_000}
    X, y = make_mixture(50_000, 4, n_clusters=1, random_state=1, **options)
    points, labels = dask.compute(X.astype(np.float64), y)
    far = labels == -1
    assert scipy.stats.binomtest(int(far.sum()), 50_000, 0.02).pvalue > ALARM
    assert scipy.stats.kstest(points[far].ravel() / 20, "norm").pvalue > ALARM
    near = points[~far] - points[~far].mean(axis=0)
    assert scipy.stats.kstest(near.ravel() / 2.5, "norm").pvalue > ALARM
    # Columns and neighbouring rows are independent: correlations are about N(0, 1/n).
    limit = scipy.stats.norm.isf(ALARM / 20) / math.sqrt(len(near))
    assert (np.abs(np.corrcoef(near.T)[np.triu_indices(4, 1)]) < limit).all()
    assert (np.abs((near[1:] * near[:-1]).mean(axis=0)) < 2.5**2 * limit).all()


@pytest.mark.statistical
def test_mixture__dof_gives_students_t() -> None:
    X, _ = make_mixture(20_000, 3, n_clusters=1, center_scale=0, dof=2.5, random_state=5)
    # The squared length of a multivariate t vector over d follows F(d, dof).
    radii = (X.compute().astype(np.float64) ** 2).sum(axis=1) / 3
    assert scipy.stats.kstest(radii, scipy.stats.f(3, 2.5).cdf).pvalue > ALARM


@pytest.mark.statistical
def test_near_mean__lightweight_scores_overlook_the_small_clusters() -> None:
    X, y = make_near_mean(100_000, 10, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    distances = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    chances = 0.5 / len(points) + 0.5 * distances / distances.sum()
    small = labels >= 40
    assert scipy.stats.binomtest(int(small.sum()), 100_000, 0.02).pvalue > ALARM
    assert chances[small].sum() == pytest.approx(0.01, rel=0.1)
    assert np.sqrt(distances[small]).max() < 12
    assert np.sqrt(distances[~small]).min() > 50


def test_geometric__every_cluster_contributes_alike() -> None:
    X, y = make_geometric(200_000, 5, n_clusters=6, ratio=3, random_state=0)
    points, labels = dask.compute(X.astype(np.float64), y)
    costs = [points[labels == j].var(axis=0).sum() * (labels == j).mean() for j in range(6)]
    np.testing.assert_allclose(np.divide(costs, costs[0]), 1, rtol=0.2)
    norms = [np.linalg.norm(points[labels == j].mean(axis=0)) for j in range(6)]
    np.testing.assert_allclose(norms, math.sqrt(3) ** np.arange(6), rtol=0.02)
