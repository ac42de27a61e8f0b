"""Strong coresets for k-means: sensitivities from a rough solution."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.sampling import draw_with_replacement, inclusion_probabilities, systematic
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.core.validation import as_int
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives import QuantizationError
from daskcoreset.sensitivities.base import Scored, Sensitivity
from daskcoreset.solvers.kmeans import (
    Clusters,
    Partition,
    approach,
    assign,
    cells_of,
    concatenate_clusters,
    costs_of,
    merge_clusters,
    plus_plus,
    seed_cells,
)

# Rows of a block in which k-means++ draws from all of them.
_DIRECT_ROWS = 16_384

# Products that one task may take: some half an hour.
_MAX_WORK = 2e12

# Numbers of a sample, zeros included: 1 GiB. Of wide rows it has fewer.
_MAX_NUMBERS = 2**27

# Rows of the sample of a round, at least.
_SAMPLE_ROWS = 4096

# Rows for a center, where that makes either more.
_ROWS_PER_CENTER = 64

# Centers of a round for each cluster, and at least. Half as many in twice the rounds found
# solutions as good in more time, for all rows are read in every round.
_CENTERS_OF_ROUND = 0.6
_MIN_CENTERS_OF_ROUND = 16

# Centers of a long block for each cluster, at most; the root pools those of all blocks.
_MAX_CENTERS_PER_CLUSTER = 4

# Shares of the cost of their samples that the second round, and one after it, may leave. A second
# one that would lower the cost by less than a fifth is not worth the distances of all rows; where
# it would by a quarter, rows drawn without it erred more. Further ones have to halve the cost.
_WORTHWHILE = (0.8, 0.5)

# Rounds at most: those that find one value of many equal rows find little else.
_MAX_ROUNDS = 16


def rough_cells(
    points: Points, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Partition:
    r"""Cells of a block of any length, with exact weights, means and costs over all its rows.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
    n_clusters : int
        Number of centers, k.
    rng : numpy.random.Generator

    Returns
    -------
    Partition
        Of up to 16,384 rows, or 64 k, those of `seed_cells`. Of more rows about 0.6 k cells, or
        17. Twice as many where that lowers the cost by a fifth, and up to 4 k as long as 0.6 k
        further ones halve it, as far as a sample tells. Fewer where fewer rows are distinct.

    Notes
    -----
    Beside the distances of all rows to all centers a round takes one sum over the rows and one
    draw, by costs, of the sample in which k-means++ goes on. What is left of the cost of that
    sample tells, within some percent, what a round would do. So the cost of fewer than 4 k seeds is
    at most twice what it would be after another round. No table of n x k numbers is made.

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
    Arthur and Vassilvitskii (2007), k-means++. Bahmani et al. (2012), k-means||, for the rounds.
    Aggarwal, Deshpande and Kannan (2009), Adaptive sampling for k-means clustering, for a
    constant factor with a multiple of k centers.
    """
    check_work(n_clusters, *points.shape)
    if points.shape[0] <= _rows_of_sample(_DIRECT_ROWS, n_clusters, points.shape[1]):
        return seed_cells(points, weights, n_clusters, rng)
    return cells_of(points, weights, *_seeds_in_rounds(points, weights, n_clusters, rng))


def _seeds_in_rounds(
    points: Points, weights: FloatArray, n_clusters: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return the nearest seed of every row, the seeds, and the distances to them."""
    n = points.shape[0]
    labels, distances = np.zeros(n, dtype=np.int64), np.empty(n)
    if not weights.any():
        return labels, np.empty((0, points.shape[1])), distances
    seeds = [dense_rows(points[draw_with_replacement(weights, 1, rng, room=distances)])]
    distances.fill(np.inf)
    approach(points, seeds[0], 0, labels, distances)
    count = max(_MIN_CENTERS_OF_ROUND, math.ceil(_CENTERS_OF_ROUND * n_clusters))
    costs = costs_of(weights, distances)
    n_seeds = 1
    for n_rounds in range(_MAX_ROUNDS):
        if not 0.0 < float(costs.sum()) < np.inf:  # an infinite one is an error at the root
            break
        chosen, left = _seeds_of_sample(points, weights, distances, costs, count, rng)
        if n_rounds > 0 and left > _WORTHWHILE[min(n_rounds, 2) - 1]:
            break
        approach(points, chosen.astype(np.float64), n_seeds, labels, distances)
        seeds.append(chosen)
        n_seeds += len(chosen)
        costs_of(weights, distances, out=costs)
        if n_seeds >= _MAX_CENTERS_PER_CLUSTER * n_clusters:
            break
    return labels, np.concatenate(seeds).astype(np.float64), distances


def _seeds_of_sample(  # noqa: PLR0917 - all of them are always given
    points: Points,
    weights: FloatArray,
    distances: FloatArray,
    costs: FloatArray,
    count: int,
    rng: np.random.Generator,
) -> tuple[AnyArray, float]:
    """Continue k-means++ among rows drawn by their costs. Return which share of these is left."""
    size = _rows_of_sample(_SAMPLE_ROWS, count, points.shape[1])
    inclusion = inclusion_probabilities(costs, size)
    rows = systematic(inclusion, rng)
    sample = dense_rows(points[rows])
    u, near = weights[rows] / inclusion[rows], distances[rows]
    labels = np.zeros(len(rows), dtype=np.int64)
    before = float(costs_of(u, near).sum())
    chosen = sample[plus_plus(sample, u, rng.random(count), labels, near, n_earlier=1)]
    return chosen, float(costs_of(u, near).sum()) / before


def check_work(n_clusters: int, rows: int, columns: int) -> None:
    """Raise an error if k centers of some rows would take more than half an hour.

    Examples
    --------
    >>> check_work(10**6, 10**6, 5)
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: 1,000,000 centers of 1,000,000 rows take 5e+12 ...
    """
    work = float(min(n_clusters, rows)) * rows * columns
    if work > _MAX_WORK:
        raise InvalidInputError(
            f"{n_clusters:,} centers of {rows:,} rows take {work:.2g} products",
            argument="n_clusters",
            remedy="pass a smaller n_clusters",
        )


def _rows_of_sample(least: int, n_centers: int, n_features: int) -> int:
    return max(1, min(max(least, _ROWS_PER_CENTER * n_centers), _MAX_NUMBERS // n_features))


class RoughKMeans(Sensitivity[Clusters]):
    """Sensitivities from the cells of a rough k-means solution."""

    total_scores_exact: ClassVar[bool] = False

    @property
    @abstractmethod
    def centers(self) -> int:
        """Centers of the rough solution."""

    def block_summary(
        self, block: Block, previous: Clusters | None, rng: np.random.Generator
    ) -> Scored:
        """Cells of the block, and scores by the distances that they were made with."""
        del previous
        partition = rough_cells(block.points, block.weights, self.centers, rng)
        return Scored(partition.clusters, self.score_by(partition, block.weights))

    def score_by(self, partition: Partition, weights: FloatArray) -> FloatArray:
        """Return u s(x) by a rough solution, each row in the cell where it lies."""
        if not len(partition.clusters):
            return np.zeros(len(weights))
        by_distance, by_cell, by_weight = self._terms(partition.clusters)
        scores = (by_cell + by_weight)[partition.labels]
        scores += by_distance * partition.distances
        scores *= weights
        return scores

    def merge(self, first: Clusters, second: Clusters) -> Clusters:
        """Concatenate the tables of both."""
        return concatenate_clusters([first, second])

    def finalize(self, summary: Clusters, rng: np.random.Generator) -> Clusters:
        """Cluster the cells of all blocks into k."""
        return merge_clusters(summary, self.centers, rng)

    def scores(self, block: Block, summary: Clusters) -> FloatArray:
        """Return u s(x)."""
        if not len(summary) or not len(block):
            return np.zeros(len(block))
        labels, distances = assign(block.points, summary.centers)
        by_distance, by_cell, by_weight = self._terms(summary)
        scores: FloatArray = by_distance * distances * block.weights
        scores += by_cell[labels] * block.weights
        scores += by_weight[labels] * block.weights
        return scores

    def total_scores(self, local: Clusters, summary: Clusters) -> float:
        """Return the sum of `scores`, as if every cell of the block lay in one of B."""
        if not len(local):
            return 0.0
        labels, distances = assign(local.centers, summary.centers)
        by_distance, by_cell, by_weight = self._terms(summary)
        cost = local.cost + float((local.weights * distances).sum())
        of_cells = local.weights @ (by_cell + by_weight)[labels]
        return float(by_distance * cost + of_cells)

    @property
    def alpha(self) -> float:
        """Factor by which a rough solution may cost more than the best."""
        return 16 * (math.log(self.centers) + 2)

    def _terms(self, summary: Clusters) -> tuple[float, FloatArray, FloatArray]:
        alpha = self.alpha
        weight, mean_cost = summary.weight, summary.cost / summary.weight
        by_weight = 4 * weight / summary.weights
        if mean_cost == 0:  # every row is a center: cells are all that matters
            return 0.0, np.zeros(len(summary)), by_weight
        by_cell = 2 * alpha * summary.costs / (summary.weights * mean_cost)
        return alpha / mean_cost, by_cell, by_weight

    def provenance(self, summary: Clusters) -> dict[str, Any]:
        """Return the cost of the rough solution."""
        return {"rough_cost": summary.cost, "rough_centers": len(summary)}


@dataclass(frozen=True)
class StrongKMeans(RoughKMeans):
    r"""Strong coresets for k-means: a multiplicative error, also for small and uneven clusters.

    With a rough solution B of k centers, its cells :math:`B_i` and
    :math:`\bar c = \phi_X(B) / U`,

    .. math::

        s(x) = \frac{\alpha\, d(x, B)^2}{\bar c}
             + \frac{2 \alpha\, \phi_{B_i}(B)}{U(B_i)\, \bar c} + \frac{4 U}{U(B_i)},
        \qquad \alpha = 16 (\ln k + 2), \qquad q(x) = \frac{u(x) s(x)}{\sum u s} .

    The three terms keep rows far from every center, rows of expensive cells, and rows of small
    cells. If clusters are uneven or lie near the mean of the data, the error is smaller than with
    `Lightweight` at the same size. It needs the same passes and more time per block:
    :doc:`/benchmarks/kmeans` and :doc:`/guides/clusters` compare them.

    Parameters
    ----------
    n_clusters : int
        k, the number of clusters that you will look for.
    n_centers : int, optional
        Centers of the rough solution, between 1 and k. Default: `n_clusters`. With fewer centers it
        is faster (a *welterweight* coreset), and an additive error by the cost of these centers
        remains.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a parameter is not an integer of at least one.

    Notes
    -----
    Blocks may have any length. The scores of all rows are exact, so a cluster of a few rows among a
    million is found by its cost. The time grows with k times the number of rows. It is larger if
    more centers lower the cost by much, up to 4 k of them.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.repeat(np.eye(3), [900, 99, 1], axis=0)
    >>> coreset = daskcoreset.build(X, size=60, method=StrongKMeans(3), random_state=0)
    >>> 999 in coreset.indices  # a cluster of one row is never missed
    True

    References
    ----------
    Lucic, Bachem and Krause (2016), Strong coresets for hard and soft Bregman clustering,
    Algorithm 2. Bachem, Lucic and Krause (2017), section 4. For fewer centers, Draganov, Saulpic
    and Schwiegelshohn (2024), section 5.
    """

    n_clusters: int
    n_centers: int | None = None

    name: ClassVar[str] = "kmeans"
    citation: ClassVar[str] = "lucic2016strong, Algorithm 2"

    def __post_init__(self) -> None:
        as_int("n_clusters", self.n_clusters)
        if self.n_centers is not None:
            as_int("n_centers", self.n_centers)

    @property
    def objective(self) -> QuantizationError:
        """The k-means cost of k centers."""
        return QuantizationError(self.n_clusters)

    @property
    def centers(self) -> int:
        """Centers of the rough solution."""
        return self.n_clusters if self.n_centers is None else self.n_centers
