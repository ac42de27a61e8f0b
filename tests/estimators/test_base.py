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

from daskcoreset import Coreset, CoresetTree
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


ESTIMATORS = [
    CoresetKMeans(n_clusters=3),
    CoresetEstimator(KMeans(3)),
    CoresetEstimator(LogisticRegression()),
    CoresetEstimator(Ridge()),
    CoresetEstimator(StandardScaler()),
    CoresetLogisticRegression(),
    CoresetSVC(),
    LinearSVM(),
    CSVRGClassifier(max_points=40),
    CSVRGClassifier(max_points=40, solver="csvrg", max_iter=30, n_inner=3000, tol=1e-2),
    AVMClassifier(max_points=40),
    ODMClassifier(),
]


@pytest.mark.filterwarnings(
    "ignore:CSVRGClassifier stopped after:sklearn.exceptions.ConvergenceWarning"
)
@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator] # of scikit-learn
def test_estimator__passes_the_checks_of_scikit_learn(
    estimator: Any, check: Callable[[Any], None]
) -> None:
    check(estimator)


# --- a coreset, or what stands for one, in place of X ---


def test_fit__on_a_tree_or_a_window(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tree = CoresetTree.create(tmp_path / "t", size=200, random_state=0)
    for day in range(3):
        tree.append(rng.normal(day, 1.0, size=(1000, 3)))
    for given, n in ((tree, 3000), (tree[-1:], 1000), (tree[1:].coreset(), 2000)):
        coreset = given if isinstance(given, Coreset) else given.coreset()
        model = CoresetKMeans(2, random_state=0).fit(given)
        assert model.coreset_.equals(coreset)
        assert model.coreset_.provenance["n"] == n
        assert model.n_features_in_ == 3
        assert len(model.predict(given)) == len(coreset)
        assert model.score(given) == pytest.approx(-model.inertia_)
    with pytest.raises(InvalidInputError, match="leave out y and sample_weight"):
        CoresetKMeans(2).fit(tree, sample_weight=np.ones(200))


def test_fit__of_classifiers_on_a_tree_with_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 2000)
    X = rng.normal(size=(2000, 3)) + 2.0 * (y == "yes")[:, np.newaxis]
    tree = CoresetTree.create(tmp_path / "t", "svm", 300, random_state=0)
    tree.append(X[:1000], y[:1000])
    tree.append(X[1000:], y[1000:])
    for model in (CoresetSVC(random_state=0), CoresetLogisticRegression()):
        model.fit(tree)
        assert list(model.classes_) == ["no", "yes"]
        assert model.score(X, y) > 0.9
