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
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.typing import FloatArray, IndexArray, Points

# Rows that all blocks together offer at most: 16 MB at 20 float32 features.
_OFFERED = 200_000


@dataclass(frozen=True, eq=False)
class FarthestFirst:
    """Rows in the order of their distance from those before.

    Attributes
    ----------
    rows : ndarray of shape (c,), int64
    gaps : ndarray of shape (c,), float64
        Measure of each to those before it and the core points given; infinite for the very first.
    remaining : float
        Measure of the farthest row that was not taken.
    """

    rows: IndexArray
    gaps: FloatArray
    remaining: float


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
    FarthestFirst

    Examples
    --------
    >>> chosen = farthest_first(np.array([[0.0], [1.0], [9.0]]), 2, Metric(boxes=False))
    >>> chosen.rows, chosen.remaining
    (array([0, 2]), 1.0)

    References
    ----------
    Gonzalez (1985), Clustering to minimize the maximum intercluster distance, section 2; Tsang,
    Kwok and Cheung (2005), Core vector machines, section 4.1.
    """
    from daskcoreset.constructions.coverage import metric_numba as loops

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
        center = dense_rows(points[row : row + 1])[0].astype(np.float64)
        for start, tile in dense_tiles(points) if tiles is None else tiles:
            loops.approach(tile, center, metric.boxes, measures[start : start + len(tile)])
    return FarthestFirst(
        np.array(rows, dtype=np.int64), np.array(gaps), float(measures.max(initial=0.0))
    )


@dataclass(frozen=True, eq=False)
class CellSummary:
    """Weights of the core points, and rows far from all of them, in some blocks.

    Attributes
    ----------
    weights : ndarray of shape (r,), float64
        Weight of the rows nearest to each.
    farthest : float
        Measure of the farthest row.
    offered : CoverRows
        Rows far away.
    remaining : float
        Measure of the farthest row not offered, once those offered are core points.
    """

    weights: FloatArray
    farthest: float
    offered: CoverRows
    remaining: float


def summarise_cells(
    block: Block,
    block_index: int,
    core: Sorted | None,
    *,
    metric: Metric,
    limit: float,
    radius: float,
    n_offered: int,
) -> CellSummary:
    """Count the rows of a block by their nearest core point, and offer those too far from any.

    Parameters
    ----------
    block, block_index
    core : Sorted or None
    metric : Metric
    limit : float
        Measure up to which a row counts as covered.
    radius : float
        Where most rows have a core point; infinite where that is not known.
    n_offered : int
        Rows to offer at most.
    """
    if core is None:
        weights, measures = np.empty(0), np.full(len(block), np.inf)
    else:
        weights, measures = core.cell_weights(block.points, block.weights, radius)
    farthest = float(measures.max(initial=0.0))
    chosen = farthest_first(block.points, n_offered, metric, measures=measures, limit=limit)
    offered = take_rows(block, block_index, chosen.rows)
    return CellSummary(weights, farthest, offered, chosen.remaining)


def merge_summaries(first: CellSummary, second: CellSummary) -> CellSummary:
    """Add up the summaries of neighbouring blocks."""
    return CellSummary(
        first.weights + second.weights,
        max(first.farthest, second.farthest),
        join([first.offered, second.offered]),
        max(first.remaining, second.remaining),
    )


def n_offered_by_block(n_core: int, n_blocks: int, room: int) -> int:
    """Return how many rows each block offers, for so many core points and room for more."""
    if n_blocks == 1:
        return room  # its traversal is that of all rows
    return min(room, max(16, min(3 * n_core, _OFFERED // n_blocks)))


def extend(  # noqa: PLR0917 - the core points, the rows offered, and three limits
    core: CoverRows | None,
    earlier: Sorted | None,
    summary: CellSummary,
    room: int,
    limit: float,
    metric: Metric,
) -> tuple[CoverRows, float]:
    """Add rows that were offered, the farthest first.

    Parameters
    ----------
    core, earlier : CoverRows and Sorted, or None
        The core points there are.
    summary : CellSummary
    room : int
        Rows to add at most.
    limit : float
        Measure at which to stop.
    metric : Metric

    Returns
    -------
    core : CoverRows
    gap : float
        Least measure between one that was added and those before it.
    """
    points = summary.offered.points
    measures = np.full(len(points), np.inf) if earlier is None else earlier.nearest(points)[1]
    # Below `remaining`, a row that was not offered might be farther; one is always right.
    reach = max(limit, summary.remaining)
    chosen = farthest_first(points, room, metric, measures=measures.copy(), limit=reach)
    if not len(chosen.rows):
        chosen = farthest_first(points, min(1, room), metric, measures=measures, limit=limit)
    added = summary.offered.take(chosen.rows)
    gap = float(chosen.gaps.min(initial=np.inf))
    return (added if core is None else join([core, added])), gap
