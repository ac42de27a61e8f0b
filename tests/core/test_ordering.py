"""The order of systematic draws: the compiled loop, plain NumPy, and what defines it."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.ordering import spatial_order
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from tests.pairs import each


def bisection_order(points: AnyArray, mass: FloatArray) -> IndexArray:
    """Bisect rows that are not certain down to 0.9 draws."""
    order = [*np.flatnonzero(mass >= 1.0)]
    others = np.flatnonzero(mass < 1.0)
    _place(points, mass, others, points[others[0]], order)
    return np.array(order)


def _place(
    points: AnyArray, mass: FloatArray, rows: IndexArray, last: FloatArray, order: list[int]
) -> FloatArray:
    """Append rows to the order. Return the row that was placed last."""
    sample = rows[:: 1 + len(rows) // 32]
    axis, mean = _axis(points[sample], mass[sample])
    if mass[rows].sum() <= 0.9 or not axis.any():
        order += rows.tolist()
        placed_last: FloatArray = points[rows[0]]
        return placed_last
    near = (points[rows] - mean) @ (-axis if axis @ (last - mean) > 0 else axis) < 0.0
    last = _place(points, mass, rows[near], last, order)
    return _place(points, mass, rows[~near], last, order)


def _axis(points: AnyArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Covariances of columns with the widest one, zeros if none varies, and the mean."""
    mean = np.average(points, axis=0, weights=mass)
    gaps = points - mean
    covariance = (gaps * mass[:, np.newaxis]).T @ gaps
    covariance[:, np.ptp(points, axis=0) == 0] = 0.0
    return covariance[np.diag(covariance).argmax()], mean


@each(n=[2, 31], offset=[0.0, 1e6])  # all rows are looked at
def test_spatial_order__same_in_plain_numpy(n: int, offset: float) -> None:
    # Every row is about a draw, so that none share a cell, in which the order does not matter.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3)) + offset
        mass = rng.uniform(0.7, 0.99, n)
        mass[:: 20 + seed] = 1.0  # certain

        assert spatial_order(X, mass).tolist() == bisection_order(X, mass).tolist()


def test_spatial_order__equal_rows_stay_together() -> None:
    values = np.random.default_rng(0).permutation(np.repeat(np.arange(7.0) ** 2 + 0.1, 5))
    mass = np.random.default_rng(1).random(35)
    found = values[spatial_order(values[:, np.newaxis], mass)]

    assert (np.diff(found) != 0).sum() == 6
    assert spatial_order(np.ones((4, 2)), np.ones(4)).tolist() == [0, 1, 2, 3]
    assert spatial_order(np.ones((1, 2)), np.ones(1)).tolist() == [0]
    assert spatial_order(np.ones((0, 2)), np.ones(0)).tolist() == []


def test_spatial_order__certain_rows_come_first() -> None:
    X = np.arange(10.0)[:, np.newaxis]
    mass = np.full(10, 0.5)
    mass[[3, 8]] = 1.0
    order = spatial_order(X, mass)

    assert order[:2].tolist() == [3, 8]
    assert sorted(map(tuple, order[2:].reshape(4, 2).tolist())) == [(0, 1), (2, 4), (5, 6), (7, 9)]


def test_spatial_order__finds_rows_that_no_sample_has() -> None:
    # More rows than are looked at in the mean; but for a few they are equal, or have no mass.
    X, mass = np.ones((4000, 3)), np.full(4000, 0.25)
    rare = [1234, 1600, 1601, 3999]
    X[rare, 1] = 5.0
    X[7], mass[7] = 3.0, 0.0
    places = np.argsort(spatial_order(X, mass))[rare]

    assert np.ptp(places) <= 4  # the row without mass may lie between them
    assert spatial_order(np.ones((4000, 3)), mass).tolist() == [*range(4000)]


def corners() -> FloatArray:
    return np.array(np.meshgrid(*[[0.0, 1.0]] * 8)).reshape(8, -1).T


def test_spatial_order__rows_of_few_draws_stay_as_they_are() -> None:
    assert spatial_order(corners(), np.full(256, 0.5 / 256)).tolist() == [*range(256)]
    # Cells of half a draw each: four corners that differ in two columns.
    cells = spatial_order(corners(), np.full(256, 1 / 8)).reshape(64, 4)
    assert np.ptp(corners()[cells], axis=1).sum(axis=1).tolist() == [2.0] * 64
