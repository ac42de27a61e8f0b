"""Covers in the library's tree: weighted rows in memory, reduced to their core points."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from daskcoreset.constructions.coverage.cover import Coverage
from daskcoreset.constructions.coverage.metric import Cells, Sorted, dense_tiles, metric_of
from daskcoreset.constructions.coverage.farthest_first import farthest_first
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.constructions.tree.reducer import Reducer

__all__ = ["CoverReducer"]


@dataclass(frozen=True)
class CoverReducer(Reducer):
    r"""Core points of weighted rows, for streams and stored trees.

    A node takes the farthest row, again and again, until it has `size` rows or all lie within
    its share of the radius, and gives every core point the weight of the rows nearest to it.
    Totals are kept. What a node moves by its share, and the nodes above it by theirs, adds up: a
    row lies within the sum of the shares, `diameter` / 2, of a core point, if no node
    ran out of room. `daskcoreset.constructions.coverage.cover`, which may read more than once, needs far fewer
    core points for the same promise.

    Parameters
    ----------
    diameter : float or None, default=None
        None leaves it to `size` alone.
    levels : int, default=4
        Nodes between a row and the root, the leaf included: each has an equal share of the
        radius. Four suffice for 65,536 blocks where 16 are merged at a time.
    cells : {"euclidean", "chebyshev"}, default="euclidean"

    Examples
    --------
    >>> rows = WeightedPoints(np.arange(6.0)[:, None], np.ones(6), np.arange(6))
    >>> few = CoverReducer().reduce(rows, 2, np.random.default_rng(0))
    >>> few.indices, few.weights
    (array([0, 5]), array([3., 3.]))

    References
    ----------
    Tsang, Kwok and Cheung (2005), Core vector machines, section 4.1; Tan, Zhang and Wang (2019),
    Definition 1.
    """

    diameter: float | None = None
    levels: int = 4
    cells: Cells = "euclidean"

    citation: ClassVar[str] = Coverage.citation

    def __post_init__(self) -> None:
        levels: Any = self.levels
        # The same checks, one place; a number of points stands for the size of the tree.
        Coverage(self.diameter, 1, self.cells)
        if isinstance(levels, bool) or not isinstance(levels, int) or levels < 1:
            raise InvalidInputError(f"levels must be at least 1, got {levels!r}; pass an int.")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)

    def reduce(self, points: WeightedPoints, size: int, rng: np.random.Generator) -> WeightedPoints:
        """Return the core points of weighted rows."""
        del rng
        metric = metric_of(self.cells)
        share = 0.0 if self.diameter is None else self.diameter / 2 / self.levels
        limit = metric.limit(share, points.n_features)
        rows = np.sort(farthest_first(points.points, size, metric, limit=limit).rows)
        if len(rows) == len(points):
            return points
        kept = points.take(rows)
        known = Sorted.of(np.concatenate([tile for _, tile in dense_tiles(kept.points)]), metric)
        weights = np.zeros(len(kept))
        for start, tile in dense_tiles(points.points):
            labels, _ = known.nearest(tile)
            weights += np.bincount(labels, points.weights[start : start + len(tile)], len(kept))
        return WeightedPoints(kept.points, weights, kept.indices, kept.labels)
