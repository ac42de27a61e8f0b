"""Positive rows for Bregman coresets, and divergences of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.random import Stage, stream
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.sensitivities.base import summary_of
from daskcoreset.solvers.divergences import KullbackLeibler, SquaredMahalanobis

RNG = np.random.default_rng(0)
POSITIVE = RNG.lognormal(size=(60, 3)) + 0.1
WEIGHTS = RNG.uniform(0.5, 2.0, size=60)


def settled(construction: Sensitivity[Any], *blocks: Block) -> tuple[list[Any], Any]:
    summary, parts = None, []
    for fold in range(construction.n_folds):
        parts = [
            summary_of(construction.block_summary(one, summary, stream(0, Stage.SUMMARIES)))
            for one in blocks
        ]
        merged = parts[0]
        for part in parts[1:]:
            merged = construction.merge(merged, part)
        summary = construction.finalize(merged, stream(0, Stage.SETTLING, 0, fold))
    return parts, summary


def halves(points: Any = POSITIVE, weights: Any = WEIGHTS) -> list[Block]:
    return [Block(points[:25], weights[:25]), Block(points[25:], weights[25:])]


FULL = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 3.0]])


class Own(KullbackLeibler):
    """A divergence of the user's, dominated by a full matrix that depends on the box."""

    def dominating(self, low: Any, high: Any) -> SquaredMahalanobis:
        return SquaredMahalanobis(FULL * (1 + high.max() - low.min()))
