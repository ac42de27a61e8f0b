"""Starts of EM: weighted seeds, and states that repeat."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from daskcoreset.solvers.mixture.em import fit_mixture


def test_start__k_means_is_weighted() -> None:
    # Of two clusters, the third row deserves one unless it weighs next to nothing.
    X, u = np.array([[0.0], [1.0], [10.0]]), np.array([1e6, 1e6, 1.0])
    start = partial(fit_mixture, X, n_components=2, max_iter=0, random_state=0)

    np.testing.assert_allclose(np.sort(start().mixture.means[:, 0]), [0.5, 10.0])
    means = np.sort(start(sample_weight=u).mixture.means[:, 0])
    np.testing.assert_allclose(means, [0.0, 1.0], atol=1e-4)


@pytest.mark.parametrize("init_params", ["k-means++", "random_from_data"])
def test_start__seeds_are_drawn_by_weight(init_params: Any) -> None:
    X = np.arange(40.0)[:, np.newaxis]
    u = np.where(np.arange(40) % 2, 1e-9, 1.0)
    for seed in range(10):
        fit = fit_mixture(
            X, u, n_components=5, init_params=init_params, max_iter=0, random_state=seed
        )
        means = np.round(fit.mixture.means[:, 0], 9)
        assert (means % 2 == 0.0).all()
        assert len(np.unique(means)) == 5


def test_start__random_responsibilities_are_weighted() -> None:
    X = np.repeat([[0.0], [1.0]], 500, axis=0)
    u = np.repeat([1e-9, 1.0], 500)
    fit = fit_mixture(X, u, n_components=2, init_params="random", max_iter=0, random_state=0)

    np.testing.assert_allclose(fit.mixture.means, 1.0, atol=1e-6)
    np.testing.assert_allclose(fit.mixture.weights, 0.5, atol=0.1)
