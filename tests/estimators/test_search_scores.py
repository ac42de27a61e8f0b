"""Scores of clusterings: weights against repeated rows, and scikit-learn without weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from daskcoreset.estimators.search_scores import silhouettes


def make_rows(n: int = 600) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)) + 6.0 * rng.integers(0, 2, size=(n, 3))


def test_silhouettes__are_those_of_scikit_learn_for_equal_weights() -> None:
    X = make_rows()
    labels = [KMeans(k, n_init=1, random_state=0).fit(X).labels_ for k in (2, 5, 8)]
    found = silhouettes(X, np.full(len(X), 7.0), labels)
    expected = [silhouette_score(X, each) for each in labels]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_silhouettes__of_far_more_rows_are_estimated_by_weights() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(6000, 2)), rng.normal(8.0, 1.0, size=(1000, 2))])
    labels = np.repeat([0, 1], [6000, 1000])
    # Few of the many, many of the few.
    rows = np.concatenate([np.arange(0, 6000, 20), np.arange(6000, 7000, 2)])
    weights = np.repeat([20.0, 2.0], [300, 500])
    found = silhouettes(X[rows], weights, [labels[rows]])[0]
    assert found == pytest.approx(silhouette_score(X, labels), abs=0.01)
