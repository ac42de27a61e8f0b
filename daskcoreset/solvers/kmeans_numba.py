"""The loops of k-means, compiled by numba when they are first called. All numbers are float64."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import jit
from daskcoreset.core.typing import FloatArray, IndexArray

# Rows whose distances to a center are formed at once, in vectors, and columns of a step.
ROWS = 64
COLUMNS = 4


@jit
def nearest_center(  # noqa: PLR0917 - numba takes arguments by position
    points: FloatArray,
    centers: FloatArray,
    first: int,
    room: FloatArray,
    labels: IndexArray,
    distances: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Assign rows to `centers`, numbered from `first`, where these are nearer.

    Zeros fill the columns of the centers to a multiple of `COLUMNS`, and those of `room`, which is
    of shape (columns + 1, `ROWS`). The bits of a distance depend on its row and center alone.
    """
    n, d = points.shape
    width = centers.shape[1]
    squares = room[width]
    for start in range(0, n, ROWS):
        several = min(ROWS, n - start)
        near, own = distances[start : start + several], labels[start : start + several]
        for j in range(d):
            for i in range(several):
                room[j, i] = points[start + i, j]
        for c in range(centers.shape[0]):
            for i in range(ROWS):
                squares[i] = 0.0
            for j in range(0, width, COLUMNS):
                x0, x1 = centers[c, j], centers[c, j + 1]
                x2, x3 = centers[c, j + 2], centers[c, j + 3]
                for i in range(ROWS):
                    gap0, gap1 = room[j, i] - x0, room[j + 1, i] - x1
                    gap2, gap3 = room[j + 2, i] - x2, room[j + 3, i] - x3
                    squares[i] += gap0 * gap0 + gap1 * gap1 + gap2 * gap2 + gap3 * gap3
            for i in range(several):  # without branches
                nearer = squares[i] < near[i]
                near[i] = squares[i] if nearer else near[i]
                own[i] = first + c if nearer else own[i]


@jit
def cell_gaps(  # noqa: PLR0917 - numba takes arguments by position
    points: FloatArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    shift: FloatArray,
    distances: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Fill in distances of rows to the centers of their cells, and add up weights and gaps."""
    for i in range(points.shape[0]):
        c, weight, total = labels[i], weights[i], 0.0
        mass[c] += weight
        for j in range(points.shape[1]):
            gap = points[i, j] - centers[c, j]
            shift[c, j] += weight * gap
            total += gap * gap
        distances[i] = total


# Part of what a row costs that a move has to gain: less is rounding.
_LEAST_GAIN = 1e-9


@jit
def move_rows(  # noqa: PLR0917 - numba takes arguments by position
    points: FloatArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    counts: IndexArray,
) -> float:  # pragma: no cover - runs compiled
    """Move rows to the cells where they cost least. Return the gain: zero if none moved.

    Centers, masses and counts of rows follow every move.
    """
    n, d = points.shape
    gain = 0.0
    for i in range(n):
        own, weight = labels[i], weights[i]
        rest = mass[own] - weight
        # Of a row that outweighs the others of its cell they are what may move: no digit of `rest`
        # is certain.
        if counts[own] < 2 or rest <= 1e-6 * mass[own]:
            continue
        saved, least, to = 0.0, np.inf, own
        for c in range(mass.shape[0]):
            square = 0.0
            for j in range(d):
                gap = points[i, j] - centers[c, j]
                square += gap * gap
            cost = mass[c] * weight * square
            if c == own:
                saved = cost / rest
            elif cost < least * (mass[c] + weight):
                least, to = cost / (mass[c] + weight), c
        if not least < saved * (1.0 - _LEAST_GAIN):
            continue
        mass[own] = rest
        mass[to] += weight
        counts[own] -= 1
        counts[to] += 1
        for j in range(d):
            centers[own, j] -= weight / rest * (points[i, j] - centers[own, j])
            centers[to, j] += weight / mass[to] * (points[i, j] - centers[to, j])
        labels[i] = to
        gain += saved - least
    return gain
