"""Classifiers of the largest margin: in memory, out of core, and by scikit-learn's checks."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC, LinearSVC

from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.margin.max_margin import MaxMarginClassifier, OutlierMaxMarginClassifier
from daskcoreset.solvers.hard_margin import hard_margin_bias
from daskcoreset.testing.tools import CountingScheduler
from tests.pairs import each
from tests.tools.margins import separable


def rows(seed: int = 0, n: int = 500) -> tuple[FloatArray, FloatArray]:
    return separable(np.random.default_rng(seed), n, 3, 0.3)


def test_fit__out_of_core_is_certified_and_lazy() -> None:
    X, y = rows(1, 4000)
    names = np.where(y > 0, "plus", "minus")
    lazy, labels = da.from_array(X, chunks=(500, -1)), da.from_array(names, chunks=500)
    model = MaxMarginClassifier(epsilon=0.05).fit(lazy, labels)
    assert model.factor_ >= 0.95
    assert model.classes_.tolist() == ["minus", "plus"]
    assert model.margin_ >= 0.95 * hard_margin_bias(X, y).margin
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        predicted, values = model.predict(lazy), model.decision_function(lazy)
    assert scheduler.calls == 0
    assert (predicted.compute() == names).all()
    assert values.compute() == pytest.approx(model.decision_function(X))
    assert model.score(lazy, labels) == 1.0
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == names).all()


@each(lazy=[False, True], kernel=["linear", "rbf"])
def test_fit__several_classes(kernel: str, lazy: bool) -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 4, 400)
    X = np.eye(4)[y] * 4 + rng.uniform(-0.6, 0.6, size=(400, 4))
    given_X: Any = da.from_array(X, chunks=(100, -1)) if lazy else X
    given_y: Any = da.from_array(y, chunks=100) if lazy else y
    model = MaxMarginClassifier(kernel=kernel).fit(given_X, given_y)
    assert model.score(given_X, given_y) == 1.0
    assert model.factor_ >= 0.9
    assert model.decision_function(X).shape == (400, 4)
    assert hasattr(model, "coef_") == (kernel == "linear")
    if kernel == "linear":
        values = np.sort(X @ model.coef_.T + model.intercept_, axis=1)
        assert (values[:, -1] - values[:, -2]).min() > 0


def test_fit__kernel_separates_what_no_hyperplane_does() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    X = X[np.abs((X**2).sum(axis=1) - 1.4) > 0.2]
    y = ((X**2).sum(axis=1) > 1.4).astype(int)
    model = MaxMarginClassifier(kernel="rbf").fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.separable_
    machine = SVC(C=1e8, gamma="scale", tol=1e-8).fit(X, y)
    values = y * 2.0 - 1.0
    by_svc = (values * machine.decision_function(X)).min()
    # A support vector machine puts its margin at one; in lengths it is one over the norm.
    gamma = 1 / (2 * X.var())
    held = machine.support_vectors_
    gram = np.exp(-gamma * ((held[:, None] - held) ** 2).sum(axis=2))
    norm = np.sqrt(machine.dual_coef_[0] @ gram @ machine.dual_coef_[0])
    assert by_svc == pytest.approx(1.0, abs=1e-3)
    assert model.margin_ == pytest.approx(1 / norm, rel=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit__what_is_not_separable_gets_a_soft_margin_or_an_error(n_classes: int) -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, n_classes, 600)
    X = np.eye(3)[y] * 2 + rng.normal(size=(600, 3))
    with pytest.warns(CoresetWarning, match="a soft margin is fitted, for .*separa"):
        model = MaxMarginClassifier().fit(X, y)
    assert not model.separable_
    assert model.margin_ == 0.0 == model.factor_
    assert len(model.evidence_.coefficients) == len(model.evidence_.indices) >= 2
    assert model.score(X, y) >= LinearSVC().fit(X, y).score(X, y) - 0.03
    with pytest.raises(InvalidInputError, match="separa"):
        MaxMarginClassifier(on_inseparable="raise").fit(X, y)


def test_fit__soft_kernel_where_equal_rows_differ() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(int)
    X[1], y[1] = X[0], 1 - y[0]
    with pytest.warns(CoresetWarning, match="opposite labels, 0 and 1"):
        model = MaxMarginClassifier(kernel="rbf", gamma=0.5).fit(X, y)
    expected = SVC(gamma=0.5).fit(X, y).decision_function(X)
    assert model.decision_function(X) == pytest.approx(expected, abs=1e-6)


def test_fit__numbers_of_rows_count_those_without_a_weight() -> None:
    X, y = rows(7, 100)
    u = np.r_[np.zeros(30), np.ones(70)]
    model = MaxMarginClassifier().fit(X, y, u)
    assert model.core_indices_.min() >= 30
    normal = model.dual_coef_ @ X[model.core_indices_]
    assert normal / np.linalg.norm(normal) == pytest.approx(model.coef_[0])
    lazy = MaxMarginClassifier(epsilon=1e-6).fit(da.from_array(X, chunks=(20, -1)), y, u)
    assert lazy.coef_ == pytest.approx(model.coef_, abs=1e-2)
    with pytest.raises(InvalidInputError, match="zero for some rows"):
        MaxMarginClassifier().fit(da.from_array(X, chunks=(20, -1)), np.arange(100) % 3, u)


@pytest.mark.parametrize("lazy", [False, True])
def test_outliers__are_found_and_left_out(lazy: bool) -> None:
    X, truth = rows(9)
    y = truth.copy()
    y[[11, 222]] *= -1
    given_X: Any = da.from_array(X, chunks=(100, -1)) if lazy else X
    given_y: Any = da.from_array(y, chunks=100) if lazy else y
    model = OutlierMaxMarginClassifier(k=2).fit(given_X, given_y)
    assert model.outliers_.tolist() == [11, 222]
    assert model.probability_ == 1.0
    assert model.score(X, truth) == 1.0
    assert model.margin_ >= 0.9 * hard_margin_bias(X, truth).margin
    assert model.result_ is not None
    assert model.separable_


def test_outliers__more_than_k_get_a_soft_margin_or_an_error() -> None:
    X, y = rows(10)
    y[:20] *= -1
    with pytest.warns(CoresetWarning, match="when 1 rows are left out"):
        model = OutlierMaxMarginClassifier().fit(X, y)
    assert not model.separable_
    assert not len(model.outliers_)
    assert model.probability_ == 0.0
    assert model.score(X, y) > 0.9
    with pytest.raises(InvalidInputError, match="when 1 rows are left out"):
        OutlierMaxMarginClassifier(on_inseparable="raise").fit(X, y)
    with pytest.raises(InvalidInputError, match="Only binary"):
        OutlierMaxMarginClassifier().fit(X, np.arange(len(X)) % 3)


def test_fit__again_with_other_columns_and_another_kernel(tmp_path: Path) -> None:
    X, y = rows(11, 200)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    frame.to_parquet(tmp_path / "rows.parquet")
    model = MaxMarginClassifier().fit(str(tmp_path / "rows.parquet"), "y")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert hasattr(model, "coef_")
    model.set_params(kernel="rbf").fit(da.from_array(X, chunks=(50, -1)), y)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "feature_names_in_")


def test_fit__several_classes_through_the_origin() -> None:
    rng = np.random.default_rng(12)
    y = rng.integers(0, 3, 200)
    X = np.eye(3)[y] * 4 + rng.uniform(-0.6, 0.6, size=(200, 3))
    model = MaxMarginClassifier(fit_intercept=False).fit(X, y)
    assert not model.intercept_.any()
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("lazy", [False, True])
def test_fit__margin_is_that_of_the_class_that_is_nearest_to_the_others(lazy: bool) -> None:
    """One side at a time by brute force: the classes lie 1, 1 and 3 away from the rest."""
    X = np.array([[0.0], [0.5], [1.5], [2.0], [5.0], [5.5]])
    y = np.array([0, 0, 1, 1, 2, 2])
    given_X: Any = da.from_array(X, chunks=(2, 1)) if lazy else X
    given_y: Any = da.from_array(y, chunks=2) if lazy else y
    model = MaxMarginClassifier(kernel="rbf", gamma=0.5, epsilon=1e-9).fit(given_X, given_y)
    gram = np.exp(-0.5 * (X - X.T) ** 2)
    margins = []
    for label in range(3):
        exact = SVC(C=1e12, kernel="precomputed", tol=1e-10).fit(gram, y == label)
        dual = exact.dual_coef_[0]
        margins.append(1.0 / np.sqrt(dual @ gram[np.ix_(exact.support_, exact.support_)] @ dual))
    assert max(margins) > 1.2 * min(margins)
    assert model.margin_ == pytest.approx(min(margins), rel=1e-6)
    assert [one.margin for one in model.core_] == pytest.approx(margins, rel=1e-6)


def test_coreset__holds_the_rows_that_were_chosen() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 3))
    X[:, 0] += np.sign(X[:, 0]) * 0.2
    y = np.where(X[:, 0] > 0, "up", "down")
    model = MaxMarginClassifier()
    assert not hasattr(model, "coreset_")
    chosen = model.fit(X, y).coreset_
    np.testing.assert_allclose(chosen.points, X[chosen.indices])
    assert chosen.labels is not None
    assert (chosen.labels == y[chosen.indices]).all()
    assert (chosen.provenance["n"], chosen.provenance["method"]) == (500, "max_margin")
    # On these rows alone the margin is that of all.
    again = MaxMarginClassifier().fit(chosen.points, chosen.labels)
    assert again.margin_ == pytest.approx(model.margin_, rel=1e-3)
    with pytest.warns(CoresetWarning, match="soft margin"):
        model.fit(X, np.roll(y, 100))
    # Nothing is separable: those that the soft margin is fitted to, which are all of so few.
    np.testing.assert_array_equal(model.coreset_.indices, np.arange(500))
    np.testing.assert_array_equal(model.coreset_.points, X)
