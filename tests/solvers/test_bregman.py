"""Hard Bregman clustering against scikit-learn, and what both algorithms promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.cluster import KMeans

from daskcoreset.solvers.bregman import HardClustering, bregman_hard, bregman_seeds, prepare
from daskcoreset.solvers.bregman_soft import SoftClustering, bregman_soft
from daskcoreset.solvers.divergences import (
    DIVERGENCES,
    ItakuraSaito,
    KullbackLeibler,
    SquaredMahalanobis,
    as_divergence,
)
from tests.tools.bregman_mixtures import mixture, slack

Solver = Callable[..., HardClustering | SoftClustering]
each_name = pytest.mark.parametrize("name", list(DIVERGENCES))
each_solver = pytest.mark.parametrize("solve", [bregman_hard, bregman_soft])


# --- hard clustering ----------------------------------------------------------------------


@pytest.mark.parametrize("max_iter", [1, 2, 300])
def test_bregman_hard__is_lloyd_of_scikit_learn(max_iter: int) -> None:
    rows, weights = mixture(1000, 4, 8)
    init = rows[:8]

    ours = bregman_hard(rows, 8, sample_weight=weights, init=init, max_iter=max_iter, tol=0)
    theirs = KMeans(8, init=init, n_init=1, max_iter=max_iter, tol=0, algorithm="lloyd")
    theirs.fit(rows, sample_weight=weights)

    assert np.bincount(ours.labels(rows), minlength=8).all(), "no center was moved by hand"
    np.testing.assert_allclose(ours.centers, theirs.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert ours.cost == pytest.approx(theirs.inertia_, rel=1e-9)
    np.testing.assert_array_equal(ours.labels(rows), theirs.labels_)
    assert ours.converged == (max_iter == 300)


def test_bregman_hard__of_mahalanobis_is_lloyd_of_whitened_rows() -> None:
    rows, weights = mixture()
    distance = SquaredMahalanobis().fitted(rows, weights)

    ours = bregman_hard(
        rows, 5, divergence="mahalanobis", sample_weight=weights, init=rows[:5], tol=0
    )
    white = distance.whiten(rows)
    theirs = bregman_hard(white, 5, sample_weight=weights, init=white[:5], tol=0)

    assert isinstance(ours.divergence, SquaredMahalanobis)
    np.testing.assert_allclose(ours.divergence.precision, distance.precision, rtol=1e-9)
    np.testing.assert_allclose(distance.whiten(ours.centers), theirs.centers, rtol=1e-9)
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-9)


@each_name
@given(seed=st.integers(0, 2**32))
def test_bregman_hard__never_raises_the_cost(name: str, seed: int) -> None:
    rows, weights = mixture(60, 2, 4, seed)
    costs = [
        bregman_hard(
            rows,
            6,
            divergence=name,
            sample_weight=weights,
            init=rows[:6],
            max_iter=moves,
            tol=0,
        ).cost
        for moves in (1, 2, 3, 10)
    ]
    divergence = as_divergence(name).fitted(rows, weights)
    costs.insert(0, float(weights @ divergence.nearest(rows, rows[:6])[1]))

    assert (np.diff(costs) <= slack(costs[0])).all()


@each_name
def test_bregman_hard__ends_on_the_means_of_its_clusters(name: str) -> None:
    rows, weights = mixture()

    found = bregman_hard(rows, 7, divergence=name, sample_weight=weights, tol=0, random_state=0)

    labels = found.labels(rows)
    assert found.converged
    assert found.cost == pytest.approx(weights @ found.costs(rows), rel=1e-12)
    for j in range(7):
        own = labels == j
        mean = np.average(rows[own], axis=0, weights=weights[own])
        np.testing.assert_allclose(found.centers[j], mean, rtol=1e-12)


@each_solver
@each_name
def test_solvers__weights_count_rows(name: str, solve: Solver) -> None:
    rows, _ = mixture(50)
    counts = np.random.default_rng(0).integers(0, 4, 50)
    options: dict[str, Any] = {"divergence": name, "n_init": 2, "random_state": 3}

    weighted = solve(rows, 4, sample_weight=counts, **options)
    repeated = solve(np.repeat(rows, counts, axis=0), 4, **options)

    np.testing.assert_allclose(weighted.centers, repeated.centers, rtol=1e-8)
    assert weighted.cost == pytest.approx(repeated.cost, rel=1e-8)


def test_bregman_hard__gives_empty_clusters_the_worst_rows() -> None:
    rows = np.array([[0.0], [1.0], [50.0], [51.0], [200.0]])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 1e-3])
    init = np.array([[0.5], [-500.0], [-500.0]])  # two of the three get no rows

    first = bregman_hard(rows, 3, sample_weight=weights, init=init, max_iter=1)
    found = bregman_hard(rows, 3, sample_weight=weights, init=init, tol=0)

    # Heavy rows at 51 and then at 1e-3 * 149^2 the far one: not two neighbours.
    mean = np.average(rows[:, 0], weights=weights)
    np.testing.assert_allclose(first.centers.ravel(), [mean, 51.0, 200.0])
    np.testing.assert_allclose(found.centers.ravel(), [0.5, 50.5, 200.0])
    assert found.cost == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["squared_euclidean", "mahalanobis"])
@each_solver
def test_solvers__lose_nothing_to_an_offset_in_float32(name: str, solve: Solver) -> None:
    rows, weights = mixture(300)
    near = np.round(rows * 16) / 16  # what float32 holds at 1e6
    far = (near + 1e6).astype(np.float32)
    options: dict[str, Any] = {"divergence": name, "sample_weight": weights, "tol": 1e-9}

    about_zero = solve(near, 5, init=near[:5], **options)
    about_offset = solve(far, 5, init=far[:5], **options)

    np.testing.assert_allclose(about_offset.centers - 1e6, about_zero.centers, atol=1e-8)
    assert about_offset.cost == pytest.approx(about_zero.cost, rel=1e-8)
    np.testing.assert_array_equal(about_offset.labels(far), about_zero.labels(near))


@each_solver
@pytest.mark.parametrize("divergence", [KullbackLeibler(), ItakuraSaito()])
def test_solvers__keep_centers_inside_the_domain(divergence: Any, solve: Solver) -> None:
    """Rows over forty orders of magnitude: a mean formed from differences would be zero."""
    rows = 10.0 ** np.random.default_rng(0).uniform(-30, 10, (80, 2))

    found = solve(rows, 4, divergence=divergence, init=[[1.0, 1.0]] * 3 + [[1e5, 1e5]])

    assert divergence.check_domain(found.centers) == -1
    assert np.isfinite(found.cost)


# --- seeds --------------------------------------------------------------------------------


@each_name
def test_bregman_seeds__are_distinct_rows(name: str) -> None:
    rows, weights = mixture()
    checked = prepare(rows, 30, name, weights)

    seeds = bregman_seeds(checked, 30, np.random.default_rng(0))

    found = (seeds[:, None] == checked.points).all(axis=2)
    assert found.any(axis=1).all()
    assert len(np.unique(found.argmax(axis=1))) == 30
