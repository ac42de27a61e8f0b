r"""At most so many core points, from one read: the radius grows whenever there are more.

The doubling algorithm of Charikar et al. (2004), with one change. Where theirs doubles the
radius and thins the core points, this takes the farthest first until half of them are left, which
says by how much the radius must grow, at least by half.

Of r core points found among more, farthest first, the next one is at a distance that bounds every
cover: r + 1 rows lie pairwise at least so far apart, and two of them share a cell whatever the r
cells are. So no r cells have a smaller diameter (`Cover.least_diameter`). The search bisects from
twice that bound on, where one traversal of all rows would end; what it found was 2.1 to 2.9 times
the bound (``benchmarks/results/covers.md``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.constructions.coverage.metric import Metric, dense_tiles
from daskcoreset.constructions.coverage.cover_core import Core, join, pick
from daskcoreset.constructions.coverage.farthest_first import farthest_first
from daskcoreset.core.typing import IndexArray, Points

__all__ = ["MergeRough", "OpenAtMost", "Rough", "at_most"]

_GROWTH = 1.5
"""The radius grows at least so much at a time, so that what is lost is a geometric series."""


def at_most(
    points: Points, most: int, metric: Metric, radius: float = 0.0
) -> tuple[IndexArray, float, float]:
    """Choose at most so many core points, in one go through the rows.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    most : int
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
        More than half of `most` rows lie pairwise at least so far apart.

    Examples
    --------
    >>> rows, radius, apart = at_most(np.arange(100.0)[:, None], 9, Metric(boxes=False))
    >>> len(rows) <= 9, radius >= apart > 0
    (True, True)

    References
    ----------
    Charikar, Chekuri, Feder and Motwani (2004), Incremental clustering and dynamic information
    retrieval, section 3.
    """
    n_features = points.shape[1]
    centers = np.empty((most + 1, n_features))  # one too many shows that the radius must grow
    rows = np.empty(most + 1, dtype=np.int64)
    count, apart = 0, 0.0
    for first, tile in dense_tiles(points):
        stop, before = 0, count
        while True:
            limit = metric.limit(radius, n_features)
            count, stop = metric.open(tile, stop, limit, centers, count, rows)
            rows[before:count] += first
            if count <= most:
                break
            found = farthest_first(centers, max(1, most // 2), metric)
            kept = np.sort(found.rows)
            apart = max(apart, metric.distance(found.left))
            radius = max(apart, _GROWTH * radius)
            centers[: len(kept)], rows[: len(kept)] = centers[kept], rows[kept]
            count = before = len(kept)
    return rows[:count].copy(), radius, apart


@dataclass(frozen=True, eq=False)
class Rough:
    """Core points of some blocks, the radius at which they were opened last, and `apart`."""

    core: Core
    radius: float
    apart: float


@dataclass(frozen=True)
class OpenAtMost:
    """Work on one block: at most `most` core points."""

    metric: Metric
    most: int

    def __call__(self, block: Block, number: int, given: object) -> Rough:
        """Choose core points of a block."""
        del given
        rows, radius, apart = at_most(block.points, self.most, self.metric)
        return Rough(pick(block, number, rows), radius, apart)


@dataclass(frozen=True)
class MergeRough:
    """Merges the core points of neighbouring blocks in the same way."""

    metric: Metric
    most: int

    def __call__(self, first: Rough, second: Rough) -> Rough:
        """Choose among the core points of both."""
        both = join([first.core, second.core])
        radius = max(first.radius, second.radius)
        rows, radius, apart = at_most(both.points, self.most, self.metric, radius)
        return Rough(both.take(rows), radius, max(first.apart, second.apart, apart))
