"""Totals of classes are exact, and every class has rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.plain import ByWeight, PlainLogistic
from tests.acceptance.tools.refusals import refused
from tests.pairs import each, pairs

METHODS: dict[str, Any] = {
    "svm": face.SVM(),
    "logistic": face.Logistic(),
}

DRAWS: dict[str, Any] = {
    "one read": face.Draw(),
    "two reads": face.Draw(passes=2),
    "independent": face.Draw(sampling="multinomial", passes=2),
    "tree": face.MergeReduce(split_every=2),
}


def rare(n: int = 20_000, few: int = 12) -> tuple[Any, Any, Any]:
    """Three classes, of which the last has twelve rows in one block."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = rng.integers(0, 2, size=n)
    y[n - few :] = 2
    X[:, 0] += y
    return X, y, rng.uniform(0.2, 3.0, size=n)


def quiet(*args: Any, **options: Any) -> face.Coreset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        return face.build(*args, **options)


def several(n: int = 8000) -> tuple[Any, Any, Any]:
    """Six classes: of one row, of five rows, of nine in one place, and three large ones."""
    rng = np.random.default_rng(6)
    y = rng.choice(np.array(["ant", "bee", "horse"]), n, p=[0.9, 0.07, 0.03])
    y[n // 2] = "one"
    y[[7, 900, 2000, 6000, n - 1]] = "five"
    y[n // 3 : n // 3 + 9] = "nine"
    X = rng.standard_normal((n, 4)) + np.unique(y, return_inverse=True)[1][:, None] / 2
    return X, y, rng.random(n) + 0.5


@pytest.mark.filterwarnings("ignore:a solution fitted on")
@each(mode=[*DRAWS, "stream", "merged"], method=METHODS)
def test_build__totals_are_those_of_the_data(method: Any, mode: str) -> None:
    X, y, u = several()
    if mode == "independent":  # chance may leave out the others
        common = np.isin(y, ["ant", "bee", "horse"])
        X, y, u = X[common], y[common], u[common]
    options: dict[str, Any] = {"size": 300, "method": method, "random_state": 0}
    if mode == "stream":
        stream = face.stream(leaf_size=3000, **options)
        for start in range(0, len(y), 1300):
            part = slice(start, start + 1300)
            stream.partial_fit(X[part], y[part], u[part])
        c = stream.coreset()
    elif mode == "merged":
        parts = (slice(0, 3500), slice(3500, None))
        halves = [face.build(X[at], y[at], sample_weight=u[at], **options) for at in parts]
        c = halves[0].merge(halves[1], offsets=[0, 3500])
    else:
        rows, labels = da.from_array(X, chunks=(1500, 4)), da.from_array(y, chunks=1500)
        c = face.build(rows, labels, sample_weight=u, draw=DRAWS[mode], **options)
    assert c.labels is not None
    assert np.array_equal(c.labels, y[c.indices])
    for one in np.unique(y):
        own = c.labels == one
        assert own.sum() >= min(2, (y == one).sum())
        assert c.weights[own].sum() == pytest.approx(u[y == one].sum(), rel=1e-9)


@pytest.mark.parametrize("size", [24, 100])
def test_build__an_eighth_of_the_rows_is_spread_over_classes(size: int) -> None:
    """Of a class of few and light rows, as many as size // (8 classes), and two at least."""
    X, y, u = rare(6000, 40)
    u[y == 2] *= 1e-6
    for method in (PlainLogistic(), face.SVM(variant="paper")):
        c = quiet(X, y, sample_weight=u, method=method, size=size, random_state=0)
        least = max(2, size // 24)
        assert len(c) == size
        assert (y[c.indices] == 2).sum() >= least


def test_inclusion__is_raised_to_the_floor_and_taken_from_the_others() -> None:
    """Weights are u over the raised probabilities, so that costs stay unbiased."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 2))
    y = np.repeat([0, 1, 2], [870, 20, 10])
    u = np.repeat([1.0, 1e-3, 1e-3], [870, 20, 10])
    method = ByWeight()
    scores = face.scores(method, face.block(X, u, y))[0]
    c = quiet(X, y, sample_weight=u, method=method, size=96, random_state=0)
    p = np.zeros(900)
    p[y == 1] = read.inclusion(scores[y == 1], 4)
    p[y == 2] = read.inclusion(scores[y == 2], 4)
    p[y == 0] = read.inclusion(scores[y == 0], 88)
    assert np.allclose(c.weights, (u / p)[c.indices], rtol=1e-6)
    assert [(y[c.indices] == one).sum() for one in range(3)] == [88, 4, 4]


def test_inclusion__of_classes_that_fall_below_their_floor_in_turn() -> None:
    """What one class gets is taken from another, which then needs its own floor."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2))
    y = np.repeat([0, 1, 2], [300, 60, 40])
    method = ByWeight()
    # The middle class is just above its floor until rows go to the last one.
    size, floor = 48, 2
    for middle in np.geomspace(1e-3, 1.0, 200):
        u = np.array([1.0, middle, 1e-6])[y]
        scores = face.scores(method, face.block(X, u, y))[0]
        first = read.inclusion(scores, size)
        if first[y == 1].sum() > 1.01 * floor:
            break
    assert read.inclusion(scores[y < 2], size - floor)[y[y < 2] == 1].sum() < floor
    c = quiet(X, y, sample_weight=u, method=method, size=size, random_state=0)
    p = np.zeros(400)
    for one in (1, 2):
        p[y == one] = read.inclusion(scores[y == one], floor)
    p[y == 0] = read.inclusion(scores[y == 0], size - 2 * floor)
    assert np.allclose(c.weights, (u / p)[c.indices], rtol=1e-5)


def test_build__a_class_of_few_rows_is_kept_whole_among_candidates() -> None:
    """Five of 60,000 rows with little score: all five are candidates, two or more are drawn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 2))
    y = np.zeros(60_000, dtype=int)
    at = [3, 20_001, 20_002, 45_000, 59_999]
    y[at] = 1
    X[at] *= 0.01
    rows, labels = da.from_array(X, chunks=(20_000, 2)), da.from_array(y, chunks=20_000)
    c = quiet(rows, labels, method="logistic", size=100, random_state=0)
    assert len({*at} & {*c.indices.tolist()}) >= 2
    assert c.weights[np.isin(c.indices, at)].sum() == pytest.approx(5.0)


def test_build__size_below_two_rows_a_class_is_an_error() -> None:
    X, y, _ = rare(300)
    with pytest.raises(face.errors.InvalidInputError, match="6"):
        face.build(X, y, method="logistic", size=5)


def test_independent_draws__name_a_class_that_chance_left_out() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    y = np.zeros(5000, dtype=int)
    y[:2] = 1
    draw = face.Draw(sampling="multinomial", passes=2)
    with pytest.warns(face.CoresetWarning, match="no row of 1 of the 2 classes"):
        face.build(X, y, method=ByWeight(), size=20, draw=draw, random_state=0)


# --- labels as they are given ---------------------------------------------------------


@cache
def heavy_tails(n: int, positives: int) -> tuple[Any, Any]:
    """Rows of heavy tails, few of them of the class that matters."""
    rng = np.random.default_rng(588)
    y = np.zeros(n, dtype=np.int64)
    y[rng.choice(n, positives, replace=False)] = 1
    X = rng.standard_normal((n, 6)) * rng.lognormal(0.0, 0.5, (n, 1))
    X[y == 1, :3] += 1.5
    return X, y


@pytest.mark.filterwarnings("ignore:a solution fitted:daskcoreset.errors.CoresetWarning")
@pairs(
    names=[[1, 2], [7.0, 3.0], ["yes", "no"], [True, False]],
    make=[face.estimators.CoresetSVC, face.estimators.CoresetLogisticRegression],
    weight=[None, "balanced"],
)
def test_coreset_of_a_classifier__has_the_labels_of_y(make: Any, names: Any, weight: Any) -> None:
    X, codes = heavy_tails(900, 200)
    for kind in (None, object) if isinstance(names[0], str) else (None,):
        y = np.array(names, dtype=kind)[codes]
        model = make(size=60, class_weight=weight, random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.coreset_.labels, y[model.coreset_.indices])
        whole = make(size=900, random_state=0).fit(X, y).coreset_.labels
        np.testing.assert_array_equal(whole, y)
        assert model.coreset_.labels.dtype == np.array(names).dtype
        if weight is None:
            model.partial_fit(X, y)
            np.testing.assert_array_equal(np.unique(model.coreset_.labels), np.unique(y))


@pytest.mark.parametrize("method", ["svm", "logistic"])
def test_tree__leaves_of_one_class(method: Any, tmp_path: Path) -> None:
    X, y = heavy_tails(3000, 300)
    tree = face.create_tree(tmp_path / "days", method=method, size=60, random_state=0)
    days = [np.flatnonzero(y == 0)[:1200], np.flatnonzero(y == 0)[1200:], np.flatnonzero(y == 1)]
    for number, rows in enumerate(days):
        tree.append(X[rows], y[rows], name=str(number))
    tree = face.CoresetTree.open(tmp_path / "days")
    found = tree.coreset()
    sums = [found.weights[found.labels == code].sum() for code in (0, 1)]
    np.testing.assert_allclose(sums, [2700.0, 300.0], rtol=1e-9)
    with pytest.raises(face.errors.InvalidInputError, match="one class only"):
        tree.coreset(leaves=["0", "1"])
    tree.replace("1", X, y)
    few = tree.coreset(leaves=["1", "2"])
    assert few.weights[few.labels == 1].sum() == pytest.approx(600.0, rel=1e-9)


@pytest.mark.parametrize(
    "missing",
    [None, float("nan"), pd.NA, pd.NaT, Decimal("nan"), np.datetime64("NaT", "s")],
    ids=repr,
)
def test_missing_labels__of_any_kind_are_refused(missing: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] > 0, "yes", "no").astype(object)
    y[5] = missing
    makers = [face.estimators.CoresetSVC, face.estimators.CoresetKernelClassifier,
              face.estimators.MaxMarginClassifier]  # fmt: skip
    calls: list[Callable[[], Any]] = [
        *(partial(face.build, X, labels, size=50, method=method)
          for labels in (y, da.from_array(y, chunks=100)) for method in ("svm", "logistic")),
        *(partial(make().fit, X, y) for make in makers),
        partial(face.stream(method="svm", size=50).partial_fit, X, y),
    ]  # fmt: skip
    for call in calls:
        with refused("y", "y is missing", "at row 5"):
            call()
