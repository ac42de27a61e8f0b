"""Costs against brute force and scikit-learn, whatever form the data have."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

import daskcoreset
from daskcoreset import SVM, build
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.metrics import costs as metrics
from daskcoreset.metrics.costs import distortion, kmeans_cost, relative_error
from daskcoreset.testing import CountingArray


def brute_cost(X: Any, centers: Any, u: Any = None) -> float:
    wide = np.asarray(X, dtype=np.longdouble)
    squares = ((wide[:, np.newaxis] - np.asarray(centers)) ** 2).sum(axis=2)
    return float((squares.min(axis=1) * (1.0 if u is None else u)).sum())


@pytest.fixture
def data() -> tuple[Any, Any, Any]:
    """Rows, weights of which some are zero, and four centers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * [1.0, 10.0, 0.1]
    u = rng.lognormal(size=500) * (rng.random(500) < 0.8)
    return X, u, X[:4] + 0.1


FORMS = {
    "numpy": lambda X: X,
    "list": lambda X: X.tolist(),
    "fortran": np.asfortranarray,
    "sparse": sp.csr_array,
    "coo": sp.coo_matrix,
    "dask": lambda X: da.from_array(X, chunks=((100, 0, 1, 399), (2, 1))),
    "dask of sparse": lambda X: da.from_array(X, chunks=(100, 3)).map_blocks(sp.csr_array),
    "rows read in slices": CountingArray,
}


# --- kmeans_cost -------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_kmeans_cost__any_input(form: Any, data: tuple[Any, Any, Any]) -> None:
    X, u, centers = data

    assert kmeans_cost(form(X), centers) == pytest.approx(brute_cost(X, centers), rel=1e-12)
    found = kmeans_cost(form(X), centers, u)
    assert found == pytest.approx(brute_cost(X, centers, u), rel=1e-12)
    assert type(found) is float


# --- relative_error ----------------------------------------------------------------------


def test_relative_error__numbers_and_arrays() -> None:
    assert relative_error(150, 100) == 0.5
    assert type(relative_error(150, 100)) is float
    assert relative_error([90.0, 100.0], 100.0).tolist() == [-0.1, 0.0]
    assert relative_error([90.0, 100.0], [45.0, 200.0]).tolist() == [1.0, -0.5]


# --- distortion --------------------------------------------------------------------------


def test_distortion__is_the_largest_ratio_either_way(data: tuple[Any, Any, Any]) -> None:
    X, u, _ = data
    coreset = daskcoreset.build(X, size=30, sample_weight=u, random_state=1)
    rng = np.random.default_rng(2)
    solutions = [rng.normal(size=(k, 3)) for k in (1, 3, 20)]
    found = distortion(coreset, X, solutions, u)

    ratios = []
    for Q in solutions:
        of_all, of_few = brute_cost(X, Q, u), brute_cost(coreset.points, Q, coreset.weights)
        ratios.append(max(of_all / of_few, of_few / of_all))
    assert found == pytest.approx(max(ratios) - 1, rel=1e-9)
    assert type(found) is float
    one = distortion(coreset, X, solutions[0], u)
    assert one == pytest.approx(ratios[0] - 1, rel=1e-9)


@pytest.mark.parametrize(("factor", "expected"), [(1.0, 0.0), (2.0, 1.0), (0.25, 3.0)])
def test_distortion__of_scaled_weights(factor: float, expected: float) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    coreset = Coreset(X, np.full(20, factor), np.arange(20))

    assert distortion(coreset, X, X[:3]) == pytest.approx(expected, abs=1e-12)


def test_distortion__cost_zero() -> None:
    X = np.array([[0.0], [0.0], [3.0]])
    misses = Coreset(X[:2], np.ones(2), np.arange(2))
    too_much = Coreset(X, np.ones(3), np.arange(3))

    assert distortion(misses, X[:2], [[0.0]]) == 0.0
    assert distortion(misses, X, [[0.0]]) == np.inf
    assert distortion(too_much, X[:2], [[0.0]]) == np.inf


RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.where(X[:, 0] + RNG.normal(size=300) > 0, "yes", "no")
U = RNG.random(300)


def test_svm_report__one_class_with_classes() -> None:
    one = Y == "no"
    found = metrics.accuracy(X[one], Y[one], [1, 0, 0], classes=("no", "yes"))
    assert found == pytest.approx((X[one, 0] <= 0).mean())
    assert metrics.hinge_loss(X, Y, np.zeros(3), intercept=1.0) == pytest.approx(2 * one.mean())


def test_svm_sensitivity__what_a_coreset_reports() -> None:
    exact = metrics.svm_sensitivity(X, Y, sample_weight=U)
    coreset = build(
        X, Y, size=200, method=SVM(variant="systematic"), sample_weight=U, random_state=0
    )
    assert coreset.provenance["total_sensitivity"] == pytest.approx(exact, rel=1e-6)
    assert metrics.svm_sensitivity(X, Y, sample_weight=U, provable=True) >= exact
    for y, weights, message in (
        (np.ones(300), None, "one class only"),
        (None, None, "y is missing"),
        (Y, np.zeros(300), "zero for every row"),
        (np.full(300, np.nan), None, "missing or not finite"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            metrics.svm_sensitivity(X, y, sample_weight=weights)
