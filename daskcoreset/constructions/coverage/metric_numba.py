"""The loops of coverage, compiled; the files beside this one import them when they call one."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import IN_ORDER, ROW_SUMS, jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray


@jit(ROW_SUMS)
def open_cells(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    start: int,
    limit: float,
    boxes: bool,
    centers: FloatArray,
    count: int,
    rows: IndexArray,
) -> tuple[int, int]:  # pragma: no cover - runs compiled
    """Open a cell at every row outside all cells.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    start : int
        First row to look at.
    limit : float
        Measure up to which a row is covered.
    boxes : bool
        Whether cells are boxes, not balls.
    centers : ndarray of shape (capacity, d), float64
        Core points; those opened are written behind the first `count`.
    count : int
    rows : ndarray of shape (capacity,), int64
        Where the rows that open a cell are written.

    Returns
    -------
    count, stop : int
        Core points now, and the first row not looked at: one more would not fit.
    """
    n, d = points.shape
    for i in range(start, n):
        covered = False
        for c in range(count):
            if boxes:  # most are left at their first column
                j = 0
                while j < d and abs(np.float64(points[i, j]) - centers[c, j]) <= limit:
                    j += 1
                covered = j == d
            else:
                total = 0.0
                for j in range(d):
                    gap = np.float64(points[i, j]) - centers[c, j]
                    total += gap * gap
                covered = total <= limit
            if covered:
                break
        if not covered:
            if count == centers.shape[0]:
                return count, i
            for j in range(d):
                centers[count, j] = points[i, j]
            rows[count] = i
            count += 1
    return count, n


@jit(ROW_SUMS)
def approach(
    points: AnyArray, center: FloatArray, boxes: bool, measures: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Lower `measures`, in place, where a row is nearer to a new center."""
    n, d = points.shape
    for i in range(n):
        measure = 0.0
        if boxes:
            for j in range(d):
                measure = max(measure, abs(np.float64(points[i, j]) - center[j]))
                if measure >= measures[i]:
                    break
        else:
            for j in range(d):
                gap = np.float64(points[i, j]) - center[j]
                measure += gap * gap
        measures[i] = min(measures[i], measure)


@jit(IN_ORDER)
def _measure(  # noqa: PLR0917 - numba takes arguments by position
    row: FloatArray, columns: FloatArray, low: int, high: int, boxes: bool, total: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Fill `total` with squared distances, or largest differences, from `low` to `high`."""
    # A slice of one column, counted from zero: otherwise the loops are not vectorised.
    width = high - low
    near = total[:width]
    near[:] = 0.0
    if boxes:
        for j in range(row.shape[0]):
            x = row[j]
            column = columns[j, low:high]
            for c in range(width):
                near[c] = max(near[c], abs(x - column[c]))
    else:
        for j in range(row.shape[0]):
            x = row[j]
            column = columns[j, low:high]
            for c in range(width):
                gap = x - column[c]
                near[c] += gap * gap


@jit(IN_ORDER)
def _argmin(
    total: FloatArray, low: int, high: int, order: IndexArray
) -> int:  # pragma: no cover - runs compiled
    """Position of the minimum of `total`; of equal ones the first in `order`."""
    best = 0
    for c in range(1, high - low):
        if total[c] <= total[best] and (
            total[c] < total[best] or order[low + c] < order[low + best]
        ):
            best = c
    return low + best


@jit(IN_ORDER)
def nearest(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    columns: FloatArray,
    order: IndexArray,
    axis: int,
    reach: float,
    limit: float,
    boxes: bool,
    labels: IndexArray,
    measures: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Fill `labels` and `measures`; `columns` are centers, (d, k), increasing along `axis`.

    Centers whose difference along `axis` is above `reach` are passed over, unless no other is
    within `limit`. Differences rounded are as monotone as differences.
    """
    n, d = points.shape
    k = columns.shape[1]
    total = np.empty(k)
    row = np.empty(d)
    for i in range(n):
        for j in range(d):
            row[j] = points[i, j]
        low, stop = 0, k
        while low < stop:  # the first center with row - center <= reach
            middle = (low + stop) // 2
            if row[axis] - columns[axis, middle] > reach:
                low = middle + 1
            else:
                stop = middle
        high, stop = low, k
        while high < stop:  # the first one with center - row > reach
            middle = (high + stop) // 2
            if columns[axis, middle] - row[axis] > reach:
                stop = middle
            else:
                high = middle + 1
        best = -1
        if high > low:
            _measure(row, columns, low, high, boxes, total)
            best = _argmin(total, low, high, order)
        if best < 0 or total[best - low] > limit:
            low = 0
            _measure(row, columns, 0, k, boxes, total)
            best = _argmin(total, 0, k, order)
        labels[i] = order[best]
        measures[i] = total[best - low]
