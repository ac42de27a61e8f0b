"""Bregman and mixture coresets: plain readings of the formulas, and draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import FloatArray
from daskcoreset.sensitivities import (
    BregmanLightweight,
    Lightweight,
    MixtureCoreset,
    Sensitivity,
    StrongBregman,
    StrongKMeans,
)
from daskcoreset.sensitivities.bregman import _roots, proposal_distance, statistics_of
from daskcoreset.solvers.divergences import (
    Divergence,
    ItakuraSaito,
    KullbackLeibler,
    SquaredEuclidean,
    SquaredMahalanobis,
)
from daskcoreset.testing import assert_mean, cut_rows, draw

RNG = np.random.default_rng(0)
POSITIVE = RNG.lognormal(size=(60, 3)) + 0.1
WEIGHTS = RNG.uniform(0.5, 2.0, size=60)


def settled(construction: Sensitivity[Any], *blocks: Block) -> tuple[list[Any], Any]:
    summary, parts = None, []
    for fold in range(construction.n_folds):
        parts = [
            construction.block_summary(one, summary, stream(0, Stage.SUMMARIES)) for one in blocks
        ]
        merged = parts[0]
        for part in parts[1:]:
            merged = construction.merge(merged, part)
        summary = construction.finalize(merged, stream(0, Stage.SETTLING, 0, fold))
    return parts, summary


def halves(points: Any = POSITIVE, weights: Any = WEIGHTS) -> list[Block]:
    return [Block(points[:25], weights[:25]), Block(points[25:], weights[25:])]


FULL = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 3.0]])


def matrix_of(divergence: Divergence) -> FloatArray:
    """A by the definitions, from all rows."""
    low = POSITIVE.min(axis=0)
    if isinstance(divergence, KullbackLeibler):
        return np.diag(1 / (2 * low))
    if isinstance(divergence, ItakuraSaito):
        return np.diag(1 / (2 * low**2))
    if isinstance(divergence, SquaredMahalanobis):
        if divergence.precision is None:
            cov = np.cov(POSITIVE.T, aweights=WEIGHTS, ddof=0)
            return np.asarray(np.linalg.inv(cov))
        p = np.asarray(divergence.precision)
        return p if p.ndim == 2 else np.diag(p)
    return np.eye(3)


DIVERGENCES = [
    SquaredEuclidean(),
    SquaredMahalanobis(FULL),
    SquaredMahalanobis([1.0, 4.0, 0.1]),
    SquaredMahalanobis(),
    KullbackLeibler(),
    ItakuraSaito(),
]


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_lightweight_scores__plain_reading_of_the_formula(divergence: Divergence) -> None:
    A = matrix_of(divergence)
    mean = (WEIGHTS @ POSITIVE) / WEIGHTS.sum()
    distances = np.array([(x - mean) @ A @ (x - mean) for x in POSITIVE])
    expected = WEIGHTS / (2 * WEIGHTS.sum()) + WEIGHTS * distances / (2 * (WEIGHTS @ distances))
    construction = BregmanLightweight(divergence)
    parts, summary = settled(construction, *halves())
    found = [construction.scores(block, summary) for block in halves()]
    np.testing.assert_allclose(np.concatenate(found, axis=1).sum(axis=0), expected, rtol=1e-9)
    masses = np.array([construction.total_scores(part, summary) for part in parts])
    np.testing.assert_allclose(masses, [one.sum(axis=1) for one in found], rtol=1e-9)
    assert summary.error(summary.metric) == pytest.approx(WEIGHTS @ distances)


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_strong_scores__plain_reading_of_the_formula(divergence: Divergence) -> None:
    construction = StrongBregman(4, divergence)
    parts, summary = settled(construction, *halves())
    root = np.linalg.cholesky(matrix_of(divergence))
    # B as the root found it, its weights and costs; distances as they are defined.
    B, alpha = summary.clusters, 16 * (math.log(4) + 2)
    white = (POSITIVE - summary.origin) @ root
    gaps = ((white[:, None] - B.centers) ** 2).sum(axis=2)
    cell, d = gaps.argmin(axis=1), gaps.min(axis=1)
    c = B.costs.sum() / B.weights.sum()
    s = alpha * d / c
    s += 2 * alpha * B.costs[cell] / (B.weights[cell] * c)
    s += 4 * B.weights.sum() / B.weights[cell]
    found = [construction.scores(block, summary).sum(axis=0) for block in halves()]
    np.testing.assert_allclose(np.concatenate(found), WEIGHTS * s, rtol=1e-9)
    # The table says what the cells weigh and cost by A itself, up to cells that were split.
    assert B.weights.sum() == pytest.approx(WEIGHTS.sum())
    assert B.costs.sum() >= (WEIGHTS @ d) * (1 - 1e-9)
    assert B.costs.sum() < 2 * (WEIGHTS @ d)
    masses = np.sum([construction.total_scores(part, summary) for part in parts], axis=0)
    assert masses.sum() == pytest.approx(np.concatenate(found).sum(), rel=0.5)


def test_strong_summary__cells_cost_what_their_rows_cost() -> None:
    # With as many centers as rows of each block every row is a cell, so that A is all.
    construction = StrongBregman(1, "kl")
    parts, summary = settled(construction, *halves())
    mean = (WEIGHTS @ POSITIVE) / WEIGHTS.sum()
    A = matrix_of(KullbackLeibler()).diagonal()
    expected = WEIGHTS @ (((POSITIVE - mean) ** 2) @ A)
    assert summary.clusters.cost == pytest.approx(expected, rel=1e-9)
    assert len(parts[0]) == 1


def test_lightweight_squared_euclidean__is_lightweight_to_the_bit() -> None:
    X = np.random.default_rng(0).normal(1e3, 5.0, size=(500, 7)).astype(np.float32)
    blocks = cut_rows(X, [200, 0, 300])
    for sampling, passes in (("systematic", 1), ("multinomial", 1), ("multinomial", 2)):
        options: Any = {"sampling": sampling, "passes": passes, "seed": 3}
        found = draw(blocks, BregmanLightweight(), 50, **options)
        expected = draw(blocks, Lightweight(), 50, **options)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.weights, expected.weights)


def test_lightweight_mahalanobis__is_lightweight_of_whitened_rows() -> None:
    distance = SquaredMahalanobis(FULL)
    blocks = cut_rows(POSITIVE, [25, 35], WEIGHTS)
    white = cut_rows(distance.whiten(POSITIVE), [25, 35], WEIGHTS)
    for sampling in ("systematic", "multinomial"):
        options: Any = {"sampling": sampling, "seed": 5}
        found = draw(blocks, BregmanLightweight(distance), 20, passes=2, **options)
        expected = draw(white, Lightweight(), 20, passes=2, **options)
        if sampling == "multinomial":  # systematic draws go by the order of rows in space
            np.testing.assert_array_equal(found.indices, expected.indices)
            np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9)
        assert len(found.rows) <= 20


def test_proposal_bound__only_where_it_is_proven() -> None:
    assert BregmanLightweight().proposal_bound == 2.0
    assert BregmanLightweight(SquaredMahalanobis(FULL)).proposal_bound == 2.0
    for name in ("kl", "itakura_saito", "mahalanobis"):
        assert BregmanLightweight(name).proposal_bound is None


def test_proposal_bound__holds_for_a_given_precision() -> None:
    construction = BregmanLightweight(SquaredMahalanobis(FULL))
    parts, summary = settled(construction, *halves())
    for block, part in zip(halves(), parts, strict=True):
        proposal = construction.scores(block, part).sum(axis=0)
        target = construction.scores(block, summary).sum(axis=0)
        allowed = 2 * construction.total_scores(part, summary).sum() * proposal / proposal.sum()
        assert (target <= allowed * (1 + 1e-9)).all()


def test_lightweight_mahalanobis__columns_of_unlike_units_and_a_large_offset() -> None:
    scale, offset = np.array([1e-6, 1.0, 1e6]), np.array([1.0, 1e6, -1e9])
    construction = BregmanLightweight("mahalanobis")
    _, near = settled(construction, *halves())
    moved = halves(POSITIVE * scale + offset)
    parts, far = settled(construction, *moved)
    for block, other, part in zip(halves(), moved, parts, strict=True):
        found, expected = construction.scores(other, far), construction.scores(block, near)
        np.testing.assert_allclose(found, expected, rtol=1e-3)  # 1e6 leaves ten digits
        np.testing.assert_allclose(
            construction.total_scores(part, far), found.sum(axis=1), rtol=1e-6
        )
    assert far.error(far.metric) == pytest.approx(3 * WEIGHTS.sum())  # trace(A S) = d U


def test_lightweight_mahalanobis__blocks_too_small_for_a_precision() -> None:
    # A block of two rows, one of equal rows: proposals by variances, or uniform.
    X = np.concatenate([POSITIVE, np.repeat(POSITIVE[:1], 5, axis=0)])
    blocks = cut_rows(X, [58, 2, 5])
    estimates = [
        [one.weights.sum(), one.weights @ one.rows.points[:, 0]]
        for seed in range(300)
        for one in [draw(blocks, BregmanLightweight("mahalanobis"), 20, seed=seed)]
    ]
    assert_mean(np.array(estimates), np.array([len(X), X[:, 0].sum()]))


def test_proposal_distance__of_variances_where_there_are_too_few_rows() -> None:
    X = np.array([[0.0, 1.0, 0.0], [2.0, 1.0, 8.0]])
    spread = statistics_of(SquaredMahalanobis(), X, np.ones(2))
    metric = proposal_distance(SquaredMahalanobis(), spread)

    assert isinstance(metric, SquaredMahalanobis)
    assert metric.precision is not None
    assert metric.precision.tolist() == [1.0, 1.0, 1 / 16]
    wide = statistics_of(SquaredMahalanobis(), X / 4, np.ones(2))
    found: Any = proposal_distance(SquaredMahalanobis(), wide)
    assert found.precision.tolist() == [16.0, 1.0, 1.0]


def test_roots__a_sum_that_overflows_is_left_to_the_root() -> None:
    assert np.isinf(_roots(np.array([[np.inf, 0.0], [0.0, 1.0]]))).all()


class Own(KullbackLeibler):
    """A divergence of the user's, dominated by a full matrix that depends on the box."""

    def dominating(self, low: Any, high: Any) -> SquaredMahalanobis:
        return SquaredMahalanobis(FULL * (1 + high.max() - low.min()))


def test_lightweight_own_divergence__with_a_full_matrix() -> None:
    own, fixed = BregmanLightweight(Own()), BregmanLightweight(SquaredMahalanobis(FULL))
    (_, found), (_, expected) = settled(own, *halves()), settled(fixed, *halves())
    for block in halves():  # the factor of the whole matrix cancels
        scores = own.scores(block, found)
        np.testing.assert_allclose(scores, fixed.scores(block, expected), rtol=1e-9)


@pytest.mark.parametrize("divergence", [Own(), SquaredMahalanobis()])
def test_strong__two_folds_where_a_full_matrix_is_not_known(divergence: Divergence) -> None:
    construction = StrongBregman(3, divergence)
    assert construction.n_folds == 2
    with pytest.raises(InvalidInputError, match="needs 2 folds"):
        daskcoreset.build(POSITIVE, size=20, method=construction)
    blocks = cut_rows(POSITIVE, [30, 0, 30], WEIGHTS)
    weights = [
        [found.weights.sum(), found.weights @ found.rows.points[:, 0]]
        for seed in range(200)
        for found in [draw(blocks, construction, 20, passes=2, seed=seed)]
    ]
    assert_mean(np.array(weights), np.array([WEIGHTS.sum(), WEIGHTS @ POSITIVE[:, 0]]))


def test_strong__rows_without_weight_have_no_say() -> None:
    X = np.concatenate([POSITIVE, [[-1.0, 0.0, 1e300]]])  # outside the domain, and no matter
    blocks = cut_rows(X, [30, 30, 1], np.append(WEIGHTS, 0.0))
    for construction in (StrongBregman(3, "kl"), BregmanLightweight("kl")):
        found = draw(blocks, construction, 20)
        assert np.isfinite(found.weights).all()
        assert 60 not in found.indices


def test_strong__no_scores_without_cells() -> None:
    block = Block(POSITIVE, np.zeros(len(POSITIVE)))
    construction = StrongBregman(3, "kl")
    nothing = construction.block_summary(block, None, np.random.default_rng(0))

    assert len(nothing) == 0
    assert not construction.scores(block, nothing).any()


def test_strong__float32_far_from_the_origin() -> None:
    near = np.round(np.random.default_rng(0).normal(size=(60, 3)) * 8).astype(np.float32) / 8
    far = near + np.float32(2**17)
    for method in (SquaredMahalanobis(FULL), "squared_euclidean"):
        construction = StrongBregman(3, method)
        scores = []
        for X in (near, far):
            block = Block(X, np.ones(60))
            scores.append(construction.scores(block, settled(construction, block)[1]))
        np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)


def test_strong__long_blocks() -> None:
    X = np.random.default_rng(0).lognormal(size=(40_000, 2)) + 0.1
    found = daskcoreset.build(X, size=500, method=StrongBregman(5, "kl"), random_state=0)
    assert found.weights.sum() == pytest.approx(40_000, rel=0.05)
    assert found.provenance["rough_centers"] == 5


def test_mixture__scores_of_strong_kmeans() -> None:
    block = Block(POSITIVE, WEIGHTS)
    found, expected = MixtureCoreset(4), StrongKMeans(4)
    for_mixture = found.scores(block, settled(found, block)[1])
    np.testing.assert_array_equal(for_mixture, expected.scores(block, settled(expected, block)[1]))
    assert found.provenance(settled(found, block)[1])["rough_centers"] == 4
