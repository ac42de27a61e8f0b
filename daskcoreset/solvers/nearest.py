"""Nearest centers and distances to all centers, of blocks or of everything in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

from daskcoreset.solvers.clusters import assign

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

__all__ = ["Distances", "Labels", "nearest", "weighted_cost"]

_WIDEST = 512
"""Sparse rows of so many columns at most are spread out, a tile at a time, and differences are
formed as of dense rows, so that the answers are the same. Of wider ones only what is stored is
looked at: rows that are as near to two centers may then go to the other one."""

_TILE_NUMBERS = 2**20
"""Numbers that one thread takes at a time, 8 MiB: enough to hide what a thread costs."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Number of the nearest center of every row of a block.

    Attributes
    ----------
    centers : ndarray of shape (k, d), float64
    """

    centers: FloatArray

    def __call__(self, block: Block) -> AnyArray:
        """Return int32 of shape (n,)."""
        return self.of(block.points)

    def of(self, points: Points, *, threads: bool = False) -> AnyArray:
        """Return the same for rows alone."""
        return nearest(points, self.centers, threads=threads)[0].astype(np.int32)


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of every row of a block to all centers.

    Attributes
    ----------
    centers : ndarray of shape (k, d), float64
    """

    centers: FloatArray

    def __call__(self, block: Block) -> AnyArray:
        """Return an array of shape (n, k), of the dtype of the rows."""
        return self.of(block.points)

    def of(self, points: Points, *, threads: bool = False) -> AnyArray:
        """Return the same for rows alone."""
        found: Any = np.empty((points.shape[0], len(self.centers)), dtype=points.dtype)

        def fill(rows: slice) -> None:
            # Differences, not an expansion: nothing cancels, however far off the origin.
            if isinstance(points, np.ndarray):
                found[rows] = cdist(points[rows], self.centers)
            else:
                found[rows] = np.sqrt(_sparse_squares(points[rows], self.centers))

        _in_tiles(fill, points, len(self.centers), threads=threads)
        return found  # type: ignore[no-any-return]


def nearest(
    points: Points, centers: FloatArray, *, threads: bool = False
) -> tuple[IndexArray, FloatArray]:
    """Nearest center of every row, and the squared distance to it.

    Parameters
    ----------
    points : ndarray of shape (n, d) or scipy sparse, float32 or float64
    centers : ndarray of shape (k, d), float64
    threads : bool, default=False
        Whether to use all cores. Not for blocks: their scheduler has threads of its own.

    Returns
    -------
    labels : ndarray of shape (n,), int64
    distances : ndarray of shape (n,), float64
        In float64 for float32 rows as well. Sparse rows stay sparse.

    Examples
    --------
    >>> nearest(np.array([[0.0], [9.0]]), np.array([[1.0], [10.0]]))
    (array([0, 1]), array([1., 1.]))
    """
    labels: Any = np.empty(points.shape[0], dtype=np.int64)
    distances = np.empty(points.shape[0])

    def fill(rows: slice) -> None:
        if isinstance(points, np.ndarray) or points.shape[1] <= _WIDEST:
            labels[rows], distances[rows] = assign(points[rows], centers)
            return
        squares = _sparse_squares(points[rows], centers)
        labels[rows] = squares.argmin(axis=1)
        distances[rows] = squares.min(axis=1)

    _in_tiles(fill, points, len(centers), threads=threads)
    return labels, distances


def weighted_cost(distances: FloatArray, weights: FloatArray | None) -> float:
    """Sum of squared distances, weighted where there are weights."""
    return float(distances.sum() if weights is None else distances @ weights)


def _sparse_squares(points: Any, centers: FloatArray) -> FloatArray:
    # Sparse rows lie about the origin, so that the expansion is safe; in float64.
    rows = points.astype(np.float64)
    norms = np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1, 1)
    squares = norms - 2 * (rows @ centers.T) + np.einsum("ij,ij->i", centers, centers)
    return np.maximum(squares, 0.0, out=squares)  # type: ignore[no-any-return]


def _in_tiles(
    work: Callable[[slice], None], points: Points, n_centers: int, *, threads: bool
) -> None:
    """Do the work on tiles of rows, so that what it makes on the way stays small."""
    n_rows, n_columns = points.shape
    spread = isinstance(points, np.ndarray) or n_columns <= _WIDEST
    width = n_columns if spread else n_centers
    step = max(1, _TILE_NUMBERS // width)
    tiles = [slice(start, start + step) for start in range(0, n_rows, step)]
    if not threads or len(tiles) < 2:
        for tile in tiles:
            work(tile)
        return
    with ThreadPoolExecutor(min(len(tiles), os.cpu_count() or 1)) as pool:
        list(pool.map(work, tiles))  # a list, so that errors come out
