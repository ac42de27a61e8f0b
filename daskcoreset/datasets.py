"""Synthetic data of any size as lazy Dask arrays: mixtures, and two that are hard to sample.

Each block has its own random numbers, which depend on the seed and the block number. The values
depend on ``chunks``, and not on the scheduler or the number of workers. Points and labels are
separate arrays, so reading the labels does not compute the points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize

from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import as_float, as_int, check_flag, is_choice, shown
from daskcoreset.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["make_geometric", "make_mixture", "make_near_mean"]

Chunks: TypeAlias = int | Literal["auto"]

_AUTO_BYTES, _MAX_BLOCKS = 16 * 2**20, 10**7

# Rows are made block by block. Columns and clusters lie in memory, as matrices of both.
_MAX_ROWS, _MAX_SIDE = 2**48, 2**20

# Keeps these streams apart from those of a build with the same seed.
_NAMESPACE = 0xDA7A

# Rows that are moved at a time, so that temporaries in float64 stay small.
_TILE = 4096

# Purposes of random streams. The numbers determine the bits.
_CENTERS, _LABELS, _POINTS = range(3)


def make_mixture(
    n: int,
    d: int,
    *,
    n_clusters: int = 10,
    imbalance: float = 1.0,
    center_scale: float = 10.0,
    spread: float = 1.0,
    outliers: float = 0.0,
    dof: float | None = None,
    shuffle: bool = True,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
    random_state: RandomState = None,
) -> tuple[da.Array, da.Array]:
    """Make a mixture of spherical clusters with outliers.

    See :doc:`/start`.

    Parameters
    ----------
    n, d : int
        Number of rows and columns.
    n_clusters : int, default=10
        Number of clusters.
    imbalance : float, default=1.0
        Share of the largest cluster over the share of the smallest. Shares fall geometrically.
    center_scale : float, default=10.0
        Standard deviation of the normal centers. With `spread` 1 the clusters are well separated.
    spread : float, default=1.0
        Standard deviation of every cluster in each coordinate.
    outliers : float, default=0.0
        Probability that a row is an outlier. Outliers are normal about the origin, with ten times
        the standard deviation of the centers.
    dof : float, optional
        Degrees of freedom, at least 1, of Student's t distribution. Default: normal clusters.
    shuffle : bool, default=True
        If false, rows are sorted by cluster, so that blocks differ as much as possible.
    chunks : int or "auto", default="auto"
        Rows per block. "auto" makes blocks of about 16 MiB.
    dtype : dtype, default="float32"
        float32 or float64.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : dask.array.Array of shape (n, d)
    y : dask.array.Array of shape (n,), int64
        Number of the cluster, the largest first, and -1 for outliers.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument is out of range or of the wrong type.

    Examples
    --------
    >>> X, y = make_mixture(1_000_000, 20, imbalance=100, outliers=0.001, random_state=0)
    >>> X.shape, X.dtype.name, X.npartitions
    ((1000000, 20), 'float32', 5)
    """
    n, d, k = _count("n", n, _MAX_ROWS), _count("d", d), _count("n_clusters", n_clusters)
    imbalance = _real("imbalance", imbalance, 1)
    center_scale = _real("center_scale", center_scale, 0)
    spread = _real("spread", spread, 0)
    check_flag("shuffle", shuffle)
    seed = resolve_seed(random_state)
    centers = center_scale * _stream(seed, _CENTERS).standard_normal((k, d))
    shares = imbalance ** -np.linspace(0, 1, k)
    mixture = _Mixture(
        seed=seed,
        n=n,
        centers=np.vstack([centers, np.zeros(d)]),
        spreads=np.append(np.full(k, spread), 10.0 * center_scale),
        shares=shares / shares.sum(),
        dtype=_dtype(dtype),
        outliers=_real("outliers", outliers, 0, 1),
        dof=math.inf if dof is None else _real("dof", dof, 1),
        shuffle=shuffle,
    )
    return mixture.arrays("mixture", chunks)


def make_near_mean(
    n: int,
    d: int,
    *,
    n_clusters: int = 50,
    n_near: int = 10,
    near_share: float = 0.02,
    far: float = 100.0,
    near: float = 10.0,
    spread: float = 0.1,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
    random_state: RandomState = None,
) -> tuple[da.Array, da.Array]:
    """Make small clusters near the mean of all rows, which lightweight coresets tend to miss.

    See :doc:`/guides/trust`.

    Large clusters lie far out and balance each other. Rows of the small clusters are close to the
    mean, so `daskcoreset.Lightweight` rarely draws them. Each small cluster is tight, so a solution
    without it costs much more.

    Parameters
    ----------
    n, d : int
        Number of rows and columns.
    n_clusters : int, default=50
        Number of clusters, the small ones included.
    n_near : int, default=10
        Number of small clusters near the mean. At least two clusters must remain far from it.
    near_share : float, default=0.02
        Share of the rows in all small clusters together.
    far, near : float, default=100.0, 10.0
        Distance of the large and of the small centers from the origin.
    spread : float, default=0.1
        Standard deviation of every cluster in each coordinate.
    chunks, dtype, random_state
        As in `make_mixture`.

    Returns
    -------
    X, y : dask.array.Array
        As in `make_mixture`. The small clusters have the last `n_near` numbers.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument is out of range or of the wrong type.

    Examples
    --------
    >>> X, y = make_near_mean(100_000, 10, random_state=0)
    >>> bool(np.linalg.norm(X.mean(axis=0).compute()) < 1)
    True
    """
    n, d, n_near = _count("n", n, _MAX_ROWS), _count("d", d), _count("n_near", n_near)
    n_far = _count("n_clusters", n_clusters) - n_near
    if n_far < 2:
        raise InvalidInputError(
            f"n_clusters is {n_clusters}, but n_near={n_near} needs at least two more",
            argument="n_clusters",
            remedy="pass a larger n_clusters or a smaller n_near",
        )
    share = _real("near_share", near_share, 0, 1)
    far, near, spread = _real("far", far, 0), _real("near", near, 0), _real("spread", spread, 0)
    seed = resolve_seed(random_state)
    directions = _directions(seed, n_far + n_near, d)
    distant = far * (directions[:n_far] - directions[:n_far].mean(axis=0))
    mixture = _Mixture(
        seed=seed,
        n=n,
        centers=np.vstack([distant, near * directions[n_far:]]),
        spreads=np.full(n_far + n_near, spread),
        shares=np.repeat([(1 - share) / n_far, share / n_near], [n_far, n_near]),
        dtype=_dtype(dtype),
    )
    return mixture.arrays("near-mean", chunks)


def make_geometric(
    n: int,
    d: int,
    *,
    n_clusters: int = 12,
    ratio: float = 2.0,
    growth: float | None = None,
    spread: float = 0.1,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
    random_state: RandomState = None,
) -> tuple[da.Array, da.Array]:
    r"""Make clusters that get smaller and farther out geometrically, so that every scale matters.

    See :doc:`/start`.

    Cluster j has a share proportional to :math:`r^{-j}`. Its center is at distance :math:`g^j` from
    the origin, and its standard deviation is `spread` times that. With :math:`g = \sqrt r` all
    clusters contribute equally to the cost.

    Parameters
    ----------
    n, d : int
        Number of rows and columns.
    n_clusters : int, default=12
        Number of clusters.
    ratio : float, default=2.0
        Ratio r of the shares of one cluster and the next, at least 1.
    growth : float, optional
        Ratio g of the scales of one cluster and the one before, at least 1. Default: the square
        root of `ratio`.
    spread : float, default=0.1
        Standard deviation of a cluster over the distance of its center.
    chunks, dtype, random_state
        As in `make_mixture`.

    Returns
    -------
    X, y : dask.array.Array
        As in `make_mixture`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument is out of range or of the wrong type.

    Examples
    --------
    >>> X, y = make_geometric(100_000, 10, n_clusters=8, random_state=0)
    >>> np.bincount(y.compute()).argmax()
    np.int64(0)
    """
    n, d, k = _count("n", n, _MAX_ROWS), _count("d", d), _count("n_clusters", n_clusters)
    ratio = _real("ratio", ratio, 1)
    growth = math.sqrt(ratio) if growth is None else _real("growth", growth, 1)
    spread = _real("spread", spread, 0)
    seed = resolve_seed(random_state)
    steps = np.arange(k, dtype=np.float64)
    scales: FloatArray = growth**steps
    shares: FloatArray = ratio**-steps
    mixture = _Mixture(
        seed=seed,
        n=n,
        centers=scales[:, None] * _directions(seed, k, d),
        spreads=spread * scales,
        shares=shares / shares.sum(),
        dtype=_dtype(dtype),
    )
    return mixture.arrays("geometric", chunks)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Spherical components, block by block.

    Attributes
    ----------
    seed, n : int
    centers, spreads : ndarray of shape (k, d) and (k,), float64
        With outliers one more than there are clusters.
    shares : ndarray of shape (k,)
        Shares of the clusters among the rows that are not outliers. They sum to one.
    dtype : dtype
    outliers : float, default=0.0
    dof : float, default=inf
    shuffle : bool, default=True
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

    def labels(self, block: int, start: int, stop: int) -> IndexArray:
        """Return the numbers of the clusters of the rows of one block, -1 for outliers."""
        rng = _stream(self.seed, _LABELS, block)
        if self.shuffle:
            position = rng.random(stop - start)
        else:
            position = (np.arange(start, stop) + 0.5) / self.n
        bounds = np.cumsum(self.shares)[:-1]
        labels = np.searchsorted(bounds, position, side="right").astype(np.int64, copy=False)
        if self.outliers > 0:
            labels[rng.random(stop - start) < self.outliers] = -1
        return labels

    def points(self, block: int, start: int, stop: int) -> AnyArray:
        """Return the points of one block."""
        labels = self.labels(block, start, stop)
        rng = _stream(self.seed, _POINTS, block)
        points = rng.standard_normal((stop - start, self.centers.shape[1]), dtype=self.dtype)
        radii = self.spreads[labels]
        if math.isfinite(self.dof):
            radii = radii * np.sqrt(self.dof / rng.chisquare(self.dof, size=stop - start))
        for low in range(0, stop - start, _TILE):
            tile = slice(low, low + _TILE)
            points[tile] = radii[tile, None] * points[tile] + self.centers[labels[tile]]
        return points

    def arrays(self, kind: str, chunks: Chunks) -> tuple[da.Array, da.Array]:
        """Return points and labels as lazy arrays whose names begin with `kind`."""
        d = self.centers.shape[1]
        rows = _rows_of(chunks, self.n, d, self.dtype)
        return (
            _lazy(self.points, kind, rows, (self.n, d), self.dtype),
            _lazy(self.labels, f"{kind}-labels", rows, (self.n,), np.dtype(np.int64)),
        )


def _stream(seed: int, part: int, block: int = 0) -> np.random.Generator:
    """Return the generator of one part of one block, independent of every other one."""
    sequence = np.random.SeedSequence(seed, spawn_key=(_NAMESPACE, part, block))
    return np.random.Generator(np.random.PCG64(sequence))


def _directions(seed: int, k: int, d: int) -> FloatArray:
    """Return k random vectors of length one."""
    vectors = _stream(seed, _CENTERS).standard_normal((k, d))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _lazy(
    make: Callable[[int, int, int], AnyArray],
    kind: str,
    rows: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> da.Array:
    """Turn a maker of rows into an array with one task for each block."""
    n, *columns = shape
    full, remainder = divmod(n, rows)
    row_chunks = (rows,) * full + ((remainder,) if remainder else ())
    array: da.Array = da.map_blocks(
        _make_block,
        make=make,
        n=n,
        rows=rows,
        chunks=(row_chunks, *((width,) for width in columns)),
        dtype=dtype,
        meta=np.empty((0,) * len(shape), dtype=dtype),
        name=f"{kind}-{tokenize(make, shape, rows, dtype)}",
    )
    return array


def _make_block(
    *, make: Callable[[int, int, int], AnyArray], n: int, rows: int, block_id: tuple[int, ...]
) -> AnyArray:
    start = block_id[0] * rows
    return make(block_id[0], start, min(n, start + rows))


def _rows_of(chunks: Chunks, n: int, d: int, dtype: np.dtype[Any]) -> int:
    """Check `chunks` and return the number of rows that it means."""
    if is_choice(chunks, ("auto",)):
        rows = _AUTO_BYTES // (d * dtype.itemsize)
    else:
        rows = as_int("chunks", chunks)
    rows = max(1, min(n, rows))
    if n > rows * _MAX_BLOCKS:
        raise InvalidInputError(
            f"chunks gives more than {_MAX_BLOCKS:,} blocks of {rows:,} rows",
            argument="chunks",
            remedy="pass more rows per block",
        )
    return rows


def _count(name: str, value: Any, maximum: int = _MAX_SIDE) -> int:
    return as_int(name, value, maximum=maximum)


def _real(name: str, value: Any, minimum: float, maximum: float = math.inf) -> float:
    """Return `value` as a finite float, if it lies within the closed interval."""
    return as_float(name, value, f"{minimum:g}", minimum=minimum, maximum=maximum, closed=True)


def _dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return `dtype` as a dtype object if it is float32 or float64."""
    try:
        resolved = np.dtype(dtype)
    except (TypeError, ValueError):
        resolved = None
    if resolved not in {np.dtype("float32"), np.dtype("float64")}:
        raise InvalidInputError(
            f"dtype is {shown(dtype)}", argument="dtype", remedy="pass 'float32' or 'float64'"
        )
    return resolved
