"""Raking: weights that meet totals and means of classes, nearest to those that were drawn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.acceptance import face
from tests.pairs import few

MEANS = "class means"
TOTALS = "class totals"


def data(n: int, d: int, masses: Any = (0.6, 0.3, 0.1), seed: int = 0) -> tuple[Any, Any, Any]:
    """Classes of unlike shares that lie apart, in columns of unlike units, a few rows far out."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(masses), size=n, p=masses)
    X = rng.normal(size=(n, d)) * np.logspace(-2, 3, d) + 5.0
    X[:, 0] += 0.02 * y
    X[::97] *= 3.0
    return X, y, rng.uniform(0.2, 3.0, size=n)


def both(rows: Any, size: int, seed: int, reads: Any = 1, **draw: Any) -> tuple[Any, Any]:
    """Return coresets of the same rows: weights as they were drawn, and calibrated ones."""
    (X, y, u), found = rows, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        for variant in ("systematic", "calibrated"):
            method = face.Logistic(reads=reads, variant=variant)
            found.append(
                face.build(
                    X, y, sample_weight=u, method=method, size=size, random_state=seed, **draw
                )
            )
    assert "calibration" not in found[0].provenance
    return found[0], found[1]


def drawn(rows: Any, size: int, seed: int, reads: Any = 1, **draw: Any) -> tuple[Any, Any]:
    """Return the same as `both`, of the same draw."""
    plain, calibrated = both(rows, size, seed, reads, **draw)
    assert np.array_equal(plain.indices, calibrated.indices)
    return plain, calibrated


def of_totals(w: Any, y: Any, u: Any, labels: Any) -> Any:
    """Return weights that add up to those of every class."""
    out = w.copy()
    for one in np.unique(y):
        out[y == one] *= u[labels == one].sum() / w[y == one].sum()
    return out


UNITS = [(1.0, 4, 240, 1), (2.0**-600, 3, 500, 3), (2.0**560, 3, 150, 1)]


@pytest.mark.parametrize(("unit", "d", "size", "seed"), UNITS)
def test_raking__is_the_nearest_weights_that_meet_the_means(
    unit: float, d: int, size: int, seed: int
) -> None:
    """Totals and means are met, and the logarithm of the factor is linear within a class."""
    X, y, u = data(6000, d)
    X[:, -1] = 7.0  # a column that says nothing
    plain, raked = drawn((X, y, u * unit), size, seed)
    facts = raked.provenance["calibration"]
    assert list(facts["met"]) == list(facts["wanted"]) == [TOTALS, MEANS]
    assert facts["part"] == pytest.approx(1.0)
    base = of_totals(plain.weights / unit, raked.labels, u, y)
    w = raked.weights / unit
    moved = parts_of_the_way(raked, base, w, (X, y, u))
    assert np.nanmax(np.abs(moved - 1.0)) < 1e-6
    check_nearest(raked, base, w, facts["spread"])
    assert facts["spread"] > 1.001


def parts_of_the_way(c: face.Coreset, before: Any, after: Any, rows: Any) -> Any:
    """How far the sum of each class and column went towards that of the data; NaN if it was met."""
    X, y, u = rows
    moved = np.full((len(np.unique(y)), X.shape[1]), np.nan)
    for one in range(len(moved)):
        own, rest = c.labels == one, y == one
        assert after[own].sum() == pytest.approx(u[rest].sum(), rel=1e-12)
        P, middle = c.points[own], np.average(X[rest], axis=0, weights=u[rest])
        was, now = before[own] @ (P - middle), after[own] @ (P - middle)
        far = np.abs(was) > 1e-9 * u[rest].sum() * np.abs(X).max(axis=0)
        moved[one, far] = 1.0 - now[far] / was[far]
    return moved


def check_nearest(c: face.Coreset, before: Any, after: Any, spread: float) -> None:
    """Of all weights with their sums, those nearest to the first are a tilt of each class."""
    factors = after / before
    assert c.labels is not None
    for one in np.unique(c.labels):
        P = c.points[c.labels == one]
        gaps = (P - P.mean(axis=0)) / np.maximum(P.std(axis=0), 1e-9)
        linear, log = np.column_stack([gaps, np.ones(len(P))]), np.log(factors[c.labels == one])
        assert np.abs(log - linear @ np.linalg.lstsq(linear, log, rcond=None)[0]).max() < 1e-5
    assert spread == pytest.approx(max(factors.max(), 1 / factors.min()), rel=1e-6)
    assert spread <= 20.0


FEW_ROWS = [(2, 40, 1), (2, 60, 2), (2, 60, 3), (4, 60, 0), (4, 80, 3), (8, 120, 1), (2, 60, 4)]


@few("case", FEW_ROWS, always=4)
def test_raking__goes_as_far_as_rows_allow(case: tuple[int, int, int]) -> None:
    """One part of the way for all sums, and half the room towards those out of reach."""
    d, size, seed = case
    X, y, u = data(3000, d)
    plain, raked = drawn((X, y, u), size, seed)
    facts = raked.provenance["calibration"]
    assert list(facts["wanted"]) == [TOTALS, MEANS]
    base, w = of_totals(plain.weights, raked.labels, u, y), raked.weights
    moved = parts_of_the_way(raked, base, w, (X, y, u))
    check_nearest(raked, base, w, facts["spread"])
    assert facts["part"] == pytest.approx(moved.mean(), abs=1e-6)
    if MEANS in facts["met"]:
        assert moved == pytest.approx(1.0, abs=1e-6)
        return
    assert list(facts["met"]) == [TOTALS]
    room = np.ones_like(moved)
    for one in range(len(moved)):
        P, all_ = raked.points[raked.labels == one], u[y == one].sum()
        was = base[raked.labels == one] @ P
        need = np.average(X[y == one], axis=0, weights=u[y == one]) * all_ - was
        most = np.where(need > 0, all_ * P.max(axis=0) - was, was - all_ * P.min(axis=0))
        room[one] = np.where(np.abs(need) < most, 1.0, 0.5 * most / np.abs(need))
    part = moved / room
    assert np.ptp(part) < 1e-5
    tried = [0.0, 0.25, 0.5, 0.7, 0.9, 0.999, 1.0]
    at = int(np.argmin(np.abs(part.mean() - tried)))
    assert part.mean() == pytest.approx(tried[at], abs=1e-5)
    # With a larger part some weight would change more than twentyfold, or there are none.
    if at + 1 < len(tried) - (room < 1.0).any():
        reference = tilted(raked, base, moved * 0 + tried[at + 1] * room, (X, y, u))
        assert reference is None or (reference / base).max() > 19 or (base / reference).max() > 19


def tilted(c: face.Coreset, base: Any, moved: Any, rows: Any) -> Any:
    """Return the tilt that moves sums so far, by general optimisation; None if it finds none."""
    (X, y, u), w = rows, base.copy()
    for one in range(len(moved)):
        own, rest = c.labels == one, y == one
        P, total = c.points[own], u[rest].sum()
        was = base[own] @ P / total
        goal = moved[one] * (np.average(X[rest], axis=0, weights=u[rest]) - was)
        scale = np.maximum(np.sqrt((base[own] / total) @ (P - was) ** 2), 1e-300)
        gaps = (P - was - goal) / scale

        def dual(theta: Any, gaps: Any = gaps, own: Any = own) -> Any:
            tilt = gaps @ theta
            weights = base[own] * np.exp(tilt - tilt.max())
            return tilt.max() + np.log(weights.sum()), weights @ gaps / weights.sum()

        with np.errstate(all="ignore"):  # it may go ever farther where there is none
            found = minimize(
                dual, np.zeros(len(was)), jac=True, method="BFGS", options={"gtol": 1e-9}
            )
            missed = np.abs(dual(found.x)[1]).max()
        if not missed <= 1e-6:
            return None
        tilt = gaps @ found.x
        w[own] = base[own] * np.exp(tilt - tilt.max())
        w[own] *= total / w[own].sum()
    return w


def test_raking__of_a_class_of_one_row_and_of_one_that_chance_left_out() -> None:
    """A mean that a single row cannot move is not met; totals are not if a class has no row."""
    X, y, u = data(3000, 2, (0.7, 0.3))
    y[5], u[5] = 2, 0.7
    _, raked = drawn((X, y, u), 80, 0)
    facts = raked.provenance["calibration"]
    assert list(facts["met"]) == [TOTALS, MEANS]
    assert raked.weights[raked.labels == 2].tolist() == pytest.approx([0.7])
    y[5:12], u[5:12] = 2, 0.7
    seen = set()
    for seed in range(12):
        draw = face.Draw(sampling="multinomial", passes=2)
        plain, raked = drawn((X, y, u), 60, seed, draw=draw)
        facts = raked.provenance["calibration"]
        n_of_class = int((raked.labels == 2).sum())
        seen.add(n_of_class)
        base = of_totals(plain.weights, raked.labels, u, y)
        if n_of_class == 0:
            assert TOTALS not in facts["met"]
            assert MEANS not in facts["met"]
        else:
            assert TOTALS in facts["met"]
        if n_of_class == 1:
            assert MEANS not in facts["met"]
            assert 0.0 <= facts["part"] <= 2 / 3
        for one in set(raked.labels.tolist()):
            own = raked.labels == one
            assert raked.weights[own].sum() == pytest.approx(u[y == one].sum(), rel=1e-9)
        assert max((raked.weights / base).max(), (base / raked.weights).max()) <= 20.0 + 1e-9
    assert {0, 1} <= seen


def test_raking__of_few_rows_for_the_columns_is_to_totals_alone() -> None:
    X, y, u = data(3000, 9)
    plain, raked = drawn((X, y, u), 4 * 3 * 10 - 1, 0)
    assert raked.provenance["calibration"] == {
        "met": (TOTALS,), "wanted": (TOTALS,), "part": 1.0, "spread": 1.0
    }  # fmt: skip
    assert np.allclose(raked.weights, of_totals(plain.weights, raked.labels, u, y), rtol=1e-12)


def test_raking__of_many_columns_gives_up_means_for_the_difference_of_two_classes() -> None:
    """Of 346 sums too many are for 465 rows of a class; the gradient at zero is met instead."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 172)) * np.exp(0.6 * rng.normal(size=(9000, 1)))
    y = (X[:, 0] + 0.5 * rng.standard_cauchy(9000) > 3.0).astype(int)
    plain, raked = drawn((X, y, np.ones(9000)), 2100, 0, reads=2)
    facts = raked.provenance["calibration"]
    assert list(facts["wanted"]) == [TOTALS, "gradient", MEANS]
    assert list(facts["met"]) == [TOTALS, "gradient", "gradient at zero"]
    signs = np.where(raked.labels == 1, 1.0, -1.0)
    middle = X.mean(axis=0)
    before = of_totals(plain.weights, raked.labels, np.ones(9000), y)
    wanted = (X - middle).T @ np.where(y == 1, 1.0, -1.0)
    gaps = [(w * signs) @ (raked.points - middle) - wanted for w in (before, raked.weights)]
    assert np.abs(gaps[1]).max() < 1e-4 * np.abs(gaps[0]).max()
    # All class means, in standard deviations, are no farther from those of the data than before.
    far = [distance_of_means(raked, w, before, (X, y)) for w in (before, raked.weights)]
    assert far[1] <= far[0] * (1 + 1e-5)


def distance_of_means(c: face.Coreset, w: Any, before: Any, rows: Any) -> float:
    """Distance of the sums of two classes from those of the data, in standard deviations."""
    (X, y), gaps = rows, []
    middle = X.mean(axis=0)
    for one in (0, 1):
        features = (c.points - middle) * (np.asarray(c.labels) == one)[:, np.newaxis]
        centred = features - (before @ features) / before.sum()
        scale = np.linalg.norm(before[:, np.newaxis] * centred, axis=0)
        gap = w @ features - (X - middle)[y == one].sum(axis=0)
        gaps.append(gap[scale > 1e-9] / scale[scale > 1e-9])
    return float(np.linalg.norm(gaps))


def test_raking__to_gradients_moves_no_means_away() -> None:
    """Of few rows, of which several draws are tried, and with a column that says nothing."""
    seen = 0
    for seed in (0, 1, 4, 9, 10, 31, 33):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3000, 10)) * np.exp(0.8 * rng.normal(size=(3000, 1)))
        y = (X[:, 0] + 0.5 * rng.standard_cauchy(3000) > 1.0).astype(int)
        X[:, -1] = 7.0
        rows = (X, y, np.ones(3000))
        plain, raked = both(rows, 120, seed, reads=2)
        if not np.array_equal(plain.indices, raked.indices):
            continue  # another draw was better
        seen += 1
        before = of_totals(plain.weights, raked.labels, rows[2], y)
        far = [distance_of_means(raked, w, before, (X, y)) for w in (before, raked.weights)]
        assert far[1] <= far[0] * (1 + 1e-5)
    assert seen


@pytest.mark.parametrize("unit", [2.0**-700, 2.0**-60, 2.0**60, 2.0**700])
def test_inclusion__is_the_same_in_any_unit_of_weight(unit: float) -> None:
    """With rows that are certain, beside one that is nearly so, and rows of no weight."""
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(800, 2)), rng.uniform(0.5, 1.5, size=800)
    u[[3, 500, 501]] = 4000.0, 90.0, 25.0
    u[::9] = 0.0
    for method in (face.Uniform(), face.Lightweight()):
        plain, scaled = (
            face.build(X, sample_weight=w, method=method, size=40, random_state=0)
            for w in (u, u * unit)
        )
        assert np.array_equal(plain.indices, scaled.indices)
        assert np.allclose(scaled.weights / unit, plain.weights, rtol=1e-9)
        assert len(plain) == 40
        assert plain.weights[plain.indices == 3].tolist() == [4000.0]
        assert (u[plain.indices] > 0.0).all()
