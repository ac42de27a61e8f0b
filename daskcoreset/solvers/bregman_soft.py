"""Bregman soft clustering: EM for mixtures of exponential families."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.linalg import one_thread, product, tiles
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import FloatArray, IndexArray, Points
from daskcoreset.solvers.bregman import Rows, bregman_hard, descend, prepare
from daskcoreset.solvers.divergences import Divergence

# Share of the weight below which a component has no mean that float64 could hold.
_VANISHED = 1e-200


@dataclass(frozen=True, eq=False)
class SoftClustering:
    r"""Mixture found by `bregman_soft`.

    Attributes
    ----------
    divergence : Divergence
        As used, with its precision where that was estimated.
    centers : ndarray of shape (k, d), float64
        Means of the components.
    mixing : ndarray of shape (k,), float64
        Their weights :math:`\pi_j`, of sum one.
    cost : float
        :math:`-\sum_x u(x) \ln \sum_j \pi_j e^{-d(x, c_j)}` over the rows that were
        clustered.
    n_iter : int
        Number of EM steps.
    converged : bool
        Whether it stopped before `max_iter` ran out.
    """

    divergence: Divergence
    centers: FloatArray
    mixing: FloatArray
    cost: float
    n_iter: int
    converged: bool

    def responsibilities(self, points: Points) -> FloatArray:
        r""":math:`p(j | x) \propto \pi_j e^{-d(x, c_j)}`, float64 of shape (n, k)."""
        out = np.empty((points.shape[0], len(self.centers)))
        for part, _, shares in self._expectation(points):
            out[part] = shares
        return out

    def labels(self, points: Points) -> IndexArray:
        """Most probable component of every row, int64 of shape (n,)."""
        out = np.empty(points.shape[0], dtype=np.int64)
        for part, _, shares in self._expectation(points):
            out[part] = shares.argmax(axis=1)
        return out

    def costs(self, points: Points) -> FloatArray:
        r""":math:`-\ln \sum_j \pi_j e^{-d(x, c_j)}` of every row, float64 of shape (n,)."""
        out = np.empty(points.shape[0])
        for part, costs, _ in self._expectation(points):
            out[part] = costs
        return out

    def _expectation(self, points: Points) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        return _expectation(self.divergence, points, self.centers, self.mixing)


def bregman_soft(
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
) -> SoftClustering:
    r"""Fit a mixture of k exponential-family components to weighted rows.

    Component j has the density :math:`p(x | j) \propto e^{-d(x, c_j)}`: Gaussians of
    covariance :math:`P^{-1}/2` for a (squared) Mahalanobis distance, Poisson distributions
    for "kl", exponential ones for "itakura_saito". EM with weights lowers

    .. math:: -\sum_x u(x) \ln \sum_j \pi_j e^{-d(x, c_j)}

    in every step. The divergence has a scale here: multiplied data are clustered more
    sharply.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n, d)
        float32 or float64. A coreset, say. One dense copy in float64 is made.
    n_clusters : int
        Number of components k.
    divergence : str or Divergence, default="squared_euclidean"
        As for `bregman_hard`.
    sample_weight : array-like of shape (n,), optional
        Weights u. Ones by default.
    init : array-like of shape (k, d), optional
        Centers to start from. Default: those of `bregman_hard`. Mixing weights start equal.
    n_init : int, default=1
        Starts of the hard clustering.
    max_iter : int, default=300
        Most EM steps, and most moves per start of the hard clustering.
    tol : float, default=1e-6
        Stop once a step lowers the cost by at most this per unit of weight.
    random_state : int, Generator, RandomState or None, default=None
        For the seeds of the hard clustering.

    Returns
    -------
    SoftClustering

    Raises
    ------
    InvalidInputError
        As for `bregman_hard`.

    Warns
    -----
    CoresetWarning
        If there are fewer distinct rows than clusters.

    Examples
    --------
    >>> points = np.array([[1.0], [2.0], [30.0], [40.0]])
    >>> found = bregman_soft(points, 2, divergence="kl", init=[[1.0], [30.0]])
    >>> found.centers.round(3).ravel(), found.mixing.round(3)
    (array([ 1.5, 35. ]), array([0.5, 0.5]))
    >>> found.responsibilities(np.array([[1.0], [10.0]])).round(3)
    array([[1.   , 0.   ],
           [0.881, 0.119]])

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), Clustering with Bregman Divergences, section
    5 and Algorithm 3. Bachem, Lucic and Krause (2018), section 6, for the objective.
    """
    rows = prepare(points, n_clusters, divergence, sample_weight)
    if init is None:
        init = bregman_hard(
            points,
            n_clusters,
            divergence=rows.divergence,
            sample_weight=sample_weight,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
        ).centers
    centers = rows.starting_centers(init, n_clusters)
    return _expectation_maximisation(rows, centers, max_iter, tol)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Parameters, and the sums of the expectation step."""

    centers: FloatArray
    mixing: FloatArray
    cost: float
    totals: FloatArray
    sums: FloatArray


def _expectation_maximisation(
    rows: Rows, centers: FloatArray, max_iter: int, tol: float
) -> SoftClustering:
    smallest_gain = tol * float(rows.weights.sum())

    def step(before: _Sums) -> _Sums:
        # A component without weight keeps its center, and stays without.
        alive = before.totals > _VANISHED * before.totals.sum()
        means, mixing = before.centers.copy(), np.where(alive, before.totals, 0.0)
        means[alive] = before.sums[alive] / before.totals[alive, None]
        return _sums(rows, means, mixing / mixing.sum())

    def stops(before: _Sums, after: _Sums) -> bool:
        return before.cost - after.cost <= smallest_gain

    start = _sums(rows, centers, np.full(len(centers), 1.0 / len(centers)))
    state, n_iter, converged = descend(start, step, stops, max_iter)
    centers = state.centers + rows.origin
    return SoftClustering(rows.divergence, centers, state.mixing, state.cost, n_iter, converged)


@one_thread()
def _sums(rows: Rows, centers: FloatArray, mixing: FloatArray) -> _Sums:
    cost, totals, sums = 0.0, np.zeros(len(centers)), np.zeros(centers.shape)
    for part, costs, shares in _expectation(rows.divergence, rows.points, centers, mixing):
        weights = rows.weights[part]
        cost += float((weights * costs).sum())
        weighted = shares * weights[:, None]
        totals += weighted.sum(axis=0)
        sums += product(weighted.T, rows.points[part])
    return _Sums(centers, mixing, cost, totals, sums)


def _expectation(
    divergence: Divergence, points: Points, centers: FloatArray, mixing: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield rows, some at a time, with the soft minima of their divergences, and their shares."""
    # A row needs its divergences, or itself in float64, whichever are more numbers.
    for part in tiles(points.shape[0], max(centers.shape)):
        table = divergence.divergence(points[part], centers)
        with np.errstate(divide="ignore"):  # a component may have no weight
            logits = np.log(mixing) - table
        top = logits.max(axis=1)
        shares = np.exp(logits - top[:, None])
        totals = shares.sum(axis=1)
        shares /= totals[:, None]
        yield part, -top - np.log(totals), shares
