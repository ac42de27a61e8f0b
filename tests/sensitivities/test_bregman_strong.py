"""Strong Bregman coresets: the contract, plain readings of the formulas, and draws."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.core.block import Block
from daskcoreset.sensitivities import LightweightBregman, StrongBregman
from daskcoreset.testing import SensitivityContract, cut_rows, draw
from tests.tools.bregman import (
    POSITIVE,
    WEIGHTS,
    OnPositive,
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


def test_strong__rows_without_weight_have_no_say() -> None:
    X = np.concatenate([POSITIVE, [[-1.0, 0.0, 1e300]]])  # outside the domain, and no matter
    blocks = cut_rows(X, [30, 30, 1], np.append(WEIGHTS, 0.0))
    for construction in (StrongBregman(3, "kl"), LightweightBregman("kl")):
        found = draw(blocks, construction, 20)
        assert np.isfinite(found.weights).all()
        assert 60 not in found.indices


@pytest.mark.nightly  # likewise
class TestStrongKullbackLeibler(SensitivityContract):
    def construction(self) -> OnPositive:
        return OnPositive("kl", 3)
