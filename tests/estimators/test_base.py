"""What estimators share: seeds, starts, and the checks of scikit-learn without a failure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
from dask.delayed import delayed
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from daskcoreset.build import default_size
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators import (
    AVMClassifier,
    CoresetEstimator,
    CoresetKMeans,
    CoresetLogisticRegression,
    CoresetSVC,
    CSVRGClassifier,
    LinearSVM,
    ODMClassifier,
)
from daskcoreset.estimators.base import is_in_memory, solver_seed
from daskcoreset.estimators.kmeans import auto_starts
from daskcoreset.testing import CountingArray
from tests.tools.stored_rows import X, zarr_of


def test_is_held__knows_memory_from_the_rest(tmp_path: Path) -> None:
    frame = pd.DataFrame(X)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for part in (X, X.tolist(), frame, frame[0], sp.csr_array(X), None, 3.0):
        assert is_in_memory(part)
    for part in (
        da.from_array(X),
        zarr_of(tmp_path),
        mapped,
        str(tmp_path),
        tmp_path,
        xr.DataArray(X),
        delayed(X),
        CountingArray(X),
    ):
        assert not is_in_memory(part)
        assert not is_in_memory(X, part)


def test_solver_seed__depends_on_the_seed_alone() -> None:
    assert solver_seed(7) == solver_seed(7)
    assert len({solver_seed(seed) for seed in range(100)}) == 100
    assert 0 <= solver_seed(2**128 - 1) < 2**32


def test_auto__grows_with_the_clusters() -> None:
    assert default_size(1) == 10_000
    assert default_size(1000) == 100_000
    assert [auto_starts(k) for k in (1, 50, 51, 100, 10_000)] == [10, 10, 9, 5, 3]


# With the defaults that a user gets; those that are not here are in the tests of their own files.
ESTIMATORS = [
    CoresetKMeans(),
    CoresetEstimator(KMeans()),
    CoresetEstimator(LogisticRegression()),
    CoresetEstimator(Ridge()),
    CoresetEstimator(StandardScaler()),
    CoresetLogisticRegression(),
    CoresetSVC(),
    LinearSVM(),
    CSVRGClassifier(),
    CSVRGClassifier(max_points=40, solver="csvrg", max_iter=30, n_inner=3000, tol=1e-2),
    AVMClassifier(),
    ODMClassifier(),
]


@pytest.mark.filterwarnings(
    "ignore:CSVRGClassifier stopped after:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.filterwarnings(
    "ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning"
)
@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator] # of scikit-learn
def test_estimator__passes_the_checks_of_scikit_learn(
    estimator: Any, check: Callable[[Any], None]
) -> None:
    check(estimator)


@pytest.mark.parametrize("lazy", [False, True])
def test_fit__methods_that_an_estimator_cannot_use(lazy: bool) -> None:
    rows: Any = np.random.default_rng(0).normal(size=(100, 2))
    data = da.from_array(rows, chunks=(50, 2)) if lazy else rows
    for model in (CoresetKMeans(3, method="svm"), CoresetEstimator(KMeans(3), method="logistic")):
        with pytest.raises(InvalidInputError, match=rf"labels, which {type(model).__name__} does"):
            model.fit(data)
    with pytest.raises(InvalidInputError, match="needs n_clusters; pass an object, for example"):
        CoresetLogisticRegression(method="kmeans").fit(rows, rows[:, 0] > 0)
