"""The order of systematic draws in NumPy: the reading that tests compare the loop with."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray


def bisection_order(points: AnyArray, mass: FloatArray) -> IndexArray:
    """Bisect rows that are not certain down to one draw."""
    order = [*np.flatnonzero(mass >= 1.0)]
    others = np.flatnonzero(mass < 1.0)
    _place(points, mass, others, 0.0, points[others[0]], order)
    return np.array(order)


def _place(  # noqa: PLR0917 - as the compiled loop
    points: AnyArray,
    mass: FloatArray,
    rows: IndexArray,
    placed: float,
    last: FloatArray,
    order: list[int],
) -> FloatArray:
    """Append rows to the order, `placed` draws before them. Return the row that was placed last."""
    total = float(mass[rows].sum())
    sample = rows[:: 1 + len(rows) // 128]
    axis, mean = _axis(points[sample], mass[sample])
    if total <= 1.3 or not axis.any():
        order += rows.tolist()
        placed_last: FloatArray = points[rows[0]]
        return placed_last
    value = (points[rows] - mean) @ (-axis if axis @ (last - mean) > 0 else axis)
    levels = np.unique(value)
    before = np.array([mass[rows[value < level]].sum() for level in levels[1:]])
    cut = levels[levels >= 0.0][0]  # at the mean
    target = np.floor(placed + mass[rows[value < cut]].sum() + 0.5) - placed
    if total <= 64.0 and 1e-7 < target < total - 1e-7:
        cut = levels[1:][np.abs(before - target).argmin()]
    near = value < cut
    last = _place(points, mass, rows[near], placed, last, order)
    return _place(points, mass, rows[~near], placed + mass[rows[near]].sum(), last, order)


def _axis(points: AnyArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Covariances of columns with the widest one, zeros if none varies, and the mean."""
    mean = np.average(points, axis=0, weights=mass)
    gaps = points - mean
    covariance = (gaps * mass[:, np.newaxis]).T @ gaps
    covariance[:, np.ptp(points, axis=0) == 0] = 0.0
    return covariance[np.diag(covariance).argmax()], mean
