"""What bad input gets from every estimator, in memory and as Dask arrays."""

from __future__ import annotations

import re
import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance.face import errors, estimators
from tests.pairs import few, pairs

N, D, CHUNK = 240, 3, 40
RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(N, D))) + 0.1
CLASSES = (X[:, 0] > X[:, 1]).astype(int)
X[CLASSES == 1, 0] += 0.3  # kinds that nothing separates would be warned of
TARGET = X @ [1.0, -2.0, 0.5]

LABELLED: dict[str, dict[str, Any]] = {
    "ActiveMaxMarginClassifier": {},
    "CoresetKernelClassifier": {},
    "CoresetLogisticRegression": {},
    "CoresetSVC": {},
    "MaxMarginClassifier": {},
    "ODMClassifier": {},
    "OutlierMaxMarginClassifier": {},
    "StructuredMaxMargin": {},
}
NUMERIC: dict[str, dict[str, Any]] = {
    "CoresetElasticNet": {},
    "CoresetRidge": {},
}
UNLABELLED: dict[str, dict[str, Any]] = {
    "CoresetBregman": {"n_clusters": 3},
    "CoresetGaussianMixture": {"n_components": 2},
    "CoresetKMeans": {"n_clusters": 3},
}
SETTINGS: dict[str, dict[str, Any]] = {**LABELLED, **NUMERIC, **UNLABELLED}


# The exact machines hold all rows.
IN_MEMORY_ONLY = {"ODMClassifier"}

NAMES = sorted(SETTINGS)
CASES = [
    (name, "memory" if name in IN_MEMORY_ONLY or i % 2 else "dask") for i, name in enumerate(NAMES)
]
CASES += [
    (name, "memory" if form == "dask" else "dask")
    for name, form in CASES
    if form == "dask" or name not in IN_MEMORY_ONLY
]


def made(name: str, **more: Any) -> Any:
    settings = {**SETTINGS[name], **more}
    if name != "StructuredMaxMargin":
        settings["random_state"] = 0
    return getattr(estimators, name)(**settings)


def target_of(name: str) -> Any:
    if name in UNLABELLED:
        return None
    return TARGET if name in NUMERIC else CLASSES


def in_form(part: Any, form: str) -> Any:
    if part is None or form == "memory":
        return part
    return da.from_array(part, chunks=(CHUNK, *part.shape[1:]))


def fit(model: Any, rows: Any, y: Any, form: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(in_form(rows, form), in_form(y, form))


def test_names__all_estimators() -> None:
    public = {name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")}
    assert set(NAMES) == public - {"CoresetEstimator"}


@pairs(case=CASES, value=[np.nan, np.inf, -np.inf])
def test_fit__not_finite(case: tuple[str, str], value: float) -> None:
    (name, form), found = case, "NaN" if np.isnan(value) else "infinity"
    bad = X.copy()
    bad[[83, 99], [2, 0]] = value
    with pytest.raises(errors.InvalidInputError) as caught:
        fit(made(name), bad, target_of(name), form)
    text = str(caught.value)
    assert re.search(rf"X contains {found}.* in column 2 at row 83; clean the data", text), text
    # The remedy is offered where there is such a parameter, and by its name.
    assert ("on_invalid" in text) == ("on_invalid" in made(name).get_params())


@few("case", CASES, always=8)
def test_predict__not_finite(case: tuple[str, str]) -> None:
    name, form = case
    bad = X.copy()
    bad[83, 2] = np.nan
    model = fit(made(name), X, target_of(name), form)
    with pytest.raises(
        errors.InvalidInputError, match="X contains NaN in column 2 at row 83; clean"
    ):
        np.asarray(model.predict(in_form(bad, form)))


def with_gaps(labels: Any) -> tuple[Any, Any]:
    """Rows and labels with three rows of NaN between them."""
    places = [10, 50, 200]
    gaps = None if labels is None else np.insert(labels, places, labels[:3])
    return np.insert(X, places, np.nan, axis=0), gaps


@few("case", CASES, always=8)
def test_fit__drop(case: tuple[str, str]) -> None:
    name, form = case
    model = fit(made(name, on_invalid="drop"), *with_gaps(target_of(name)), form)
    if name in UNLABELLED:
        assert model.coreset_.provenance["n_dropped"] == 3
    else:
        expected = fit(made(name), X, target_of(name), form).score(X, target_of(name))
        assert model.score(X, target_of(name)) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("name", ["CoresetKernelClassifier", "MaxMarginClassifier"])
@pytest.mark.parametrize("form", ["memory", "dask"])
def test_fit__drop_numbers_rows_as_given(name: str, form: str) -> None:
    rows, y = with_gaps(CLASSES)
    more = {"size": 60} if name == "CoresetKernelClassifier" else {}
    coreset = fit(made(name, on_invalid="drop", **more), rows, y, form).coreset_
    np.testing.assert_array_equal(rows[coreset.indices], coreset.points)
    np.testing.assert_array_equal(y[coreset.indices], coreset.labels)


@pytest.mark.parametrize("form", ["memory", "dask"])
def test_fit__drop_asks_for_rows_as_given(form: str) -> None:
    rows, y = with_gaps(CLASSES)

    def oracle(asked: Any, indices: Any) -> Any:
        np.testing.assert_array_equal(asked, rows[indices])
        return y[indices]

    model = made("ActiveMaxMarginClassifier", on_invalid="drop")
    model.fit(in_form(rows, form), oracle=oracle)
    assert model.score(X, CLASSES) > 0.9


@pytest.mark.parametrize("form", ["memory", "dask"])
def test_fit__drop_within_groups(form: str) -> None:
    rows, y = with_gaps(CLASSES)
    groups = np.arange(len(y)) // 4
    model = made("StructuredMaxMargin", problem="sequence", on_invalid="drop")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(in_form(rows, form), in_form(y, form), groups=in_form(groups, form))
    assert (np.asarray(model.predict(X, groups=np.arange(N))) == CLASSES).mean() > 0.8


@pytest.mark.parametrize("name", ["CoresetLogisticRegression", "CoresetSVC"])
@pytest.mark.parametrize("form", ["memory", "dask"])
def test_partial_fit__drop(name: str, form: str) -> None:
    bad = X.copy()
    bad[5] = np.nan
    model = made(name, on_invalid="drop")
    model.partial_fit(in_form(X, form), in_form(CLASSES, form))
    model.partial_fit(in_form(bad, form), in_form(CLASSES, form))
    assert model.score(X, CLASSES) > 0.9


@pytest.mark.parametrize("name", sorted({**LABELLED, **NUMERIC}))
def test_fit__label_missing(name: str) -> None:
    y = target_of(name).astype(float)
    y[7] = np.nan
    with pytest.raises(errors.InvalidInputError, match="y is missing or not finite at row 7; drop"):
        fit(made(name), X, y, "memory")
