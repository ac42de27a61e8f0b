"""Strong k-means coresets: the formula, the rough solutions, and the hard instances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans

from daskcoreset import MixtureCoreset, StrongKMeans, build, datasets
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.metrics.costs import distortion, kmeans_cost
from daskcoreset.sensitivities import kmeans as rough
from daskcoreset.sensitivities.kmeans import (
    accept_proposals,
    merge_seeds,
    propose,
)
from daskcoreset.solvers.kmeans import Clusters, assign
from daskcoreset.testing import CountingArray, SensitivityContract, assert_mean
from tests.pairs import each


def table(seed: int = 0) -> Clusters:
    rng = np.random.default_rng(seed)
    return Clusters(rng.normal(size=(4, 3)), rng.random(4) + 1, rng.random(4))


def test_scores__plain_reading_of_the_formula() -> None:
    rng = np.random.default_rng(1)
    X, u, summary = rng.normal(size=(30, 3)), rng.random(30), table()

    scores = StrongKMeans(4).scores(Block(X, u), summary)

    alpha = 16 * (math.log(4) + 2)
    U, mean_cost = summary.weights.sum(), summary.costs.sum() / summary.weights.sum()
    for i in range(30):
        squares = ((X[i] - summary.centers) ** 2).sum(axis=1)
        b = squares.argmin()
        parts = [
            alpha * squares[b] / mean_cost,
            2 * alpha * summary.costs[b] / (summary.weights[b] * mean_cost),
            4 * U / summary.weights[b],
        ]
        np.testing.assert_allclose(scores[:, i], u[i] * np.array(parts), rtol=1e-12)


def test_scores__rough_solution_without_cost_leaves_the_cells() -> None:
    X = np.repeat([[0.0], [1.0]], [9, 1], axis=0)
    summary = Clusters(np.array([[0.0], [1.0]]), np.array([9.0, 1.0]), np.zeros(2))

    scores = StrongKMeans(2).scores(Block(X, np.ones(10)), summary)

    np.testing.assert_allclose(scores.sum(axis=0), 40 / np.repeat([9.0, 1.0], [9, 1]))
    between = StrongKMeans(2).scores(Block(np.array([[0.4]]), np.ones(1)), summary)
    np.testing.assert_allclose(between, [[0.0], [0.0], [40 / 9]])


def test_masses__exact_where_cells_nest() -> None:
    X = np.array([[0.0], [1.0], [10.0], [12.0]])
    construction, rng = StrongKMeans(2), np.random.default_rng(0)
    local = construction.block_summary(Block(X, np.ones(4)), None, rng)
    summary = construction.finalize(local, rng)

    sums = construction.scores(Block(X, np.ones(4)), summary).sum(axis=1)

    np.testing.assert_allclose(construction.total_scores(local, summary), sums, rtol=1e-12)


@pytest.mark.parametrize("rough", ["kmeans||", "kmeans++"])
def test_build__rough_solution_by_folds(rough: Any) -> None:
    X = datasets.make_imbalanced(6000, 3, n_clusters=8, random_state=0)[0].compute()
    counting = CountingArray(X)
    method = StrongKMeans(8, rough=rough)

    coreset = build(counting, size=200, method=method, passes=2, chunks=1000, random_state=0)

    reads = {"kmeans||": 5, "kmeans++": 8}[rough] + 2
    assert coreset.provenance["passes"] == reads
    assert (counting.reads == reads).all()
    full = kmeans_cost(X, X[np.random.default_rng(0).choice(6000, 8, replace=False)])
    assert coreset.provenance["rough_cost"] < full
    assert distortion(coreset, X, coreset.points[:8].astype("f8")) < 0.5


@pytest.mark.statistical
def test_propose__rows_in_proportion_to_squared_distance() -> None:
    """The best key falls on a row with probability u d^2 / sum; false-alarm rate 1e-6."""
    X, u = np.arange(6.0)[:, None] ** 2, np.array([1.0, 2, 0, 1, 1, 3])
    first = accept_proposals(propose(Block(X[:1], np.ones(1)), None, 1, np.random.default_rng(0)))
    halves = [Block(X[:3], u[:3]), Block(X[3:], u[3:])]
    hits = np.zeros((5000, 6))
    for seed in range(5000):
        rngs = [np.random.default_rng([seed, i]) for i in range(2)]
        parts = [propose(half, first, 1, rng) for half, rng in zip(halves, rngs, strict=True)]
        best = merge_seeds(parts[0], parts[1], 1).proposals[0, 0]
        hits[seed, int(math.sqrt(best))] = 1

    mass = u * X.ravel() ** 2
    assert not hits[:, mass == 0].any()
    assert_mean(hits[:, mass > 0], (mass / mass.sum())[mass > 0])


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat blocks of more than 40 rows as long ones."""
    for name, rows in (("_DIRECT_ROWS", 40), ("_SAMPLE_ROWS", 20), ("_ROWS_PER_CENTER", 1)):
        monkeypatch.setattr(rough, name, rows)


@pytest.mark.usefixtures("short")
def test_long_blocks__every_row_is_in_the_cell_of_its_nearest_seed() -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    for weights in (np.ones(300), np.arange(300.0)):
        labels, seeds, distances = rough._seeds_in_rounds(X, weights, 3, np.random.default_rng(1))
        assert seeds.shape[1] == 2
        assert labels.tolist() == assign(X, seeds)[0].tolist()
        np.testing.assert_allclose(distances, np.square(X - seeds[labels]).sum(axis=1))
    _, seeds, _ = rough._seeds_in_rounds(X, np.ones(300), 30, np.random.default_rng(1))
    assert (len(seeds) - 1) % 18 == 0  # 0.6 k a round
    _, seeds, _ = rough._seeds_in_rounds(X, np.zeros(300), 3, np.random.default_rng(1))
    assert seeds.shape == (0, 2)


@pytest.mark.usefixtures("short")
def test_long_blocks__rows_keep_their_numbers_and_weights() -> None:
    X = np.arange(1000.0).reshape(500, 2)

    coreset = build(X, size=50, method=StrongKMeans(3), chunks=200, random_state=0)

    np.testing.assert_array_equal(coreset.points, X[coreset.indices])
    assert len(set(coreset.indices.tolist())) == 50
    np.testing.assert_allclose(coreset.weights.sum(), 500, rtol=0.3)


INSTANCES = {
    "near mean": lambda: datasets.make_near_mean(40_000, 5, n_clusters=20, random_state=0),
    "imbalanced": lambda: datasets.make_imbalanced(40_000, 5, n_clusters=30, random_state=0),
    "geometric": lambda: datasets.make_geometric(40_000, 5, random_state=0),
    "heavy tails": lambda: datasets.make_heavy_tailed(40_000, 5, random_state=0),
}


@pytest.mark.nightly
@pytest.mark.parametrize("instance", INSTANCES)
def test_hard_instances__strong_is_no_worse_than_lightweight(instance: str) -> None:
    """Cost over all data of the centers found; the mean of eight seeds, fixed."""
    X = INSTANCES[instance]()[0].compute()
    k = {"near mean": 20, "imbalanced": 30, "geometric": 12, "heavy tails": 10}[instance]

    def mean_cost(method: Any) -> float:
        solutions = []
        for seed in range(8):
            coreset = build(X, size=400, method=method, random_state=seed, chunks=5000)
            model = KMeans(k, n_init=3, random_state=seed)
            model.fit(coreset.points, sample_weight=coreset.weights)
            solutions.append(model.cluster_centers_)
        return float(np.mean(kmeans_cost(X, solutions)))

    strong, lightweight = mean_cost(StrongKMeans(k)), mean_cost("lightweight")

    assert strong < 1.05 * lightweight
    if instance == "near mean":  # what lightweight coresets miss by construction
        assert strong < 0.5 * lightweight


def test_strong_kmeans__more_clusters_than_distinct_rows() -> None:
    X = np.repeat([[0.0, 1.0], [2.0, 3.0]], [900, 100], axis=0)

    coreset = build(X, size=50, method=StrongKMeans(10), random_state=0)

    np.testing.assert_allclose(coreset.weights[coreset.points[:, 0] == 0].sum(), 900, rtol=0.1)


def test_build__size_below_the_number_of_clusters_is_warned_of() -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))

    with pytest.warns(CoresetWarning, match="size=5 is below n_clusters=9"):
        coreset = build(X, size=5, method=StrongKMeans(9), random_state=0)

    assert len(coreset) == 5


@pytest.mark.parametrize("method", [StrongKMeans(3), "lightweight", "uniform"])
def test_build__all_weight_on_one_row(method: Any) -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))
    weights = np.zeros(100)
    weights[42] = 7.0

    with pytest.warns(CoresetWarning, match="size=10, but the coreset has 1 rows"):
        coreset = build(X, size=10, method=method, sample_weight=weights, random_state=0)

    np.testing.assert_array_equal(coreset.indices, [42])
    np.testing.assert_allclose(coreset.weights, [7.0])


@each(construction=[StrongKMeans(5), MixtureCoreset(3)], n=[2_000, 20_000])
def test_build__rows_without_weight_may_hold_anything(construction: Any, n: int) -> None:
    """Squares of 1e200 overflow: such rows made every later seed the last row of a block."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 3)) + 9.0 * rng.integers(5, size=n)[:, np.newaxis]
    weights = rng.lognormal(size=n)
    weights[::100] = 0.0
    options: dict[str, Any] = {"size": 300, "random_state": 0, "sample_weight": weights}
    rows[::100] = rows[1]
    expected = build(rows, method=construction, **options)
    rows[::100] = 1e200
    found = build(rows, method=construction, **options)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.weights, expected.weights)


class TestStrongKMeans(SensitivityContract):
    def construction(self) -> StrongKMeans:
        return StrongKMeans(3)


@pytest.mark.nightly  # the code of StrongKMeans, whose contract runs always
class TestWelterweight(SensitivityContract):
    def construction(self) -> StrongKMeans:
        return StrongKMeans(8, n_centers=2)
