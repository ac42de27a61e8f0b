"""The order of systematic draws in NumPy: the reading that tests compare the loop with."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray


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
