"""What estimators share: seeds, starts, and the checks of scikit-learn without a failure."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
from dask.delayed import delayed
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import daskcoreset
from daskcoreset import SVM, Coreset, CoresetTree, StrongKMeans, build, estimators
from daskcoreset.build import default_size
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.estimators import (
    ActiveMaxMarginClassifier,
    AVMClassifier,
    CoresetEstimator,
    CoresetGaussianMixture,
    CoresetKMeans,
    CoresetLogisticRegression,
    CoresetRidge,
    CoresetSVC,
    CSVRGClassifier,
    MaxMarginClassifier,
    ODMClassifier,
    OutlierMaxMarginClassifier,
    StructuredMaxMargin,
    coreset_search,
)
from daskcoreset.estimators.base import is_in_memory, solver_seed
from daskcoreset.solvers.kmeans import auto_starts
from daskcoreset.testing import CountingArray
from tests.acceptance.tools.stored_rows import X, zarr_of


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


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (CoresetLogisticRegression(size="auto", method="uniform"), 'method="svm" or "logistic"'),
        (CoresetEstimator(LogisticRegression(), size="auto"), 'method="svm" or "logistic"'),
        (CoresetRidge(size="auto", method="lightweight"), 'method="least_squares"'),
        (CoresetEstimator(StandardScaler(), size="auto"), "a method with n_clusters"),
    ],
)
def test_fit__of_an_automatic_size_names_methods_that_go_with_it(
    model: Any, advice: str, lazy: bool
) -> None:
    data = da.from_array(X, chunks=(500, -1)) if lazy else X
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    with pytest.raises(
        InvalidInputError, match=f"of how many centers.*number of rows, or {advice}"
    ):
        model.fit(data, y)


@pytest.mark.parametrize("lazy", [False, True])
def test_fit__methods_that_an_estimator_cannot_use(lazy: bool) -> None:
    rows: Any = np.random.default_rng(0).normal(size=(100, 2))
    data = da.from_array(rows, chunks=(50, 2)) if lazy else rows
    for model in (CoresetKMeans(3, method="svm"), CoresetEstimator(KMeans(3), method="logistic")):
        with pytest.raises(InvalidInputError, match=rf"labels, which {type(model).__name__} does"):
            model.fit(data)
    with pytest.raises(InvalidInputError, match="needs n_clusters; pass an object, for example"):
        CoresetLogisticRegression(method="kmeans").fit(rows, rows[:, 0] > 0)


class _Counted:
    """Loads partitions of a data frame, and counts how often."""

    def __init__(self, frame: pd.DataFrame, partitions: int) -> None:
        self.parts = np.array_split(np.arange(len(frame)), partitions)
        self.frame, self.loads = frame, 0

    def __call__(self, part: int) -> pd.DataFrame:
        self.loads += 1
        return self.frame.iloc[self.parts[part]]

    def __dask_tokenize__(self) -> str:
        return "counted"


@pytest.mark.parametrize(
    ("name", "y", "size"),
    [
        ("CoresetBregman", None, 10_000),
        ("CoresetElasticNet", "target", 10_000),
        ("CoresetKMeans", None, 500),
        ("CoresetKMeans", None, 10_000),
        ("CoresetLogisticRegression", "label", 10_000),
        ("CoresetSVC", "label", 10_000),
    ],
)
def test_fit__reads_a_frame_of_unknown_lengths_as_often_as_it_says(
    name: str, y: str | None, size: int
) -> None:
    rows = np.abs(np.random.default_rng(0).normal(size=(1500, 3)))
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    frame["label"], frame["target"] = (rows[:, 0] > rows[:, 1]) * 1.0, rows[:, 0]
    frame = frame[["a", "b", "c", *([] if y is None else [y])]]
    counted = _Counted(frame, 5)
    lazy = dd.from_map(counted, range(5), meta=frame.iloc[:0])
    model = getattr(estimators, name)(size=size, random_state=0)
    with dask.config.set(scheduler="sync"):
        model.fit(lazy, **({} if y is None else {"y": y}))
    record = model.coreset_.provenance
    assert counted.loads == 5 * record["passes"] + record["blocks_read_again"]
    assert not record["blocks_read_again"]
    if y is None:  # the same rows as of known lengths
        known = getattr(estimators, name)(size=size, random_state=0)
        with dask.config.set(scheduler="sync"):
            known.fit(lazy.to_dask_array(lengths=True))
        np.testing.assert_array_equal(model.coreset_.points, known.coreset_.points)
        np.testing.assert_array_equal(model.coreset_.weights, known.coreset_.weights)


# --- a coreset, a member of a portfolio or a tree, in place of X ---


def make_portfolio() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 5000)
    X = rng.normal(size=(5000, 3)) + 2.0 * (y == "yes")[:, np.newaxis]
    methods = {"clusters": StrongKMeans(2), "svm": SVM()}
    return X, y, daskcoreset.build(X, y, size=400, method=methods, random_state=0)


def test_fit__on_a_member_uses_its_rows_and_weights() -> None:
    X, _, portfolio = make_portfolio()
    coreset = portfolio["clusters"]
    model = CoresetKMeans(2, random_state=0, size=100).fit(coreset)
    assert model.coreset_.equals(coreset)
    assert model.n_features_in_ == 3
    everything = CoresetKMeans(2, random_state=0, size=5000).fit(X)
    assert -model.score(X) <= 1.05 * everything.inertia_
    assert len(model.predict(coreset)) == len(coreset)
    assert model.score(coreset) == pytest.approx(-model.inertia_)
    by_method = CoresetKMeans(2, random_state=0).fit(portfolio)
    np.testing.assert_array_equal(by_method.cluster_centers_, model.cluster_centers_)
    assert CoresetSVC(random_state=0).fit(portfolio).coreset_.equals(portfolio["svm"])
    mixture = CoresetGaussianMixture(2, random_state=0).fit(coreset)
    assert mixture.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("model", [CoresetSVC(random_state=0), CoresetLogisticRegression()])
def test_fit__of_classifiers_takes_the_labels_of_the_coreset(model: Any) -> None:
    X, y, portfolio = make_portfolio()
    model.fit(portfolio["svm"])
    assert list(model.classes_) == ["no", "yes"]
    assert model.score(X, y) > 0.9
    assert model.score(portfolio["svm"]) > 0.9


def test_fit__of_any_estimator_of_scikit_learn() -> None:
    _, _, portfolio = make_portfolio()
    coreset = portfolio["clusters"]
    labelled = Coreset(
        coreset.points, coreset.weights, coreset.indices, coreset.points @ np.array([1.0, 2.0, 0.0])
    )
    model = CoresetEstimator(Ridge(alpha=1e-9)).fit(labelled)
    np.testing.assert_allclose(model.estimator_.coef_, [1.0, 2.0, 0.0], atol=1e-6)


def test_fit__refuses_what_contradicts_the_coreset() -> None:
    _, _, portfolio = make_portfolio()
    with pytest.raises(InvalidInputError, match=r"'clusters', 'svm' is meant is not clear"):
        CoresetGaussianMixture(2).fit(portfolio)
    with pytest.raises(InvalidInputError, match="leave out y and sample_weight"):
        CoresetKMeans(2).fit(portfolio["svm"], sample_weight=np.ones(400))
    unlabelled = Coreset(np.eye(3), np.ones(3), np.arange(3))
    with pytest.raises((InvalidInputError, ValueError), match="requires y"):
        CoresetSVC().fit(unlabelled)


def test_fit__of_kernel_classifiers_counts_the_weights_of_a_coreset() -> None:
    _, _, portfolio = make_portfolio()
    coreset = portfolio["svm"]
    for model in (
        CSVRGClassifier(max_points=30, random_state=0),
        AVMClassifier(max_points=30, n_steps=1000, random_state=0),
        ODMClassifier(random_state=0),
    ):
        given = clone(model).fit(coreset)
        own = clone(model).fit(coreset.points, coreset.labels, coreset.weights)
        unweighted = clone(model).fit(coreset.points, coreset.labels)
        np.testing.assert_array_equal(given.dual_coef_, own.dual_coef_)
        assert given.lam_ > 2 * unweighted.lam_  # of 5,000 rows, not of 400
        assert given.score(coreset) == own.score(coreset.points, coreset.labels, coreset.weights)
        np.testing.assert_array_equal(
            given.decision_function(coreset), given.decision_function(coreset.points)
        )
        with pytest.raises(InvalidInputError, match="builds none itself; pass one of them"):
            model.fit(portfolio)


@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(),
        OutlierMaxMarginClassifier(),
        ActiveMaxMarginClassifier(),
        StructuredMaxMargin(),
    ],
)
def test_fit__of_the_largest_margin_refuses_coresets(model: Any) -> None:
    _, _, portfolio = make_portfolio()
    for given in (portfolio, portfolio["svm"]):
        with pytest.raises(InvalidInputError, match=r"need not be these.*fit CoresetSVC"):
            model.fit(given)


@pytest.mark.parametrize("method", ["predict", "score", "transform"])
def test_coresets__in_place_of_rows_have_names_that_are_checked(method: str) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 2)), columns=["a", "b"])
    coreset = build(frame, size=50, random_state=0)
    model = CoresetKMeans(2, random_state=0).fit(coreset)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # its rows are an array, and no rows without names
        getattr(model, method)(coreset)
    other = build(frame[["b", "a"]], size=50, random_state=0)
    with pytest.raises(InvalidInputError, match="feature names should match"):
        getattr(model, method)(other)


@pytest.mark.parametrize(
    "model", [CoresetKMeans(2, size=20), CoresetSVC(size=20), CSVRGClassifier(max_points=5)]
)
@pytest.mark.parametrize("lazy", [False, True])
def test_fit__names_columns_of_a_frame_that_are_no_numbers(model: Any, lazy: bool) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a b", "ü"])
    y = rng.integers(0, 2, 60)
    numbers = frame.assign(flag=frame.ü > 0, code=pd.Categorical(y))
    assert clone(model).fit(numbers, y).n_features_in_ == 4
    bad: dict[str, Any] = {
        "when": pd.Timestamp("2026-03-02"),
        "größe (m)": "x",
        "kind": pd.Categorical(["q"] * 60),
    }
    for name, values in bad.items():
        X: Any = frame.assign(**{name: values})
        with pytest.raises(InvalidTypeError, match=rf"no real numbers: '{re.escape(name)}' \("):
            clone(model).fit(dd.from_pandas(X, npartitions=2) if lazy else X, y)


@pytest.mark.parametrize("lazy", [False, True])
def test_names__of_columns_that_are_more_or_in_another_order_say_what_to_pass(
    lazy: bool, tmp_path: Path
) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=["a", "b", "c"])
    model = CoresetKMeans(2, size=20, random_state=0).fit(frame[["b", "a"]])
    given = dd.from_pandas(frame, npartitions=2) if lazy else frame
    for columns, problem in (
        (["a", "b", "c"], r"has not: \['c'\]"),
        (["a", "b"], "in another order"),
    ):
        remedy = rf"should match .*{problem}; pass X\[(\[.*\])\]\.$"
        with pytest.raises(InvalidInputError, match=remedy) as caught:
            model.predict(given[columns])
        advised = re.search(remedy, str(caught.value))
        assert advised is not None
        model.predict(given[ast.literal_eval(advised[1])])
    frame.to_parquet(path := tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=r"pass columns=\['b', 'a'\]\.$"):
        model.predict(path)
    with pytest.raises(
        InvalidInputError, match=r"columns \['a'\], and CoresetKMeans was fitted on"
    ):
        model.predict(given[["a"]])


def test_names__of_thousands_of_columns_are_told_where_they_differ() -> None:
    names = [f"x{i}" for i in range(2_000)]
    frame = pd.DataFrame(np.eye(20, 2_000), columns=names)
    model = CoresetKMeans(2, random_state=0).fit(frame)
    renamed = frame.rename(columns={"x1500": "other"})
    with pytest.raises(InvalidInputError, match=r"'other'.*from position 1500.*'x1500'") as caught:
        model.predict(dd.from_pandas(renamed, npartitions=2))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("criterion", ["silhouette", "bic", "stability"])
def test_search__on_rows_with_names_does_not_warn(criterion: Any) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 2)), columns=["a", "b"])
    coreset = build(frame, size=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = coreset_search(
            CoresetKMeans(n_init=1, random_state=0),
            coreset,
            parameters={"n_clusters": [2, 3]},
            criterion=criterion,
            random_state=0,
        )
    assert found.model.feature_names_in_.tolist() == ["a", "b"]


def test_score__of_any_estimator_takes_a_coreset() -> None:
    _, _, portfolio = make_portfolio()
    coreset = portfolio["svm"]
    model = CoresetEstimator(LogisticRegression(), method="svm", random_state=0).fit(portfolio)
    right = model.predict(coreset) == coreset.labels
    assert model.score(coreset) == pytest.approx(np.average(right, weights=coreset.weights))
    assert model.score(portfolio) == model.score(coreset)
    assert model.predict_proba(coreset).shape == (len(coreset), 2)
    means = CoresetEstimator(KMeans(2, random_state=0), random_state=0).fit(portfolio["clusters"])
    assert means.score(portfolio["clusters"]) < 0.0


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
