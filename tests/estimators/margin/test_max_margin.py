"""Classifiers of the largest margin: in memory, out of core, and by scikit-learn's checks."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.svm import SVC, LinearSVC

from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.margin.max_margin import MaxMarginClassifier, OutlierMaxMarginClassifier
from tests.tools.margins import separable


def rows(seed: int = 0, n: int = 500) -> tuple[FloatArray, FloatArray]:
    return separable(np.random.default_rng(seed), n, 3, 0.3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit__what_is_not_separable_gets_a_soft_margin_or_an_error(n_classes: int) -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, n_classes, 600)
    X = np.eye(3)[y] * 2 + rng.normal(size=(600, 3))
    with pytest.warns(CoresetWarning, match="a soft margin is fitted, for .*separa"):
        model = MaxMarginClassifier().fit(X, y)
    assert not model.separable_
    assert model.margin_ == 0.0 == model.factor_
    assert len(model.evidence_.coefficients) == len(model.evidence_.indices) >= 2
    assert model.score(X, y) >= LinearSVC().fit(X, y).score(X, y) - 0.03
    with pytest.raises(InvalidInputError, match="separa"):
        MaxMarginClassifier(on_inseparable="raise").fit(X, y)


def test_fit__soft_kernel_where_equal_rows_differ() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(int)
    X[1], y[1] = X[0], 1 - y[0]
    with pytest.warns(CoresetWarning, match="opposite labels, 0 and 1"):
        model = MaxMarginClassifier(kernel="rbf", gamma=0.5).fit(X, y)
    expected = SVC(gamma=0.5).fit(X, y).decision_function(X)
    assert model.decision_function(X) == pytest.approx(expected, abs=1e-6)


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


@pytest.mark.parametrize("lazy", [False, True])
def test_fit__margin_is_that_of_the_class_that_is_nearest_to_the_others(lazy: bool) -> None:
    """One side at a time by brute force: the classes lie 1, 1 and 3 away from the rest."""
    X = np.array([[0.0], [0.5], [1.5], [2.0], [5.0], [5.5]])
    y = np.array([0, 0, 1, 1, 2, 2])
    given_X: Any = da.from_array(X, chunks=(2, 1)) if lazy else X
    given_y: Any = da.from_array(y, chunks=2) if lazy else y
    model = MaxMarginClassifier(kernel="rbf", gamma=0.5, epsilon=1e-9).fit(given_X, given_y)
    gram = np.exp(-0.5 * (X - X.T) ** 2)
    margins = []
    for label in range(3):
        exact = SVC(C=1e12, kernel="precomputed", tol=1e-10).fit(gram, y == label)
        dual = exact.dual_coef_[0]
        margins.append(1.0 / np.sqrt(dual @ gram[np.ix_(exact.support_, exact.support_)] @ dual))
    assert max(margins) > 1.2 * min(margins)
    assert model.margin_ == pytest.approx(min(margins), rel=1e-6)
    assert [one.margin for one in model.core_] == pytest.approx(margins, rel=1e-6)
