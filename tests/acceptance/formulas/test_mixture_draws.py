"""Coresets for mixtures, beside the sums of EM on all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.acceptance import face

MEANS = np.array([[0.0, 0, 0, 0], [12, 0, 0, 0], [0, 12, 0, 0]])
SPREADS = np.array([[1.0, 1, 1, 0.1], [2, 1, 0.5, 1], [1, 1, 1, 1]])


def anisotropic(n: int = 20_000) -> tuple[Any, Any]:
    """Return rows of three components, some of them thin, and weights."""
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=n)
    X = MEANS[labels] + SPREADS[labels] * rng.normal(size=(n, 4))
    return X, rng.uniform(0.5, 2.0, n)


def components(X: Any, u: Any) -> Any:
    """Sum up shares, deviations and their products over rows, for every component."""
    z = (X[:, np.newaxis] - MEANS) / SPREADS
    logs = -0.5 * np.square(z).sum(axis=2) - np.log(SPREADS).sum(axis=1)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares *= (u / shares.sum(axis=1))[:, np.newaxis]
    products = np.einsum("nk,nki,nkj->kij", shares, z, z).ravel()
    return np.concatenate(
        [shares.sum(axis=0), np.einsum("nk,nki->ki", shares, z).ravel(), products]
    )


def test_mixture__weights_meet_the_likelihood_near_that_of_all_rows() -> None:
    """The sums of EM are nearer to those of all rows than on a coreset for k-means."""
    X, u = anisotropic()
    exact = components(X, u)
    gaps = [
        np.linalg.norm(components(c.points, c.weights) - exact)
        for method in (face.Mixture(3), face.StrongKMeans(3))
        for c in (
            face.build(X, sample_weight=u, size=300, method=method, random_state=seed)
            for seed in range(4)
        )
    ]
    assert sum(gaps[:4]) < 0.4 * sum(gaps[4:])


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_mixture__does_not_depend_on_the_unit_of_weights(unit: float) -> None:
    X, u = anisotropic()
    here, there = (
        face.build(X, sample_weight=v, size=300, method=face.Mixture(3), random_state=0)
        for v in (u, u * unit)
    )
    assert np.array_equal(here.indices, there.indices)
    assert np.allclose(here.weights * unit, there.weights)


@pytest.mark.parametrize(("k", "d", "n"), [(2, 3, 3_000), (8, 10, 12_000)])
def test_mixture__keeps_rows_far_from_a_thin_component(k: int, d: int, n: int) -> None:
    """They change its covariance much, and are near its mean in plain distances."""
    rng = np.random.default_rng(1)
    labels = np.arange(n) * k // n
    X = rng.normal(size=(n, d)) * np.append(np.full(d - 1, 10.0), 1.0)
    X[:, :3] += 40.0 * np.array([labels % 2, labels // 2 % 2, labels // 4]).T
    far = np.arange(0, n, n // 8)
    X[far, -1] += 25.0
    X = X @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    kept = [
        np.isin(far, face.build(X, size=n // 10, method=face.Mixture(k), random_state=i).indices)
        for i in range(4)
    ]
    assert np.mean(kept) > 0.4
