"""k-means on a coreset, of data of any size."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskcoreset.build import default_size
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.points import deduplicate, spread_out
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.validation import too_many
from daskcoreset.estimators.base import (
    CoresetModel,
    InMemoryData,
    auto_starts,
    is_in_memory,
    solver_seed,
)
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.sensitivities import Sensitivity, resolve_method
from daskcoreset.sensitivities.kmeans import StrongKMeans
from daskcoreset.solvers.kmeans import Distances, Labels, check_init, nearest, solve, weighted_cost

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray, Points, Sampling

__all__ = ["CentersModel", "CoresetKMeans"]


class CentersModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, CoresetModel):  # type: ignore[misc] # scikit-learn has no annotations
    """Answers by the centers that `fit` of a subclass has found.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d), float64
    """

    cluster_centers_: FloatArray
    _labels: AnyArray | None
    _inertia: float | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

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
        """Cost of the centers over all rows."""
        check_is_fitted(self)
        if self._inertia is None:
            raise AttributeError(
                "inertia_ needs one more read of data out of core; set compute_inertia=True, call "
                "-score(X), or take the coreset's estimate, coreset_inertia_."
            )
        return self._inertia

    def predict(self, X: Any) -> Any:
        """Return the number of the nearest center of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int32
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        labels = Labels(self.cluster_centers_)
        return self._map(
            X, labels, lambda rows: labels.of(rows, threads=True), lambda _: (np.int32, None)
        )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of every row; lazily where X is out of core."""
        self.fit(X, y, sample_weight)
        return self.predict(X) if self._labels is None else self._labels

    def transform(self, X: Any) -> Any:
        """Distances of every row to all centers.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), of the dtype of X
            Euclidean, not squared. Lazy where X is out of core.
        """
        check_is_fitted(self)
        distances = Distances(self.cluster_centers_)
        if not is_in_memory(X):
            self._refuse_frames(self)
        columns = self._n_features_out
        return self._map(
            X,
            distances,
            lambda rows: distances.of(rows, threads=True),
            lambda dtype: (dtype, columns),
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of squared distances of all rows to their centers.

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
        held = self._hold(X, None, sample_weight, reset=False)
        if held is not None:
            return -self._cost(held.X, held.sample_weight)
        self._open(X, None, sample_weight)  # for its checks
        return -float(kmeans_cost(X, self.cluster_centers_, sample_weight))

    def _cost(self, points: Points, weights: FloatArray | None) -> float:
        distances = nearest(points, self.cluster_centers_, threads=True)[1]
        return weighted_cost(distances, weights)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


class CoresetKMeans(CentersModel):
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
        in poor optima (measured; see `daskcoreset.estimators.base`). One where `init` is
        an array.
    max_iter : int, default=300
        Steps of one run at most.
    tol : float, default=1e-4
        A run ends when its centers move less, relative to the variance of the data.
    compute_inertia : bool, default=False
        Whether to read data that are out of core once more for `inertia_`.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same data, chunks and versions give the same result.

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
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "method": [str, Sensitivity],
        "sampling": [StrOptions({"systematic", "multinomial"})],
        "passes": [Interval(Integral, 1, 2, closed="both")],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "compute_inertia": ["boolean"],
    }

    coreset_inertia_: float
    n_iter_: int

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Build the coreset, and cluster it.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : object
            Ignored.
        sample_weight : array-like of shape (n,), or str, optional
            Weights of the rows; a string where `daskcoreset.build` knows names.

        Returns
        -------
        CoresetKMeans
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, or fewer rows than `n_clusters` are distinct.
        """
        del y
        self._validate_params()
        method, size = self._construction()
        held = self._hold(X, None, sample_weight)
        if not (isinstance(self.init, str) or callable(self.init)):
            check_init(self.init, self.n_clusters, self._count_features(held, X))
        if held is not None:
            self._check_work(min(size, held.X.shape[0]), held.X.shape[1])
        seed = resolve_seed(self.random_state)
        data = held or (X, None, sample_weight)
        self.coreset_ = self._coreset_of(
            data, size=size, method=method, seed=seed, n_clusters=self.n_clusters
        )
        points, weights, _ = deduplicate(spread_out(self.coreset_.points), self.coreset_.weights)
        self._check_distinct(points.shape[0])
        self._check_work(points.shape[0], self.coreset_.n_features)
        self.cluster_centers_, self.n_iter_ = solve(
            points,
            weights,
            self.n_clusters,
            init=self.init,
            n_init=auto_starts(self.n_clusters) if self.n_init == "auto" else self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            seed=solver_seed(seed),
        )
        self.coreset_inertia_ = self._cost(self.coreset_.points, self.coreset_.weights)
        self._labels, self._inertia = self._on_all(held, X, sample_weight)
        return self

    def _construction(self) -> tuple[Sensitivity[Any], int]:
        size = default_size(self.n_clusters) if self.size == "auto" else self.size
        if size < self.n_clusters:
            raise InvalidInputError(
                f"size={size} is below n_clusters={self.n_clusters}; raise size, a hundred rows "
                f"a cluster are a good start."
            )
        strong = isinstance(self.method, str) and self.method == "kmeans"
        return StrongKMeans(self.n_clusters) if strong else resolve_method(self.method), size

    def _check_work(self, n_rows: int, n_features: int) -> None:
        found = None if n_rows < self.n_clusters else too_many(self.n_clusters, n_rows, n_features)
        if found is not None:
            raise InvalidInputError(f"in every step of k-means {found}")

    def _check_distinct(self, n_distinct: int) -> None:
        if n_distinct >= self.n_clusters:
            return
        found = f"n_samples={n_distinct} should be >= n_clusters={self.n_clusters}"
        if self.coreset_.provenance["m"] == self.coreset_.provenance["n"]:
            raise InvalidInputError(
                f"{found}: so many rows of X are distinct and have a positive weight; lower "
                f"n_clusters."
            )
        raise InvalidInputError(
            f"{found}: so many rows of the coreset are distinct; raise size, or lower n_clusters."
        )

    def _on_all(
        self, held: InMemoryData | None, X: Any, sample_weight: Any
    ) -> tuple[AnyArray | None, float | None]:
        """Labels and cost of all rows, as far as they are wanted."""
        if held is not None:
            labels, distances = nearest(held.X, self.cluster_centers_, threads=True)
            return labels.astype(np.int32), weighted_cost(distances, held.sample_weight)
        if self.compute_inertia:
            return None, kmeans_cost(X, self.cluster_centers_, sample_weight)
        return None, None
