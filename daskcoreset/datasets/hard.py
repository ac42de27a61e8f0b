"""Mixtures that are hard for a way of sampling: tiny clusters, and rows at all scales."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray
from daskcoreset.datasets.lazy import (
    Chunks,
    Part,
    block_stream,
    check_count,
    check_dtype,
    check_real,
)
from daskcoreset.datasets.mixtures import Components, Giants

if TYPE_CHECKING:
    import dask.array as da
    import numpy.typing as npt


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
    """Small clusters about the mean of all rows, which lightweight coresets tend to miss.

    Large clusters lie far out and balance each other, so the mean of all rows is close to
    the origin. The small clusters lie there: by distance to the mean their rows are hardly
    ever drawn, and only the uniform half of a lightweight sample sees them. Each is tight,
    so leaving one out multiplies the cost of the solution.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    n_clusters : int, default=50
        Clusters in all.
    n_near : int, default=10
        Small clusters near the mean; at least two clusters must remain far from it.
    near_share : float, default=0.02
        Share of the rows in all small clusters together. With the default sizes a uniform
        sample of 1000 rows expects two rows of each, a lightweight one only one.
    far, near : float, default=100.0, 10.0
        Distance of the large and of the small centres from the origin (for the large ones
        before their mean is taken off).
    spread : float, default=0.1
        Standard deviation of every cluster in each coordinate.
    chunks, dtype, random_state
        As for `make_mixture`.

    Returns
    -------
    X, y : dask.array.Array
        As for `make_mixture`; the small clusters have the last `n_near` numbers.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument lies outside its range or is of the wrong type.

    Examples
    --------
    >>> X, y = make_near_mean(100_000, 10, random_state=0)
    >>> bool(np.linalg.norm(X.mean(axis=0).compute()) < 1)
    True
    """
    n = check_count("n", n, minimum=1)
    d = check_count("d", d, minimum=1)
    n_near = check_count("n_near", n_near, minimum=1)
    n_far = check_count("n_clusters", n_clusters, minimum=1) - n_near
    if n_far < 2:
        raise InvalidInputError(
            f"n_clusters must exceed n_near={n_near} by at least 2, got {n_clusters}; "
            "pass more clusters or fewer near ones."
        )
    share = check_real("near_share", near_share, minimum=0, maximum=1)
    far = check_real("far", far, minimum=0)
    near = check_real("near", near, minimum=0)
    spread = check_real("spread", spread, minimum=0)
    seed = resolve_seed(random_state)
    directions = _directions(seed, n_far + n_near, d)
    distant = far * (directions[:n_far] - directions[:n_far].mean(axis=0))
    return Components(
        seed=seed,
        n=n,
        centers=np.vstack([distant, near * directions[n_far:]]),
        spreads=np.full(n_far + n_near, spread),
        shares=np.repeat([(1 - share) / n_far, share / n_near], [n_far, n_near]),
        dtype=check_dtype(dtype),
    ).arrays("near-mean", chunks)


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
    r"""Clusters that get smaller and farther out geometrically: every scale matters.

    Cluster j has a share proportional to :math:`r^{-j}`, its centre lies at distance
    :math:`g^j` from the origin and its standard deviation is `spread` times that. With
    :math:`g = \sqrt r` all clusters contribute equally to the cost, so a sample that is
    right about one scale only is wrong about the sum.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    n_clusters : int, default=12
        Clusters.
    ratio : float, default=2.0
        Ratio r of the shares of one cluster and the next, at least 1.
    growth : float, optional
        Ratio g of the scales of one cluster and the one before it, at least 1; by default
        the square root of `ratio`.
    spread : float, default=0.1
        Standard deviation of a cluster over the distance of its centre.
    chunks, dtype, random_state
        As for `make_mixture`.

    Returns
    -------
    X, y : dask.array.Array
        As for `make_mixture`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument lies outside its range or is of the wrong type.

    Examples
    --------
    >>> X, y = make_geometric(100_000, 10, n_clusters=8, random_state=0)
    >>> np.bincount(y.compute()).argmax()
    np.int64(0)
    """
    n = check_count("n", n, minimum=1)
    d = check_count("d", d, minimum=1)
    k = check_count("n_clusters", n_clusters, minimum=1)
    ratio = check_real("ratio", ratio, minimum=1)
    growth = math.sqrt(ratio) if growth is None else check_real("growth", growth, minimum=1)
    spread = check_real("spread", spread, minimum=0)
    seed = resolve_seed(random_state)
    steps = np.arange(k, dtype=np.float64)
    scales: FloatArray = growth**steps
    shares: FloatArray = ratio**-steps
    return Components(
        seed=seed,
        n=n,
        centers=scales[:, None] * _directions(seed, k, d),
        spreads=spread * scales,
        shares=shares / shares.sum(),
        dtype=check_dtype(dtype),
    ).arrays("geometric", chunks)


def make_hidden(
    n: int,
    d: int,
    *,
    n_far: int = 2,
    n_hidden: int = 10,
    hidden_rows: int = 50,
    far: float = 100.0,
    near: float = 10.0,
    spread: float = 0.02,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
    random_state: RandomState = None,
) -> tuple[da.Array, da.Array]:
    """Clusters of some fifty rows near the mean of a million: no sample of the rows holds them.

    Nearly all rows lie in a few clusters far out, which balance each other. The rest is hidden
    in between: a sample of 16,384 rows of a million expects less than one row of each, whether
    it is uniform or by distance to the mean. Yet a solution without them costs many times the
    best one.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    n_far : int, default=2
        Large clusters, at least two.
    n_hidden : int, default=10
        Small clusters, of about `hidden_rows` rows each.
    hidden_rows : int, default=50
        Expected rows of a small cluster.
    far, near : float, default=100.0, 10.0
        Distance of the large and of the small centres from the origin (for the large ones
        before their mean is taken off).
    spread : float, default=0.02
        Standard deviation of every cluster in each coordinate.
    chunks, dtype, random_state
        As for `make_mixture`.

    Returns
    -------
    X, y : dask.array.Array
        As for `make_mixture`; the small clusters have the last `n_hidden` numbers.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument lies outside its range or is of the wrong type.

    Examples
    --------
    >>> X, y = make_hidden(100_000, 5, random_state=0)
    >>> sizes = np.bincount(y.compute())
    >>> len(sizes), bool(sizes[2:].max() < 100)
    (12, True)
    """
    hidden_rows = check_count("hidden_rows", hidden_rows, minimum=1)
    n_hidden = check_count("n_hidden", n_hidden, minimum=1)
    n = check_count("n", n, minimum=1)
    if n_hidden * hidden_rows > n:
        raise InvalidInputError(
            f"n must be at least n_hidden * hidden_rows = {n_hidden * hidden_rows}, got {n}; pass "
            f"more rows."
        )
    return make_near_mean(
        n,
        d,
        n_clusters=check_count("n_far", n_far, minimum=2) + n_hidden,
        n_near=n_hidden,
        near_share=n_hidden * hidden_rows / n,
        far=far,
        near=near,
        spread=spread,
        chunks=chunks,
        dtype=dtype,
        random_state=random_state,
    )


def make_giants(
    n: int,
    d: int,
    *,
    n_giants: int = 5,
    share: float = 0.995,
    n_clusters: int = 40,
    spread: float = 0.05,
    chunks: Chunks = "auto",
    dtype: npt.DTypeLike = "float32",
    random_state: RandomState = None,
) -> tuple[da.Array, da.Array]:
    r"""Mixture with a few rows, each of which holds nearly all the variance left to it.

    The largest row has the given share of the variance, the next one this share of the rest,
    and so on: byte counts of connections look like that. Below them lie clusters of very
    unlike sizes. A sample by distance to the mean consists of the largest row alone, and a
    solution may spend a center on every giant and still has to tell the clusters apart.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    n_giants : int, default=5
        Rows with a scale of their own, fewer than `n`. With the default share each lies 14
        times as far out as the next.
    share : float, default=0.995
        Share of the variance that a giant holds among the rows below it, between 0 and 1.
    n_clusters : int, default=40
        Clusters of all other rows; the sizes fall geometrically, from the first to the last by
        a factor of a thousand, and their centres are normal with variance one.
    spread : float, default=0.05
        Standard deviation of every cluster in each coordinate.
    chunks, dtype, random_state
        As for `make_mixture`.

    Returns
    -------
    X, y : dask.array.Array
        As for `make_mixture`; giants have the label -1.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument lies outside its range or is of the wrong type.

    Examples
    --------
    >>> X, y = make_giants(100_000, 5, random_state=0)
    >>> costs = ((X - X.mean(axis=0)) ** 2).sum(axis=1).compute()
    >>> bool(costs.max() > 0.99 * costs.sum()), int((y == -1).sum())
    (True, 5)
    """
    n = check_count("n", n, minimum=2)
    d = check_count("d", d, minimum=1)
    n_giants = check_count("n_giants", n_giants, minimum=1)
    k = check_count("n_clusters", n_clusters, minimum=1)
    share = check_real("share", share, minimum=0, maximum=1)
    spread = check_real("spread", spread, minimum=0)
    if n_giants >= n:
        raise InvalidInputError(f"n_giants must be below n={n}, got {n_giants}; pass fewer.")
    if share == 1.0:
        raise InvalidInputError("share must be below 1, or nothing is left to the others.")
    seed = resolve_seed(random_state)
    rng = block_stream(seed, Part.CENTERS, 1)
    shares = 1000.0 ** (-np.arange(k) / max(1, k - 1))
    # The variance of the clusters is about one in each coordinate.
    squares = n * d * share / (1 - share) / (1 - share) ** np.arange(n_giants, dtype=np.float64)
    giants = rng.standard_normal((n_giants, d))
    giants *= (np.sqrt(squares) / np.linalg.norm(giants, axis=1))[:, None]
    return Components(
        seed=seed,
        n=n,
        centers=block_stream(seed, Part.CENTERS).standard_normal((k, d)),
        spreads=np.full(k, spread),
        shares=shares / shares.sum(),
        dtype=check_dtype(dtype),
        giants=Giants(giants, np.sort(rng.choice(n, size=n_giants, replace=False))),
    ).arrays("giants", chunks)


def _directions(seed: int, k: int, d: int) -> FloatArray:
    """Return k random vectors of length one."""
    vectors = block_stream(seed, Part.CENTERS).standard_normal((k, d))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors
