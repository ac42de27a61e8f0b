"""Agreement of numbers, exact under an offset and any split."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

from daskcoreset.estimators.scoring import Agreement

X, Y = make_classification(
    3000, 4, n_informative=3, n_redundant=0, n_clusters_per_class=1, random_state=0
)


TARGET = X @ np.array([1.0, 2.0, -1.0, 0.5]) + np.random.default_rng(0).normal(size=len(X))
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))


def test_agreement__is_exact_under_an_offset_and_any_split() -> None:
    truth, found = TARGET + 1e8, TARGET + 1e8 + 0.1
    parts = [
        Agreement.of(truth[i], found[i], WEIGHTS[i]) for i in np.array_split(np.arange(len(X)), 7)
    ]
    total = sum(parts, Agreement())
    assert total.spread == pytest.approx(
        WEIGHTS @ (TARGET - np.average(TARGET, weights=WEIGHTS)) ** 2
    )
    assert Agreement() + Agreement() == Agreement()
    assert total + Agreement() == total
