"""Every public estimator keeps the rows that it chose in `coreset_`, and audits them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from daskcoreset import Coreset, estimators
from tests.pairs import each, few

# Rows far from the boundary, so that the largest margin exists.
_RNG = np.random.default_rng(0)
POINTS = _RNG.normal(size=(2500, 3))
POINTS = POINTS[np.abs(POINTS.sum(axis=1)) > 0.3]
CLASSES = np.where(POINTS.sum(axis=1) > 0, "right", "left")
THREE = np.where(POINTS.sum(axis=1) > 0, 0, np.where(POINTS[:, 0] > 0, 1, 2))
NUMBERS = POINTS @ [1.0, 2.0, 0.0] + _RNG.normal(size=len(POINTS))

# Every public estimator that fits on rows chosen from the data, as made with defaults, its target,
# and whether it takes data out of core.
ESTIMATORS: dict[str, tuple[Callable[[], Any], Any, bool]] = {
    "ActiveMaxMarginClassifier": (estimators.ActiveMaxMarginClassifier, CLASSES, True),
    "CoresetKernelClassifier": (estimators.CoresetKernelClassifier, CLASSES, True),
    "CoresetBregman": (estimators.CoresetBregman, None, True),
    "CoresetElasticNet": (estimators.CoresetElasticNet, NUMBERS, True),
    "CoresetEstimator": (
        lambda: estimators.CoresetEstimator(LogisticRegression()),
        CLASSES,
        True,
    ),
    "CoresetGaussianMixture": (estimators.CoresetGaussianMixture, None, True),
    "CoresetKMeans": (estimators.CoresetKMeans, None, True),
    "CoresetLogisticRegression": (estimators.CoresetLogisticRegression, CLASSES, True),
    "CoresetRidge": (estimators.CoresetRidge, NUMBERS, True),
    "CoresetSVC": (estimators.CoresetSVC, CLASSES, True),
    "MaxMarginClassifier": (estimators.MaxMarginClassifier, CLASSES, True),
    "ODMClassifier": (estimators.ODMClassifier, CLASSES, False),
    "OutlierMaxMarginClassifier": (estimators.OutlierMaxMarginClassifier, CLASSES, True),
    "StructuredMaxMargin": (estimators.StructuredMaxMargin, CLASSES, True),
}

# Those whose rows keep a margin or a solution: their weights do not add up to that of the data.
OF_MARGIN = {
    "ActiveMaxMarginClassifier",
    "MaxMarginClassifier",
    "ODMClassifier",
    "OutlierMaxMarginClassifier",
    "StructuredMaxMargin",
}


def made(name: str) -> Any:
    model = ESTIMATORS[name][0]()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model


def data_of(name: str, kind: str) -> tuple[Any, Any]:
    _, y, _ = ESTIMATORS[name]
    if kind == "array":
        return POINTS, y
    return da.from_array(POINTS, chunks=(700, 3)), None if y is None else da.from_array(y, 700)


def test_table__every_public_estimator_has_a_line() -> None:
    fitted = [name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")]
    assert sorted(ESTIMATORS) == sorted(fitted)


CASES = [
    (name, kind)
    for turn in (0, 1)
    for number, name in enumerate(ESTIMATORS)
    for kind in ("array", "dask")
    if (number + (kind == "dask")) % 2 == turn
]


@few("case", CASES, len(ESTIMATORS))
def test_coreset__of_defaults_is_rows_of_the_data(case: tuple[str, str]) -> None:
    name, kind = case
    if kind == "dask" and not ESTIMATORS[name][2]:
        pytest.skip("in memory only")
    X, y = data_of(name, kind)
    model = made(name).fit(X, *([] if y is None else [y]))
    coreset = model.coreset_
    assert isinstance(coreset, Coreset)
    np.testing.assert_array_equal(coreset.points, POINTS[coreset.indices])
    if y is not None:
        assert coreset.labels is not None
        np.testing.assert_array_equal(coreset.labels, ESTIMATORS[name][1][coreset.indices])
    assert len(np.unique(coreset.indices)) == len(coreset)
    record = coreset.provenance
    assert record["n"] == len(POINTS)
    assert record["m"] == len(coreset)
    assert record["method"]
    assert record["objective"]["name"]
    assert (record["objective"] == {"name": "margin"}) == (name in OF_MARGIN)
    if name in OF_MARGIN:
        np.testing.assert_array_equal(coreset.weights, 1.0)
    else:
        assert coreset.total_weight == pytest.approx(len(POINTS))
    if name in OF_MARGIN - {"ODMClassifier"}:
        return
    report = model.audit(X, y, random_state=0)
    assert report.n_rows == len(POINTS)
    # Of 500 core points; all others have more rows.
    assert report.distortion < (1.0 if record["method"] == "core points" else 0.2)
    # Up to the tolerance of the solver.
    assert name != "ODMClassifier" or report.distortion < 1e-4


# Rows that nothing separates, more than a soft margin is fitted to; blocks of them, one empty.
_MANY = 23_000
MANY = _RNG.normal(size=(_MANY, 3))
MIXED = np.where(MANY[:, 0] + _RNG.normal(size=_MANY) > 0, "right", "left")
MIXED_OF_THREE = np.where(MIXED == "right", 2, np.where(MANY[:, 1] > 0, 0, 1))
BLOCKS: list[Any] = [None, (1, 0, 9_999, 13_000)]


def blocks_of(chunks: Any, *arrays: Any) -> list[Any]:
    """Arrays in such chunks of rows, or as they are."""
    if chunks is None:
        return list(arrays)
    return [
        None if part is None else da.from_array(part, chunks=(chunks, *part.shape[1:]))
        for part in arrays
    ]


SOFT: dict[str, tuple[Callable[[], Any], Any]] = {
    "two classes": (estimators.MaxMarginClassifier, MIXED),
    "three classes": (estimators.MaxMarginClassifier, MIXED_OF_THREE),
    "outliers": (estimators.OutlierMaxMarginClassifier, MIXED),
}


@pytest.mark.filterwarnings("ignore:a soft margin is fitted")
@each(chunks=[*BLOCKS, BLOCKS[1]], name=[*SOFT])
def test_soft_margin__keeps_the_rows_it_drew(name: str, chunks: Any) -> None:
    make, y = SOFT[name]
    weights = None if name == "outliers" else np.random.default_rng(3).integers(0, 3, _MANY) / 2
    if name == "three classes" and chunks is not None:
        assert weights is not None
        weights += 0.5  # out of core rows without a weight are refused
    X, labels, given = blocks_of(chunks, MANY, y, weights)
    beside = [] if weights is None else [given]
    model = make().set_params(random_state=0).fit(X, labels, *beside)
    coreset, u = model.coreset_, np.ones(_MANY) if weights is None else weights
    assert not model.separable_
    np.testing.assert_array_equal(coreset.points, MANY[coreset.indices])
    np.testing.assert_array_equal(coreset.labels, y[coreset.indices])
    np.testing.assert_allclose(coreset.weights, u[coreset.indices] * np.count_nonzero(u) / 10_000)
    assert len(np.unique(coreset.indices)) == len(coreset) == 10_000
    # Of the whole data, not of its first blocks.
    assert np.histogram(coreset.indices, 5, (0, _MANY))[0].min() > 1_500
    record = coreset.provenance
    assert (record["method"], record["n"], record["m"]) == ("uniform", _MANY, 10_000)
    assert record["total_weight"] == pytest.approx(u.sum())
    by_itself = coreset.audit(X, labels, sample_weight=given, random_state=0)
    assert by_itself.distortion < 0.1
