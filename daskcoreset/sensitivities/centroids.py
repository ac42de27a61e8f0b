"""Centroids in the place of the rows of a coreset, for the costs of centers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import dense, tiles
from daskcoreset.core.moments import box_of
from daskcoreset.core.ordering import spatial_order
from daskcoreset.core.typing import FloatArray, IndexArray, Points
from daskcoreset.core.validation import check_choice
from daskcoreset.sensitivities.base import Represented, SamplingDesign
from daskcoreset.solvers.centroids import centroids
from daskcoreset.solvers.divergences import (
    Divergence,
    SquaredEuclidean,
    SquaredMahalanobis,
    plain_fields,
)
from daskcoreset.solvers.kmeans import cells_of

Representatives: TypeAlias = Literal["rows", "centroids"]

# Rows that are drawn at least, and for each centroid at least. With 100 clusters and 1,000
# centroids of 10,000 rows the solutions cost 1 % more; of 50,000 they cost no less.
_MIN_ROWS = 20_000
_ROWS_PER_CENTROID = 2

# Draws of a cell of the order in which these rows are drawn: that of single draws takes longer, for
# solutions of the same costs. In no order, estimates of the cost spread up to 20 times as far.
_DRAWS_PER_CELL = 16

# Numbers of the candidates among which these are drawn, four for each: 256 MiB.
_MAX_NUMBERS = 2**25
_CANDIDATES = 4


@dataclass(frozen=True)
class Representable:
    """Base of constructions whose coresets may have centroids in the place of rows."""

    representatives: Representatives = field(default="rows", kw_only=True)

    def __post_init__(self) -> None:
        check_choice("representatives", self.representatives, "rows", "centroids")
        others = getattr(super(), "__post_init__", None)
        if others is not None:
            others()
        divergence = self._of_cells
        open_ = isinstance(divergence, SquaredMahalanobis) and divergence.precision is None
        if open_ and self.representatives == "centroids":
            raise InvalidInputError(
                'representatives="centroids" needs a distance that is known, and the precision of '
                'divergence="mahalanobis" is estimated from the data; pass '
                "SquaredMahalanobis(precision), or leave representatives out."
            )

    @property
    def _of_cells(self) -> Divergence:
        """By which the cost in the cells is measured."""
        return SquaredEuclidean()

    @property
    def design(self) -> SamplingDesign[Any]:
        """The design of the draw: of more rows, where centroids stand for them."""
        if self.representatives == "centroids":
            return CentroidDesign(self._of_cells, getattr(self, "n_clusters", None))
        return SamplingDesign()

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, in plain JSON values."""
        named = plain_fields(self)
        if self.representatives == "rows":  # as in coresets and trees that were stored before
            del named["representatives"]
        return named


@dataclass(frozen=True)
class CentroidDesign(SamplingDesign[Any]):
    """Centroids of small cells of many more rows.

    Attributes
    ----------
    divergence : Divergence
        That the cost in the cells is of.
    n_clusters : int or None
        Of the solutions that are looked for, where they are known.
    """

    divergence: Divergence
    n_clusters: int | None

    def n_drawn(self, size: int, n_features: int) -> int:
        """20,000 rows, and two for each centroid, as far as their candidates fit into 256 MiB.

        Where no more than `size` fit, the rows stand for themselves.
        """
        wanted = max(_MIN_ROWS, _ROWS_PER_CENTROID * size)
        return max(size, min(wanted, _MAX_NUMBERS // (_CANDIDATES * max(1, n_features))))

    def order(self, rows: Block, summary: Any, inclusion: FloatArray) -> IndexArray:
        """Return a spatial order down to cells of 16 draws, with rows that are certain first."""
        del summary
        share = np.where(inclusion < 1.0, inclusion / _DRAWS_PER_CELL, 1.0)
        return spatial_order(rows.points, share)

    def represent(
        self, rows: Block, weights: FloatArray, size: int, rng: np.random.Generator
    ) -> Represented | None:
        """Return centroids of cells of the rows, the cost in the cells, and a row of each."""
        counted = np.flatnonzero(weights > 0.0)
        if len(counted) <= size:
            return None
        points: Any = rows.points
        points, weights, k = points[counted], weights[counted], self.n_clusters
        metric = self._metric(points, weights)
        if not isinstance(metric, SquaredMahalanobis):
            found = centroids(points, weights, size, rng, k)
            means = found.points
        else:
            origin = dense(points[:1])[0]
            found = centroids(metric.whiten(dense(points) - origin), weights, size, rng, k)
            starts = dense(points[found.rows]).astype(np.float64)
            means = cells_of(points, weights, found.labels, starts).clusters.centers
        euclidean = isinstance(self.divergence, SquaredEuclidean)
        losses = found.distances if euclidean else self._losses(points, found.labels, means)
        costs = weights * losses
        drawn, drawn_weights = _one_of_each_cell(weights, costs, found.labels, len(means), rng)
        return Represented(
            means,
            found.weights,
            counted[found.rows],
            float(costs.sum()),
            counted[drawn],
            drawn_weights,
        )

    def _metric(self, points: Points, weights: FloatArray) -> Divergence:
        """Return the quadratic distance that dominates the divergence on the rows."""
        if isinstance(self.divergence, (SquaredEuclidean, SquaredMahalanobis)):
            return self.divergence
        box = box_of(points, weights)
        return self.divergence.dominating(box.low, box.high)

    def _losses(self, points: Points, labels: IndexArray, means: FloatArray) -> FloatArray:
        """Return the divergence of every row to the mean of its cell."""
        losses = np.empty(len(labels))
        for part in tiles(len(labels), means.shape[1]):
            losses[part] = self.divergence.between(dense(points[part]), means[labels[part]])
        return losses


def _one_of_each_cell(
    weights: FloatArray,
    costs: FloatArray,
    labels: IndexArray,
    n_cells: int,
    rng: np.random.Generator,
) -> tuple[IndexArray, FloatArray]:
    """Draw a row of each cell; return their positions, and weights by which sums are unbiased.

    As a lightweight coreset draws from all data: half by weight, half by the cost in the cell. So
    the weight of a row far out is small, and no weight is above twice that of the cell.
    """
    total, cost = (np.bincount(labels, values, n_cells)[labels] for values in (weights, costs))
    by_weight = weights / total
    by_cost = np.divide(costs, cost, out=by_weight.copy(), where=cost > 0.0)
    shares = (by_weight + by_cost) / 2.0
    order = np.argsort(labels, kind="stable")
    stops = np.cumsum(np.bincount(labels, minlength=n_cells))
    sums = np.cumsum(shares[order])
    before = np.concatenate([[0.0], sums[stops[:-1] - 1]])
    coins = before + rng.random(n_cells) * (sums[stops - 1] - before)
    drawn = order[np.minimum(np.searchsorted(sums, coins, side="right"), stops - 1)]
    return drawn, weights[drawn] / shares[drawn]
