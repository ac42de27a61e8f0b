"""The online rule, by which a row outside every cell opens a new one, and the doubling rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.constructions.coverage.farthest_first import farthest_first
from daskcoreset.constructions.coverage.grid import open_cells
from daskcoreset.constructions.coverage.metric import Metric, dense_tiles
from daskcoreset.constructions.coverage.result import CoverRows, join, take_rows
from daskcoreset.core.blocks import Block
from daskcoreset.core.typing import AnyArray, IndexArray, Points

# The radius grows at least so much at a time, so that what is lost is a geometric series.
_GROWTH = 1.5


def doubling(
    points: Points, max_points: int, metric: Metric, radius: float = 0.0
) -> tuple[IndexArray, float, float]:
    """Choose at most `max_points` core points in one pass over the rows.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    max_points : int
    metric : Metric
    radius : float, default=0.0
        Where to start.

    Returns
    -------
    rows : ndarray of shape (r,), int64
        Increasing.
    radius : float
        At the end. From a start of zero, rows lie within three times as much of a core point.
    apart : float
        More than half of `max_points` rows lie pairwise at least so far apart.

    Examples
    --------
    >>> rows, radius, apart = doubling(np.arange(100.0)[:, None], 9, Metric(boxes=False))
    >>> len(rows) <= 9, radius >= apart > 0
    (True, True)

    References
    ----------
    Charikar, Chekuri, Feder and Motwani (2004), Incremental clustering and dynamic information
    retrieval, section 3.
    """
    n_features = points.shape[1]
    # One too many shows that the radius must grow.
    most = min(max_points, points.shape[0]) + 1
    centers = np.empty((most, n_features))
    rows = np.empty(most, dtype=np.int64)
    count, apart = 0, 0.0
    for first, tile in dense_tiles(points):
        stop, before = 0, count
        while True:
            limit = metric.limit(radius, n_features)
            count, stop = open_cells(tile, stop, radius, limit, metric.boxes, centers, count, rows)
            rows[before:count] += first
            if count <= max_points:
                break
            half = farthest_first(centers, max(1, max_points // 2), metric)
            kept = np.sort(half.rows)
            apart = max(apart, metric.distance(half.remaining))
            radius = max(apart, _GROWTH * radius)
            centers[: len(kept)], rows[: len(kept)] = centers[kept], rows[kept]
            count = before = len(kept)
    return rows[:count].copy(), radius, apart


@dataclass(frozen=True, eq=False)
class DoublingCover:
    """Core points of some blocks, the radius at which they were opened last, and `apart`."""

    core: CoverRows
    radius: float
    apart: float


@dataclass(frozen=True)
class DoublingRule:
    """The reduction that chooses at most so many core points in one read, see `doubling`."""

    max_points: int
    metric: Metric

    def open_cells(self, block: Block, block_index: int, _: object) -> DoublingCover:
        """Choose core points of a block."""
        rows, radius, apart = doubling(block.points, self.max_points, self.metric)
        return DoublingCover(take_rows(block, block_index, rows), radius, apart)

    def merge(self, first: DoublingCover, second: DoublingCover) -> DoublingCover:
        """Choose among the core points of neighbouring blocks in the same way."""
        both = join([first.core, second.core])
        radius = max(first.radius, second.radius)
        rows, radius, apart = doubling(both.points, self.max_points, self.metric, radius)
        return DoublingCover(both.take(rows), radius, max(first.apart, second.apart, apart))


# Core points that a block makes room for at first; the room doubles when it is full.
_CAPACITY = 1024


def online(
    points: Points,
    radius: float,
    metric: Metric,
    *,
    earlier: AnyArray | None = None,
    max_points: int,
) -> tuple[IndexArray, bool]:
    r"""Choose core points among rows, in their order.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    radius : float
        :math:`\delta / 2`.
    metric : Metric
    earlier : ndarray of shape (s, d), optional
        Core points that are there already.
    max_points : int
        New core points to stop at.

    Returns
    -------
    rows : ndarray of shape (r,), int64
        Rows that became core points, increasing.
    full : bool
        Whether there would be more than `max_points`.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.9], [3.0], [2.9]])
    >>> online(rows, 1.0, Metric(boxes=False), max_points=9)
    (array([0, 2]), False)

    References
    ----------
    Le et al. (2017), Approximation Vector Machines, section 4.
    """
    limit = metric.limit(radius, points.shape[1])
    n_earlier = 0 if earlier is None else len(earlier)
    centers = np.empty((n_earlier + min(_CAPACITY, max_points), points.shape[1]))
    if earlier is not None:
        centers[:n_earlier] = earlier
    rows = np.empty(len(centers), dtype=np.int64)
    count, largest = n_earlier, n_earlier + max_points
    for first, tile in dense_tiles(points):
        stop, before = 0, count
        while True:
            count, stop = open_cells(tile, stop, radius, limit, metric.boxes, centers, count, rows)
            if stop == len(tile) or count == largest:
                break
            room = min(len(centers), largest - len(centers))
            centers = np.concatenate([centers, np.empty((room, points.shape[1]))])
            rows = np.concatenate([rows, np.empty(room, dtype=np.int64)])
        rows[before:count] += first
        if stop < len(tile):
            break
    return rows[n_earlier:count].copy(), stop < len(tile)


@dataclass(frozen=True, eq=False)
class Opened:
    """Core points of some blocks.

    Attributes
    ----------
    core : CoverRows
        At more than the radius from one another, in the order of the blocks.
    dropped : CoverRows or None
        Core points of blocks that others cover; None once there are too many to hold.
    full : bool
        Whether there are more than may be kept, so that rows stay uncovered.
    """

    core: CoverRows
    dropped: CoverRows | None
    full: bool


@dataclass(frozen=True)
class OnlineRule:
    """The reduction that opens cells in every block and merges them, see `online`.

    Attributes
    ----------
    radius : float
    metric : Metric
    max_points : int
        New core points at most.
    max_dropped : int
        Superfluous ones that are kept aside at most.
    """

    radius: float
    metric: Metric
    max_points: int
    max_dropped: int

    def open_cells(self, block: Block, block_index: int, earlier: AnyArray | None) -> Opened:
        """Cover the rows of a block, beside the core points there are."""
        rows, full = online(
            block.points, self.radius, self.metric, earlier=earlier, max_points=self.max_points
        )
        core = take_rows(block, block_index, rows)
        return Opened(core, core.take(rows[:0]), full)

    def merge(self, first: Opened, second: Opened) -> Opened:
        """Keep the core points of the first, and those of the second that it does not cover."""
        points, earlier = second.core.points, first.core.points
        room = max(0, self.max_points - len(first.core))
        rows, full = online(points, self.radius, self.metric, earlier=earlier, max_points=room)
        dropped = None
        if first.dropped is not None and second.dropped is not None:
            covered = np.setdiff1d(np.arange(len(second.core)), rows)
            if len(first.dropped) + len(second.dropped) + len(covered) <= self.max_dropped:
                dropped = join([first.dropped, second.dropped, second.core.take(covered)])
        core = join([first.core, second.core.take(rows)])
        return Opened(core, dropped, first.full or second.full or full)
