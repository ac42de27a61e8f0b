"""Uniform coresets: the contract, and the formula."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.sensitivities import Uniform
from daskcoreset.testing import SensitivityContract
from tests.tools.blocks import rows


class TestUniform(SensitivityContract):
    def construction(self) -> Uniform:
        return Uniform()


def test_uniform__no_scores_without_weight() -> None:
    assert Uniform().scores(Block(np.ones((3, 1)), np.zeros(3)), 0.0).tolist() == [[0.0] * 3]


RNG = np.random.default_rng(0)


def test_uniform__by_hand() -> None:
    block = rows([[0.0], [2.0]], [1, 3])
    summary = Uniform().merge(Uniform().block_summary(block, None, RNG), 4.0)

    assert Uniform().scores(block, summary).tolist() == [[1 / 8, 3 / 8]]
    assert Uniform().total_scores(4.0, summary).tolist() == [0.5]
    assert Uniform().provenance(summary) == {}
