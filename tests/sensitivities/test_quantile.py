"""Coresets for quantile regression: the contract, the rounded loss, and solutions on them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

import daskcoreset
from daskcoreset import CoresetStream, QuantileRegression, build
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.objectives import PinballCost
from daskcoreset.sensitivities.quantile import round_pinball
from daskcoreset.solvers.quantile import solve_quantile
from daskcoreset.testing import SensitivityContract

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 4)) * RNG.lognormal(size=(4000, 1))
Y = X @ [1.0, -1.0, 0.5, 0.0] + RNG.standard_t(2, size=4000)


@pytest.mark.nightly  # the code of the other constructions; promises have short tests below
class TestQuantileRegression(SensitivityContract):
    n_seeds = 100

    def construction(self) -> QuantileRegression:
        return QuantileRegression(variant="systematic")


@pytest.mark.parametrize("quantile", [0.1, 0.5])
def test_round_pinball__a_little_above_and_its_slope(quantile: float) -> None:
    residuals = np.linspace(-3, 3, 601)
    loss, pull = round_pinball(residuals, quantile, 0.5)
    plain = np.maximum(quantile * residuals, (quantile - 1) * residuals)
    assert ((loss - plain >= -1e-15) & (loss - plain <= 0.125 + 1e-15)).all()
    np.testing.assert_allclose(np.gradient(loss, residuals)[1:-1], pull[1:-1], atol=1e-2)


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
def test_scores__three_tenths_by_the_bound_whatever_the_pilot() -> None:
    """Of a pilot that is wrong, too."""
    method, block = QuantileRegression(), Block(X, np.ones(4000), Y)
    A = np.column_stack([X, np.ones(4000)])
    basis, _ = np.linalg.qr(A)
    bound = np.linalg.norm(basis, axis=1) + 1 / 4000
    for y in (Y, -Y, 1e6 * X[:, 0]):
        summary: Any = None
        for fold, labels in enumerate((y, Y)):
            local = method.block_summary(
                Block(X, np.ones(4000), labels), summary, np.random.default_rng(fold)
            )
            summary = method.finalize(local, RNG)
        chance = (
            method.row_scores(block, summary) / method.total_scores(summary.sums, summary).sum()
        )
        assert (chance >= 0.2999 * bound / bound.sum()).all()
        assert chance.sum() == pytest.approx(1.0)


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
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("varies", [True, False])
def test_scores__of_sparse_rows_are_those_of_dense_ones(offset: float, varies: bool) -> None:
    rows = X[:24] * varies + [-1474.81547849, -469.34202518, 3.3, 0.1] + offset
    y, u = (Y[:24] > 0).astype(int), np.arange(24.0) % 4
    method, found = QuantileRegression(), []
    for points in (rows, sp.csr_array(rows)):
        block = Block(points, u, y)
        summary: Any = None
        for fold in range(method.n_folds):
            local = method.block_summary(block, summary, np.random.default_rng(fold))
            summary = method.finalize(local, RNG)
        found.append(method.scores(block, summary))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-8)


@pytest.mark.nightly
def test_solve_quantile__a_constant_column_leaves_the_quantile_alone() -> None:
    rows = np.tile([-1474.81547849, -469.34202518], (14, 1))
    coef, shift = solve_quantile(rows, (np.arange(14) < 10).astype(float), np.ones(14))
    assert coef.tolist() == [0.0, 0.0]
    assert shift == pytest.approx(1.0, abs=1e-3)


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


@pytest.mark.nightly
def test_stream__reduces_unions() -> None:
    stream = CoresetStream("quantile", size=200, random_state=0)
    for start in range(0, 4000, 500):
        stream.partial_fit(X[start : start + 500], Y[start : start + 500])
    assert stream.coreset().weights.sum() == pytest.approx(4000, rel=1e-6)


@pytest.mark.nightly
def test_quantile__bad_input() -> None:
    for quantile in (0.0, 1.0, 2.0):
        with pytest.raises(InvalidInputError, match="quantile"):
            QuantileRegression(quantile)
    with pytest.raises(InvalidInputError, match="variant must be"):
        QuantileRegression(variant="best")  # type: ignore[arg-type] # the check
    with pytest.raises(InvalidInputError, match="'quantile' needs labels"):
        build(X, size=10, method="quantile")
    with pytest.raises(InvalidInputError, match="y is missing or not finite at row 3"):
        build(X, np.where(np.arange(4000) == 3, np.nan, Y), size=10, method="quantile")
