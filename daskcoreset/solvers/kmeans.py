"""k-means in memory: k-means++, Lloyd steps, nearest centers, and clusters of weighted rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import (
    dense_rows,
    one_thread,
    read_only,
    row_tiles,
    squared_distances,
    tiles,
    unit_rows,
)
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.core.validation import as_numbers
from daskcoreset.errors import InvalidInputError

# A rough solution is all that scores need; cost falls little after a few steps.
_LLOYD_STEPS = 10

# Seedings of a rough solution, of which the best is taken.
_TRIES = 3


@dataclass(frozen=True, eq=False)
class Clusters:
    r"""Cells of a rough solution B.

    Attributes
    ----------
    centers : ndarray of shape (k, d), float64
    weights : ndarray of shape (k,), float64
        :math:`U(B_i)`, the weight of each cell.
    costs : ndarray of shape (k,), float64
        :math:`\phi_{B_i}(B)`, its quantization error.
    """

    centers: FloatArray
    weights: FloatArray
    costs: FloatArray

    def __len__(self) -> int:
        return len(self.centers)

    @property
    def weight(self) -> float:
        """Total weight U."""
        return float(self.weights.sum())

    @property
    def cost(self) -> float:
        r"""Total quantization error :math:`\phi_X(B)`."""
        return float(self.costs.sum())


class Partition(NamedTuple):
    """Cells of a block, and the cell of every row.

    Attributes
    ----------
    clusters : Clusters
    labels : ndarray of shape (n,), int64
        Cell of every row.
    distances : ndarray of shape (n,), float64
        Squared distance of every row to the center of its cell.
    """

    clusters: Clusters
    labels: IndexArray
    distances: FloatArray


def seed_cells(
    points: Points, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Partition:
    """Seed by k-means++ and move the centers to the means of their cells.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
    n_clusters : int
        Centers wanted. Fewer come back when fewer rows are distinct.
    rng : numpy.random.Generator
        Asked for `n_clusters` uniform numbers.

    Returns
    -------
    Partition
        Cells by the seeds, with costs about their means.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [10.0]])
    >>> cells = seed_cells(rows, np.ones(3), 2, np.random.default_rng(0))
    >>> sorted(cells.clusters.centers.ravel().tolist())
    [0.5, 10.0]

    References
    ----------
    Arthur and Vassilvitskii (2007), k-means++: the advantages of careful seeding.
    """
    dense = dense_rows(points)
    labels, distances = np.zeros(len(dense), dtype=np.int64), np.full(len(dense), np.inf)
    # No more than there are rows, of which each is drawn once.
    coins = rng.random(min(n_clusters, len(dense)))
    rows = plus_plus(dense, weights, coins, labels, distances)
    return cells_of(dense, weights, labels, dense[rows].astype(np.float64))


def plus_plus(  # noqa: PLR0917 - all of them are always given
    points: AnyArray,
    weights: FloatArray,
    coins: FloatArray,
    labels: IndexArray,
    distances: FloatArray,
    n_earlier: int = 0,
) -> IndexArray:
    """Draw further centers by k-means++, one for each of the uniform numbers `coins`.

    `labels` and `distances` are those by the first `n_earlier` centers. Without any, infinite. They
    follow the rows that are returned. Fewer than `coins` once no row has a distance left.
    """
    rows: list[int] = []
    for label, coin in enumerate(coins, n_earlier):
        running = np.cumsum(costs_of(weights, distances) if label else weights)
        if not running[-1] > 0.0:  # every row is a center already
            break
        # Below the sum whatever the rounding, so that the search ends on a row with a share.
        point = min(coin * running[-1], np.nextafter(running[-1], 0.0))
        rows.append(int(running.searchsorted(point, side="right")))
        squares = squared_distances(points, points[rows[-1]].astype(np.float64))
        is_nearer = squares < distances
        labels[is_nearer] = label
        np.minimum(squares, distances, out=distances)
    return np.array(rows, dtype=np.int64)


def assign(points: Points, centers: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Nearest center of every row, and the squared distance to it.

    Returns
    -------
    labels : ndarray of shape (n,), int64
    distances : ndarray of shape (n,), float64

    Examples
    --------
    >>> assign(np.array([[0.0], [9.0]]), np.array([[1.0], [10.0]]))
    (array([0, 1]), array([1., 1.]))
    """
    labels = np.zeros(points.shape[0], dtype=np.int64)
    distances = np.full(points.shape[0], np.inf)
    approach(points, centers, 0, labels, distances)
    return labels, distances


def approach(
    points: Points, centers: AnyArray, first: int, labels: IndexArray, distances: FloatArray
) -> None:
    """Assign rows to new centers, numbered from `first`, where these are nearer."""
    from daskcoreset.solvers import kmeans_numba as loops

    if spare := -centers.shape[1] % loops.COLUMNS:
        centers = np.pad(centers, ((0, 0), (0, spare)))
    centers = read_only(centers, np.float64)
    room = np.zeros((centers.shape[1] + 1, loops.ROWS))
    for rows, tile in row_tiles(points):
        loops.nearest_center(tile, centers, first, room, labels[rows], distances[rows])


def cell_gaps(
    points: Points,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    out: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights and weighted gaps to the center, by cell, and squared distances by row.

    Distances are in `out` if there is one. New room for a long block takes as much time as the work
    in it.
    """
    from daskcoreset.solvers import kmeans_numba as loops

    distances = np.empty(len(labels)) if out is None else out
    mass, shift = np.zeros(len(centers)), np.zeros(centers.shape)
    centers = read_only(centers, np.float64)
    for rows, tile in row_tiles(points):
        loops.cell_gaps(tile, weights[rows], labels[rows], centers, mass, shift, distances[rows])
    return mass, shift, distances


def _means(
    points: Points,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    out: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return means of cells, and their weights. Centers of cells without weight stay."""
    mass, shift, _ = cell_gaps(points, weights, labels, centers, out)
    used = mass > 0.0
    means = np.array(centers, dtype=np.float64)
    means[used] += shift[used] / mass[used, np.newaxis]
    return means, mass


def lloyd_step(points: Points, weights: FloatArray, centers: FloatArray) -> Clusters:
    """Cells of given centers: each moves to the mean of the rows nearest to it."""
    labels, _ = assign(points, centers)
    return cells_of(points, weights, labels, np.array(centers, dtype=np.float64)).clusters


def rough_kmeans(
    points: Points, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Clusters:
    """Solve roughly: k-means++ and a few steps of Lloyd, the best of several tries."""
    dense = dense_rows(points)
    tries = [_rough_try(dense, weights, n_clusters, rng) for _ in range(_TRIES)]
    return min(tries, key=attrgetter("cost"))


def _rough_try(
    points: AnyArray, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Clusters:
    cells = seed_cells(points, weights, n_clusters, rng).clusters
    for _ in range(_LLOYD_STEPS):
        cost = cells.cost
        cells = lloyd_step(points, weights, cells.centers)
        if cells.cost >= 0.99 * cost:
            break
    return cells


def concatenate_clusters(parts: Sequence[Clusters]) -> Clusters:
    """Put the cells of disjoint sets of rows after one another."""
    return Clusters(
        np.concatenate([part.centers for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.costs for part in parts]),
    )


def merge_clusters(cells: Clusters, n_clusters: int, rng: np.random.Generator) -> Clusters:
    r"""Cluster the cells of many blocks into cells of all data. As few as wanted stay as they are.

    A block's cell with center c, weight w and cost v that goes to the center b adds weight w
    and cost :math:`v + w |c - b|^2`: exact when all its rows are nearest to b.
    """
    if len(cells) <= n_clusters:
        return cells
    rough = rough_kmeans(cells.centers, cells.weights, n_clusters, rng)
    labels, distances = assign(cells.centers, rough.centers)
    # The last move of the centers may leave one without a cell.
    used, labels = np.unique(labels, return_inverse=True)
    inner = cells.costs + cells.weights * distances
    return Clusters(
        rough.centers[used],
        np.bincount(labels, weights=cells.weights).astype(np.float64),
        np.bincount(labels, weights=inner).astype(np.float64),
    )


def cells_of(
    points: Points,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    out: FloatArray | None = None,
) -> Partition:
    """Cells of `labels` about their means, found from `centers` so that offsets cost nothing.

    Distances are in `out` if there is one.
    """
    k = len(centers)
    if not k:  # no row has a weight
        return Partition(Clusters(centers, np.zeros(0), np.zeros(0)), labels, np.zeros(len(labels)))
    distances = np.empty(len(labels)) if out is None else out
    centers, _ = _means(points, weights, labels, centers, distances)
    totals, _, distances = cell_gaps(points, weights, labels, centers, distances)
    used = totals > 0
    costs = np.bincount(labels, weights=costs_of(weights, distances), minlength=k).astype(
        np.float64
    )
    if not used.all():
        labels = np.maximum(np.cumsum(used) - 1, 0)[labels]
    clusters = Clusters(centers[used], totals[used], costs[used])
    return Partition(clusters, labels, distances)


def costs_of(
    weights: FloatArray, distances: FloatArray, out: FloatArray | None = None
) -> FloatArray:
    """Costs of rows, u d^2, in `out` if there is one."""
    costs = np.multiply(weights, distances, out=out)
    idle = weights == 0.0
    if idle.any():
        costs[idle] = 0.0  # a row without weight may lie at any distance
    return costs


class Centers(NamedTuple):
    """A solution: centers of shape (k, d) in float64, and the steps it took."""

    centers: FloatArray
    n_iter: int


def check_init(init: Any, n_clusters: int, n_features: int) -> None:
    """Check initial centers."""
    centers = as_numbers("init", init)
    if not np.isfinite(centers).all():
        raise InvalidInputError(
            "init contains NaN or infinity", argument="init", remedy="pass finite centers"
        )
    shape = centers.shape
    if shape != (n_clusters, n_features):
        what, wanted = "number of clusters", n_clusters
        if shape[:1] == (n_clusters,):
            what, wanted = "number of features of the data", n_features
        raise InvalidInputError(
            f"The shape of the initial centers {shape} does not match the {what} {wanted}",
            argument="init",
            remedy=f"pass {n_clusters} centers of {n_features} features",
        )


def auto_starts(n_clusters: int) -> int:
    """Return the runs of k-means for ``n_init="auto"``.

    Measured on coresets of uneven mixtures, by the cost over all data: with 10 clusters the best
    of ten runs gains 2.4 % on one. With 100 clusters in one to a thousand, single runs lie 2
    to 9 % above the best of three. With 500 three gain 0.2 %. A run on a coreset takes a
    fraction of a read, so that three at least cost little. Over many clusters chance averages out.

    Examples
    --------
    >>> [auto_starts(k) for k in (2, 8, 30, 100, 500)]
    [10, 10, 10, 5, 3]
    """
    return min(10, max(3, 500 // n_clusters))


# Lloyd's steps of every start on dense rows, of which the best one is finished by single rows.
_STEPS_OF_STARTS = 20


@one_thread()
def solve(
    points: Points,
    weights: FloatArray,
    n_clusters: int,
    *,
    init: Any,
    n_init: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> Centers:
    """Run k-means on weighted rows.

    All is done in float64, and dense rows are moved to their weighted mean. scikit-learn takes
    distances from products, of which a large offset would leave nothing. All rows are divided by a
    power of two, which changes no digit, because squares must not overflow. scikit-learn measures
    `tol` by the variance of the rows, which one row far out makes as large as it likes. On dense
    rows each start makes 20 steps at most. Then single rows move from the best one as long as the
    cost falls, by `hartigan`. Further steps of Lloyd took more time, and ended as high. BLAS has
    one thread: the products of seeding are so small that two took up to five times the processor
    time.

    Parameters
    ----------
    points : ndarray of shape (m, d) or csr_array
        Distinct rows, at least k.
    weights : ndarray of shape (m,), float64
        Positive.
    n_clusters, init, n_init, max_iter, tol
        As in `CoresetKMeans`. `n_init` a number.
    seed : int
        Below 2**32.

    Returns
    -------
    Centers

    Examples
    --------
    >>> rows = np.float32(1e6) + np.array([[0.0], [1.0], [9.0]], dtype=np.float32)
    >>> options = {"init": "k-means++", "n_init": 1, "max_iter": 10, "tol": 1e-4, "seed": 0}
    >>> solution = solve(rows, np.array([1.0, 3.0, 1.0]), 2, **options)
    >>> sorted(round(float(center) - 1e6, 3) for center in solution.centers[:, 0])
    [0.75, 9.0]
    """
    from sklearn.cluster import KMeans

    rows, shift = points.astype(np.float64), np.zeros(points.shape[1])
    if isinstance(rows, np.ndarray):
        shift = np.average(rows, axis=0, weights=weights)
        rows -= shift
    largest = float(abs(rows).max())
    scale = float(2.0 ** np.frexp(largest)[1])
    rows = rows / scale
    if not isinstance(init, str):
        init = (np.asarray(init, dtype=np.float64) - shift) / scale
    options: dict[str, Any] = {"n_init": n_init, "random_state": seed, "tol": tol, "copy_x": False}
    steps = min(_STEPS_OF_STARTS, max_iter) if isinstance(rows, np.ndarray) else max_iter
    model = KMeans(n_clusters, init=init, max_iter=steps, **options)
    model.fit(rows, sample_weight=weights)
    centers, n_iter = model.cluster_centers_, int(model.n_iter_)
    if isinstance(rows, np.ndarray):
        centers, n_moves = hartigan(rows, weights, centers, max_iter=max_iter - n_iter, tol=tol)
        n_iter += n_moves
    return Centers(centers * scale + shift, n_iter)


def hartigan(
    points: FloatArray, weights: FloatArray, centers: FloatArray, *, max_iter: int, tol: float
) -> tuple[FloatArray, int]:
    r"""Move single rows between the cells of given centers as long as the cost falls.

    A row x of weight u costs its cell a, of weight :math:`n_a` and mean :math:`c_a`, and would
    cost another cell b

    .. math::

        \frac{n_a u}{n_a - u} |x - c_a|^2 \quad\text{and}\quad \frac{n_b u}{n_b + u} |x - c_b|^2,

    because the means follow the row. Lloyd's steps compare the distances alone. So they leave a
    rare category in one-hot form in the cell of a common one: no center is nearer.

    Parameters
    ----------
    points : ndarray of shape (m, d), float64
    weights : ndarray of shape (m,), float64
        Positive.
    centers : ndarray of shape (k, d), float64
        Centers at which Lloyd's steps ended.
    max_iter : int
        Passes over the rows at most.
    tol : float
        The first pass that gains at most this share of the cost is the last.

    Returns
    -------
    centers : ndarray of shape (k, d), float64
        Means of the cells, which cost less, or those given.
    n_iter : int
        Passes that moved rows.

    Examples
    --------
    Three categories in two cells: the light ones belong together.

    >>> rows, counts = np.eye(3), np.array([8.0, 2.0, 1.0])
    >>> start = np.array([[0.9, 0.0, 0.1], [0.0, 1.0, 0.0]])
    >>> hartigan(rows, counts, start, max_iter=9, tol=0.0)[0].round(3)
    array([[1.   , 0.   , 0.   ],
           [0.   , 0.667, 0.333]])

    References
    ----------
    Hartigan (1975), Clustering algorithms, chapter 4.
    Telgarsky and Vattani (2010), Hartigan's method: k-means clustering without Voronoi.
    """
    from daskcoreset.solvers import kmeans_numba as loops

    points = read_only(points)
    labels, distances = assign(points, centers)
    start = cost = float(weights @ distances)
    counts = np.bincount(labels, minlength=len(centers))
    moved, mass = _means(points, weights, labels, centers)
    n_iter = 0
    while n_iter < max_iter:
        check_time("clusters were being fitted", "pass a smaller size")
        gain = loops.move_rows(points, weights, labels, moved, mass, counts)
        if gain == 0.0:
            break
        n_iter += 1
        cost -= gain
        if gain <= tol * cost:
            break
    moved, _ = _means(points, weights, labels, moved)
    # If rounding is all that is left to gain, centers stay as they are.
    better = float(weights @ cell_gaps(points, weights, labels, moved)[2]) < start
    return (moved, n_iter) if better else (centers, 0)


# Steps after k-means in the plane: of the best centers of its cells few rows change theirs.
STEPS = 3


def unit_centers(
    points: Points, weights: FloatArray, centers: FloatArray, steps: int = STEPS
) -> FloatArray:
    r"""Bring the centers of k-means on unit rows to length one, and make steps with these.

    For a cell with the sum s the best center of length one is :math:`s / |s|`, and every one is as
    good where s is zero. A center without rows stays in place.

    Parameters
    ----------
    points : ndarray of shape (m, d) or csr_array
        Unit rows, or means of them.
    weights : ndarray of shape (m,), float64
        Positive.
    centers : ndarray of shape (k, d), float64
    steps : int, default=3
        At most. They end when no center moves.

    Returns
    -------
    ndarray of shape (k, d), float64

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> unit_centers(rows, np.ones(2), np.array([[0.8, 0.4]])).round(3)
    array([[0.894, 0.447]])

    References
    ----------
    Dhillon and Modha (2001), concept decompositions for large sparse text data using clustering.
    """
    centers = _on_the_sphere(np.ascontiguousarray(centers, dtype=np.float64))
    for _ in range(steps):
        check_time("clusters were being fitted", "pass a smaller size")
        labels, _ = assign(points, centers)
        moved = _on_the_sphere(_means(points, weights, labels, centers)[0])
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers


def _on_the_sphere(centers: FloatArray) -> FloatArray:
    rows, lengths = unit_rows(centers)
    found: FloatArray = np.asarray(rows)
    found[lengths == 0.0, 0] = 1.0
    return found


# Sparse rows of so many columns at most are spread out, a tile at a time, and differences are
# formed as of dense rows, so that the answers are the same. Of wider ones only what is stored is
# looked at: rows that are as near to two centers may then go to the other one.
_MAX_COLUMNS = 512


def nearest_labels(points: Points, centers: FloatArray, *, threads: bool = False) -> AnyArray:
    """Return the number of the nearest center of every row, int32 of shape (n,)."""
    return nearest(points, centers, threads=threads)[0].astype(np.int32)


def center_distances(points: Points, centers: FloatArray, *, threads: bool = False) -> AnyArray:
    """Distances of every row to all centers, of shape (n, k) and the dtype of the rows."""
    from scipy.spatial.distance import cdist

    distances: Any = np.empty((points.shape[0], len(centers)), dtype=points.dtype)

    def fill(rows: slice) -> None:
        # Differences, not an expansion: nothing cancels, however far off the origin.
        if isinstance(points, np.ndarray):
            distances[rows] = cdist(points[rows], centers)
        else:
            distances[rows] = np.sqrt(_sparse_squares(points[rows], centers))

    _in_tiles(fill, points, len(centers), threads=threads)
    return distances  # type: ignore[no-any-return]


def nearest(
    points: Points, centers: FloatArray, *, threads: bool = False
) -> tuple[IndexArray, FloatArray]:
    """Nearest center of every row, and the squared distance to it.

    Parameters
    ----------
    points : ndarray of shape (n, d) or scipy sparse, float32 or float64
    centers : ndarray of shape (k, d), float64
    threads : bool, default=False
        Whether to use all cores. Not for blocks: their scheduler has its threads.

    Returns
    -------
    labels : ndarray of shape (n,), int64
    distances : ndarray of shape (n,), float64
        In float64 for float32 rows as well. Sparse rows stay sparse.

    Examples
    --------
    >>> nearest(np.array([[0.0], [9.0]]), np.array([[1.0], [10.0]]))
    (array([0, 1]), array([1., 1.]))
    """
    labels: Any = np.empty(points.shape[0], dtype=np.int64)
    distances = np.empty(points.shape[0])

    def fill(rows: slice) -> None:
        if isinstance(points, np.ndarray) or points.shape[1] <= _MAX_COLUMNS:
            labels[rows], distances[rows] = assign(points[rows], centers)
            return
        squares = _sparse_squares(points[rows], centers)
        labels[rows] = squares.argmin(axis=1)
        distances[rows] = squares.min(axis=1)

    _in_tiles(fill, points, len(centers), threads=threads)
    return labels, distances


def weighted_cost(distances: FloatArray, weights: FloatArray | None) -> float:
    """Sum of squared distances, weighted where there are weights."""
    return float(distances.sum() if weights is None else distances @ weights)


def _sparse_squares(points: Any, centers: FloatArray) -> FloatArray:
    # Sparse rows lie about the origin, so that the expansion is safe; in float64.
    rows = points.astype(np.float64)
    norms = np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1, 1)
    squares = norms - 2 * (rows @ centers.T) + np.einsum("ij,ij->i", centers, centers)
    return np.maximum(squares, 0.0, out=squares)  # type: ignore[no-any-return]


def _in_tiles(
    work: Callable[[slice], None], points: Points, n_centers: int, *, threads: bool
) -> None:
    """Apply a function to tiles of rows, so that temporaries stay small."""
    n_rows, n_columns = points.shape
    spread = isinstance(points, np.ndarray) or n_columns <= _MAX_COLUMNS
    parts = [*tiles(n_rows, n_columns if spread else n_centers)]
    if threads and len(parts) > 1:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(work, parts))  # a list, so that errors come out
    else:
        for part in parts:
            work(part)
