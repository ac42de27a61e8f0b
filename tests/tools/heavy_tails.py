"""Rows with heavy tails, in the order of their clusters."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.typing import FloatArray


def heavy_tailed(n: int = 6000) -> FloatArray:
    """Uneven clusters with heavy tails, in order of the cluster, and a few rows far away."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(6, 3)) * 6
    which = np.sort(rng.choice(6, n, p=[0.5, 0.2, 0.15, 0.1, 0.04, 0.01]))
    X: FloatArray = centers[which] + rng.standard_t(4, size=(n, 3))
    X[:3] += 60
    return X


X = heavy_tailed()
