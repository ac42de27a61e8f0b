"""Lightweight Bregman coresets: the contract, plain readings of the formulas, and draws."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np

from daskcoreset import Draw, build
from daskcoreset.sensitivities import Lightweight, LightweightBregman
from daskcoreset.solvers.divergences import SquaredMahalanobis
from daskcoreset.testing import assert_mean, cut_rows
from tests.tools.bregman import FULL, POSITIVE, Own, halves, settled


def test_lightweight_squared_euclidean__is_lightweight_to_the_bit() -> None:
    X = np.random.default_rng(0).normal(1e3, 5.0, size=(500, 7)).astype(np.float32)
    blocks = cut_rows(X, [200, 0, 300])
    ways: list[Any] = [("systematic", 1), ("multinomial", 2)]
    for sampling, passes in ways:
        options: Any = {"size": 50, "random_state": 3, "draw": Draw(sampling, passes)}
        found = build(blocks, method=LightweightBregman(), **options)
        expected = build(blocks, method=Lightweight(), **options)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.weights, expected.weights)


def test_lightweight_mahalanobis__blocks_too_small_for_a_precision() -> None:
    # A block of two rows, one of equal rows: proposals by variances, or uniform.
    X = np.concatenate([POSITIVE, np.repeat(POSITIVE[:1], 5, axis=0)])
    blocks, method = cut_rows(X, [58, 2, 5]), LightweightBregman("mahalanobis")
    with dask.config.set(scheduler="synchronous"):
        estimates = [
            [one.total_weight, one.weights @ one.points[:, 0]]
            for seed in range(300)
            for one in [build(blocks, size=20, method=method, random_state=seed)]
        ]
    assert_mean(np.array(estimates), np.array([len(X), X[:, 0].sum()]))


def test_lightweight_own_divergence__with_a_full_matrix() -> None:
    own, fixed = LightweightBregman(Own()), LightweightBregman(SquaredMahalanobis(FULL))
    (_, found), (_, expected) = settled(own, *halves()), settled(fixed, *halves())
    for block in halves():  # the factor of the whole matrix cancels
        scores = own.scores(block, found)
        np.testing.assert_allclose(scores, fixed.scores(block, expected), rtol=1e-9)
