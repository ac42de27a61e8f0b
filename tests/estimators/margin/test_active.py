"""The active classifier in scikit-learn's manner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.constructions.margin.active_run import OracleError
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.estimators.margin.active import ActiveMaxMarginClassifier


def separable(n: int = 4000) -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(n, 3))
    X = X[np.abs(X[:, 0] - X[:, 1] - 0.2) > 0.1]
    return X, np.where(X[:, 0] - X[:, 1] > 0.2, "up", "down")


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
