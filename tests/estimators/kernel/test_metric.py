"""Factors of columns that are learned from a pilot."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.core.blocks import Block
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators import CSVRGClassifier
from daskcoreset.estimators.kernel.losses import LOSSES
from daskcoreset.estimators.kernel.metric import learned_scales


def many_columns(n: int = 4_000, d: int = 10) -> tuple[FloatArray, AnyArray]:
    """Rows of which two columns tell the classes apart."""
    X = np.random.default_rng(0).random((n, d))
    return X, np.where((X[:, 3] - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 < 0.15, "in", "out")


def in_order(X: AnyArray, y: AnyArray) -> Block:
    order = np.argsort(y, kind="stable")
    return Block(X[order], np.ones(len(X)), y[order])


def learned(X: AnyArray, y: AnyArray, lam: float = 3.0) -> FloatArray:
    rows, classes, points = in_order(X, y), np.unique(y), X[:200]
    found = learned_scales(rows, points, LOSSES["odm"], classes=classes, lam=lam * len(X))
    return found[0]


@pytest.mark.nightly
def test_fit__two_columns_of_ten() -> None:
    X, y = many_columns()
    fresh = many_columns(9_000)
    scores = {}
    for name in ("euclidean", "learned"):
        model = CSVRGClassifier(metric=name, max_points=60, random_state=0).fit(X, y)
        scores[name] = model.score(*fresh)
    assert scores["learned"] > scores["euclidean"] + 0.02
    others = np.delete(model.scales_, [1, 3])
    assert model.scales_[[1, 3]].min() > 3 * others.max()
    # Gamma means the same as before.
    variances = X.var(axis=0)
    assert (model.scales_**2) @ variances == pytest.approx(variances.sum(), rel=0.05)
