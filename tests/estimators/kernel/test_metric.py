"""Factors of columns that are learned from a pilot."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators import CSVRGClassifier
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelDecision, KernelMap
from daskcoreset.estimators.kernel.losses import LOSSES
from daskcoreset.estimators.kernel.metric import _squared_slopes, learned_scales


def many_columns(n: int = 4_000, d: int = 10) -> tuple[FloatArray, AnyArray]:
    """Rows of which two columns tell the classes apart."""
    X = np.random.default_rng(0).random((n, d))
    return X, np.where((X[:, 3] - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 < 0.15, "in", "out")


def learned(X: AnyArray, y: AnyArray, lam: float = 3.0) -> FloatArray:
    rows, classes = Block(X, np.ones(len(X)), y), np.unique(y)
    return learned_scales(rows, X[:200], LOSSES["odm"], classes=classes, lam=lam * len(X), seed=0)


def test_squared_slopes__as_by_differences() -> None:
    rng = np.random.default_rng(0)
    X, u = rng.random((60, 3)), rng.random(60)
    core = KernelMap(Isotropic("rbf", 2.0), rng.random((9, 3)))
    beta = rng.normal(size=(9, 2))
    decision = KernelDecision(core, beta, np.arange(3))
    for j in range(3):
        step = 1e-5 * np.eye(3)[j]
        slopes = (decision.values(X + step) - decision.values(X - step)) / 2e-5
        expected = u @ np.square(slopes) / u.sum()
        np.testing.assert_allclose(_squared_slopes(core, beta, Block(X, u))[:, j], expected, 1e-6)


def test_fit__two_columns_of_ten() -> None:
    X, y = many_columns()
    fresh = many_columns(9_000)
    scores = {}
    for metric in ("euclidean", "learned"):
        model = CSVRGClassifier(metric=metric, max_points=60, random_state=0).fit(X, y)
        scores[metric] = model.score(*fresh)
    assert scores["learned"] > scores["euclidean"] + 0.02
    others = np.delete(model.scales_, [1, 3])
    assert model.scales_[[1, 3]].min() > 3 * others.max()
    # Gamma means the same as before.
    variances = X.var(axis=0)
    assert (model.scales_**2) @ variances == pytest.approx(variances.sum(), rel=0.05)


def test_learned_scales__hostile_rows() -> None:
    X, y = many_columns(2_000, 5)
    # Of no unit: the slope along a column in other units is the slope times them.
    units = np.array([1.0, 1.0, 1.0, 1e-2, 1.0])
    assert learned(X * units, y)[3] > 0
    # A constant column, noise labels, one value only.
    X[:, 2] = 7.0
    assert learned(X, y)[2] == 0.0
    noise = np.random.default_rng(0).integers(0, 2, len(X))
    assert np.isfinite(learned(X, noise)).all()
    np.testing.assert_array_equal(learned(np.full_like(X, 3.0), y), np.ones(5))


def test_learned_scales__a_class_of_five_rows_has_its_column() -> None:
    X, y = many_columns(3_000, 8)
    X[:, 3] = 4 * X[:, 3]
    X[:5, 5], y[:5] = 3.0, "rim"  # X[:, 5] is below one elsewhere
    scales = learned(X, y)
    assert scales[5] > np.delete(scales, [1, 3, 5]).max()
    model = CSVRGClassifier(metric="learned", max_points=60, random_state=0).fit(X, y)
    assert (model.predict(X[:5]) == "rim").all()


def test_fit__same_bits_on_every_scheduler_sparse_as_dense_and_warm() -> None:
    X, y = many_columns(12_000, 6)
    rows: Any = da.from_array(X, chunks=(3_000, 6)), da.from_array(y, chunks=3_000)
    found = []
    for scheduler in ("sync", "threads"):
        with dask.config.set(scheduler=scheduler):
            model = CSVRGClassifier(metric="learned", max_points=40, size=2_000, random_state=0)
            found.append(model.fit(*rows))
    first, second = found
    np.testing.assert_array_equal(first.scales_, second.scales_)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert first.audit(*rows, random_state=0).distortion < 0.5
    before = first.scales_
    first.set_params(warm_start=True, C=2.0).fit(*rows)
    assert first.scales_ is before
    first.set_params(warm_start=False, metric="euclidean").fit(*rows)
    assert not hasattr(first, "scales_")


def test_fit__what_a_learned_metric_does_not_go_with() -> None:
    X, y = many_columns(300, 4)
    for options in ({"diameter": 0.5}, {"strategy": "online"}, {"strategy": "farthest"}):
        with pytest.raises(InvalidInputError, match=r"metric=.*covers"):
            CSVRGClassifier(metric="learned", **options).fit(X, y)
    with pytest.raises(InvalidInputError, match="partial_fit cannot learn a metric"):
        CSVRGClassifier(metric="learned").partial_fit(X, y)
    with pytest.raises(ValueError, match="metric"):
        CSVRGClassifier(metric="cosine").fit(X, y)  # type: ignore[arg-type] # what is tested
