"""What every estimator does alike: out of core, of sparse rows, as a clone, on schedulers."""

from __future__ import annotations

import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from tests.acceptance import face
from tests.acceptance.tools.counting import CountingScheduler
from tests.acceptance.tools.models import MODELS, fitted, methods_of, rows
from tests.pairs import few

CHUNKS = (120, 100, 80)


def lazily(X: Any) -> Any:
    return da.from_array(X, chunks=(CHUNKS, X.shape[1:]))


@pytest.mark.parametrize("name", MODELS)
def test_answers__of_lazy_rows_are_defined_without_a_computation(name: str) -> None:
    model, X, _ = fitted(name)
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        answers = {method: getattr(model, method)(lazily(X)) for method in methods_of(model)}
        assert scheduler.calls == 0
    for method, answer in answers.items():
        expected = np.asarray(getattr(model, method)(X))
        assert isinstance(answer, da.Array)
        assert answer.shape == expected.shape
        assert answer.dtype == expected.dtype
        assert answer.chunks[0] == CHUNKS
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(answer.compute(), expected, rtol=1e-7, atol=1e-9)
        else:
            np.testing.assert_array_equal(answer.compute(), expected)


@pytest.mark.parametrize("name", MODELS)
def test_answers__of_sparse_rows_are_those_of_dense_ones(name: str) -> None:
    model, X, _ = fitted(name)
    if not get_tags(model).input_tags.sparse:
        pytest.skip("it takes dense rows alone")
    blocks = lazily(X).map_blocks(sp.csr_array)
    for method in methods_of(model):
        expected = getattr(model, method)(X)
        for given in (sp.csr_array(X), blocks):
            found = getattr(model, method)(given)
            found = found.compute() if hasattr(found, "compute") else found
            found = found.toarray() if sp.issparse(found) else found
            if np.asarray(expected).dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
            else:
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", MODELS)
def test_clone__keeps_the_parameters_alone(name: str) -> None:
    model, X, _ = fitted(name)
    fresh = clone(model)
    assert repr(fresh) == repr(model)
    assert sorted(fresh.get_params(deep=False)) == sorted(model.get_params(deep=False))
    with pytest.raises(NotFittedError):
        getattr(fresh, methods_of(model)[0])(X)


@pytest.mark.parametrize("name", MODELS)
def test_fit__has_the_same_bits_on_every_scheduler(name: str) -> None:
    found = []
    for options in (
        {"scheduler": "synchronous"},
        {"scheduler": "threads", "num_workers": 1},
        {"scheduler": "threads", "num_workers": 4},
    ):
        with dask.config.set(**options), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, X, _ = fitted(name, rows(), lazy=True)
        found.append(
            [np.asarray(getattr(model, method)(X)).tobytes() for method in methods_of(model)]
        )
    assert found[0] == found[1] == found[2]


# --- the rows that were chosen, and their audit -------------------------------------------

# Rows far from the boundary, so that the largest margin exists.
_RNG = np.random.default_rng(0)
POINTS = _RNG.normal(size=(2500, 3))
POINTS = POINTS[np.abs(POINTS.sum(axis=1)) > 0.3]
CLASSES = np.where(POINTS.sum(axis=1) > 0, "right", "left")
NUMBERS = POINTS @ [1.0, 2.0, 0.0] + _RNG.normal(size=len(POINTS))

UNLABELLED = ("CoresetBregman", "CoresetGaussianMixture", "CoresetKMeans")
NUMERIC = ("CoresetElasticNet", "CoresetRidge")
NAMES = [name for name in face.estimators.__all__ if hasattr(getattr(face.estimators, name), "fit")]
IN_MEMORY = "ODMClassifier"

# Those whose rows keep a margin or a solution: their weights do not add up to that of the data.
OF_MARGIN = {
    "ActiveMaxMarginClassifier",
    "MaxMarginClassifier",
    "ODMClassifier",
    "OutlierMaxMarginClassifier",
    "StructuredMaxMargin",
}


def made(name: str) -> Any:
    make = getattr(face.estimators, name)
    model = make(LogisticRegression()) if name == "CoresetEstimator" else make()
    return model.set_params(**{"random_state": 0} if "random_state" in model.get_params() else {})


# Each estimator in one form always, and in the other one at night.
FORMS = ["array", "dask"]
CASES = [
    (name, FORMS[(number + turn) % 2 if name != IN_MEMORY else 0])
    for turn in range(2)
    for number, name in enumerate(NAMES)
    if not (turn and name == IN_MEMORY)
]


@few("case", CASES, len(NAMES))
def test_coreset__of_defaults_is_rows_of_the_data(case: tuple[str, str]) -> None:
    name, form = case
    labels = None if name in UNLABELLED else NUMBERS if name in NUMERIC else CLASSES
    X, y = POINTS, labels
    if form == "dask":
        X, y = da.from_array(POINTS, chunks=(700, 3)), None if y is None else da.from_array(y, 700)
    model = made(name).fit(X, y)
    coreset = model.coreset_
    assert isinstance(coreset, face.Coreset)
    np.testing.assert_array_equal(coreset.points, POINTS[coreset.indices])
    if labels is not None:
        np.testing.assert_array_equal(coreset.labels, labels[coreset.indices])
    assert len(np.unique(coreset.indices)) == len(coreset)
    record = coreset.provenance
    assert record["n"] == len(POINTS)
    assert record["m"] == len(coreset)
    assert record["method"]
    assert record["objective"]["name"]
    assert (record["objective"] == {"name": "margin"}) == (name in OF_MARGIN)
    if name in OF_MARGIN:
        np.testing.assert_array_equal(coreset.weights, 1.0)
        return
    assert coreset.total_weight == pytest.approx(len(POINTS))
    report = model.audit(X, y, random_state=0)
    assert report.n_rows == len(POINTS)
    # Of 500 core points; all others have more rows.
    assert report.distortion < (1.0 if record["method"] == "core points" else 0.2)
