"""The papers' formulas in plain NumPy: the judges of scores, weights and costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def mean_of(X: Array, u: Array) -> Array:
    """Weighted mean of the rows."""
    mean: Array = (u[:, np.newaxis] * X).sum(axis=0) / u.sum()
    return mean


def scatter_of(X: Array, u: Array) -> Array:
    """Weighted scatter of the rows about their mean."""
    gaps = X - mean_of(X, u)
    scatter: Array = (gaps * u[:, np.newaxis]).T @ gaps
    return scatter


def distances(X: Array, centers: Array) -> Array:
    """Squared distances of rows to centers, of shape (n, k)."""
    gaps = X[:, np.newaxis, :] - centers[np.newaxis]
    found: Array = (gaps**2).sum(axis=2)
    return found


def kmeans_cost(X: Array, u: Array, centers: Array) -> float:
    """Weighted squared distances to the nearest centers."""
    return float(u @ distances(X, centers).min(axis=1))


def uniform(X: Array, u: Array) -> Array:
    """Probabilities of uniform draws."""
    del X
    share: Array = u / u.sum()
    return share


def half_and_half(u: Array, d: Array) -> Array:
    """Half the draw by weight, half by weighted distances."""
    q: Array = u / (2 * u.sum()) + u * d / (2 * (u @ d))
    return q


def lightweight(X: Array, u: Array) -> Array:
    """Algorithm 1 of Bachem, Lucic and Krause (2018)."""
    return half_and_half(u, distances(X, mean_of(X, u)[np.newaxis])[:, 0])


def strong(X: Array, u: Array, cells: Array) -> Array:
    """Algorithm 2 of Lucic, Bachem and Krause (2016), by given cells about their means."""
    k = int(cells.max()) + 1
    alpha = 16 * (math.log(k) + 2)
    masses = np.bincount(cells, u)
    means = np.stack([mean_of(X[cells == i], u[cells == i]) for i in range(k)])
    d = ((X - means[cells]) ** 2).sum(axis=1)
    costs = np.bincount(cells, u * d)
    mean_cost = costs.sum() / u.sum()
    s = alpha * d / mean_cost
    s = s + (2 * alpha * costs / (masses * mean_cost) + 4 * u.sum() / masses)[cells]
    q: Array = u * s / (u @ s)
    return q


def svm_cost(X: Array, y: Array, u: Array, w: Array, b: float, *, lam: float) -> float:
    """Half the squared length, and lambda times the hinge losses."""
    return float(w @ w / 2 + lam * (u @ np.maximum(1 - y * (X @ w + b), 0)))


def svm_scores(X: Array, u: Array, cells: Array, *, opt: float, lam: float, easy: float) -> Array:
    """Lemma 2 of Tukan et al. (2020), u included; `easy` is 2 as stated and 3 as proved."""
    total, masses = u.sum(), np.bincount(cells, u)
    means = np.stack([mean_of(X[cells == i], u[cells == i]) for i in range(len(masses))])
    d = ((X - means[cells]) ** 2).sum(axis=1)
    alpha = ((total - masses) / (2 * lam * total * masses))[cells]
    steep = np.sqrt(4 * alpha**2 + 2 * d / (9 * opt)) - 2 * alpha
    bound = u / masses[cells] + 4.5 * lam * u * np.maximum(easy * 2 / 9 * alpha, steep)
    return np.asarray(bound)


def leverages(rows: Array, u: Array, ridge: Array | float = 0.0) -> Array:
    """Leverages of rows of weight one."""
    gram = (rows * u[:, np.newaxis]).T @ rows + np.diag(ridge * np.ones(rows.shape[1]))
    return np.asarray(np.einsum("ij,ij->i", rows @ np.linalg.pinv(gram), rows))


def inclusion(scores: Array, size: float) -> Array:
    """Inclusion probabilities in proportion to scores, at most one, that sum to `size`."""
    p = np.zeros(len(scores))
    certain = np.zeros(len(scores), dtype=bool)
    while True:
        rest = ~certain & (scores > 0)
        p[certain] = 1.0
        p[rest] = scores[rest] / scores[rest].sum() * (size - certain.sum())
        above = rest & (p > 1.0)
        if not above.any():
            return np.minimum(p, 1.0)
        certain |= above


def z_score(values: Array, expected: Array | float) -> Array:
    """Standard errors between the mean of independent values, and what it should be."""
    values = np.asarray(values, dtype=float)
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    gap = values.mean(axis=0) - expected
    small = 1e-9 * np.maximum(np.abs(expected), 1e-300)
    return np.asarray(np.where(np.abs(gap) <= small, 0.0, gap / np.maximum(error, small)))


def hard_margin(differences: Array) -> tuple[float, Array]:
    """Largest margin of a unit vector with all differences, by general optimisation."""
    from scipy.optimize import minimize

    Z = np.asarray(differences, dtype=float)
    scale = np.abs(Z).max()
    rows = Z / scale
    start = np.append(rows.mean(axis=0), -1.0)
    start[:-1] /= max(np.linalg.norm(start[:-1]), 1e-12)
    start[-1] = (rows @ start[:-1]).min()
    found = minimize(
        lambda v: -v[-1],
        start,
        jac=lambda v: np.append(np.zeros(len(v) - 1), -1.0),
        constraints=[
            {
                "type": "ineq",
                "fun": lambda v: rows @ v[:-1] - v[-1],
                "jac": lambda _: np.column_stack([rows, -np.ones(len(rows))]),
            },
            {
                "type": "ineq",
                "fun": lambda v: np.array([1.0 - v[:-1] @ v[:-1]]),
                "jac": lambda v: np.append(-2 * v[:-1], 0.0)[np.newaxis],
            },
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    ).x
    w = found[:-1] / max(np.linalg.norm(found[:-1]), 1e-300)
    return float((Z @ w).min()), w


def largest_margin(X: Array, signs: Array, *, intercept: bool) -> float:
    """Largest margin of a hyperplane; with an intercept half the gap of the classes."""
    if not intercept:
        return hard_margin(X * signs[:, np.newaxis])[0]
    pairs = X[signs > 0][:, np.newaxis] - X[signs < 0][np.newaxis]
    return hard_margin(pairs.reshape(-1, X.shape[1]))[0] / 2


def streak(error: float, delta: float, n_core: int, j: int) -> int:
    """Random rows in succession that end a run, by Lemma 4.1 with j (j + 1)."""
    return math.ceil((math.log(max(n_core, j * (j + 1))) + math.log(1 / delta)) / error)
