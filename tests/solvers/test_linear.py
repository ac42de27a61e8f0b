"""Linear classifiers against libsvm, and against their own bounds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from daskcoreset.solvers.linear import solve_svm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
SIGNS = np.where(X[:, 0] + RNG.normal(size=300) > 0, 1.0, -1.0)
U = RNG.random(300)


def svm_cost(X: np.ndarray, coef: np.ndarray, intercept: float, lam: float) -> float:
    hinge = np.maximum(1 - SIGNS * (X @ coef + intercept), 0)
    return float(coef @ coef / 2 + lam * U @ hinge)


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


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["units", "separable", "heavy tails", "uneven weights", "wide"])
def test_solve_svm__the_bound_comes_within_the_tolerance(kind: str, intercept: bool) -> None:
    rows, signs, weights = X.copy(), SIGNS, U
    if kind == "units":
        rows *= np.array([1e-6, 1.0, 1e6])
    elif kind == "separable":
        rows[:, 0] += 9.0 * SIGNS
    elif kind == "heavy tails":
        rows = np.exp(3.0 * rows)
    elif kind == "uneven weights":
        weights = U * 10.0 ** RNG.uniform(-6, 6, size=300) * (U > 0.1)
    else:
        rows = RNG.normal(size=(300, 400))
    found = solve_svm(rows, signs, weights, intercept=intercept, tol=1e-8)
    assert found.bound <= found.cost <= found.bound * (1 + 2e-8)
    loss = np.maximum(1 - signs * (rows @ found.coef + found.intercept), 0)
    cost = found.coef @ found.coef / 2 + weights @ loss
    assert cost == pytest.approx(found.cost, rel=1e-6)
    assert intercept or found.intercept == 0.0


def test_solve_svm__one_class_and_sparse_rows() -> None:
    alone = solve_svm(X, np.ones(300), U)
    assert (alone.cost, alone.intercept) == (0.0, 1.0)
    sparse, dense = (solve_svm(rows, SIGNS, U) for rows in (sp.csr_array(X), X))
    np.testing.assert_array_equal(sparse.coef, dense.coef)
