"""The loops of Hartigan's method, compiled by numba when they are first called."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.rowwise_numba import IN_ORDER, jit
from daskcoreset.core.typing import FloatArray, IndexArray, MaskArray

# Part of what a row costs that a move has to gain: less is rounding.
_LEAST_GAIN = 1e-9


@jit(IN_ORDER)
def movable_rows(  # noqa: PLR0917 - numba takes arguments by position
    points: FloatArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    counts: IndexArray,
    live: MaskArray,
) -> IndexArray:  # pragma: no cover - runs compiled
    """Return the rows that a move into or out of a cell that is `live` would gain by."""
    n, k = points.shape[0], centers.shape[0]
    every, some = np.arange(k), np.flatnonzero(live)
    columns, columns_of_some = centers.T.copy(), centers[some].T.copy()
    squares, found, count = np.empty(k), np.empty(n, np.int64), 0
    for i in range(n):
        cell = labels[i]
        saved = _saved(points[i], weights[i], centers[cell], mass[cell], counts[cell])
        if saved > 0.0:
            to, _ = _cheapest(
                points[i],
                weights[i],
                cell,
                columns if live[cell] else columns_of_some,
                every if live[cell] else some,
                mass,
                saved,
                squares,
            )
            if to >= 0:
                found[count] = i
                count += 1
    return found[:count].copy()


@jit(IN_ORDER)
def move_rows(  # noqa: PLR0917 - numba takes arguments by position
    points: FloatArray,
    weights: FloatArray,
    rows: IndexArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    counts: IndexArray,
    live: MaskArray,
) -> tuple[int, float]:  # pragma: no cover - runs compiled
    """Move those of `rows` that still gain by it, one after another; return how many, and the gain.

    Centers follow every move, and `live` becomes the cells that have changed.
    """
    d, k = points.shape[1], centers.shape[0]
    every, columns, squares = np.arange(k), centers.T.copy(), np.empty(k)
    live[:] = False
    moved, gain = 0, 0.0
    for i in rows:
        cell, weight = labels[i], weights[i]
        saved = _saved(points[i], weight, centers[cell], mass[cell], counts[cell])
        if saved <= 0.0:
            continue
        to, added = _cheapest(points[i], weight, cell, columns, every, mass, saved, squares)
        if to < 0:
            continue
        mass[cell] -= weight
        mass[to] += weight
        counts[cell] -= 1
        counts[to] += 1
        out, into = weight / mass[cell], weight / mass[to]
        for j in range(d):
            centers[cell, j] -= out * (points[i, j] - centers[cell, j])
            centers[to, j] += into * (points[i, j] - centers[to, j])
            columns[j, cell], columns[j, to] = centers[cell, j], centers[to, j]
        labels[i] = to
        live[cell] = live[to] = True
        moved += 1
        gain += saved - added
    return moved, gain


@jit(IN_ORDER)
def _saved(
    row: FloatArray, weight: float, center: FloatArray, mass: float, count: int
) -> float:  # pragma: no cover - runs compiled
    """Return what the cell of a row costs less without it."""
    rest = mass - weight
    # Of a row that outweighs the others of its cell they are what may move: no digit of `rest`
    # is certain.
    if count < 2 or rest <= 1e-6 * mass:
        return 0.0
    total = 0.0
    for j in range(row.shape[0]):
        total += (row[j] - center[j]) ** 2
    return mass / rest * weight * total


@jit(IN_ORDER)
def _cheapest(  # noqa: PLR0917 - numba takes arguments by position
    row: FloatArray,
    weight: float,
    cell: int,
    columns: FloatArray,
    numbers: IndexArray,
    mass: FloatArray,
    saved: float,
    squares: FloatArray,
) -> tuple[int, float]:  # pragma: no cover - runs compiled
    """Return the cell that costs least with the row, and what; -1 where that is not below `saved`.

    Coordinates of centers lie in `columns`, and `numbers` says of which: distances to all of
    them are formed beside one another.
    """
    d, k = columns.shape
    squares[:k] = 0.0
    for j in range(0, d - 3, 4):
        x, x_1, x_2, x_3 = row[j], row[j + 1], row[j + 2], row[j + 3]
        for c in range(k):
            total = squares[c] + (x - columns[j, c]) ** 2
            total += (x_1 - columns[j + 1, c]) ** 2
            total += (x_2 - columns[j + 2, c]) ** 2
            squares[c] = total + (x_3 - columns[j + 3, c]) ** 2
    for j in range(d - d % 4, d):
        for c in range(k):
            squares[c] += (row[j] - columns[j, c]) ** 2
    least, best = saved * (1.0 - _LEAST_GAIN), -1
    for c in range(k):
        number = numbers[c]
        added = mass[number] / (mass[number] + weight) * weight * squares[c]
        if added < least and number != cell:
            least, best = added, number
    return best, least
