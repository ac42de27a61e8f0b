"""One read of all row blocks and a tree reduction: as a graph, at once, or without a scheduler."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from daskcoreset.core.blocks import BlockSchema, InvalidRow, ReadBlock, validate_block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.clone import clone_after
from daskcoreset.execution.lazy import _LEAF, OURS, Lazy
from daskcoreset.execution.progress import show_progress

if TYPE_CHECKING:
    from dask.typing import Key

    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import BlockSpec, RowBlocks

__all__ = [
    "BlockResults",
    "apply",
    "map_reduce",
    "map_rows",
    "tree_reduce",
    "tree_reduce_in_memory",
]


T = TypeVar("T")

U = TypeVar("U")

Leaf = Callable[[ReadBlock, int, Any], T]

"""``leaf(rows, number, given)``: the work on one block; `given` comes from an earlier fold."""

Combine = Callable[[Sequence[T]], T]

"""``combine(parts)``: merges neighbouring results, in the order of the blocks."""


@dataclass(frozen=True)
class _LeafTask(Generic[T]):
    """The task of one block; picklable, with a deterministic token."""

    leaf: Leaf[T]
    rules: BlockSchema
    names: tuple[str, ...]  # the parts that arrive as Dask blocks, in this order

    def __call__(self, spec: BlockSpec, given: Any, *arrays: Any) -> T:
        blocks: dict[str, Any] = dict(zip(self.names, arrays, strict=True))
        return self.leaf(read_block(spec, blocks, self.rules), spec.number, given)


def read_block(spec: BlockSpec, blocks: Mapping[str, Any], rules: BlockSchema) -> ReadBlock:
    """Read the parts of a block that are not there yet, and bring all to form."""
    X, y, sample_weight = (
        blocks.get(name) if loader is None else loader()
        for name, loader in (("X", spec.X), ("y", spec.y), ("sample_weight", spec.sample_weight))
    )
    return validate_block(X, y, sample_weight, rules)


def tree_reduce(
    blocks: RowBlocks,
    leaf: Leaf[T],
    combine: Combine[T],
    *,
    given: Any = None,
    split_every: int = 16,
) -> Lazy[T]:
    """Define one read of the data: `leaf` on every block, merged by a tree of `combine`.

    Parameters
    ----------
    blocks : RowBlocks
    leaf : callable
        ``leaf(rows, number, given) -> T``. Picklable, with a deterministic token.
    combine : callable
        ``combine(parts) -> T`` for two or more neighbouring parts, in order.
    given : Lazy or object, optional
        Result of an earlier fold that every leaf needs; when it is lazy, no block is read
        before it is there.
    split_every : int, default=16
        Parts merged by one task. Sixteen keeps the tree under 7 % of the tasks and its
        depth at four for 65,536 blocks.

    Returns
    -------
    Lazy
        Nothing is computed.
    """
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph
    from dask.layers import ArrayValuesDep

    names = tuple(blocks.arrays)
    token = uuid.uuid4().hex  # of a name, never of a result: hashing every spec would cost more
    arrays = clone_after(list(blocks.arrays.values()), given, token)
    pair = (given.as_array(), "") if isinstance(given, Lazy) else (given, None)
    task = _LeafTask(leaf, blocks.rules, names)
    values: Any = _Literals(token, blocks.specs)
    specs = ArrayValuesDep(((1,) * blocks.n_blocks,), values)
    pairs: list[Any] = [specs, "i", *pair]
    for array in arrays:
        pairs += [array, "ij" if array.ndim == 2 else "i"]
    two_dimensional = any(array.ndim == 2 for array in arrays)
    # The second axis has one block: kept, for a contracted index would not fuse.
    leaves = da.blockwise(
        task,
        "ij" if two_dimensional else "i",
        *pairs,
        name=f"{_LEAF}{token}",
        adjust_chunks={"i": 1, "j": 1} if two_dimensional else {"i": 1},
        align_arrays=False,
        concatenate=False,
        meta=np.empty((0, 0) if two_dimensional else (0,), dtype=object),
    )
    name = f"coreset-fold-{token}"
    tail = (0,) if two_dimensional else ()
    keys: list[Key] = [(leaves.name, i, *tail) for i in range(blocks.n_blocks)]
    layer, root = _tree(name, keys, combine, split_every)
    return Lazy(HighLevelGraph.from_collections(name, layer, dependencies=[leaves]), root)


@dataclass(frozen=True, eq=False)
class _Literals:
    """Per-block literals, addressed as Dask addresses the values of an array."""

    name: str
    # Dask hashes what `repr` returns: with the values in it, every block would be printed,
    # at ten times the cost of the rest of the graph.
    values: tuple[Any, ...] = field(repr=False)

    def __getitem__(self, index: tuple[int, ...]) -> Any:
        return self.values[index[0]]


def _tree(
    name: str, keys: list[Key], combine: Combine[Any], split_every: int
) -> tuple[dict[Key, Any], Key]:
    from dask._task_spec import List, Task, TaskRef

    layer: dict[Key, Any] = {}

    def merged(key: Key, group: Sequence[Key]) -> Key:
        layer[key] = Task(key, combine, List(*(TaskRef(part) for part in group)))
        return key

    level = 0
    while len(keys) > split_every:
        level += 1
        keys = [
            group[0] if len(group) == 1 else merged((name, level, number), group)
            for number, group in enumerate(_groups(keys, split_every))
        ]
    return layer, merged((name,), keys)


def apply(function: Callable[..., T], *values: Lazy[Any]) -> Lazy[T]:
    """Define ``function(*values)`` as one task at the root."""
    from dask._task_spec import Task, TaskRef
    from dask.highlevelgraph import HighLevelGraph

    name = f"coreset-root-{uuid.uuid4().hex}"
    key = (name,)
    task = Task(key, function, *(TaskRef(value.__dask_keys__()[0]) for value in values))
    above: Any = values
    graph = HighLevelGraph.from_collections(name, {key: task}, dependencies=above)
    return Lazy(graph, key)


def tree_reduce_in_memory(
    blocks: RowBlocks,
    leaf: Leaf[T],
    combine: Combine[T],
    *,
    given: Any = None,
    split_every: int = 16,
) -> T:
    """Run a fold over blocks in memory here and now, without a scheduler.

    Same leaves, same tree, same bits as `tree_reduce`; for data that no graph is worth.
    """
    parts: list[T] = [
        leaf(read_block(spec, {}, blocks.rules), spec.number, given) for spec in blocks.specs
    ]
    while len(parts) > split_every:
        parts = [
            group[0] if len(group) == 1 else combine(group) for group in _groups(parts, split_every)
        ]
    return combine(parts)


def _groups(parts: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(parts), size):
        yield parts[start : start + size]


@dataclass(frozen=True)
class _Placed:
    """A block and the number of its first row; None where Dask does not know it."""

    spec: BlockSpec
    start: int | None

    def error(self, problem: InvalidRow) -> InvalidInputError:
        """Return the error, with the row counted as far from the start as is known."""
        if self.start is not None:
            return problem.error(self.start)
        place = "" if problem.row is None else f" at row {problem.row} of block {self.spec.number}"
        return InvalidInputError(problem.message.format(row=place))


@dataclass(frozen=True)
class _RowTask:
    """The task of one block of `map_rows`; picklable, with a deterministic token."""

    function: Callable[[Block], Any]
    rules: BlockSchema
    names: tuple[str, ...]

    def __call__(self, placed: _Placed, *arrays: Any) -> Any:
        # Of an axis that the result has not, Dask hands over the list of its blocks: one.
        parts = (part[0] if isinstance(part, list) else part for part in arrays)
        rows = read_block(placed.spec, dict(zip(self.names, parts, strict=True)), self.rules)
        if rows.problem is not None:
            raise placed.error(rows.problem)
        found = self.function(rows.block)  # type: ignore[arg-type] # there is one without a problem
        if isinstance(found, InvalidRow):
            raise placed.error(found)
        return found


def map_rows(
    blocks: RowBlocks, function: Callable[[Block], Any], *, dtype: Any, columns: int | None = None
) -> Any:
    """Define `function` of every block, as a Dask array with a row for every row of the data.

    Parameters
    ----------
    blocks : RowBlocks
        Rows that no cost can be given to are an error when their block runs, whatever the
        rules say: a row left out would leave the result shorter than the data.
    function : callable
        ``function(block)`` gives an array of as many rows as the block, or the `InvalidRow` of
        one of them. Picklable, with a deterministic token.
    dtype : dtype
        What `function` returns.
    columns : int or None, default=None
        Columns of what `function` returns; None for a vector.

    Returns
    -------
    dask.array.Array of shape (n,) or (n, columns)
        One task a block, fused with its read; the chunks are the blocks', of unknown sizes
        where theirs are. Nothing is computed.
    """
    import dask.array as da
    from dask.layers import ArrayValuesDep

    token = uuid.uuid4().hex
    sizes = blocks.sizes or (np.nan,) * blocks.n_blocks
    starts: Any = itertools.repeat(None)
    if blocks.sizes is not None:
        starts = itertools.accumulate(blocks.sizes, initial=0)
    values: Any = _Literals(token, tuple(map(_Placed, blocks.specs, starts)))
    pairs: list[Any] = [ArrayValuesDep(((1,) * blocks.n_blocks,), values), "i"]
    for array in blocks.arrays.values():
        pairs += [array, "ij" if array.ndim == 2 else "i"]
    two_dimensional = any(array.ndim == 2 for array in blocks.arrays.values())
    new_axes, chunks = {}, {"i": sizes}
    if columns is not None and two_dimensional:
        chunks["j"] = (columns,)
    elif columns is not None:
        new_axes["j"] = columns
    return da.blockwise(
        _RowTask(function, replace(blocks.rules, on_invalid="raise"), tuple(blocks.arrays)),
        "i" if columns is None else "ij",
        *pairs,
        name=f"{OURS}rows-{token}",
        new_axes=new_axes,
        adjust_chunks=chunks,
        align_arrays=False,
        concatenate=False,
        meta=np.empty((0,) if columns is None else (0, 0), dtype=dtype),
    )


@dataclass(frozen=True, eq=False)
class BlockResults(Generic[T]):
    """What a read gave.

    Attributes
    ----------
    value : object
        Merged over all blocks.
    sizes : dict of int to int
        Rows of every block as read, by its number.
    """

    value: T
    sizes: dict[int, int]

    @property
    def n_rows(self) -> int:
        """Rows read in all."""
        return sum(self.sizes.values())

    def row(self, number: int, position: int) -> int:
        """Return the number, in the whole data, of a row of block `number`.

        Examples
        --------
        >>> BlockResults(None, {0: 10, 1: 5}).row(1, 2)
        12
        """
        return _offset(self.sizes, number) + position


@dataclass(frozen=True, eq=False)
class _Part:
    """What was made of some blocks, and the first of them with a problem."""

    value: Any
    sizes: dict[int, int]
    problem: tuple[int, InvalidRow] | None = None


@dataclass(frozen=True)
class _Leaf:
    work: Callable[[Block, int, Any], Any]

    def __call__(self, rows: ReadBlock, number: int, given: Any) -> _Part:
        found = rows.problem
        if rows.block is not None and found is None:
            found = self.work(rows.block, number, given)
        if isinstance(found, InvalidRow):
            return _Part(None, {number: rows.read}, (number, found))
        return _Part(found, {number: rows.read})


@dataclass(frozen=True)
class _Join:
    merge: Callable[[Any, Any], Any]

    def __call__(self, parts: Sequence[_Part]) -> _Part:
        values = [part.value for part in parts if part.value is not None]
        problems = [part.problem for part in parts if part.problem is not None]
        return _Part(
            reduce(self.merge, values) if values else None,
            {number: rows for part in parts for number, rows in part.sizes.items()},
            min(problems, key=lambda found: found[0]) if problems else None,
        )


@dataclass(frozen=True, eq=False)
class _Constant:
    value: Any

    def __call__(self) -> Any:
        return self.value


def map_reduce(
    blocks: RowBlocks,
    work: Callable[[Block, int, Any], T | InvalidRow],
    merge: Callable[[T, T], T],
    *,
    given: Any = None,
    split_every: int = 16,
    progress: bool | None = False,
) -> BlockResults[T]:
    """Read all blocks once, without a scheduler where the data are one block in memory.

    Parameters
    ----------
    blocks : RowBlocks
    work : callable
        ``work(block, number, given)`` gives the value of a block, which may be empty, or the
        `InvalidRow` of one of its rows. Picklable.
    merge : callable
        ``merge(first, second)`` of neighbouring values, in the order of the blocks;
        associative and picklable.
    given : object, optional
        What every block needs to know, such as coefficients. It travels once to every worker,
        where a field of `work` would travel with every task.
    split_every : int, default=16
        As in `daskcoreset.build`.
    progress : bool or None, default=False
        As in `daskcoreset.build`; off by default, for who reads many times shows progress of
        its own.

    Returns
    -------
    Gathered

    Raises
    ------
    InvalidInputError
        Where the first bad row is, counted over all blocks; or if there is no row.

    Examples
    --------
    >>> from operator import add
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> def total(block, number, given):
    ...     return given * float(block.points.sum())
    >>> map_reduce(row_blocks([[1.0], [2.0]]), total, add, given=10.0).value
    30.0
    """
    leaf, join = _Leaf(work), _Join(merge)
    if blocks.need_no_scheduler:
        part = tree_reduce_in_memory(blocks, leaf, join, given=given, split_every=split_every)
    else:
        known = None if given is None else apply(_Constant(given))
        lazy = tree_reduce(blocks, leaf, join, given=known, split_every=split_every)
        with show_progress(progress, lazy):
            part = lazy.compute()
    if part.problem is not None:
        number, problem = part.problem
        raise problem.error(_offset(part.sizes, number))
    if not sum(part.sizes.values()):
        raise InvalidInputError("X has no rows; pass at least one usable row.")
    return BlockResults(part.value, part.sizes)


def _offset(sizes: dict[int, int], number: int) -> int:
    return sum(rows for i, rows in sizes.items() if i < number)
