"""Comparisons of methods and sizes, against costs over all rows."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset import SVM, Mixture, StrongKMeans, build, compare
from daskcoreset.datasets import make_mixture
from daskcoreset.errors import CoresetError
from tests.acceptance.tools.counting import CountingArray

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3)) * [5.0, 1.0, 3.0]
SIDES = np.where(X[:, 0] + RNG.normal(size=4000) > 0, "yes", "no")


def test_compare__errors_are_those_of_solutions_on_all_rows() -> None:
    y = X @ [1.0, 2.0, 3.0] + RNG.normal(size=len(X))
    found = compare(X, y, methods=["least_squares"], sizes=[40, 90], random_state=7)
    assert [(row.method, row.size, row.passes) for row in found.rows] == [
        ("uniform", 40, 1), ("least_squares", 40, 1), ("uniform", 90, 1), ("least_squares", 90, 1),
    ]  # fmt: skip
    assert (found.cost, found.solutions, found.n_rows) == ("least squares", ("fitted",), 4000)
    ones = np.column_stack([X, np.ones(len(X))])
    costs = []
    for row in found.rows:
        for seed in range(7, 10):
            c = build(X, y, method=row.method, size=row.size, random_state=seed)
            root = np.sqrt(c.weights)
            beta = np.linalg.lstsq(ones[c.indices] * root[:, None], y[c.indices] * root)[0]
            costs.append(((y - ones @ beta) ** 2).sum())
    expected = np.array(costs) / min(costs) - 1
    np.testing.assert_allclose(
        [row.errors for row in found.rows], expected.reshape(4, 3), atol=1e-9
    )
    assert min(min(row.errors) for row in found.rows) == 0


@pytest.mark.parametrize(
    ("given", "methods", "passes"),
    [
        ({}, ["lightweight"], 2),
        ({"n_clusters": 5}, ["lightweight", "kmeans"], 2),
        ({"y": SIDES}, ["logistic", "svm", "lightweight"], 3),
        ({"y": X[:, 0] + RNG.normal(size=len(X))}, ["least_squares", "lightweight"], 2),
        ({"methods": {"own": StrongKMeans(4)}}, ["own"], 2),
        ({"methods": ["uniform"], "n_clusters": 2}, [], 2),
    ],
)
def test_compare__defaults_and_passes(given: Any, methods: list[str], passes: int) -> None:
    rows = CountingArray(X)
    found = compare(rows, **given, sizes=100, random_state=0)
    assert [row.method for row in found.rows] == ["uniform", *methods]
    assert found.passes == passes == np.median(rows.reads)
    assert found.verdict in repr(found)


def test_compare__k_is_said_and_sizes_are_at_most_half_of_the_rows() -> None:
    found = compare(X[:1500], random_state=0)
    assert found.solutions == ("k=2", "k=8", "k=32")
    assert {row.size for row in found.rows} == {750}
    assert "k=2, k=8, k=32" in repr(found)


def test_compare__a_draw_without_a_class_has_an_infinite_error() -> None:
    y = np.zeros(len(X), dtype=int)
    y[X[:, 0] > 0] = 1
    y[:3] = 2
    found = compare(X, y, methods=[SVM()], sizes=60, random_state=0)
    uniform, own = found.rows
    assert uniform.error == math.inf
    assert own.error < 10
    assert found.verdict.startswith("'svm' errs least")


def test_compare__uniform_rows_miss_rare_clusters() -> None:
    rows, _ = make_mixture(20_000, 4, n_clusters=60, imbalance=1000, random_state=0)
    found = compare(rows, n_clusters=60, sizes=500, random_state=0)
    errors = {row.method: row.error for row in found.rows}
    assert errors["kmeans"] < 0.5 * errors["uniform"]
    assert found.verdict.startswith("'kmeans' errs least")
    again = compare(da.asarray(rows.compute()).rechunk((5000, 4)), n_clusters=60, sizes=500)
    assert again.rows[0].method == "uniform"


def test_compare__mixtures() -> None:
    found = compare(X, methods=[Mixture(2)], sizes=200, random_state=0)
    assert found.cost == "mixture cost"
    assert found.solutions == ("k=2",)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"methods": []}, "methods"),
        ({"methods": "svm"}, "methods"),
        ({"methods": ["kmeans"]}, "n_clusters"),
        ({"methods": ["svm"]}, "svm"),
        ({"sizes": []}, "sizes"),
        ({"sizes": [0]}, "sizes"),
        ({"sizes": 2.5}, "sizes"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"random_state": "a"}, "random_state"),
    ],
)
def test_errors__name_the_argument(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(CoresetError, match=said):
        compare(X, **wrong)
