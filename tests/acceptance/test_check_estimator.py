"""Every estimator passes the checks of scikit-learn, with the defaults that a user gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.acceptance.face import estimators

Check = Callable[[Any], None]

# Some of the checks fit on rows of one class that overlaps others, or of few distinct values.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{text}")
    for text in (
        "a soft margin is fitted:daskcoreset.errors.CoresetWarning",
        "all .* labels asked for:daskcoreset.errors.CoresetWarning",
        "no separator agrees:daskcoreset.errors.CoresetWarning",
        "y cannot be separated:daskcoreset.errors.CoresetWarning",
        "Number of distinct clusters:sklearn.exceptions.ConvergenceWarning",
    )
]

ONE_OF_EACH_KIND = [
    estimators.CoresetKMeans(),
    estimators.CoresetSVC(),
    estimators.CoresetRidge(),
    estimators.CoresetEstimator(StandardScaler()),
    estimators.CoresetKernelClassifier(),
    estimators.MaxMarginClassifier(),
]

OTHERS = [
    estimators.ActiveMaxMarginClassifier(),
    estimators.CoresetBregman(),
    estimators.CoresetBregman(soft=True),
    estimators.CoresetElasticNet(),
    estimators.CoresetEstimator(KMeans()),
    estimators.CoresetEstimator(LogisticRegression()),
    estimators.CoresetEstimator(Ridge()),
    estimators.CoresetGaussianMixture(),
    estimators.CoresetLogisticRegression(),
    estimators.CoresetKernelClassifier(solver="csvrg", max_points=40, lam=1.0),
    estimators.CoresetKernelClassifier(solver="avm", max_points=40),
    estimators.ODMClassifier(),
    estimators.OutlierMaxMarginClassifier(),
    estimators.StructuredMaxMargin(),
]


@parametrize_with_checks(ONE_OF_EACH_KIND)  # type: ignore[untyped-decorator] # of scikit-learn
def test_estimators__of_each_kind_pass_the_checks(estimator: Any, check: Check) -> None:
    check(estimator)


@pytest.mark.nightly
@parametrize_with_checks(OTHERS)  # type: ignore[untyped-decorator] # of scikit-learn
def test_estimators__pass_the_checks(estimator: Any, check: Check) -> None:
    check(estimator)


def test_estimators__are_all_checked() -> None:
    checked = {type(each) for each in ONE_OF_EACH_KIND + OTHERS}
    classes = {each for each in vars(estimators).values() if hasattr(each, "get_params")}
    assert checked == classes
