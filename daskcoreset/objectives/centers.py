"""Costs of k centers: the quantization error, and its like for Bregman divergences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from daskcoreset.clusters import cluster, seed_clusters
from daskcoreset.divergences.base import Divergence, dense
from daskcoreset.metrics import as_centers, nearest_distances
from daskcoreset.objectives.base import Objective
from daskcoreset.sensitivities.spread import domain_problem
from daskcoreset.solvers.bregman import bregman_hard
from daskcoreset.solvers.bregman_start import bregman_seeds, prepare
from daskcoreset.typing import FloatArray

if TYPE_CHECKING:
    from daskcoreset.blocks import Block, Problem

__all__ = ["Distortion", "QuantizationError"]


@dataclass(frozen=True)
class _OfCenters(Objective[FloatArray]):
    n_clusters: int

    solved: ClassVar[str]
    seeded: ClassVar[str]

    @property
    def n_parts(self) -> int:
        """Centers of a solution."""
        return self.n_clusters

    def candidates(
        self, block: Block, rng: np.random.Generator
    ) -> Iterator[tuple[str, FloatArray]]:
        """Fitted centers, three seedings, and three sets of rows in proportion to weight."""
        yield self.solved, self.solve(block, rng)
        for i in range(1, 4):
            yield f"{self.seeded} {i}", self.seed(block, rng)
        for i in range(1, 4):
            rows = rng.choice(len(block), self.n_clusters, p=block.weights / block.weights.sum())
            yield f"random rows {i}", dense(block.points[np.unique(rows)])

    def read(self, solution: Any, n_features: int, name: str) -> FloatArray:
        """Return centers as float64."""
        return as_centers(solution, n_features, name)

    def several(self, solutions: Any) -> list[Any]:
        """One array of centers is one solution; a sequence of them, or a cube, is several."""
        single = not isinstance(solutions, Sequence) or np.ndim(solutions[0]) != 2
        return [solutions] if single and np.ndim(solutions) == 2 else list(solutions)


@dataclass(frozen=True)
class QuantizationError(_OfCenters):
    r"""The k-means cost :math:`\sum_x u(x) \min_{q \in Q} |x - q|^2`.

    Parameters
    ----------
    n_clusters : int
        Centers of the solutions that are made here.

    References
    ----------
    Bachem, Lucic and Krause (2018), section 2.
    """

    name: ClassVar[str] = "quantization error"
    solved: ClassVar[str] = "k-means"
    seeded: ClassVar[str] = "k-means++"

    def losses(self, block: Block, solution: FloatArray) -> FloatArray:
        """Squared distance of every row to its nearest center."""
        return nearest_distances(block.points, solution)

    def solve(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Centers by k-means++ and a few steps of Lloyd."""
        return cluster(block.points, block.weights, self.n_clusters, rng).centers

    def seed(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Centers by k-means++."""
        return seed_clusters(block.points, block.weights, self.n_clusters, rng).centers


@dataclass(frozen=True)
class Distortion(_OfCenters):
    r"""The cost of Bregman hard clustering, :math:`\sum_x u(x) \min_{q \in Q} d_\phi(x, q)`.

    Parameters
    ----------
    n_clusters : int
        Centers of the solutions that are made here.
    divergence : Divergence
        With nothing left open: a Mahalanobis distance has its precision.

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), section 3.
    """

    divergence: Divergence

    name: ClassVar[str] = "distortion"
    solved: ClassVar[str] = "Bregman clustering"
    seeded: ClassVar[str] = "seeding"

    def problem(self, block: Block) -> Problem | None:
        """Return the first row of positive weight outside the domain."""
        return domain_problem(self.divergence, block)

    def losses(self, block: Block, solution: FloatArray) -> FloatArray:
        """Divergence of every row to its nearest center; zero for rows that do not count."""
        losses = np.zeros(len(block))
        rows = np.flatnonzero(block.weights > 0)
        losses[rows] = self.divergence.nearest(block.points[rows], solution)[1]
        return losses

    def solve(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Centers by Bregman hard clustering."""
        found = bregman_hard(
            block.points,
            self._clusters_in(block),
            divergence=self.divergence,
            sample_weight=block.weights,
            random_state=rng,
        )
        return found.centers

    def seed(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Rows in the manner of k-means++."""
        k = self._clusters_in(block)
        rows = prepare(block.points, k, self.divergence, block.weights)
        return bregman_seeds(rows, k, rng) + rows.origin

    def read(self, solution: Any, n_features: int, name: str) -> FloatArray:
        """Return centers as float64, inside the domain."""
        centers = super().read(solution, n_features, name)
        problem = self.divergence.problem(centers, name)
        if problem is not None:
            raise problem.error(0)
        return centers

    def _clusters_in(self, block: Block) -> int:
        return min(self.n_clusters, int((block.weights > 0).sum()))
