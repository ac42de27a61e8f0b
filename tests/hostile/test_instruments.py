"""`converged_` and tolerances on instances that are made to fool them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.special
import scipy.stats
from sklearn.cluster import KMeans

from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.metrics.costs import kmeans_cost
from tests.tools.threads import one_thread

__all__ = ["one_thread"]


def groups_apart() -> FloatArray:
    X: FloatArray = np.random.default_rng(5).normal(size=(6000, 6))
    X[::2, 0] += 1e6
    return X


@pytest.mark.parametrize("kind", ["groups", "sparse"])
def test_kmeans__tolerance_is_not_that_of_rows_far_out(kind: str) -> None:
    """Relative to the variance all moves are small, and runs ended 3 to 5 % above the optimum."""
    X: Any = groups_apart() if kind == "groups" else far_row()
    rows = scipy.sparse.csr_array(X) if kind == "sparse" else X
    size = 10_000  # all rows: what is left is the solver's
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CoresetKMeans(20, size=size, n_init=1, random_state=0).fit(rows)
    found, middle = kmeans_cost(X, model.cluster_centers_), X.mean(axis=0)
    start = model.cluster_centers_ - middle
    ended = KMeans(20, init=start, n_init=1, tol=0.0, max_iter=1000).fit(X - middle)
    assert found < 1.01 * kmeans_cost(X, ended.cluster_centers_ + middle)
    assert 10 < model.n_iter_ <= 300


def far_row() -> FloatArray:
    X: FloatArray = np.random.default_rng(78).normal(size=(6000, 6))
    X[1234] = 1e6
    return X
