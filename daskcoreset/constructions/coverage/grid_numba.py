"""The loops of `Grid`, compiled."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import IN_ORDER, ROW_SUMS, jit
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# A prime for each axis (Teschner et al. 2003); buckets that share a slot cost time only.
_PRIMES = np.array([73_856_093, 19_349_663, 83_492_791, 49_979_687, 67_867_967])


@jit(IN_ORDER)
def _bucket(
    row: AnyArray, axes: IndexArray, origin: FloatArray, width: float, place: IndexArray
) -> None:  # pragma: no cover - runs compiled
    for k in range(len(axes)):
        place[k] = np.int64(np.floor((np.float64(row[axes[k]]) - origin[k]) / width))


@jit(IN_ORDER)
def _slot(place: IndexArray, neighbour: int, mask: int) -> int:  # pragma: no cover - runs compiled
    """Slot of one of the 3 ** g buckets around a place; its digits in base three say which."""
    key = np.int64(0)
    for k in range(len(place)):
        key ^= (place[k] + neighbour % 3 - 1) * _PRIMES[k]
        neighbour //= 3
    return int(key & mask)


@jit(IN_ORDER)
def fill(  # noqa: PLR0917 - numba takes arguments by position
    centers: AnyArray,
    count: int,
    axes: IndexArray,
    origin: FloatArray,
    width: float,
    heads: IndexArray,
    links: IndexArray,
) -> None:  # pragma: no cover - runs compiled
    """Put core points into their buckets, chained from the first to the last."""
    place = np.empty(len(axes), dtype=np.int64)
    middle = (3 ** len(axes)) // 2
    for c in range(count - 1, -1, -1):
        _bucket(centers[c], axes, origin, width, place)
        slot = _slot(place, middle, len(heads) - 1)
        links[c] = heads[slot]
        heads[slot] = c


@jit(ROW_SUMS)
def open_cells_near(  # noqa: C901, PLR0917 - one loop; numba takes arguments by position
    points: AnyArray,
    start: int,
    limit: float,
    boxes: bool,
    centers: FloatArray,
    count: int,
    rows: IndexArray,
    axes: IndexArray,
    origin: FloatArray,
    width: float,
    heads: IndexArray,
    links: IndexArray,
) -> tuple[int, int]:  # pragma: no cover - runs compiled
    """As `open_cells`, which looks at all core points; this looks at the buckets around a row."""
    n, d = points.shape
    place = np.empty(len(axes), dtype=np.int64)
    around = 3 ** len(axes)
    mask = len(heads) - 1
    for i in range(start, n):
        _bucket(points[i], axes, origin, width, place)
        covered = False
        # From the middle outwards: the row's own bucket most often has the one that covers it.
        for step in range(around):
            c = heads[_slot(place, (around // 2 + step) % around, mask)]
            while c >= 0 and not covered:
                if boxes:
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
                c = links[c]
            if covered:
                break
        if not covered:
            if count == centers.shape[0]:
                return count, i
            for j in range(d):
                centers[count, j] = points[i, j]
            rows[count] = i
            slot = _slot(place, around // 2, mask)
            links[count] = heads[slot]
            heads[slot] = count
            count += 1
    return count, n


@jit(IN_ORDER)
def nearest_near(  # noqa: PLR0917 - numba takes arguments by position
    points: AnyArray,
    limit: float,
    boxes: bool,
    centers: FloatArray,
    axes: IndexArray,
    origin: FloatArray,
    width: float,
    heads: IndexArray,
    links: IndexArray,
    labels: IndexArray,
    measures: FloatArray,
) -> None:  # pragma: no cover - runs compiled
    """Fill `labels` and `measures`; a row without a core point within `limit` has the label -1."""
    n, d = points.shape
    place = np.empty(len(axes), dtype=np.int64)
    around = 3 ** len(axes)
    for i in range(n):
        _bucket(points[i], axes, origin, width, place)
        best, least = np.int64(-1), limit
        for neighbour in range(around):
            c = heads[_slot(place, neighbour, len(heads) - 1)]
            while c >= 0:
                total = 0.0
                for j in range(d):
                    gap = np.float64(points[i, j]) - centers[c, j]
                    if boxes:
                        total = max(total, abs(gap))
                    else:
                        total += gap * gap
                    if total > least:  # most are left after a few columns
                        break
                if total < least or (total == least and (best < 0 or c < best)):
                    best, least = c, total
                c = links[c]
        labels[i] = best
        measures[i] = least
