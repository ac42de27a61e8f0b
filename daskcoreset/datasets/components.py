"""Draw the rows of a mixture, block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.datasets.lazy import Chunks, Part, block_stream, lazy_rows, rows_per_block

if TYPE_CHECKING:
    import dask.array as da

    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = ["Components"]

_TILE = 4096  # rows shifted at a time: float64 temporaries stay small


@dataclass(frozen=True, eq=False)
class Components:
    """Spherical components; the last one is of the outliers, whose label is -1.

    Attributes
    ----------
    seed : int
        Root seed.
    n : int
        Rows in all, needed to place clusters when rows are not shuffled.
    centers : ndarray of shape (k + 1, d)
        Centres of the clusters and, last, of the outliers.
    spreads : ndarray of shape (k + 1,)
        Standard deviations in every coordinate.
    shares : ndarray of shape (k,)
        Shares of the clusters among the rows that are no outliers; they sum to one.
    outliers : float
        Probability that a row is an outlier.
    dof : float
        Degrees of freedom of Student's t; infinity for normal clusters.
    shuffle : bool
        Whether a row's cluster is drawn or given by its place.
    dtype : dtype
        Of the points.
    """

    seed: int
    n: int
    centers: FloatArray
    spreads: FloatArray
    shares: FloatArray
    outliers: float
    dof: float
    shuffle: bool
    dtype: np.dtype[Any]

    def labels(self, block: int, start: int, stop: int) -> IndexArray:
        """Return the numbers of the clusters of the rows of one block, -1 for outliers."""
        rng = block_stream(self.seed, Part.LABELS, block)
        if self.shuffle:
            position = rng.random(stop - start)
        else:
            position = (np.arange(start, stop) + 0.5) / self.n
        bounds = np.cumsum(self.shares)[:-1]
        labels = np.searchsorted(bounds, position, side="right").astype(np.int64, copy=False)
        if self.outliers > 0:
            labels[rng.random(stop - start) < self.outliers] = -1
        return labels

    def points(self, block: int, start: int, stop: int) -> AnyArray:
        """Return the points of one block."""
        labels = self.labels(block, start, stop)
        rng = block_stream(self.seed, Part.POINTS, block)
        points = rng.standard_normal((stop - start, self.centers.shape[1]), dtype=self.dtype)
        radii = self.spreads[labels]
        if math.isfinite(self.dof):
            radii = radii * np.sqrt(self.dof / rng.chisquare(self.dof, size=stop - start))
        for low in range(0, stop - start, _TILE):
            tile = slice(low, low + _TILE)
            # One rounding, from float64, so that a large offset costs no more than it must.
            points[tile] = radii[tile, None] * points[tile] + self.centers[labels[tile]]
        return points

    def arrays(self, kind: str, chunks: Chunks) -> tuple[da.Array, da.Array]:
        """Return points and labels as lazy arrays whose names begin with `kind`."""
        d = self.centers.shape[1]
        rows = rows_per_block(chunks, n=self.n, d=d, dtype=self.dtype)
        points = lazy_rows(self.points, kind=kind, rows=rows, shape=(self.n, d), dtype=self.dtype)
        labels = lazy_rows(
            self.labels, kind=f"{kind}-labels", rows=rows, shape=(self.n,), dtype=np.int64
        )
        return points, labels
