"""Mixtures of clusters as lazy arrays, with imbalance, outliers and heavy tails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import check_flag
from daskcoreset.datasets.lazy import (
    Chunks,
    Part,
    block_stream,
    check_count,
    check_dtype,
    check_real,
    lazy_arrays,
)

if TYPE_CHECKING:
    import dask.array as da
    import numpy.typing as npt

_TILE = 4096  # rows shifted at a time: float64 temporaries stay small


@dataclass(frozen=True, eq=False)
class Giants:
    """Rows that stand in place of some of a mixture.

    Attributes
    ----------
    points : ndarray of shape (g, d), float64
    positions : ndarray of shape (g,), int64
        Their row numbers, increasing.
    """

    points: FloatArray
    positions: IndexArray

    def within(self, start: int, stop: int) -> tuple[IndexArray, FloatArray]:
        """Return where in a block giants stand, and which."""
        in_block = slice(*np.searchsorted(self.positions, [start, stop]))
        return self.positions[in_block] - start, self.points[in_block]


@dataclass(frozen=True, eq=False)
class Components:
    """Spherical components; the last one is of the outliers, whose label is -1.

    Attributes
    ----------
    seed : int
        Root seed.
    n : int
        Rows in all, needed to place clusters when rows are not shuffled.
    centers : ndarray of shape (k + 1, d)
        Centres of the clusters and, last, of the outliers.
    spreads : ndarray of shape (k + 1,)
        Standard deviations in every coordinate.
    shares : ndarray of shape (k,)
        Shares of the clusters among the rows that are no outliers; they sum to one.
    dtype : dtype
        Of the points.
    outliers : float, default=0.0
        Probability that a row is an outlier.
    dof : float, default=inf
        Degrees of freedom of Student's t; infinity for normal clusters.
    shuffle : bool, default=True
        Whether a row's cluster is drawn or given by its place.
    giants : Giants or None, default=None
        Rows that stand in place of some; their label is -1, too.
    """

    seed: int
    n: int
    centers: FloatArray
    spreads: FloatArray
    shares: FloatArray
    dtype: np.dtype[Any]
    outliers: float = 0.0
    dof: float = math.inf
    shuffle: bool = True
    giants: Giants | None = None

    def labels(self, block: int, start: int, stop: int) -> IndexArray:
        """Return the numbers of the clusters of the rows of one block, -1 for outliers."""
        rng = block_stream(self.seed, Part.LABELS, block)
        if self.shuffle:
            position = rng.random(stop - start)
        else:
            position = (np.arange(start, stop) + 0.5) / self.n
        bounds = np.cumsum(self.shares)[:-1]
        labels = np.searchsorted(bounds, position, side="right").astype(np.int64, copy=False)
        if self.outliers > 0:
            labels[rng.random(stop - start) < self.outliers] = -1
        if self.giants is not None:
            labels[self.giants.within(start, stop)[0]] = -1
        return labels

    def points(self, block: int, start: int, stop: int) -> AnyArray:
        """Return the points of one block."""
        labels = self.labels(block, start, stop)
        rng = block_stream(self.seed, Part.POINTS, block)
        points = rng.standard_normal((stop - start, self.centers.shape[1]), dtype=self.dtype)
        radii = self.spreads[labels]
        if math.isfinite(self.dof):
            radii = radii * np.sqrt(self.dof / rng.chisquare(self.dof, size=stop - start))
        for low in range(0, stop - start, _TILE):
            tile = slice(low, low + _TILE)
            # One rounding, from float64, so that a large offset costs no more than it must.
            points[tile] = radii[tile, None] * points[tile] + self.centers[labels[tile]]
        if self.giants is not None:
            rows, giants = self.giants.within(start, stop)
            points[rows] = giants
        return points

    def arrays(self, kind: str, chunks: Chunks) -> tuple[da.Array, da.Array]:
        """Return points and labels as lazy arrays whose names begin with `kind`."""
        return lazy_arrays(self, kind, chunks, shape=(self.n, self.centers.shape[1]))


def make_mixture(
    n: int,
    d: int,
    *,
    n_clusters: int = 10,
    imbalance: float = 1.0,
    center_scale: float = 10.0,
    spread: float = 1.0,
    outliers: float = 0.0,
    outlier_scale: float = 10.0,
    offset: float = 0.0,
    dof: float | None = None,
    shuffle: bool = True,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
    random_state: RandomState = None,
) -> tuple[da.Array, da.Array]:
    r"""Mixture of spherical clusters with outliers, as lazy arrays.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    n_clusters : int, default=10
        Clusters. Centres are drawn from :math:`N(o, s^2 I)` with `offset` o and
        `center_scale` s.
    imbalance : float, default=1.0
        Share of the largest cluster over that of the smallest; shares fall geometrically
        in between. 1 makes all alike.
    center_scale : float, default=10.0
        Standard deviation of the centres. With `spread` 1 the clusters are well apart.
    spread : float, default=1.0
        Standard deviation of every cluster in each coordinate.
    outliers : float, default=0.0
        Probability that a row is an outlier, in [0, 1].
    outlier_scale : float, default=10.0
        Outliers are normal about `offset` with standard deviation
        ``outlier_scale * center_scale``.
    offset : float, default=0.0
        Added to every coordinate. A large one, such as 1e6, shows cancellation in sums.
    dof : float, optional
        Degrees of freedom, at least 1, if the clusters and outliers shall follow Student's
        t instead of the normal law. Of at most 2 means infinite variance.
    shuffle : bool, default=True
        If true, the cluster of a row is drawn. If false, rows are sorted by cluster, so
        that blocks differ as much as they can.
    chunks : int or "auto", default="auto"
        Rows per block; "auto" makes blocks of about 16 MiB.
    dtype : dtype, default="float32"
        float32, which is what large data are stored in, or float64.
    random_state : int, Generator, RandomState or None, default=None
        Seed. None takes fresh entropy once, when the arrays are defined.

    Returns
    -------
    X : dask.array.Array of shape (n, d)
        Points.
    y : dask.array.Array of shape (n,), int64
        Number of the cluster, largest cluster first, and -1 for outliers.

    Raises
    ------
    InvalidInputError
        If an argument lies outside its range.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> X, y = make_mixture(1_000_000, 20, imbalance=100, outliers=0.001, random_state=0)
    >>> X.shape, X.dtype.name, X.npartitions
    ((1000000, 20), 'float32', 5)
    >>> X[:1000].compute().shape
    (1000, 20)
    """
    n = check_count("n", n, minimum=1)
    d = check_count("d", d, minimum=1)
    k = check_count("n_clusters", n_clusters, minimum=1)
    imbalance = check_real("imbalance", imbalance, minimum=1)
    center_scale = check_real("center_scale", center_scale, minimum=0)
    spread = check_real("spread", spread, minimum=0)
    outlier_scale = check_real("outlier_scale", outlier_scale, minimum=0)
    offset = check_real("offset", offset)
    outliers = check_real("outliers", outliers, minimum=0, maximum=1)
    check_flag("shuffle", shuffle)
    seed = resolve_seed(random_state)
    centers = center_scale * block_stream(seed, Part.CENTERS).standard_normal((k, d)) + offset
    shares = imbalance ** -np.linspace(0, 1, k)
    return Components(
        seed=seed,
        n=n,
        centers=np.vstack([centers, np.full(d, offset)]),
        spreads=np.append(np.full(k, spread), outlier_scale * center_scale),
        shares=shares / shares.sum(),
        outliers=outliers,
        dof=math.inf if dof is None else check_real("dof", dof, minimum=1),
        shuffle=bool(shuffle),
        dtype=check_dtype(dtype),
    ).arrays("mixture", chunks)


def make_imbalanced(
    n: int,
    d: int,
    *,
    n_clusters: int = 60,
    imbalance: float = 1000.0,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
    random_state: RandomState = None,
) -> tuple[da.Array, da.Array]:
    """Mixture whose clusters differ widely in size: uniform samples miss the small ones.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    n_clusters : int, default=60
        Clusters; a sample of 1000 rows then holds none of several of them.
    imbalance : float, default=1000.0
        Share of the largest cluster over that of the smallest.
    chunks, dtype, random_state
        As for `make_mixture`.

    Returns
    -------
    X, y : dask.array.Array
        As for `make_mixture`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        As for `make_mixture`.

    Examples
    --------
    >>> X, y = make_imbalanced(100_000, 10, random_state=0)
    >>> sizes = np.bincount(y.compute(), minlength=60)
    >>> bool(sizes[0] > 500 * sizes[59])
    True
    """
    return make_mixture(
        n,
        d,
        n_clusters=n_clusters,
        imbalance=imbalance,
        chunks=chunks,
        dtype=dtype,
        random_state=random_state,
    )


def make_heavy_tailed(
    n: int,
    d: int,
    *,
    n_clusters: int = 10,
    dof: float = 2.5,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
    random_state: RandomState = None,
) -> tuple[da.Array, da.Array]:
    """Mixture of multivariate t clusters: few far rows carry much of the cost.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    n_clusters : int, default=10
        Clusters of equal expected size.
    dof : float, default=2.5
        Degrees of freedom, at least 1. The variance is finite above 2, the fourth moment,
        and with it the error of an estimated variance, only above 4.
    chunks, dtype, random_state
        As for `make_mixture`.

    Returns
    -------
    X, y : dask.array.Array
        As for `make_mixture`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        As for `make_mixture`.

    Examples
    --------
    >>> X, y = make_heavy_tailed(100_000, 5, random_state=0)
    >>> bool(abs(X).max() > 100)
    True
    """
    return make_mixture(
        n,
        d,
        n_clusters=n_clusters,
        dof=dof,
        chunks=chunks,
        dtype=dtype,
        random_state=random_state,
    )
