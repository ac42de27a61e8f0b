"""The contract sees who breaks it, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from daskcoreset.core.block import Block
from daskcoreset.core.moments import Moments, merge_moments
from daskcoreset.core.typing import FloatArray
from daskcoreset.sensitivities import Lightweight, Sensitivity, Uniform
from daskcoreset.testing import SensitivityContract
from tests.sensitivities.test_contracts import (
    TestLightweight as ContractOfLightweight,
    TestUniform as ContractOfUniform,
)
from tests.tools.blocks import TwoFolds, rows


class TestTwoFolds(SensitivityContract):
    n_seeds = 200

    def construction(self) -> TwoFolds:
        return TwoFolds(share=0.5)


def test_contract__modes_are_those_that_a_build_accepts() -> None:
    assert list(TestTwoFolds().modes) == [("systematic", 2), ("multinomial", 2)]
    assert list(ContractOfUniform().modes) == [
        ("systematic", 2),
        ("multinomial", 2),
        ("systematic", 1),
    ]


class ForgetsWeights(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        return super().scores(Block(block.points, np.ones(len(block))), summary)


class ForgetsWeightsInMasses(Lightweight):
    def total_scores(self, local: Moments, summary: Moments) -> FloatArray:
        return super().total_scores(
            Moments(local.count, local.count, local.mean, local.m2), summary
        )


class SquaresWeights(Lightweight):
    # As the co-author's package does: |w x - mu|^2 w.
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        points = np.asarray(block.points) * block.weights[:, np.newaxis]
        return super().scores(Block(points, block.weights), summary)


class IgnoresTheMeanOfBlocks(Lightweight):
    def total_scores(self, local: Moments, summary: Moments) -> FloatArray:
        masses = super().total_scores(local, summary)
        if masses[1]:
            masses[1] = local.quantization_error / summary.quantization_error / 2
        return masses


class MergesWithoutWeights(Lightweight):
    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        return Moments(merged.count, merged.weight, (first.mean + second.mean) / 2, merged.m2)


class ForgetsTheGapOfMeans(Lightweight):
    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        return Moments(merged.count, merged.weight, merged.mean, first.m2 + second.m2)


class MergesInPlace(Lightweight):
    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        first.mean[:] = merged.mean
        return merged


class SquaresSums(Lightweight):
    # |x|^2 - 2 x mu + |mu|^2, in the precision of the points.
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        scores = super().scores(block, summary)
        x, mu = np.asarray(block.points), summary.mean.astype(block.points.dtype)
        distances = (x * x).sum(axis=1) - 2 * (x @ mu) + mu @ mu
        if summary.quantization_error > 0:
            scores[1] = block.weights * distances / (2 * summary.quantization_error)
        return scores


class LosesFarRows(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        scores = super().scores(block, summary)
        scores[:, scores[1] > 0.2] = 0.0
        return scores


class Negative(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        return super().scores(block, summary) - 0.01


class OneRow(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        return np.asarray(super().scores(block, summary).sum(axis=0))


class DiesOnEmptyBlocks(Lightweight):
    def block_summary(
        self, block: Block, previous: Moments | None, rng: np.random.Generator
    ) -> Moments:
        assert len(block), "no rows"
        return super().block_summary(block, previous, rng)


class NeverDrawsSome(Lightweight):
    # Only the estimates can tell that rows are missing.
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        scores = super().scores(block, summary)
        scores[:, np.asarray(block.points)[:, 0] < 0] = 0.0
        return scores


class CannotBeCited(Uniform):
    citation: ClassVar[str] = " "


class CitesAnUnknownKey(Uniform):
    __module__ = "daskcoreset.sensitivities.unknown"  # the keys are those of the package
    citation: ClassVar[str] = "nobody1900, section 1"


class CitesInFreeText(Uniform):
    citation: ClassVar[str] = "A. Nobody (1900)"


@dataclass(frozen=True)
class HoldsAFunction(Uniform):
    function: Any = lambda: None  # which pickle refuses


@dataclass(frozen=True)
class HoldsAnArray(Uniform):
    values: Any = (np.float32(1.0),)


UNEVEN = [
    rows([[0.0], [1.0], [2.0]], [1, 3, 2]),
    rows([[5.0], [9.0]], [2, 0]),
    rows([[30.0]], [1]),
]


# A row at the mean of a block that is far away: half of the block's proposal is elsewhere.
TIGHT = [rows([[99.0], [100.0], [101.0]]), rows([[0.0], [1.0]])]


OFFSET = [rows(np.random.default_rng(0).normal(size=(20, 2)) + 1e6, dtype=np.float32)]


@pytest.mark.parametrize(
    ("broken", "test", "blocks"),
    [
        (ForgetsWeights(), "test_total_scores__are_sums_of_scores", UNEVEN),
        (ForgetsWeights(), "test_scores__integer_weight_counts_as_repeated_rows", UNEVEN),
        (ForgetsWeights(), "test_scores__finite_nonnegative_positive_in_total", UNEVEN),
        (ForgetsWeightsInMasses(), "test_total_scores__are_sums_of_scores", UNEVEN),
        (SquaresWeights(), "test_scores__integer_weight_counts_as_repeated_rows", UNEVEN),
        (IgnoresTheMeanOfBlocks(), "test_total_scores__are_sums_of_scores", UNEVEN),
        (MergesWithoutWeights(), "test_merge__associative", UNEVEN),
        (MergesWithoutWeights(), "test_summary__independent_of_chunking", UNEVEN),
        (MergesWithoutWeights(), "test_merge__empty_block_is_neutral", UNEVEN),
        (ForgetsTheGapOfMeans(), "test_summary__independent_of_chunking", UNEVEN),
        (MergesInPlace(), "test_summarise__leaves_its_arguments_alone", UNEVEN),
        (SquaresSums(), "test_scores__finite_nonnegative_positive_in_total", OFFSET),
        (SquaresSums(), "test_total_scores__are_sums_of_scores", OFFSET),
        (LosesFarRows(), "test_scores__finite_nonnegative_positive_in_total", UNEVEN),
        (Negative(), "test_scores__finite_nonnegative_positive_in_total", UNEVEN),
        (OneRow(), "test_scores__finite_nonnegative_positive_in_total", UNEVEN),
        (DiesOnEmptyBlocks(), "test_merge__empty_block_is_neutral", UNEVEN),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Sensitivity) else None,
)
def test_contract__sees_what_is_broken(
    broken: Sensitivity[Any], test: str, blocks: list[Block]
) -> None:
    class Contract(SensitivityContract):
        def construction(self) -> Sensitivity[Any]:
            return broken

    # One example is enough, so the property is called as a plain function.
    check = getattr(SensitivityContract, test).hypothesis.inner_test
    with pytest.raises(AssertionError):
        check(Contract(), blocks=blocks)
    check(ContractOfLightweight(), blocks=blocks)


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (NeverDrawsSome(), "test_draws__unbiased_for_every_query"),
        (CannotBeCited(), "test_citation__names_a_known_source"),
        (CitesAnUnknownKey(), "test_citation__names_a_known_source"),
        (HoldsAFunction(), "test_construction__frozen_picklable_with_deterministic_token"),
        (HoldsAnArray(), "test_parameters__say_all_in_json"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Sensitivity) else None,
)
def test_contract__sees_what_is_broken_as_a_whole(broken: Sensitivity[Any], test: str) -> None:
    class Contract(SensitivityContract):
        def construction(self) -> Sensitivity[Any]:
            return broken

    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever says so
        getattr(Contract(), test)()


def test_contract__takes_citations_in_free_text_from_outside_the_package() -> None:
    class Contract(SensitivityContract):
        def construction(self) -> Sensitivity[Any]:
            return CitesInFreeText()

    Contract().test_citation__names_a_known_source()
