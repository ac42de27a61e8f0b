"""Rare classes and what is promised of labels: totals, rows of every class, calibration.

The judge is NumPy: class totals, and costs of fixed linear models over all rows.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from tests.acceptance.face import (
    Coreset,
    CoresetTree,
    build,
    create_tree,
    errors,
    estimators,
    stream as make_stream,
)
from tests.pairs import pairs


@cache
def rare(n: int = 150_000, positives: int = 588, d: int = 6) -> tuple[Any, Any]:
    """Rows of heavy tails, 0.39 % of them of the class that matters."""
    rng = np.random.default_rng(588)
    y = np.zeros(n, dtype=np.int64)
    y[rng.choice(n, positives, replace=False)] = 1
    X = rng.standard_normal((n, d)) * rng.lognormal(0.0, 0.5, (n, 1))
    X[y == 1, :3] += 1.5
    return X, y


def labels_of(coreset: Coreset) -> Any:
    assert coreset.labels is not None
    return coreset.labels


@pytest.mark.filterwarnings("ignore:a solution fitted:daskcoreset.errors.CoresetWarning")
@pairs(
    names=[[1, 2], [7.0, 3.0], ["yes", "no"], [True, False]],
    make=[estimators.CoresetSVC, estimators.CoresetLogisticRegression],
    weight=[None, "balanced"],
)
def test_coreset_of_a_classifier__has_the_labels_of_y(make: Any, names: Any, weight: Any) -> None:
    X, codes = rare(900, 200)
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
    X, y = rare(3000, 300)
    tree = create_tree(tmp_path / "days", method=method, size=60, random_state=0)
    days = [np.flatnonzero(y == 0)[:1200], np.flatnonzero(y == 0)[1200:], np.flatnonzero(y == 1)]
    for number, rows in enumerate(days):
        tree.append(X[rows], y[rows], name=str(number))
    tree = CoresetTree.open(tmp_path / "days")
    found = tree.coreset()
    sums = [found.weights[labels_of(found) == code].sum() for code in (0, 1)]
    np.testing.assert_allclose(sums, [2700.0, 300.0], rtol=1e-9)
    with pytest.raises(errors.InvalidInputError, match="one class only"):
        tree.coreset(leaves=["0", "1"])
    tree.replace("1", X, y)
    few = tree.coreset(leaves=["1", "2"])
    assert few.weights[labels_of(few) == 1].sum() == pytest.approx(600.0, rel=1e-9)


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
    for labels in (y, da.from_array(y, chunks=100)):
        for method in ("svm", "logistic"):
            with pytest.raises(
                errors.InvalidInputError, match="y is missing or not finite at row 5"
            ):
                build(X, labels, size=50, method=method)
    for model in (
        estimators.CoresetSVC(),
        estimators.CoresetKernelClassifier(),
        estimators.MaxMarginClassifier(),
    ):
        with pytest.raises(errors.InvalidInputError, match="y is missing or not finite at row 5"):
            model.fit(X, y)
    with pytest.raises(errors.InvalidInputError, match="y is missing"):
        make_stream(method="svm", size=50).partial_fit(X, y)
