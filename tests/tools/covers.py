"""Rows near a surface, covers by plain loops, and what a cover promises."""

from __future__ import annotations

import numpy as np

from daskcoreset.constructions.coverage.reads import Cover
from daskcoreset.core.typing import AnyArray, FloatArray


def distances(X: AnyArray, centers: AnyArray) -> FloatArray:
    """All distances, in float64, as plainly as can be."""
    gaps = X.astype(np.float64)[:, None] - centers.astype(np.float64)
    return np.asarray(np.sqrt((gaps**2).sum(axis=2)))


def check(found: Cover, X: AnyArray, weights: AnyArray | None = None) -> None:
    """The promise, and that the weights count the rows at their nearest core point."""
    u = np.ones(len(X)) if weights is None else weights
    assert (np.diff(found.indices) > 0).all()
    np.testing.assert_array_equal(found.points, X[found.indices])
    gaps = distances(X, found.points)
    nearest = gaps.min(axis=1)
    assert nearest.max() <= found.diameter / 2
    np.testing.assert_allclose(found.radius, nearest.max(), rtol=1e-12)
    np.testing.assert_allclose(found.weights.sum(), u.sum())
    # By any tie-break that rounding allows, no core point weighs less or more.
    close = gaps <= nearest[:, None] * (1 + 1e-12)
    alone = close & (close.sum(axis=1) == 1)[:, None]
    assert (found.weights >= (u @ alone) * (1 - 1e-12)).all()
    assert (found.weights <= (u @ close) * (1 + 1e-12)).all()
    assert found.n_rows == len(X)


def near_a_surface(n: int, d: int = 6, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    X = np.tanh(rng.random((n, 3)) @ rng.normal(size=(3, d))) + 0.02 * rng.normal(size=(n, d))
    return np.asarray((X - X.min(axis=0)) / np.ptp(X, axis=0))


def gonzalez(X: AnyArray, count: int) -> tuple[list[int], FloatArray]:
    """Gonzalez (1985), from the first row: the rows and their distances to those before."""
    rows = [0]
    gaps = [np.inf]
    while len(rows) < count:
        nearest = distances(X, X[rows]).min(axis=1)
        rows.append(int(nearest.argmax()))
        gaps.append(float(nearest.max()))
    return rows, np.array(gaps)
