"""Kernel classifiers on core points, in memory and out of core."""

from __future__ import annotations

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import CoresetWarning, InvalidInputError
from daskcoreset.estimators import CoresetKernelClassifier, ODMClassifier
from tests.pairs import each


def labelled(n: int = 3000, seed: int = 0) -> tuple[AnyArray, AnyArray]:
    rng = np.random.default_rng(seed)
    ROWS = rng.random((n, 2), dtype=np.float32)
    ring = np.hypot(ROWS[:, 0] - 0.5, ROWS[:, 1] - 0.5)
    return ROWS, np.array(["in", "out", "rim"])[np.digitize(ring, [0.25, 0.5])]


ROWS, CLASSES = labelled()


def chunked(y: AnyArray = CLASSES) -> tuple[Any, Any]:
    return da.from_array(ROWS, chunks=(700, 2)), da.from_array(y, chunks=700)


MODELS = [
    CoresetKernelClassifier(max_points=40, lam=200.0, gamma=5.0, random_state=0),
    CoresetKernelClassifier("cover", "csvrg", max_points=40, lam=20.0, gamma=5.0, random_state=0),
    CoresetKernelClassifier("drawn", "avm", max_points=40, lam=200.0, gamma=5.0, random_state=0),
]
TWO_CLASSES = np.where(CLASSES == "in", "in", "out")


@each(y={"two": TWO_CLASSES, "three": CLASSES}, model=MODELS)
def test_fit__accurate_with_few_core_points(model: Any, y: AnyArray) -> None:
    model = clone(model).fit(ROWS, y)
    assert model.score(ROWS, y) > (0.93 if y is TWO_CLASSES else 0.85)
    assert model.n_core_points_ == len(model.core_points_) == 40
    k = 1 if y is TWO_CLASSES else 3
    assert model.dual_coef_.shape == (k, 40)
    assert np.shape(model.objective_) == (() if k == 1 else (3,))
    decided = model.decision_function(ROWS)
    assert decided.shape == ((len(ROWS),) if k == 1 else (len(ROWS), 3))
    best = (decided > 0).astype(int) if k == 1 else decided.argmax(axis=1)
    assert np.array_equal(model.classes_[best], model.predict(ROWS))
    gaps = np.sqrt(((ROWS[:, np.newaxis] - model.core_points_) ** 2).sum(axis=2)).min(axis=1)
    assert gaps.max() <= model.diameter_ / 2 * (1 + 1e-6)


def test_fit__float32_with_a_large_offset() -> None:
    shifted = (ROWS.astype(np.float64) * 1000).astype(np.float32)
    model = clone(MODELS[0]).set_params(gamma="scale")
    near = clone(model).fit(shifted, TWO_CLASSES)
    far = clone(model).fit(shifted + np.float32(2**20), TWO_CLASSES)
    assert (
        far.score(shifted + np.float32(2**20), TWO_CLASSES)
        > near.score(shifted, TWO_CLASSES) - 0.01
    )


@pytest.mark.parametrize("core_points", ["drawn", "cover"])
def test_coreset__rows_of_the_data_with_the_weight_of_their_class(core_points: Any) -> None:
    X = np.round(ROWS, 2)  # many rows are equal
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(np.float64)
    for size in (None, 900):
        model = CoresetKernelClassifier(
            core_points, "avm", max_points=60, random_state=0, size=size
        )
        for rows in ((X, CLASSES, weights), (da.from_array(X, chunks=(700, 2)), CLASSES, weights)):
            kept = model.fit(*rows).coreset_
            np.testing.assert_array_equal(kept.points, X[kept.indices])
            np.testing.assert_array_equal(kept.labels, CLASSES[kept.indices])
            assert kept.total_weight == pytest.approx(weights.sum())
            assert len(kept) == (60 if size is None else 900)
            if core_points == "drawn" or size is not None:
                for label in np.unique(CLASSES):
                    own = kept.weights[kept.labels == label].sum()
                    assert own == pytest.approx(weights[label == CLASSES].sum())


@pytest.mark.statistical
def test_coreset__drawn_weights_are_unbiased() -> None:
    # The mean over 120 draws of a sum over rows; z is normal, 5.5 has a false alarm below 1e-7.
    truth = np.exp(-np.square(ROWS).sum(axis=1)).sum()
    sums = []
    for seed in range(120):
        model = CoresetKernelClassifier(solver="avm", max_points=30, random_state=seed)
        kept = model.fit(ROWS, CLASSES).coreset_
        sums.append(kept.weights @ np.exp(-np.square(kept.points).sum(axis=1)))
    z = (np.mean(sums) - truth) / (np.std(sums) / np.sqrt(len(sums)))
    assert abs(z) < 5.5


def test_fit__refuses_what_excludes_each_other() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"loss": "hinge"}, "loss is .* no second derivative"),
        ({"theta": 1.0}, r"'theta' .* \[0.0, 1.0\)"),
        ({"mu": 0.0}, r"'mu' .* \(0.0, 1.0\]"),
        ({"gamma": np.inf}, "'gamma'"),
        ({"max_points": 10**6}, "'max_points'"),
        ({"diameter": 0.1}, "diameter is 0.1, but core_points=.drawn. does not bound"),
        ({"diameter": 1e-3, "core_points": "cover", "max_points": 9}, "more than 9 core points"),
    ]
    for options, message in wrong:
        with pytest.raises(InvalidInputError, match=message):
            CoresetKernelClassifier(**options).fit(*chunked())


def test_fit__warns_when_features_are_not_scaled() -> None:
    uneven = ROWS * np.array([1.0, 1000.0], dtype=np.float32)
    with pytest.warns(CoresetWarning, match=r"not scaled: .* wide columns alone.*\[0, 1\]"):
        CoresetKernelClassifier(max_points=10).fit(uneven, TWO_CLASSES)
    with pytest.warns(CoresetWarning, match="gamma=1 is too large for the scale"):
        CoresetKernelClassifier(max_points=10, gamma=1.0).fit(ROWS * 1000, TWO_CLASSES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CoresetKernelClassifier(max_points=10).fit(ROWS * 1000, TWO_CLASSES)


@pytest.mark.parametrize("data", ["one far row", "no rows are alike"])
def test_fit__warns_when_the_kernel_hardly_tells_rows_apart(data: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    if data == "one far row":
        X[7] = 1e5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CoresetKernelClassifier(max_points=100, size=1000, random_state=0).fit(X, y)
    told = any("is too small for the scale" in str(warning.message) for warning in caught)
    assert told == (data != "no rows are alike")


def test_odm__warns_when_it_stops_early() -> None:
    with pytest.warns(ConvergenceWarning, match="ODMClassifier stopped before tol"):
        ODMClassifier(max_iter=1, lam=1e4, tol=1e-9).fit(ROWS[:200], TWO_CLASSES[:200])
