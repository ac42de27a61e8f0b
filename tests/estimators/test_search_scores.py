"""Scores of clusterings: weights against repeated rows, and scikit-learn without weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture

from daskcoreset.estimators.search_scores import agreement, bic, silhouettes, spherical_likelihood


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


@pytest.mark.nightly
def test_silhouettes__of_a_cluster_of_one_row_count_as_zero() -> None:
    X = np.array([[0.0], [1.0], [50.0]])
    labels = np.array([0, 0, 1])
    assert silhouettes(X, np.ones(3), [labels])[0] == pytest.approx(silhouette_score(X, labels))


@pytest.mark.nightly
def test_agreement__is_one_for_other_names_and_zero_by_chance() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, 40_000), rng.integers(0, 3, 40_000)
    weights = rng.exponential(size=40_000)
    assert agreement(first, (first + 1) % 4, weights) == pytest.approx(1.0)
    assert abs(agreement(first, second, weights)) < 0.01
    assert agreement(np.zeros(5, int), np.zeros(5, int), np.ones(5)) == 1.0


@pytest.mark.nightly
def test_agreement__counts_weights_as_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, (2, 50))
    repeats = rng.integers(1, 5, 50)
    again = agreement(first.repeat(repeats), second.repeat(repeats), np.ones(repeats.sum()))
    assert agreement(first, second, repeats.astype(float)) == pytest.approx(again)


@pytest.mark.nightly
def test_bic__of_spheres_is_that_of_a_mixture_of_equal_far_spheres() -> None:
    X = make_rows(4000)
    centers = 6.0 * np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    model = GaussianMixture(8, covariance_type="spherical", means_init=centers, random_state=0)
    labels = model.fit(X).predict(X)
    means = np.array([X[labels == c].mean(axis=0) for c in range(8)])
    found = bic(*spherical_likelihood(X, np.ones(len(X)), means, labels), np.ones(len(X)))
    # The mixture has a variance for each sphere, and parts its rows softly.
    assert found == pytest.approx(model.bic(X), rel=0.002)
    tens = np.full(len(X), 10.0)
    assert bic(*spherical_likelihood(X, tens, means, labels), tens) == pytest.approx(found)
