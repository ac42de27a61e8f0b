"""Coresets for quantile regression: the contract, the rounded loss, and solutions on them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskcoreset
from daskcoreset import QuantileRegression, build
from daskcoreset.core.blocks import Block
from daskcoreset.objectives import PinballCost
from daskcoreset.testing import SensitivityContract

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 4)) * RNG.lognormal(size=(4000, 1))
Y = X @ [1.0, -1.0, 0.5, 0.0] + RNG.standard_t(2, size=4000)


@pytest.mark.nightly  # the code of the other constructions; promises have short tests below
class TestQuantileRegression(SensitivityContract):
    def construction(self) -> QuantileRegression:
        return QuantileRegression(variant="systematic")


def excess(method: Any, rows: Any, y: Any, quantile: float, **options: Any) -> float:
    cost = PinballCost(quantile)
    block = Block(np.ascontiguousarray(rows), np.ones(len(rows)), y)
    full = cost.cost(block, cost.solve(block, RNG))
    found = []
    for seed in range(4):
        few = build(rows, y, size=300, method=method, random_state=seed, **options)
        solution = cost.solve(Block(few.points, few.weights, few.labels), RNG)
        found.append(cost.cost(block, solution) / full - 1)
    return float(np.mean(found))


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_build__less_than_a_third_of_the_excess_of_leverage(quantile: float) -> None:
    order = np.argsort(Y)  # blocks without any row near the quantile
    rows, y = X[order], Y[order]
    ours = excess(QuantileRegression(quantile), rows, y, quantile, chunks=500)
    leverage = daskcoreset.LeastSquares()
    assert ours < excess(leverage, rows, y, quantile, chunks=500) / 3


@pytest.mark.nightly
def test_build__calibrated_weights_and_their_record() -> None:
    coreset = build(da.from_array(X, chunks=500), Y, size=300, method="quantile", random_state=0)
    record = coreset.provenance
    assert record["passes"] == 2
    assert record["calibration"]["met"] == ("total weight", "gradient", "means")
    assert record["calibration"]["spread"] <= 20.0
    np.testing.assert_allclose(coreset.weights.sum(), 4000)
    np.testing.assert_allclose(coreset.weights @ coreset.points, X.sum(axis=0), atol=1e-3)
    assert coreset.audit(X, Y, random_state=0).objective == PinballCost(0.5)


@pytest.mark.nightly
def test_build__hostile_data() -> None:
    one = np.where(np.arange(4000) == 9, 1e9, 0.0)
    wide = RNG.normal(size=(100, 150))
    for rows, y, certain in [
        (X + 1e8, Y, False),
        (X, np.full(4000, 2.0), False),
        (np.column_stack([X, X[:, 0], np.ones(4000)]), Y, False),
        (X, Y + one, True),
        (X + one[:, np.newaxis], Y, True),
        (wide, Y[:100], False),
        (X, (Y > 0).astype(float), False),
    ]:
        coreset = build(rows, y, size=len(rows) // 20 + 10, method="quantile", random_state=0)
        assert np.isfinite(coreset.weights).all()
        assert (coreset.weights > 0).all()
        np.testing.assert_allclose(coreset.weights.sum(), len(rows))
        assert 9 in coreset.indices or not certain
