"""Linear classifiers against libsvm, and the rounded hinge."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from daskcoreset.solvers.linear import solve_svm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.where(X[:, 0] + RNG.normal(size=300) > 0, "yes", "no")
U = RNG.random(300)


SIGNS = np.where(Y == "yes", 1.0, -1.0)


def svm_cost(X: np.ndarray, coef: np.ndarray, intercept: float, lam: float) -> float:
    hinge = np.maximum(1 - SIGNS * (X @ coef + intercept), 0)
    return float(coef @ coef / 2 + lam * U @ hinge)


# The solver


@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_solve_svm__as_libsvm(lam: float, offset: float) -> None:
    found = solve_svm(X + offset, SIGNS, U, lam, tol=1e-9)
    model = SVC(kernel="linear", C=lam, tol=1e-8).fit(X, SIGNS, sample_weight=U)
    expected = svm_cost(X, model.coef_[0], model.intercept_[0], lam)
    assert found.cost == pytest.approx(expected, rel=1e-6)
    assert found.bound <= found.cost <= found.bound * (1 + 1e-6)
    cost = svm_cost(X + offset, found.coef, found.intercept, lam)
    assert cost == pytest.approx(found.cost, rel=1e-6)


def test_solve_svm__without_intercept_one_class_and_units() -> None:
    free = solve_svm(X, SIGNS, U, intercept=False, tol=1e-8)
    assert free.intercept == 0.0
    assert free.bound <= free.cost <= free.bound * (1 + 1e-6)
    alone = solve_svm(X, np.ones(300), U)
    assert (alone.cost, alone.intercept) == (0.0, 1.0)
    scale = np.array([1e-6, 1.0, 1e6])
    wild = solve_svm(X * scale, SIGNS, U, tol=1e-6)
    assert wild.bound <= wild.cost <= wild.bound * (1 + 1e-4)
    large = solve_svm(X * 1e8, SIGNS, U, 1e6, tol=1e-5)
    assert large.bound <= large.cost <= large.bound * (1 + 1e-4)
    wide = solve_svm(sp.csr_array(X[:5]), SIGNS[:5], U[:5])
    assert wide.cost <= U[:5].sum()


def test_solve_svm__of_more_columns_than_rows_is_the_same_solution() -> None:
    rng = np.random.default_rng(0)
    rows, signs = rng.normal(size=(30, 20)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    wide = np.hstack([rows, np.zeros((30, 40))]) @ np.linalg.qr(rng.normal(size=(60, 60)))[0]
    for intercept in (True, False):
        few = solve_svm(rows, signs, np.ones(30), intercept=intercept)
        many = solve_svm(wide, signs, np.ones(30), intercept=intercept)
        assert many.cost == pytest.approx(few.cost, rel=1e-5)
        assert many.coef.shape == (60,)
        values = wide @ many.coef + many.intercept
        cost = 0.5 * many.coef @ many.coef + np.maximum(1 - signs * values, 0).sum()
        assert cost == pytest.approx(many.cost, rel=1e-9)


@pytest.mark.parametrize("unit", [2.0**520, 2.0**900])
def test_solve_svm__of_weights_whose_squares_overflow(unit: float) -> None:
    rng = np.random.default_rng(1)
    rows, signs = rng.normal(size=(60, 3)), np.where(rng.random(60) < 0.4, 1.0, -1.0)
    found = solve_svm(rows, signs, np.full(60, unit))
    costs = np.maximum(1 - signs * (rows @ found.coef + found.intercept), 0).sum() * unit
    assert found.cost == pytest.approx(costs, rel=1e-9)
    assert 0.0 <= found.bound <= found.cost * (1 + 1e-9)
