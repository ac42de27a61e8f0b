"""Labelled rows of two classes, and what their SVM coresets settle on."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.sensitivities import SVM
from daskcoreset.sensitivities.base import summary_of
from daskcoreset.sensitivities.pilot import Pilot


def two_classes(n: int = 3000, d: int = 4, seed: int = 0) -> tuple[FloatArray, AnyArray]:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.25, 1, -1)
    X = rng.normal(size=(n, d))
    X[:, 0] += 0.8 * y
    return X, y


def settled(construction: SVM, *blocks: Block, seed: int = 0) -> Pilot:
    summary: Any = None
    for fold in range(construction.n_folds):
        parts = [
            summary_of(
                construction.block_summary(block, summary, stream(seed, Stage.SUMMARIES, i, fold))
            )
            for i, block in enumerate(blocks)
        ]
        merged = parts[0]
        for part in parts[1:]:
            merged = construction.merge(merged, part)
        summary = construction.finalize(merged, stream(seed, Stage.SETTLING, 0, fold))
    assert isinstance(summary, Pilot)
    return summary
