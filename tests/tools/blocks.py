"""Blocks of a few rows, and a construction of two folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import FloatArray
from daskcoreset.objectives import QuantizationError
from daskcoreset.sensitivities import Lightweight, Sensitivity


@dataclass(frozen=True)
class TwoFolds(Sensitivity[Moments]):
    """What a mixture of another share would be, with distances taken in a fold of their own.

    The first fold finds the mean and the second the distances to it, as if they could not
    be had at once.
    """

    share: float = 0.25

    name: ClassVar[str] = "two_folds"
    citation: ClassVar[str] = "bachem2018scalable, for tests"

    @property
    def objective(self) -> QuantizationError:
        return QuantizationError()

    @property
    def n_folds(self) -> int:
        return 2

    def block_summary(
        self, block: Block, previous: Moments | None, rng: np.random.Generator
    ) -> Moments:
        del rng
        found = moments_of(block.points, block.weights)
        if previous is None:
            return Moments(found.count, found.weight, found.mean, np.zeros_like(found.m2))
        about = found.m2 + found.weight * (found.mean - previous.mean) ** 2
        return Moments(found.count, found.weight, previous.mean, about)

    def merge(self, first: Moments, second: Moments) -> Moments:
        merged = merge_moments(first, second)
        # In the second fold the means are equal, so that only what was found adds up.
        return Moments(merged.count, merged.weight, merged.mean, first.m2 + second.m2)

    def scores(self, block: Block, summary: Moments) -> FloatArray:
        scores = Lightweight().scores(block, summary)
        return scores + self.share * block.weights / summary.weight

    def total_scores(self, local: Moments, summary: Moments) -> float:
        total = Lightweight().total_scores(local, summary)
        return total + self.share * local.weight / summary.weight


def rows(points: Any, weights: Any = None, dtype: Any = np.float64) -> Block:
    points = np.asarray(points, dtype=dtype)
    u = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=np.float64)
    return Block(points, u, np.zeros(len(points), dtype=np.int64))
