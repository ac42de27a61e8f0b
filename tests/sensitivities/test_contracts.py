"""The contract of every construction, and one edge of the scores of lightweight coresets."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.core.moments import Moments
from daskcoreset.sensitivities import (
    SVM,
    LeastSquares,
    Lightweight,
    Mixture,
    StrongKMeans,
    Uniform,
)
from daskcoreset.testing import SensitivityContract
from tests.acceptance.tools.plain import PlainLogistic, PlainSVM
from tests.tools.blocks import rows

# The coresets are tiny.
pytestmark = [
    pytest.mark.filterwarnings("ignore:a solution fitted on the coreset"),
    pytest.mark.filterwarnings("ignore:how far a solution fitted"),
]


class TestUniform(SensitivityContract):
    def construction(self) -> Uniform:
        return Uniform()


class TestLightweight(SensitivityContract):
    def construction(self) -> Lightweight:
        return Lightweight()


class TestStrongKMeans(SensitivityContract):
    randomised = True

    def construction(self) -> StrongKMeans:
        return StrongKMeans(3)


class TestMixture(SensitivityContract):
    randomised = True

    def construction(self) -> Mixture:
        return Mixture(3)


class TestLeastSquares(SensitivityContract):
    def construction(self) -> LeastSquares:
        return LeastSquares()


# The acceptance tests hold costs, bits and scores of the labelled ones.


@pytest.mark.nightly
class TestLogistic(SensitivityContract):
    randomised = True

    def construction(self) -> PlainLogistic:
        return PlainLogistic()


@pytest.mark.nightly
class TestSVM(SensitivityContract):
    randomised = True

    def construction(self) -> PlainSVM:
        return PlainSVM()


@pytest.mark.nightly
class TestSVMAsPublished(SensitivityContract):
    randomised = True

    def construction(self) -> SVM:
        return SVM(variant="paper", n_clusters=2)


CONTRACTS = [one for one in SensitivityContract.__subclasses__() if one.__module__ == __name__]


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("contract", CONTRACTS)
def test_contracts__costs_are_unbiased_over_more_seeds(
    contract: type[SensitivityContract], monkeypatch: pytest.MonkeyPatch
) -> None:
    """False-alarm rate: 1e-6 a construction."""
    monkeypatch.setattr(contract, "n_seeds", 400)
    contract().test_draws__unbiased_for_every_query()


def test_lightweight__rounding_does_not_score_rows_without_spread() -> None:
    block = rows([[1e100], [np.nextafter(1e100, 2e100)]])
    equal = Moments(2, 2.0, np.array([1e100]), np.zeros(1))
    np.testing.assert_array_equal(Lightweight().scores(block, equal), [0.5, 0.5])


def test_lightweight__tiny_spread_does_not_overflow() -> None:
    # phi is 2e-310, whose inverse no float64 holds.
    block = rows([[0.0], [1e-155], [2e-155]])
    proposed = Lightweight().block_summary(block, None, np.random.default_rng(0))
    expected = np.array([0.25, 0.0, 0.25]) + 1 / 6
    np.testing.assert_allclose(Lightweight().scores(block, proposed.summary), expected)
    np.testing.assert_allclose(proposed.scores, expected)
