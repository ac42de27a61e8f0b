"""CSVRGClassifier: accurate on few core points, in memory, out of core and in parts."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators import AVMClassifier, CSVRGClassifier, ODMClassifier
from tests.pairs import each, few, pairs
from tests.tools.kernel_rows import CLASSES, ROWS

# The certificate of "csvrg" is rarely below its tolerance, and fits say so.
pytestmark = pytest.mark.filterwarnings(
    "ignore:CSVRGClassifier stopped after:sklearn.exceptions.ConvergenceWarning"
)


MODELS = [
    CSVRGClassifier(max_points=40, lam=200.0, gamma=5.0, random_state=0),
    CSVRGClassifier(max_points=40, lam=20.0, gamma=5.0, solver="csvrg", tol=1e-3, random_state=0),
    AVMClassifier(max_points=40, lam=200.0, gamma=5.0, random_state=0),
]


TWO_CLASSES = np.where(CLASSES == "in", "in", "out")


# --- what it finds -------------------------------------------------------------------------


@each(kernel=["rbf", "laplacian"], loss=["odm", "squared_hinge", "hinge"])
def test_solvers__agree_where_every_row_is_a_core_point(loss: Any, kernel: str) -> None:
    few, labels = ROWS[:200], TWO_CLASSES[:200]
    options: dict[str, Any] = {"kernel": kernel, "gamma": 5.0, "lam": 10.0, "random_state": 0}
    exact = CSVRGClassifier(loss, max_points=200, tol=1e-6, **options).fit(few, labels)
    near = CSVRGClassifier(loss, diameter=1e-6, tol=1e-6, **options).fit(few, labels)
    tol = 1e-3 if loss == "hinge" else 1e-6  # steps of one length do not settle on a corner
    noisy = CSVRGClassifier(
        loss, diameter=1e-6, solver="csvrg", n_inner=20_000, tol=tol, max_iter=60, **options
    ).fit(few, labels)
    assert exact.n_core_points_ == near.n_core_points_ == 200
    assert near.objective_ == pytest.approx(exact.objective_, rel=1e-5)
    # Steps of one length do not settle on a corner.
    assert noisy.objective_ == pytest.approx(
        exact.objective_, rel=1e-2 if loss == "hinge" else 1e-4
    )
    if loss == "odm":
        whole = ODMClassifier(tol=1e-7, **options).fit(few, labels)
        assert exact.objective_ == pytest.approx(whole.objective_, rel=1e-5)
        assert np.allclose(whole.decision_function(ROWS), exact.decision_function(ROWS), atol=1e-2)


def cauchy(squares: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + 5.0 * squares))


def test_fit__callable_kernel_and_a_search() -> None:
    model = CSVRGClassifier(kernel=cauchy, lam=200, max_points=40, random_state=0).fit(
        ROWS, TWO_CLASSES
    )
    assert model.score(ROWS, TWO_CLASSES) > 0.95
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(ROWS), model.predict(ROWS))
    search = GridSearchCV(clone(MODELS[0]), {"gamma": [0.01, 5.0]}, cv=2).fit(
        ROWS[:300], TWO_CLASSES[:300]
    )
    assert search.best_params_ == {"gamma": 5.0}


# --- out of core ---------------------------------------------------------------------------


def test_fit__float32_with_a_large_offset() -> None:
    shifted = (ROWS.astype(np.float64) * 1000).astype(np.float32)
    model = clone(MODELS[0]).set_params(gamma="scale")
    near = clone(model).fit(shifted, TWO_CLASSES)
    far = clone(model).fit(shifted + np.float32(2**20), TWO_CLASSES)
    assert (
        far.score(shifted + np.float32(2**20), TWO_CLASSES)
        > near.score(shifted, TWO_CLASSES) - 0.01
    )


# --- further rows --------------------------------------------------------------------------


def test_partial_fit__like_one_fit_of_all_rows() -> None:
    model = CSVRGClassifier(lam=200.0, gamma=5.0, diameter=0.15, random_state=0)
    for start in range(0, 3000, 1000):
        part = slice(start, start + 1000)
        model.partial_fit(ROWS[part], CLASSES[part], classes=np.unique(CLASSES))
    whole = clone(model).fit(ROWS, CLASSES)
    assert model.score(ROWS, CLASSES) > whole.score(ROWS, CLASSES) - 0.01
    assert model._table.sum() == pytest.approx(3000)
    assert model.lam_ == 200.0
    assert np.allclose(model.objective_, whole.objective_, rtol=0.25)
    gaps = np.sqrt(((ROWS[:, np.newaxis] - model.core_points_) ** 2).sum(axis=2)).min(axis=1)
    assert gaps.max() <= model.diameter_ / 2 * (1 + 1e-6)


@pairs(
    kind=["rare", "duplicates", "sorted", "constant", "wide"],
    chunks=[600, 90],
    strategy=["online", "farthest"],
)
def test_fit__covers_beside_drawn_rows_keep_their_promise(
    strategy: Any, chunks: int, kind: str
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((600, 3)), np.arange(600) % 2
    if kind == "rare":
        y = np.where(np.isin(np.arange(600), [3, 100, 101, 350, 599]), "few", "many")
    elif kind == "duplicates":
        X, y = np.repeat(X[:30], 20, axis=0), np.repeat(np.arange(30) % 2, 20)
    elif kind == "sorted":  # most blocks have one class only
        y = (np.arange(600) > 550).astype(int)
    elif kind == "constant":
        X[:, 1:] = 7.0
    else:
        X = rng.random((600, 800))
    data = da.from_array(X, chunks=(chunks, -1)), da.from_array(y, chunks=chunks)
    model = CSVRGClassifier(
        lam=20.0, gamma=3.0 / X.shape[1], max_points=40, strategy=strategy, random_state=0
    ).fit(*data)
    points = model.core_points_
    assert len(np.unique(points, axis=0)) == len(points) == (30 if kind == "duplicates" else 40)
    gaps = cdist(X, points)
    assert gaps.min(axis=1).max() <= model.diameter_ / 2
    # No class is left out, and of one with five rows all are drawn.
    of_class = y[gaps.argmin(axis=0)]
    assert (gaps.min(axis=0) == 0.0).all()
    counts = [int((of_class == label).sum()) for label in np.unique(y)]
    assert min(counts) >= (5 if kind == "rare" else 10)
    with dask.config.set(scheduler="sync"):
        assert clone(model).fit(*data).dual_coef_.tobytes() == model.dual_coef_.tobytes()


def test_warm_start__keeps_core_points_and_saves_reads() -> None:
    model = CSVRGClassifier(lam=200.0, gamma=5.0, max_points=40, warm_start=True, random_state=0)
    first = model.fit(ROWS, TWO_CLASSES)
    points, reads = first.core_points_, first.trace_[-1]["reads"]
    objective = first.objective_
    again = model.fit(ROWS, TWO_CLASSES)
    assert again.core_points_ is points
    assert again.trace_[-1]["reads"] == 1 < reads
    assert again.objective_ == pytest.approx(objective, rel=1e-12)
    assert model.fit(ROWS, CLASSES).dual_coef_.shape == (3, 40)  # other problems begin at zero
    assert model.fit(np.c_[ROWS, ROWS], TWO_CLASSES).core_points_.shape == (40, 4)


# --- what it says --------------------------------------------------------------------------


def test_fit__warns_when_features_are_not_scaled() -> None:
    uneven = ROWS * np.array([1.0, 1000.0], dtype=np.float32)
    with pytest.warns(CoresetWarning, match=r"range of one column is 999.*\[0, 1\]"):
        CSVRGClassifier(max_points=10).fit(uneven, TWO_CLASSES)
    with pytest.warns(CoresetWarning, match="no row sees another one"):
        CSVRGClassifier(max_points=10, gamma=1.0).fit(ROWS * 1000, TWO_CLASSES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CSVRGClassifier(max_points=10).fit(ROWS * 1000, TWO_CLASSES)


@pytest.mark.parametrize("data", ["one far row", "no rows are alike"])
def test_fit__warns_when_the_kernel_hardly_tells_rows_apart(data: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    if data == "one far row":
        X[7] = 1e5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CSVRGClassifier(max_points=100, size=1000, random_state=0).fit(X, y)
    told = any("hardly tells rows apart" in str(warning.message) for warning in caught)
    assert told == (data != "no rows are alike")


def test_fit__warns_when_it_stops_early() -> None:
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        CSVRGClassifier(max_points=40, max_iter=1, lam=1e4, gamma=5.0).fit(ROWS, TWO_CLASSES)
    with pytest.warns(ConvergenceWarning, match="ODMClassifier stopped before tol"):
        ODMClassifier(max_iter=1, lam=1e4, tol=1e-9).fit(ROWS[:200], TWO_CLASSES[:200])


SCRIPT = """
import hashlib, sys
import numpy as np, dask, dask.array as da
from daskcoreset.estimators import CSVRGClassifier
rng = np.random.default_rng(0)
X = rng.random((12_000, 20))
y = X[:, 0] > X[:, 1]
dask.config.set(scheduler=sys.argv[1])
for solver in ("exact", "csvrg"):
    model = CSVRGClassifier(
        lam=20.0, max_points=120, solver=solver, tol=1e-2, n_inner=2000, random_state=0
    ).fit(da.from_array(X, chunks=(3000, 20)), da.from_array(y, chunks=3000))
    print(hashlib.sha256(model.dual_coef_.tobytes()).hexdigest())
"""


@pytest.mark.nightly
def test_fit__same_bits_whatever_the_threads_of_blas() -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, scheduler],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
            stdout=subprocess.PIPE,
            text=True,
        )
        for threads, scheduler in (("1", "sync"), ("2", "threads"))
    ]
    found = {run.communicate(timeout=900)[0] for run in runs}
    assert len(found) == 1
    assert len(found.pop().splitlines()) == 2


@few("n", [3_000, 12_000], always=1)
def test_coreset__the_rows_that_size_drew_and_an_audit(n: int) -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(n // 2, 3)), 2, axis=0)
    y = np.where((X**2).sum(axis=1) < 2, "in", "out")
    model = CSVRGClassifier(max_points=40, size=900, random_state=0).fit(X, y)
    lazy = da.from_array(X, chunks=(2_000, 3)), da.from_array(y, chunks=2_000)
    for rows in ((X, y), lazy):
        model.fit(*rows)
        found = model.coreset_
        np.testing.assert_array_equal(X[found.indices], found.points)
        np.testing.assert_array_equal(y[found.indices], found.labels)
        for label in ("in", "out"):
            weight = found.weights[found.labels == label].sum()
            assert weight == pytest.approx((y == label).sum())
        report = model.audit(*rows, random_state=0)
        assert report.objective.name == "cost of a kernel machine"
        # With another tenth of the rows, the model of few rows would be off by so much.
        assert report.distortion < 0.6
        np.testing.assert_allclose(report.on_data[1], n * model.lam_ / n / (1 - 0.4) ** 2 * 0.36)
    assert "drawn by class" in repr(found)
    assert model.audit(X, y, solutions=model, random_state=0).distortion < 0.6
    with pytest.raises(InvalidInputError, match="dual_coef_"):
        model.audit(X, y, solutions=CSVRGClassifier(max_points=9).fit(X, y))
    model.set_params(size=None).fit(X, y)  # trained on all rows: those that were chosen
    np.testing.assert_array_equal(model.coreset_.points, model.core_points_)
    assert model.coreset_.provenance["weights"] == "of the draw"
    assert model.audit(X, y, random_state=0).on_data[0] > 0
