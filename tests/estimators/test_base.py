"""What estimators share: seeds, starts, and the checks of scikit-learn without a failure."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

import daskcoreset
from daskcoreset import SVM, Coreset, StrongKMeans, build, estimators, open_rows
from daskcoreset._build import default_size
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.estimators import (
    ActiveMaxMarginClassifier,
    CoresetEstimator,
    CoresetGaussianMixture,
    CoresetKernelClassifier,
    CoresetKMeans,
    CoresetSVC,
    MaxMarginClassifier,
    ODMClassifier,
    OutlierMaxMarginClassifier,
    StructuredMaxMargin,
)
from daskcoreset.solvers.kmeans import auto_starts


def test_auto__grows_with_the_clusters() -> None:
    assert default_size(1) == 10_000
    assert default_size(1000) == 100_000
    assert [auto_starts(k) for k in (1, 50, 51, 100, 10_000)] == [10, 10, 9, 5, 3]


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
    return X, y, daskcoreset.build_many(X, y, sizes=400, methods=methods, random_state=0)


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


def test_fit__refuses_what_contradicts_the_coreset() -> None:
    _, _, portfolio = make_portfolio()
    with pytest.raises(InvalidInputError, match=r"ambiguous which of 'clusters', 'svm' Core"):
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
        CoresetKernelClassifier(max_points=30, random_state=0),
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
        with pytest.raises(InvalidInputError, match="should use; pass one of them"):
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
        with pytest.raises(InvalidInputError, match=r"a coreset may lack them.*fit CoresetSVC"):
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
    "model", [CoresetKMeans(2, size=20), CoresetSVC(size=20), CoresetKernelClassifier(max_points=5)]
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
        remedy = rf"should match .*{problem}; pass open_rows\(X, columns=(\[.*\])\)\.$"
        with pytest.raises(InvalidInputError, match=remedy) as caught:
            model.predict(given[columns])
        advised = re.search(remedy, str(caught.value))
        assert advised is not None
        model.predict(open_rows(given, columns=ast.literal_eval(advised[1])))
    frame.to_parquet(path := tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=r"pass open_rows\(X, columns=\['b', 'a'\]\)\.$"):
        model.predict(path)
    with pytest.raises(InvalidInputError, match=r"columns \['a'\], and the fit has"):
        model.predict(given[["a"]])


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
