"""Scores of constructions, and their sums, are the formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.hinge import quiet, two_classes
from tests.pairs import few


def clusters(k: int = 3, n: int = 240) -> tuple[Any, Any, Any]:
    """Far clusters of positive rows; the least entry of every column is the same."""
    rng = np.random.default_rng(0)
    cells = np.arange(n) % k
    X = rng.uniform(0.6, 1.4, size=(n, 2)) + np.array([[0.0, 0.0], [90.0, 0.0], [0.0, 80.0]])[cells]
    X[0] = 0.5
    return X, cells, rng.uniform(0.5, 2.0, size=n) * np.array([1.0, 1.0, 0.1])[cells]


def terms(d: Any, u: Any, cells: Any) -> Any:
    """Weighted scores of Lucic, Bachem and Krause (2016), before they are normalised."""
    k, masses = int(cells.max()) + 1, np.bincount(cells, u)
    alpha, mean_cost = 16 * (math.log(k) + 2), u @ d / u.sum()
    local = 2 * alpha * np.bincount(cells, u * d) / (masses * mean_cost)
    return u * (alpha * d / mean_cost + (local + 4 * u.sum() / masses)[cells])


@pytest.mark.parametrize("divergence", ["squared_euclidean", "kl", "itakura_saito", "mahalanobis"])
def test_strong__scores_are_those_of_algorithm_2(divergence: str) -> None:
    """Half of the draws are uniform where the distance only dominates the divergence."""
    X, cells, u = clusters()
    means = np.stack([read.mean_of(X[cells == i], u[cells == i]) for i in range(3)])
    gaps = X - means[cells]
    inverse = np.eye(2)
    if divergence == "mahalanobis":
        inverse = np.linalg.inv(read.scatter_of(X, u) / u.sum())
    d = np.einsum("ij,jk,ik->i", gaps, inverse, gaps)
    beta = 3 * 16 * (math.log(3) + 2) + 12 if divergence in ("kl", "itakura_saito") else 0.0
    wanted = terms(d, u, cells) + u * beta
    method = face.StrongBregman(3, divergence)
    parts = [slice(0, 100), slice(100, 240)]
    blocks = [face.block(X[at], u[at]) for at in parts]
    found = face.scores(method, *blocks)
    assert np.allclose(np.concatenate(found), wanted, rtol=1e-6)
    sums = face.total_scores(method, *blocks)
    assert np.allclose(sums, [part.sum() for part in found], rtol=1e-6)


def test_strong__scores_of_k_means_are_those_of_algorithm_2() -> None:
    X, cells, u = clusters()
    means = np.stack([read.mean_of(X[cells == i], u[cells == i]) for i in range(3)])
    wanted = terms(((X - means[cells]) ** 2).sum(axis=1), u, cells)
    blocks = [face.block(X[at], u[at]) for at in (slice(0, 100), slice(100, 240))]
    for method in (face.StrongKMeans(3), face.StrongKMeans(2, n_centers=3)):
        found = face.scores(method, *blocks)
        total = np.concatenate(found)
        assert np.allclose(total / total.sum(), wanted / wanted.sum(), rtol=1e-6)
        assert np.allclose(face.total_scores(method, *blocks), [s.sum() for s in found], rtol=1e-6)


@pytest.mark.parametrize("method", ["lightweight", "uniform"])
def test_scores__of_one_fold_and_their_sums(method: str) -> None:
    """Also of rows without weight, however far off, and of blocks that have none."""
    rng = np.random.default_rng(1)
    X, u = rng.normal(size=(90, 3)) + 50.0, rng.uniform(0.1, 3.0, size=90)
    u[::7] = 0.0
    X[::7] = 1e200
    u[60:75] = 0.0
    parts = [slice(0, 60), slice(60, 75), slice(75, 90)]
    blocks = [face.block(X[at], u[at]) for at in parts]
    made = face.Lightweight() if method == "lightweight" else face.Uniform()
    found = face.scores(made, *blocks)
    kept = u > 0
    q = (read.lightweight if method == "lightweight" else read.uniform)(X[kept], u[kept])
    total = np.concatenate(found)
    assert np.allclose(total[kept] / total.sum(), q, rtol=1e-7)
    assert not total[~kept].any()
    assert np.allclose(face.total_scores(made, *blocks), [s.sum() for s in found], rtol=1e-7)


@few("classes", [3, 2], always=1)
def test_logistic__meets_what_the_rows_drawn_can(classes: int) -> None:
    """Where the means of two classes are too much, their difference takes their place."""
    X, y, u = two_classes(800, 8)
    y = y + (np.arange(800) % 4 > 2) * (classes - 2)
    X[np.random.default_rng(0).random(800) < 0.03] *= 8.0
    seen = set()
    for seed in range(8):
        size = 110 if classes == 2 else 330
        c = quiet(X, y, sample_weight=u, size=size, method="logistic", random_state=seed)
        facts = c.provenance["calibration"]
        met, labels = set(facts["met"]), y[c.indices]
        seen |= {tuple(sorted(met))}
        assert set(facts["wanted"]) == {"class totals", "class means", "gradient"}
        gaps = []
        for one in np.unique(y):
            own = labels == one
            assert c.weights[own].sum() == pytest.approx(u[y == one].sum(), rel=1e-9)
            gaps.append(c.weights[own] @ c.points[own] - u[y == one] @ X[y == one])
        scale = np.abs(u @ X).max()
        if "class means" in met:
            assert np.abs(gaps).max() < 1e-5 * scale
        if "gradient at zero" in met:
            assert np.abs(gaps[1] - gaps[0]).max() < 1e-5 * scale
            assert np.abs(gaps).max() > 1e-4 * scale
    pulled = ("class totals", "gradient", "gradient at zero")
    assert (pulled in seen) == (classes == 2)
    assert ("class means", "class totals", "gradient") in seen
