"""Rare classes and what is promised of labels: totals, rows of every class, calibration.

The judge is NumPy: class totals, and costs of fixed linear models over all rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

from daskcoreset import Coreset, Logistic, build
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.core.sampling import Target, rake, scale_classes
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.sensitivities.estimated_error import remark_on
from daskcoreset.sensitivities.svm_calibration import SVMDesign
from daskcoreset.solvers.linear import solve_svm


@cache
def rare(n: int = 150_000, positives: int = 588, d: int = 6) -> tuple[FloatArray, AnyArray]:
    """Rows of heavy tails, 0.39 % of them of the class that matters."""
    rng = np.random.default_rng(588)
    y = np.zeros(n, dtype=np.int64)
    y[rng.choice(n, positives, replace=False)] = 1
    X = rng.standard_normal((n, d)) * rng.lognormal(0.0, 0.5, (n, 1))
    X[y == 1, :3] += 1.5
    return X, y


def logistic_cost(
    X: FloatArray, y: AnyArray, model: FloatArray, weights: FloatArray | None = None
) -> float:
    z = np.where(y == 1, 1.0, -1.0) * (X @ model[:-1] + model[-1])
    losses = np.logaddexp(0.0, -z)
    return float(losses.sum() if weights is None else weights @ losses)


def labels_of(coreset: Coreset) -> AnyArray:
    assert coreset.labels is not None
    return coreset.labels


def assert_totals(coreset: Coreset, y: AnyArray, u: FloatArray | None = None) -> None:
    u = np.ones(len(y)) if u is None else u
    assert coreset.labels is not None
    for label in np.unique(y):
        mine = coreset.labels == label
        assert mine.any(), f"class {label!r} has no row"
        np.testing.assert_allclose(coreset.weights[mine].sum(), u[y == label].sum(), rtol=1e-9)


# Totals, and rows of every class


# Calibration makes nothing worse


def test_rare_class__calibrated_costs_are_near() -> None:
    """Seven of ten seeds had lost half the weight of the positives, and a third of the cost.

    The root mean square error of 30 other seeds is 0.12.
    """
    X, y = rare()
    model = np.array([0.9, 0.9, 0.9, 0.0, 0.0, 0.0, -7.5])
    truth = logistic_cost(X, y, model)
    errors = []
    for seed in range(8):
        coreset = build(X, y, size=500, method="logistic", random_state=seed)
        assert_totals(coreset, y)
        points = np.asarray(coreset.points)
        assert coreset.labels is not None
        errors.append(logistic_cost(points, coreset.labels, model, coreset.weights) / truth - 1)
    assert np.sqrt(np.mean(np.square(errors))) < 0.2


@pytest.mark.parametrize("seed", range(4))
def test_means_that_cannot_be_met__are_not_moved_away(seed: int) -> None:
    """Sixteen rows of a class, one of whose columns is nearly always zero."""
    rng = np.random.default_rng(seed)
    y = (rng.random(8000) < 0.02).astype(int)
    X = rng.standard_normal((8000, 6))
    X[:, 5] = (rng.random(8000) < 0.002) * 50.0
    plain = build(X, y, size=130, method=Logistic("systematic", reads=1), random_state=seed)
    raked = build(X, y, size=130, method=Logistic(reads=1), random_state=seed)
    np.testing.assert_array_equal(plain.indices, raked.indices)
    assert plain.labels is not None
    said = raked.provenance["calibration"]
    assert [*said["wanted"]] == ["class totals", "class means"]
    for label in (0, 1):
        own, total = plain.labels == label, (y == label).sum()
        truth = X[y == label].mean(axis=0)
        scaled = plain.weights[own] * (total / plain.weights[own].sum())
        before = np.abs(scaled @ plain.points[own] / total - truth)
        after = np.abs(raked.weights[own] @ raked.points[own] / total - truth)
        assert (after <= before * (1 + 1e-9) + 1e-6).all()
        factors = raked.weights[own] / scaled
        assert max(factors.max(), 1 / factors.min()) <= said["spread"] * (1 + 1e-9) <= 20 * 1.01


# Weights of classes


# The labels of a coreset are those of y


# A leaf of a stored tree is a part of the data, which may be of one class


# Many classes: a problem for each, whose work is bounded


def test_many_classes__pilot_and_tries_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: dict[str, list[int]] = {"svm_pilot": [], "svm_calibration": []}
    for name, rows in solved.items():

        def count(points: Any, *rest: Any, rows: list[int] = rows, **options: Any) -> Any:
            rows.append(len(points))
            return solve_svm(points[:50], rest[0][:50], rest[1][:50], **options)

        monkeypatch.setattr(f"daskcoreset.sensitivities.{name}.solve_svm", count)
    rng = np.random.default_rng(0)
    y = np.arange(12_000) % 40
    X = rng.standard_normal((12_000, 2)) + rng.standard_normal((40, 2))[y]
    build(X, y, size=1200, method="svm", random_state=0)
    assert sum(solved["svm_pilot"]) <= 2**18
    assert len(solved["svm_calibration"]) == 40


# What is said of the error


def separable(n: int = 30_000) -> tuple[FloatArray, AnyArray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    y = (X[:, 0] > 0).astype(np.int64)
    X[:, 0] += np.where(y == 1, 0.2, -0.2)
    return X, y


def one_row(n: int = 30_000) -> tuple[FloatArray, AnyArray]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 4))
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(np.int64)
    X[777], y[777] = [-1e6, 0.0, 0.0, 0.0], 1
    return X, y


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("data", "size"), [(rare, 30), (rare, 300), (separable, 300), (one_row, 300)]
)
@pytest.mark.filterwarnings("ignore:a solution fitted on")
@pytest.mark.filterwarnings("ignore:how far a solution")
@pytest.mark.nightly
def test_estimated_error__interval_holds_the_truth(
    data: Any, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very classifier that is judged, on all rows; the interval misses once in ten at most.

    At 95 % more than one miss in ten has a probability of 9 %; the seeds are fixed, and the
    intervals were found to be wider than need be: none of 160 missed on these and real sets.
    """
    fits: list[Any] = []

    def record(points: Any, signs: Any, *rest: Any, **options: Any) -> Any:
        fits[:] = [solve_svm(points, signs, *rest, **options), np.asarray(points)]
        return fits[0]

    monkeypatch.setattr("daskcoreset.sensitivities.svm_calibration.solve_svm", record)
    X, y = data(30_000, 118) if data is rare else data()
    missed = 0
    for seed in range(10):
        coreset = build(X, y, size=size, method="svm", random_state=seed)
        fit, points = fits
        b = fit.intercept - fit.coef @ (np.asarray(coreset.points)[0] - points[0])

        def cost(
            rows: Any, labels: AnyArray, u: Any, w: FloatArray = fit.coef, b: float = float(b)
        ) -> float:
            hinge = np.maximum(1.0 - np.where(labels == 1, 1.0, -1.0) * (rows @ w + b), 0.0)
            return float(w @ w / 2 + u @ hinge)

        truth = cost(X, y, np.ones(len(y)))
        truth = truth / cost(coreset.points, labels_of(coreset), coreset.weights) - 1.0
        found = coreset.provenance["estimated_error"]
        assert found["held_out"] > 10_000
        missed += not found["low"] - 1e-6 <= truth <= found["high"] + 1e-6
    assert missed <= 1


def test_estimated_error__loss_on_too_few_rows_to_tell() -> None:
    X, y = separable(60_000)
    # The cost is near zero, and relative errors of it are none to warn of.
    coreset = build(X, y, size=600, method="svm", random_state=0)
    found = coreset.provenance["estimated_error"]
    assert found["high"] > 0.5
    assert found["of_none"]["high"] < 0.05
    remark = remark_on({**found, "of_none": {**found["of_none"], "high": 0.06}}, 600)
    assert remark is not None
    assert "cannot be told" in remark


def test_estimated_error__warns_in_both_directions() -> None:
    found: dict[str, Any] = {"low": 0.0, "high": 0.1, "held_out": 9, "exact": False}
    found = {**found, "of_none": {"error": 0.03, "low": 0.0, "high": 0.05}}
    for error, said in ((0.06, "6 % more"), (-0.06, "6 % less"), (0.04, None), (-0.04, None)):
        remark = remark_on({**found, "error": error}, 50)
        assert remark is None if said is None else remark is not None and said in remark


def test_raking__weights_whose_squares_overflow() -> None:
    rng = np.random.default_rng(0)
    values, codes = rng.standard_normal((60, 2)), np.arange(60) % 2
    totals = np.array([40.0, 50.0])
    weights = scale_classes(rng.random(60) + 0.5, codes, totals)
    found = rake(Target(values, np.array([3.0, -2.0])), weights, codes, totals)
    assert found is not None
    for unit in (2.0**900, 2.0**-900):
        large = rake(
            Target(values, np.array([3.0, -2.0]) * unit), weights * unit, codes, totals * unit
        )
        assert large is not None
        np.testing.assert_array_equal(large.weights, found.weights * unit)


# --- classifiers that nearly cost the same, and means that are not wanted -------------------


@pytest.mark.parametrize(
    "seed", [42, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (48, 58))]
)
def test_estimated_error__is_that_of_the_very_best_classifier(seed: int) -> None:
    """With rare classes w = 0 costs half a per cent more than the best, and errs by nothing."""
    rng = np.random.default_rng(8)
    y = (np.arange(80_000) % 400 < 3).astype(np.int64)
    X = rng.normal(size=(80_000, 5)) + 1.2 * y[:, np.newaxis]
    with pytest.warns(CoresetWarning, match="a solution fitted on the coreset"):
        coreset = build(X, y, size=300, method="svm", random_state=seed)
    labels = coreset.labels
    assert labels is not None
    fit = SVC(kernel="linear").fit(coreset.points, labels, sample_weight=coreset.weights)
    costs = [
        0.5 * float((fit.coef_**2).sum())
        + float(u @ np.maximum(1.0 - np.where(c == 1, 1, -1) * fit.decision_function(rows), 0.0))
        for rows, c, u in ((X, y, np.ones(len(X))), (coreset.points, labels, coreset.weights))
    ]
    truth = costs[0] / costs[1] - 1.0
    found = coreset.provenance["estimated_error"]
    assert truth > 0.15
    assert found["low"] <= truth <= found["high"]


@pytest.mark.nightly_beyond(1)
@pytest.mark.parametrize("size", [100, 150, 300])
def test_class_means__together_are_never_moved_away(size: int) -> None:
    rng = np.random.default_rng(3)
    y = (np.arange(60_000) % 100 == 0).astype(np.int64)
    X = rng.normal(size=(60_000, 5)) + 0.7 * y[:, np.newaxis]
    X[:, 0] = np.exp(1.5 * X[:, 0])
    own = (y == np.arange(2)[:, np.newaxis]).astype(np.float64)
    totals = own @ X

    def off(weights: FloatArray, rows: Any, labels: Any, scale: Any = None) -> Any:
        """Distance of the sums of the classes, in standard deviations of their estimates."""
        mine = (labels == np.arange(2)[:, np.newaxis]).astype(np.float64)
        features = np.concatenate([rows * one[:, np.newaxis] for one in mine], axis=1)
        if scale is None:
            centered = features - weights @ features / weights.sum()
            scale = np.linalg.norm(weights[:, np.newaxis] * centered, axis=0)
        return float(np.linalg.norm((weights @ features - totals.ravel()) / scale)), scale

    moved = []
    for seed in range(4):
        drawn: list[tuple[FloatArray, FloatArray]] = []
        with pytest.MonkeyPatch.context() as patch:
            calibrated = SVMDesign.calibrate

            def noted(
                self: SVMDesign, rows: Any, weights: Any, *rest: Any, _plain: Any = calibrated
            ) -> Any:
                found = _plain(self, rows, weights, *rest)
                drawn.append((weights, found.weights))  # noqa: B023 - used within the turn
                return found

            patch.setattr(SVMDesign, "calibrate", noted)
            coreset = build(X, y, size=size, method="svm", random_state=seed)
        before = next(one for one, after in drawn if np.array_equal(after, coreset.weights))
        assert coreset.labels is not None
        codes = coreset.labels.astype(int)
        scaled = scale_classes(before, codes, own.sum(axis=1))
        gap, scale = off(scaled, coreset.points, codes)
        moved.append(off(coreset.weights, coreset.points, codes, scale)[0] / gap)
    assert max(moved) <= 1.0 + 1e-4


def test_calibration__of_a_class_without_rows_meets_no_totals() -> None:
    rng = np.random.default_rng(0)
    y = (np.arange(20_000) == 7).astype(np.int64)
    with pytest.warns(CoresetWarning, match="no row of 1 of the 2 classes"):
        coreset = build(
            rng.normal(size=(20_000, 3)), y, size=100, method=Logistic(reads=1),
            sampling="multinomial", passes=2, random_state=0,
        )  # fmt: skip
    assert "class totals" not in coreset.provenance["calibration"]["met"]
