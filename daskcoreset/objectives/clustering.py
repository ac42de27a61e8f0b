"""Costs of k centers: the quantization error, and Bregman distortion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.invalid import refuse
from daskcoreset.core.linalg import dense
from daskcoreset.core.moments import moments_of
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import as_numbers, n_dims
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives.base import ObjectiveOfParts
from daskcoreset.objectives.cells import Bracket, Cells, bracket_below, cells_by_distance
from daskcoreset.solvers.bregman import bregman_hard, bregman_seeds, prepare
from daskcoreset.solvers.divergences import Divergence, DivergenceParameter
from daskcoreset.solvers.kmeans import assign, rough_kmeans, seed_cells


class _OfCenters(ObjectiveOfParts[FloatArray]):
    parts: ClassVar[str] = "n_clusters"
    solved: ClassVar[str]
    seeded: ClassVar[str]

    def candidates(
        self, block: Block, rng: np.random.Generator
    ) -> Iterator[tuple[str, FloatArray]]:
        """Fitted centers, three seedings, three sets of rows by weight, and the mean alone."""
        yield self.solved, self.solve(block, rng)
        for i in range(1, 4):
            yield f"{self.seeded} {i}", self.seed(block, rng)
        for i in range(1, 4):
            share = block.weights / block.weights.sum()
            rows = rng.choice(len(block), self.parts_in(block), p=share)
            yield f"random rows {i}", dense(block.points[np.unique(rows)])
        yield "mean", self.poor(block)

    def poor(self, block: Block) -> FloatArray:
        """One center, the mean of all rows, at which the cost of a far row is largest."""
        return moments_of(block.points, block.weights).mean[np.newaxis]

    def read(self, solution: Any, n_features: int, name: str) -> FloatArray:
        """Return centers as float64."""
        return as_centers(solution, n_features, name)

    def several(self, solutions: Any, name: str = "solutions") -> list[Any]:
        """Return several solutions from a sequence of centers or a cube, or one from an array."""
        if isinstance(solutions, str) or not hasattr(solutions, "__iter__"):
            return [solutions]  # which `read` refuses
        if isinstance(solutions, Sequence) and not solutions:
            raise InvalidInputError(
                f"{name} is empty", argument=name, remedy="pass at least one solution"
            )
        single = not isinstance(solutions, Sequence) or n_dims(name, solutions[0]) != 2
        if single and n_dims(name, solutions) in (0, 2):
            return [solutions]
        return list(solutions)


@dataclass(frozen=True)
class QuantizationError(_OfCenters):
    r"""The k-means cost :math:`\sum_x u(x) \min_{q \in Q} |x - q|^2`.

    See :doc:`/guides/trust`.

    Parameters
    ----------
    n_clusters : int, optional
        Number of centers of the solutions of an audit. None if it is unknown.

    Examples
    --------
    >>> import daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> coreset = daskcoreset.build(X, size=500, method="uniform", random_state=0)
    >>> coreset.audit(X, objective=QuantizationError(3), random_state=0).distortion < 0.2
    True

    References
    ----------
    Bachem, Lucic and Krause (2018), section 2.
    """

    n_clusters: int | None = None

    name: ClassVar[str] = "quantization error"
    solved: ClassVar[str] = "k-means"
    seeded: ClassVar[str] = "k-means++"

    def brackets(
        self, cells: Cells, solution: FloatArray, others: Sequence[FloatArray]
    ) -> Iterator[tuple[Bracket, int | None]]:
        r"""Yield :math:`(d + D)^2`, and :math:`D^2 + d^2` with bounds of its error.

        D is the distance of the center of a cell from the solution.
        """
        del others
        squares = assign(cells.centers, solution)[1]
        zero, far = np.zeros_like(squares), 2.0 * np.sqrt(squares)
        ones = np.ones_like(squares)
        yield bracket_below(np.stack([squares, far, ones, zero])), None
        control = np.stack([squares, zero, ones, zero])
        low, high = np.stack([zero, far, ones, zero]), np.stack([zero, far, zero, zero])
        yield Bracket(control, low[None], high[None]), None

    def losses(self, block: Block, solution: FloatArray) -> FloatArray:
        """Squared distance of every row to its nearest center."""
        return assign(block.points, solution)[1]

    def solve(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Centers by k-means++ and a few steps of Lloyd."""
        return rough_kmeans(block.points, block.weights, self.parts_in(block), rng).centers

    def seed(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Centers by k-means++."""
        return seed_cells(block.points, block.weights, self.parts_in(block), rng).clusters.centers


@dataclass(frozen=True)
class Distortion(DivergenceParameter, _OfCenters):
    r"""The cost of Bregman hard clustering, :math:`\sum_x u(x) \min_{q \in Q} d_\phi(x, q)`.

    See :doc:`/guides/trust`.

    Parameters
    ----------
    n_clusters : int, optional
        Number of centers of the solutions of an audit. None if it is unknown.
    divergence : str or Divergence, default="squared_euclidean"
        As in `daskcoreset.LightweightBregman`. A precision that is left open is estimated from the
        coreset.

    Examples
    --------
    >>> import daskcoreset
    >>> X = np.random.default_rng(0).uniform(1, 2, size=(10_000, 2))
    >>> coreset = daskcoreset.build(X, size=500, method="uniform", random_state=0)
    >>> coreset.audit(X, objective=Distortion(3, "kl"), random_state=0).distortion < 0.2
    True

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), section 3.
    """

    n_clusters: int | None = None
    divergence: str | Divergence = "squared_euclidean"

    name: ClassVar[str] = "distortion"
    solved: ClassVar[str] = "Bregman clustering"
    seeded: ClassVar[str] = "seeding"

    def __post_init__(self) -> None:
        DivergenceParameter.__post_init__(self)
        ObjectiveOfParts.__post_init__(self)

    def fitted(self, block: Block) -> Self:
        """Estimate a precision that is left open from the rows."""
        return replace(self, divergence=self._divergence.fitted(block.points, block.weights))

    def cells(self, block: Block, n_parts: int, rng: np.random.Generator) -> Cells:
        """Cells of rows that count, with divergences from their centers."""
        return cells_by_distance(block, n_parts, rng, self._divergence)

    def brackets(
        self, cells: Cells, solution: FloatArray, others: Sequence[FloatArray]
    ) -> Iterator[tuple[Bracket, int | None]]:
        r"""Yield the bound by three points.

        With b the center of a cell and q the center of the solution nearest to b, :math:`d(x, q) =
        d(x, b) + d(b, q) + \langle x - b, \nabla\phi(b) - \nabla\phi(q) \rangle`. The minimum over
        the solution is at most that.
        """
        del others
        labels, constant = self._divergence.nearest(cells.centers, solution)
        slopes = [
            self._slope(b, solution[j], value)
            for b, j, value in zip(cells.centers, labels, constant, strict=True)
        ]
        zero, ones = np.zeros_like(constant), np.ones_like(constant)
        yield bracket_below(np.stack([constant, np.array(slopes), zero, ones])), None

    def _slope(self, b: FloatArray, q: FloatArray, value: float) -> float:
        """Norm of the difference of gradients: d(x, q) is linear in x but for d(x, c)."""
        steps = np.where(b != 0.0, np.abs(b), 1.0)
        rows = b + np.diag(steps)
        nearer = self._divergence.between(rows, np.broadcast_to(b, rows.shape))
        further = self._divergence.between(rows, np.broadcast_to(q, rows.shape))
        return float(np.linalg.norm((further - nearer - value) / steps)) * (1.0 + 1e-6)

    def losses(self, block: Block, solution: FloatArray) -> FloatArray:
        """Divergence of every row to its nearest center, or zero for rows that do not count."""
        losses = np.zeros(len(block))
        rows = np.flatnonzero(block.weights > 0)
        losses[rows] = self._divergence.nearest(block.points[rows], solution)[1]
        return losses

    def solve(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Centers by Bregman hard clustering."""
        return bregman_hard(
            block.points,
            self.parts_in(block),
            divergence=self._divergence,
            sample_weight=block.weights,
            random_state=rng,
        ).centers

    def seed(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Rows in the manner of k-means++."""
        k = self.parts_in(block)
        rows = prepare(block.points, k, self._divergence, block.weights)
        return bregman_seeds(rows, k, rng) + rows.origin

    def read(self, solution: Any, n_features: int, name: str) -> FloatArray:
        """Return centers as float64, inside the domain."""
        centers = super().read(solution, n_features, name)
        refuse(self._divergence.find_invalid_row(centers, name))
        return centers


_CENTERS = "pass an array of shape (k, d), or a fitted model that has cluster_centers_"


def as_centers(centers: Any, n_features: int, name: str = "centers") -> FloatArray:
    """Return the centers of one solution, or of a fitted model, as float64 of shape (k, d)."""
    centers = getattr(centers, "cluster_centers_", centers)
    centers = centers.toarray() if hasattr(centers, "toarray") else centers
    array = as_numbers(name, centers, _CENTERS)
    if array.ndim != 2 or array.shape[1] != n_features or not len(array):
        raise InvalidInputError(
            f"{name} has shape {array.shape}",
            argument=name,
            remedy=f"pass at least one center with the {n_features} columns of X",
        )
    if not np.isfinite(array).all():
        raise InvalidInputError(
            f"{name} is not finite", argument=name, remedy="pass finite centers"
        )
    return array
