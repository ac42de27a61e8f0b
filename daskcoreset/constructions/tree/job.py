"""The nodes of a tree, and builds with `MergeReduce`: a tree over row blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from daskcoreset.constructions.draws import MergeReduce, warn_complete, warn_few
from daskcoreset.constructions.job import Job
from daskcoreset.constructions.sampling.job import DataFacts, make_coreset
from daskcoreset.constructions.sampling.messages import check_report
from daskcoreset.constructions.tree.reducer import Reducer, SensitivityReducer, method_for
from daskcoreset.core.block import ReadBlock
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.invalid import InvalidRow, no_weight_error
from daskcoreset.core.labels import plain_labels
from daskcoreset.core.linalg import csr_rows, one_thread
from daskcoreset.core.points import WeightedPoints, concatenate, from_checked
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.typing import Sampling
from daskcoreset.core.validation import as_int, check_choice, check_flag, shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.execution.engine import BlockResults, Engine, Reduction
from daskcoreset.execution.steps import Request, Steps
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.sensitivities.base import find_invalid_row

# Rows of a coreset of a stream or a stored tree.
DEFAULT_SIZE = 1000

# Rows of an inner node for each row of the root.
INNER_FACTOR = 2

# Rows of a leaf of a stream for each row of a coreset that is asked of it.
LEAF_FACTOR = 32


T = TypeVar("T", bound=WeightedPoints)


@dataclass(frozen=True)
class Settings:
    """Settings of a tree, fixed when it is made.

    Attributes
    ----------
    method : Sensitivity or Reducer
    sampling : {"systematic", "multinomial"} or None
        How rows are drawn in proportion to their scores. None for a reducer.
    size, inner_size : int
        Rows of a coreset that is asked for, and of the nodes.
    seed : int
    n_clusters : int or None
        Clusters that the coresets are for, if the construction does not say.
    on_invalid : {"raise", "drop"}
        How a stream or a stored tree treats rows with NaN or infinity.
    normalize : bool
        Whether coresets of a stream or a stored tree are normalised.
    split_every : int
        Nodes of a leaf out of core that one task merges.
    leaf_size : int
        Rows of a leaf of a stream.
    save_every : int or None
        Batches of a stream after which it is saved.
    """

    method: Any
    sampling: Sampling | None
    size: int
    inner_size: int
    seed: int
    n_clusters: int | None = None
    on_invalid: Literal["raise", "drop"] = "raise"
    normalize: bool = False
    split_every: int = 16
    leaf_size: int = 0
    save_every: int | None = None

    @property
    def reducer(self) -> Reducer:
        """What reduces the rows of nodes."""
        return SensitivityReducer(self.method, self.sampling) if self.sampling else self.method

    @property
    def values(self) -> dict[str, Any]:
        """The settings beside the method, as plain JSON values."""
        return {name: value for name, value in vars(self).items() if name != "method"}

    @classmethod
    def of(  # noqa: PLR0917 - all of them are always given
        cls,
        method: Any,
        size: Any,
        n_clusters: int | None,
        random_state: RandomState,
        on_invalid: Any,
        draw: Any,
        known: Settings | None = None,
    ) -> Settings:
        """Check the options of `daskcoreset.CoresetTree.create`, and fill in defaults.

        None means what is known, for a view that is there.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If an option cannot be used.
        """
        if not isinstance(draw, MergeReduce):
            raise InvalidTypeError(
                f"draw is {shown(draw)}", argument="draw", remedy="pass a MergeReduce"
            )
        if known is not None:
            size = known.size if size is None else size
            n_clusters = known.n_clusters if n_clusters is None else n_clusters
            random_state = known.seed if random_state is None else random_state
        method = method_for(method, n_clusters)
        size = DEFAULT_SIZE if size is None else as_int("size", size, remedy="pass a larger int")
        inner_size = INNER_FACTOR * size if draw.inner_size is None else int(draw.inner_size)
        if inner_size < size:
            raise InvalidInputError(
                f"inner_size={inner_size} is below size={size}: a node cannot return more rows "
                "than it keeps",
                argument="inner_size",
                remedy=f"pass at least {size}, or leave it out",
            )
        check_choice("on_invalid", on_invalid, "raise", "drop")
        return cls(
            method,
            None if isinstance(method, Reducer) else draw.sampling,
            size,
            inner_size,
            resolve_seed(random_state),
            None if n_clusters is None else int(n_clusters),
            on_invalid,
            bool(draw.normalize),
            int(draw.split_every),
        )

    def of_stream(self, leaf_size: Any, save_every: Any) -> Settings:
        """Check the options that streams alone have, and fill in defaults."""
        rows = max(LEAF_FACTOR * self.size, self.inner_size + 1)
        if leaf_size is not None:
            rows = as_int("leaf_size", leaf_size, remedy="pass a larger int")
        if rows <= self.inner_size:
            raise InvalidInputError(
                f"leaf_size={rows} is not above inner_size={self.inner_size}: a leaf would not "
                "be reduced",
                argument="leaf_size",
                remedy="pass more, or a smaller inner_size",
            )
        save_every = as_int("save_every", save_every, remedy="pass a larger int")
        return replace(self, leaf_size=rows, save_every=save_every)

    def rng_of(self, node: Node) -> np.random.Generator:
        """Return the random numbers of a node of a tree over blocks."""
        return stream(self.seed, Stage.TREE, node.first, node.level)

    @one_thread()
    def reduce(self, points: WeightedPoints, position: int, level: int = 0) -> WeightedPoints:
        """Reduce the rows of a node. `position` and `level` address its random numbers."""
        rng = stream(self.seed, Stage.TREE, position, level)
        return self.reducer.reduce(points, self.inner_size, rng)

    @one_thread()
    def thin(self, points: WeightedPoints, position: int) -> WeightedPoints:
        """Draw the candidates of a leaf, which is one of many. Otherwise as `reduce`."""
        return self.reducer.thin(points, self.inner_size, stream(self.seed, Stage.TREE, position))

    @one_thread()
    def coreset(
        self,
        union: WeightedPoints,
        rng: np.random.Generator,
        data: DataFacts,
        facts: dict[str, Any],
        normalize: bool | None = None,
    ) -> Coreset:
        """Reduce the rows that represent all data to the coreset. None normalises by the draw.

        Raises
        ------
        InvalidInputError
            If no row has a positive weight.
        """
        normalize = self.normalize if normalize is None else normalize
        check_flag("normalize", normalize)
        if not union.weights.any():
            raise no_weight_error()
        own = {"sampling": self.sampling, "inner_size": self.inner_size, "seed": self.seed}
        facts = own | self.reducer.describe(union, rng) | facts
        points = self.reducer.finish(union, self.size, rng)
        options: Any = {"n_clusters": self.n_clusters, "normalize": normalize}
        return make_coreset(points, self.method, data, self.size, facts, **options)

    def coreset_of_parts(
        self,
        parts: Sequence[WeightedPoints],
        address: int,
        data: DataFacts,
        facts: dict[str, Any],
        normalize: bool | None,
    ) -> Coreset:
        """Return the coreset of a stream or a stored tree. It depends on the rows alone."""
        rng = stream(self.seed, Stage.TREE_ROOT, address)
        coreset = self.coreset(concatenate_parts(parts), rng, data, facts, normalize)
        return with_canonical_labels(coreset)


def concatenate_parts(
    parts: Sequence[WeightedPoints], starts: Sequence[int] | None = None
) -> WeightedPoints:
    """Put weighted rows after one another, their row numbers moved.

    Parameters
    ----------
    parts : sequence of WeightedPoints
        At least one; of several, empty ones are left out.
    starts : sequence of int, optional
        The numbers added to the row numbers of each part.

    Examples
    --------
    >>> one = WeightedPoints(np.eye(2), np.ones(2), np.arange(2))
    >>> concatenate_parts([one, one], [0, 10]).indices
    array([ 0,  1, 10, 11])
    """
    if starts is not None:
        parts = [part.moved(start) for part, start in zip(parts, starts, strict=True)]
    # An empty block may not know that it is sparse, or what its labels are.
    filled = [part for part in parts if len(part)] or list(parts[:1])
    if len({isinstance(part.points, np.ndarray) for part in filled}) > 1:
        filled = [replace(part, points=csr_rows(part.points)) for part in filled]
    return filled[0] if len(filled) == 1 else concatenate(filled)


def with_canonical_labels(points: T) -> T:
    """Return rows or a coreset whose labels have a dtype that depends on kind and values alone.

    Examples
    --------
    >>> rows = WeightedPoints(np.eye(2), np.ones(2), np.arange(2), np.array(["a", "b"], "U9"))
    >>> with_canonical_labels(rows).labels.dtype.str[1:]
    'U1'
    """
    labels = points.labels
    if labels is None:
        return points
    if labels.dtype.kind == "U":
        labels = np.array(labels.tolist(), dtype=str)
    elif labels.dtype.kind in "iu" and np.can_cast(labels.dtype, np.int64):
        labels = labels.astype(np.int64, copy=False)
    elif labels.dtype.kind == "f":
        labels = labels.astype(np.float64, copy=False)
    return points if labels is points.labels else replace(points, labels=labels)


def valid_points(
    method: Any, rows: ReadBlock, broadcast: object = None
) -> WeightedPoints | InvalidRow:
    """Return the rows of a block with their numbers in it, or the first invalid row."""
    del broadcast
    block = rows.valid_block
    invalid = find_invalid_row(method, block)
    if invalid is not None:
        return invalid
    positions = np.arange(len(block)) if block.rows is None else block.rows
    if block.labels is None:  # all else was checked when the block was read
        return from_checked(block.points, block.weights, positions, None)
    return WeightedPoints(block.points, block.weights, positions, plain_labels(block.labels))


@dataclass(frozen=True, eq=False)
class Node:
    """Weighted rows that represent neighbouring blocks.

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
        Their row numbers are counted from the first row of the first block.
    """

    first: int
    blocks: int
    level: int
    read: int
    weight: float
    points: WeightedPoints


@dataclass(frozen=True)
class NodeReducer:
    """The work on the nodes of a tree over blocks. Picklable, with a deterministic token.

    Attributes
    ----------
    settings : Settings
        A node's random numbers are addressed by its first block and its level.
    n_blocks : int
        The node of this number of blocks is the root, whose rows are drawn from once more.
    """

    settings: Settings
    n_blocks: int

    def chunk(self, rows: ReadBlock, broadcast: object = None) -> Node | InvalidRow:
        """Make the leaf of a block."""
        del broadcast
        points = valid_points(self.settings.method, rows)
        if isinstance(points, InvalidRow):
            return points
        return self._reduced(Node(rows.index, 1, 0, rows.read, points.total_weight, points))

    def combine(self, nodes: Sequence[Node]) -> Node:
        """Merge neighbouring nodes, in the order of the blocks, and reduce their rows."""
        if len(nodes) == 1:
            return nodes[0]
        # Rows as read, since dropped rows have numbers, too.
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
        # An infinite weight is an error, which the root raises.
        if node.blocks == self.n_blocks or not np.isfinite(node.weight):
            return node
        points = self.settings.reduce(node.points, node.first, node.level)
        return replace(node, points=points)


@dataclass(frozen=True, eq=False)
class TreeJob(Job[Coreset]):
    """One build by merge and reduce, on a scheduler or without one.

    Attributes
    ----------
    blocks : RowBlocks
    settings : Settings
    """

    blocks: RowBlocks
    settings: Settings

    def __post_init__(self) -> None:
        object.__setattr__(self, "split_every", self.settings.split_every)
        self.blocks.check_method(self.settings.method)

    reads = 1

    @property
    def n_candidates(self) -> float:
        """Rows that are gathered at the root."""
        return float(self.settings.inner_size * min(self.split_every, self.blocks.n_blocks))

    def reading(self, engine: Engine) -> Steps[Any]:
        """Ask for the read; return its results."""
        del engine
        node = NodeReducer(self.settings, self.blocks.n_blocks)
        return (yield Request(Reduction(node.chunk, node.combine)))

    def finishing(self, results: BlockResults[Node]) -> Steps[Coreset]:
        """Make a coreset of the root."""
        yield from ()  # nothing is read again
        check_report(results)
        node, settings = results.value, self.settings
        complete = results.n_kept <= settings.size
        facts = {
            "strategy": "tree",
            "complete": complete,
            "passes": self.reads,
            "blocks_read_again": 0,
            "split_every": self.split_every,
            "levels": node.level,
            "n_blocks": node.blocks,
        }
        data = DataFacts.of_read(results, self.blocks)
        coreset = settings.coreset(node.points, settings.rng_of(node), data, facts)
        if complete:
            warn_complete(settings.size, results.n_kept)
        elif len(coreset) < settings.size and settings.sampling == "systematic":
            warn_few(settings.size, len(coreset))
        return coreset
