"""Rows that a hyperplane separates, or several."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tests.acceptance.tools import readings as read


def two_classes(n: int = 90, d: int = 3, gap: float = 0.5, seed: int = 0) -> tuple[Any, Any]:
    """Rows on both sides of a hyperplane that misses the origin."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 3.0
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    side = X @ w - 0.7
    X += np.where(side > 0, gap, -gap)[:, np.newaxis] * w
    return X, side > 0


def through_zero(n: int = 90, d: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Rows on both sides of a hyperplane through the origin."""
    X, _ = two_classes(n, d, 0.0, seed)
    X[np.abs(X[:, 0]) < 0.4, 0] = 0.6
    return X, X[:, 0] > 0


def three_classes(n: int = 60, k: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Rows of two to four classes that lie apart."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 6.0], [5.0, -3.0], [-5.0, -3.0], [9.0, 9.0]])[:k]
    y = np.arange(n) % k
    return centers[y] + rng.normal(size=(n, 2)), y


def best_without(X: Any, signs: Any, k: int, *, intercept: bool) -> float:
    """Return the largest margin that is left when k rows are left out, by trying all."""
    found = []
    for out in itertools.combinations(range(len(X)), k):
        left = np.setdiff1d(np.arange(len(X)), out)
        if len(set(signs[left])) == 2:
            found.append(read.largest_margin(X[left], signs[left], intercept=intercept))
    return max(found)
