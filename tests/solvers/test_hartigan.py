"""Moves of single rows against plain NumPy, closed forms, and on data made to break them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.solvers import kmeans as module
from daskcoreset.solvers.hartigan import hartigan
from daskcoreset.solvers.kmeans import assign, solve
from tests.acceptance.tools.hostile import uneven_categories
from tests.tools import plain_loops

OPTIONS: dict[str, Any] = {
    "init": "k-means++", "n_init": 2, "max_iter": 300, "tol": 1e-4, "seed": 0,
}  # fmt: skip


def cost_of(points: AnyArray, weights: FloatArray, centers: FloatArray) -> float:
    gaps = points[:, np.newaxis].astype(np.longdouble) - centers
    return float((weights * (gaps**2).sum(axis=2).min(axis=1)).sum())


def cost_of_cells(points: AnyArray, weights: FloatArray, labels: AnyArray) -> float:
    """About the means of the cells, by the definition."""
    total = 0.0
    for cell in np.unique(labels):
        rows, u = points[labels == cell], weights[labels == cell]
        total += float(u @ ((rows - np.average(rows, axis=0, weights=u)) ** 2).sum(axis=1))
    return total


def state_of(seed: int, n: int = 60, d: int = 5, k: int = 6) -> Any:
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(n, d)), np.exp(rng.normal(size=n))
    labels = rng.integers(0, k, n)
    labels[:k] = np.arange(k)
    counts, mass = np.bincount(labels), np.bincount(labels, weights)
    centers = np.array([
        np.average(points[labels == cell], axis=0, weights=weights[labels == cell])
        for cell in range(k)
    ])  # fmt: skip
    return points, weights, labels, centers, mass, counts


# --- the formula ---------------------------------------------------------------------------


def test_gains__are_differences_of_costs() -> None:
    points, weights, labels, *rest = state_of(0, n=25, k=4)
    gains = plain_loops.transfer_gains(points, weights, labels, *rest)
    before = cost_of_cells(points, weights, labels)
    for i in range(25):
        for to in range(4):
            after = labels.copy()
            after[i] = to
            gain = before - cost_of_cells(points, weights, after)
            assert gains[i, to] == pytest.approx(max(gain, 0.0), abs=1e-9 * before)


@given(
    n=st.integers(1, 40),
    d=st.integers(1, 6),
    k=st.integers(1, 6),
    spread=st.sampled_from([0.0, 1.0, 5.0]),
    whole=st.booleans(),
    settled=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_hartigan__no_move_is_left(  # noqa: PLR0917 - hypothesis fills them
    n: int, d: int, k: int, spread: float, whole: bool, settled: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d))
    if whole:  # with ties, and rows that are equal
        points = points.round()
    weights = np.exp(spread * rng.normal(size=n))
    start = points[rng.integers(0, n, k)] + 0.1
    found, _ = hartigan(points, weights, start, max_iter=1000, tol=0.0, settled=settled)
    before, after = (cost_of(points, weights, each) for each in (start, found))
    assert after <= before * (1.0 + 1e-12)
    labels = assign(points, found)[0]
    counts = np.bincount(labels, minlength=k)
    mass = np.bincount(labels, weights, k).astype(np.float64)
    means = found.copy()
    for cell in np.flatnonzero(counts):
        own = labels == cell
        means[cell] = np.average(points[own], axis=0, weights=weights[own])
    gains = plain_loops.transfer_gains(points, weights, labels, means, mass, counts)
    # Of two cells at one place the second one may hold rows, which `labels` give to the first.
    twins = (found[:, np.newaxis] == found).all(axis=2).sum(axis=1) > 1
    gains[:, twins & (counts == 0)] = 0.0
    assert gains.max() <= 1e-8 * before


# --- categories ----------------------------------------------------------------------------


def categories(n: int, d: int) -> tuple[FloatArray, FloatArray]:
    counts = uneven_categories(n, d).sum(axis=0)
    return np.eye(d)[counts > 0], counts[counts > 0]


def rare_ones_together(counts: FloatArray, k: int) -> float:
    """Cost of the cell of all categories but the k - 1 with the most rows."""
    rare = np.sort(counts)[: len(counts) - k + 1]
    return float(rare.sum() - (rare**2).sum() / rare.sum())


@pytest.mark.parametrize(("n", "d", "k"), [(2000, 20, 8), (20_000, 60, 30), (40_000, 100, 50)])
@pytest.mark.parametrize("seed", [0, 1])
def test_solve__uneven_categories_are_as_good_as_the_rare_ones_together(
    n: int, d: int, k: int, seed: int
) -> None:
    rows, counts = categories(n, d)
    found = solve(rows.copy(), counts, k, **OPTIONS | {"seed": seed})
    assert cost_of(rows, counts, found.centers) <= rare_ones_together(counts, k) * (1 + 1e-9)


# --- hostile -------------------------------------------------------------------------------


def _hostile() -> dict[str, tuple[AnyArray, FloatArray, int]]:
    rng = np.random.default_rng(0)
    rows, ones = rng.normal(size=(300, 4)), np.ones(300)
    outlier, heavy = rows.copy(), ones.copy()
    outlier[7], heavy[7] = 1e8, 1e15
    scales = 10.0 ** rng.uniform(-12, 12, 300)
    return {
        "offset of 1e8": (rows + 1e8, ones, 12),
        "one row with all of the weight": (rows, heavy, 12),
        "one row with all of the cost": (outlier, ones, 12),
        "weights of all scales": (rows, scales, 12),
        "equal rows": (np.repeat(rows[:30], 10, axis=0), scales, 12),
        "huge rows": (rows * 1e150, ones, 12),
        "tiny rows": (rows * 1e-150, ones, 12),
        "columns of unlike scale": (rows * [1e-6, 1.0, 1e3, 1e6], ones, 12),
        "heavy tails": (rng.standard_cauchy((300, 2)), ones, 12),
        "one cluster": (rows, scales, 1),
        "as many clusters as rows": (rows[:40], scales[:40], 40),
        "a row more than clusters": (rows[:41], scales[:41], 40),
        "float32": ((rows + 1e3).astype(np.float32), ones, 12),
        "more columns than rows": (rng.normal(size=(30, 80)), ones[:30], 7),
        "categories": (*categories(2000, 30), 12),
    }


HOSTILE = _hostile()


@pytest.mark.parametrize("name", HOSTILE)
def test_solve__never_worse_than_lloyd(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, weights, k = HOSTILE[name]
    costs = []
    for passes in (True, False):
        if not passes:
            monkeypatch.setattr(module, "hartigan", lambda *given, **_: (given[2], 0))
        centers = [
            solve(rows.copy(), weights, k, **OPTIONS | {"tol": 0.0}).centers for _ in range(2)
        ]
        np.testing.assert_array_equal(centers[0], centers[1])
        assert np.isfinite(centers[0]).all()
        scale = float(abs(rows).max())
        costs.append(cost_of(rows / scale, weights / weights.max(), centers[0] / scale))
    # Of an offset the coordinates themselves keep eight digits.
    slack = 1e-9 if name != "offset of 1e8" else 1e-6
    assert costs[0] <= costs[1] * (1 + slack) + 1e-24


def test_hartigan__a_center_without_rows_gets_one() -> None:
    rows = np.array([[0.0], [1.0], [10.0], [12.0]])
    start = np.array([[0.5], [11.0], [1e3]])
    found, _ = hartigan(rows, np.ones(4), start, max_iter=10, tol=0.0)
    assert len(set(assign(rows, found)[0])) == 3
    assert cost_of(rows, np.ones(4), found) == pytest.approx(2.0)  # no single row gains


def test_hartigan__rows_without_weight_change_nothing() -> None:
    points, weights, _, centers, *_ = state_of(1)
    more = np.r_[points, np.full((3, 5), 1e3)], np.r_[weights, np.zeros(3)]
    found, same = (hartigan(*rows, centers, max_iter=9, tol=0.0)[0]
                   for rows in ((points, weights), more))  # fmt: skip
    np.testing.assert_array_equal(found, same)
