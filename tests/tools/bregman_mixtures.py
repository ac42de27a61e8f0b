"""Rows for Bregman clustering, and how much rounding is allowed."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.typing import FloatArray


def mixture(n: int = 400, d: int = 3, k: int = 5, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Positive rows about k places, and weights."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(1.0, 20.0, (k, d))
    rows = places[rng.integers(k, size=n)] * rng.gamma(20.0, 1.0 / 20.0, (n, d))
    return rows, rng.gamma(1.0, size=n)


def slack(cost: float) -> float:
    return 1e-12 * abs(cost)
