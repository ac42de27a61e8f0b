"""Builds by Bregman constructions: quality, construction as values, and bad input."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskcoreset
from daskcoreset.core.typing import FloatArray
from daskcoreset.sensitivities import LightweightBregman, StrongBregman
from daskcoreset.solvers.bregman import bregman_hard
from daskcoreset.solvers.bregman_soft import bregman_soft

# --- quality -----------------------------------------------------------------------------


def poisson(n: int = 20_000) -> FloatArray:
    rng = np.random.default_rng(7)
    rates = np.array([[3.0, 30.0], [40.0, 5.0], [60.0, 60.0], [200.0, 150.0]])
    component = rng.choice(4, size=n, p=[0.6, 0.3, 0.09, 0.01])
    return np.asarray(rng.poisson(rates[component]) + 0.5)


@pytest.mark.parametrize("method", [LightweightBregman("kl"), StrongBregman(4, "kl")])
def test_quality__hard_and_soft_clustering_of_a_poisson_mixture(method: Any) -> None:
    X = poisson()
    lazy = da.from_array(X, chunks=(5000, 2))
    coreset = daskcoreset.build(lazy, size=600, method=method, random_state=1)
    assert 0 < coreset.provenance.get("similarity", 0.1) < 1
    options: Any = {"divergence": "kl", "n_init": 3, "random_state": 0}
    weights: Any = {"sample_weight": coreset.weights}
    for solve in (bregman_hard, bregman_soft):
        full = solve(X, 4, **options)
        small = solve(coreset.points, 4, **weights, **options)
        assert small.costs(X).sum() < 1.03 * full.costs(X).sum()
        # What the coreset says of a solution is what all data say of it.
        assert small.cost == pytest.approx(small.costs(X).sum(), rel=0.1)
