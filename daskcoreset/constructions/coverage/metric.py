r"""Balls and boxes: covered rows, nearest core points and farthest rows.

Distances are compared as *measures*: squared Euclidean distances for balls, largest absolute
differences (Chebyshev) for boxes. All are formed from differences in float64, so that float32
data with a large offset lose nothing, in compiled loops of one thread without BLAS, so that
their bits are the same wherever they run.

What was measured, in microseconds a row for r = 100 / 1000 / 5000 core points, on one block near a
surface of at most six dimensions (``benchmarks/covers.py`` prints it again):

- *Is it covered?* The compiled loop over core points in the order in which they were opened,
  left at the first hit: 0.04 / 0.4 / 2.5 for d = 3, 0.05 / 0.5 / 4.4 for d = 20 and
  0.15 / 1.5 / 15 for d = 100, two to twenty times faster than matrix algebra. Core points opened
  early have the most rows, so this order is close to the one by hits; keeping the order by hits,
  or leaving a sum at the first number too much, broke the vector loops: 2 to 5 times slower.
- *Which is nearest?* The compiled loop over the core points that are near enough along one
  column (a cover has one within reach), against tiles of BLAS without rechecks and a k-d tree:
  0.1 / 0.2 / 0.4 against 0.1 / 7.6 / 13 and 0.2 / 0.3 / 0.4 for d = 3; 0.3 / 1.5 / 5.3 against
  0.2 / 1.4 / 16 and 0.7 / 3.2 / 4.2 for d = 20; 1.0 / 7.0 / 67 against 0.5 / 4.4 / 30 and
  2.6 / 21 / 57 for d = 100, where BLAS wins by a factor of two, before its rechecks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from daskcoreset.constructions.coverage import grid
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

# Shape of the cells: balls, or boxes with sides along the axes.
Cells = Literal["euclidean", "chebyshev"]

# Sparse rows are made dense this much at a time.
_TILE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Metric:
    """The distance of rows from core points.

    Attributes
    ----------
    boxes : bool
        Whether cells are boxes (Chebyshev), not balls (Euclidean).
    """

    boxes: bool

    def measure(self, distance: float) -> float:
        """Return the measure of a distance."""
        return float(distance if self.boxes else distance * distance)

    def limit(self, radius: float, n_features: int) -> float:
        """Return the measure up to which a row counts as covered by a cell of this radius.

        Below the measure of the radius by more than two orders of summation can differ, so that
        whoever recomputes a distance in float64 finds it within the radius.
        """
        if self.boxes:
            return float(radius)  # a difference and a maximum round the same for everybody
        return float(radius * radius * (1.0 - (n_features + 8) * 2.0**-50))

    def outside(self, diameter: float, n_features: int) -> float:
        """Return a diameter larger by the rounding of recomputed distances."""
        return float(diameter if self.boxes else diameter * (1.0 + (n_features + 8) * 2.0**-50))

    def distance(self, measure: float) -> float:
        """Return the distance of a measure."""
        return float(measure if self.boxes else np.sqrt(measure))

    def distances(self, measures: FloatArray) -> FloatArray:
        """Return the distances of measures."""
        return measures if self.boxes else np.sqrt(measures)


def metric_of(cells: Cells) -> Metric:
    """Return the metric of the cells."""
    return Metric(cells == "chebyshev")


@dataclass(frozen=True, eq=False)
class Sorted:
    """Core points sorted for nearest-neighbour search.

    Attributes
    ----------
    metric : Metric
    columns : ndarray of shape (d, r), float64
        Core points along their widest column, which is number `axis`.
    order : ndarray of shape (r,), int64
        Their places before.
    axis : int
    """

    metric: Metric
    columns: FloatArray
    order: IndexArray
    axis: int

    @classmethod
    def of(cls, points: AnyArray, metric: Metric) -> Sorted:
        """Prepare core points of shape (r, d)."""
        wide = points.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # any column is right, if not as quick
            axis = int(np.argmax(np.var(wide - wide[:1], axis=0)))
        order = np.argsort(wide[:, axis], kind="stable")
        return cls(metric, np.ascontiguousarray(wide[order].T), order, axis)

    def nearest(self, points: AnyArray, radius: float = np.inf) -> tuple[IndexArray, FloatArray]:
        """Find the nearest core point of every row.

        Parameters
        ----------
        points : ndarray of shape (n, d)
        radius : float, default=infinity
            How far the nearest one is expected to be. It changes the time, not the answer.

        Returns
        -------
        labels : ndarray of shape (n,), int64
            Of equally near core points the first.
        measures : ndarray of shape (n,), float64
        """
        from daskcoreset.constructions.coverage import metric_numba

        labels = np.full(len(points), -1, dtype=np.int64)
        measures = np.empty(len(points))
        limit = self.metric.measure(radius)
        if len(points) >= len(self.order):  # else to sort core points into buckets costs more
            centers = np.empty(self.columns.shape[::-1])
            centers[self.order] = self.columns.T
            grid.nearest_within(points, centers, radius, limit, self.metric.boxes, labels, measures)
        left = np.flatnonzero(labels < 0)
        if len(left):
            every = len(left) == len(points)
            found = (labels, measures) if every else (labels[left], measures[left])
            metric_numba.nearest(
                points if every else points[left], self.columns, self.order, self.axis, radius,
                limit, self.metric.boxes, *found,
            )  # fmt: skip
            labels[left], measures[left] = found
        return labels, measures

    def cell_weights(
        self, points: Points, weights: FloatArray, radius: float = np.inf
    ) -> tuple[FloatArray, FloatArray]:
        """Weigh the cells of weighted rows.

        Parameters
        ----------
        points : ndarray of shape (n, d) or csr_array
        weights : ndarray of shape (n,), float64
        radius : float, default=infinity
            As in `nearest`.

        Returns
        -------
        totals : ndarray of shape (r,), float64
            Weight of the rows nearest to each core point.
        measures : ndarray of shape (n,), float64
            Of every row to its nearest core point.
        """
        totals, measures = np.zeros(len(self.order)), np.empty(points.shape[0])
        for start, tile in dense_tiles(points):
            part = slice(start, start + len(tile))
            labels, measures[part] = self.nearest(tile, radius)
            totals += np.bincount(labels, weights[part], len(totals))
        return totals, measures


def dense_tiles(points: Points) -> Iterator[tuple[int, AnyArray]]:
    """Go through rows as arrays in C order, with the number of the first row of each."""
    if isinstance(points, np.ndarray):
        yield 0, dense_rows(points)
        return
    size = max(1, _TILE_BYTES // max(1, points.shape[1] * points.dtype.itemsize))
    for start in range(0, points.shape[0], size):
        yield start, dense_rows(points[start : start + size])
