"""Core points of a cover, and the rows of blocks that are carried to the root to become some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from daskcoreset.constructions.coverage.metric import Cells, Sorted, metric_of
from daskcoreset.core.blocks import Block, concatenate
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points


@dataclass(frozen=True, eq=False)
class CoverRows:
    """Some rows of the data.

    Attributes
    ----------
    rows : Block
        Dense, numbered within the blocks they come from.
    block_indices : ndarray of shape (r,), int64
        Numbers of those blocks.
    """

    rows: Block
    block_indices: IndexArray

    def __len__(self) -> int:
        return len(self.block_indices)

    @property
    def points(self) -> AnyArray:
        """The rows, of shape (r, d)."""
        return np.asarray(self.rows.points)

    def take(self, positions: IndexArray) -> CoverRows:
        """Return the rows at `positions`."""
        return CoverRows(self.rows.take(positions), self.block_indices[positions])

    def indices(self, offsets: Mapping[int, int]) -> IndexArray:
        """Return the numbers of the rows in the whole data, given the first of every block."""
        assert self.rows.rows is not None  # noqa: S101 - `take_rows` numbers them
        starts = [offsets[block] for block in self.block_indices.tolist()]
        return np.asarray(starts + self.rows.rows)


def take_rows(block: Block, block_index: int, positions: IndexArray) -> CoverRows:
    """Take rows out of a block, dense."""
    rows = block.take(positions)
    rows = replace(rows, points=dense_rows(rows.points))
    return CoverRows(rows, np.full(len(positions), block_index, dtype=np.int64))


def join(parts: Sequence[CoverRows]) -> CoverRows:
    """Put core points after one another."""
    if len(parts) == 1:
        return parts[0]
    rows = concatenate([part.rows for part in parts])
    return CoverRows(rows, np.concatenate([part.block_indices for part in parts]))


@dataclass(frozen=True, eq=False, repr=False)
class Cover:
    """Core points such that every row, also one without weight, is near one of them.

    Attributes
    ----------
    points : ndarray of shape (r, d)
        Core points: rows of the data, dense, in the data's float32 or float64.
    weights : ndarray of shape (r,), float64
        Number, or total input weight, of the rows whose nearest core point it is (of equally
        near ones the first). Zero where all of these have no weight.
    indices : ndarray of shape (r,), int64
        Row numbers of the core points in the whole data, increasing.
    diameter : float
        delta: every row lies within ``diameter / 2`` of its nearest core point.
    cells : {"euclidean", "chebyshev"}
    n_rows : int
        Rows covered.
    reads : int
        Reads of the data that it took.
    labels : ndarray of shape (r,) or None
        Labels of the core points, where the data have any.
    radius : float
        Largest distance of a row from its nearest core point, at most ``diameter / 2``.
    least_diameter : float
        No cover of as many core points has a smaller diameter; ``diameter / least_diameter`` is
        an upper bound of the distance from the best one. Zero where the diameter was given.
    sizes : dict of int to int
        Rows of every block as read.
    """

    points: AnyArray
    weights: FloatArray
    indices: IndexArray
    diameter: float
    cells: Cells
    n_rows: int
    reads: int
    labels: AnyArray | None = None
    radius: float = 0.0
    least_diameter: float = 0.0
    sizes: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self):,} core points for {self.n_rows:,} rows, "
            f"{self.cells} diameter {self.diameter:.6g}, {self.reads} reads)"
        )

    def nearest(self, points: Points) -> tuple[IndexArray, FloatArray]:
        """Find the nearest core point of rows, of these data or others.

        Parameters
        ----------
        points : ndarray of shape (n, d) or csr_array

        Returns
        -------
        labels : ndarray of shape (n,), int64
            Places among the core points; of equally near ones the first.
        distances : ndarray of shape (n,), float64
            In the metric of the cells, not squared.
        """
        metric = metric_of(self.cells)
        core_points = Sorted.of(self.points, metric)
        labels, measures = core_points.nearest(dense_rows(points), self.diameter / 2)
        return labels, metric.distances(measures)
