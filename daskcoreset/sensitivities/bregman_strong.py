"""Strong coresets for Bregman clustering: sensitivities from a rough solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.linalg import dense, tiles
from daskcoreset.objectives import Distortion
from daskcoreset.sensitivities.base import Sensitivity
from daskcoreset.sensitivities.bregman import (
    BregmanStatistics,
    Metric,
    depends_on_data,
    dominating_distance,
    is_diagonal,
    merge_statistics,
    statistics_of,
)
from daskcoreset.sensitivities.kmeans import StrongKMeans, rough_cells, too_rough
from daskcoreset.solvers.divergences import (
    Divergence,
    SquaredMahalanobis,
    as_divergence,
    domain_problem,
)
from daskcoreset.solvers.kmeans import Clusters, cells_of, merge_clusters

if TYPE_CHECKING:
    from daskcoreset.core.blocks import InvalidRow
    from daskcoreset.core.typing import FloatArray, IndexArray, Points
    from daskcoreset.solvers.kmeans import Partition


@dataclass(frozen=True, eq=False)
class Cells:
    r"""Cells of blocks, in terms that any dominating distance can use.

    Attributes
    ----------
    centers : ndarray of shape (k, d), float64
        Means of the cells.
    weights : ndarray of shape (k,), float64
    costs : ndarray of shape (k, d) or (k, 1), float64
        :math:`\sum_x u(x)\, (x_j - c_j)^2` by column while A, which is diagonal then, is not
        known; else :math:`\sum_x u(x)\, d_A(x, c)`.
    spread : BregmanStatistics or None
        Of the rows, while A depends on them.
    metric : SquaredEuclidean or SquaredMahalanobis, or None
        The distance; None while it depends on the data.
    """

    centers: FloatArray
    weights: FloatArray
    costs: FloatArray
    spread: BregmanStatistics | None = None
    metric: Metric | None = None

    def __len__(self) -> int:
        return len(self.centers)

    def distance(self, divergence: Divergence) -> Metric:
        """Return the distance, from these rows where nothing else is known."""
        if self.metric is not None:
            return self.metric
        assert self.spread is not None  # noqa: S101 - it depends on the data
        return dominating_distance(divergence, self.spread)

    def of(self, centers: FloatArray, weights: FloatArray, costs: FloatArray) -> Cells:
        """Return these cells, with what is known of all rows."""
        costs = costs.reshape(len(centers), -1)
        return replace(self, centers=centers, weights=weights, costs=costs)

    def solution(self, metric: Metric, origin: FloatArray | None = None) -> Solution:
        """Return the cells in coordinates, about `origin`, whose distances are Euclidean."""
        if origin is None and isinstance(metric, SquaredMahalanobis):
            first = self.centers[0]  # about one of them, so that an offset costs no digits
            origin = first + self.weights @ (self.centers - first) / self.weights.sum()
        elif origin is None:
            origin = np.zeros(self.centers.shape[1])
        costs = self.costs
        if self.metric is None:
            assert isinstance(metric, SquaredMahalanobis)  # noqa: S101 - of positive data
            costs = costs * metric.precision
        white = _white(metric, self.centers, origin)
        return Solution(metric, origin, Clusters(white, self.weights, costs.sum(axis=1)))


@dataclass(frozen=True, eq=False)
class Solution:
    """A rough solution in whitened coordinates.

    Attributes
    ----------
    metric : SquaredEuclidean or SquaredMahalanobis
    origin : ndarray of shape (d,), float64
        Subtracted from rows before they are whitened; zero where they are not.
    clusters : Clusters
        Empty after the first of two folds.
    """

    metric: Metric
    origin: FloatArray
    clusters: Clusters


@dataclass(frozen=True)
class StrongBregman(Sensitivity["Cells | Solution"]):
    r"""Coresets for hard and soft Bregman clustering with a multiplicative error only.

    The sensitivities of `StrongKMeans`, with the dominating squared Mahalanobis distance
    :math:`d_A` in place of the squared Euclidean one: k-means++ by :math:`d_A` gives a rough
    solution B with cells :math:`B_i`, and with :math:`\bar c = \sum_x u(x)\, d_A(x, B) / U`

    .. math::

        s(x) = \frac{\alpha\, d_A(x, B)}{\bar c} + \frac{2 \alpha \sum_{x' \in B_i} u(x')\,
        d_A(x', B)}{U(B_i)\, \bar c} + \frac{4 U}{U(B_i)},
        \qquad q(x) = \frac{u(x) s(x)}{\sum u s} .

    One read suffices, unless a precision is to be estimated: that needs ``passes=2``.

    Parameters
    ----------
    n_clusters : int
        k, the number of clusters that will be looked for.
    divergence : str or Divergence, default="squared_euclidean"
        A name in `daskcoreset.divergences.DIVERGENCES`, or a divergence.
    n_centers : int or None, default=None
        Centers of the rough solution; None takes `n_clusters`. See `StrongKMeans`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a parameter cannot be used. When building: if a row of positive weight lies outside
        the domain (the first such row is named), or if the covariance is singular.

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
    Algorithm 2; constants as restated by Bachem, Lucic and Krause (2017), section 4.
    """

    n_clusters: int
    divergence: str | Divergence = "squared_euclidean"
    n_centers: int | None = None

    name: ClassVar[str] = "strong_bregman"
    citation: ClassVar[str] = "lucic2016strong, Algorithm 2"
    randomised: ClassVar[bool] = True
    total_scores_exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "divergence", as_divergence(self.divergence))
        _ = self._rough  # which checks the numbers

    @property
    def _divergence(self) -> Divergence:
        return as_divergence(self.divergence)

    @property
    def objective(self) -> Distortion:
        """The cost of Bregman hard clustering with k centers."""
        return Distortion(self.n_clusters, self.divergence)

    @property
    def _rough(self) -> StrongKMeans:
        """The construction for the Euclidean distances of whitened rows."""
        return StrongKMeans(self.n_clusters, self.n_centers)

    @property
    def n_folds(self) -> int:
        """Two where A is neither given nor diagonal: cells cannot wait for it."""
        divergence = self._divergence
        return 2 if depends_on_data(divergence) and not is_diagonal(divergence) else 1

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row outside the domain."""
        return domain_problem(self._divergence, block)

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why a rough solution of a block would take too much."""
        return too_rough(self.n_clusters, n_rows, n_features)

    def block_summary(
        self, block: Block, previous: Cells | Solution | None, rng: np.random.Generator
    ) -> Cells:
        """Cells of the block by k-means++; in the first fold of two the spread alone."""
        cells, rows = self._nothing(block, previous)
        if not len(rows) or (previous is None and self.n_folds > 1):
            return cells
        return self._filled(cells, block, rows, rng)[0]

    def proposal(self, block: Block, rng: np.random.Generator) -> tuple[Cells, FloatArray]:
        """Cells of the block, and scores by the distances that they were made with."""
        cells, rows = self._nothing(block, None)
        scores = np.zeros(len(block))
        if len(rows):
            cells, found = self._filled(cells, block, rows, rng)
            scores[rows] = self._rough.score_by(found, block.weights[rows])
        return cells, scores

    def _nothing(self, block: Block, previous: Cells | Solution | None) -> tuple[Cells, IndexArray]:
        """Return what is known before there are cells, and the rows of positive weight."""
        divergence, d = self._divergence, block.points.shape[1]
        spread, metric = None, None
        if isinstance(previous, Solution):
            metric = previous.metric
        elif depends_on_data(divergence):
            spread = statistics_of(divergence, block.points, block.weights)
        else:
            metric = cast("Metric", divergence)
        costs = np.empty((0, d if metric is None else 1))
        cells = Cells(np.empty((0, d)), np.empty(0), costs, spread, metric)
        return cells, np.flatnonzero(block.weights > 0)

    def _filled(
        self, cells: Cells, block: Block, rows: IndexArray, rng: np.random.Generator
    ) -> tuple[Cells, Partition]:
        """Cells of the rows of positive weight, by the distance that is known of them."""
        if len(rows) < len(block):
            block = block.take(rows)
        points, u, metric = block.points, block.weights, cells.distance(self._divergence)
        if not isinstance(metric, SquaredMahalanobis):
            found = rough_cells(points, u, self._rough.centers, rng)
            clusters = found.clusters
            return cells.of(clusters.centers, clusters.weights, clusters.costs), found
        points = dense(points)
        found = rough_cells(_white(metric, points, points[0]), u, self._rough.centers, rng)
        labels, costs = found.labels, found.clusters.costs
        starts = np.repeat(points[:1], len(costs), axis=0)
        means = cells_of(points, u, labels, starts).clusters.centers
        if cells.metric is None:
            costs = _costs_by_column(points, u, labels, means)
        return cells.of(means, found.clusters.weights, costs), found

    def merge(self, first: Cells | Solution, second: Cells | Solution) -> Cells:
        """Put the tables of both after one another."""
        assert isinstance(first, Cells)  # noqa: S101 - what is finalized is not merged
        assert isinstance(second, Cells)  # noqa: S101
        spread = first.spread
        if spread is not None and second.spread is not None:
            spread = merge_statistics(spread, second.spread)
        return Cells(
            np.concatenate([first.centers, second.centers]),
            np.concatenate([first.weights, second.weights]),
            np.concatenate([first.costs, second.costs]),
            spread,
            first.metric,
        )

    def finalize(self, summary: Cells | Solution, rng: np.random.Generator) -> Solution:
        """Fix the distance, and cluster the cells of all blocks into k."""
        assert isinstance(summary, Cells)  # noqa: S101 - as merged
        metric = summary.distance(self._divergence)
        if not len(summary):
            nothing = Clusters(summary.centers, summary.weights, summary.weights)
            return Solution(metric, np.zeros(summary.centers.shape[1]), nothing)
        rough = summary.solution(metric)
        return replace(rough, clusters=merge_clusters(rough.clusters, self._rough.centers, rng))

    def scores(self, block: Block, summary: Cells | Solution) -> FloatArray:
        """Return u s(x), its three terms apart."""
        scores = np.zeros((3, len(block)))
        if isinstance(summary, Cells):
            if not len(summary):
                return scores
            summary = summary.solution(summary.distance(self._divergence))
        for rows in tiles(len(block), block.points.shape[1]):
            white = _white(summary.metric, block.points[rows], summary.origin)
            tile = Block(white, block.weights[rows])
            scores[:, rows] = self._rough.scores(tile, summary.clusters)
        return scores

    def total_scores(self, local: Cells | Solution, summary: Cells | Solution) -> FloatArray:
        """Return the sums of `scores`, as if every cell of the block lay in one of B."""
        assert isinstance(local, Cells)  # noqa: S101 - of one block
        assert isinstance(summary, Solution)  # noqa: S101 - of all data
        if not len(local):
            return np.zeros(3)
        own = local.solution(summary.metric, summary.origin)
        return self._rough.total_scores(own.clusters, summary.clusters)

    def provenance(self, summary: Cells | Solution) -> dict[str, Any]:
        """Return the cost of the rough solution by the dominating distance."""
        assert isinstance(summary, Solution)  # noqa: S101
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
