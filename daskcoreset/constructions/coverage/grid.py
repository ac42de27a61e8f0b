"""Buckets of core points along a few columns, so that a row is compared with near ones only.

A core point that covers a row differs from it by at most the radius in every column. In buckets of
that width along some columns it lies in the row's bucket or beside it. Which columns, and whether
it is worth while at all, is estimated from the core points there are. The same rows become core
points with and without buckets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# Core points from which on buckets are tried: fewer lie in the cache, where a loop is quick.
_LEAST = 1024

# Core points by which columns are judged, and columns that are judged, the widest.
_JUDGES, _COLUMNS = 256, 32

# Columns at most: 3 ** 5 buckets lie around a row.
_MOST_AXES = 5

# Costs of a bucket, and of a core point in it, in core points of the plain loop, which leaves most
# rows before its end (by a factor of four).
_BUCKET, _MEMBER, _PLAIN = 1.0, 1.5, 0.25

# Wider than the radius by more than differences are rounded.
_MARGIN = 1.0 + 2.0**-20

# Buckets a column at most, so that their numbers are exact.
_BUCKETS = 2.0**30


@dataclass(frozen=True, eq=False)
class Grid:
    """Core points in buckets.

    Attributes
    ----------
    axes : ndarray of shape (g,), int64
        Columns along which there are buckets.
    origin : ndarray of shape (g,), float64
    width : float
    heads, links : ndarray of int64
        First core point of every slot, and the next one after each; -1 at the end.
    """

    axes: IndexArray
    origin: FloatArray
    width: float
    heads: IndexArray
    links: IndexArray

    @property
    def arrays(self) -> tuple[IndexArray, FloatArray, float, IndexArray, IndexArray]:
        """What the loops take."""
        return self.axes, self.origin, self.width, self.heads, self.links


def grid_of(centers: FloatArray, count: int, radius: float) -> Grid | None:
    """Return buckets of the first `count` core points, with room for all; None if of no use.

    Parameters
    ----------
    centers : ndarray of shape (capacity, d), float64
    count : int
    radius : float
        How far the core points are that are looked for.

    Examples
    --------
    >>> centers = np.random.default_rng(0).random((2000, 3))
    >>> grid_of(centers, 2000, 0.01).axes.tolist(), grid_of(centers, 2000, 0.5)
    ([2, 1], None)
    """
    if count < _LEAST or not 0.0 < radius < np.inf:
        return None
    axes, origin, width, _ = _judged(centers[:count], count, radius)
    if not len(axes):
        return None
    from daskcoreset.constructions.coverage import grid_numba as loops

    heads = np.full(1 << (2 * len(centers) - 1).bit_length(), -1, dtype=np.int64)
    grid = Grid(axes, origin, width, heads, np.empty(len(centers), dtype=np.int64))
    loops.fill(centers, count, *grid.arrays)
    return grid


def compared_per_row(centers: FloatArray, count: float, radius: float) -> float:
    """Core points that a row is compared with for the nearest one, of `count` spread like these.

    Parameters
    ----------
    centers : ndarray of shape (r, d), float64
    count : float
    radius : float
    """
    if count < _LEAST or len(centers) < 2:
        return count
    axes, _, _, cost = _judged(centers, count, radius)
    return min(count, cost) if len(axes) else count


def _judged(
    centers: FloatArray, count: float, radius: float
) -> tuple[IndexArray, FloatArray, float, float]:
    """Return columns for buckets, none if of no use; origins, the width, and the cost of a row."""
    some = centers[:: max(1, len(centers) // _JUDGES)]
    none = np.empty(0, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        low = some.min(axis=0)
        extent = some.max(axis=0) - low
        if not np.isfinite(extent).all():
            return none, low[none], 0.0, count
        widest = np.argsort(-extent, kind="stable")[:_COLUMNS]
        width = max(radius * _MARGIN, float(np.abs(centers).max()) / _BUCKETS)
        places = np.floor((some[:, widest] - low[widest]) / width)
    axes, cost = _axes(places, count)
    axes = widest[axes]
    return axes, low[axes], width, cost


def _axes(places: FloatArray, count: float) -> tuple[IndexArray, float]:
    """Choose columns one after another, as long as a row has less to be compared with."""
    near = np.ones((len(places), len(places)), dtype=bool)
    axes: list[int] = []
    chosen: list[int] = []
    best = _PLAIN * count
    beside = [np.abs(column[:, np.newaxis] - column) <= 1.0 for column in places.T]
    for n_axes in range(1, min(_MOST_AXES, len(beside)) + 1):
        shares = [np.count_nonzero(near & one) for one in beside]
        axes.append(int(np.argmin(shares)))
        near &= beside[axes[-1]]
        cost = _BUCKET * 3**n_axes + _MEMBER * count * min(shares) / near.size
        if cost < best:
            best, chosen = cost, list(axes)
    return np.array(chosen, dtype=np.int64), best


def open_cells(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    start: int,
    radius: float,
    limit: float,
    boxes: bool,
    centers: FloatArray,
    count: int,
    rows: IndexArray,
) -> tuple[int, int]:
    """Open a cell of this radius at every row outside all cells; see `metric_numba.open_cells`."""
    from daskcoreset.constructions.coverage import grid_numba, metric_numba

    before = points, start, limit, boxes, centers, count, rows
    grid = grid_of(centers, count, radius)
    found: tuple[int, int]
    if grid is None:
        found = metric_numba.open_cells(*before)
    else:
        found = grid_numba.open_cells_near(*before, *grid.arrays)
    return found


def nearest_within(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    centers: FloatArray,
    radius: float,
    limit: float,
    boxes: bool,
    labels: IndexArray,
    measures: FloatArray,
) -> None:
    """Find the nearest core point of rows that have one within the radius, of measure `limit`.

    `labels` and `measures` are filled as by `Sorted.nearest`; labels of other rows are -1, and
    those of all rows are left alone where buckets are of no use.
    """
    from daskcoreset.constructions.coverage import grid_numba

    if (grid := grid_of(centers, len(centers), radius)) is not None:
        grid_numba.nearest_near(points, limit, boxes, centers, *grid.arrays, labels, measures)
