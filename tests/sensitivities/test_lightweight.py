"""Lightweight coresets: the contract, and the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.core.blocks import Block
from daskcoreset.core.moments import moments_of
from daskcoreset.core.typing import FloatArray
from daskcoreset.sensitivities import Lightweight
from daskcoreset.testing import SensitivityContract
from tests.tools.blocks import rows


class TestLightweight(SensitivityContract):
    def construction(self) -> Lightweight:
        return Lightweight()


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_lightweight__equal_rows_are_scored_uniformly(form: Any) -> None:
    block = Block(form(np.full((4, 2), 1e6 + 0.1)), np.array([1.0, 2.0, 0.0, 0.1]))
    construction = Lightweight()
    summary = construction.merge(
        construction.block_summary(block, None, RNG), moments_of(*parts(block))
    )

    scores = construction.scores(block, summary)
    np.testing.assert_allclose(scores[0], block.weights / 6.2, rtol=1e-14)
    assert not scores[1].any()
    assert construction.total_scores(summary, summary).tolist() == [1.0, 0.0]


def parts(block: Block) -> tuple[Any, FloatArray]:
    return block.points, block.weights


def test_lightweight__tiny_spread_does_not_overflow() -> None:
    # phi is 2e-310, whose inverse no float64 holds.
    block = rows([[0.0], [1e-155], [2e-155]])
    scores = Lightweight().scores(block, Lightweight().block_summary(block, None, RNG))

    np.testing.assert_allclose(scores[1], [0.25, 0.0, 0.25], rtol=1e-9)
