"""Classifiers of the largest margin: in memory, out of core, and by scikit-learn's checks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import CoresetWarning, InvalidInputError
from daskcoreset.estimators.margin.max_margin import MaxMarginClassifier, OutlierMaxMarginClassifier
from tests.tools.margins import separable


def rows(seed: int = 0, n: int = 500) -> tuple[FloatArray, FloatArray]:
    return separable(np.random.default_rng(seed), n, 3, 0.3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit__what_is_not_separable_gets_a_soft_margin_or_an_error(n_classes: int) -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, n_classes, 600)
    X = np.eye(3)[y] * 2 + rng.normal(size=(600, 3))
    with pytest.warns(CoresetWarning, match="a soft margin is fitted, because .*separa"):
        model = MaxMarginClassifier().fit(X, y)
    assert not model.separable_
    assert model.margin_ == 0.0 == model.factor_
    assert model.evidence_ is not None
    assert len(model.evidence_.coefficients) == len(model.evidence_.indices) >= 2
    assert model.score(X, y) >= LinearSVC().fit(X, y).score(X, y) - 0.03
    with pytest.raises(InvalidInputError, match="separa"):
        MaxMarginClassifier(on_inseparable="raise").fit(X, y)


def test_outliers__more_than_k_get_a_soft_margin_or_an_error() -> None:
    X, y = rows(10)
    y[:20] *= -1
    with pytest.warns(CoresetWarning, match="when 1 rows are left out"):
        model = OutlierMaxMarginClassifier().fit(X, y)
    assert not model.separable_
    assert not len(model.outliers_)
    assert model.probability_ == 0.0
    assert model.score(X, y) > 0.9
    with pytest.raises(InvalidInputError, match="when 1 rows are left out"):
        OutlierMaxMarginClassifier(on_inseparable="raise").fit(X, y)
    with pytest.raises(InvalidInputError, match="Only binary"):
        OutlierMaxMarginClassifier().fit(X, np.arange(len(X)) % 3)
