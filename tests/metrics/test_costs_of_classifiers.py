"""Costs of linear classifiers, against scikit-learn and plain sums."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.metrics import hinge_loss as sklearn_hinge
from sklearn.svm import SVC

from daskcoreset import SVM, build
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.metrics import costs as metrics
from daskcoreset.solvers.linear import solve_svm
from daskcoreset.testing import CountingArray

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.where(X[:, 0] + RNG.normal(size=300) > 0, "yes", "no")
SIGNS = np.where(Y == "yes", 1.0, -1.0)
U = RNG.random(300)


def test_svm_report__as_scikit_learn_has_it() -> None:
    model = LogisticRegression().fit(X, Y)
    found = metrics.svm_report(X, Y, model, 0.7, U)
    decisions = model.decision_function(X)
    assert found.accuracy == pytest.approx(accuracy_score(Y, model.predict(X), sample_weight=U))
    assert found.hinge_loss == pytest.approx(sklearn_hinge(Y, decisions, sample_weight=U))
    coef = model.coef_[0]
    expected = coef @ coef / 2 + 0.7 * U @ np.maximum(1 - SIGNS * decisions, 0)
    assert found.cost == pytest.approx(expected)


@pytest.mark.parametrize("form", ["dask", "sparse", "sorted"])
def test_svm_report__several_solutions_in_one_read(form: str) -> None:
    w = np.random.default_rng(0).normal(size=(4, 4))
    expected = [v[:3] @ v[:3] / 2 + np.maximum(1 - SIGNS * (X @ v[:3] + v[3]), 0).sum() for v in w]
    rows: Any = X
    labels: Any = Y
    if form == "dask":
        rows, labels = da.from_array(X, chunks=(77, 3)), da.from_array(Y, chunks=77)
    elif form == "sparse":
        rows = sp.csr_array(X)
    else:  # blocks of one class only
        order = np.argsort(Y, kind="stable")
        rows, labels = CountingArray(X[order]), Y[order]
    found = metrics.svm_cost(rows, labels, w)
    np.testing.assert_allclose(found, expected)
    if form == "sorted":
        assert (rows.reads == 1).all()
    again = metrics.svm_cost(rows, labels, w[:, :3], intercept=w[:, 3])
    np.testing.assert_allclose(again, expected)


def test_svm_report__one_class_with_classes() -> None:
    one = Y == "no"
    found = metrics.accuracy(X[one], Y[one], [1, 0, 0], classes=("no", "yes"))
    assert found == pytest.approx((X[one, 0] <= 0).mean())
    assert metrics.hinge_loss(X, Y, np.zeros(3), intercept=1.0) == pytest.approx(2 * one.mean())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "y is missing"),
        ({"w": [1.0]}, r"w has shape \(1,\)"),
        ({"w": [1.0, np.nan, 0.0]}, "not finite"),
        ({"w": np.zeros(4), "intercept": 1.0}, "holds a bias already"),
        ({"intercept": [1.0, 2.0]}, "intercept has shape"),
        ({"y": np.arange(300) % 3}, "y holds 3 classes"),
        ({"y": np.ones(300)}, "y holds 1 classes"),
        ({"y": np.full(300, np.nan)}, "missing or not finite at row 0"),
        ({"sample_weight": np.zeros(300)}, "zero for every row|where two are wanted"),
    ],
)
def test_svm_report__bad_input(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"X": X, "y": Y, "w": np.ones(3), **change}
    with pytest.raises(InvalidInputError, match=message):
        metrics.svm_report(**arguments)


def test_svm_sensitivity__what_a_coreset_reports() -> None:
    exact = metrics.svm_sensitivity(X, Y, sample_weight=U)
    coreset = build(
        X, Y, size=200, method=SVM(variant="systematic"), sample_weight=U, random_state=0
    )
    assert coreset.provenance["total_sensitivity"] == pytest.approx(exact, rel=1e-6)
    assert metrics.svm_sensitivity(X, Y, sample_weight=U, provable=True) >= exact
    for y, weights, message in (
        (np.ones(300), None, "one class only"),
        (None, None, "y is missing"),
        (Y, np.zeros(300), "zero for every row"),
        (np.full(300, np.nan), None, "missing or not finite"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            metrics.svm_sensitivity(X, y, sample_weight=weights)


# The solver


@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_solve_svm__as_libsvm(lam: float, offset: float) -> None:
    found = solve_svm(X + offset, SIGNS, U, lam, tol=1e-9)
    model = SVC(kernel="linear", C=lam, tol=1e-8).fit(X, SIGNS, sample_weight=U)
    expected = metrics.svm_cost(X, SIGNS, model, lam, U)
    assert found.cost == pytest.approx(expected, rel=1e-6)
    assert found.bound <= found.cost <= found.bound * (1 + 1e-6)
    cost = metrics.svm_cost(X + offset, SIGNS, found.coef, lam, U, intercept=found.intercept)
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
    wide = solve_svm(sp.csr_array(X[:5]), SIGNS[:5], U[:5])
    assert wide.cost <= U[:5].sum()
