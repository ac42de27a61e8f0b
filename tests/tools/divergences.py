"""Divergences, and rows of their domains."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.divergences import (
    Divergence,
    ItakuraSaito,
    KullbackLeibler,
    SquaredEuclidean,
    SquaredMahalanobis,
)

PRECISION = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 3.0]])


ALL: list[Divergence] = [
    SquaredEuclidean(),
    SquaredMahalanobis(PRECISION),
    SquaredMahalanobis([0.5, 2.0, 1.0]),
    KullbackLeibler(),
    ItakuraSaito(),
]


def gamma(*shape: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).gamma(2.0, size=shape)
