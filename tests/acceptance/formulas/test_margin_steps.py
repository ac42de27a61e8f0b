"""Steps of the loops for a maximum margin: which rows they add, and how often they read."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.counting import CountingArray
from tests.acceptance.tools.margins import (
    best_without,
    three_classes,
    through_zero,
    two_classes,
)
from tests.pairs import each, few

es = face.estimators


def best_normal(X: Any, signs: Any, *, intercept: bool) -> Any:
    """Normal of the largest margin, by general optimisation."""
    if not intercept:
        return read.hard_margin(X * signs[:, np.newaxis])[1]
    pairs = X[signs > 0][:, np.newaxis] - X[signs < 0][np.newaxis]
    return read.hard_margin(pairs.reshape(-1, X.shape[1]))[1]


def levels(X: Any, signs: Any, w: Any) -> Any:
    """Smallest products of the classes +1 and -1."""
    products = signs * (X @ w)
    return np.array([products[signs == sign].min() for sign in (1.0, -1.0)])


@each(violators=[1, 3, "auto"], intercept=[True, False])
def test_batch__each_pass_adds_rows_that_violate_the_margin_of_the_core_set(
    violators: Any, intercept: bool
) -> None:
    """Fig. 1 adds the worst row of all, other choices some of each block."""
    if intercept:
        X, y = two_classes(240, 6, 0.3, 1)
    else:
        X, y = through_zero(240, 6, 1)
    signs, epsilon = np.where(y, 1.0, -1.0), 0.02
    source = CountingArray(X)
    model = es.MaxMarginClassifier(epsilon, violators=violators, fit_intercept=intercept)
    model.fit(source.lazy(40), da.from_array(y, chunks=40))
    facts, order = model.coreset_.provenance, model.core_indices_
    passes = facts["passes"]
    sizes = [step["size"] for step in passes]
    most = {1: 1, 3: 3, "auto": 20}[violators]
    assert facts["reads"] == source.reads[0] == 1 + len(passes)
    assert len(set(order)) == len(order) == len(model.coreset_)
    assert sizes[0] == {1: 2, 3: 2, "auto": 12}[violators]
    assert len(set(y[order[: sizes[0]]])) == 2
    assert all(0 < b - a <= most for a, b in itertools.pairwise(sizes))
    assert violators not in {1, 3} or max(np.diff(sizes)) == most
    center = X[order[: sizes[0]]].mean(axis=0) if intercept else np.zeros(6)
    assert facts["radius"] == pytest.approx(np.linalg.norm(X - center, axis=1).max())
    best = 0.0
    for i, step in enumerate(passes):
        core = order[: sizes[i]]
        # No read is made where the best separator so far is good enough.
        assert i == 0 or best < (1 - epsilon) * step["core_margin"]
        w = best_normal(X[core], signs[core], intercept=intercept)
        own, on_all = levels(X[core], signs[core], w), levels(X, signs, w)
        of_core, on_data = own.min(), on_all.min()
        if intercept:
            of_core, on_data = own.sum() / 2, on_all.sum() / 2
        assert step["core_margin"] == pytest.approx(of_core, rel=1e-4)
        assert step["margin"] == pytest.approx(on_data, abs=1e-3 * of_core)
        best = max(best, step["margin"])
        if i + 1 < len(passes):
            above = signs * (X @ w) - np.where(y, own[0], own[1])
            new = order[sizes[i] : sizes[i + 1]]
            assert (above[new] < -0.99 * epsilon * of_core).all()
            assert above.argmin() in new
    assert model.margin_ == best


@pytest.mark.parametrize(("epsilon", "seed"), [(0.3, 0), (0.5, 1), (0.5, 2)])
def test_batch__a_separator_that_is_good_enough_by_now_needs_no_read(
    epsilon: float, seed: int
) -> None:
    """Rows that joined the core set lower the bound of the largest margin."""
    X, y = two_classes(240, 3, 0.3, seed)
    model = es.MaxMarginClassifier(epsilon, violators=1)
    model.fit(da.from_array(X, chunks=(80, 3)), da.from_array(y, chunks=80))
    facts = model.coreset_.provenance
    passes = facts["passes"]
    assert passes[-1]["margin"] < (1 - epsilon) * passes[-1]["core_margin"]
    assert facts["core_margin"] < passes[-1]["core_margin"]
    assert model.margin_ >= (1 - epsilon) * facts["core_margin"]
    assert facts["reads"] == 1 + len(passes)


def test_batch__blocks_without_weight_count_for_nothing() -> None:
    X, y = two_classes(160, 3, 0.5, 4)
    X /= 100.0
    u = np.where(np.arange(160) // 40 == 1, 0.0, 1.0)
    u[::9] = 0.0
    X[1], y = X[1] * 50.0, y.copy()
    u[1], y[1], y[40:80] = 0.0, ~y[1], ~y[40:80]
    used = u > 0
    lazy = [da.from_array(X, chunks=(40, 3)), *(da.from_array(a, chunks=40) for a in (y, u))]
    model = es.MaxMarginClassifier(0.01).fit(lazy[0], lazy[1], sample_weight=lazy[2])
    assert used[model.core_indices_].all()
    facts = model.coreset_.provenance
    first = X[model.core_indices_[: facts["passes"][0]["size"]]].mean(axis=0)
    assert facts["radius"] == pytest.approx(np.linalg.norm(X[used] - first, axis=1).max())
    best = read.largest_margin(X[used], np.where(y[used], 1.0, -1.0), intercept=True)
    assert 0.99 * best * (1 - 1e-6) <= model.margin_ <= best * (1 + 1e-6)


FEW = {6: (11, 51), 12: (7, 50), 24: (6, 58), 48: (6, 103)}


@pytest.mark.parametrize("violators", FEW)
def test_batch__reads_and_core_rows_stay_few(violators: int) -> None:
    """Violators that pull in different directions need fewer reads than the worst ones."""
    X, y = two_classes(3000, 12, 0.05, [*FEW].index(violators))
    model = es.MaxMarginClassifier(0.001, violators=violators)
    model.fit(da.from_array(X, chunks=(1000, 12)), da.from_array(y, chunks=1000))
    reads, n_core = FEW[violators]
    assert model.coreset_.provenance["reads"] <= reads
    assert len(model.coreset_) <= n_core


def test_batch__stops_at_max_passes_with_what_is_certified() -> None:
    X, y = two_classes(2000, 8, 0.1, 3)
    rows, labels = da.from_array(X, chunks=(500, 8)), da.from_array(y, chunks=500)
    model = es.MaxMarginClassifier(1e-6, max_passes=4, violators=8)
    with pytest.warns(face.CoresetWarning, match="max_passes=4"):
        model.fit(rows, labels)
    facts = model.coreset_.provenance
    assert len(facts["passes"]) == 4
    assert facts["reads"] == 5
    assert not facts["converged"]
    assert facts["factor"] == model.factor_ == model.margin_ / facts["core_margin"] < 1 - 1e-6
    assert model.margin_ == max(step["margin"] for step in facts["passes"])
    assert len(model.trace_) == 4
    w = model.dual_coef_ @ X[model.core_indices_]
    assert np.allclose(w / np.linalg.norm(w), model.coef_[0])
    loose = es.MaxMarginClassifier(0.5).fit(rows, labels)
    assert loose.coreset_.provenance["converged"]


def test_batch__rows_that_nothing_separates_are_named() -> None:
    X, y = two_classes(300, 3, 0.5, 2)
    X[211], y[211] = X[40], ~y[40]
    rows, labels = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
    # Of each class the first read brings a row of every block, and two of these are equal.
    few = np.concatenate([[40, 211], *(start + np.unique(y[start:], return_index=True)[1]
                                       for start in (100, 200))])  # fmt: skip
    used = da.from_array(np.isin(np.arange(300), few).astype(float), chunks=100)
    with pytest.raises(face.NotSeparableError, match="40 and 211") as caught:
        es.MaxMarginClassifier(on_inseparable="raise").fit(rows, labels, sample_weight=used)
    error = caught.value
    assert error.duplicates == (40, 211)
    assert error.intercept
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert np.array_equal(again.coefficients, error.coefficients)
    X, y = through_zero(60)
    X[17] = 0.0
    model = es.MaxMarginClassifier(on_inseparable="raise", fit_intercept=False)
    with pytest.raises(face.NotSeparableError, match="rows 17 has") as caught:
        model.fit(X, y)
    assert caught.value.indices.tolist() == [17]
    assert caught.value.norm == 0.0
    with pytest.warns(face.CoresetWarning, match="soft margin"):
        soft = model.set_params(on_inseparable="soft").fit(X, y)
    assert not soft.separable_
    assert (soft.margin_, soft.factor_, len(soft.core_indices_)) == (0.0, 0.0, 0)
    assert soft.evidence_.indices.tolist() == [17]
    assert len(soft.coreset_) == 60
    with pytest.raises(face.CoresetError, match="one class"):
        es.MaxMarginClassifier().fit(X, np.ones(60))
    with pytest.raises(face.CoresetError, match="on every row"):
        es.MaxMarginClassifier().fit(rows, labels, sample_weight=da.zeros(300, chunks=100))


def pull(model: Any, i: int, X: Any, signs: Any, u: Any) -> Any:
    """Gradient of the soft margin of a class, in columns of mean zero and unit spread."""
    share = u / u.sum()
    center = share @ X if model.fit_intercept else np.zeros(X.shape[1])
    spread = np.sqrt(share @ (X - center) ** 2)
    spread[spread == 0] = 1.0
    rows, w = (X - center) / spread, model.coef_[i] * spread
    b = model.intercept_[i] + model.coef_[i] @ center
    forces = -2 * model.C * u * signs * np.maximum(0, 1 - signs * (rows @ w + b))
    return np.append(w + forces @ rows, forces.sum() if model.fit_intercept else 0.0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_soft__every_class_has_the_minimum_of_its_weighted_loss(k: int, intercept: bool) -> None:
    rng = np.random.default_rng(k)
    X, y = three_classes(240, k, 1)
    X = np.column_stack([X * [1.0, 30.0] + [5.0, 2.0], np.full(240, 3.0)])
    y = np.where(rng.random(240) < 0.1, rng.integers(0, k, 240), y)
    u = rng.integers(0, 4, 240).astype(float) if k == 2 else np.ones(240)
    model = es.MaxMarginClassifier(C=0.4, fit_intercept=intercept)
    with pytest.warns(face.CoresetWarning):
        model.fit(X, y, sample_weight=u)
    assert model.coef_.shape == (1 if k == 2 else k, 3)
    for i, label in enumerate([1] if k == 2 else range(k)):
        signs = np.where(y == label, 1.0, -1.0)
        assert np.abs(pull(model, i, X, signs, u)).max() < 1e-6 * u.sum()
    assert model.coreset_.total_weight == u.sum()
    assert np.array_equal(model.coreset_.weights, u)
    assert model.coreset_.provenance["total_weight"] == u.sum()
    assert model.coreset_.provenance["n"] == 240


def test_soft__of_many_rows_a_uniform_sample_stands_for_all() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24_000, 2))
    y, u = X[:, 0] + rng.normal(size=24_000) > 0, rng.integers(0, 3, 24_000).astype(float)
    X[5] = np.nan
    chunks = da.from_array(X, chunks=(5000, 2)), y, u
    model = es.MaxMarginClassifier(random_state=3, on_invalid="drop")
    with pytest.warns(face.CoresetWarning):
        model.fit(*chunks)
    core = model.coreset_
    assert len(core) == 10_000
    assert len(set(core.indices)) == 10_000
    assert np.array_equal(core.points, X[core.indices])
    u[5] = 0.0
    assert np.allclose(core.weights, u.sum() / 10_000)
    assert np.array_equal(core.labels, y[core.indices])
    assert (core.provenance["n"], core.provenance["n_dropped"]) == (23_999, 1)


# --- outliers ------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_outliers__reads_problems_and_core_set_are_what_they_say(intercept: bool) -> None:
    X, y = (two_classes if intercept else through_zero)(40, 2, seed=5)
    y = y.copy()
    y[[11]] = ~y[[11]]
    signs = np.where(y, 1.0, -1.0)
    source = CountingArray(X)
    model = es.OutlierMaxMarginClassifier(1, epsilon=0.01, fit_intercept=intercept)
    model.fit(source.lazy(10), da.from_array(y, chunks=10))
    assert model.result_.reads == source.reads[0]
    assert model.result_.n_rows == 40
    assert model.result_.method == "exact"
    assert model.outliers_.tolist() == [11]
    best = best_without(X, signs, 1, intercept=intercept)
    assert 0.99 * best * (1 - 1e-6) <= model.margin_ <= best * (1 + 1e-6)
    core, on_core = model.coreset_, face.margins(model)[1]
    assert np.array_equal(core.points, X[core.indices])
    assert np.array_equal(core.labels, y[core.indices])
    assert 11 not in core.indices
    assert on_core == pytest.approx(
        read.largest_margin(core.points, signs[core.indices], intercept=intercept), rel=1e-5
    )
    assert on_core >= model.margin_ * (1 - 1e-9)
    facts = core.provenance
    assert (facts["k"], facts["n"], facts["margin"]) == (1, 40, model.margin_)
    # One problem with all rows, one without each row of its support, and one in the end.
    assert 2 <= model.result_.n_problems <= 2 + 2 + intercept + 2
    none = es.OutlierMaxMarginClassifier(0, fit_intercept=intercept, epsilon=0.01)
    left = np.arange(40) != 11
    none.fit(X[left], y[left])
    assert none.margin_ == pytest.approx(model.margin_, rel=0.011)
    assert len(none.outliers_) == 0


def test_outliers__that_are_too_many_soften_the_margin() -> None:
    X, y = two_classes(30, 2, 0.5, 1)
    y = y.copy()
    y[[2, 9, 17]] = ~y[[2, 9, 17]]
    with pytest.warns(face.CoresetWarning, match="1 rows are left out"):
        model = es.OutlierMaxMarginClassifier(1).fit(X, y)
    assert not model.separable_
    assert len(model.outliers_) == 0
    assert (model.margin_, model.probability_, model.result_) == (0.0, 0.0, None)
    assert len(model.coreset_) == 30
    with pytest.raises(face.CoresetError, match="separable"):
        es.OutlierMaxMarginClassifier(1, on_inseparable="raise").fit(X, y)
    right = es.OutlierMaxMarginClassifier(3, random_state=0).fit(X, y)
    assert right.outliers_.tolist() == [2, 9, 17]
    with pytest.raises(face.CoresetError, match="k is 29"):
        es.OutlierMaxMarginClassifier(29).fit(X, y)
    with pytest.raises(face.CoresetError, match="binary"):
        es.OutlierMaxMarginClassifier(1).fit(*three_classes(30))
    with pytest.raises(face.CoresetError, match="max_passes"):
        es.OutlierMaxMarginClassifier(1, method="exact", max_passes=1, epsilon=1e-9).fit(
            *two_classes(3000, 6, 0.01)
        )


@few("seed", [0, 1], always=1)
def test_outliers__random_subsets_find_the_best_rows_out_of_core(seed: int) -> None:
    X, y = two_classes(60, 2, 0.5, seed)
    y = y.copy()
    y[[4, 50]] = ~y[[4, 50]]
    model = es.OutlierMaxMarginClassifier(2, method="random", random_state=seed, epsilon=0.01)
    source = CountingArray(X)
    model.fit(source.lazy(25), da.from_array(y, chunks=25))
    exact = es.OutlierMaxMarginClassifier(2, method="exact", epsilon=0.01).fit(X, y)
    assert model.outliers_.tolist() == exact.outliers_.tolist() == [4, 50]
    assert model.margin_ == pytest.approx(exact.margin_, rel=0.011)
    assert model.result_.method == "random"
    assert model.result_.reads == source.reads[0]
    assert model.result_.n_problems >= 131  # draws for s = 3 and k = 2
    assert 0.99 <= model.probability_ < 1.0
    with pytest.raises(face.CoresetError, match="max_problems"):
        es.OutlierMaxMarginClassifier(1, method="exact", max_problems=1).fit(X, y)
    few = es.OutlierMaxMarginClassifier(2, max_problems=9, random_state=0)
    with pytest.warns(face.CoresetWarning, match="larger max_problems"):
        few.fit(X, y)
    assert few.result_.method == "random"
    luck = 0.6**3 * 0.4**2
    assert few.probability_ == pytest.approx(1 - (1 - luck) ** 9)
    assert few.outliers_.tolist() == [4, 50]
