"""k-means with thousands of clusters, on weighted rows in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.optional import import_optional
from daskcoreset.core.typing import FloatArray, Points
from daskcoreset.solvers.centroids import centroids
from daskcoreset.solvers.hartigan import hartigan
from daskcoreset.solvers.kmeans import Centers, assign, seed_cells

# Centroids for each center.
_CENTROIDS = 4

# Passes over the centroids: the first gains most, and each may take as long as the seeds and more.
# Steps of Lloyd before them were measured to gain nothing, and ten without them a part of one pass.
_PASSES = 2

# Steps of faiss: as many as it makes by itself.
_FAISS_STEPS = 25


def solve_in_parts(points: Points, weights: FloatArray, n_clusters: int, seed: int) -> Centers:
    """Reduce the rows to four centroids a cluster, in parts, and run k-means on these.

    The work is that of m times the root of k, and a bounded number of times 4 k times k: for
    k-means++ once, and for two passes of Hartigan's method, in which a centroid meets all clusters
    once, and then twice at most. Lloyd's steps on all rows take m times k each. With four
    rows to a cluster the means follow a row that moves by much, and Lloyd's steps, which do not
    ask how much, end at once. Without the second half, clusters that lie apart are missed:
    parts get centers by their costs, and not by the clusters in them.

    Parameters
    ----------
    points : ndarray of shape (m, d) or csr_array
        Distinct rows, at least k.
    weights : ndarray of shape (m,), float64
        Positive.
    n_clusters, seed : int

    Returns
    -------
    Centers

    Examples
    --------
    >>> rows = np.arange(600.0).reshape(-1, 1)
    >>> solve_in_parts(rows, np.ones(600), 200, 0).centers.shape
    (200, 1)
    """
    rng = np.random.default_rng(seed)
    rows, u = dense_rows(points), weights
    count = _CENTROIDS * n_clusters
    if len(rows) > count:
        found = centroids(rows, u, count, rng)
        rows, u = found.points, found.weights
    centers = seed_cells(rows, u, n_clusters, rng).clusters.centers
    missing = n_clusters - len(centers)
    if missing:  # of rows so near to one another that their distances are zero
        costs = u * assign(rows, centers)[1]
        further = rows[np.argsort(-costs, kind="stable")[:missing]]
        centers = np.concatenate([centers, further.astype(np.float64)])
    exact = np.ascontiguousarray(rows, dtype=np.float64)
    centers, n_passes = hartigan(exact, u, centers, max_iter=_PASSES, tol=0.0, settled=False)
    return Centers(centers, 1 + n_passes)  # the means of the cells of the seeds are a step


def solve_by_faiss(
    points: Points, weights: FloatArray, n_clusters: int, *, max_iter: int, seed: int
) -> Centers:
    """Start from `solve_in_parts`, and make at most 25 steps of Lloyd by faiss, in float32.

    About the mean and in units of the largest difference from it, so that float32 has digits.

    Raises
    ------
    MissingDependencyError
        faiss is not installed.
    """
    faiss: Any = import_optional(
        "faiss", 'faiss is not installed; pip install "daskcoreset[embeddings]" brings it'
    )
    start = solve_in_parts(points, weights, n_clusters, seed).centers
    rows = dense_rows(points)
    mean = np.average(rows, axis=0, weights=weights)
    moved = rows - mean
    scale = max(float(abs(moved).max(initial=0.0)), np.finfo(np.float64).tiny)
    steps = min(max_iter, _FAISS_STEPS)
    model = faiss.Kmeans(
        rows.shape[1],
        n_clusters,
        niter=steps,
        seed=seed % 2**31,
        max_points_per_centroid=len(rows),
        min_points_per_centroid=1,
    )
    model.train(
        (moved / scale).astype(np.float32),
        (weights / weights.max()).astype(np.float32),
        ((start - mean) / scale).astype(np.float32),
    )
    centers: FloatArray = model.centroids.astype(np.float64) * scale + mean
    return Centers(centers, steps)
