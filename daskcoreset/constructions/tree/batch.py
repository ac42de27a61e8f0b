r"""The tree over row blocks: ``build(..., strategy="tree")``.

Every block is reduced to `inner_size` rows by the task that reads it; unions of `split_every`
neighbours are reduced by the tasks of a tree, and the last one gives `size` rows. One read,
:math:`\log_{\mathrm{split\_every}}` (blocks) levels, and never more than `split_every` inner
coresets at a time in a task.

**How many rows inner nodes keep.** By the bound, a node of a tree with :math:`\log n` levels
needs :math:`\varepsilon' = \varepsilon / (2 \log n)`, which is :math:`4 \log^2 n` times as many
rows as one coreset of everything. That adds up worst cases. Errors of nodes are independent
and without bias, so that what adds up is their variance: with c / m the relative variance of a
coreset of m rows of anything, the nodes of a level that hold a share f of the data each add
:math:`f\, c / m` together, a geometric series: with s parts to a node, all levels below the
root together have about :math:`\frac{s}{s - 1}\, c\, /` `inner_size`. Measured
(``benchmarks/tree.py``, ``benchmarks/results/tree.md``), trees of 64 blocks are hardly worse
than coresets from all rows whatever their nodes keep, and from twice `size` on no difference
is left: in a stream of the set "imbalanced", errors of 5.5, 5.1, 4.6 and 4.2 % with 1, 1.5, 2
and 4 times `size`, against 4.6 % from all rows, each up to 1. So the default is twice `size`;
four times costs more time than it gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from daskcoreset.constructions.sampling.messages import Census
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.objectives import recorded
from daskcoreset.execution.passes import Lazy, fold, fold_now
from daskcoreset.execution.progress import showing
from daskcoreset.core.surroundings import package_versions, warn_complete, warn_few
from daskcoreset.constructions.tree.nodes import Grow, Node, Unite

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.core.points import WeightedPoints
    from daskcoreset.constructions.tree.reducer import Reducer

__all__ = ["INNER_FACTOR", "TreeJob", "record_of"]

INNER_FACTOR = 2
"""Rows of an inner node for each row of the root."""


@dataclass(frozen=True, eq=False)
class TreeJob:
    """One build by merge and reduce, on a scheduler or without one.

    Attributes
    ----------
    blocks : RowBlocks
    reducer : Reducer
    size, inner_size : int
        Rows of the root, and of all other nodes.
    seed : int
    split_every : int
    normalize : bool, default=False
        Whether weights are scaled to the total weight of the data.
    size_given : bool, default=True
        Whether the size is the caller's and not the default.
    n_clusters : int or None, default=None
        Centers of the solutions that the coreset is for, where the method does not say.
    part : bool, default=False
        Whether the rows are a part of the data, as a leaf of a stored tree is.
    """

    blocks: RowBlocks
    reducer: Reducer
    size: int
    inner_size: int
    seed: int
    split_every: int
    normalize: bool = False
    size_given: bool = True
    n_clusters: int | None = None
    part: bool = False

    def __post_init__(self) -> None:
        if self.reducer.needs_labels and not self.blocks.has_labels:
            raise InvalidInputError(f"method {self.reducer.name!r} needs labels; pass y.")
        rows, d = self.blocks.block_rows, self.blocks.rules.n_features
        self.blocks.refuse(self.reducer.name, self.reducer.too_much(rows, d))

    reads = 1

    @property
    def candidates(self) -> float:
        """Rows that are gathered at the root."""
        return float(self.inner_size * min(self.split_every, self.blocks.n_blocks))

    @property
    def runs_here(self) -> bool:
        """Whether the build runs without a scheduler."""
        return self.blocks.need_no_scheduler

    @property
    def _grow(self) -> Grow:
        return Grow(
            self.reducer, self.size, self.inner_size, self.seed, self.blocks.n_blocks, self.part
        )

    def lazy(self) -> Lazy[Coreset]:
        """Define the graph of the whole build."""
        return self._fold().then(self.finish)

    def run_here(self) -> Coreset:
        """Run without a scheduler, on blocks in memory."""
        return self.finish(self._fold_here())

    def root(self, progress: bool | None = False) -> Node:
        """Compute the root here and now, and check it."""
        if self.runs_here:
            return checked(self._fold_here())
        lazy = self._fold()
        with showing(progress, lazy):
            return checked(lazy.compute())

    def _fold(self) -> Lazy[Node]:
        grow = self._grow
        return fold(self.blocks, grow, Unite(grow), split_every=self.split_every)

    def _fold_here(self) -> Node:
        grow = self._grow
        return fold_now(self.blocks, grow, Unite(grow), split_every=self.split_every)

    def finish(self, node: Node) -> Coreset:
        """Make a coreset of the root."""
        points = points_of(node)
        if complete := node.kept <= self.size:
            warn_complete(self.size, node.kept, given=self.size_given)
        elif len(points) < self.size and getattr(self.reducer, "sampling", None) == "systematic":
            warn_few(self.size, len(points))
        weights = points.weights
        if self.normalize and not complete:
            weights = weights * (node.weight / weights.sum())
        columns = self.blocks.columns
        record = {
            **record_of(
                self.reducer,
                "tree",
                self.size,
                self.inner_size,
                self.seed,
                n_clusters=self.n_clusters,
            ),
            **({} if self.size_given else {"size_rule": {"rule": "default"}}),
            "complete": complete,
            "normalized": self.normalize,
            "passes": self.reads,
            "blocks_read_again": 0,
            "split_every": self.split_every,
            "levels": node.level,
            "m": len(points),
            "n": node.kept,
            "n_dropped": node.read - node.kept,
            "d": points.n_features,
            "n_blocks": node.blocks,
            "total_weight": node.weight,
            **node.facts,
            "source": self.blocks.name,
            "columns": None if columns is None else list(columns),
        }
        return Coreset(points.points, weights, points.indices, points.labels, record)


def record_of(
    reducer: Reducer,
    strategy: str,
    size: int,
    inner_size: int,
    seed: int,
    *,
    n_clusters: int | None,
) -> dict[str, Any]:
    """Return what the provenance of every form of the tree says of how it was made."""
    return {
        "method": reducer.name,
        "parameters": reducer.parameters(),
        "citation": reducer.citation,
        "objective": recorded(reducer.objective, n_clusters),
        "sampling": getattr(reducer, "sampling", None),
        "strategy": strategy,
        "size": size,
        "inner_size": inner_size,
        "seed": seed,
        "versions": package_versions(),
    }


def checked(node: Node) -> Node:
    """Raise what is wrong with the rows of a root."""
    problem = None if node.problem is None else (0, node.problem)
    Census({0: node.read}, {0: node.kept}, {0: node.weight}, problem).check()
    return node


def points_of(node: Node) -> WeightedPoints:
    """Return the rows of a root, or raise what is wrong with them."""
    points = checked(node).points
    assert points is not None  # noqa: S101 - there is no problem
    if not len(points):
        raise InvalidInputError("no row of positive weight is left; pass at least one.")
    return points
