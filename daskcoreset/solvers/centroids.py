"""Few weighted centroids in place of many weighted rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense, one_thread
from daskcoreset.core.points import WeightedPoints, distinct_rows
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import as_int
from daskcoreset.errors import InvalidInputError
from daskcoreset.solvers.kmeans import Clusters, assign, lloyd_step, rough_kmeans, seed_cells

# Lloyd steps after the seeds: further ones were measured to lower the cost in the cells by less
# than a hundredth each.
_STEPS = 3

# The same after the rough solution: solvers find its centers again, so they had better be good.
_ROUGH_STEPS = 5


@dataclass(frozen=True, eq=False, repr=False)
class Centroids(WeightedPoints):
    """Weighted means of cells of rows.

    Parameters
    ----------
    points, weights, indices, labels
        As in `WeightedPoints`. ``indices`` names the row nearest to each mean among those of its
        cell.
    constant : float, default=0.0
        Cost of the rows about the means of their cells.
    """

    constant: float = 0.0


@one_thread()
def compress(
    rows: WeightedPoints, n_points: int, n_clusters: int, random_state: RandomState = None
) -> Centroids:
    """Replace rows by weighted centroids of small cells. See `daskcoreset.Coreset.compress`.

    The cells lie in the clusters of a rough solution, so that no row of a cell is nearer to
    another of its centers than the centroid is. Each cluster gets cells in proportion to its cost,
    by k-means++ and three Lloyd steps.
    """
    count, k = as_int("n_points", n_points), as_int("n_clusters", n_clusters)
    if count < k:
        raise InvalidInputError(
            f"n_points is {count}, fewer than n_clusters={k}",
            argument="n_points",
            remedy=f"pass at least {k}, or ten for each",
        )
    rng = np.random.default_rng(resolve_seed(random_state))
    first, weights = distinct_rows(rows.points, rows.weights)
    points, numbers = dense(rows.points[first]), rows.indices[first]
    if len(points) <= count:
        return Centroids(points, weights, numbers)
    rough = rough_kmeans(points, weights, k, rng)
    for _ in range(_ROUGH_STEPS):
        rough = lloyd_step(points, weights, rough.centers)
    centers = rough.centers
    labels, distances = assign(points, centers)
    costs = np.bincount(labels, weights * distances, len(centers)).astype(np.float64)
    shares = _shares(costs, np.bincount(labels, minlength=len(centers)), count)
    cells, nearest = [], []
    for part, share in enumerate(shares):
        check_time("centroids were being found", "pass a smaller n_points")
        members = np.flatnonzero(labels == part)
        if len(members):
            found, near = _cells(points[members], weights[members], int(share), rng)
            cells.append(found)
            nearest.append(numbers[members[near]])
    return Centroids(
        np.concatenate([one.centers for one in cells]),
        np.concatenate([one.weights for one in cells]),
        np.concatenate(nearest),
        constant=sum(one.cost for one in cells),
    )


def _cells(
    points: FloatArray, weights: FloatArray, count: int, rng: np.random.Generator
) -> tuple[Clusters, IndexArray]:
    """Return cells of some rows, and the position of the row nearest to each of their means."""
    cells = seed_cells(points, weights, count, rng).clusters
    for _ in range(_STEPS):
        cells = lloyd_step(points, weights, cells.centers)
    labels, distances = assign(points, cells.centers)
    order = np.lexsort((distances, labels))
    found, firsts = np.unique(labels[order], return_index=True)
    near = np.zeros(len(cells), dtype=np.int64)
    near[found] = order[firsts]
    return cells, near


def _shares(costs: FloatArray, sizes: IndexArray, count: int) -> IndexArray:
    """Split `count` cells by the costs of parts: at least one for each, at most its rows."""
    shares = np.minimum(1.0, sizes)
    while True:
        free = (shares < sizes) & (costs > 0.0)
        left = count - shares.sum()
        if left < 1.0 or not free.any():
            break
        wanted = np.where(free, costs, 0.0)
        shares = np.minimum(shares + left * wanted / wanted.sum(), sizes)
    # Rounded together, so that what is lost in one part is there for the next.
    whole = np.diff(np.floor(np.cumsum(shares) + 1e-6), prepend=0.0)
    return np.clip(whole, 1, sizes).astype(np.int64)
