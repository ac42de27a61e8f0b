"""Every estimator, small, and rows and targets that it is fitted to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler

from tests.acceptance import face

E = face.estimators

# Each estimator by name: how it is made, and what its targets are.
MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "kmeans": (lambda: E.CoresetKMeans(3, size=60, random_state=0), "none"),
    "bregman": (lambda: E.CoresetBregman(3, size=60, random_state=0), "none"),
    "mixture": (lambda: E.CoresetGaussianMixture(2, size=80, random_state=0), "none"),
    "svm": (lambda: E.CoresetSVC(size=60, random_state=0), "classes"),
    "logistic": (lambda: E.CoresetLogisticRegression(size=60, random_state=0), "several"),
    "ridge": (lambda: E.CoresetRidge(size=60, random_state=0), "numbers"),
    "elastic net": (lambda: E.CoresetElasticNet(size=60, random_state=0), "numbers"),
    "any classifier": (
        lambda: E.CoresetEstimator(LogisticRegression(), size=60, random_state=0),
        "classes",
    ),
    "any regressor": (lambda: E.CoresetEstimator(Ridge(), size=60, random_state=0), "numbers"),
    "any clusterer": (
        lambda: E.CoresetEstimator(KMeans(3, n_init=1), size=60, random_state=0),
        "none",
    ),
    "any transformer": (
        lambda: E.CoresetEstimator(StandardScaler(), size=60, random_state=0),
        "none",
    ),
    "any density": (lambda: E.CoresetEstimator(KernelDensity(), size=60, random_state=0), "none"),
    "kernel": (lambda: E.CoresetKernelClassifier(max_points=20, random_state=0), "several"),
    "kernel avm": (
        lambda: E.CoresetKernelClassifier(solver="avm", max_points=20, random_state=0),
        "classes",
    ),
    "odm": (lambda: E.ODMClassifier(random_state=0), "classes"),
    "margin": (E.MaxMarginClassifier, "separable"),
    "outliers": (lambda: E.OutlierMaxMarginClassifier(2, random_state=0), "separable"),
    "active": (lambda: E.ActiveMaxMarginClassifier(random_state=0), "separable"),
    "structured": (E.StructuredMaxMargin, "separable"),
}

METHODS = [
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "transform",
    "score_samples",
]


def rows(n: int = 300) -> npt.NDArray[np.float64]:
    """Return rows of two columns, two groups well apart."""
    rng = np.random.default_rng(40)
    X: npt.NDArray[np.float64] = rng.normal(size=(n, 2))
    X[: n // 3] += 9.0
    return X


def targets(kind: str, X: npt.NDArray[np.float64]) -> Any:
    """Return targets of a kind."""
    if kind == "none":
        return None
    if kind == "numbers":
        return X @ np.array([2.0, -1.0]) + 0.1 * np.sin(np.arange(len(X)))
    if kind == "separable":
        return np.where(X.sum(axis=1) > 8.0, "far", "near")
    bound = np.sin(9.0 * np.arange(len(X)))
    return np.digitize(X[:, 0] + bound, [0.0, 6.0] if kind == "several" else [0.0])


def fitted(name: str, X: Any = None, *, lazy: bool = False) -> tuple[Any, Any, Any]:
    """Return an estimator that is fitted to rows, these, and their targets.

    Without rows of its own a test shares the model, and must not change it.
    """
    return _shared(name, lazy) if X is None else _fitted(name, X, lazy)


@cache
def _shared(name: str, lazy: bool) -> tuple[Any, Any, Any]:
    return _fitted(name, rows(), lazy)


def _fitted(name: str, X: Any, lazy: bool) -> tuple[Any, Any, Any]:
    make, kind = MODELS[name]
    y = targets(kind, np.asarray(X))
    if not lazy or name == "odm":  # which takes rows in memory
        return make().fit(X, y), X, y
    blocks = (None if part is None else da.from_array(part, chunks=len(X) // 3) for part in (X, y))
    return make().fit(*blocks), X, y


def methods_of(model: Any) -> list[str]:
    """Return the methods that give a value for every row."""
    return [name for name in METHODS if hasattr(model, name)]
