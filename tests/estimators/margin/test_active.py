"""The active classifier in scikit-learn's manner."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from daskcoreset.constructions.margin.active_run import OracleError
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.estimators.margin.active import ActiveMaxMarginClassifier


def separable(n: int = 4000) -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(n, 3))
    X = X[np.abs(X[:, 0] - X[:, 1] - 0.2) > 0.1]
    return X, np.where(X[:, 0] - X[:, 1] > 0.2, "up", "down")


def test_fit__looks_at_few_labels_and_counts_them() -> None:
    X, y = separable()
    model = ActiveMaxMarginClassifier(random_state=0).fit(X, y)
    assert model.n_labels_ < len(X) / 15
    assert model.n_labels_ == sum(model.n_labels_by_phase_.values())
    assert model.score(X, y) == 1.0
    assert model.certificate_.error <= 0.05
    assert model.classes_.tolist() == ["down", "up"]
    assert ((model.decision_function(X) > 0) == (y == "up")).all()
    values = (X[model.support_] @ model.coef_[0] + model.intercept_) * np.where(
        y[model.support_] == "up", 1, -1
    )
    assert np.isclose(values.min(), model.margin_)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == y).all()
    same = clone(model).fit(X, oracle=lambda rows, indices: y[indices])  # noqa: ARG005
    assert np.array_equal(same.result_.indices, model.result_.indices)


@pytest.mark.nightly
def test_fit__softens_or_raises_where_labels_overlap() -> None:
    X, y = separable()
    y = y.copy()
    y[np.random.default_rng(2).choice(len(X), 40, replace=False)] = "up"
    with pytest.warns(CoresetWarning, match="errors are allowed"):
        model = ActiveMaxMarginClassifier(random_state=0, max_labels=300).fit(X, y)
    assert model.n_labels_ <= 300
    assert model.score(X, separable()[1]) > 0.97
    with pytest.raises(OracleError, match="contradict") as caught:
        ActiveMaxMarginClassifier(random_state=0, on_inseparable="raise").fit(X, y)
    assert caught.value.asking is not None
    assert caught.value.asking.n_labels > 0


def test_fit__warns_when_one_class_is_never_met() -> None:
    X, y = separable()
    y = np.full(len(X), "up")
    y[0] = "down"
    with pytest.warns(CoresetWarning, match="which is predicted throughout"):
        model = ActiveMaxMarginClassifier(random_state=0).fit(X, y)
    assert (model.predict(X) == "up").all()
    assert (model.predict(X) != y).mean() <= model.certificate_.error
