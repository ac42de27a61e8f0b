"""scikit-learn's own checks of estimators, without an expected failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from daskcoreset.estimators import (
    AVMClassifier,
    CoresetEstimator,
    CoresetKMeans,
    CoresetLogisticRegression,
    CoresetSVC,
    CSVRGClassifier,
    LinearSVM,
    ODMClassifier,
)

ESTIMATORS = [
    CoresetKMeans(n_clusters=3),
    CoresetEstimator(KMeans(3)),
    CoresetEstimator(LogisticRegression()),
    CoresetEstimator(Ridge()),
    CoresetEstimator(StandardScaler()),
    CoresetLogisticRegression(),
    CoresetSVC(),
    LinearSVM(),
    CSVRGClassifier(max_points=40),
    CSVRGClassifier(max_points=40, solver="csvrg", max_iter=30, n_inner=3000, tol=1e-2),
    AVMClassifier(max_points=40),
    ODMClassifier(),
]


@pytest.mark.filterwarnings(
    "ignore:CSVRGClassifier stopped after:sklearn.exceptions.ConvergenceWarning"
)
@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator] # of scikit-learn
def test_estimator__passes_the_checks_of_scikit_learn(
    estimator: Any, check: Callable[[Any], None]
) -> None:
    check(estimator)
