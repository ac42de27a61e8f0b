"""Bregman hard clustering: seeds, and Lloyd's algorithm for every Bregman divergence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.invalid import refuse
from daskcoreset.core.linalg import dense, one_thread, tiles
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import FloatArray, IndexArray, Points
from daskcoreset.core.validation import as_numbers
from daskcoreset.errors import CoresetWarning, InvalidInputError
from daskcoreset.solvers.divergences import Divergence, as_divergence
from daskcoreset.solvers.kmeans import check_init


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to be clustered.

    Attributes
    ----------
    points : ndarray of shape (n, d), float64
        Inside the domain. Less `origin`.
    weights : ndarray of shape (n,), float64
        Positive.
    origin : ndarray of shape (d,), float64
        Weighted mean of the rows where the divergence allows a shift, else zero: sums of
        rows with a large common offset keep their digits.
    divergence : Divergence
        With nothing left to be estimated.
    """

    points: FloatArray
    weights: FloatArray
    origin: FloatArray
    divergence: Divergence

    def starting_centers(self, init: Any, n_clusters: int) -> FloatArray:
        """Return the initial centers of the caller, checked, less `origin`."""
        centers = as_numbers("init", init)
        check_init(centers, n_clusters, self.points.shape[1])
        refuse(self.divergence.find_invalid_row(centers, "init"))
        return np.asarray(centers - self.origin)


def prepare(
    points: Points, n_clusters: int, divergence: str | Divergence, sample_weight: Any
) -> Rows:
    """Check the rows to be clustered, and convert them to float64.

    Rows of weight zero are left out: they have no say in the centers.

    Raises
    ------
    InvalidInputError
        If a row lies outside the domain of the divergence, there are fewer rows than clusters, or
        the covariance that a Mahalanobis distance needs is singular.
    """
    rows = dense(points)
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    rows, weights = rows[weights > 0], weights[weights > 0]  # always a copy
    chosen = as_divergence(divergence)
    refuse(chosen.find_invalid_row(points, "points"))
    if len(rows) < n_clusters:
        raise InvalidInputError(
            f"n_clusters is {n_clusters} but points has {len(rows)} rows of positive weight",
            argument="n_clusters",
            remedy="pass a smaller n_clusters",
        )
    origin = np.zeros(rows.shape[1])
    if chosen.translation_invariant:
        # In two steps: the first mean is off by the rounding of large sums, the second is not.
        origin = _mean(rows, weights)
        origin += _mean(rows - origin, weights)
        rows -= origin
    return Rows(rows, weights, origin, chosen.fitted(rows, weights))


def bregman_seeds(rows: Rows, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    r"""Seeds in the manner of greedy k-means++, by the divergence.

    The first seed is drawn by weight. Each further one is the best of :math:`2 +
    \lfloor \ln k \rfloor` rows that are drawn in proportion to :math:`u(x)\, d(x, c(x))`,
    with c(x) the seed that is nearest so far. The best leaves the smallest cost.

    Parameters
    ----------
    rows : Rows
    n_clusters : int
        k, at most the number of rows.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (k, d), float64
        Rows of ``rows.points``. With fewer than k distinct rows some repeat.

    Warns
    -----
    CoresetWarning
        If there are fewer distinct rows than clusters.

    Examples
    --------
    >>> rows = prepare(np.array([[1.0], [1.0], [9.0]]), 2, "kl", None)
    >>> np.sort(bregman_seeds(rows, 2, np.random.default_rng(0)), axis=0).ravel()
    array([1., 9.])

    References
    ----------
    Arthur and Vassilvitskii (2007), k-means++. Nock, Luosto and Kivinen (2008), Mixed
    Bregman Clustering with Approximation Guarantees, for other divergences.
    """
    n_candidates = 2 + int(math.log(n_clusters))
    taken = [int(draw_with_replacement(rows.weights, 1, rng)[0])]
    potential = _potentials(rows, rows.points[taken])[:, 0]
    while len(taken) < n_clusters:
        check_time("centers were being seeded", "pass a smaller size")
        if not potential.sum() > 0:
            warnings.warn(
                f"points has {len(taken)} distinct rows where n_clusters is {n_clusters}: the "
                f"other centers repeat; pass a smaller n_clusters.",
                CoresetWarning,
                stacklevel=5,
            )
            further = draw_with_replacement(rows.weights, n_clusters - len(taken), rng)
            taken.extend(further.tolist())
            break
        candidates = draw_with_replacement(potential, n_candidates, rng)
        remaining = np.minimum(_potentials(rows, rows.points[candidates]), potential[:, None])
        best = int(remaining.sum(axis=0).argmin())
        taken.append(int(candidates[best]))
        potential = remaining[:, best]
    return rows.points[taken]


def _mean(rows: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(np.average(rows, axis=0, weights=weights))


@one_thread()
def _potentials(rows: Rows, centers: FloatArray) -> FloatArray:
    out = np.empty((len(rows.points), len(centers)))
    for part in tiles(len(rows.points), rows.points.shape[1]):
        out[part] = rows.divergence.divergence(rows.points[part], centers)
    out *= rows.weights[:, None]
    return out


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
        """Nearest center of every row, int64 of shape (n,). The first of equally near ones."""
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
        float32 or float64. A coreset, say. One dense copy in float64 is made.
    n_clusters : int
        k.
    divergence : str or Divergence, default="squared_euclidean"
        A name such as "kl", or an object of `daskcoreset.objectives.divergences`. For
        "mahalanobis" the precision is the inverse of the covariance of these rows.
    sample_weight : array-like of shape (n,), optional
        Weights u. Ones by default.
    init : array-like of shape (k, d), optional
        Centers to start from, once. Otherwise seeds in the manner of k-means++.
    n_init : int, default=1
        Seedings to start from. The solution of least cost is returned.
    max_iter : int, default=300
        Most moves of the centers per start.
    tol : float, default=1e-6
        Stop once a move lowers the cost by at most this share of it. With 0 go on until
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
    rows = prepare(points, n_clusters, divergence, sample_weight)
    if init is not None:
        return _lloyd(rows, rows.starting_centers(init, n_clusters), max_iter, tol)
    rng = np.random.default_rng(resolve_seed(random_state))
    seedings = (bregman_seeds(rows, n_clusters, rng) for _ in range(n_init))
    runs = (_lloyd(rows, seeds, max_iter, tol) for seeds in seedings)
    return min(runs, key=attrgetter("cost"))


class Descent(NamedTuple):
    """End of `descend`: the state of least cost, the steps, and whether it stopped by itself."""

    state: Any
    n_iter: int
    converged: bool


def descend(
    state: Any,
    step: Callable[[Any], Any],
    stops: Callable[[Any, Any], bool],
    max_iter: int,
) -> Descent:
    """Take steps to states of less cost until ``stops(before, after)``."""
    for n_iter in range(1, max_iter + 1):
        check_time("clusters were being fitted", "pass a smaller size")
        moved = step(state)
        converged = stops(state, moved)
        # By rounding alone a step can cost more than it gains.
        state = min(moved, state, key=attrgetter("cost"))
        if converged:
            return Descent(state, n_iter, True)
    return Descent(state, max_iter, False)


@dataclass(frozen=True, eq=False)
class _Assignment:
    """Centers, the rows that are nearest to each, and what they cost."""

    centers: FloatArray
    labels: IndexArray
    weighted: FloatArray
    cost: float


def _lloyd(rows: Rows, centers: FloatArray, max_iter: int, tol: float) -> HardClustering:
    def step(before: _Assignment) -> _Assignment:
        return _assign(rows, _update(rows, before))

    def stops(before: _Assignment, after: _Assignment) -> bool:
        # The same labels give the same means: nothing moves from there on.
        gain = before.cost - after.cost
        return np.array_equal(after.labels, before.labels) or gain <= tol * after.cost

    state, n_iter, converged = descend(_assign(rows, centers), step, stops, max_iter)
    centers = state.centers + rows.origin
    return HardClustering(rows.divergence, centers, state.cost, n_iter, converged)


def _assign(rows: Rows, centers: FloatArray) -> _Assignment:
    labels, divergences = rows.divergence.nearest(rows.points, centers)
    weighted = rows.weights * divergences
    return _Assignment(centers, labels, weighted, float(weighted.sum()))


def _update(rows: Rows, state: _Assignment) -> FloatArray:
    """Weighted means of the clusters; empty ones are seeded again."""
    import scipy.sparse as sp

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
