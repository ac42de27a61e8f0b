"""How often the intervals of an audit hold the true cost, on ordinary and on hostile sets.

For every set and repetition: build a coreset, audit it with seeds of its own, and ask for the
intervals of solutions that were chosen without the sample of the audit: one fitted to all data
(or to many rows), the one fitted to the coreset, which is audited, one fitted to little of it, and
some that are far from good. Truth is the cost over all rows in memory. `frozen.py` records it.

Real sets are taken where DASKCORESET_DATA names the folder that holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sets import load
from sklearn.mixture import GaussianMixture

import daskcoreset
from daskcoreset.core.block import Block
from daskcoreset.objectives import LinearClassifier, objective_for
from daskcoreset.objectives.clustering import QuantizationError

RNG = np.random.default_rng


@dataclass(frozen=True)
class Case:
    """Rows, the coreset that is made of them, and the solutions that are asked about."""

    X: Any
    y: Any
    build: dict[str, Any]
    solutions: dict[str, Any]
    hostile: bool = False
    larger: int = 1  # coresets, than of other sets: some rows of every class have to be there


def clusters(n: int) -> Case:
    """Eight uneven Gaussian clusters."""
    rng = RNG(0)
    centers = rng.normal(size=(8, 5)) * 6
    share = [0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.015, 0.005]
    return of_centers(centers[rng.choice(8, n, p=share)] + rng.normal(size=(n, 5)), 8)


def heavy_tails(n: int) -> Case:
    """Clusters whose rows lie at distances of Student's t with 1.5 degrees of freedom."""
    rng = RNG(1)
    centers = rng.normal(size=(6, 3)) * 6
    X = centers[rng.integers(6, size=n)] + rng.standard_t(1.5, size=(n, 3))
    return of_centers(X, 6, hostile=True)


def one_row(n: int) -> Case:
    """One row has 99 % of the cost of every solution that does not name it."""
    X = RNG(2).normal(size=(n, 4))
    X[n // 3] = np.sqrt(99.0 * n) * 2.0
    return of_centers(X, 5, hostile=True)


def few_far(n: int) -> Case:
    """Fifty rows of ten clusters near the mean of two far ones."""
    rng = RNG(3)
    X = rng.normal(size=(n, 5)) * 0.1 + np.where(np.arange(n)[:, None] % 2, 1000.0, -1000.0)
    X[: n // 2000] = rng.normal(size=(10, 5))[rng.integers(10, size=n // 2000)] * 10.0
    return of_centers(X, 12, hostile=True)


def divergence(n: int) -> Case:
    """Positive rows by the divergence of Kullback and Leibler, one in a thousand large."""
    rng = RNG(4)
    X = rng.gamma(3.0, size=(n, 3)) * np.where(rng.random(n) < 1e-3, 100.0, 1.0)[:, None]
    build = {"method": daskcoreset.sensitivities.StrongBregman(4, "kl")}
    found = {
        "rows": X[rng.integers(n, size=4)],
        "mean": X.mean(axis=0, keepdims=True),
        "random": rng.gamma(3.0, size=(4, 3)),
    }
    return Case(X, None, build, found)


def mixture(n: int) -> Case:
    """Three Gaussians of unlike widths, by the likelihood."""
    rng = RNG(5)
    which = rng.choice(3, n, p=[0.7, 0.295, 0.005])
    X = (
        np.array([[0.0, 0], [6, 0], [0, 30]])[which]
        + rng.normal(size=(n, 2)) * np.array([1.0, 0.3, 3.0])[which][:, None]
    )
    build = {"method": daskcoreset.sensitivities.Mixture(3)}
    found = {
        "fitted to all": GaussianMixture(3, random_state=0).fit(X[::10]),
        "one Gaussian": GaussianMixture(1).fit(X[::10]),
        "of few rows": GaussianMixture(3, random_state=0).fit(X[:40]),
    }
    return Case(X, None, build, found)


def overlapping(n: int) -> Case:
    """Two classes of equal size that overlap."""
    rng = RNG(6)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 5)) + y[:, None] * np.array([1.0, 0.5, 0, 0, 0])
    return of_classes(X, y, "svm")


def rare_loss(n: int) -> Case:
    """Two classes far apart, but one row in 10,000 has the other label."""
    rng = RNG(7)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 5)) + 12.0 * y[:, None] * np.array([1.0, 0, 0, 0, 0])
    wrong = rng.choice(n, n // 10_000, replace=False)
    y[wrong] = 1 - y[wrong]
    return of_classes(X, y, "svm", hostile=True)


def separable(n: int) -> Case:
    """Two classes that a line separates."""
    rng = RNG(8)
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] > 0.0).astype(int)
    X[:, 0] += np.where(y == 1, 0.05, -0.05)
    return of_classes(X, y, "svm", hostile=True)


def rare_class(n: int) -> Case:
    """0.4 % of the rows are positive."""
    rng = RNG(9)
    y = (rng.random(n) < 0.004).astype(int)
    X = rng.normal(size=(n, 5)) + 2.0 * y[:, None] * np.array([1.0, 0.5, 0, 0, 0])
    return replace(of_classes(X, y, "logistic", hostile=True), larger=3)


def of_centers(X: Any, k: int, *, hostile: bool = False) -> Case:
    """Questions about k centers."""
    rng, rows = RNG(99), Block(X, np.ones(len(X)))
    found = {
        "fitted to all": QuantizationError(k).solve(rows, rng),
        "rows": X[rng.integers(len(X), size=k)],
        "mean": X.mean(axis=0, keepdims=True),
    }
    return Case(X, None, {"method": "kmeans", "n_clusters": k}, found, hostile)


def of_classes(X: Any, y: Any, method: str, *, hostile: bool = False) -> Case:
    """Questions about classifiers."""
    rng, few = RNG(99), slice(0, 20_000)
    cost = daskcoreset.sensitivities.CONSTRUCTIONS[method]().objective
    best = cost.solve(Block(X[few], np.ones(len(X[few])), y[few]), rng)
    coef = best.coef + 0.1 * np.linalg.norm(best.coef) * rng.normal(size=len(best.coef))
    found = {
        "fitted to 20,000": best,
        "beside it": LinearClassifier(coef, best.intercept, best.positive),
        "random": LinearClassifier(rng.normal(size=len(coef)), 0.0, best.positive),
    }
    return Case(X, y, {"method": method}, found, hostile)


def real(name: str, method: str) -> Callable[[int], Case]:
    """Return a set of the folder."""

    def make(n: int) -> Case:
        data = load(name)
        rows = RNG(0).choice(len(data.y), n, replace=False)
        X, y = np.asarray(data.X, dtype=np.float64)[rows], np.asarray(data.y)[rows]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        return of_centers(X, 20) if method == "kmeans" else of_classes(X, y, method)

    make.__doc__ = f"The set {name}, {method}."
    return make


CASES: dict[str, Callable[[int], Case]] = {
    "clusters": clusters,
    "divergence": divergence,
    "mixture": mixture,
    "overlapping classes": overlapping,
    "one row, 99 % of the cost": one_row,
    "heavy tails": heavy_tails,
    "clusters near the mean": few_far,
    "loss on 1 row in 10,000": rare_loss,
    "separable classes": separable,
    "0.4 % positives": rare_class,
    "skin": real("skin", "kmeans"),
    "cod_rna": real("cod_rna", "svm"),
}


def repeat(case: Case, n_runs: int, size: int, sample: int) -> dict[str, list[tuple[float, ...]]]:
    """Return the truth and the interval, for every solution and repetition."""
    n = case.X.shape[0]
    rows = Block(case.X, np.ones(n), case.y)
    found: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(n_runs):
        coreset = daskcoreset.build(
            case.X, case.y, size=case.larger * size, random_state=seed, **case.build
        )
        own = Block(coreset.points, coreset.weights, coreset.labels)
        objective = objective_for(coreset.provenance, None, own)
        fitted, seeded = (make(own, RNG(seed)) for make in (objective.solve, objective.seed))
        report = coreset.audit(
            case.X, case.y, solutions=[fitted], random_state=seed, sample_size=sample
        )
        asked = {**case.solutions, "audited": fitted, "fitted to little": seeded}
        for name, solution in asked.items():
            one = objective.read(solution, case.X.shape[1], name)
            interval = report.interval(one)
            true = objective.cost(rows, one)
            found.setdefault(name, []).append((true, interval.low, interval.high))
    return found
