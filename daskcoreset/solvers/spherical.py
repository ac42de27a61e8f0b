"""Centers of length one: k-means by cosine distance, on weighted unit rows in memory."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import unit_rows
from daskcoreset.core.typing import FloatArray, Points
from daskcoreset.solvers.kmeans import assign, cells_of

# Steps after k-means in the plane: of the best centers of its cells few rows change theirs.
STEPS = 3


def unit_centers(
    points: Points, weights: FloatArray, centers: FloatArray, steps: int = STEPS
) -> FloatArray:
    r"""Bring the centers of k-means on unit rows to length one, and make steps with these.

    Of a cell with the sum s the best center of length one is :math:`s / |s|`, and every one is as
    good where s is zero. A center of no row stays where it is.

    Parameters
    ----------
    points : ndarray of shape (m, d) or csr_array
        Unit rows, or means of them.
    weights : ndarray of shape (m,), float64
        Positive.
    centers : ndarray of shape (k, d), float64
    steps : int, default=3
        At most; they end when no center moves.

    Returns
    -------
    ndarray of shape (k, d), float64

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> unit_centers(rows, np.ones(2), np.array([[0.8, 0.4]])).round(3)
    array([[0.894, 0.447]])

    References
    ----------
    Dhillon and Modha (2001), concept decompositions for large sparse text data using clustering.
    """
    centers = _on_the_sphere(np.ascontiguousarray(centers, dtype=np.float64))
    for _ in range(steps):
        check_time("clusters were being fitted", "pass a smaller size")
        labels, _ = assign(points, centers)
        used = np.bincount(labels, minlength=len(centers)) > 0
        moved = centers.copy()
        moved[used] = cells_of(points, weights, labels, centers.copy()).clusters.centers
        moved = _on_the_sphere(moved)
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers


def _on_the_sphere(centers: FloatArray) -> FloatArray:
    rows, lengths = unit_rows(centers)
    found: FloatArray = np.asarray(rows)
    found[lengths == 0.0, 0] = 1.0
    return found
