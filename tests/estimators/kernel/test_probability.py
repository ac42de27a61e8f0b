"""Probabilities of the kernel classifier are calibrated, lazy and the same in every chunking."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset.estimators import CSVRGClassifier
from daskcoreset.estimators.kernel.probability import Sigmoids

# The class is drawn with this probability, which no classifier is told.
RNG = np.random.default_rng(0)


def noisy(n: int, n_classes: int = 2) -> tuple[Any, Any, Any]:
    X = RNG.uniform(size=(n, 2))
    scores = np.stack([3.0 * j * X[:, j % 2] for j in range(n_classes)], axis=1)
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < RNG.uniform(size=(n, 1))).sum(axis=1)
    return X, np.minimum(y, n_classes - 1), truth


@pytest.mark.parametrize("n_rows", [2000, 15_000])
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


@pytest.mark.filterwarnings("ignore:features are not scaled:daskcoreset.errors.CoresetWarning")
def test_predict_proba__honest_where_labels_are_noise() -> None:
    X, y = RNG.uniform(size=(300, 2)), RNG.integers(0, 2, 300)
    model = CSVRGClassifier(C=1e3, gamma=1e3, probability=True, random_state=0).fit(X, y)
    # Every row is a core point, and the fit is perfect; held-out values know nothing.
    assert model.score(X, y) > 0.9
    assert np.abs(model.predict_proba(X) - 0.5).max() < 0.3


@pytest.mark.nightly
def test_predict_proba__only_on_request_and_in_partial_fit() -> None:
    X, y, _ = noisy(500)
    without = CSVRGClassifier().fit(X, y)
    assert not hasattr(without, "predict_proba")
    with pytest.raises(AttributeError, match="no attribute 'predict_proba': pass probability=True"):
        without.predict_proba(X)
    model = CSVRGClassifier(max_points=30, probability=True, random_state=0)
    model.partial_fit(X, y, classes=[0, 1]).partial_fit(X, y)
    assert model.predict_proba(X).shape == (500, 2)
    y[:] = 0
    y[0] = 1  # one row of a class cannot be held out
    assert model.fit(X, y).predict_proba(X)[:, 0].mean() > 0.9


@pytest.mark.nightly
def test_sigmoids__separated_values_stay_finite() -> None:
    fitted = Sigmoids.fit(np.array([-1e6, 1e6]), np.array([0, 1]), np.ones(2))
    assert np.isfinite(fitted.probabilities(np.array([-1e300, 0.0, 1e300]))).all()
