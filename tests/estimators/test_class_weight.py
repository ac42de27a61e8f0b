"""Weights of classes: in the draw, in totals, out of core and in streams."""

from __future__ import annotations

from functools import cache
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators import (
    CoresetLogisticRegression,
    CoresetSVC,
)
from daskcoreset.estimators.linear import LinearSVM


@cache
def few_positives(n: int, positives: int) -> tuple[FloatArray, AnyArray]:
    """Rows of heavy tails, and so many of the class that matters."""
    rng = np.random.default_rng(588)
    y = np.zeros(n, dtype=np.int64)
    y[rng.choice(n, positives, replace=False)] = 1
    X = rng.standard_normal((n, 6)) * rng.lognormal(0.0, 0.5, (n, 1))
    X[y == 1, :3] += 1.5
    return X, y


def weighted_error(model: Any, X: FloatArray, y: AnyArray, seed: int) -> float:
    """Relative distance of the coefficients from those of scikit-learn on all rows."""
    full = LogisticRegression(class_weight="balanced", tol=1e-8).fit(X, y)
    found = model.set_params(random_state=seed).fit(X, y)
    return float(np.linalg.norm(found.coef_ - full.coef_) / np.linalg.norm(full.coef_))


def test_class_weight__draws_are_made_for_the_weighted_loss() -> None:
    """Weighing the classes only after the draw has several times the error."""
    X, y = few_positives(30_000, 118)
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
def test_class_weight__that_leaves_one_class_is_named(make: Any) -> None:
    X, y = few_positives(600, 60)
    data = X, np.array(["no", "yes"])[y]
    for rows in (data, (da.from_array(X, chunks=(300, 6)), da.from_array(data[1], chunks=300))):
        for size in (50, 700):
            model = make(size=size, class_weight={"no": 0, "yes": 1})
            with pytest.raises(InvalidInputError, match=r"one class only, \['yes'\].*class_weight"):
                model.fit(*rows)


@pytest.mark.parametrize("make", [CoresetSVC, CoresetLogisticRegression])
def test_class_weight__of_an_unknown_label_out_of_core(make: Any) -> None:
    X, y = few_positives(600, 60)
    rows, labels = da.from_array(X, chunks=(300, 6)), da.from_array(y, chunks=300)
    with pytest.raises(InvalidInputError, match="class_weight has 2"):
        make(size=400, class_weight={2: 5.0}, random_state=0).fit(rows, labels)
    known = make(size=400, class_weight={0: 1.0, 1: 5.0, 2: 9.0}, random_state=0)
    known.fit(rows, labels)
    assert known.classes_.tolist() == [0, 1]


def test_class_weight__of_a_class_that_uniform_rows_lose() -> None:
    X, y = few_positives(600, 60)
    y = y.copy()
    y[7] = 2
    rows, labels = da.from_array(X, chunks=(300, 6)), da.from_array(y, chunks=300)
    model = CoresetLogisticRegression(method="uniform", size=20, random_state=0)
    with pytest.raises(InvalidInputError, match=r"2, which is not a label of the rows.*size"):
        model.set_params(class_weight={2: 1.0}).fit(rows, labels)
    kept = model.set_params(method="logistic", size=300).fit(rows, labels)
    assert kept.classes_.tolist() == [0, 1, 2]


def test_class_weight__of_three_classes_weighs_rows_and_not_problems() -> None:
    X, y = few_positives(900, 90)
    y = np.where(X[:, 1] > 0.5, 2, y)
    factors = {0: 1.0, 1: 8.0, 2: 3.0}
    model = CoresetSVC(size=1000, class_weight=factors, random_state=0).fit(X, y)
    weights = np.array([factors[label] for label in y.tolist()])
    plain = LinearSVM().fit(X, y, weights)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-4)
    solver = LinearSVC(class_weight=factors, intercept_scaling=1e3, max_iter=100_000)
    assert not np.allclose(solver.fit(X, y).coef_, model.coef_, rtol=0.05)


@pytest.mark.parametrize("make", [CoresetSVC, CoresetLogisticRegression])
@pytest.mark.parametrize("lazy", [False, True])
def test_partial_fit__of_a_label_that_is_misspelled(make: Any, lazy: bool) -> None:
    X, y = few_positives(600, 300)
    names = np.array(["no", "yes"])[y]
    rows = (X, names)
    if lazy:
        rows = da.from_array(X, chunks=(300, 6)), da.from_array(names, chunks=300)
    model = make(class_weight={"yse": 5.0}, random_state=0)
    for classes in (None, ["no", "yes"]):
        with pytest.raises(InvalidInputError, match="class_weight has 'yse'"):
            model.partial_fit(*rows, classes=classes)
        assert not hasattr(model, "coreset_")
    only = names == "no"
    model = make(class_weight={"yes": 5.0}, random_state=0)
    model.partial_fit(X[only], names[only], classes=["no", "yes"]).partial_fit(*rows)
    assert model.coreset_.total_weight == pytest.approx(only.sum() + 600 + 4 * (~only).sum())
