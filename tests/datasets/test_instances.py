"""Instances of papers follow their definitions."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import dask
import numpy as np
import pytest

from daskcoreset import datasets

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray


# Instances from the literature


def _benchmark_by_definition(k: int, alpha: int, beta: float) -> AnyArray:
    rows = []
    for number in range(k**alpha):
        row: list[float] = []
        for place in range(alpha):
            digit = number // k**place % k
            row.extend((float(j == digit) - 1 / k) / beta**place for j in range(k))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize(
    ("k", "alpha", "beta"), [(2, 1, 1.0), (2, 4, 1.0), (3, 3, 2.0), (5, 2, 1.5)]
)
def test_benchmark__follows_the_definition(k: int, alpha: int, beta: float) -> None:
    X = datasets.make_benchmark(k, alpha, beta=beta, chunks=4, dtype="float64")
    np.testing.assert_allclose(X.compute(), _benchmark_by_definition(k, alpha, beta), atol=1e-15)


def test_benchmark__every_digit_groups_at_the_same_cost() -> None:
    k, alpha = 4, 3
    points = datasets.make_benchmark(k, alpha, dtype="float64").compute()
    n = k**alpha
    for place in range(alpha):
        digit = np.arange(n) // k**place % k
        cost = sum(points[digit == value].var(axis=0).sum() * (n / k) for value in range(k))
        assert cost == pytest.approx(n * (alpha - 1) * (k - 1) / k)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-15)
    assert np.ptp((points**2).sum(axis=1)) < 1e-12


@pytest.mark.parametrize("n", [4, 7, 1000])
def test_svm_pathological__has_two_close_rows_of_opposite_labels(n: int) -> None:
    X, y = datasets.make_svm_pathological(n, chunks=3, dtype="float64", random_state=0)
    points, labels = dask.compute(X, y)
    assert labels.dtype == np.int8
    assert labels[-2:].tolist() == [1, -1]
    assert abs(int(labels.sum())) <= 1
    np.testing.assert_array_equal(points[-2:], [[0.05, 0], [-0.05, 0]])
    # Separable, and the two close rows are the support of the widest margin.
    signed = labels * points[:, 0]
    assert signed[-2:].max() < signed[:-2].min()


@pytest.mark.parametrize("d", [2, 4, 6, 10])
def test_svm_lower_bound__holds_every_choice_once(d: int) -> None:
    X, y = datasets.make_svm_lower_bound(d, chunks=7, dtype="float64")
    points, labels = dask.compute(X, y)
    choices = [tuple(np.flatnonzero(row)) for row in points]
    assert choices == list(itertools.combinations(range(d), d // 2))
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    signs = points[points != 0].reshape(len(points), -1)
    np.testing.assert_allclose(signs, labels[:, None] * np.full_like(signs, math.sqrt(2 / d)))


@pytest.mark.parametrize("lam", [0.01, 1.0, 1e4])
def test_svm_lower_bound__every_row_has_the_sensitivity_of_the_lemma(lam: float) -> None:
    d = 6
    points, labels = dask.compute(*datasets.make_svm_lower_bound(d, dtype="float64"))
    n = len(points)
    for row in points:
        w = np.where(row == 0, math.sqrt(d / 2), 0)
        hinge = np.maximum(0, 1 - labels * (points @ w))
        costs = w @ w / (2 * n) + lam * hinge
        worst = (costs / costs.sum()).max()
        assert worst >= (n * lam + d**2) / (n * (lam + d**2))
        assert np.isclose(hinge, 1).sum() == 1
