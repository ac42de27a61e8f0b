"""The order of systematic draws in NumPy: the reading that tests compare the loop with."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.rowwise_numba import WHOLE_UNIT
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray


def bisection_order(points: AnyArray, mass: FloatArray, max_aligned: float) -> IndexArray:
    """Bisect rows that are not certain down to one draw."""
    last = np.zeros(points.shape[1])
    order: list[IndexArray] = [np.flatnonzero(mass >= 1.0)]
    stack, placed = [np.flatnonzero(mass < 1.0)], 0.0
    while stack:
        rows = stack.pop()
        halves = _halves(points, mass, placed, rows, last, max_aligned)
        if halves is None:
            order.append(rows)
            placed += float(mass[rows].sum())
            last = points[rows[0]].astype(np.float64) if len(rows) else last
            continue
        stack += halves[::-1]
    return np.concatenate(order)


def _halves(  # noqa: PLR0917 - as the compiled loop
    points: AnyArray,
    mass: FloatArray,
    placed: float,
    rows: IndexArray,
    last: FloatArray,
    max_aligned: float,
) -> list[IndexArray] | None:
    if len(rows) <= 1 or mass[rows].sum() <= 1.3:
        return None
    sample = rows
    if len(rows) > 128:
        golden_ratio = 0.6180339887498949
        sample = rows[((0.5 + golden_ratio * np.arange(64)) % 1 * len(rows)).astype(int)]
    u = mass[sample] / mass[sample].sum()
    reference = points[rows[0]].astype(np.float64)
    gaps = points[sample] - reference
    mean = np.einsum("i,ij->j", u, gaps)
    squares = np.einsum("i,ij,ij->j", u, gaps, gaps)
    variances = np.where(squares - mean**2 > 1e-12 * squares, squares - mean**2, 0.0)
    widest = int(variances.argmax())
    if variances[widest] <= 0:
        return None
    axis = np.einsum("i,i,ij->j", u, gaps[:, widest] - mean[widest], gaps - mean)
    axis /= np.abs(axis).max()
    if np.einsum("j,j->", axis, last - reference - mean) > 0:
        axis = -axis
    value = np.einsum("ij,j->i", points[rows] - reference - mean, axis)
    if len(rows) <= 24:
        by_value = np.argsort(value, kind="stable")
        rows, value = rows[by_value], value[by_value]
    low, high = value.min(), value.max()
    cut = 0.0 if low <= 0.0 < high else low
    near = value <= _cut(mass[rows], placed, value, cut, max_aligned)
    return None if near.all() else [rows[near], rows[~near]]


def _cut(
    mass: FloatArray, placed: float, value: FloatArray, cut: float, max_aligned: float
) -> float:
    total = float(mass.sum())
    target = np.floor(placed + mass[value <= cut].sum() + 0.5)
    if total > max_aligned or not placed + WHOLE_UNIT < target < placed + total - WHOLE_UNIT:
        return cut
    by_value = np.argsort(value, kind="stable")
    gaps = np.abs(placed + np.cumsum(mass[by_value])[:-1] - target)
    gaps[value[by_value[:-1]] >= value[by_value[1:]]] = np.inf
    return float(value[by_value[gaps.argmin()]])
