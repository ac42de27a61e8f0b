"""Bregman clustering on a coreset, of data of any size."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from daskcoreset.build import default_size
from daskcoreset.core.blocks import Block, InvalidRow
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.linalg import tiles
from daskcoreset.core.moments import Scatter, merge_scatters, scatter_of
from daskcoreset.core.points import deduplicate, spread_out
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.estimators.base import (
    CoresetModel,
    InMemoryData,
    auto_starts,
    is_in_memory,
    solver_seed,
)
from daskcoreset.estimators.scoring import weighted_sum
from daskcoreset.execution.fold import map_reduce
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.sensitivities import BregmanLightweight, Sensitivity, StrongBregman, resolve_method
from daskcoreset.solvers.bregman import bregman_hard
from daskcoreset.solvers.bregman_soft import SoftClustering, bregman_soft
from daskcoreset.solvers.divergences import (
    Divergence,
    SquaredMahalanobis,
    domain_problem,
    resolve_divergence,
)

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray, Points, Sampling
    from daskcoreset.solvers.bregman import HardClustering

__all__ = ["Answer", "CoresetBregman", "DivergenceModel", "outside"]


def outside(divergence: Divergence, points: Points) -> None:
    """Raise where a row in memory lies outside the domain.

    Raises
    ------
    InvalidInputError
        For the first such row.
    """
    problem = divergence.problem(points)
    if problem is not None:
        raise problem.error(0)


@dataclass(frozen=True, eq=False)
class Answer:
    """Answers of a clustering for the rows of a block.

    Attributes
    ----------
    solution : HardClustering or SoftClustering
    what : {"labels", "divergences", "responsibilities", "costs"}
    """

    solution: HardClustering | SoftClustering
    what: Literal["labels", "divergences", "responsibilities", "costs"]

    def __call__(self, block: Block) -> AnyArray:
        """Return them for a block out of core, whose place in the data is not known here."""
        problem = self.solution.divergence.problem(block.points)
        if problem is not None:
            raise InvalidRow(problem.message).error(0)
        return self.of(block.points)

    def of(self, points: Points) -> AnyArray:
        """Return them for rows inside the domain."""
        if self.what == "labels":
            return self.solution.labels(points).astype(np.int32)
        if self.what == "divergences":
            return self._divergences(points)
        return getattr(self.solution, self.what)(points)  # type: ignore[no-any-return]

    def _divergences(self, points: Points) -> AnyArray:
        centers = self.solution.centers
        found = np.empty((points.shape[0], len(centers)), dtype=points.dtype)
        for rows in tiles(points.shape[0], max(centers.shape)):
            found[rows] = self.solution.divergence.divergence(points[rows], centers)
        return found


@dataclass(frozen=True, eq=False)
class _Check:
    divergence: Divergence

    def __call__(self, block: Block) -> InvalidRow | None:
        return domain_problem(self.divergence, block)


def _is_soft(model: Any) -> bool:
    if not model.soft:
        raise AttributeError("predict_proba is there only with soft=True; set it, or use predict.")
    return True


class DivergenceModel(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn has no annotations
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    CoresetModel,
):
    """Answers by the centers that `fit` of a subclass has found.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d), float64
    divergence_ : Divergence
    """

    divergence: Any
    soft: bool
    cluster_centers_: FloatArray
    divergence_: Divergence
    _solution: HardClustering | SoftClustering
    _labels: AnyArray | None
    _inertia: float | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        try:
            divergence = resolve_divergence(self.divergence)
        except (InvalidInputError, InvalidTypeError):  # which fit reports
            return tags
        negative, zero = divergence.valid(np.array([-1.0, 0.0]))
        tags.input_tags.positive_only = not negative
        # With predict_proba scikit-learn's check of sparse input takes a model for a classifier.
        tags.input_tags.sparse = bool(zero) and not self.soft
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
        """Cost of the clustering over all rows."""
        check_is_fitted(self)
        if self._inertia is None:
            raise AttributeError(
                "inertia_ needs one more read of data out of core; set compute_inertia=True, call "
                "-score(X), or take the coreset's estimate, coreset_inertia_."
            )
        return self._inertia

    @property
    def weights_(self) -> FloatArray:
        """Weights of the components, of a soft clustering."""
        check_is_fitted(self)
        if isinstance(self._solution, SoftClustering):
            return self._solution.mixing
        raise AttributeError("weights_ is there only with soft=True; set it before fit.")

    def _ask(
        self,
        X: Any,
        what: Literal["labels", "divergences", "responsibilities"],
        dtype: Any = None,
    ) -> Any:
        answer = Answer(self._solution, what)

        def here(points: Points) -> AnyArray:
            outside(self.divergence_, points)
            return answer.of(points)

        columns = None if what == "labels" else len(self.cluster_centers_)
        return self._map(
            X, answer, here, lambda found: (found if dtype is None else dtype, columns)
        )

    def predict(self, X: Any) -> Any:
        """Return the number of the nearest center of every row, or of its likeliest component.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int32
            Lazy where X is out of core.

        Raises
        ------
        InvalidInputError
            If a row lies outside the domain of the divergence.
        """
        check_is_fitted(self)
        return self._ask(X, "labels", np.int32)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of every row; lazily where X is out of core."""
        self.fit(X, y, sample_weight)
        return self.predict(X) if self._labels is None else self._labels

    @available_if(_is_soft)  # type: ignore[untyped-decorator] # of scikit-learn
    def predict_proba(self, X: Any) -> Any:
        """Probability of every component for every row, with ``soft=True``.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), float64
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        return self._ask(X, "responsibilities", np.float64)

    def transform(self, X: Any) -> Any:
        """Divergences of every row to all centers.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), of the dtype of X
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        if not is_in_memory(X):
            self._refuse_frames(self)
        return self._ask(X, "divergences")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        r"""Minus the weighted cost of all rows, as `inertia_` defines it.

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
        return -(self._read_cost(X, sample_weight) if held is None else self._cost(held))

    def _cost(self, held: InMemoryData) -> float:
        """Cost of rows in memory."""
        points, u = held.X, held.sample_weight
        u = np.ones(points.shape[0]) if u is None else u
        problem = domain_problem(self.divergence_, Block(points, u))
        if problem is not None:
            raise problem.error(0)
        counted = np.flatnonzero(u > 0)
        return float(u[counted] @ self._solution.costs(points[counted]))

    def _read_cost(self, X: Any, sample_weight: Any) -> float:
        """Cost of rows out of core."""
        blocks = self._open(X, None, sample_weight)
        answer, check = Answer(self._solution, "costs"), _Check(self.divergence_)
        return weighted_sum(blocks, answer, check)[1]

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


class CoresetBregman(DivergenceModel):
    r"""Hard or soft clustering by a Bregman divergence, of data of any size.

    A coreset in one read, and `daskcoreset.solvers.bregman` on it.

    Parameters
    ----------
    n_clusters : int, default=8
        Clusters or components wanted, k.
    divergence : str or Divergence, default="squared_euclidean"
        "squared_euclidean", "mahalanobis", "kl" or "itakura_saito", or a divergence with its
        parameters. The last two are for positive data. The precision of "mahalanobis" is the
        inverse of the covariance of all rows, which costs one more read.
    soft : bool, default=False
        Whether to fit a mixture of the exponential family that belongs to the divergence,
        instead of giving every row to one center.
    size : int or "auto", default="auto"
        Rows of the coreset; "auto" is the larger of 10,000 and ``100 * n_clusters``.
    method : str or Sensitivity, default="strong_bregman"
        Construction of the coreset. "strong_bregman" and "lightweight_bregman" take the
        divergence; the former also keeps small clusters, the latter is cheaper to build.
    sampling : {"systematic", "multinomial"}, default="systematic"
        As in `daskcoreset.build`.
    passes : {1, 2}, default=1
        Reads of the data for the coreset, as in `daskcoreset.build`.
    init : {"k-means++"} or array of shape (k, d), default="k-means++"
        Where the solver starts: seeds drawn by the divergence, or given centers.
    n_init : int or "auto", default="auto"
        Starts of the hard clustering, of which the best is kept; "auto" as in `CoresetKMeans`.
        One where `init` is an array.
    max_iter : int, default=300
        Steps of one run at most.
    tol : float, default=1e-6
        A run ends when a step lowers the cost by less: by this share of it, or, where
        ``soft=True``, by this per unit of weight.
    compute_inertia : bool, default=False
        Whether to read data that are out of core once more for `inertia_`.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same data, chunks and versions give the same result.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d), float64
    weights_ : ndarray of shape (k,), float64
        Weights of the components; only with ``soft=True``.
    divergence_ : Divergence
        As used, with its precision where that was estimated.
    coreset_ : Coreset
        What the solver ran on.
    labels_ : ndarray of shape (n,), int32
        Cluster of every row; only of data in memory.
    inertia_ : float
        :math:`\sum_x u(x) \min_j d(x, c_j)` over all rows, or :math:`-\sum_x u(x) \ln \sum_j
        \pi_j e^{-d(x, c_j)}` with ``soft=True``, where the data are in memory or
        `compute_inertia` is set.
    coreset_inertia_ : float
        The same over the coreset, which estimates it.
    n_iter_ : int
        Steps of the best run.
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    See Also
    --------
    CoresetKMeans : For squared Euclidean distances, with faster loops.
    CoresetGaussianMixture : Gaussians with covariances of their own.

    Notes
    -----
    Data in memory are answered at once; everything else that `daskcoreset.build` takes stays
    out of core, and `predict`, `predict_proba` and `transform` return Dask arrays. Sparse rows
    are taken in Dask blocks, and, with ``soft=False``, in memory; not by divergences of positive
    data, which have no zeros.

    Examples
    --------
    >>> import dask.array as da
    >>> rng = da.random.default_rng(0)
    >>> X = rng.poisson(5.0, size=(100_000, 2), chunks=(25_000, 2)) + 0.5
    >>> model = CoresetBregman(3, divergence="kl", size=1000, random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (3, 2)
    >>> labels = model.predict(X)  # nothing is read yet
    >>> labels[:5].compute().dtype
    dtype('int32')

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), Clustering with Bregman Divergences; Lucic,
    Bachem and Krause (2016), Strong coresets for hard and soft Bregman clustering.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "divergence": [str, Divergence],
        "soft": ["boolean"],
        "size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "method": [str, Sensitivity],
        "sampling": [StrOptions({"systematic", "multinomial"})],
        "passes": [Interval(Integral, 1, 2, closed="both")],
        "init": [StrOptions({"k-means++"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "compute_inertia": ["boolean"],
    }

    coreset_inertia_: float
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        divergence: str | Divergence = "squared_euclidean",
        soft: bool = False,
        size: int | Literal["auto"] = "auto",
        method: str | Sensitivity[Any] = "strong_bregman",
        sampling: Sampling = "systematic",
        passes: Literal[1, 2] = 1,
        init: Any = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-6,
        compute_inertia: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.divergence = divergence
        self.soft = soft
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
        CoresetBregman
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, a row lies outside the domain of the divergence (the
            first one is named; in memory also a row of weight zero, for `labels_`), a
            covariance is singular, or fewer rows than `n_clusters` are distinct.
        """
        del y
        self._validate_params()
        divergence = resolve_divergence(self.divergence)
        size = default_size(self.n_clusters) if self.size == "auto" else self.size
        if size < self.n_clusters:
            raise InvalidInputError(
                f"size={size} is below n_clusters={self.n_clusters}; raise size, a hundred rows "
                f"a cluster are a good start."
            )
        held = self._hold(X, None, sample_weight)
        if held is not None:
            outside(divergence, held.X)
        divergence = _estimated(divergence, held, X, sample_weight)
        seed = resolve_seed(self.random_state)
        data, method = held or (X, None, sample_weight), self._construction(divergence)
        self.coreset_ = self._coreset_of(
            data, size=size, method=method, seed=seed, n_clusters=self.n_clusters
        )
        self._solve(divergence, solver_seed(seed))
        self._labels = None if held is None else self._solution.labels(held.X).astype(np.int32)
        if held is not None:
            self._inertia = self._cost(held)
        else:
            self._inertia = self._read_cost(X, sample_weight) if self.compute_inertia else None
        return self

    def _construction(self, divergence: Divergence) -> Sensitivity[Any]:
        if self.method == StrongBregman.name:
            return StrongBregman(self.n_clusters, divergence)
        if self.method == BregmanLightweight.name:
            return BregmanLightweight(divergence)
        return resolve_method(self.method)

    def _solve(self, divergence: Divergence, seed: int) -> None:
        points, weights, _ = deduplicate(spread_out(self.coreset_.points), self.coreset_.weights)
        if points.shape[0] < self.n_clusters:
            whole = self.coreset_.provenance["m"] == self.coreset_.provenance["n"]
            raise InvalidInputError(
                f"n_samples={points.shape[0]} should be >= n_clusters={self.n_clusters}: so many "
                f"rows of {'X' if whole else 'the coreset'} are distinct and have a positive "
                f"weight; {'' if whole else 'raise size, or '}lower n_clusters."
            )
        solve = bregman_soft if self.soft else bregman_hard
        found = solve(
            points,
            self.n_clusters,
            divergence=divergence,
            sample_weight=weights,
            init=None if isinstance(self.init, str) else self.init,
            n_init=auto_starts(self.n_clusters) if self.n_init == "auto" else self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=seed,
        )
        self._solution, self.divergence_ = found, found.divergence
        self.cluster_centers_, self.coreset_inertia_ = found.centers, found.cost
        self.n_iter_, self.converged_ = found.n_iter, found.converged


def _estimated(
    divergence: Divergence, held: InMemoryData | None, X: Any, sample_weight: Any
) -> Divergence:
    """Return the divergence with the precision of all rows, where it is to be estimated."""
    if not isinstance(divergence, SquaredMahalanobis) or divergence.precision is not None:
        return divergence
    if held is None:
        blocks = row_blocks(X, None, sample_weight)
        scatter: Scatter = map_reduce(blocks, _scatter_of_block, merge_scatters).value
    else:
        u = np.ones(held.X.shape[0]) if held.sample_weight is None else held.sample_weight
        scatter = scatter_of(held.X, u)
    if scatter.weight == 0.0:
        raise InvalidInputError(
            "sample_weight is zero on every row; give at least one row a positive weight."
        )
    return SquaredMahalanobis.estimated(scatter.covariance)


def _scatter_of_block(block: Block, number: int, given: object) -> Scatter:
    del number, given
    return scatter_of(block.points, block.weights)
