"""Problems of structured output, and examples of them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def classes_of(n: int, K: int, d: int, seed: int, gap: float = 0.3) -> tuple[Array, Array]:
    """Rows that a random linear rule separates with a gap."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(20 * n, d)), rng.normal(size=(K, d))
    scores = np.sort(X @ W.T, axis=1)
    X = X[scores[:, -1] - scores[:, -2] > gap][:n]
    return X, (X @ W.T).argmax(axis=1)
