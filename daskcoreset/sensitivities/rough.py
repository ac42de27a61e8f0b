r"""Rough k-means solutions: of a long block in one go, and of all data by folds.

**Of a block** (`rough_cells`), by k-means++ in rounds. In each, a few thousand rows are drawn
in proportion to :math:`u\, d(x, C)^2`, C the centers so far, k-means++ goes on among these
alone, and the distances of *all* rows to the new centers are taken. So the cost that the next
round draws by is the cost of all rows: what a sample has missed makes up much of it, and is
found by the next one. The giants of a heavy tail are drawn with certainty and leave the rest of
the sample to rows of smaller scale; k-means++ meets them one scale after another.

**By folds**: k-means|| and, as its smallest case, k-means++. Every fold proposes rows with
probability proportional to :math:`u\, d(x, C)^2`, by weight alone in the first. A proposal
carries the key :math:`E / (u\, d(x, C)^2)` with E exponential; the rows with the smallest keys
of all blocks are a sample without replacement, and keeping the smallest is associative
(Efraimidis and Spirakis 2006). With one row a fold that is k-means++ on data of any size; with
about 2 k rows a fold, and five folds, k-means||.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.validation import too_many, too_wide
from daskcoreset.solvers.clusters import (Partition, approach, assign, cells_of, costs_of, own_distances, plus_plus, seed_cells)
from daskcoreset.core.tiles import (dense_rows)
from daskcoreset.core.sampling import draw_with_replacement, inclusion_probabilities, systematic
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block

__all__ = ["Seeds", "merge_seeds", "propose", "rough_cells", "settle_seeds", "too_rough"]

_DIRECT_ROWS = 16_384
"""Rows of a block in which k-means++ draws from all of them."""

_SAMPLE_ROWS = 4096
"""Rows of the sample of a round, at least."""

_ROWS_PER_CENTER = 64
"""Rows for a center, where that makes either more."""

_ENOUGH = 1.2
"""Centers of a long block for each that is wanted, in three rounds: the root pools them."""

_MOST = 4
"""The same at most: as long as every round halves the cost."""

_MOST_ROUNDS = 16
"""Rounds at most: those that find one value of many equal rows find little else."""

_FLOAT32_COSTS = (1e-12, 1e30)
"""Largest squared distance for which float32 has room on both sides."""


def rough_cells(
    points: Points, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Partition:
    r"""Cells of a block of any length, with exact weights, means and costs over all its rows.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
    n_clusters : int
        Centers wanted, k.
    rng : numpy.random.Generator

    Returns
    -------
    Partition
        Of up to 16,384 rows, or 64 k, those of `seed_clusters`. Of more rows about 1.2 k cells,
        and up to 4 k as long as every 0.4 k further ones halve the cost; fewer where fewer rows
        are distinct.

    Notes
    -----
    Beside the distances of all rows to all centers a round takes one sum over the rows and one
    draw. No table of n x k numbers is made.

    Examples
    --------
    >>> found = rough_cells(
    ...     np.repeat([[0.0], [9.0]], [10**5, 1], axis=0),
    ...     np.ones(10**5 + 1),
    ...     2,
    ...     np.random.default_rng(0),
    ... )
    >>> sorted(found.clusters.weights.tolist())
    [1.0, 100000.0]

    References
    ----------
    Arthur and Vassilvitskii (2007), k-means++; Bahmani et al. (2012), k-means||, for the rounds;
    Aggarwal, Deshpande and Kannan (2009), Adaptive sampling for k-means clustering, for a
    constant factor with a multiple of k centers.
    """
    if points.shape[0] <= max(_DIRECT_ROWS, _ROWS_PER_CENTER * n_clusters):
        return seed_cells(points, weights, n_clusters, rng)
    labels, seeds = _seeds_in_rounds(points, weights, n_clusters, rng)
    return cells_of(points, weights, labels, seeds)


def _seeds_in_rounds(
    points: Points, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    n = points.shape[0]
    labels = np.zeros(n, dtype=np.int64)
    if not weights.any():
        return labels, np.empty((0, points.shape[1]))
    seeds = [dense_rows(points[draw_with_replacement(weights, 1, rng)])]
    distances = own_distances(points, labels, seeds[0].astype(np.float64))
    # Rows and seeds of float32 differ exactly enough in float32, at whatever offset.
    low, high = _FLOAT32_COSTS
    narrow = points.dtype == np.float32 and low < distances.max() < high
    count = max(8, math.ceil(0.4 * n_clusters))
    mass = costs_of(weights, distances)
    idle = None if weights.all() else weights == 0.0
    cost, found = float(mass.sum()), 1
    for _ in range(_MOST_ROUNDS):
        if not 0.0 < cost < np.inf:  # an infinite one is an error at the root
            break
        chosen = _seeds_of_sample(points, weights, distances, mass, count, rng)
        wide = chosen if narrow else chosen.astype(np.float64)
        approach(points, wide, found, labels, distances)
        seeds.append(chosen)
        found += len(chosen)
        np.multiply(weights, distances, out=mass)
        if idle is not None:
            mass[idle] = 0.0
        before, cost = cost, float(mass.sum())
        if found >= _MOST * n_clusters or (found >= _ENOUGH * n_clusters and cost > before / 2):
            break
    return labels, np.concatenate(seeds).astype(np.float64)


def _seeds_of_sample(  # noqa: PLR0917 - all of them are always given
    points: Points,
    weights: FloatArray,
    distances: FloatArray,
    mass: FloatArray,
    count: int,
    rng: np.random.Generator,
) -> AnyArray:
    """Go on with k-means++ among rows drawn by their costs."""
    inclusion = inclusion_probabilities(mass, max(_SAMPLE_ROWS, _ROWS_PER_CENTER * count))
    rows = systematic(inclusion, rng)
    sample = dense_rows(points[rows])
    u, near = weights[rows] / inclusion[rows], distances[rows]
    labels = np.zeros(len(rows), dtype=np.int64)
    return sample[plus_plus(sample, u, rng.random(count), labels, near, known=1)]


def too_rough(n_clusters: int, n_rows: int, n_features: int) -> str | None:
    """Return why a block is too wide, or centers are too many, for its rough solution."""
    sample = min(n_rows, max(_DIRECT_ROWS, _ROWS_PER_CENTER * n_clusters))
    remedy = (
        "pass fewer columns, for example those of sklearn.decomposition.TruncatedSVD, or "
        'method="lightweight", which leaves sparse rows as they are'
    )
    what = f"a sample of {sample:,} rows, zeros included,"
    wide = too_wide(sample, n_features, what, remedy)
    return wide or too_many(n_clusters, n_rows, n_features)


@dataclass(frozen=True, eq=False)
class Seeds:
    """Centers so far, and proposals of a fold that is under way.

    Attributes
    ----------
    centers : ndarray of shape (s, d), float64
    proposals : ndarray of shape (l, d), float64
    keys : ndarray of shape (l,), float64
        Increasing.
    folds : int
        Folds whose proposals have become centers.
    """

    centers: FloatArray
    proposals: FloatArray
    keys: FloatArray
    folds: int = 0


def propose(block: Block, previous: Seeds | None, count: int, rng: np.random.Generator) -> Seeds:
    """Propose `count` rows of a block as further centers.

    Parameters
    ----------
    block : Block
    previous : Seeds or None
        Centers so far; None for the first, which are drawn by weight alone.
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    Seeds
        Fewer than `count` proposals where fewer rows have a distance to every center.

    References
    ----------
    Bahmani et al. (2012), Algorithm 2, steps 3 to 5, with a fixed number of rows a round.
    """
    n_features = block.points.shape[1]
    centers = np.empty((0, n_features)) if previous is None else previous.centers
    mass = block.weights
    if len(centers) and len(block):
        mass = mass * assign(block.points, centers)[1]
    able = np.flatnonzero(mass > 0)
    keys = rng.standard_exponential(len(mass))[able] / mass[able]
    first = np.argsort(keys, kind="stable")[:count]
    rows = dense_rows(block.points[able[first]]).astype(np.float64)
    return Seeds(centers, rows, keys[first], 0 if previous is None else previous.folds)


def merge_seeds(first: Seeds, second: Seeds, count: int) -> Seeds:
    """Keep the `count` proposals with the smallest keys."""
    keys = np.concatenate([first.keys, second.keys])
    rows = np.concatenate([first.proposals, second.proposals])
    kept = np.argsort(keys, kind="stable")[:count]
    return Seeds(first.centers, rows[kept], keys[kept], first.folds)


def settle_seeds(found: Seeds) -> Seeds:
    """Make the proposals centers."""
    centers = np.concatenate([found.centers, found.proposals])
    nothing = found.proposals[:0]
    return Seeds(centers, nothing, found.keys[:0], found.folds + 1)
