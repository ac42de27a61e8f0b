"""What SVM coresets are made of: samples of classes, raking, classes and rounded hinges."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from daskcoreset.core.blocks import Block, class_codes, find_bad_label
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import (
    MOST_SPREAD,
    Calibrated,
    Target,
    _Classes,
    _spread,
    calibrate_classes,
    merge_reservoirs,
    rake,
    sample_strata,
    scale_classes,
    stratified_sample,
)
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.linear import round_hinge
from daskcoreset.testing import assert_mean

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = RNG.choice(["a", "b", "c"], 400, p=[0.7, 0.25, 0.05])
U = RNG.lognormal(size=400) * (RNG.random(400) < 0.9)
CODES = np.searchsorted(["a", "b", "c"], Y)


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
        return merge_reservoirs(first, second, 10)

    left = stratified_sample(reduce(merge, parts), 10)
    right = stratified_sample(merge(parts[0], merge(parts[1], parts[2])), 10)
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


def sums_of(target: Target, weights: FloatArray) -> FloatArray:
    return np.asarray(target.features.T @ weights)


def classes_of(weights: FloatArray) -> FloatArray:
    return np.bincount(CODES, weights).astype(np.float64)


def test_rake__meets_totals_with_the_least_divergence() -> None:
    given = np.random.default_rng(0).random(400) + 0.5
    features = X * (CODES == 0)[:, None]
    target = Target(features, features.T @ (given * (1 + 0.2 * np.tanh(X[:, 0]))))
    found = rake(target, given, CODES, classes_of(given))
    assert found is not None
    assert found.part == 1.0
    np.testing.assert_allclose(sums_of(target, found.weights), target.totals, rtol=1e-8)
    np.testing.assert_allclose(classes_of(found.weights), classes_of(given), rtol=1e-12)
    # Of all weights that meet them these are of exponential form, class by class.
    columns = np.column_stack([target.features, np.eye(3)[CODES]])
    logarithms = np.log(found.weights / given)
    tilt, *_ = np.linalg.lstsq(columns, logarithms, rcond=None)
    np.testing.assert_allclose(columns @ tilt, logarithms, atol=1e-7)


def test_rake__columns_that_depend_on_one_another() -> None:
    features = np.column_stack([np.ones(400), X, X[:, 0] + X[:, 1], np.zeros(400)])
    weights = np.random.default_rng(0).random(400) + 0.5
    wanted = scale_classes(weights * np.exp(0.2 * X[:, 2]), CODES, classes_of(weights))
    target = Target(features, features.T @ wanted)
    found = rake(target, weights, CODES, classes_of(weights))
    assert found is not None
    np.testing.assert_allclose(sums_of(target, found.weights), target.totals, atol=1e-5)


def test_rake__what_no_weights_reach_is_approached_or_left() -> None:
    one = np.zeros(50, dtype=np.int64)
    target = Target(np.column_stack([X[:50, :2], np.ones(50)]), np.array([3.0, 1e6, 60.0]))
    total = np.array([50.0])
    assert rake(target, np.ones(50), one, total) is None
    found = rake(target, np.ones(50), one, total, part=0.5)
    assert found is not None
    assert found.weights.sum() == pytest.approx(50)
    assert 1.0 < found.spread <= MOST_SPREAD
    before = np.abs(sums_of(target, np.ones(50)) - target.totals)
    after = np.abs(sums_of(target, found.weights) - target.totals)
    assert after[0] == pytest.approx(before[0] / 2)
    assert after[1] < before[1]
    assert after[2] == pytest.approx(before[2])  # a sum of ones is the total of the class
    far = Target(X[:50, :1], np.array([50 * X[:50, 0].max() * 0.999]))
    assert rake(far, np.ones(50), one, total) is None  # by weights that are absurd


def test_rake__what_a_class_has_in_common_is_met_by_its_total() -> None:
    # Zero in one class and one value in the other, with means that are rounded.
    codes = np.repeat([0, 1], 30)
    weights = np.random.default_rng(0).lognormal(size=60)
    totals = np.bincount(codes, weights).astype(np.float64)
    values = np.array([0.1, 0.3, 0.7, 1 / 3, 1e-5, 1e5 / 7])
    features = np.column_stack([codes[:, np.newaxis] * values, X[:60, 0]])
    wanted = np.append(totals[1] * values, weights @ X[:60, 0] + 1.0)
    found = rake(Target(features, wanted), weights, codes, totals)
    alone = rake(Target(features[:, -1:], wanted[-1:]), weights, codes, totals)
    assert found is not None
    assert alone is not None
    np.testing.assert_allclose(found.weights, alone.weights, rtol=1e-9)


def test_spread__of_weights_that_were_raised_or_lowered() -> None:
    given = np.array([1.0, 2.0, 1.0])
    assert _spread(np.array([3.0, 2.0, 1.0]), given) == 3.0
    assert _spread(np.array([3.0, 0.5, 1.0]), given) == 4.0
    assert _spread(np.array([3.0, 0.0, 1.0]), given) == np.inf


def test_classes__how_far_to_go_is_half_of_the_room() -> None:
    # Of two classes, of weights 2 and 1; the third has no row.
    classes = _Classes(np.array([0, 0, 1, 1]), np.array([2.0, 1.0, 5.0]))
    gaps = np.array([[-1.0], [3.0], [-2.0], [0.5]])
    reach = {1.0: 1.0, 6.4: 1.0, 13.0: 0.25, -1.0: 1.0, -3.9: 1.0, -8.0: 0.25}
    for wanted, share in reach.items():
        assert classes.shares(gaps, np.array([wanted])).tolist() == [share]


def test_calibrate_classes__fewer_targets_then_a_part_then_totals() -> None:
    weights, totals = np.random.default_rng(0).random(400) + 0.5, np.array([500.0, 70.0, 3.0])
    scaled = scale_classes(weights, CODES, totals)
    good = Target(X[:, :1], X[:, :1].T @ (scaled * np.exp(0.01 * X[:, 0])))
    bad = Target(X[:, 1:2], np.array([1e9]))
    offered = {"good": lambda: good, "bad": lambda: bad}

    def found(*ladder: tuple[str, ...]) -> Calibrated:
        result = calibrate_classes(weights, CODES, totals, offered, ladder)
        np.testing.assert_allclose(classes_of(result.weights), totals, rtol=1e-12)
        return result

    assert found().met == ("class totals",)
    np.testing.assert_array_equal(found().weights, scaled)
    assert found(("good",)).part == 1.0
    assert found(("good", "bad"), ("good",)).met == ("class totals", "good")
    approached = found(("bad",))
    assert approached.met == ("class totals",)
    assert 0.0 < approached.part < 1.0
    said = approached.describe()["calibration"]
    assert said["wanted"] == ["class totals", "bad"]
    lone = Target(np.ones((400, 1)), np.array([600.0]))
    given_up = calibrate_classes(weights, CODES, totals, {"bad": lambda: lone}, [("bad",)])
    np.testing.assert_array_equal(given_up.weights, scaled)
    assert given_up.part == 0.0
    assert Calibrated(weights).describe() == {}


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
    problem = find_bad_label(missing)
    assert problem is not None
    assert problem.row == 8
    assert find_bad_label(Block(np.zeros((2, 1)), np.ones(2))) is not None


def test_rake__weights_whose_squares_overflow() -> None:
    target = Target(X[:50, :1], np.array([50 * X[:50, 0].mean() + 3.0]))
    one, total = np.zeros(50, dtype=np.int64), np.array([50.0])
    found, huge = rake(target, np.ones(50), one, total), 2.0**700
    scaled = rake(
        target._replace(totals=target.totals * huge), np.ones(50) * huge, one, total * huge
    )
    assert found is not None
    assert scaled is not None
    assert scaled.weights.tolist() == (found.weights * huge).tolist()
