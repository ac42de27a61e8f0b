"""The library as the frozen table calls it; its other modules do not import the library.

Calls have the form of the public face to come. A change of the face changes this module, and no
measurement.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

import daskcoreset as dc
from daskcoreset import estimators
from daskcoreset.solvers.linear import solve_svm as _solve_svm

SVM, Logistic, StrongKMeans = dc.SVM, dc.Logistic, dc.StrongKMeans
Uniform, Lightweight, LeastSquares = dc.Uniform, dc.Lightweight, dc.LeastSquares
Mixture, StrongBregman = dc.Mixture, dc.StrongBregman
LightweightBregman = dc.LightweightBregman
Draw, MergeReduce = dc.Draw, dc.MergeReduce
CoresetKMeans = estimators.CoresetKMeans
CoresetGaussianMixture = estimators.CoresetGaussianMixture
CoresetSVC, CoresetLogisticRegression = estimators.CoresetSVC, estimators.CoresetLogisticRegression
MaxMarginClassifier = estimators.MaxMarginClassifier
OutlierMaxMarginClassifier = estimators.OutlierMaxMarginClassifier
ActiveMaxMarginClassifier = estimators.ActiveMaxMarginClassifier
StructuredMaxMargin = estimators.StructuredMaxMargin


def build(X: Any, y: Any = None, **options: Any) -> Any:
    """Build a coreset."""
    return dc.build(X, y, progress=False, **options)


def build_many(X: Any, y: Any = None, *, methods: dict[str, Any], size: int, **options: Any) -> Any:
    """Build a coreset by each method."""
    return dc.build_many(X, y, methods=methods, sizes=size, progress=False, **options)


def stream(method: Any, size: int, leaf_size: int, seed: int) -> Any:
    """Return a stream."""
    return dc.CoresetStream(method, size=size, leaf_size=leaf_size, random_state=seed)


def follow(source: Any, path: Any, size: int, seed: int) -> Any:
    """Make the tree of a source that grows."""
    return dc.CoresetTree.follow(source, path, size=size, random_state=seed)


def kernel_classifier(
    core_points: Literal["drawn", "cover"], solver: Literal["newton", "csvrg", "avm"], **given: Any
) -> Any:
    """Return a kernel classifier on core points; a cover is by its diameter, as published."""
    given.pop("max_points" if core_points == "cover" else "diameter", None)
    if solver == "avm":
        given |= {"loss": "hinge", "theta": 0.4, "mu": 0.4}
    return estimators.CoresetKernelClassifier(core_points, solver, **given)


def solve_svm(
    X: np.ndarray, signs: np.ndarray, weights: np.ndarray, tol: float
) -> tuple[np.ndarray, float]:
    """Return coefficients and intercept of the least cost with a penalty of one."""
    fit = _solve_svm(X, signs, weights, tol=tol)
    return fit.coef, fit.intercept


def margin_facts(model: Any) -> dict[str, Any]:
    """Return the answer of a maximum-margin estimator, and what certifies it."""
    facts: dict[str, Any] = {"margin": model.margin_}
    match model:
        case estimators.MaxMarginClassifier():
            facts |= {"factor": model.factor_}
        case estimators.OutlierMaxMarginClassifier():
            facts |= {"outliers": model.outliers_, "probability": model.probability_}
        case estimators.ActiveMaxMarginClassifier():
            facts = {"margin": model.core_margin_, "certificate": model.certificate_.error}
            facts |= {"labels": model.n_labels_}
        case estimators.StructuredMaxMargin():
            facts |= {"core margin": model.core_margin_, "w": model.w_}
    if hasattr(model, "coef_"):
        facts |= {"coef": model.coef_, "intercept": model.intercept_}
    return {name: np.asarray(value, dtype=float).ravel().tolist() for name, value in facts.items()}
