"""Instances that are hard for a way of sampling, in memory."""

from __future__ import annotations

import numpy as np

from daskcoreset.datasets import make_near_mean


def hidden(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two clusters far out, and ten of some 50 rows near the mean."""
    X, y = make_near_mean(
        n, d, n_clusters=12, n_near=10, near_share=500 / n, spread=0.02, random_state=0
    )
    return X.compute(), y.compute()


def giants(
    n: int, d: int, *, n_giants: int = 5, share: float = 0.995
) -> tuple[np.ndarray, np.ndarray]:
    """Return forty clusters of unlike sizes, and rows that each hold a share of what is left."""
    rng = np.random.default_rng(0)
    shares = 1000.0 ** (-np.arange(40) / 39)
    y = rng.choice(40, n, p=shares / shares.sum())
    X = rng.normal(size=(40, d))[y] + 0.05 * rng.normal(size=(n, d))
    # The variance of the clusters is about one in each coordinate.
    squares = n * d * share / (1 - share) / (1 - share) ** np.arange(n_giants)
    far = rng.normal(size=(n_giants, d))
    rows = rng.choice(n, n_giants, replace=False)
    X[rows] = far * (np.sqrt(squares) / np.linalg.norm(far, axis=1))[:, None]
    y[rows] = -1
    return X.astype(np.float32), y


def pathological(n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Return two far clusters of opposite labels, and two close rows that decide the boundary.

    Tukan, Baykal, Feldman and Rus (2020), section 6.
    """
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, -1, 1)
    X = rng.normal(size=(n, 2))
    X[:, 0] += 10 * y
    X[-2:] = [[0.05, 0.0], [-0.05, 0.0]]
    y[-2:] = [1, -1]
    return X.astype(np.float32), y
