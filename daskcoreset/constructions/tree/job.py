"""``build(..., strategy="tree")``: merge-and-reduce as one reduction over row blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from daskcoreset.constructions.sampling.messages import check_report
from daskcoreset.core.blocks import Block, InvalidRow, ReadBlock, plain_labels
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, package_versions, warn_complete, warn_few
from daskcoreset.core.points import WeightedPoints, concatenate
from daskcoreset.core.random import Stage, stream
from daskcoreset.execution.engine import BlockResults, Engine, Reduction
from daskcoreset.execution.lazy import Lazy
from daskcoreset.objectives import recorded

if TYPE_CHECKING:
    from daskcoreset.constructions.tree.reducer import Reducer
    from daskcoreset.inputs.blocks import RowBlocks


@dataclass(frozen=True, eq=False)
class Node:
    """What stands for neighbouring blocks of rows.

    Attributes
    ----------
    first, blocks : int
        Index of the first block, and how many there are.
    level : int
        0 for a leaf.
    read : int
        Rows as read, before invalid ones were dropped.
    weight : float
        Total weight of the rows.
    points : WeightedPoints
        The coreset, its row numbers counted from the first row of the first block.
    facts : dict
        What the reducer says of all rows, at the root of all the data.
    """

    first: int
    blocks: int
    level: int
    read: int
    weight: float
    points: WeightedPoints
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeReducer:
    """What all nodes of a tree over blocks share.

    Attributes
    ----------
    reducer : Reducer
    size, inner_size : int
        Rows of the root, and of all other nodes.
    seed : int
        A node's own numbers are addressed by its first block and its level.
    n_blocks : int
        The node of so many blocks is the root.
    part : bool, default=False
        Whether the root itself stands for a part of the data, as a leaf of a stored tree does: it
        is not described then, and not refused for what it lacks, such as rows of a second class.
    """

    reducer: Reducer
    size: int
    inner_size: int
    seed: int
    n_blocks: int
    part: bool = False

    def chunk(self, rows: ReadBlock, broadcast: object = None) -> Node | InvalidRow:
        """Make the leaf of a block."""
        del broadcast
        block = rows.block
        assert block is not None  # noqa: S101 - the engine has seen to it
        invalid = self.reducer.problem(block)
        if invalid is not None:
            return invalid
        weight = float(block.weights.sum())
        return self._reduced(Node(rows.index, 1, 0, rows.read, weight, weighted_points(block)))

    def combine(self, nodes: Sequence[Node]) -> Node:
        """Merge neighbouring nodes, in the order of the blocks, and reduce what they hold."""
        if len(nodes) == 1:
            return nodes[0]
        starts = np.cumsum([0, *(node.read for node in nodes)]).tolist()
        return self._reduced(
            Node(
                first=nodes[0].first,
                blocks=sum(node.blocks for node in nodes),
                level=1 + max(node.level for node in nodes),
                read=starts[-1],
                weight=float(sum(node.weight for node in nodes)),
                points=concatenate_parts([node.points for node in nodes], starts[:-1]),
            )
        )

    def _reduced(self, node: Node) -> Node:
        """Reduce what a node holds to what it may hold."""
        if not np.isfinite(node.weight):
            return node
        rng = stream(self.seed, Stage.TREE, node.first, node.level)
        if node.blocks != self.n_blocks:
            return replace(node, points=self.reducer.reduce(node.points, self.inner_size, rng))
        facts = {} if self.part else self.reducer.describe(node.points, rng)
        points = self.reducer.finish(node.points, self.size, rng)
        return replace(node, points=points, facts=facts)


def concatenate_parts(
    parts: Sequence[WeightedPoints], starts: Sequence[int] | None = None
) -> WeightedPoints:
    """Put weighted rows after one another, their row numbers moved.

    Parameters
    ----------
    parts : sequence of WeightedPoints
        At least one; of several, empty ones are left out.
    starts : sequence of int, optional
        What is added to the row numbers of each part.

    Examples
    --------
    >>> one = WeightedPoints(np.eye(2), np.ones(2), np.arange(2))
    >>> concatenate_parts([one, one], [0, 10]).indices
    array([ 0,  1, 10, 11])
    """
    moves = [0] * len(parts) if starts is None else list(starts)
    moved = [
        part
        if not start
        else WeightedPoints(part.points, part.weights, part.indices + start, part.labels)
        for part, start in zip(parts, moves, strict=True)
    ]
    # An empty block may not know that it is sparse, or what its labels are.
    held = [part for part in moved if len(part)] or moved[:1]
    if len({sp.issparse(part.points) for part in held}) > 1:
        held = [_as_sparse(part) for part in held]
    return held[0] if len(held) == 1 else concatenate(held)


def _as_sparse(part: WeightedPoints) -> WeightedPoints:
    return WeightedPoints(sp.csr_array(part.points), part.weights, part.indices, part.labels)


def weighted_points(block: Block, start: int = 0) -> WeightedPoints:
    """Return the rows of a block with their numbers in it, `start` added."""
    numbers = np.arange(len(block)) if block.rows is None else block.rows
    labels = None if block.labels is None else plain_labels(block.labels)
    return WeightedPoints(block.points, block.weights, numbers + start, labels)


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
        rows, d = self.blocks.block_rows, self.blocks.schema.n_features
        self.blocks.refuse(self.reducer.name, self.reducer.too_much(rows, d))

    reads = 1

    @property
    def n_candidates(self) -> float:
        """Rows that are gathered at the root."""
        return float(self.inner_size * min(self.split_every, self.blocks.n_blocks))

    @property
    def in_memory(self) -> bool:
        """Whether the build runs without a scheduler."""
        return self.blocks.in_memory

    def lazy(self) -> Lazy[Coreset]:
        """Define the graph of the whole build."""
        graph: Lazy[Any] = self._read(Engine(self.blocks, self.split_every, lazy=True))
        return graph.then(self.finish)

    def compute_in_memory(self) -> Coreset:
        """Build without a scheduler, from blocks in memory."""
        return self.finish(self._read(Engine(self.blocks, self.split_every)))

    def root(self, progress: bool | None = False) -> BlockResults[Node]:
        """Compute the root here and now, and check it."""
        engine = Engine.now(self.blocks, self.split_every)
        results: BlockResults[Node] = engine.compute(self._read(engine), progress)
        check_report(results)
        return results

    def _read(self, engine: Engine) -> Any:
        node = NodeReducer(
            self.reducer, self.size, self.inner_size, self.seed, self.blocks.n_blocks, self.part
        )
        return engine.read(Reduction(node.chunk, node.combine))

    def finish(self, results: BlockResults[Node]) -> Coreset:
        """Make a coreset of the root."""
        check_report(results)
        node = results.value
        points = node.points
        if not len(points):
            raise InvalidInputError("no row of positive weight is left; pass at least one.")
        if complete := results.n_kept <= self.size:
            warn_complete(self.size, results.n_kept, given=self.size_given)
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
            "n": results.n_kept,
            "n_dropped": results.n_rows - results.n_kept,
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
