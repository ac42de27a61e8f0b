"""Weights of classes: in the draw, in totals, out of core and in streams."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.linear_model import LogisticRegression

from daskcoreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators import (
    CoresetLogisticRegression,
    CoresetSVC,
)


@cache
def rare(n: int = 150_000, positives: int = 588, d: int = 6) -> tuple[FloatArray, AnyArray]:
    """Rows of heavy tails, 0.39 % of them of the class that matters."""
    rng = np.random.default_rng(588)
    y = np.zeros(n, dtype=np.int64)
    y[rng.choice(n, positives, replace=False)] = 1
    X = rng.standard_normal((n, d)) * rng.lognormal(0.0, 0.5, (n, 1))
    X[y == 1, :3] += 1.5
    return X, y


def labels_of(coreset: Coreset) -> AnyArray:
    assert coreset.labels is not None
    return coreset.labels


def weighted_error(model: Any, X: FloatArray, y: AnyArray, seed: int) -> float:
    """Relative distance of the coefficients from those of scikit-learn on all rows."""
    full = LogisticRegression(class_weight="balanced", tol=1e-8).fit(X, y)
    found = model.set_params(random_state=seed).fit(X, y)
    return float(np.linalg.norm(found.coef_ - full.coef_) / np.linalg.norm(full.coef_))


def test_class_weight__draws_are_made_for_the_weighted_loss() -> None:
    """Weighing the classes only after the draw has several times the error."""
    X, y = rare(30_000, 118)
    before = [
        weighted_error(CoresetLogisticRegression(size=600, class_weight="balanced"), X, y, seed)
        for seed in range(4)
    ]
    inner = LogisticRegression(class_weight={0: 30_000 / 2 / 29_882, 1: 30_000 / 2 / 118})
    after = [
        weighted_error(CoresetLogisticRegression(size=600, estimator=inner), X, y, seed)
        for seed in range(4)
    ]
    assert np.mean(before) < 0.1
    assert np.mean(before) < 0.5 * np.mean(after)


@pytest.mark.parametrize("make", [CoresetSVC, CoresetLogisticRegression])
def test_class_weight__totals_of_the_coreset_are_weighted(make: Any) -> None:
    X, y = rare(6000, 60)
    u = np.random.default_rng(3).random(6000) + 0.5
    model = make(size=200, class_weight="balanced", random_state=0).fit(X, y, u)
    for code in (0, 1):
        own = labels_of(model.coreset_) == code
        np.testing.assert_allclose(model.coreset_.weights[own].sum(), u.sum() / 2, rtol=1e-9)
    named = make(size=200, class_weight={1: 7.0}, random_state=0).fit(X, y, u)
    rare_ones = labels_of(named.coreset_) == 1
    np.testing.assert_allclose(
        named.coreset_.weights[rare_ones].sum(), 7 * u[y == 1].sum(), rtol=1e-9
    )


@pytest.mark.parametrize("weight", ["balanced", {"a": 0.25, "b": 9.0}])
def test_class_weight__out_of_core_as_in_memory(weight: Any, tmp_path: Path) -> None:
    X, y = rare(6000, 60)
    named = np.where(y == 1, "b", "a")
    model = CoresetSVC(size=200, class_weight=weight, random_state=0)
    here = model.fit(X, named).coef_
    lazy = da.from_array(X, chunks=(6000, 6)), da.from_array(named, chunks=6000)
    np.testing.assert_allclose(model.fit(*lazy).coef_, here, rtol=1e-6)
    assert model.n_features_in_ == 6
    group = zarr.open_group(tmp_path / "rows.zarr", mode="w")
    group.create_array("X", data=X)
    group.create_array("y", data=y)
    by_number = weight if weight == "balanced" else {0: 0.25, 1: 9.0}
    stored = model.set_params(class_weight=by_number).fit(str(tmp_path / "rows.zarr"), "y")
    np.testing.assert_allclose(stored.coef_, here, rtol=1e-6)


def test_class_weight__streams_take_a_dict() -> None:
    X, y = rare(4000, 40)
    model = CoresetLogisticRegression(size=100, class_weight={1: 5.0}, random_state=0)
    for part in np.array_split(np.argsort(np.random.default_rng(0).random(4000)), 4):
        model.partial_fit(X[part], y[part])
    own = labels_of(model.coreset_) == 1
    np.testing.assert_allclose(model.coreset_.weights[own].sum(), 200.0, rtol=1e-9)
    more = da.from_array(X, chunks=(2000, 6)), da.from_array(y, chunks=2000)
    model.partial_fit(*more)
    own = labels_of(model.coreset_) == 1
    np.testing.assert_allclose(model.coreset_.weights[own].sum(), 400.0, rtol=1e-9)
    with pytest.raises(InvalidInputError, match="needs the labels of all rows"):
        CoresetSVC(class_weight="balanced").partial_fit(X, y)


@pytest.mark.parametrize("make", [CoresetSVC, CoresetLogisticRegression])
def test_class_weight__that_leaves_one_class_is_named(make: Any) -> None:
    X, y = rare(600, 60)
    data = X, np.array(["no", "yes"])[y]
    for rows in (data, (da.from_array(X, chunks=(300, 6)), da.from_array(data[1], chunks=300))):
        for size in (50, 700):
            model = make(size=size, class_weight={"no": 0, "yes": 1})
            with pytest.raises(InvalidInputError, match=r"one class only, \['yes'\].*class_weight"):
                model.fit(*rows)
