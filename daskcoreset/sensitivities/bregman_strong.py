"""Strong coresets for Bregman clustering: sensitivities from a rough solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.linalg import dense, tiles
from daskcoreset.core.typing import FloatArray, IndexArray, Points
from daskcoreset.objectives import Distortion
from daskcoreset.sensitivities.base import Scored, Sensitivity
from daskcoreset.sensitivities.bregman import (
    BregmanStatistics,
    Metric,
    depends_on_data,
    dominating_distance,
    is_diagonal,
    merge_statistics,
    statistics_of,
)
from daskcoreset.sensitivities.kmeans import StrongKMeans, rough_cells
from daskcoreset.solvers.divergences import (
    Divergence,
    DivergenceParameter,
    SquaredMahalanobis,
)
from daskcoreset.solvers.kmeans import (
    Clusters,
    Partition,
    cells_of,
    concatenate_clusters,
    merge_clusters,
)


@dataclass(frozen=True, eq=False)
class BregmanCells:
    r"""Cells of blocks, whose costs follow for any dominating distance.

    Attributes
    ----------
    clusters : Clusters
        Means, weights and costs of the cells. Costs are of shape (k, d),
        :math:`\sum_x u(x)\, (x_j - c_j)^2` by column, while A, which is diagonal then, is not
        known. Else (k, 1), :math:`\sum_x u(x)\, d_A(x, c)`.
    spread : BregmanStatistics or None
        Statistics of the rows, while A depends on them.
    metric : SquaredEuclidean or SquaredMahalanobis, or None
        The distance. None while it depends on the data.
    """

    clusters: Clusters
    spread: BregmanStatistics | None = None
    metric: Metric | None = None

    def __len__(self) -> int:
        return len(self.clusters)

    def distance(self, divergence: Divergence) -> Metric:
        """Return the distance; without one, that of these rows."""
        if self.metric is not None:
            return self.metric
        assert self.spread is not None  # noqa: S101 - it depends on the data
        return dominating_distance(divergence, self.spread)

    def solution(self, metric: Metric, origin: FloatArray | None = None) -> WhiteSolution:
        """Return the cells in coordinates, about `origin`, whose distances are Euclidean."""
        centers, weights, costs = self.clusters.centers, self.clusters.weights, self.clusters.costs
        if origin is None:
            origin = np.zeros(centers.shape[1])
            if isinstance(metric, SquaredMahalanobis):
                first = centers[0]  # about one of them, so that an offset costs no digits
                origin = first + weights @ (centers - first) / weights.sum()
        if self.metric is None:
            assert isinstance(metric, SquaredMahalanobis)  # noqa: S101 - of positive data
            costs = costs * metric.precision
        white = Clusters(_white(metric, centers, origin), weights, costs.sum(axis=1))
        return WhiteSolution(metric, origin, white)


@dataclass(frozen=True, eq=False)
class WhiteSolution:
    """A rough solution in whitened coordinates.

    Attributes
    ----------
    metric : SquaredEuclidean or SquaredMahalanobis
    origin : ndarray of shape (d,), float64
        Subtracted from rows before they are whitened. Zero where they are not.
    clusters : Clusters
        Empty after the first of two folds.
    """

    metric: Metric
    origin: FloatArray
    clusters: Clusters


RoughBregman: TypeAlias = BregmanCells | WhiteSolution


@dataclass(frozen=True)
class StrongBregman(DivergenceParameter, Sensitivity[RoughBregman]):
    r"""Strong coresets for hard and soft Bregman clustering: a multiplicative error.

    The sensitivities are those of `StrongKMeans`, with the dominating squared Mahalanobis distance
    :math:`d_A`. k-means++ by :math:`d_A` gives a rough solution B with cells :math:`B_i`. With
    :math:`\bar c = \sum_x u(x)\, d_A(x, B) / U`,

    .. math::

        s(x) = \frac{\alpha\, d_A(x, B)}{\bar c} + \frac{2 \alpha \sum_{x' \in B_i} u(x')\,
        d_A(x', B)}{U(B_i)\, \bar c} + \frac{4 U}{U(B_i)} + \beta,
        \qquad q(x) = \frac{u(x) s(x)}{\sum u s} .

    If :math:`d_A` is the divergence itself, :math:`\beta = 0`. For divergences of positive data,
    :math:`\beta = 3 \alpha + 4 k`, so that at least half of the draws are uniform. There rows with
    large entries, such as spectra, can dominate the other terms. The guide is
    :doc:`/guides/clusters`.

    Parameters
    ----------
    n_clusters : int
        k, the number of clusters that you will look for.
    divergence : str or Divergence, default="squared_euclidean"
        A name such as "kl", or an object of `daskcoreset.objectives.divergences`. "mahalanobis"
        without a precision estimates it in one more pass before the others.
    n_centers : int, optional
        Centers of the rough solution, as in `StrongKMeans`. Default: `n_clusters`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a parameter cannot be used. When building, if a row with positive weight is outside the
        domain (the message names the first one), or if the covariance is singular.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.repeat([[1.0, 9.0], [9.0, 1.0], [5.0, 5.0]], [900, 99, 1], axis=0)
    >>> method = StrongBregman(3, "kl")
    >>> coreset = daskcoreset.build(X, size=60, method=method, random_state=0)
    >>> 999 in coreset.indices  # a cluster of one row is never missed
    True

    References
    ----------
    Lucic, Bachem and Krause (2016), Strong coresets for hard and soft Bregman clustering,
    Algorithm 2. The constants are those of Bachem, Lucic and Krause (2017), section 4.
    """

    n_clusters: int
    divergence: str | Divergence = "squared_euclidean"
    n_centers: int | None = None

    name: ClassVar[str] = "strong_bregman"
    citation: ClassVar[str] = "lucic2016strong, Algorithm 2"
    total_scores_exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._rough  # which checks the numbers

    @property
    def objective(self) -> Distortion:
        """The cost of Bregman hard clustering with k centers."""
        return Distortion(self.n_clusters, self.divergence)

    @property
    def _rough(self) -> StrongKMeans:
        """The construction for the Euclidean distances of whitened rows."""
        return StrongKMeans(self.n_clusters, self.n_centers)

    @property
    def _uniform(self) -> float:
        """Part of s(x) that every row has, where the dominating distance may mislead."""
        divergence = self._divergence
        if isinstance(divergence, SquaredMahalanobis) or not depends_on_data(divergence):
            return 0.0
        return 3 * self._rough.alpha + 4 * self._rough.centers

    @property
    def n_folds(self) -> int:
        """Two if A is estimated before cells are made, else one."""
        divergence = self._divergence
        return 2 if depends_on_data(divergence) and not is_diagonal(divergence) else 1

    def block_summary(
        self, block: Block, previous: RoughBregman | None, rng: np.random.Generator
    ) -> Scored:
        """Cells of the block by k-means++, and scores by the distances that they were made with.

        In the first fold of two, the spread alone.
        """
        cells, partition = self._cells(block, previous, rng)
        scores = np.zeros(len(block))
        if partition is not None:
            counted = block.weights > 0.0
            scores[counted] = self._rough.score_by(partition, block.weights[counted])
            scores += self._uniform * block.weights
        return Scored(cells, scores)

    def _cells(
        self, block: Block, previous: RoughBregman | None, rng: np.random.Generator
    ) -> tuple[BregmanCells, Partition | None]:
        """Return cells of the rows of positive weight, and where these lie, if there are any."""
        divergence, d = self._divergence, block.points.shape[1]
        spread, metric = None, None
        if isinstance(previous, WhiteSolution):
            metric = previous.metric
        elif depends_on_data(divergence):
            spread = statistics_of(divergence, block.points, block.weights)
        else:
            metric = cast("Metric", divergence)
        nothing = Clusters(np.empty((0, d)), np.empty(0), np.empty((0, d if metric is None else 1)))
        cells = BregmanCells(nothing, spread, metric)
        rows = np.flatnonzero(block.weights > 0)
        if not len(rows) or (previous is None and self.n_folds > 1):
            return cells, None
        if len(rows) < len(block):
            block = block.take(rows)
        points, u, distance = block.points, block.weights, cells.distance(divergence)
        if not isinstance(distance, SquaredMahalanobis):  # Euclidean: rows are white already
            partition = rough_cells(points, u, self._rough.centers, rng)
            means, costs = partition.clusters.centers, partition.clusters.costs[:, np.newaxis]
        else:
            points = dense(points)
            white = _white(distance, points, points[0])
            partition = rough_cells(white, u, self._rough.centers, rng)
            labels, costs = partition.labels, partition.clusters.costs[:, np.newaxis]
            # Means of the rows as they are: the root whitens them by the distance of all data.
            starts = np.repeat(points[:1], len(costs), axis=0)
            means = cells_of(points, u, labels, starts).clusters.centers
            if metric is None:
                costs = _costs_by_column(points, u, labels, means)
        clusters = Clusters(means, partition.clusters.weights, costs)
        return replace(cells, clusters=clusters), partition

    def merge(self, first: RoughBregman, second: RoughBregman) -> BregmanCells:
        """Concatenate the tables of both."""
        assert isinstance(first, BregmanCells)  # noqa: S101 - what is finalized is not merged
        assert isinstance(second, BregmanCells)  # noqa: S101
        spread = first.spread
        if spread is not None and second.spread is not None:
            spread = merge_statistics(spread, second.spread)
        both = concatenate_clusters([first.clusters, second.clusters])
        return BregmanCells(both, spread, first.metric)

    def finalize(self, summary: RoughBregman, rng: np.random.Generator) -> WhiteSolution:
        """Fix the distance, and cluster the cells of all blocks into k."""
        assert isinstance(summary, BregmanCells)  # noqa: S101 - as merged
        metric, cells = summary.distance(self._divergence), summary.clusters
        if not len(cells):
            nothing = Clusters(cells.centers, cells.weights, cells.weights)
            return WhiteSolution(metric, np.zeros(cells.centers.shape[1]), nothing)
        rough = summary.solution(metric)
        return replace(rough, clusters=merge_clusters(rough.clusters, self._rough.centers, rng))

    def scores(self, block: Block, summary: RoughBregman) -> FloatArray:
        """Return u s(x)."""
        scores = np.zeros(len(block))
        if isinstance(summary, BregmanCells):
            if not len(summary):
                return scores
            summary = summary.solution(summary.distance(self._divergence))
        for rows in tiles(len(block), block.points.shape[1]):
            white = _white(summary.metric, block.points[rows], summary.origin)
            tile = Block(white, block.weights[rows])
            scores[rows] = self._rough.scores(tile, summary.clusters)
        if len(summary.clusters):
            scores += self._uniform * block.weights
        return scores

    def total_scores(self, local: RoughBregman, summary: RoughBregman) -> float:
        """Return the sum of `scores`, as if every cell of the block lay in one of B."""
        assert isinstance(local, BregmanCells)  # noqa: S101 - of one block
        assert isinstance(summary, WhiteSolution)  # noqa: S101 - of all data
        if not len(local):
            return 0.0
        solution = local.solution(summary.metric, summary.origin)
        total = self._rough.total_scores(solution.clusters, summary.clusters)
        return total + self._uniform * local.clusters.weight

    def provenance(self, summary: RoughBregman) -> dict[str, Any]:
        """Return the cost of the rough solution by the dominating distance."""
        assert isinstance(summary, WhiteSolution)  # noqa: S101
        return {"rough_cost": summary.clusters.cost, "rough_centers": len(summary.clusters)}


def _white(metric: Metric, points: Points, origin: FloatArray) -> Any:
    # Shifted first: an offset of the data is gone before a matrix mixes the columns.
    if isinstance(metric, SquaredMahalanobis):
        return metric.whiten(dense(points) - origin)
    return points


def _costs_by_column(
    points: FloatArray, weights: FloatArray, labels: IndexArray, means: FloatArray
) -> FloatArray:
    costs = np.empty(means.shape)
    for j, column in enumerate(points.T):
        costs[:, j] = np.bincount(labels, weights=weights * (column - means[labels, j]) ** 2)
    return costs
