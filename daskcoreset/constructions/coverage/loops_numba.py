"""The loop of the online rule, compiled. `reads` imports it when the loop is called."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray


@jit
def open_cells(
    points: AnyArray, limit: float, centers: FloatArray, count: int, rows: IndexArray
) -> tuple[int, int]:  # pragma: no cover - runs compiled
    """Open a cell at every row outside all cells.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    limit : float
        Squared distance up to which a row is covered.
    centers : ndarray of shape (capacity, d), float64
        Core points. New ones are written behind the first `count`.
    count : int
    rows : ndarray of shape (capacity,), int64
        Numbers of the rows that open a cell, likewise.

    Returns
    -------
    count, stop : int
        Core points now, and the first row that was not tested because there was no room.
    """
    n, d = points.shape
    for i in range(n):
        covered = False
        # In the order in which they were opened: early core points have the most rows.
        for c in range(count):
            total = 0.0
            for j in range(d):
                gap = np.float64(points[i, j]) - centers[c, j]
                total += gap * gap
            if total <= limit:
                covered = True
                break
        if not covered:
            if count == centers.shape[0]:
                return count, i
            for j in range(d):
                centers[count, j] = points[i, j]
            rows[count] = i
            count += 1
    return count, n
