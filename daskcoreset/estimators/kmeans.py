"""k-means on a coreset, of data of any size, and the base of all clusterings."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskcoreset.build import default_size
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.points import deduplicate, spread_out
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import AnyArray, FloatArray, Sampling
from daskcoreset.core.validation import check_choice, too_many
from daskcoreset.estimators.base import (
    AUTO_SIZE,
    BUILD_CONSTRAINTS,
    InMemoryData,
    Rows,
    SparseInput,
    UnlabelledModel,
    check_size,
    coreset_is_all,
    count_features,
)
from daskcoreset.estimators.labelled import is_frame, series_in_memory
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.inputs.cubes import dataset_of
from daskcoreset.inputs.options import ReadKeywords, takes_reading
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.sensitivities import Sensitivity, resolve_method
from daskcoreset.sensitivities.kmeans import StrongKMeans
from daskcoreset.solvers.kmeans import (
    center_distances,
    check_init,
    nearest,
    nearest_labels,
    solve,
    weighted_cost,
)

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
    _labels: AnyArray | None
    _inertia: float | None

    @abstractmethod
    def _labels_and_cost(self, data: InMemoryData) -> tuple[AnyArray, float]:
        """Cluster of every row in memory, and their cost."""

    def _cost_in_memory(self, data: InMemoryData) -> float:
        return self._labels_and_cost(data)[1]

    @abstractmethod
    def _cost(self, blocks: RowBlocks) -> float:
        """Cost of rows out of core."""

    @property
    def _n_starts(self) -> int:
        return auto_starts(self.n_clusters) if self.n_init == "auto" else self.n_init

    def _evaluate(self, rows: Rows) -> None:
        self._labels = self._inertia = None
        if isinstance(rows, InMemoryData):
            self._labels, self._inertia = self._labels_and_cost(rows)
        elif self.compute_inertia:
            self._inertia = self._cost(rows)

    @property
    def labels_(self) -> AnyArray:
        """Cluster of every row, of data in memory."""
        check_is_fitted(self)
        if self._labels is None:
            raise AttributeError(
                "labels_ is there only for data in memory; call predict(X), which is lazy out of "
                "core."
            )
        return self._labels

    @property
    def inertia_(self) -> float:
        """Cost of the clustering over all rows."""
        check_is_fitted(self)
        if self._inertia is None:
            raise AttributeError(
                "inertia_ needs one more read of data out of core; set compute_inertia=True, call "
                "-score(X), or take the coreset's estimate, coreset_inertia_."
            )
        return self._inertia

    @takes_reading
    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, **_reading: Unpack[ReadKeywords]
    ) -> Any:
        """Fit, and return the cluster of every row; lazily where X is out of core."""
        self.fit(X, y, sample_weight)
        if self._labels is None:
            return self.predict(X)
        return series_in_memory(X, self._labels, "cluster") if is_frame(X) else self._labels

    @abstractmethod
    @takes_reading
    def predict(self, X: Any, **_reading: Unpack[ReadKeywords]) -> Any:
        """Return the cluster of every row."""

    @takes_reading
    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, **_reading: Unpack[ReadKeywords]
    ) -> float:
        """Minus the weighted cost of all rows, as `inertia_` defines it.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Read once where it is out of core.
        y : object
            Ignored.
        sample_weight : array-like of shape (n,), or str, optional
        storage_options, columns, missing_chunks, sample_dims, feature_dims
            As in `daskcoreset.build`.

        Returns
        -------
        float
        """
        del y
        check_is_fitted(self)
        rows = self._open_rows(X, sample_weight, fitted=True)
        if isinstance(rows, InMemoryData):
            return -self._cost_in_memory(rows)
        return -self._cost(rows)

    def centers_to_xarray(self) -> Any:
        """Return the centers as a Dataset, with the names, units and coordinates of the features.

        Returns
        -------
        xarray.Dataset
            Variables as the Dataset, or the DataArray, that the model was fitted on has them, with
            the dimension ``cluster`` in place of the sample dimensions.

        Raises
        ------
        InvalidInputError
            The model was fitted on rows without labels.
        """
        check_is_fitted(self)
        if self._cube is None:
            raise InvalidInputError(
                "the model was fitted on rows, whose columns have no units; fit it on an xarray "
                "object with sample_dims, or take cluster_centers_."
            )
        return dataset_of(self._cube.features, self.cluster_centers_, "cluster")

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def auto_starts(n_clusters: int) -> int:
    """Return the runs of k-means for ``n_init="auto"``.

    Measured on coresets of uneven mixtures, by the cost over all data: with 10 clusters the best
    of ten runs gains 2.4 % on one; with 100 clusters in one to a thousand, single runs lie 2
    to 9 % above the best of three; with 500 three gain 0.2 %. A run on a coreset takes a
    fraction of a read, so that three at least cost little; over many clusters chance averages out.

    Examples
    --------
    >>> [auto_starts(k) for k in (2, 8, 30, 100, 500)]
    [10, 10, 10, 5, 3]
    """
    return min(10, max(3, 500 // n_clusters))


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
        an array.
    max_iter : int, default=300
        Steps of one run at most.
    tol : float, default=1e-4
        A run ends when its centers move less, relative to the variance of the data.
    compute_inertia : bool, default=False
        Whether to read data that are out of core once more for `inertia_`.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same data, chunks and versions give the same result.
    timeout : float or None, default=None
        Seconds that a call which reads all rows, such as ``fit`` and ``score``, may take; see
        `daskcoreset.build`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d), float64
        In float64 also for float32 data, whose sums are formed in float64.
    coreset_ : Coreset
        What k-means ran on.
    labels_ : ndarray of shape (n,), int32
        Cluster of every row; only of data in memory. Elsewhere `predict` gives them lazily.
    inertia_ : float
        Weighted sum of squared distances over all rows to their centers, where the data are
        in memory or `compute_inertia` is set. Otherwise there is `coreset_inertia_`.
    coreset_inertia_ : float
        The same sum over the coreset, which estimates it.
    n_iter_ : int
        Steps of the best run.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

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
    Lucic, Bachem and Krause (2016), Strong coresets for hard and soft Bregman clustering.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CLUSTERING_CONSTRAINTS,
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        size: int | Literal["auto"] = "auto",
        method: str | Sensitivity[Any] = "kmeans",
        sampling: Sampling = "systematic",
        passes: Literal[1, 2] = 1,
        init: Any = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        compute_inertia: bool = False,
        random_state: RandomState = None,
        timeout: float | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.size = size
        self.method = method
        self.sampling = sampling
        self.passes = passes
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.compute_inertia = compute_inertia
        self.random_state = random_state
        self.timeout = timeout

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _construction(self, rows: Rows) -> tuple[Sensitivity[Any], int, int]:
        k = self.n_clusters
        size = default_size(k) if self.size == "auto" else self.size
        check_size(size, k, "cluster")
        strong = isinstance(self.method, str) and self.method == "kmeans"
        method = StrongKMeans(k) if strong else resolve_method(self.method)
        if isinstance(self.init, str):
            check_choice("init", self.init, "k-means++", "random")
        elif not callable(self.init):
            check_init(self.init, k, count_features(rows))
        if isinstance(rows, InMemoryData):
            self._check_work(min(size, rows.X.shape[0]), rows.X.shape[1])
        return method, size, k

    def _solve(self, coreset: Coreset, seed: int) -> None:
        points, weights, _ = deduplicate(spread_out(coreset.points), coreset.weights)
        if points.shape[0] < self.n_clusters:
            remedy = "the coreset are distinct; raise size, or lower n_clusters."
            if coreset_is_all(coreset):
                remedy = "X are distinct and have a positive weight; lower n_clusters."
            raise InvalidInputError(
                f"n_samples={points.shape[0]} should be >= n_clusters={self.n_clusters}: so many "
                f"rows of {remedy}"
            )
        self._check_work(points.shape[0], coreset.n_features)
        self.cluster_centers_, self.n_iter_ = solve(
            points,
            weights,
            self.n_clusters,
            init=self.init,
            n_init=self._n_starts,
            max_iter=self.max_iter,
            tol=self.tol,
            seed=seed,
        )
        sample = InMemoryData(coreset.points, None, coreset.weights)
        self.coreset_inertia_ = self._cost_in_memory(sample)

    def _check_work(self, n_rows: int, n_features: int) -> None:
        if n_rows < self.n_clusters:
            return
        problem = too_many(self.n_clusters, n_rows, n_features)
        if problem is not None:
            raise InvalidInputError(f"in every step of k-means {problem}")

    def _labels_and_cost(self, data: InMemoryData) -> tuple[AnyArray, float]:
        labels, distances = nearest(data.X, self.cluster_centers_, threads=True)
        return labels.astype(np.int32), weighted_cost(distances, data.sample_weight)

    def _cost(self, blocks: RowBlocks) -> float:
        return float(kmeans_cost(blocks, self.cluster_centers_))

    @takes_reading
    def predict(self, X: Any, **_reading: Unpack[ReadKeywords]) -> Any:
        """Return the number of the nearest center of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        storage_options, columns, missing_chunks, sample_dims, feature_dims
            As in `daskcoreset.build`.

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

    @takes_reading
    def transform(self, X: Any, **_reading: Unpack[ReadKeywords]) -> Any:
        """Distances of every row to all centers.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        storage_options, columns, missing_chunks, sample_dims, feature_dims
            As in `daskcoreset.build`.

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
