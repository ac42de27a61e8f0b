"""The threads of BLAS, and the thread that calls it, decide no bits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask.array as da
import numpy as np
import pytest
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import daskcoreset as dc
from daskcoreset.estimators import (
    CoresetBregman,
    CoresetKernelClassifier,
    CoresetLogisticRegression,
)
from tests.pairs import few

WIDTH = 150
"""Columns for which LAPACK divides its work among threads."""


def wide() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(900, WIDTH)) + rng.integers(0, 3, size=(900, 1)), 6)
    return X, (X[:, 0] > X[:, 1]).astype(int)


def of_build(method: Any, *, labelled: bool = True, **options: Any) -> list[Any]:
    X, y = wide()
    data = (da.from_array(X, chunks=(300, -1)), da.from_array(y, chunks=300))
    coreset = dc.build(
        data[0], data[1] if labelled else None, method=method, size=100, random_state=0, **options
    )
    return [coreset.points, coreset.weights]


def of_long_rows() -> list[Any]:
    """Of more than 10,000 weights, whose scalar product BLAS divides too."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(12_000, 6)), 6)
    coreset = dc.build(X, X[:, 0] > 0.5, method="svm", size=300, random_state=0)
    return [coreset.points, coreset.weights]


def of_fit(model: Any, attribute: str, *labels: Any) -> list[Any]:
    return [getattr(model.fit(wide()[0], *labels), attribute)]


WORK: dict[str, Callable[[], list[Any]]] = {
    "svm tree": lambda: of_build(dc.SVM(variant="paper"), draw=dc.MergeReduce()),
    "svm of many rows": of_long_rows,
    "mahalanobis": lambda: of_build(dc.LightweightBregman("mahalanobis"), labelled=False),
    "CoresetKernelClassifier": lambda: of_fit(
        CoresetKernelClassifier(max_points=200, random_state=0), "dual_coef_", wide()[1]
    ),
    "CoresetLogisticRegression": lambda: of_fit(
        CoresetLogisticRegression(size=400, random_state=0), "coef_", wide()[1]
    ),
    "logistic": lambda: of_build(dc.Logistic()),
    "CoresetBregman": lambda: of_fit(
        CoresetBregman(3, divergence="mahalanobis", size=400, random_state=0), "cluster_centers_"
    ),
}


def digest(name: str) -> str:
    found = hashlib.blake2b(digest_size=8)
    for array in WORK[name]():
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
@few("name", list(WORK), 3)
def test_bits__whatever_the_threads_of_blas_and_the_thread_that_calls(name: str) -> None:
    with threadpool_limits(1, "blas"):
        expected = digest(name)
    with threadpool_limits(4, "blas"):
        assert digest(name) == expected
    # Never left as a context: threadpoolctl lets no other thread set the number then.
    held = threadpool_limits(4, "blas")
    try:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(digest, name).result() == expected
    finally:
        held.restore_original_limits()
