"""Coresets for clustering: lightweight and strong, and what is solved on them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face


def few_with_weight(n_rows: int, n_weighted: int) -> tuple[Any, Any]:
    """Return rows of which few have a positive weight."""
    rng = np.random.default_rng(0)
    weights = np.zeros(n_rows)
    weights[rng.choice(n_rows, n_weighted, replace=False)] = rng.uniform(0.5, 2.0, n_weighted)
    return rng.gamma(2.0, size=(n_rows, 3)), weights


@pytest.mark.filterwarnings("ignore:size=50, but the coreset has")
@pytest.mark.parametrize(
    ("method", "n_rows", "n_weighted", "lazy"),
    [
        (face.StrongKMeans(4), 900, 1, True),
        (face.Lightweight(), 20_000, 7, True),
        (face.StrongBregman(4, "kl"), 5_000, 40, False),
        (face.StrongKMeans(4), 20_000, 40, False),
    ],
)
def test_build__at_most_size_rows_with_weight(
    method: Any, n_rows: int, n_weighted: int, lazy: bool
) -> None:
    X, weights = few_with_weight(n_rows, n_weighted)
    rows = da.from_array(X, chunks=(n_rows // 3, 3)) if lazy else X
    coreset = face.build(rows, size=50, method=method, sample_weight=weights, random_state=0)
    np.testing.assert_array_equal(np.sort(coreset.indices), np.flatnonzero(weights))
    np.testing.assert_allclose(coreset.weights, weights[coreset.indices])
    np.testing.assert_allclose(coreset.points, X[coreset.indices])


@pytest.mark.parametrize(
    "model",
    [
        face.estimators.CoresetKMeans(3, size=60, random_state=0),
        face.estimators.CoresetKMeans(3, size=60, random_state=0, metric="cosine"),
        face.estimators.CoresetBregman(3, size=60, random_state=0),
        face.estimators.CoresetGaussianMixture(2, size=60, random_state=0),
    ],
)
def test_fit__fewer_rows_with_weight_than_size(model: Any) -> None:
    X, weights = few_with_weight(8_000, 40)
    with pytest.warns(face.CoresetWarning, match="size=60, but the coreset has 40 rows"):
        coreset = model.fit(X, sample_weight=weights).coreset_
    assert coreset.indices.tolist() == np.flatnonzero(weights).tolist()
