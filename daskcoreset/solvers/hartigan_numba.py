"""The loops of Hartigan's method, compiled by numba when they are first called."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import IN_ORDER, ROW_SUMS, jit, part
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
    all_cells = np.ones(k, np.bool_)
    columns, light = _columns(centers, mass, all_cells)
    columns_of_some, light_of_some = _columns(centers, mass, live)
    squares, found, count = np.empty(k), np.empty(n, np.int64), 0
    for i in range(n):
        cell = labels[i]
        saved = _saved(points[i], weights[i], centers[cell], mass[cell], counts[cell])
        if saved > 0.0:
            limit = saved / weights[i]
            if live[cell]:
                near = _is_near(points[i], columns, light, cell, limit, saved, squares)
            else:
                near = _is_near(
                    points[i], columns_of_some, light_of_some, -1, limit, saved, squares
                )
            if near:
                found[count] = i
                count += 1
    return found[:count]


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
    live[:] = True
    columns, light = _columns(centers, mass, live)
    live[:] = False
    squares = np.empty(k)
    moved, gain = 0, 0.0
    for i in rows:
        cell, weight = labels[i], weights[i]
        saved = _saved(points[i], weight, centers[cell], mass[cell], counts[cell])
        if saved <= 0.0:
            continue
        if not _is_near(points[i], columns, light, cell, saved / weight, saved, squares):
            continue
        to, added = _cheapest(weight, mass, saved, squares)
        if to < 0:
            continue
        mass[cell] -= weight
        mass[to] += weight
        light[cell], light[to] = 1.0 / mass[cell], 1.0 / mass[to]
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


@part(IN_ORDER)
def _columns(
    centers: FloatArray, mass: FloatArray, live: MaskArray
) -> tuple[FloatArray, FloatArray]:  # pragma: no cover - runs compiled
    """Return coordinates of the centers that are live, by column, and one over their masses."""
    (k, d), count = centers.shape, 0
    for c in range(k):
        count += live[c]
    columns, light = np.empty((d, count)), np.empty(count)
    at = 0
    for c in range(k):
        if live[c]:
            light[at] = 1.0 / mass[c]
            for j in range(d):
                columns[j, at] = centers[c, j]
            at += 1
    return columns, light


@part(ROW_SUMS)
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


@part(IN_ORDER)
def _is_near(  # noqa: PLR0917 - numba takes arguments by position
    row: FloatArray,
    columns: FloatArray,
    light: FloatArray,
    own: int,
    limit: float,
    slope: float,
    squares: FloatArray,
) -> bool:  # pragma: no cover - runs compiled
    """Fill `squares` with distances to cells; return whether one is below `limit + slope * light`.

    Coordinates of centers lie in `columns`, so that distances are formed beside one another.
    """
    d, k = columns.shape
    squares[:k] = 0.0
    for j in range(0, d - 3, 4):
        x, x_1, x_2, x_3 = row[j], row[j + 1], row[j + 2], row[j + 3]
        first, second, third, fourth = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        for c in range(k):
            total = squares[c] + (x - first[c]) ** 2
            total += (x_1 - second[c]) ** 2
            total += (x_2 - third[c]) ** 2
            squares[c] = total + (x_3 - fourth[c]) ** 2
    for j in range(d - d % 4, d):
        x, first = row[j], columns[j]
        for c in range(k):
            squares[c] += (x - first[c]) ** 2
    if own >= 0:
        squares[own] = np.inf
    near = 0
    for c in range(k):  # a count, and no division: many at once
        near += squares[c] < limit + slope * light[c]
    return near > 0


@part(IN_ORDER)
def _cheapest(
    weight: float, mass: FloatArray, saved: float, squares: FloatArray
) -> tuple[int, float]:  # pragma: no cover - runs compiled
    """Return the cell that costs least with a row, and what; -1 where that is not below `saved`."""
    least, best = saved * (1.0 - _LEAST_GAIN), -1
    for c in range(mass.shape[0]):
        added = mass[c] / (mass[c] + weight) * weight * squares[c]
        if added < least:
            least, best = added, c
    return best, least
