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
)
from tests.tools.blocks import TwoFolds, rows


class TestTwoFolds(SensitivityContract):
    n_seeds = 100

    def construction(self) -> TwoFolds:
        return TwoFolds(share=0.5)


class ForgetsWeights(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        return super().scores(Block(block.points, np.ones(len(block))), summary)


class MergesWithoutWeights(Lightweight):
    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        return Moments(merged.count, merged.weight, (first.mean + second.mean) / 2, merged.m2)


class MergesInPlace(Lightweight):
    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        first.mean[:] = merged.mean
        return merged


class Negative(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        return super().scores(block, summary) - 0.01


class OneColumn(Lightweight):
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        return super().scores(block, summary)[:, np.newaxis]


class DiesOnEmptyBlocks(Lightweight):
    def block_summary(
        self, block: Block, previous: Moments | None, rng: np.random.Generator
    ) -> Any:
        assert len(block), "no rows"
        return super().block_summary(block, previous, rng)


class NeverDrawsSome(Lightweight):
    # Only the estimates can tell that rows are missing.
    def scores(self, block: Block, summary: Moments) -> FloatArray:
        scores = super().scores(block, summary)
        scores[np.asarray(block.points)[:, 0] < 0] = 0.0
        return scores


class CitesAnUnknownKey(Uniform):
    __module__ = "daskcoreset.sensitivities.unknown"  # the keys are those of the package
    citation: ClassVar[str] = "nobody1900, section 1"


@dataclass(frozen=True)
class HoldsAFunction(Uniform):
    function: Any = lambda: None  # which pickle refuses


@dataclass(frozen=True)
class HoldsAnArray(Uniform):
    values: Any = (np.float32(1.0),)


UNEVEN = [
    rows([[0.0], [1.0], [2.0]], [1, 3, 2]),
    rows([[5.0], [9.0]], [2, 0]),
    rows(np.empty((0, 1)), []),
    rows([[30.0]], [1]),
]


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (ForgetsWeights(), "test_total_scores__are_sums_of_scores"),
        (ForgetsWeights(), "test_scores__integer_weight_counts_as_repeated_rows"),
        (ForgetsWeights(), "test_scores__finite_nonnegative_positive_in_total"),
        (MergesWithoutWeights(), "test_merge__gives_the_summary_of_one_block"),
        (MergesInPlace(), "test_summarise__leaves_its_arguments_alone"),
        (Negative(), "test_scores__finite_nonnegative_positive_in_total"),
        (OneColumn(), "test_scores__finite_nonnegative_positive_in_total"),
        (DiesOnEmptyBlocks(), "test_merge__gives_the_summary_of_one_block"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Sensitivity) else None,
)
def test_contract__sees_what_is_broken(broken: Sensitivity[Any], test: str) -> None:
    class Contract(SensitivityContract):
        def construction(self) -> Sensitivity[Any]:
            return broken

    # One example is enough, so the property is called as a plain function.
    check = getattr(SensitivityContract, test).hypothesis.inner_test
    with pytest.raises(AssertionError):
        check(Contract(), blocks=UNEVEN)
    check(ContractOfLightweight(), blocks=UNEVEN)


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (NeverDrawsSome(), "test_draws__unbiased_for_every_query"),
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
