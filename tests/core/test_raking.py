"""Calibration: the nearest weights with given sums, and how far towards them rows allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from daskcoreset.core.raking import (
    Target,
    calibrate_classes,
    class_sums,
    join_targets,
    rake,
    scale_classes,
)
from tests.pairs import few

TOTALS, MEANS = "class totals", "class means"


def data(n: int, d: int, masses: Any = (0.6, 0.3, 0.1), seed: int = 0) -> Any:
    """Classes of unlike shares that lie apart, in columns of unlike units, a few rows far out."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(masses), size=n, p=masses)
    X = rng.normal(size=(n, d)) * np.logspace(-2, 3, d) + 5.0
    X[:, 0] += 0.02 * y
    X[::97] *= 3.0
    return X, y, rng.uniform(0.2, 3.0, size=n)


@dataclass
class Drawn:
    """Rows that were drawn by their lengths, their weights by class totals, and calibrated ones."""

    points: Any
    labels: Any
    before: Any
    weights: Any
    facts: dict[str, Any]


def drawn(rows: Any, size: int, seed: int, ladder: Any = ((MEANS,),)) -> Drawn:
    (X, y, u), rng = rows, np.random.default_rng(seed)
    scales = np.maximum(X.std(axis=0), 1e-9)
    q = u / u.sum() * np.sqrt(1.0 + np.square((X - X.mean(axis=0)) / scales).sum(axis=1))
    q /= q.sum()
    chosen = rng.choice(len(X), size, replace=False, p=q)
    middle, totals = np.average(X, axis=0, weights=u), np.bincount(y, u).astype(np.float64)
    sums = [u[y == one] @ (X[y == one] - middle) for one in range(len(totals))]
    points, codes, weights = X[chosen], y[chosen], u[chosen] / q[chosen] / size
    gaps = points - middle

    def means() -> Iterator[Target]:
        return class_sums(gaps, codes, sums)

    def first() -> Target:
        signs = np.where(codes == 1, 1.0, -1.0)[:, np.newaxis]
        return Target(gaps * signs, sums[1] - sums[0])

    found = calibrate_classes(
        weights, codes, totals, {MEANS: lambda: join_targets(means()), "difference": first},
        ladder, kept={MEANS: means},
    )  # fmt: skip
    before = scale_classes(weights, codes, totals)
    return Drawn(points, codes, before, found.weights, found.describe()["calibration"])


UNITS = [(1.0, 4, 240, 1), (2.0**-600, 3, 500, 3), (2.0**560, 3, 150, 1)]


@pytest.mark.parametrize(("unit", "d", "size", "seed"), UNITS)
def test_raking__is_the_nearest_weights_that_meet_the_means(
    unit: float, d: int, size: int, seed: int
) -> None:
    """Totals and means are met, and the logarithm of the factor is linear within a class."""
    X, y, u = data(6000, d)
    X[:, -1] = 7.0  # a column that says nothing
    raked = drawn((X, y, u * unit), size, seed)
    assert raked.facts["met"] == raked.facts["wanted"] == [TOTALS, MEANS]
    assert raked.facts["part"] == pytest.approx(1.0)
    base, w = raked.before / unit, raked.weights / unit
    moved = parts_of_the_way(raked, base, w, (X, y, u))
    assert np.nanmax(np.abs(moved - 1.0)) < 1e-6
    check_nearest(raked, base, w, raked.facts["spread"])
    assert raked.facts["spread"] > 1.001


def parts_of_the_way(c: Drawn, before: Any, after: Any, rows: Any) -> Any:
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


def check_nearest(c: Drawn, before: Any, after: Any, spread: float) -> None:
    """Of all weights with their sums, those nearest to the first are a tilt of each class."""
    factors = after / before
    for one in np.unique(c.labels):
        P = c.points[c.labels == one]
        gaps = (P - P.mean(axis=0)) / np.maximum(P.std(axis=0), 1e-9)
        linear, log = np.column_stack([gaps, np.ones(len(P))]), np.log(factors[c.labels == one])
        assert np.abs(log - linear @ np.linalg.lstsq(linear, log, rcond=None)[0]).max() < 1e-5
    assert spread == pytest.approx(max(factors.max(), 1 / factors.min()), rel=1e-6)
    assert spread <= 20.0


FEW_ROWS = [(2, 40, 1), (2, 60, 3), (4, 60, 0), (4, 80, 3), (8, 120, 1), (2, 60, 4)]


@few("case", FEW_ROWS, always=4)
def test_raking__goes_as_far_as_rows_allow(case: tuple[int, int, int]) -> None:
    """One part of the way for all sums, and half the room towards those out of reach."""
    d, size, seed = case
    X, y, u = data(3000, d)
    raked = drawn((X, y, u), size, seed)
    facts, base, w = raked.facts, raked.before, raked.weights
    assert facts["wanted"] == [TOTALS, MEANS]
    moved = parts_of_the_way(raked, base, w, (X, y, u))
    check_nearest(raked, base, w, facts["spread"])
    assert facts["part"] == pytest.approx(moved.mean(), abs=1e-6)
    if MEANS in facts["met"]:
        assert moved == pytest.approx(1.0, abs=1e-6)
        return
    assert facts["met"] == [TOTALS]
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


def tilted(c: Drawn, base: Any, moved: Any, rows: Any) -> Any:
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
    y[5:50], u[5:50] = 2, 0.7
    seen = set()
    for seed in range(12):
        raked = drawn((X, y, u), 60, seed)
        n_of_class = int((raked.labels == 2).sum())
        seen.add(min(n_of_class, 2))
        assert (TOTALS in raked.facts["met"]) == (n_of_class > 0)
        if n_of_class < 2:
            assert MEANS not in raked.facts["met"]
        for one in set(raked.labels.tolist()):
            own = raked.labels == one
            assert raked.weights[own].sum() == pytest.approx(u[y == one].sum(), rel=1e-9)
        factors = raked.weights / raked.before
        assert max(factors.max(), 1 / factors.min()) <= 20.0 + 1e-9
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("seed", range(4))
def test_raking__to_fewer_sums_moves_no_means_away(seed: int) -> None:
    """Sixteen rows of a class, one of whose columns is nearly always zero."""
    rng = np.random.default_rng(seed)
    y = (rng.random(8000) < 0.02).astype(int)
    X = rng.standard_normal((8000, 6))
    X[:, 5] = (rng.random(8000) < 0.002) * 50.0
    raked = drawn((X, y, np.ones(8000)), 130, seed, ((MEANS,), ("difference",)))
    far = [distance_of_means(raked, w, (X, y)) for w in (raked.before, raked.weights)]
    assert far[1] <= far[0] * (1 + 1e-5)
    assert raked.facts["spread"] <= 20.0 + 1e-9


def distance_of_means(c: Drawn, w: Any, rows: Any) -> float:
    """Distance of the sums of two classes from those of the data, in standard deviations."""
    (X, y), gaps = rows, []
    middle, before = X.mean(axis=0), c.before
    for one in (0, 1):
        features = (c.points - middle) * (c.labels == one)[:, np.newaxis]
        centred = features - (before @ features) / before.sum()
        scale = np.linalg.norm(before[:, np.newaxis] * centred, axis=0)
        gap = w @ features - (X - middle)[y == one].sum(axis=0)
        gaps.append(gap[scale > 1e-9] / scale[scale > 1e-9])
    return float(np.linalg.norm(gaps))


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
