"""Logistic regression and least squares: scores, calibrated sums, and exact solutions."""

from __future__ import annotations

import time
import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.plain import PlainLogistic


def data(n: int = 300, d: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([1.0, 5.0, 0.2])[:d] + 7.0
    X[::37] += 6.0 * rng.normal(size=(len(X[::37]), d))
    return X, rng.normal(size=n), rng.uniform(0.3, 2.0, size=n)


def quiet(X: Any, y: Any, **options: Any) -> face.Coreset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        return face.build(X, y, **{"random_state": 0} | options)


def leverage(rows: Any, u: Any, *, intercept: bool) -> Any:
    """About the mean, or the origin, with a millionth of the variance added."""
    if not intercept:
        gram = (rows * u[:, np.newaxis]).T @ rows
        return read.leverages(rows, u, 1e-6 * np.diag(gram))
    gaps = rows - read.mean_of(rows, u)
    return 1 / u.sum() + read.leverages(gaps, u, 1e-6 * (u @ gaps**2))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 30.0])
def test_least_squares__scores_are_leverages(alpha: float, intercept: bool) -> None:
    X, noise, u = data()
    y = X @ [1.0, 0.3, -2.0] + noise
    rows = np.column_stack([X, y])
    wanted = u * leverage(rows, u, intercept=intercept)
    if alpha:
        center = read.mean_of(rows, u) if intercept else np.zeros(4)
        gaps = rows - center
        gram = (gaps * u[:, np.newaxis]).T @ gaps + np.diag([alpha] * 3 + [0.0])
        gram += 1e-6 * np.diag(np.diag(gram))
        wanted = u * np.einsum("ij,jk,ik->i", gaps, np.linalg.inv(gram), gaps)
        wanted += u / u.sum() * intercept
    method = face.LeastSquares(intercept=intercept, alpha=alpha)
    c = quiet(X, y, sample_weight=u, size=60, method=method)
    assert np.allclose(c.weights, (u / read.inclusion(wanted, 60))[c.indices], rtol=1e-5)
    blocks = [face.block(X[at], u[at], y[at]) for at in (slice(0, 130), slice(130, 300))]
    found = face.scores(method, *blocks)
    assert np.allclose(np.concatenate(found), wanted, rtol=1e-6)
    assert np.allclose(face.total_scores(method, *blocks), [s.sum() for s in found])
    if not alpha:
        assert wanted.sum() == pytest.approx(4 + intercept, rel=1e-3)


@pytest.mark.parametrize("kind", ["memory", "chunks", "sparse", "offset"])
@pytest.mark.parametrize("intercept", [True, False])
def test_ridge__is_exact(kind: str, intercept: bool) -> None:
    """From moments of all rows; also with weights of zero, far from the origin, and sparse."""
    X, noise, u = data(700)
    u[::9] = 0.0
    if kind == "sparse":
        X[np.abs(X - 7.0) < 1.0] = 0.0
    if kind == "offset" and intercept:
        X = X + 1e6
    y = X @ [1.0, 0.3, -2.0] + noise + 3.0
    rows: Any = sp.csr_array(X) if kind == "sparse" else X
    if kind == "chunks":
        rows = da.from_array(X, chunks=(150, 3))
    model = face.estimators.CoresetRidge(alpha=5.0, fit_intercept=intercept, size=100)
    model.fit(rows, da.from_array(y, chunks=150) if kind == "chunks" else y, sample_weight=u)
    center = X.T @ u / u.sum() if intercept else np.zeros(3)
    y_mean = u @ y / u.sum() if intercept else 0.0
    gaps = X - center
    gram = (gaps * u[:, np.newaxis]).T @ gaps + 5.0 * np.eye(3)
    coef = np.linalg.solve(gram, gaps.T @ (u * (y - y_mean)))
    assert np.allclose(model.coef_, coef, rtol=1e-6)
    assert model.intercept_ == pytest.approx(y_mean - coef @ center, rel=1e-6, abs=1e-9)
    assert np.allclose(np.asarray(model.predict(rows)), X @ coef + model.intercept_, rtol=1e-6)


@pytest.mark.parametrize("l1_ratio", [0.2, 1.0])
def test_elastic_net__is_exact(l1_ratio: float) -> None:
    X, noise, u = data(500)
    y = X @ [1.0, 0.3, 0.0] + noise
    model = face.estimators.CoresetElasticNet(0.3, l1_ratio=l1_ratio, tol=1e-10, max_iter=10**5)
    model.fit(da.from_array(X, chunks=(120, 3)), da.from_array(y, chunks=120), sample_weight=u)
    own = ElasticNet(0.3, l1_ratio=l1_ratio, tol=1e-12, max_iter=10**5).fit(X, y, u)
    assert np.allclose(model.coef_, own.coef_, rtol=1e-4, atol=1e-6)
    assert model.intercept_ == pytest.approx(own.intercept_, rel=1e-4)


def labels_of(X: Any, noise: Any) -> Any:
    return ((X - 7.0) @ [0.8, 0.1, 0.5] + 1.2 * noise > 0.3).astype(int)


@pytest.mark.parametrize("intercept", [True, False])
def test_logistic__scores_are_a_mixture(intercept: bool) -> None:
    """Two fifths by gradients at the best model, three by roots of leverage."""
    X, noise, u = data()
    y = labels_of(X, noise)
    options = {"C": 2.0, "tol": 1e-10, "max_iter": 10**4, "fit_intercept": intercept}
    model = LogisticRegression(**options).fit(X, y, u)
    p = model.predict_proba(X)[:, 1]
    lever, total = leverage(X, u, intercept=intercept), u.sum()
    bound = np.sqrt(lever) + lever / 2 * np.sqrt(total / (X.shape[1] + 1)) + 1 / total
    pull = u * np.abs(p - y) * np.sqrt(lever)
    wanted = 0.4 * pull / pull.sum() + 0.6 * u * bound / (u @ bound)
    method = PlainLogistic(lam=2.0, intercept=intercept)
    blocks = [face.block(X[at], u[at], y[at]) for at in (slice(0, 130), slice(130, 300))]
    found = face.scores(method, *blocks)
    assert np.allclose(np.concatenate(found), wanted, rtol=2e-3)
    assert np.allclose(face.total_scores(method, *blocks), [part.sum() for part in found])
    c = quiet(X, y, sample_weight=u, size=40, method=method)
    assert np.allclose(c.weights, (u / read.inclusion(wanted, 40))[c.indices], rtol=3e-3)


def test_logistic__calibration_meets_its_sums() -> None:
    X, noise, u = data(1500)
    y = labels_of(X, noise)
    c = quiet(X, y, sample_weight=u, size=150, method="logistic", chunks=400)
    labels, v = y[c.indices], c.weights
    met = set(c.provenance["calibration"]["met"])
    for one in (0, 1):
        assert v[labels == one].sum() == pytest.approx(u[y == one].sum(), rel=1e-9)
        if "class means" in met:
            sums = v[labels == one] @ c.points[labels == one]
            assert np.allclose(sums, u[y == one] @ X[y == one], rtol=1e-5)
    assert {"class totals", "gradient"} <= met
    options = {"C": 1.0, "tol": 1e-8, "max_iter": 10**4}
    whole = LogisticRegression(**options).fit(X, y, u)
    part = LogisticRegression(**options).fit(c.points, labels, v)
    costs = [
        np.square(m.coef_).sum() / 2 - u @ m.predict_log_proba(X)[np.arange(1500), y]
        for m in (whole, part)
    ]
    assert costs[1] <= costs[0] * 1.003


@pytest.mark.parametrize("k", [2, 3])
def test_logistic_model__on_all_rows_is_that_of_scikit_learn(k: int) -> None:
    X, noise, u = data(240)
    y = labels_of(X, noise) if k == 2 else np.digitize(X[:, 0] + noise, [6.5, 7.5])
    options = {"C": 0.5, "tol": 1e-9, "max_iter": 10**4}
    own = LogisticRegression(**options).fit(X, y, u)
    model = face.estimators.CoresetLogisticRegression(size=240, estimator=own)
    model.fit(X, y, sample_weight=u)
    assert np.allclose(model.coef_, own.coef_, rtol=1e-4, atol=1e-6)
    assert np.allclose(model.predict_proba(X), own.predict_proba(X), atol=1e-5)


def on_a_plane(n_rows: int, n_features: int, noise: float) -> tuple[Any, Any]:
    """Return rows and targets on a plane, but for noise."""
    rng = np.random.default_rng(n_features)
    X = rng.standard_t(3, size=(n_rows, n_features))
    return X, X @ np.arange(1.0, n_features + 1) - 7.0 + noise * rng.normal(size=n_rows)


@pytest.mark.parametrize(
    ("make", "solver"),
    [
        (face.estimators.CoresetRidge, Ridge(2.0)),
        (face.estimators.CoresetElasticNet, ElasticNet(2.0)),
        (
            lambda alpha, **options: face.estimators.CoresetRidge(
                alpha, estimator=Ridge(alpha), **options
            ),
            None,
        ),
        (None, None),
    ],
)
def test_fit__targets_on_a_plane_take_no_longer_than_others(make: Any, solver: Any) -> None:
    seconds = []
    face.build(*on_a_plane(300, 2, 1.0), method="least_squares", size=50)  # compiles loops
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
