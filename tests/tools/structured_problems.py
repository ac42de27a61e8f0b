"""Problems of structured output, and examples of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.problems import Rival, SequenceProblem, StructuredProblem

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


@dataclass(frozen=True)
class Ordinal(StructuredProblem):
    """A problem of two functions only: K levels, farther ones are more wrong."""

    d: int
    K: int

    @property
    def dimension(self) -> int:
        return self.K * self.d

    def joint_features(self, x: Array, y: Array) -> Array:
        joint = np.zeros((self.K, self.d))
        joint[y[0]] = x[0]
        return joint.ravel()

    def separation_oracle(self, w: Array, x: Array, y: Array | None) -> Rival:
        scores = w.reshape(self.K, self.d) @ x[0]
        if y is None:
            return Rival(np.array([scores.argmax()]), 0.0)
        losses = np.abs(np.arange(self.K) - y[0]).astype(float)
        losses[y[0]] = np.nan
        margins = (scores[y[0]] - scores) / losses
        best = int(np.nanargmin(margins))
        return Rival(np.array([best]), float(margins[best]), float(losses[best]))
