"""Problems of structured output, and examples of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.constructions.margin.problems import SequenceProblem

Array = np.ndarray[Any, Any]


def classes_of(n: int, K: int, d: int, seed: int, gap: float = 0.3) -> tuple[Array, Array]:
    """Rows that a random linear rule separates with a gap."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(20 * n, d)), rng.normal(size=(K, d))
    scores = np.sort(X @ W.T, axis=1)
    X = X[scores[:, -1] - scores[:, -2] > gap][:n]
    return X, (X @ W.T).argmax(axis=1)


def planted(n: int, seed: int = 0, gap: float = 0.05) -> tuple[Array, Array, Array, Array]:
    """Sequences that a random model labels with a gap to its second best answer."""
    rng = np.random.default_rng(seed)
    problem = SequenceProblem(2, 3)
    w = rng.normal(size=problem.dimension)
    w /= np.linalg.norm(w)
    lengths = rng.integers(1, 9, size=3 * n)
    starts = np.append(0, np.cumsum(lengths))
    X = rng.normal(size=(starts[-1], 2))
    y = problem.rivals(w, X, None, starts)[0]
    ahead = problem.rivals(w, X, y, starts)[1] > gap
    keep = np.flatnonzero(ahead)[:n]
    rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in keep])
    return X[rows], y[rows], np.repeat(np.arange(len(keep)), lengths[keep]), w
