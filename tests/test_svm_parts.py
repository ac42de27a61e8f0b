"""What SVM coresets are made of: samples of classes, raking, classes and rounded hinges."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from daskcoreset.blocks import Block
from daskcoreset.classes import class_codes, label_problem
from daskcoreset.linear import round_hinge
from daskcoreset.raking import rake
from daskcoreset.randomness import Stage, stream
from daskcoreset.strata import merge_strata, pilot_of, sample_strata
from daskcoreset.testing import assert_mean

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = RNG.choice(["a", "b", "c"], 400, p=[0.7, 0.25, 0.05])
U = RNG.lognormal(size=400) * (RNG.random(400) < 0.9)


def strata(seed: int, size: int, cuts: tuple[int, ...] = (0, 150, 150, 400)) -> list[Any]:
    return [
        sample_strata(
            Block(X[start:stop], U[start:stop], Y[start:stop]),
            size,
            stream(seed, Stage.SUMMARIES, i),
        )
        for i, (start, stop) in enumerate(pairwise(cuts))
    ]


def test_strata__merge_is_associative_and_bounded() -> None:
    parts = strata(0, 10)

    def merge(first: Any, second: Any) -> Any:
        return merge_strata(first, second, 10)

    left = pilot_of(reduce(merge, parts), 10)
    right = pilot_of(merge(parts[0], merge(parts[1], parts[2])), 10)
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)
    assert left.classes.tolist() == ["a", "b", "c"]
    assert np.bincount(left.codes).max() == 10
    assert left.n_rows == np.count_nonzero(U)
    for code, label in enumerate("abc"):
        total = left.weights[left.codes == code].sum()
        np.testing.assert_allclose(total, U[label == Y].sum())


@pytest.mark.statistical
def test_strata__weights_stand_for_the_rows() -> None:
    """Weights before they are scaled to the class are unbiased; false-alarm rate 1e-6."""
    estimates = []
    for seed in range(2000):
        whole = sample_strata(Block(X, U, Y), 25, stream(seed, Stage.SUMMARIES))["a"]
        u = whole.rows.weights[:25]
        weights = u / -np.expm1(-u * whole.keys[25])
        estimates.append([weights.sum(), *(weights @ whole.rows.points[:25])])
    own = Y == "a"
    assert_mean(np.array(estimates), np.array([U[own].sum(), *(U[own] @ X[own])]))


def test_rake__meets_totals_with_the_least_divergence() -> None:
    features = np.column_stack([np.ones(400), X])
    totals = features.T @ (1 + 0.3 * X[:, 0] ** 2)
    found = rake(features, np.ones(400), totals)
    np.testing.assert_allclose(features.T @ found, totals, rtol=1e-9)
    # Of all weights that meet them these are of exponential form.
    tilt, *_ = np.linalg.lstsq(features, np.log(found), rcond=None)
    np.testing.assert_allclose(features @ tilt, np.log(found), atol=1e-8)


def test_rake__columns_that_depend_on_one_another() -> None:
    features = np.column_stack([np.ones(400), X, X[:, 0] + X[:, 1], np.zeros(400)])
    weights = np.random.default_rng(0).random(400) + 0.5
    totals = features.T @ (weights * np.exp(0.2 * X[:, 2]))
    np.testing.assert_allclose(features.T @ rake(features, weights, totals), totals, atol=1e-6)


def test_rake__infeasible_totals_leave_weights_positive_and_near() -> None:
    features = np.column_stack([np.ones(50), X[:50, 0]])
    impossible = np.array([50.0, 1e6])  # the mean cannot lie beyond every row
    found = rake(features, np.ones(50), impossible)
    assert (found > 0).all()
    assert (found <= 50 * (1 + 1e-9)).all()
    np.testing.assert_array_equal(rake(np.zeros((5, 2)), np.ones(5), np.ones(2)), np.ones(5))


@pytest.mark.parametrize("width", [1.0, 0.01])
def test_round_hinge__a_quarter_of_the_width_above_the_hinge(width: float) -> None:
    margins = np.linspace(-1, 3, 4001)
    loss, slope = round_hinge(margins, width)
    gap = loss - np.maximum(1 - margins, 0)
    assert gap.min() >= -1e-12
    assert gap.max() == pytest.approx(width / 4)
    np.testing.assert_allclose(-np.gradient(loss, margins), slope, atol=2e-3 / width)


def test_classes__rows_without_weight_and_numbers_of_rows() -> None:
    block = Block(np.zeros((3, 1)), np.array([1.0, 1.0, 0.0]), np.array([1, 2, 9]))
    assert class_codes(block, np.array([1, 2])).tolist() == [0, 1, 1]
    missing = Block(np.zeros((2, 1)), np.ones(2), np.array([1.0, np.nan]), np.array([7, 8]))
    problem = label_problem(missing)
    assert problem is not None
    assert problem.row == 8
    assert label_problem(Block(np.zeros((2, 1)), np.ones(2))) is not None
