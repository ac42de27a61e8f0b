"""k-means on a coreset, of data of any size, and the base of all clusterings."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskcoreset._build import default_size
from daskcoreset.core.blocks import find_zero_row
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, caller_level, warn_user
from daskcoreset.core.linalg import dense_rows, unit_rows
from daskcoreset.core.moments import moments_of
from daskcoreset.core.points import deduplicate, spread_out
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import AnyArray, FloatArray, Metric, Points, Sampling
from daskcoreset.core.validation import check_choice, column_shown, too_many
from daskcoreset.estimators.base import (
    AUTO_SIZE,
    BUILD_CONSTRAINTS,
    UnlabelledModel,
    check_size,
    coreset_is_all,
    resolve_for,
)
from daskcoreset.estimators.checks import (
    InMemoryData,
    Rows,
    SparseInput,
    count_features,
    is_frame,
    is_sparse,
    refuse,
)
from daskcoreset.estimators.lazy import RowAttributes, series_in_memory
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.objectives import QuantizationError, check_centroids, cost_on
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.sensitivities.centroids import Representable, Representatives
from daskcoreset.sensitivities.kmeans import StrongKMeans
from daskcoreset.solvers.kmeans import (
    Centers,
    auto_starts,
    center_distances,
    check_init,
    nearest,
    nearest_labels,
    solve,
    weighted_cost,
)
from daskcoreset.solvers.spherical import STEPS, unit_centers

# Share of the variance above which one column decides alone: the others are noise in it. A column
# a hundred times as wide as each of twenty others has as much. Not the rule of kernel machines, of
# ranges, of which one narrow column is enough: pixels at the rim of pictures are that.
_WIDE = 0.998

# What the parameters of all clusterings may be.
CLUSTERING_CONSTRAINTS: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left")],
    **BUILD_CONSTRAINTS,
    "size": AUTO_SIZE,
    "n_init": AUTO_SIZE,
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "compute_inertia": ["boolean"],
}


class ClusteringModel(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn has no annotations
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    RowAttributes,
    UnlabelledModel,
):
    """Base of the clusterings: centers, and the cost of all rows.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d), float64
    """

    n_clusters: int
    n_init: int | Literal["auto"]
    compute_inertia: bool
    cluster_centers_: FloatArray
    coreset_inertia_: float

    @abstractmethod
    def _labels_and_cost(self, data: InMemoryData) -> tuple[AnyArray, float]:
        """Cluster of every row in memory, and their cost."""

    def _cost_in_memory(self, data: InMemoryData) -> float:
        return self._labels_and_cost(data)[1]

    @abstractmethod
    def _cost_on(self, coreset: Coreset) -> float:
        """Cost on a coreset of centroids; those for another cost are an error."""

    @abstractmethod
    def _cost(self, blocks: RowBlocks) -> float:
        """Cost of rows out of core."""

    @abstractmethod
    def _row_costs(self) -> tuple[Any, Any]:
        """Cost of every row, as a function of points; what is wrong with a block, or None."""

    @property
    def _n_starts(self) -> int:
        return auto_starts(self.n_clusters) if self.n_init == "auto" else self.n_init

    def _distinct_centers(self, points: Points, coreset: Coreset) -> FloatArray | None:
        """Return all of fewer distinct rows than clusters, repeated; None if there are enough."""
        n_distinct, k = points.shape[0], self.n_clusters
        if n_distinct >= k:
            return None
        n_rows, whole = int(coreset.provenance["n"]), coreset_is_all(coreset)
        if n_rows < k:
            raise InvalidInputError(
                f"n_samples={n_rows} should be >= n_clusters={k}; lower n_clusters, or pass more "
                f"rows."
            )
        warnings.warn(
            # As scikit-learn says it, to those who filter its warnings.
            f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters ({k}). "
            f"Possibly due to duplicate points in X. So many rows of {'X' if whole else 'coreset_'}"
            f" are distinct and have a positive weight; the other centers repeat them. "
            f"{'Lower' if whole else 'Raise size, or lower'} n_clusters.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )
        centers: FloatArray = dense_rows(points).astype(np.float64)
        repeated: FloatArray = centers[np.arange(k) % n_distinct]
        return repeated

    def _evaluate(self, rows: Rows, given: tuple[Any, Any]) -> None:
        self._labels = self._inertia = None
        self._source = None if isinstance(rows, InMemoryData) else given
        if isinstance(rows, InMemoryData):
            labels, self._inertia = self._labels_and_cost(rows)
            self._labels = rows.as_given(labels)
            if rows.coreset is not None and rows.coreset.of_centroids:
                self._inertia = self.coreset_inertia_
        elif self.compute_inertia:
            self._inertia = self._cost(rows)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of every row; lazily where X is out of core."""
        self.fit(X, y, sample_weight)
        if self._labels is None:
            return self.predict(X)
        return series_in_memory(X, self._labels, "cluster") if is_frame(X) else self._labels

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Return the cluster of every row."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted cost of all rows, as `inertia_` defines it.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Read once where it is out of core.
        y : object
            Ignored.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
        """
        del y
        check_is_fitted(self)
        rows = self._open_rows(X, sample_weight, fitted=True)
        if isinstance(rows, InMemoryData):
            if rows.coreset is not None and rows.coreset.of_centroids:
                return -self._cost_on(rows.coreset)
            return -self._cost_in_memory(rows)
        return -self._cost(rows)

    def centers_to_xarray(self) -> Any:
        """Return the centers as a Dataset, with the names, units and coordinates of the features.

        Returns
        -------
        xarray.Dataset
            Variables as the Dataset, or the DataArray, that the model was fitted on, or that its
            coreset is of, has them, with the dimension ``cluster`` in place of the sample
            dimensions.

        Raises
        ------
        InvalidInputError
            The model was fitted on rows without labels.
        """
        return self._rows_to_xarray("cluster_centers_", "cluster")

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def unit_data(data: InMemoryData, *, drops: bool) -> InMemoryData:
    """Divide rows in memory by their lengths; those of zeros are left out, or refused."""
    rows, lengths = unit_rows(data.X)
    data = replace(data, X=rows)
    if drops:
        return data.take(np.flatnonzero(lengths > 0.0))
    refuse(find_zero_row(lengths, data.weights))
    return data


def squared_distances(points: Points, centers: FloatArray) -> FloatArray:
    """Squared distance of every row from its nearest center."""
    return nearest(points, centers)[1]


class CoresetKMeans(SparseInput, ClusteringModel):
    """k-means of data of any size: a coreset in one read, and scikit-learn's KMeans on it.

    Parameters
    ----------
    n_clusters : int, default=8
        Clusters wanted, k.
    size : int or "auto", default="auto"
        Rows of the coreset; "auto" is the larger of 10,000 and ``100 * n_clusters``.
    method : str or Sensitivity, default="kmeans"
        Construction of the coreset. "kmeans" is ``StrongKMeans(n_clusters)``, whose error is
        relative to the cost of the best k centers, also where clusters are uneven;
        "lightweight" is cheaper to build.
    representatives : {"auto", "rows", "centroids"}, default="auto"
        What the coreset is of: rows, or weighted centroids of small cells of more rows, as in
        `daskcoreset.StrongKMeans`. "auto" takes centroids with ``method="kmeans"`` where rows are
        dense, and else what the construction says: with few points a cluster their solutions are
        nearer to those of all rows, with many there is little between them
        (``docs/guide/clustering.md``).
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" divides every row by its length when its block is read, in `fit` and in whatever
        reads rows later, and makes the centers of length one (spherical k-means): the nearest
        center is that of the largest cosine, costs are twice the sums of cosine distances, and
        `transform` gives the roots of twice the cosine distance. `coreset_` is of unit rows, or
        means of them. A row of zeros has no direction: `fit` treats it as one with NaN, see
        `on_invalid`, and what reads rows later says where it is.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`.
    passes : {1, 2}, default=1
        Reads of the data for the coreset, as in `daskcoreset.build`.
    init : {"k-means++", "random"}, callable or array of shape (k, d), default="k-means++"
        Where k-means on the coreset starts, as in `sklearn.cluster.KMeans`.
    n_init : int or "auto", default="auto"
        Runs of k-means on the coreset, of which the best is kept. "auto" makes 10 for up to
        fifty clusters, ``500 // n_clusters`` for more, and at least three, for single runs end
        in poor optima (measured; see `auto_starts`). One where `init` is
        an array, with a `RuntimeWarning` for more, as in scikit-learn.
    max_iter : int, default=300
        Steps of one run at most, passes over single rows after the best one among them (see
        Notes).
    tol : float, default=1e-4
        A number without a unit: a run ends when the sum of the squared moves of its centers is at
        most `tol` times the mean variance of the columns, as in scikit-learn. Where that variance
        is more than ten times the one within clusters, as with a row far out or groups far apart,
        the best run goes on until the sum is at most `tol` times ten times the latter. The first
        pass over single rows that lowers the cost by no more than `tol` times itself is the last.
    algorithm : {"lloyd", "elkan"}, default="lloyd"
        As in scikit-learn's KMeans, which solves the coreset; both give the same clusters.
    verbose : int, default=0
        Whether every step prints a line.
    copy_x : bool, default=True
        For code that passes it to scikit-learn's KMeans. It changes nothing: the rows of a coreset
        are copies, and X is never written to.
    compute_inertia : bool, default=False
        Whether `fit` reads data that are out of core once more for `inertia_`.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same data, chunks and versions give the same result.
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity in `fit`: an error, or they are left out, as in
        `daskcoreset.build`, also for None; their labels in `labels_` are -1 where X is in memory.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d), float64
        In float64 also for float32 data, whose sums are formed in float64.
    coreset_ : Coreset
        What k-means ran on.
    labels_ : ndarray of shape (n,), int32
        Cluster of every row. Out of core what `predict` gives, a Dask array; a model that was
        pickled has none then.
    inertia_ : float
        Weighted sum of squared distances over all rows to their centers. Out of core a Dask array
        without dimensions, which reads the data when it is computed, unless `compute_inertia` is
        set; `coreset_inertia_` costs nothing.
    coreset_inertia_ : float
        The cost on the coreset, ``coreset_.cost(cluster_centers_)``, which estimates it: too low
        on average, as centers were fitted to the rows drawn: a little of centroids, behind which
        there are many, and far with few rows a cluster (``docs/guide/clustering.md``).
    n_iter_ : int
        Steps of the best run, and passes over single rows after it that moved any.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When fewer rows are distinct than there shall be clusters: centers repeat then.
    CoresetWarning
        When one of several columns holds more than 99.99 % of the variance of the coreset.

    See Also
    --------
    CoresetEstimator : Any estimator of scikit-learn on a coreset.

    Notes
    -----
    What scikit-learn takes (arrays, lists, pandas, SciPy sparse) is checked by scikit-learn
    and answered at once. Everything else that `daskcoreset.build` takes stays out of core:
    `predict` and `transform` return Dask arrays with the chunks of X, computed on demand.

    The solver is scikit-learn's, in float64 and about the mean of the rows. It takes distances from
    products: clusters that lie less than about :math:`10^{-6}` of the whole range apart run into
    one another in it, though not in the coreset.

    Where Lloyd's steps end, Hartigan's go on: single rows of the coreset move to another
    cluster as long as the cost falls, its means having followed them. Clusters of few points
    and categories in one-hot form, which all lie at one distance, gain by it most
    (``docs/guide/clustering.md``). It is left out where `max_iter` ended the best run, and for
    sparse rows of more than :math:`2^{25}` numbers with their zeros.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(100_000, 3), chunks=(25_000, 3))
    >>> model = CoresetKMeans(4, size=1000, random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (4, 3)
    >>> labels = model.predict(X)  # nothing is read yet
    >>> labels[:5].compute().dtype
    dtype('int32')

    References
    ----------
    Lucic, Bachem and Krause (2016), Strong coresets for hard and soft Bregman clustering;
    Telgarsky and Vattani (2010), Hartigan's method: k-means clustering without Voronoi.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CLUSTERING_CONSTRAINTS,
        "representatives": [StrOptions({"auto", "rows", "centroids"})],
        "metric": [StrOptions({"euclidean", "cosine"})],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "verbose": ["verbose"],
        "algorithm": [StrOptions({"lloyd", "elkan"})],
        "copy_x": ["boolean"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        size: int | Literal["auto"] = "auto",
        method: str | Sensitivity[Any] = "kmeans",
        representatives: Literal["auto", "rows", "centroids"] = "auto",
        metric: Metric = "euclidean",
        sampling: Sampling = "systematic",
        passes: Literal[1, 2] = 1,
        init: Any = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        copy_x: bool = True,
        algorithm: Literal["lloyd", "elkan"] = "lloyd",
        compute_inertia: bool = False,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.size = size
        self.method = method
        self.representatives = representatives
        self.metric = metric
        self.sampling = sampling
        self.passes = passes
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.compute_inertia = compute_inertia
        self.random_state = random_state
        self.on_invalid = on_invalid

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validate_in_memory(
        self, X: Any, y: Any, sample_weight: Any, **checks: Any
    ) -> InMemoryData | None:
        data = super()._validate_in_memory(X, y, sample_weight, **checks)
        # The rows of a coreset are as they shall be; centroids of unit rows are shorter.
        if data is None or self.metric == "euclidean" or data.coreset is not None:
            return data
        drops = checks.get("reset", True) and self.on_invalid == "drop"
        return unit_data(data, drops=drops)

    def _open_rows(self, X: Any, sample_weight: Any, *, fitted: bool = False) -> Rows:
        rows = super()._open_rows(X, sample_weight, fitted=fitted)
        return rows.by(self.metric) if isinstance(rows, RowBlocks) else rows

    def _open(self, X: Any, y: Any = None, sample_weight: Any = None) -> RowBlocks:
        return super()._open(X, y, sample_weight).by(self.metric)

    def _built(self, blocks: RowBlocks, **options: Any) -> Coreset:
        return super()._built(blocks.by(self.metric), **options)

    def _construction(self, rows: Rows) -> tuple[Sensitivity[Any], int, int]:
        k = self.n_clusters
        size = default_size(k) if self.size == "auto" else self.size
        check_size(size, k, "cluster")
        strong = isinstance(self.method, str) and self.method == "kmeans"
        method = StrongKMeans(k) if strong else resolve_for(self.method, k)
        method = self._representing(method, strong=strong, sparse=is_sparse(rows))
        if isinstance(self.init, str):
            check_choice("init", self.init, "k-means++", "random")
        elif not callable(self.init):
            check_init(self.init, k, count_features(rows))
        if isinstance(rows, InMemoryData):
            self._check_work(min(size, rows.X.shape[0]), rows.X.shape[1])
        return method, size, k

    def _representing(
        self, method: Sensitivity[Any], *, strong: bool, sparse: bool
    ) -> Sensitivity[Any]:
        """Return the construction with the representatives that are asked for."""
        if self.representatives == "auto":
            if sparse or not strong:
                return method
            wanted: Representatives = "centroids"
        else:
            wanted = self.representatives
        if wanted == getattr(method, "representatives", "rows"):
            return method
        if not isinstance(method, Representable):
            raise InvalidInputError(
                f'representatives="centroids", and {method.name!r} gives rows only; leave it out, '
                f'or pass method="kmeans".'
            )
        return replace(method, representatives=wanted)

    def _solve(self, coreset: Coreset, seed: int) -> None:
        check_centroids(coreset, QuantizationError())
        points, weights, _ = deduplicate(spread_out(coreset.points), coreset.weights)
        self._warn_wide(points, weights)
        distinct = self._distinct_centers(points, coreset)
        if distinct is None:
            self._check_work(points.shape[0], coreset.n_features)
            self.cluster_centers_, self.n_iter_ = self._solved(points, weights, seed)
        else:
            self.cluster_centers_, self.n_iter_ = distinct, 1
        if self.metric == "cosine":
            steps = STEPS if distinct is None else 0
            self.cluster_centers_ = unit_centers(points, weights, self.cluster_centers_, steps)
        # Of rows with threads, and sparse ones as they are.
        rows = InMemoryData(coreset.points, None, coreset.weights)
        centroids = coreset.of_centroids
        self.coreset_inertia_ = self._cost_on(coreset) if centroids else self._cost_in_memory(rows)

    def _cost_on(self, coreset: Coreset) -> float:
        return cost_on(coreset, QuantizationError(), self.cluster_centers_)

    def _solved(self, points: Points, weights: FloatArray, seed: int) -> Centers:
        given = not (isinstance(self.init, str) or callable(self.init))
        return solve(
            points,
            weights,
            self.n_clusters,
            init=self.init,
            # Of an array with several starts scikit-learn warns, and makes one.
            n_init=1 if given and self.n_init == "auto" else self._n_starts,
            max_iter=self.max_iter,
            tol=self.tol,
            seed=seed,
            verbose=self.verbose,
            algorithm=self.algorithm,
        )

    def _warn_wide(self, points: Points, weights: FloatArray) -> None:
        """Warn where one column holds nearly all the variance."""
        if points.shape[1] < 2:
            return
        variance = moments_of(points, weights).m2 / weights.sum()
        widest, total = int(variance.argmax()), float(variance.sum())
        if np.isfinite(total) and variance[widest] > _WIDE * total:
            named = column_shown(widest, getattr(self, "feature_names_in_", None))
            warn_user(
                f"{named} holds more than {100 * _WIDE:g} % of the variance, so that "
                f"the clusters are those of this column; scale the columns, for example with "
                f"sklearn.preprocessing.StandardScaler, unless their units are the same."
            )

    def _check_work(self, n_rows: int, n_features: int) -> None:
        if n_rows < self.n_clusters:
            return
        problem = too_many(self.n_clusters, n_rows, n_features)
        if problem is not None:
            raise InvalidInputError(f"in every step of k-means {problem}")

    def _labels_and_cost(self, data: InMemoryData) -> tuple[AnyArray, float]:
        labels, distances = nearest(data.X, self.cluster_centers_, threads=True)
        return labels.astype(np.int32), weighted_cost(distances, data.sample_weight)

    def _row_costs(self) -> tuple[Any, Any]:
        return partial(squared_distances, centers=self.cluster_centers_), None

    def _cost(self, blocks: RowBlocks) -> float:
        return float(kmeans_cost(blocks, self.cluster_centers_))

    def predict(self, X: Any) -> Any:
        """Return the number of the nearest center of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int32
            Lazy where X is out of core. For a data frame a series with its index, in Dask with its
            partitions; for an xarray object with `sample_dims` a lazy DataArray with its
            dimensions, chunks and coordinates, float64 with NaN where a feature is missing.
        """
        check_is_fitted(self)
        labels = partial(nearest_labels, centers=self.cluster_centers_)
        return self._apply(
            X,
            labels,
            np.int32,
            in_memory=partial(labels, threads=True),
            predicts=True,
            called=("cluster", "output"),
        )

    def transform(self, X: Any) -> Any:
        """Distances of every row to all centers.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), of the dtype of X
            Euclidean, not squared. Lazy where X is out of core; for an xarray object with
            `sample_dims` a DataArray with the dimension ``cluster`` beside them.
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
