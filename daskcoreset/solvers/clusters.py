r"""Rough k-means solutions and what scores need of them: a table of weighted clusters.

Everything here runs on one block or on a table of cluster centers, in compiled loops of one
thread without BLAS, so that its bits are the same wherever it runs.
"""

from __future__ import annotations
from daskcoreset.core.tiles import dense_rows

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from daskcoreset.core.rowwise import compiled_loops
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Clusters",
    "Partition",
    "approach",
    "assign",
    "cells",
    "cells_of",
    "cluster",
    "costs_of",
    "own_distances",
    "plus_plus",
    "pool",
    "seed_cells",
    "seed_clusters",
]

_TILE_NUMBERS = 2**17
"""Numbers of sparse rows spread out at a time: 1 MiB."""

_LLOYD_STEPS = 10
"""A rough solution is all that scores need; cost falls little after a few steps."""


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


def seed_clusters(
    points: Points, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Clusters:
    """Seed by k-means++ and move the centers to the means of their cells.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
    n_clusters : int
        Centers wanted; fewer come back when fewer rows are distinct.
    rng : numpy.random.Generator
        Asked for `n_clusters` uniform numbers.

    Returns
    -------
    Clusters
        Cells by the seeds, their weighted means as centers, and costs about the means.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [10.0]])
    >>> found = seed_clusters(rows, np.ones(3), 2, np.random.default_rng(0))
    >>> sorted(found.centers.ravel().tolist())
    [0.5, 10.0]

    References
    ----------
    Arthur and Vassilvitskii (2007), k-means++: the advantages of careful seeding.
    """
    return seed_cells(points, weights, n_clusters, rng).clusters


class Partition(NamedTuple):
    """Cells of a block, and where its rows lie.

    Attributes
    ----------
    clusters : Clusters
    labels : ndarray of shape (n,), int64
        Cell of every row.
    distances : ndarray of shape (n,), float64
        Squared distance of every row to the center of its own cell.
    """

    clusters: Clusters
    labels: IndexArray
    distances: FloatArray


def seed_cells(
    points: Points, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Partition:
    """Do as `seed_clusters`, and say where the rows lie."""
    dense = dense_rows(points)
    labels, distances = np.zeros(len(dense), dtype=np.int64), np.full(len(dense), np.inf)
    rows = plus_plus(dense, weights, rng.random(n_clusters), labels, distances)
    return cells_of(dense, weights, labels, dense[rows].astype(np.float64))


def plus_plus(  # noqa: PLR0917 - all of them are always given
    points: AnyArray,
    weights: FloatArray,
    coins: FloatArray,
    labels: IndexArray,
    distances: FloatArray,
    known: int = 0,
) -> IndexArray:
    """Draw further centers by k-means++, one for each of the uniform numbers `coins`.

    `labels` and `distances` are those by the `known` centers; without any, infinite. They
    follow the rows that are returned; fewer than `coins` once no row has a distance left.
    """
    seed = _numpy_seeds if (loops := compiled_loops()) is None else loops.kmeans_plus_plus
    rows: IndexArray = seed(points, weights, coins, known, labels, distances)
    return rows


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
    """Let rows that are nearer to new centers, numbered from `first`, change over to them."""
    centers = np.ascontiguousarray(centers)
    nearest = _numpy_nearest if (loops := compiled_loops()) is None else loops.nearest_center
    for rows, tile in _tiles(points):
        nearest(tile, centers, first, labels[rows], distances[rows])


def own_distances(points: Points, labels: IndexArray, centers: FloatArray) -> FloatArray:
    """Squared distances of rows to the centers that `labels` give them."""
    distances = np.empty(len(labels))
    own = _numpy_own if (loops := compiled_loops()) is None else loops.own_distances
    for rows, tile in _tiles(points):
        own(tile, labels[rows], centers, distances[rows])
    return distances


def cells(points: Points, weights: FloatArray, centers: FloatArray) -> Clusters:
    """Cells of given centers: each moves to the mean of the rows nearest to it."""
    labels, _ = assign(points, centers)
    return cells_of(points, weights, labels, np.array(centers, dtype=np.float64)).clusters


def cluster(
    points: Points,
    weights: FloatArray,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    tries: int = 3,
) -> Clusters:
    """Solve roughly: k-means++ and a few steps of Lloyd, the best of several tries."""
    dense = dense_rows(points)
    best: Clusters | None = None
    for _ in range(tries):
        found = seed_clusters(dense, weights, n_clusters, rng)
        for _ in range(_LLOYD_STEPS):
            cost = found.cost
            found = cells(dense, weights, found.centers)
            if found.cost >= 0.99 * cost:
                break
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None  # noqa: S101 - tries >= 1
    return best


def pool(parts: Iterable[Clusters], n_clusters: int, rng: np.random.Generator) -> Clusters:
    r"""Cluster the cells of many blocks into cells of all data.

    A block's cell with center c, weight w and cost v that goes to the center b adds weight w
    and cost :math:`v + w |c - b|^2`: exact when all its rows are nearest to b.
    """
    tables = list(parts)
    centers = np.concatenate([part.centers for part in tables])
    weights = np.concatenate([part.weights for part in tables])
    costs = np.concatenate([part.costs for part in tables])
    found = cluster(centers, weights, n_clusters, rng)
    labels, distances = assign(centers, found.centers)
    inner = costs + weights * distances
    k = len(found)
    return Clusters(
        found.centers,
        np.bincount(labels, weights=weights, minlength=k).astype(np.float64),
        np.bincount(labels, weights=inner, minlength=k).astype(np.float64),
    )




def _tiles(points: Points) -> Iterator[tuple[slice, AnyArray]]:
    """All rows at once, or sparse ones spread out a few at a time."""
    n, d = points.shape
    step = n if isinstance(points, np.ndarray) else max(1, _TILE_NUMBERS // max(1, d))
    for start in range(0, n, max(1, step)):
        rows = slice(start, start + step)
        yield rows, dense_rows(points[rows])


def cells_of(
    points: Points, weights: FloatArray, labels: IndexArray, centers: FloatArray
) -> Partition:
    """Cells of `labels` about their means, found from `centers` so that offsets cost nothing."""
    k = len(centers)
    mass, shift = np.zeros(k), np.zeros(centers.shape)
    means = _numpy_means if (loops := compiled_loops()) is None else loops.cell_means
    if not k:  # no row has a weight
        return Partition(Clusters(centers, mass, mass), labels, np.zeros(len(labels)))
    for rows, tile in _tiles(points):
        means(tile, weights[rows], labels[rows], centers, mass, shift)
    used = mass > 0
    centers[used] += shift[used] / mass[used, np.newaxis]
    distances = own_distances(points, labels, centers)
    costs = np.bincount(labels, weights=costs_of(weights, distances), minlength=k)
    if not used.all():
        labels = np.maximum(np.cumsum(used) - 1, 0)[labels]
    found = Clusters(centers[used], mass[used], costs[used].astype(np.float64))
    return Partition(found, labels, distances)


def costs_of(weights: FloatArray, distances: FloatArray) -> FloatArray:
    """Costs of rows, u d^2."""
    mass = weights * distances
    mass[weights == 0.0] = 0.0  # a row without weight may lie at any distance
    return mass


def _numpy_seeds(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    weights: FloatArray,
    coins: FloatArray,
    known: int,
    labels: IndexArray,
    distances: FloatArray,
) -> IndexArray:
    chosen: list[int] = []
    for label, coin in enumerate(coins, start=known):
        running = np.cumsum(weights * distances if label else weights)
        if running[-1] == 0:
            break
        target = min(coin * running[-1], np.nextafter(running[-1], 0.0))
        row = int(np.searchsorted(running, target, side="right"))
        chosen.append(row)
        _numpy_nearest(points, points[[row]].astype(np.float64), label, labels, distances)
    return np.array(chosen, dtype=np.int64)


def _numpy_nearest(
    points: AnyArray, centers: AnyArray, first: int, labels: IndexArray, distances: FloatArray
) -> None:
    for label, center in enumerate(centers, start=first):
        gaps = points - center
        squares = np.einsum("ij,ij->i", gaps, gaps)
        nearer = squares < distances
        labels[nearer] = label
        distances[nearer] = squares[nearer]


def _numpy_means(  # noqa: PLR0917 - as the compiled loop takes them
    points: AnyArray,
    weights: FloatArray,
    labels: IndexArray,
    centers: FloatArray,
    mass: FloatArray,
    shift: FloatArray,
) -> None:
    k = len(centers)
    mass += np.bincount(labels, weights=weights, minlength=k)
    for j in range(centers.shape[1]):
        moved = weights * (points[:, j] - centers[labels, j])
        shift[:, j] += np.bincount(labels, weights=moved, minlength=k)


def _numpy_own(
    points: AnyArray, labels: IndexArray, centers: FloatArray, distances: FloatArray
) -> None:
    gaps = points - centers[labels]
    np.einsum("ij,ij->i", gaps, gaps, out=distances)
