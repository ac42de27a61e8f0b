"""Masked arrays of NumPy, and what gives them: what is masked is missing in every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.acceptance.face import WeightedPoints, build, call, estimators, stream

rng = np.random.default_rng(8)
X = rng.gamma(2.0, size=(60, 3))
Y = (X[:, 0] > 2).astype(np.int64)


def masked(values: Any, *at: int) -> Any:
    """Return a copy whose value at one place is masked, with the fill value below it."""
    hidden = np.zeros(values.shape, bool)
    hidden[at] = True
    fill = 9.96921e36 if values.dtype.kind == "f" else 99
    filled = np.where(hidden, np.asarray(fill, values.dtype), values)
    return np.ma.masked_array(filled, hidden)


class Variable:
    """An array on disk of which slices are masked arrays, as netCDF4 has them."""

    def __init__(self, values: Any) -> None:
        self.shape, self.dtype, self.ndim, self._values = values.shape, values.dtype, 2, values

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._values.data, dtype)


MISSING: dict[str, Any] = {
    "float": masked(X, 17, 1),
    "int": masked(np.arange(180).reshape(60, 3), 17, 1),
    "list of rows": list(masked(X, 17, 1)),
    "dask": da.from_array(masked(X, 17, 1), chunks=(7, 3)),
    "variable": Variable(masked(X, 17, 1)),
    "variable of int16": Variable(masked(np.arange(180, dtype="i2").reshape(60, 3), 17, 1)),
}

MODELS: dict[str, Callable[[], Any]] = {
    "kmeans": lambda: estimators.CoresetKMeans(2, random_state=0),
    "mixture": lambda: estimators.CoresetGaussianMixture(2, random_state=0),
    "bregman": lambda: estimators.CoresetBregman(2, random_state=0),
    "svc": lambda: estimators.CoresetSVC(random_state=0),
    "logistic": lambda: estimators.CoresetLogisticRegression(random_state=0),
    "ridge": lambda: estimators.CoresetRidge(random_state=0),
    "meta": lambda: estimators.CoresetEstimator(LogisticRegression()),
    "kernel": lambda: estimators.CoresetKernelClassifier(random_state=0),
    "margin": estimators.MaxMarginClassifier,
}


@pytest.mark.parametrize("source", MISSING.values(), ids=MISSING)
def test_build__finds_masked_values(source: Any) -> None:
    with pytest.raises(ValueError, match="NaN in column 1 at row 17"):
        build(source, size=9)
    dropped = build(source, size=40, on_invalid="drop", random_state=0)
    assert dropped.total_weight == pytest.approx(59, rel=0.1)
    assert 17 not in dropped.indices


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_estimators__find_masked_values(make: Callable[[], Any]) -> None:
    for source in MISSING.values():
        with pytest.raises(ValueError, match="NaN in column 1 at row 17"):
            call(make().fit, source, Y)
    model = call(make().fit, X, (X[:, 0] > 2).astype(np.int64))
    for answer in ("predict", "transform", "predict_proba", "decision_function", "score"):
        if hasattr(model, answer):
            labels = (Y,) if answer == "score" else ()
            with pytest.raises(ValueError, match="NaN in column 1 at row 17"):
                call(getattr(model, answer), MISSING["float"], *labels)


@pytest.mark.parametrize("name", ["svc", "logistic", "ridge", "kernel", "margin"])
def test_labels__that_are_masked_are_found(name: str) -> None:
    model = MODELS[name]()
    for labels in (masked(Y, 23), masked(Y.astype(float), 23)):
        with pytest.raises(ValueError, match="y is masked at row 23"):
            call(model.fit, X, labels)
    call(model.fit, X, Y)
    with pytest.raises(ValueError, match="y is masked at row 23"):
        call(model.score, X, masked(Y, 23))


def test_weights__that_are_masked_are_found() -> None:
    weights = masked(np.ones(60), 31)
    for use in (
        lambda: build(X, sample_weight=weights, size=9),
        lambda: call(MODELS["kmeans"]().fit, X, sample_weight=weights),
        lambda: call(MODELS["svc"]().fit, X, Y, sample_weight=weights),
        lambda: stream(size=9).partial_fit(X, sample_weight=weights),
    ):
        with pytest.raises(ValueError, match="sample_weight is nan at row 31"):
            use()


def test_masks__that_hide_nothing_change_nothing() -> None:
    bare = np.ma.masked_array(X, np.zeros(X.shape, bool))
    plain = build(X, size=9, random_state=0)
    for source in (bare, Variable(bare)):
        assert build(source, size=9, random_state=0).equals(plain)
    labels = MODELS["kmeans"]().fit(X).labels_
    np.testing.assert_array_equal(MODELS["kmeans"]().fit(bare).labels_, labels)


def test_audit__finds_masked_values() -> None:
    coreset = build(X, size=9, random_state=0)
    with pytest.raises(ValueError, match="NaN in column 1 at row 17"):
        coreset.audit(MISSING["float"], n_clusters=2)
    with pytest.raises(TypeError, match="masked array"):
        WeightedPoints(MISSING["float"], np.ones(60), np.arange(60))
