"""Strong Bregman coresets: the contract, plain readings of the formulas, and draws."""

from __future__ import annotations

import numpy as np
import pytest

import daskcoreset
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.sensitivities import BregmanLightweight, StrongBregman
from daskcoreset.solvers.divergences import (
    Divergence,
    KullbackLeibler,
    SquaredMahalanobis,
)
from daskcoreset.testing import SensitivityContract, assert_mean, cut_rows, draw
from tests.tools.bregman import (
    FULL,
    POSITIVE,
    WEIGHTS,
    OnPositive,
    Own,
    halves,
    matrix_of,
    settled,
)


@pytest.mark.parametrize("divergence", ["kl", "itakura_saito"])
def test_strong_scores__large_entries_leave_half_of_the_draws_to_all_rows(divergence: str) -> None:
    # By the dominating distance a few rows of large entries are all of the cost.
    rng = np.random.default_rng(0)
    rows = rng.exponential(size=(400, 6)) * np.exp(rng.normal(0.0, 2.0, 400))[:, None] + 1e-6
    block = Block(rows, np.ones(len(rows)))
    construction = StrongBregman(4, divergence)
    summary = construction.finalize(construction.block_summary(block, None, rng), rng)
    shares = construction.scores(block, summary).sum(axis=0)
    assert (shares / shares.sum()).min() >= 0.5 / len(rows)
    proposed = construction.proposal(block, None, np.random.default_rng(0))[1]
    assert (proposed / proposed.sum()).min() >= 0.5 / len(rows)


def test_strong_summary__cells_cost_what_their_rows_cost() -> None:
    # With as many centers as rows of each block every row is a cell, so that A is all.
    construction = StrongBregman(1, "kl")
    parts, summary = settled(construction, *halves())
    mean = (WEIGHTS @ POSITIVE) / WEIGHTS.sum()
    A = matrix_of(KullbackLeibler()).diagonal()
    expected = WEIGHTS @ (((POSITIVE - mean) ** 2) @ A)
    assert summary.clusters.cost == pytest.approx(expected, rel=1e-9)
    assert len(parts[0]) == 1


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


@pytest.mark.nightly  # likewise
class TestStrongKullbackLeibler(SensitivityContract):
    def construction(self) -> OnPositive:
        return OnPositive("kl", 3)
