r"""The online rule: a row outside every cell opens a new one. Per block, and merged by a tree.

A block goes through its rows as AVM does (Le et al. 2017): a row farther than the radius from
every core point becomes one. Two neighbouring sets of core points are merged by the same rule:
those of the second that the first covers are dropped. What a dropped one covered may lie up to
twice the radius from what is left, so the root asks the blocks again, given what it has, until
no core point was dropped, or so few that all are kept: then every row is covered, and the
core points are as far apart as those of one pass over all rows in order.

A budget, radius :math:`b_0` in the blocks and :math:`b_1, \dots` at the levels of the tree with
:math:`b_0 + b_1 + \dots \le \delta / 2`, would spare those reads, but multiplies the core points.
Measured on magic04 and cod_rna in [0, 1], 8 and 64 blocks: 1.6 to 2.6 times as many as
one pass with :math:`b_0 = \delta / 8`, 2.5 to 8 times with :math:`\delta / 4`, against 0.98 to
1.04 times here, in 16 blocks. A tree without a last read has no other way: `merge_covers`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.constructions.coverage.metric import Metric, dense_tiles
from daskcoreset.constructions.coverage.cover_core import Core, join, pick
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

__all__ = ["MergeOpened", "OpenCells", "Opened", "online"]

_CAPACITY = 1024
"""Core points that a block makes room for at first; the room doubles when it is full."""


def online(
    points: Points,
    radius: float,
    metric: Metric,
    *,
    known: AnyArray | None = None,
    most: int,
) -> tuple[IndexArray, bool]:
    r"""Choose core points among rows, in their order.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    radius : float
        :math:`\delta / 2`.
    metric : Metric
    known : ndarray of shape (s, d), optional
        Core points that are there already.
    most : int
        New core points to stop at.

    Returns
    -------
    rows : ndarray of shape (r,), int64
        Rows that became core points, increasing.
    full : bool
        Whether there would be more than `most`.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.9], [3.0], [2.9]])
    >>> online(rows, 1.0, Metric(boxes=False), most=9)
    (array([0, 2]), False)

    References
    ----------
    Le et al. (2017), Approximation Vector Machines, section 4.
    """
    n_features = points.shape[1]
    given = np.empty((0, n_features)) if known is None else known
    limit = metric.limit(radius, n_features)
    centers = np.empty((len(given) + min(_CAPACITY, most), n_features))
    centers[: len(given)] = given
    rows = np.empty(len(centers), dtype=np.int64)
    count = len(given)
    for first, tile in dense_tiles(points):
        stop, before = 0, count
        while True:
            count, stop = metric.open(tile, stop, limit, centers, count, rows)
            if stop == len(tile) or count == len(given) + most:
                break
            centers, rows = _room(centers, rows, len(given) + most)
        rows[before:count] += first
        if stop < len(tile):
            break
    return rows[len(given) : count].copy(), stop < len(tile)


def _room(centers: FloatArray, rows: IndexArray, most: int) -> tuple[FloatArray, IndexArray]:
    size = min(2 * len(centers), most)
    wider = np.empty((size, centers.shape[1]))
    wider[: len(centers)] = centers
    longer = np.empty(size, dtype=np.int64)
    longer[: len(rows)] = rows
    return wider, longer


@dataclass(frozen=True, eq=False)
class Opened:
    """Core points of some blocks.

    Attributes
    ----------
    core : Core
        At more than the radius from one another, in the order of the blocks.
    dropped : Core or None
        Core points of blocks that others cover; None once there are too many to hold.
    full : bool
        Whether there are more than may be held; then the promise is broken.
    seen : int
        Rows looked at.
    """

    core: Core
    dropped: Core | None
    full: bool
    seen: int


@dataclass(frozen=True)
class OpenCells:
    """Work on one block: its core points, beside those that all blocks are given.

    Attributes
    ----------
    radius : float
    metric : Metric
    most : int
        Core points that a block may open.
    """

    radius: float
    metric: Metric
    most: int

    def __call__(self, block: Block, number: int, given: AnyArray | None) -> Opened:
        """Cover the rows of a block."""
        rows, full = online(block.points, self.radius, self.metric, known=given, most=self.most)
        core = pick(block, number, rows)
        return Opened(core, core.take(rows[:0]), full, len(block))


@dataclass(frozen=True)
class MergeOpened:
    """Merges the core points of neighbouring blocks by the online rule.

    Attributes
    ----------
    radius : float
    metric : Metric
    most : int
    spare : int
        Dropped core points to hold at most.
    """

    radius: float
    metric: Metric
    most: int
    spare: int

    def __call__(self, first: Opened, second: Opened) -> Opened:
        """Keep the first, and those of the second that it does not cover."""
        room = max(0, self.most - len(first.core))
        kept, full = online(
            second.core.points,
            self.radius,
            self.metric,
            known=first.core.points,
            most=room,
        )
        dropped = None
        if first.dropped is not None and second.dropped is not None:
            lost = np.setdiff1d(np.arange(len(second.core)), kept)
            if len(first.dropped) + len(second.dropped) + len(lost) <= self.spare:
                dropped = join([first.dropped, second.dropped, second.core.take(lost)])
        return Opened(
            join([first.core, second.core.take(kept)]),
            dropped,
            first.full or second.full or full,
            first.seen + second.seen,
        )
