r"""The farthest-point rule of core vector machines: add the row farthest from the core points.

On one block it is the traversal of Gonzalez (1985): with r core points, no r others have less
than half its radius. Over blocks, every read asks each for its own traversal, from the core points
there are, and the root goes on among the rows offered as long as no row that was not offered could
be farther. A read at most quadruples the core points, so that the sum of all reads costs little
more than the last one, and reads grow with the logarithm of the core points, not with their
number. The last read has the certificate: the distance of the farthest row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.constructions.coverage.metric import Metric, Sorted, dense_tiles
from daskcoreset.constructions.coverage.result import CoverRows, join, take_rows
from daskcoreset.core.blocks import Block
from daskcoreset.core.typing import FloatArray, IndexArray, Points

__all__ = [
    "CellSummary",
    "FarthestFirst",
    "MergeSummaries",
    "SummariseCells",
    "extend",
    "farthest_first",
    "wanted_of",
]

_OFFERED = 200_000
"""Rows that all blocks together offer at most: 16 MB at 20 float32 features."""


@dataclass(frozen=True, eq=False)
class FarthestFirst:
    """Rows in the order of their distance from those before.

    Attributes
    ----------
    rows : ndarray of shape (c,), int64
    gaps : ndarray of shape (c,), float64
        Measure of each to those before it and the core points given; infinite for the very first.
    left : float
        Measure of the farthest row that was not taken.
    """

    rows: IndexArray
    gaps: FloatArray
    left: float


def farthest_first(
    points: Points,
    count: int,
    metric: Metric,
    *,
    measures: FloatArray | None = None,
    limit: float = 0.0,
) -> FarthestFirst:
    """Take the farthest row, again and again.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    count : int
        Rows to take at most.
    metric : Metric
    measures : ndarray of shape (n,), float64, optional
        Of the rows to core points that are there; overwritten. None without any: then the first
        row is taken first, since any will do.
    limit : float, default=0.0
        Measure at which to stop.

    Returns
    -------
    Traversal

    Examples
    --------
    >>> found = farthest_first(np.array([[0.0], [1.0], [9.0]]), 2, Metric(boxes=False))
    >>> found.rows, found.left
    (array([0, 2]), 1.0)

    References
    ----------
    Gonzalez (1985), Clustering to minimize the maximum intercluster distance, section 2; Tsang,
    Kwok and Cheung (2005), Core vector machines, section 4.1.
    """
    measures = np.full(points.shape[0], np.inf) if measures is None else measures
    rows: list[int] = []
    gaps: list[float] = []
    tiles = [(0, points)] if isinstance(points, np.ndarray) else None
    while len(measures) and len(rows) < count:
        row = int(measures.argmax())
        if not measures[row] > limit:
            break
        rows.append(row)
        gaps.append(float(measures[row]))
        center = next(dense_tiles(points[row : row + 1]))[1][0]
        for start, tile in dense_tiles(points) if tiles is None else tiles:
            metric.approach(tile, center, measures[start : start + len(tile)])
    return FarthestFirst(
        np.array(rows, dtype=np.int64), np.array(gaps), float(measures.max(initial=0.0))
    )


@dataclass(frozen=True, eq=False)
class CellSummary:
    """What a read of some blocks tells about the core points there are.

    Attributes
    ----------
    weights : ndarray of shape (r,), float64
        Weight of the rows nearest to each.
    farthest : float
        Measure of the farthest row.
    n_rows : int
    offered : Core
        Rows far away.
    left : float
        Measure of the farthest row not offered, once those offered are core points.
    """

    weights: FloatArray
    farthest: float
    n_rows: int
    offered: CoverRows
    left: float


@dataclass(frozen=True)
class SummariseCells:
    """Work on one block: to which core points its rows are nearest, and which are too far.

    Attributes
    ----------
    metric : Metric
    limit : float
        Measure up to which a row counts as covered.
    radius : float
        Where most rows have a core point; infinite where that is not known.
    wanted : int
        Rows to offer at most.
    """

    metric: Metric
    limit: float
    radius: float
    wanted: int

    def __call__(self, block: Block, number: int, given: Sorted | None) -> CellSummary:
        """Count the rows of a block."""
        measures = np.full(len(block), np.inf)
        weights = np.zeros(0 if given is None else len(given.order))
        if given is not None:
            for start, tile in dense_tiles(block.points):
                stop = start + len(tile)
                labels, measures[start:stop] = given.nearest(tile, self.radius)
                weights += np.bincount(labels, block.weights[start:stop], len(weights))
        farthest = float(measures.max(initial=0.0))
        found = farthest_first(
            block.points, self.wanted, self.metric, measures=measures, limit=self.limit
        )
        offered = take_rows(block, number, found.rows)
        return CellSummary(weights, farthest, len(block), offered, found.left)


@dataclass(frozen=True)
class MergeSummaries:
    """Adds up the surveys of neighbouring blocks."""

    def __call__(self, first: CellSummary, second: CellSummary) -> CellSummary:
        """Add up two surveys."""
        return CellSummary(
            first.weights + second.weights,
            max(first.farthest, second.farthest),
            first.n_rows + second.n_rows,
            join([first.offered, second.offered]),
            max(first.left, second.left),
        )


def wanted_of(n_core: int, n_blocks: int, room: int) -> int:
    """Return how many rows each block is asked for, given core points and room for more."""
    if n_blocks == 1:
        return room  # its traversal is that of all rows
    return min(room, max(16, min(3 * n_core, _OFFERED // n_blocks)))


def extend(  # noqa: PLR0917 - two say what there is, one what is new, three what is wanted
    core: CoverRows | None,
    known: Sorted | None,
    survey: CellSummary,
    room: int,
    limit: float,
    metric: Metric,
) -> tuple[CoverRows, float]:
    """Add rows that were offered, the farthest first.

    Parameters
    ----------
    core, known : Core and Sorted, or None
        The core points there are.
    survey : Survey
    room : int
        Rows to add at most.
    limit : float
        Measure at which to stop.
    metric : Metric

    Returns
    -------
    core : Core
    gap : float
        Least measure between one that was added and those before it.
    """
    points = survey.offered.points
    measures = np.full(len(points), np.inf) if known is None else known.nearest(points)[1]
    # Beyond what is left, a row that was not offered might be farther; one is always right.
    found = farthest_first(
        points, room, metric, measures=measures.copy(), limit=max(limit, survey.left)
    )
    if not len(found.rows):
        found = farthest_first(points, min(1, room), metric, measures=measures, limit=limit)
    added = survey.offered.take(found.rows)
    gap = float(found.gaps.min(initial=np.inf))
    return (added if core is None else join([core, added])), gap
