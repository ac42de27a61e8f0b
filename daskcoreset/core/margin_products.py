"""Inner products of rows with a few vectors: the same bits with any number of threads.

Which row is the worst decides what a core set is, so that BLAS, whose bits depend on the
number of its threads, is not asked.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.rowwise import compiled_loops, squared_distances

if TYPE_CHECKING:
    from daskcoreset.core.typing import FloatArray, Points

__all__ = ["inner_products", "squared_lengths"]

_TILE_NUMBERS = 2**16
"""Numbers brought to float64 at a time, 512 KiB: they stay in the second-level cache."""


def inner_products(points: Points, vectors: FloatArray) -> FloatArray:
    """Inner product of every row with every vector.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array, float32 or float64
    vectors : ndarray of shape (q, d), float64

    Returns
    -------
    ndarray of shape (n, q), float64
        Summed in float64.

    Examples
    --------
    >>> inner_products(np.eye(2, dtype=np.float32), np.array([[3.0, 4.0]]))
    array([[3.],
           [4.]])
    """
    n, q = points.shape[0], len(vectors)
    if not isinstance(points, np.ndarray):
        sparse: Any = points
        return np.ascontiguousarray(sparse @ np.ascontiguousarray(vectors.T), dtype=np.float64)
    out = np.empty((n, q))
    if compiled_loops() is not None:
        loops = importlib.import_module("daskcoreset.core.margin_compiled")
        loops.inner_products(points, np.ascontiguousarray(vectors), out)
        return out
    tile = max(1, _TILE_NUMBERS // max(1, points.shape[1]))
    for start in range(0, n, tile):
        rows = points[start : start + tile].astype(np.float64)
        np.einsum("ij,kj->ik", rows, vectors, out=out[start : start + tile])
    return out


def squared_lengths(points: Points, center: FloatArray | None = None) -> FloatArray:
    """Squared distance of every row from a center, or from the origin.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    center : ndarray of shape (d,), float64, or None, default=None
        None for the origin.

    Returns
    -------
    ndarray of shape (n,), float64

    Examples
    --------
    >>> squared_lengths(np.array([[3.0, 4.0]])), squared_lengths(np.ones((1, 2)), np.ones(2))
    (array([25.]), array([0.]))
    """
    if isinstance(points, np.ndarray):
        origin = np.zeros(points.shape[1]) if center is None else center
        return squared_distances(points, origin)
    sparse: Any = points
    data = sparse.data.astype(np.float64)
    squares = data**2
    extra = 0.0
    if center is not None:
        squares -= 2.0 * data * center[sparse.indices]
        extra = float(center @ center)
    rows = np.repeat(np.arange(sparse.shape[0]), np.diff(sparse.indptr))
    found = np.bincount(rows, weights=squares, minlength=sparse.shape[0]) + extra
    return np.asarray(np.maximum(found, 0.0), dtype=np.float64)
