"""Soft Bregman clustering against plain EM."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import logsumexp

from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.bregman import bregman_hard
from daskcoreset.solvers.bregman_soft import bregman_soft
from daskcoreset.solvers.divergences import DIVERGENCES, as_divergence
from tests.tools.bregman_mixtures import mixture, slack

each_name = pytest.mark.parametrize("name", list(DIVERGENCES))


def plain_em(
    rows: FloatArray, weights: FloatArray, centers: FloatArray, divergence: Any, steps: int
) -> tuple[FloatArray, FloatArray, float]:
    mixing = np.full(len(centers), 1.0 / len(centers))
    for _ in range(steps):
        logits = np.log(mixing) - divergence.divergence(rows, centers)
        shares = np.exp(logits - logsumexp(logits, axis=1, keepdims=True)) * weights[:, None]
        mixing = shares.sum(axis=0) / weights.sum()
        centers = shares.T @ rows / shares.sum(axis=0)[:, None]
    logits = np.log(mixing) - divergence.divergence(rows, centers)
    return centers, mixing, -float(weights @ logsumexp(logits, axis=1))


@each_name
def test_bregman_soft__is_plain_em(name: str) -> None:
    rows, weights = mixture()
    divergence = as_divergence(name).fitted(rows, weights)

    found = bregman_soft(
        rows, 4, divergence=name, sample_weight=weights, init=rows[:4], max_iter=5, tol=0
    )

    centers, mixing, cost = plain_em(rows, weights, rows[:4], divergence, 5)
    np.testing.assert_allclose(found.centers, centers, rtol=1e-9)
    np.testing.assert_allclose(found.mixing, mixing, rtol=1e-9)
    assert found.cost == pytest.approx(cost, rel=1e-9)
    assert (found.n_iter, found.converged) == (5, False)


@each_name
@given(seed=st.integers(0, 2**32))
def test_bregman_soft__never_raises_the_cost(name: str, seed: int) -> None:
    rows, weights = mixture(60, 2, 4, seed)
    costs = [
        bregman_soft(
            rows,
            4,
            divergence=name,
            sample_weight=weights,
            init=rows[:4],
            max_iter=steps,
            tol=0,
        ).cost
        for steps in (1, 2, 3, 10)
    ]
    divergence = as_divergence(name).fitted(rows, weights)
    costs.insert(0, plain_em(rows, weights, rows[:4], divergence, 0)[2])

    assert (np.diff(costs) <= slack(max(map(abs, costs))) + 1e-12 * weights.sum()).all()


def test_bregman_soft__finds_a_mixture_of_poisson_distributions() -> None:
    rng = np.random.default_rng(0)
    rates, shares = np.array([[4.0, 30.0], [20.0, 5.0]]), np.array([0.3, 0.7])
    of_row = rng.choice(2, 20_000, p=shares)
    counts = np.maximum(rng.poisson(rates[of_row]), 0.5)  # zero lies outside the domain

    found = bregman_soft(counts, 2, divergence="kl", random_state=0)

    order = found.centers[:, 0].argsort()
    assert found.converged
    np.testing.assert_allclose(found.centers[order], rates, rtol=0.03)
    np.testing.assert_allclose(found.mixing[order], shares, rtol=0.03)
    assert (order[of_row] == found.labels(counts)).mean() > 0.99


def test_bregman_soft__is_hard_where_clusters_are_far_apart() -> None:
    rows, weights = mixture()
    rows *= 1e4

    hard = bregman_hard(rows, 5, sample_weight=weights, init=rows[:5], tol=0)
    soft = bregman_soft(rows, 5, sample_weight=weights, init=hard.centers, tol=0)

    np.testing.assert_allclose(soft.centers, hard.centers, rtol=1e-9)
    np.testing.assert_array_equal(soft.labels(rows), hard.labels(rows))
    counts = np.bincount(hard.labels(rows), weights=weights)
    np.testing.assert_allclose(soft.mixing, counts / weights.sum(), rtol=1e-9)


def test_bregman_soft__lets_a_component_without_rows_go() -> None:
    rows, weights = mixture()
    init = np.vstack([rows[:2], [[1e4, 1e4, 1e4]]])

    found = bregman_soft(rows, 3, sample_weight=weights, init=init)
    without = bregman_soft(rows, 2, sample_weight=weights, init=init[:2])

    assert found.mixing[2] == 0.0
    assert found.centers[2].tolist() == pytest.approx([1e4] * 3)
    np.testing.assert_allclose(found.centers[:2], without.centers, rtol=1e-9)
    assert found.cost == pytest.approx(without.cost, rel=1e-9)
    assert (found.responsibilities(rows)[:, 2] == 0.0).all()


@each_name
def test_bregman_soft__answers_for_new_rows(name: str) -> None:
    rows, weights = mixture()
    found = bregman_soft(rows, 3, divergence=name, sample_weight=weights, random_state=0)
    new, _ = mixture(60_000, seed=1)  # more than one tile
    logits = np.log(found.mixing) - found.divergence.divergence(new, found.centers)

    shares = found.responsibilities(new)

    total = logsumexp(logits, axis=1)
    np.testing.assert_allclose(shares, np.exp(logits - total[:, None]), rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose(found.costs(new), -total, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.labels(new), shares.argmax(axis=1))
    assert found.cost == pytest.approx(weights @ found.costs(rows), rel=1e-9)
    copy = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(copy.labels(new), found.labels(new))
