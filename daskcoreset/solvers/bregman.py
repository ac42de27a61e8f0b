"""Bregman hard clustering: Lloyd's algorithm for every Bregman divergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from daskcoreset.solvers.divergences import Divergence
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.solvers.bregman_start import (
    Rows,
    bregman_seeds,
    check_count,
    check_tolerance,
    prepare,
)
from daskcoreset.core.typing import FloatArray, IndexArray, Points

__all__ = ["HardClustering", "bregman_hard"]


@dataclass(frozen=True, eq=False)
class HardClustering:
    r"""Centers found by `bregman_hard`.

    Attributes
    ----------
    divergence : Divergence
        As used, with its precision where that was estimated.
    centers : ndarray of shape (k, d), float64
    cost : float
        :math:`\sum_x u(x) \min_j d(x, c_j)` over the rows that were clustered.
    n_iter : int
        Number of times the centers were moved.
    converged : bool
        Whether it stopped before `max_iter` ran out.
    """

    divergence: Divergence
    centers: FloatArray
    cost: float
    n_iter: int
    converged: bool

    def labels(self, points: Points) -> IndexArray:
        """Nearest center of every row, int64 of shape (n,); the first of equally near ones."""
        return self.divergence.nearest(points, self.centers)[0]

    def costs(self, points: Points) -> FloatArray:
        """Divergence of every row to its nearest center, float64 of shape (n,)."""
        return self.divergence.nearest(points, self.centers)[1]


def bregman_hard(
    points: Points,
    n_clusters: int,
    *,
    divergence: str | Divergence = "squared_euclidean",
    sample_weight: Any = None,
    init: Any = None,
    n_init: int = 1,
    max_iter: int = 300,
    tol: float = 1e-6,
    random_state: RandomState = None,
) -> HardClustering:
    r"""Cluster weighted rows so that their divergence to k centers is small.

    Rows go to their nearest center, centers to the weighted mean of their rows, in turns.
    The mean is the best center whatever the divergence, so the cost never increases. A
    center that loses all its rows moves to the row of largest weighted divergence.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n, d)
        float32 or float64; a coreset, say. One dense copy in float64 is made.
    n_clusters : int
        k.
    divergence : str or Divergence, default="squared_euclidean"
        A name in `daskcoreset.divergences.DIVERGENCES`, or a divergence. For "mahalanobis"
        the precision is the inverse of the covariance of these rows.
    sample_weight : array-like of shape (n,), optional
        Weights u; ones by default.
    init : array-like of shape (k, d), optional
        Centers to start from, once; otherwise seeds in the manner of k-means++.
    n_init : int, default=1
        Seedings to start from; the solution of least cost is returned.
    max_iter : int, default=300
        Most moves of the centers per start.
    tol : float, default=1e-6
        Stop once a move lowers the cost by at most this share of it; with 0 go on until
        the cost falls no more.
    random_state : int, Generator, RandomState or None, default=None
        For the seeds.

    Returns
    -------
    HardClustering

    Raises
    ------
    InvalidInputError
        If rows or `init` lie outside the domain of the divergence, weights are negative, or
        there are fewer rows than clusters.

    Warns
    -----
    CoresetWarning
        If there are fewer distinct rows than clusters.

    Examples
    --------
    >>> points = np.array([[1.0], [2.0], [30.0], [40.0]])
    >>> found = bregman_hard(points, 2, divergence="kl", init=[[1.0], [2.0]])
    >>> found.centers.ravel(), found.labels(points)
    (array([ 1.5, 35. ]), array([0, 0, 1, 1]))

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), Clustering with Bregman Divergences,
    Algorithm 1 and Proposition 1.
    """
    for name, value in (("n_init", n_init), ("max_iter", max_iter)):
        check_count(name, value)
    check_tolerance(tol)
    rows = prepare(points, n_clusters, divergence, sample_weight)
    if init is not None:
        best = _lloyd(rows, rows.starting_centers(init, n_clusters), max_iter, tol)
    else:
        rng = np.random.default_rng(resolve_seed(random_state))
        starts = (bregman_seeds(rows, n_clusters, rng) for _ in range(n_init))
        runs = (_lloyd(rows, seeds, max_iter, tol) for seeds in starts)
        best = min(runs, key=lambda run: run.state.cost)
    return HardClustering(
        rows.divergence,
        best.state.centers + rows.origin,
        best.state.cost,
        best.n_iter,
        best.converged,
    )


@dataclass(frozen=True, eq=False)
class _State:
    """Centers, and what they cost."""

    centers: FloatArray
    labels: IndexArray
    weighted: FloatArray
    cost: float


@dataclass(frozen=True, eq=False)
class _Run:
    state: _State
    n_iter: int
    converged: bool


def _lloyd(rows: Rows, centers: FloatArray, max_iter: int, tol: float) -> _Run:
    state = _assign(rows, centers)
    for n_iter in range(1, max_iter + 1):
        moved = _assign(rows, _update(rows, state))
        gain = state.cost - moved.cost
        settled = np.array_equal(moved.labels, state.labels) or gain <= tol * moved.cost
        # By rounding alone a move can cost more than it gains.
        state = min(moved, state, key=lambda one: one.cost)
        if settled:
            return _Run(state, n_iter, True)
    return _Run(state, max_iter, False)


def _assign(rows: Rows, centers: FloatArray) -> _State:
    labels, divergences = rows.divergence.nearest(rows.points, centers)
    weighted = rows.weights * divergences
    return _State(centers, labels, weighted, float(weighted.sum()))


def _update(rows: Rows, state: _State) -> FloatArray:
    """Weighted means of the clusters; empty ones start anew."""
    n_rows, k = len(rows.points), len(state.centers)
    members = sp.csr_array((rows.weights, state.labels, np.arange(n_rows + 1)), shape=(n_rows, k))
    totals = np.bincount(state.labels, weights=rows.weights, minlength=k)
    centers = np.array(state.centers)
    used = totals > 0
    centers[used] = (members.T @ rows.points)[used] / totals[used, None]
    weighted = state.weighted
    for empty in np.flatnonzero(~used):
        row = int(weighted.argmax())
        if not weighted[row] > 0:
            break  # every row has a center of its own
        centers[empty] = rows.points[row]
        # The next one must not go to the same place.
        taken = rows.weights * rows.divergence.to_mean(rows.points, centers[empty])
        weighted = np.minimum(weighted, taken)
    return centers
