"""Limits: of columns where work grows with their square, and of time inside every loop."""

from __future__ import annotations

import time
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from tests.acceptance import face

E = face.estimators


def separable(n_rows: int, n_features: int, n_classes: int = 2) -> tuple[Any, Any]:
    """Return rows that planes through the origin separate, by wide gaps."""
    rng = np.random.default_rng(n_features)
    X, planes = rng.normal(size=(n_rows, n_features)), rng.normal(size=(n_features, n_classes))
    planes /= np.linalg.norm(planes, axis=0)
    y = (X @ planes).argmax(axis=1)
    return X + 3.0 * planes.T[y], y


def noisy(n_rows: int, n_features: int) -> tuple[Any, Any]:
    X, _ = separable(n_rows, n_features)
    return np.abs(X), np.random.default_rng(0).integers(2, size=n_rows)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (E.MaxMarginClassifier(epsilon=1e-9), separable(2_500, 1_600)),
        (E.MaxMarginClassifier(epsilon=1e-9), separable(1_500, 900, 3)),
        (E.OutlierMaxMarginClassifier(k=3, max_problems=10**6), separable(1_500, 900)),
        (E.ODMClassifier(), separable(8_000, 300)),
    ],
)
def test_time_limit__ends_a_fit_in_memory(model: Any, data: Any) -> None:
    begun = time.process_time()
    late = pytest.raises(face.errors.OutOfTimeError, match=r"time limit of 0\.4 seconds")
    with late, face.time_limit(0.4):
        model.fit(*data)
    assert time.process_time() - begun < 6.0


@pytest.mark.parametrize(
    ("model", "n_features"),
    [
        (E.CoresetGaussianMixture(4, tol=0.0, max_iter=10**8), 3),
        (E.CoresetBregman(300, divergence="kl", n_init=10**4), 8),
        (E.CoresetSVC(C=1e9), 500),
    ],
)
def test_time_limit__ends_a_solver_on_a_coreset(model: Any, n_features: int) -> None:
    X, y = noisy(4_000, n_features)
    coreset = face.build(X, y, method="uniform", size=3_000, random_state=0)
    begun = time.process_time()
    with pytest.raises(face.errors.OutOfTimeError), face.time_limit(0.4):
        model.fit(coreset)
    assert time.process_time() - begun < 6.0


def wide(n_rows: int, n_features: int, n_classes: int = 2) -> tuple[Any, Any]:
    """Return sparse rows with five numbers each, and labels."""
    rng = np.random.default_rng(1)
    columns = rng.integers(n_features, size=5 * n_rows)
    starts = 5 * np.arange(n_rows + 1)
    X = sp.csr_array((rng.random(5 * n_rows), columns, starts), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X, np.arange(n_rows) % n_classes


@pytest.mark.parametrize(
    ("model", "n_classes", "lazy"),
    [
        (E.MaxMarginClassifier(), 2, False),
        (E.MaxMarginClassifier(fit_intercept=False), 3, True),
        (E.OutlierMaxMarginClassifier(), 2, False),
        (E.ActiveMaxMarginClassifier(), 2, False),
        (E.ActiveMaxMarginClassifier(max_labels=5_000), 2, False),
    ],
)
def test_fit__refuses_many_rows_of_very_many_columns(
    model: Any, n_classes: int, lazy: bool
) -> None:
    X, y = wide(20_000, 50_000, n_classes)
    rows = da.from_array(X, chunks=(5_000, -1), asarray=False) if lazy else X
    with pytest.raises(face.CoresetError, match=r"50,000 columns.*; pass at most 2,048 columns"):
        model.fit(rows, da.from_array(y, chunks=5_000) if lazy else y)


def test_fit__asks_for_few_labels_of_very_many_columns() -> None:
    X, y = wide(3_000, 50_000)
    model = E.ActiveMaxMarginClassifier(max_labels=6, random_state=0).fit(X, y)
    assert model.n_labels_ <= 6


def test_fit__separates_few_rows_of_very_many_columns() -> None:
    X, y = wide(60, 50_000)
    model = E.MaxMarginClassifier().fit(X, y)
    assert model.separable_
    assert model.factor_ > 0.99
    assert model.score(X, y) == 1.0
