"""Estimators fitted on a coreset, or on a member of a portfolio, in place of X."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import daskcoreset
from daskcoreset import SVM, Coreset, StrongKMeans
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.estimators import (
    CoresetEstimator,
    CoresetGaussianMixture,
    CoresetKMeans,
    CoresetLogisticRegression,
    CoresetSVC,
)


def make_portfolio() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 5000)
    X = rng.normal(size=(5000, 3)) + 2.0 * (y == "yes")[:, np.newaxis]
    methods = {"clusters": StrongKMeans(2), "svm": SVM()}
    return X, y, daskcoreset.build(X, y, size=400, method=methods, random_state=0)


def test_fit__on_a_member_uses_its_rows_and_weights() -> None:
    X, _, portfolio = make_portfolio()
    coreset = portfolio["clusters"]
    model = CoresetKMeans(2, random_state=0, size=100).fit(coreset)
    assert model.coreset_.equals(coreset)
    assert model.n_features_in_ == 3
    everything = CoresetKMeans(2, random_state=0, size=5000).fit(X)
    assert -model.score(X) <= 1.05 * everything.inertia_
    assert len(model.predict(coreset)) == len(coreset)
    assert model.score(coreset) == pytest.approx(-model.inertia_)
    mixture = CoresetGaussianMixture(2, random_state=0).fit(coreset)
    assert mixture.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("model", [CoresetSVC(random_state=0), CoresetLogisticRegression()])
def test_fit__of_classifiers_takes_the_labels_of_the_coreset(model: Any) -> None:
    X, y, portfolio = make_portfolio()
    model.fit(portfolio["svm"])
    assert list(model.classes_) == ["no", "yes"]
    assert model.score(X, y) > 0.9
    assert model.score(portfolio["svm"]) > 0.9


def test_fit__of_any_estimator_of_scikit_learn() -> None:
    _, _, portfolio = make_portfolio()
    coreset = portfolio["clusters"]
    labelled = Coreset(
        coreset.points, coreset.weights, coreset.indices, coreset.points @ np.array([1.0, 2.0, 0.0])
    )
    model = CoresetEstimator(Ridge(alpha=1e-9)).fit(labelled)
    np.testing.assert_allclose(model.estimator_.coef_, [1.0, 2.0, 0.0], atol=1e-6)


def test_fit__refuses_what_contradicts_the_coreset() -> None:
    _, _, portfolio = make_portfolio()
    with pytest.raises(
        InvalidTypeError, match=r"pass one of them, such as portfolio\['clusters'\]"
    ):
        CoresetKMeans(2).fit(portfolio)
    with pytest.raises(InvalidInputError, match="leave out y and sample_weight"):
        CoresetKMeans(2).fit(portfolio["svm"], sample_weight=np.ones(400))
    unlabelled = Coreset(np.eye(3), np.ones(3), np.arange(3))
    with pytest.raises((InvalidInputError, ValueError), match="requires y"):
        CoresetSVC().fit(unlabelled)
