"""k-means on a coreset, of data of any size, and the base of all clusterings."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn import config_context
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskcoreset.constructions.sampling.size_rule import SizeRule
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.linalg import dense_rows, one_thread
from daskcoreset.core.messages import caller_level, warn_user
from daskcoreset.core.moments import Moments, moments_of
from daskcoreset.core.points import deduplicate, have_own_sums, spread_out
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import AnyArray, FloatArray, Metric, Points
from daskcoreset.core.validation import column_shown
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators.base import (
    AUTO_SIZE,
    BUILD_CONSTRAINTS,
    Problem,
    SolvedModel,
    check_size,
    coreset_is_all,
    resolve_for,
)
from daskcoreset.estimators.checks import (
    InMemoryData,
    SparseInput,
)
from daskcoreset.estimators.lazy import RowAttributes
from daskcoreset.estimators.scoring import weighted_sum
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.sensitivities.kmeans import check_work
from daskcoreset.solvers.kmeans import (
    STEPS,
    auto_starts,
    center_distances,
    check_init,
    nearest,
    nearest_labels,
    solve,
    unit_centers,
    weighted_cost,
)

# Share of the variance above which one column decides alone: the others are noise in it. A column
# a hundred times as wide as each of twenty others has as much. Not the rule of kernel machines, of
# ranges, of which one narrow column is enough: pixels at the rim of pictures are that.
_WIDE = 0.998

# Rows of the coreset by default, at least, and for each cluster.
_MIN_ROWS, _ROWS_PER_CLUSTER = 20_000, 200

# As in scikit-learn.
_TOL = 1e-4

# Rows of a size between this and its inverse have squares, and sums of squares, in any dtype.
_USUAL = 2.0**30

# What the parameters of all clusterings may be.
CLUSTERING_CONSTRAINTS: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left")],
    "size": AUTO_SIZE,
    "method": BUILD_CONSTRAINTS["method"],
    "init": [StrOptions({"k-means++"}), "array-like"],
    "n_init": AUTO_SIZE,
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "on_invalid": BUILD_CONSTRAINTS["on_invalid"],
}


class ClusteringModel(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn has no annotations
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    RowAttributes,
    SolvedModel,
):
    """Base of the clusterings: centers, and the cost of all rows.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d), float64
    """

    n_clusters: int
    n_init: int | Literal["auto"]
    cluster_centers_: FloatArray
    coreset_inertia_: float

    fit_predict = RowAttributes.fit_predict  # not that of the mixin

    @property
    def _n_starts(self) -> int:
        return auto_starts(self.n_clusters) if self.n_init == "auto" else self.n_init

    def _distinct_centers(self, points: Points, coreset: Coreset) -> FloatArray | None:
        """Return the distinct rows, repeated, if they are fewer than the clusters, else None."""
        n_distinct, k = points.shape[0], self.n_clusters
        if n_distinct >= k:
            return None
        n_rows, whole = int(coreset.provenance["n"]), coreset_is_all(coreset)
        if n_rows < k:
            raise InvalidInputError(
                f"n_samples={n_rows} should be >= n_clusters={k}",
                remedy="lower n_clusters, or pass more rows",
            )
        warnings.warn(
            # As scikit-learn says it, to those who filter its warnings.
            f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters ({k}). "
            f"Possibly due to duplicate points in X. The other centers repeat the {n_distinct} "
            f"distinct rows of {'X' if whole else 'coreset_'} that have a positive weight. "
            f"{'Lower' if whole else 'Raise size, or lower'} n_clusters.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )
        centers: FloatArray = dense_rows(points).astype(np.float64)
        repeated: FloatArray = centers[np.arange(k) % n_distinct]
        return repeated

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Return the cluster of every row."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted cost of all rows, as `inertia_` defines it.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            One pass if it is out of core.
        y : object
            Ignored.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
        """
        del y
        check_is_fitted(self)
        return -weighted_sum(self._open_fitted(X, sample_weight), self._row_costs())[1]

    def centers_to_xarray(self) -> Any:
        """Return the centers as a Dataset, with the names, units and coordinates of the features.

        Returns
        -------
        xarray.Dataset
            The variables of the data that the model was fitted on. The dimension ``cluster`` takes
            the place of the sample dimensions.

        Raises
        ------
        InvalidInputError
            The model was fitted on rows without labels.
        """
        return self._rows_to_xarray("cluster_centers_", "cluster")

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def squared_distances(points: Points, centers: FloatArray) -> FloatArray:
    """Squared distance of every row from its nearest center."""
    return nearest(points, centers)[1]


class CoresetKMeans(SparseInput, ClusteringModel):
    """k-means for data of any size.

    `fit` builds a coreset in one pass over the data and runs scikit-learn's KMeans on it. `predict`
    is lazy for data out of core. See :doc:`/guides/clusters`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    size : int or "auto", default="auto"
        Rows of the coreset. "auto" is the larger of 20,000 and ``200 * n_clusters``, or all of up
        to 100,000 rows and 10 million numbers.
    method : str or Sensitivity, default="kmeans"
        Method of the coreset. "kmeans" is ``StrongKMeans(n_clusters)``.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" divides every row by its length, in `fit` and later, and gives centers of length
        one (spherical k-means). It treats zero rows as invalid.
    init : "k-means++" or array of shape (n_clusters, d), default="k-means++"
        Start of k-means on the coreset.
    n_init : int or "auto", default="auto"
        Number of runs of k-means on the coreset. The best run is kept. "auto" is 10 for up to 50
        clusters, and ``max(500 // n_clusters, 3)`` for more. It is 1 if `init` is an array, or
        if all rows were taken because `size` is "auto".
    max_iter : int, default=300
        Largest number of steps per run.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same data, chunks and versions give the same result.
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity in `fit`: raise an error, or drop them. None raises.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d), float64
    coreset_ : Coreset
        The coreset that k-means ran on.
    labels_ : ndarray of shape (n,), int32
        Cluster of every row, or -1 if the row was dropped. A Dask array for data out of core.
    inertia_ : float
        Weighted sum of squared distances of all rows to their centers. A lazy Dask value for data
        out of core.
    coreset_inertia_ : float
        The same sum on the coreset. It is too low on average, because the centers fit these rows.
    n_iter_ : int
        Steps of the best run, and sweeps over single rows after it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    If "auto" takes all rows, distinct and without weights, the solution is that of scikit-learn's
    KMeans. Else single rows move after at most 20 steps of Lloyd, as long as the cost falls
    (Hartigan's method). Categories in one-hot form gain by it most.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(100_000, 3), chunks=(25_000, 3))
    >>> model = CoresetKMeans(4, size=1000, random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (4, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CLUSTERING_CONSTRAINTS,
        "metric": [StrOptions({"euclidean", "cosine"})],
    }

    # Labels and cost of all rows, if k-means ran on them.
    _solved: tuple[AnyArray, float] | None = None

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        size: int | Literal["auto"] = "auto",
        method: str | Sensitivity[Any] = "kmeans",
        metric: Metric = "euclidean",
        init: Any = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.size = size
        self.method = method
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.on_invalid = on_invalid

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _construction(self, blocks: RowBlocks) -> tuple[Sensitivity[Any], int | SizeRule, int]:
        k = self.n_clusters
        size: int | SizeRule
        if self.size == "auto":
            size = SizeRule(max(_MIN_ROWS, _ROWS_PER_CLUSTER * k), k, several_runs=True)
        else:
            size = self.size
            check_size(size, k, "cluster")
        method = resolve_for(self.method, k)
        if not isinstance(self.init, str):
            check_init(self.init, k, blocks.schema.n_features)
        return method, size, k

    def _solve(self, problem: Problem) -> None:
        coreset, self._solved = problem.coreset, None
        rows = spread_out(coreset.points)
        moments = moments_of(rows, coreset.weights)
        self._warn_wide(moments)
        whole = bool(coreset.provenance.get("size_rule", {}).get("all_rows", False))
        plain = whole and self._is_plain(rows, coreset.weights, moments)
        points, weights = rows, coreset.weights
        if not (plain and have_own_sums(rows, np.argsort(-moments.m2)[:2])):
            points, weights, _ = deduplicate(rows, coreset.weights)
        if plain and points.shape == rows.shape:
            check_work(self.n_clusters, *rows.shape)
            self._solve_plain(rows, coreset.weights, moments, problem.root_seed)
            return
        distinct = self._distinct_centers(points, coreset)
        if distinct is None:
            check_work(self.n_clusters, *points.shape)
            given = not isinstance(self.init, str)
            self.cluster_centers_, self.n_iter_ = solve(
                points,
                weights,
                self.n_clusters,
                init=self.init,
                # Of an array with several starts scikit-learn warns, and makes one.
                n_init=1 if (given or whole) and self.n_init == "auto" else self._n_starts,
                max_iter=self.max_iter,
                tol=_TOL,
                seed=problem.seed,
            )
        else:
            self.cluster_centers_, self.n_iter_ = distinct, 1
        if self.metric == "cosine":
            steps = STEPS if distinct is None else 0
            self.cluster_centers_ = unit_centers(points, weights, self.cluster_centers_, steps)
        distances = nearest(coreset.points, self.cluster_centers_, threads=True)[1]
        self.coreset_inertia_ = weighted_cost(distances, coreset.weights)

    def _is_plain(self, points: Points, weights: FloatArray, moments: Moments) -> bool:
        """Whether rows are dense and of one weight, as scikit-learn takes them.

        Its solution of rows with weights differs from that of repeated rows.
        """
        if not isinstance(points, np.ndarray) or points.shape[0] < self.n_clusters:
            return False
        return weights.min() == weights.max() and 0.0 < moments.quantization_error < np.inf

    def _solve_plain(
        self, points: Points, weights: FloatArray, moments: Moments, seed: int
    ) -> None:
        """Solve by scikit-learn's KMeans as it comes, with the seed of the fit."""
        mean, width = moments.mean, np.sqrt(moments.quantization_error / moments.weight)
        # A power of two changes no digit. Squares of the usual rows do not overflow.
        size = float(np.abs(mean).max() + width)
        scale = 1.0 if 1 / _USUAL < size < _USUAL else float(2.0 ** np.frexp(size)[1])
        model = KMeans(
            self.n_clusters,
            init=self.init if isinstance(self.init, str) else np.asarray(self.init) / scale,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=_TOL,
            random_state=seed % 2**32,
        )
        with config_context(assume_finite=True, skip_parameter_validation=True), one_thread():
            model.fit(points if scale == 1.0 else points / points.dtype.type(scale))
        self.n_iter_ = int(model.n_iter_)
        self.cluster_centers_ = model.cluster_centers_.astype(np.float64) * scale
        if self.metric == "cosine":
            self.cluster_centers_ = unit_centers(points, weights, self.cluster_centers_)
            distances = nearest(points, self.cluster_centers_, threads=True)[1]
            self.coreset_inertia_ = weighted_cost(distances, weights)
        else:
            self.coreset_inertia_ = float(model.inertia_) * scale**2 * float(weights[0])
            self._solved = model.labels_, self.coreset_inertia_

    def _warn_wide(self, moments: Moments) -> None:
        """Warn if one column holds nearly all the variance."""
        if len(moments.m2) < 2:
            return
        variance = moments.m2 / moments.weight
        widest, total = int(variance.argmax()), float(variance.sum())
        if np.isfinite(total) and variance[widest] > _WIDE * total:
            named = column_shown(widest, getattr(self, "feature_names_in_", None))
            warn_user(
                f"{named} holds more than {100 * _WIDE:g} % of the variance, so the clusters "
                f"depend on this column alone; scale the columns, for example with "
                f"sklearn.preprocessing.StandardScaler, unless their units are the same."
            )

    def _evaluate(self, data: InMemoryData | None, given: tuple[Any, Any]) -> None:
        super()._evaluate(data, given)
        self._solved = None  # a model keeps no labels of stored rows

    def _labels_and_cost(self, data: InMemoryData) -> tuple[AnyArray, float]:
        if self._solved is not None:
            return self._solved
        labels, distances = nearest(data.X, self.cluster_centers_, threads=True)
        return labels.astype(np.int32), weighted_cost(distances, data.sample_weight)

    def _row_costs(self) -> Any:
        return partial(squared_distances, centers=self.cluster_centers_)

    def predict(self, X: Any) -> Any:
        """Return the number of the nearest center of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int32
            Lazy if X is out of core. A data frame gives a series with the same index or
            partitions. An xarray object with `sample_dims` gives a lazy DataArray with the same
            dimensions and coordinates. It is float64, with NaN if a feature is missing.
        """
        check_is_fitted(self)
        labels = partial(nearest_labels, centers=self.cluster_centers_)
        here = partial(labels, threads=True)
        return self._apply(X, labels, in_memory=here, predicts=True, called=("cluster", "output"))

    def transform(self, X: Any) -> Any:
        """Return the distances of every row to all centers.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), of the dtype of X
            Euclidean, not squared. Lazy if X is out of core. An xarray object with `sample_dims`
            gives a DataArray with the added dimension ``cluster``.
        """
        check_is_fitted(self)
        self._refuse_frames(self, X)
        distances = partial(center_distances, centers=self.cluster_centers_)
        return self._apply(
            X,
            distances,
            in_memory=partial(distances, threads=True),
            called=("distance", "cluster"),
        )
