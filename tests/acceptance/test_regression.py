"""Linear regression: what it costs to fit, and unbiased costs by leverage scores."""

from __future__ import annotations

import time
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Ridge

from tests.acceptance import face

estimators = face.estimators


def on_a_plane(n_rows: int, n_features: int, noise: float) -> tuple[Any, Any]:
    """Return rows and targets on a plane, but for noise."""
    rng = np.random.default_rng(n_features)
    X = rng.standard_t(3, size=(n_rows, n_features))
    return X, X @ np.arange(1.0, n_features + 1) - 7.0 + noise * rng.normal(size=n_rows)


@pytest.mark.parametrize(
    ("make", "solver"),
    [
        (estimators.CoresetRidge, Ridge(2.0)),
        (estimators.CoresetElasticNet, ElasticNet(2.0)),
        (lambda alpha, **options: estimators.CoresetRidge(alpha, exact=False, **options), None),
        (None, None),
    ],
)
def test_fit__targets_on_a_plane_take_no_longer_than_others(make: Any, solver: Any) -> None:
    seconds = []
    for noise in (1.0, 0.0):
        X, y = on_a_plane(20_000, 6, noise)
        begun = time.process_time()
        if make is None:
            face.build(X, y, method="least_squares", size=10_000, random_state=0)
        else:
            model = make(2.0, random_state=0).fit(X, y)
        seconds.append(time.process_time() - begun)
        if solver is not None:
            assert model.exact_
            np.testing.assert_allclose(model.coef_, solver.fit(X, y).coef_, rtol=1e-6)
    assert seconds[1] < 3.0 * seconds[0] + 0.5


def test_least_squares__costs_of_any_model_are_unbiased() -> None:
    X, y = on_a_plane(4_000, 3, 0.5)
    rows = da.from_array(X, chunks=(1_000, 3)), da.from_array(y, chunks=1_000)
    coef = np.array([0.0, 3.0, 3.0])
    true = float(np.square(y - X @ coef).sum())
    found = [
        face.build(*rows, method="least_squares", size=100, random_state=seed) for seed in range(30)
    ]
    costs = [one.weights @ np.square(one.labels - one.points @ coef) for one in found]
    z = (np.mean(costs) - true) / (np.std(costs, ddof=1) / np.sqrt(len(costs)))
    assert abs(z) < 4.0
