"""Costs are those of their formulas, and solutions that are made for them are nearly the best."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture

from tests.acceptance import face

rng = np.random.default_rng(0)
N, D = 400, 3
X = rng.normal(loc=[0.0, 3.0, -1.0], size=(N, D))
U = rng.uniform(0.0, 4.0, N) * (rng.random(N) > 0.1)
Y = (X @ [1.0, -0.5, 0.2] + rng.normal(size=N) > -1.0).astype(np.int64)
T = X @ [1.0, -0.5, 0.2] + rng.normal(size=N) + 7.0


def seeded() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_linear_cost__of_classifiers(loss: Any, intercept: bool) -> None:
    cost = face.objectives.LinearCost(loss, lam=0.3, intercept=intercept)
    block = face.block(X, U, Y)

    def plain(w: Any, b: float) -> float:
        z = np.where(Y == 1, 1.0, -1.0) * (X @ w + b)
        losses = np.maximum(1 - z, 0) if loss == "hinge" else np.log1p(np.exp(-z))
        return float(w @ w / 2 + 0.3 * (U * losses).sum())

    solution = face.objectives.LinearClassifier(np.array([0.4, -0.2, 0.1]), 0.7, 1)
    assert cost.cost(block, solution) == pytest.approx(plain(solution.coef, 0.7), rel=1e-12)
    sparse = face.block(sp.csr_array(X), U, Y)
    assert cost.cost(sparse, solution) == pytest.approx(plain(solution.coef, 0.7), rel=1e-12)
    found = cost.solve(block, seeded())
    assert found.positive == 1
    assert intercept or found.intercept == 0.0
    free = (lambda v: plain(v[:3], v[3])) if intercept else (lambda v: plain(v, 0.0))
    options = {"maxiter": 4000, "maxfev": 4000, "fatol": 1e-9}
    start = np.append(found.coef, found.intercept) if intercept else found.coef
    best = minimize(free, start, method="Nelder-Mead", options=options).fun
    assert plain(found.coef, found.intercept) <= best * (1 + 2e-4)
    names = [name for name, _ in cost.candidates(block, seeded())]
    assert len(set(names)) == len(names) == 7
    for _, made in cost.candidates(block, seeded()):
        assert np.isfinite(cost.cost(block, made))
        assert intercept or made.intercept == 0.0


def test_linear_cost__reads_models_and_labels() -> None:
    cost = face.objectives.LinearCost("logistic")
    model = LogisticRegression().fit(X, np.where(Y, "yes", "no"))
    solution = cost.read(model, D, "solution")
    assert (solution.positive, solution.intercept) == ("yes", model.intercept_[0])
    assert np.array_equal(solution.coef, model.coef_[0])
    with pytest.raises(face.CoresetError, match="3 coefficients"):
        cost.read(model, D + 1, "solution")
    three = LogisticRegression().fit(X, np.digitize(T, [6.0, 8.0]))
    with pytest.raises(face.CoresetError, match="3 classes"):
        cost.read(three, D, "solution")
    with pytest.raises(face.CoresetError, match="LinearRegression"):
        cost.read(LinearRegression().fit(X, T), D, "solution")
    numbers = LogisticRegression().fit(X, Y)
    positive = cost.read(numbers, D, "solution")
    text = cost.labelled(positive, face.block(X, U, np.where(Y, "1", "0")), "solution")
    assert text.positive == "1"
    assert cost.labelled(positive, face.block(X, U, Y), "solution") is positive
    with pytest.raises(face.CoresetError, match="'yes'"):
        cost.labelled(solution, face.block(X, U, Y), "solution")
    with pytest.raises(face.CoresetError, match="class 7"):
        cost.labelled(replace(positive, positive=7), face.block(X, U, Y), "solution")
    with pytest.raises(face.CoresetError, match="one class"):
        cost.solve(face.block(X, U, np.ones(N, np.int64)), seeded())


@pytest.mark.parametrize(("intercept", "alpha"), [(True, 0.0), (False, 2.5), (True, 40.0)])
def test_least_squares_cost__and_its_solution(intercept: bool, alpha: float) -> None:
    cost = face.objectives.LeastSquaresCost(intercept, alpha)
    rows = X + 1e5 * np.eye(D)[1]
    block = face.block(rows, U, T)
    found = cost.solve(block, seeded())
    columns = np.column_stack([rows, np.ones(N)]) if intercept else rows
    gram = (columns.T * U) @ columns + alpha * np.diag([1.0] * D + [0.0] * intercept)
    wanted = np.linalg.solve(gram, (columns.T * U) @ T)
    residuals = T - columns @ wanted
    best = U @ residuals**2 + alpha * (wanted[:D] @ wanted[:D])
    assert cost.cost(block, found) == pytest.approx(best, rel=1e-6)
    assert intercept or found.intercept == 0.0
    given = face.objectives.LinearPredictor(np.array([0.5, 0.0, 1.0]), 2.0)
    gaps = T - rows @ given.coef - 2.0
    assert cost.cost(block, given) == pytest.approx(U @ gaps**2 + alpha * 1.25, rel=1e-12)
    means = [made for name, made in cost.candidates(block, seeded()) if name == "mean"]
    assert means[0].intercept == pytest.approx(np.average(T, weights=U))
    read = cost.read(LinearRegression().fit(X, T), D, "solution")
    assert cost.cost(face.block(X, None, T), read) == pytest.approx(
        ((T - LinearRegression().fit(X, T).predict(X)) ** 2).sum() + alpha * (read.coef @ read.coef)
    )


def test_quantization_error__of_centers() -> None:
    cost = face.objectives.QuantizationError(4)
    centers = X[[3, 50, 200, 399]]
    gaps = ((X[:, None] - centers) ** 2).sum(axis=2).min(axis=1)
    for rows in (X, sp.csr_array(X), X.astype(np.float32)):
        assert cost.cost(face.block(rows, U), centers) == pytest.approx(U @ gaps, rel=1e-6)
    mean = dict(cost.candidates(face.block(X, U), seeded()))["mean"]
    assert np.allclose(mean, np.average(X, axis=0, weights=U), rtol=1e-12)
    apart = np.repeat(np.eye(3) * 50.0, 40, axis=0) + 0.1 * rng.normal(size=(120, 3))
    found = face.objectives.QuantizationError(3).solve(face.block(apart), seeded())
    assert sorted(np.argmax(found, axis=1).tolist()) == [0, 1, 2]
    assert cost.read(sp.csr_array(centers), D, "centers").shape == (4, 3)
    for bad, words in ((centers[:, :2], "columns of X"), (centers * np.nan, "finite"), ("a", "k")):
        with pytest.raises(face.CoresetError, match=words):
            cost.read(bad, D, "centers")


def test_distortion__of_a_divergence() -> None:
    cost = face.objectives.Distortion(3, "kl")
    rows = np.exp(X / 3.0)
    centers = rows[[0, 100, 300]]
    parts = [(rows * np.log(rows / c) - rows + c).sum(axis=1) for c in centers]
    wanted = float(U @ np.min(parts, axis=0))
    assert cost.cost(face.block(rows, U), centers) == pytest.approx(wanted, rel=1e-9)
    assert cost.cost(face.block(rows, U), cost.solve(face.block(rows, U), seeded())) < wanted
    with pytest.raises(face.CoresetError):
        cost.read(-centers, D, "centers")


def log_likelihood(solution: Any) -> float:
    model = GaussianMixture(len(solution.weights), covariance_type=solution.covariance_type)
    model.weights_, model.means_ = solution.weights, solution.means
    model.precisions_cholesky_ = solution.precisions_cholesky
    return float(U @ model.score_samples(X))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_mixture_cost__of_fitted_mixtures(kind: Any) -> None:
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    cost = face.objectives.MixtureCost(2)
    solution = cost.read(model, D, "solution")
    found = model.covariances_
    wide = (
        np.broadcast_to(found, (2, *np.shape(found)[-2:]))
        if kind in ("full", "tied")
        else [one * np.eye(D) for one in found]
    )
    covariances = list(wide)
    parts = list(zip(model.weights_, model.means_, covariances, strict=True))
    density = sum(w * multivariate_normal(m, c).pdf(X) for w, m, c in parts)
    z = sum(w / np.sqrt(np.linalg.det(2 * np.pi * c)) for w, _, c in parts)
    wanted = float(U @ (np.log(z) - np.log(density)))
    block = face.block(X, U)
    assert cost.cost(block, solution) == pytest.approx(wanted, rel=1e-9)
    one = cost.poor(block)
    assert np.allclose(one.means, np.average(X, axis=0, weights=U), atol=1e-9)
    made = cost.solve(block, seeded())
    assert log_likelihood(made) >= log_likelihood(one)
    with pytest.raises(face.CoresetError, match="3 dimensions"):
        cost.read(model, D + 1, "solution")
