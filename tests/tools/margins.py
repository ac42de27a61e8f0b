"""Rows with a margin, with and without outliers, and margins by brute force."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.typing import FloatArray, IndexArray


def rows(seed: int, n: int = 400, d: int = 4, gap: float = 0.3) -> tuple[FloatArray, FloatArray]:
    return separable(np.random.default_rng(seed), n, d, gap)


def planted(
    seed: int, n: int, d: int, k: int, gap: float = 0.5
) -> tuple[FloatArray, FloatArray, IndexArray, FloatArray]:
    """Rows, labels of which k are flipped, which ones, and the true labels."""
    rng = np.random.default_rng(seed)
    X, truth = separable(rng, n, d, gap)
    bad = np.sort(rng.choice(n, k, replace=False))
    y = truth.copy()
    y[bad] *= -1
    return X, y, bad, truth


def separable(
    rng: np.random.Generator, n: int, d: int, gap: float
) -> tuple[FloatArray, FloatArray]:
    """Rows and signs with a margin through the origin of about `gap`."""
    X = rng.normal(size=(n, d))
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    y = np.where(X @ w > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X += (y * (gap + np.abs(X @ w)) - X @ w)[:, None] * w
    return X, y
