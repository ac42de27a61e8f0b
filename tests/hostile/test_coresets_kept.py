"""Every public estimator keeps the rows that it chose in `coreset_`, and audits them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from daskcoreset import Coreset, estimators
from tests.pairs import few

# Rows far from the boundary, so that the largest margin exists.
_RNG = np.random.default_rng(0)
POINTS = _RNG.normal(size=(2500, 3))
POINTS = POINTS[np.abs(POINTS.sum(axis=1)) > 0.3]
CLASSES = np.where(POINTS.sum(axis=1) > 0, "right", "left")
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
