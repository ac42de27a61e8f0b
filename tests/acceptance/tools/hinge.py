"""Rows of classes, and the optimum of the cost of a support vector machine on them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.svm import SVC, LinearSVC

from tests.acceptance import face
from tests.acceptance.tools import readings as read


def two_classes(n: int = 300, d: int = 2, seed: int = 0) -> tuple[Any, Any, Any]:
    """Overlapping classes, one twice as heavy, and uneven weights."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 > 0).astype(np.int64)
    X = rng.normal(size=(n, d)) * 1.5
    X[:, 0] += np.where(y > 0, 1.0, -1.0)
    return X + 4.0, y, rng.uniform(0.5, 2.0, size=n)


def solved(
    X: Any, y: Any, u: Any, lam: float, *, tol: float = 1e-8, intercept: bool = True
) -> tuple[Any, float, float]:
    """Return the optimum of F by scikit-learn: w, b and the cost."""
    signs = np.where(y, 1.0, -1.0)
    if intercept:
        model = SVC(kernel="linear", C=lam, tol=tol)
    else:
        model = LinearSVC(C=lam, loss="hinge", fit_intercept=False, tol=tol, max_iter=10**6)
    model.fit(X, signs, sample_weight=u)
    w, b = model.coef_[0], float(np.atleast_1d(model.intercept_)[0])
    return w, b, read.svm_cost(X, signs, u, w, b, lam=lam)


def problems(y: Any) -> list[Any]:
    """Labels of every problem: one for each class against the rest, or one of two classes."""
    classes = np.unique(y)
    return [y == one for one in (classes if len(classes) > 2 else classes[1:])]


def mixed(X: Any, y: Any, u: Any, lam: float, *, intercept: bool = True) -> tuple[Any, Any, Any]:
    """Return scores by bound, by half of each, and margins, with a cell for each class."""
    gaps = X - read.mean_of(X, u) * intercept
    unit = u @ (gaps**2).mean(axis=1) / u.sum()
    pull, margins, costs = np.zeros(len(X)), [], []
    for own in problems(y):
        w, b, cost = solved(X, own, u, lam, intercept=intercept, tol=1e-4)
        margins.append(np.where(own, 1.0, -1.0) * (X @ w + b))
        pull += 1 / (1 + np.exp(2 * (margins[-1] - 1)))
        costs.append(cost)
    bound = read.svm_scores(X, u, y, opt=min(costs), lam=lam, easy=3)
    activity = u * pull * np.sqrt((gaps**2).sum(axis=1) + unit)
    halves = bound / (2 * bound.sum()) + activity / (2 * activity.sum())
    return bound, halves, np.stack(margins, axis=1)


def quiet(X: Any, y: Any, *, random_state: Any = 0, **options: Any) -> face.Coreset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        return face.build(X, y, random_state=random_state, **options)


def sums_at(X: Any, y: Any, u: Any, w: Any, b: float) -> float:
    return read.svm_cost(X, np.where(y, 1.0, -1.0), u, w, b, lam=1.0)
