"""Bregman clustering on a coreset, of data of any size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, cast

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from daskcoreset._build import default_size
from daskcoreset.core.invalid import InvalidRow, no_weight_error, refuse
from daskcoreset.core.linalg import one_thread, tiles
from daskcoreset.core.moments import merge_scatters, scatter_of_block
from daskcoreset.core.points import deduplicate, spread_out
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.estimators.base import Problem, check_size, resolve_for
from daskcoreset.estimators.checks import InMemoryData
from daskcoreset.estimators.kmeans import CLUSTERING_CONSTRAINTS, ClusteringModel
from daskcoreset.estimators.scoring import weighted_sum
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.objectives import Distortion
from daskcoreset.sensitivities import LightweightBregman, Sensitivity, StrongBregman
from daskcoreset.solvers.bregman import HardClustering, bregman_hard
from daskcoreset.solvers.bregman_soft import SoftClustering, bregman_soft
from daskcoreset.solvers.divergences import (
    Divergence,
    SquaredMahalanobis,
    as_divergence,
)


def _apply_in_domain(
    divergence: Divergence, function: Callable[[Points], AnyArray], points: Points
) -> AnyArray | InvalidRow:
    """Apply a function to rows, or return the first that is outside the domain."""
    return divergence.find_invalid_row(points) or function(points)


def _labels(solution: HardClustering | SoftClustering, points: Points) -> AnyArray:
    return solution.labels(points).astype(np.int32)


@one_thread()
def _divergences(solution: HardClustering | SoftClustering, points: Points) -> AnyArray:
    centers = solution.centers
    divergences = np.empty((points.shape[0], len(centers)), dtype=points.dtype)
    for rows in tiles(points.shape[0], max(centers.shape)):
        divergences[rows] = solution.divergence.divergence(points[rows], centers)
    return divergences


def _repeated(solution: Any, n_clusters: int) -> Any:
    """Return a solution of fewer clusters as one of `n_clusters`, whose centers repeat."""
    rows = np.arange(n_clusters) % len(solution.centers)
    if isinstance(solution, HardClustering):
        return replace(solution, centers=solution.centers[rows])
    mixing = solution.mixing[rows] / np.bincount(rows)[rows]
    return replace(solution, centers=solution.centers[rows], mixing=mixing)


def _if_soft(model: Any) -> bool:
    if not model.soft:
        raise AttributeError("soft is False; pass soft=True before fit, or call predict.")
    return True


class CoresetBregman(ClusteringModel):
    r"""Hard or soft clustering by a Bregman divergence, for data of any size.

    `fit` builds a coreset in one pass and solves on it. See :doc:`/guides/clusters`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, or of components.
    divergence : str or Divergence, default="squared_euclidean"
        "squared_euclidean", "mahalanobis", "kl" or "itakura_saito", or a divergence with its
        parameters. The last two are for positive data. The precision of "mahalanobis" is the
        inverse of the covariance of all rows, which takes one more pass.
    soft : bool, default=False
        Whether to fit a mixture of the exponential family that belongs to the divergence.
    size : int or "auto", default="auto"
        Rows of the coreset. "auto" is the larger of 10,000 and ``100 * n_clusters``.
    method : str or Sensitivity, default="strong_bregman"
        Method of the coreset. "strong_bregman" keeps small clusters.
        "lightweight_bregman" is cheaper to build.
    init : "k-means++" or array of shape (n_clusters, d), default="k-means++"
        Start of the solver: seeds drawn by the divergence, or given centers.
    n_init : int or "auto", default="auto"
        Number of runs of the hard clustering, as in `CoresetKMeans`. The best run is kept.
    max_iter : int, default=300
        Largest number of steps per run.
    tol : float, default=1e-6
        A run ends when a step lowers the cost by less than this share of it. If ``soft=True``, it
        ends when a step lowers the cost by less than this per unit of weight.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same data, chunks and versions give the same result.
    on_invalid : {"raise", "drop"} or None, default=None
        As in `CoresetKMeans`.

    Attributes
    ----------
    cluster_centers_, coreset_, labels_, inertia_, coreset_inertia_, n_iter_, n_features_in_
        As in `CoresetKMeans`, with the cost :math:`\sum_x u(x) \min_j d(x, c_j)`, or
        :math:`-\sum_x u(x) \ln \sum_j \pi_j e^{-d(x, c_j)}` if ``soft=True``.
    weights_ : ndarray of shape (n_clusters,), float64
        Weights of the components, if ``soft=True``.
    divergence_ : Divergence
        As used, with its precision if that was estimated.
    converged_ : bool

    Examples
    --------
    >>> import dask.array as da
    >>> rng = da.random.default_rng(0)
    >>> X = rng.poisson(5.0, size=(100_000, 2), chunks=(25_000, 2)) + 0.5
    >>> model = CoresetBregman(3, divergence="kl", size=1000, random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (3, 2)

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), Clustering with Bregman Divergences.
    Lucic, Bachem and Krause (2016), Strong coresets for hard and soft Bregman clustering.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CLUSTERING_CONSTRAINTS,
        "divergence": [str, Divergence],
        "soft": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    divergence_: Divergence
    _solution: HardClustering | SoftClustering

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        divergence: str | Divergence = "squared_euclidean",
        soft: bool = False,
        size: int | Literal["auto"] = "auto",
        method: str | Sensitivity[Any] = "strong_bregman",
        init: Any = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.divergence = divergence
        self.soft = soft
        self.size = size
        self.method = method
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.on_invalid = on_invalid

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        try:
            divergence = as_divergence(self.divergence)
        except (InvalidInputError, InvalidTypeError):  # which fit reports
            return tags
        negative, zero = divergence.valid(np.array([-1.0, 0.0]))
        tags.input_tags.positive_only = not negative
        # With predict_proba scikit-learn's check of sparse input takes a model for a classifier.
        tags.input_tags.sparse = bool(zero) and not self.soft
        return tags

    @property
    def weights_(self) -> FloatArray:
        """Weights of the components, of a soft clustering."""
        check_is_fitted(self)
        if isinstance(self._solution, SoftClustering):
            return self._solution.mixing
        raise AttributeError("weights_ exists only with soft=True; set soft=True before fit.")

    def _construction(self, blocks: RowBlocks) -> tuple[Sensitivity[Any], int, int]:
        divergence = as_divergence(self.divergence)
        size = default_size(self.n_clusters) if self.size == "auto" else self.size
        check_size(size, self.n_clusters, "cluster")
        self._divergence = _with_precision(divergence, blocks)
        if self.method == StrongBregman.name:
            method: Sensitivity[Any] = StrongBregman(self.n_clusters, self._divergence)
        elif self.method == LightweightBregman.name:
            method = LightweightBregman(self._divergence)
        else:
            method = resolve_for(self.method, self.n_clusters)
        return method, size, self.n_clusters

    def _solve(self, problem: Problem) -> None:
        coreset = problem.coreset
        points, weights, _ = deduplicate(spread_out(coreset.points), coreset.weights)
        distinct = self._distinct_centers(points, coreset)
        init, n_clusters = (None if isinstance(self.init, str) else self.init), self.n_clusters
        if distinct is not None:
            n_clusters = points.shape[0]
            init = distinct[:n_clusters]
        solve = bregman_soft if self.soft else bregman_hard
        solution: Any = solve(
            points,
            n_clusters,
            divergence=self._divergence,
            sample_weight=weights,
            init=init,
            n_init=self._n_starts,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=problem.seed,
        )
        if distinct is not None:
            solution = _repeated(solution, self.n_clusters)
        self._solution, self.divergence_ = solution, solution.divergence
        self.cluster_centers_ = solution.centers
        self.coreset_inertia_ = solution.cost
        self.n_iter_, self.converged_ = solution.n_iter, solution.converged

    def _judged_by(self) -> Distortion:
        return Distortion(self.n_clusters, self.divergence_)

    def _labels_and_cost(self, data: InMemoryData) -> tuple[AnyArray, float]:
        refuse(self.divergence_.find_invalid_row(data.X))  # of rows without weight, too
        labels = _labels(self._solution, data.X)
        return labels, weighted_sum(data.blocks, self._row_costs())[1]

    def _row_costs(self) -> Any:
        return self._in_domain(self._solution.costs)

    def _in_domain(self, function: Callable[[Points], AnyArray]) -> Any:
        """Return a function of rows with a check of their domain."""
        return partial(_apply_in_domain, self.divergence_, function)

    def predict(self, X: Any) -> Any:
        """Return the number of the nearest center of every row, or of its likeliest component.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int32
            Lazy if X is out of core.

        Raises
        ------
        InvalidInputError
            If a row lies outside the domain of the divergence.
        """
        check_is_fitted(self)
        labels = partial(_labels, self._solution)
        called = ("cluster", "output")
        return self._apply(X, self._in_domain(labels), predicts=True, called=called)

    @available_if(_if_soft)  # type: ignore[untyped-decorator] # of scikit-learn
    def predict_proba(self, X: Any) -> Any:
        """Probability of every component for every row, with ``soft=True``.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), float64
            Lazy if X is out of core.
        """
        check_is_fitted(self)
        shares = cast("SoftClustering", self._solution).responsibilities
        return self._apply(X, self._in_domain(shares), called=("probability", "cluster"))

    def transform(self, X: Any) -> Any:
        """Divergences of every row to all centers.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), of the dtype of X
            Lazy if X is out of core.
        """
        check_is_fitted(self)
        self._refuse_frames(self, X)
        divergences = partial(_divergences, self._solution)
        return self._apply(X, self._in_domain(divergences), called=("divergence", "cluster"))


def _with_precision(divergence: Divergence, blocks: RowBlocks) -> Divergence:
    """Return the divergence, with the precision of all rows if it is to be estimated."""
    if not isinstance(divergence, SquaredMahalanobis) or divergence.precision is not None:
        return divergence
    scatter = map_reduce(blocks, scatter_of_block, merge_scatters).value
    if scatter.weight == 0.0:
        raise no_weight_error()
    return SquaredMahalanobis.estimated(scatter.covariance)
