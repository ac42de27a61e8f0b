"""Audits: costs on a coreset beside those on all data, and intervals for other solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from tests.acceptance import face


@pytest.mark.parametrize(
    "method", ["lightweight", "uniform", face.LightweightBregman("itakura_saito")]
)
def test_audit__after_build_with_every_default(method: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(3_000, 3)) + rng.integers(1, 9, (3_000, 1))
    report = face.build(X, size=400, method=method, random_state=0).audit(X, random_state=0)
    solutions = dict(zip(report.names, report.solutions, strict=True))
    assert {2, 8, 32} < {len(each) for each in solutions.values()} <= set(range(1, 33))
    for k in (2, 8, 32):
        assert sum(f"k={k}" in name for name in solutions) == len(solutions) // 3
    assert report.distortion < 0.5
    assert f"k={k}" in repr(report)


def test_audit__of_fewer_rows_than_centers() -> None:
    X = np.arange(6.0).reshape(3, 2)
    report = face.build(X, random_state=0).audit(X, random_state=0)
    np.testing.assert_allclose(report.on_coreset, report.on_data)


def rare_columns(*, standardised: bool) -> tuple[Any, Any]:
    """Rows of 0/1 columns, most of them rare, and labels that depend on them."""
    rng = np.random.default_rng(3)
    X = (rng.random((30_000, 60)) < np.geomspace(3e-4, 0.4, 60)).astype(np.float64)
    X[:, 5] = X[:, 6]  # a direction without variance
    y = X @ rng.normal(size=60) + 0.5 * rng.normal(size=len(X)) > 0.0
    return ((X - X.mean(axis=0)) / X.std(axis=0) if standardised else sp.csr_array(X)), y


@pytest.mark.filterwarnings("ignore:a solution fitted:daskcoreset.errors.CoresetWarning")
@pytest.mark.parametrize(
    ("method", "standardised"),
    [("svm", True), ("svm", False), ("logistic", True), ("logistic", False)],
)
def test_interval__of_linear_classifiers_on_rare_columns(method: str, standardised: bool) -> None:
    """A uniform sample of half the rows has a standard error of 1 to 2 % here."""
    X, y = rare_columns(standardised=standardised)
    coreset = face.build(X, y, size=300, method=method, random_state=0)
    report = coreset.audit(X, y, random_state=0)
    assert report.sample_size > 4_500  # half of the 10,000 go by weight alone
    rows = np.random.default_rng(1).choice(len(y), 2_000, replace=False)
    model = LogisticRegression().fit(X[rows], y[rows])
    z = model.decision_function(X) * np.where(y, 1.0, -1.0)
    losses = np.maximum(1.0 - z, 0.0) if method == "svm" else np.logaddexp(0.0, -z)
    true = 0.5 * float(np.square(model.coef_).sum()) + report.objective.lam * losses.sum()
    interval = report.interval(model)
    assert interval.low < true < interval.high
    assert 0.85 * true < interval.low
    assert interval.high < 1.2 * true
    assert interval.estimate == pytest.approx(true, rel=0.04)
