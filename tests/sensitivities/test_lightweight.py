"""Lightweight coresets: the contract, and the formula."""

from __future__ import annotations

import numpy as np

from daskcoreset.sensitivities import Lightweight
from daskcoreset.testing import SensitivityContract
from tests.tools.blocks import rows


class TestLightweight(SensitivityContract):
    def construction(self) -> Lightweight:
        return Lightweight()


RNG = np.random.default_rng(0)


def test_lightweight__tiny_spread_does_not_overflow() -> None:
    # phi is 2e-310, whose inverse no float64 holds.
    block = rows([[0.0], [1e-155], [2e-155]])
    scores = Lightweight().scores(block, Lightweight().block_summary(block, None, RNG))

    np.testing.assert_allclose(scores[1], [0.25, 0.0, 0.25], rtol=1e-9)
