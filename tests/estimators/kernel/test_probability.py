"""Probabilities of the kernel classifier are calibrated, lazy and the same in every chunking."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset.estimators import CSVRGClassifier
from tests.pairs import few

# The class is drawn with this probability, which no classifier is told.
RNG = np.random.default_rng(0)


def noisy(n: int, n_classes: int = 2) -> tuple[Any, Any, Any]:
    X = RNG.uniform(size=(n, 2))
    scores = np.stack([3.0 * j * X[:, j % 2] for j in range(n_classes)], axis=1)
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < RNG.uniform(size=(n, 1))).sum(axis=1)
    return X, np.minimum(y, n_classes - 1), truth


@few("n_rows", [2000, 15_000], always=1)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predict_proba__near_the_truth(n_rows: int, n_classes: int) -> None:
    X, y, _ = noisy(n_rows, n_classes)
    model = CSVRGClassifier(max_points=60, probability=True, random_state=0).fit(X, y)
    fresh, labels, truth = noisy(5000, n_classes)
    shares = model.predict_proba(fresh)
    assert shares.shape == (5000, n_classes)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.abs(shares - truth).mean() < 0.06
    loss = -np.log(shares[np.arange(5000), labels]).mean()
    best = -np.log(truth[np.arange(5000), labels]).mean()
    assert loss < best + 0.05
    lazy = model.predict_proba(da.from_array(fresh, chunks=(1000, 2)))
    np.testing.assert_allclose(lazy.compute(), shares)
