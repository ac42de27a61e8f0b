r"""Buckets of a stream: one coreset a level, as the digits of a binary counter.

Every `leaf_size` consecutive rows become a coreset of `inner_size` rows. Two coresets of a
level are united, reduced and moved one level up, so that after n rows there is at most one
coreset on each of :math:`\log_2 (n /` `leaf_size` :math:`) + 1` levels. What is left over has
unequal levels, and is united at the end with the rows not yet in a coreset (Tukan et al. 2020,
Algorithm 2, whose listing leaves such coresets apart).

Everything here depends on the sequence of rows alone: rows wait until a leaf is full, however
they came.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import Stage, stream
from daskcoreset.constructions.tree.nodes import unite

if TYPE_CHECKING:
    from daskcoreset.constructions.tree.reducer import Reducer

__all__ = ["Buckets", "Growth", "Waiting"]


@dataclass(frozen=True)
class Growth:
    """How buckets grow.

    Attributes
    ----------
    reducer : Reducer
    leaf_size, inner_size : int
    seed : int
    """

    reducer: Reducer
    leaf_size: int
    inner_size: int
    seed: int

    def reduce(self, points: WeightedPoints, level: int, position: int) -> WeightedPoints:
        """Reduce what a node holds; `position` counts the nodes of its level."""
        rng = stream(self.seed, Stage.TREE, position, level)
        return self.reducer.reduce(points, self.inner_size, rng)


@dataclass(frozen=True, eq=False)
class Waiting:
    """Rows that do not fill a leaf yet, in order.

    Parts at least double in size from the last to the first, so that rows which come one by
    one are copied a logarithmic number of times and held in few arrays.

    Attributes
    ----------
    parts : tuple of WeightedPoints
    """

    parts: tuple[WeightedPoints, ...] = ()

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def add(self, points: WeightedPoints) -> Waiting:
        """Return these rows and further ones."""
        if not len(points):
            return self
        # Copied: a slice would keep all of a large batch, and the user may write into it.
        last, parts = _copied(points), self.parts
        while parts and len(parts[-1]) < 2 * len(last):
            last, parts = unite([parts[-1], last]), parts[:-1]
        return Waiting((*parts, last))


def _copied(points: WeightedPoints) -> WeightedPoints:
    labels = None if points.labels is None else points.labels.copy()
    return WeightedPoints(
        points.points.copy(), points.weights.copy(), points.indices.copy(), labels
    )


@dataclass(frozen=True, eq=False)
class Buckets:
    """The state of a stream after some rows; immutable.

    Attributes
    ----------
    levels : tuple of int
        Levels that hold a coreset, the highest, which is the oldest, first.
    held : tuple of WeightedPoints
        Their coresets.
    waiting : Waiting
    n_leaves : int
        Leaves filled so far.
    weight : float
        Total weight of their rows.
    """

    levels: tuple[int, ...] = ()
    held: tuple[WeightedPoints, ...] = ()
    waiting: Waiting = Waiting()
    n_leaves: int = 0
    weight: float = 0.0

    @property
    def n_held(self) -> int:
        """Rows held in all."""
        return sum(len(part) for part in self.held) + len(self.waiting)

    @property
    def total_weight(self) -> float:
        """Total weight of all rows that came."""
        # Of the rows as one array: summed part by part it would tell how they came.
        return self.weight + (self._rows().total_weight if self.waiting.parts else 0.0)

    def add(self, points: WeightedPoints, growth: Growth) -> Buckets:
        """Return the state after further rows."""
        state, start = self, 0
        while len(state.waiting) + len(points) - start >= growth.leaf_size:
            stop = start + growth.leaf_size - len(state.waiting)
            rest = points.take(slice(start, stop))
            leaf = unite([*state.waiting.parts, rest])
            state, start = state._filled(leaf, growth), stop
        return replace(state, waiting=state.waiting.add(points.take(slice(start, None))))

    def _filled(self, leaf: WeightedPoints, growth: Growth) -> Buckets:
        levels, held, level, position = self.levels, self.held, 0, self.n_leaves
        carried = growth.reduce(leaf, level, position)
        while levels and levels[-1] == level:
            level, position = level + 1, position // 2
            carried = growth.reduce(unite([held[-1], carried]), level, position)
            levels, held = levels[:-1], held[:-1]
        return Buckets(
            (*levels, level),
            (*held, carried),
            n_leaves=self.n_leaves + 1,
            weight=self.weight + leaf.total_weight,
        )

    def _rows(self) -> WeightedPoints:
        return unite(self.waiting.parts)

    def parts(self) -> list[WeightedPoints]:
        """Return all that is held, the oldest rows first."""
        return [*self.held, *([self._rows()] if self.waiting.parts else [])]
