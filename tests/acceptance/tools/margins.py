"""Rows that a hyperplane separates, and data that count how often they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import dask.array as da
import numpy as np


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


@dataclass(eq=False)
class Counted:
    """An array that counts how often its first row is read."""

    array: Any
    reads: int = 0
    dtype: Any = field(init=False)
    shape: tuple[int, ...] = field(init=False)
    ndim: int = field(init=False)

    def __post_init__(self) -> None:
        self.dtype, self.shape, self.ndim = self.array.dtype, self.array.shape, self.array.ndim

    def __getitem__(self, key: Any) -> Any:
        found = self.array[key]
        rows = key[0] if isinstance(key, tuple) else key
        self.reads += isinstance(rows, slice) and rows.start in {0, None} and len(found) > 0
        return found

    def lazy(self, rows: int) -> Any:
        """Return it as a Dask array with blocks of so many rows."""
        return da.from_array(self, chunks=(rows, *self.shape[1:]))
