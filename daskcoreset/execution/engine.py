"""The engine: one read of the data for any number of reductions.

A block is read, validated and numbered once. Reductions see it as a `ReadBlock`, make a value of it
(`chunk`) and merge neighbouring values (`combine`). Rows, and the first invalid one, are counted
here. The same chunks, merged in the same tree, give the same bits as a graph, on a scheduler or in
memory.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import accumulate
from typing import Any, Generic, TypeVar

import numpy as np

from daskcoreset.core.block import Block, BlockSchema, ReadBlock, validate_block
from daskcoreset.core.deadline import check_time
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import about_member
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.lazy import LEAF, OURS, Lazy
from daskcoreset.execution.local import compute_options
from daskcoreset.execution.merging import Merger, levels_below_root
from daskcoreset.execution.progress import show_progress
from daskcoreset.execution.timeout import active_client
from daskcoreset.execution.versions import Versions, check_here, own_versions
from daskcoreset.inputs.blocks import BlockRows, RowBlocks
from daskcoreset.inputs.cube_blocks import unflattened

T = TypeVar("T")


@dataclass(frozen=True)
class Reduction(Generic[T]):
    """A reduction over all blocks, in one read.

    Attributes
    ----------
    chunk : callable
        ``chunk(rows, broadcast)`` gives the value of a `ReadBlock`, whose block is there and may be
        empty, or the `InvalidRow` of it. Picklable, with a deterministic token.
    combine : callable
        ``combine(values)`` merges one or more neighbouring values, in the order of the blocks.
    """

    chunk: Callable[[ReadBlock, Any], T | InvalidRow]
    combine: Callable[[Sequence[T]], T]


@dataclass(frozen=True, eq=False)
class BlockResults(Generic[T]):
    """Results of a read of some blocks.

    Attributes
    ----------
    value : object
        Merged over the blocks. None where a row is invalid.
    sizes : mapping of int to int
        Rows of every block as read, by its index.
    kept : mapping of int to int
        The same after invalid rows were dropped.
    invalid : tuple of (int, InvalidRow) or None
        The first block with an invalid row, and the row.
    """

    value: T
    sizes: Mapping[int, int]
    kept: Mapping[int, int] = field(default_factory=dict)
    invalid: tuple[int, InvalidRow] | None = None

    @property
    def n_rows(self) -> int:
        """Rows read in all."""
        return sum(self.sizes.values())

    @property
    def n_kept(self) -> int:
        """Rows left in all, after invalid ones were dropped."""
        return sum(self.kept.values())

    def offsets(self) -> dict[int, int]:
        """Return the number of the first row of every block."""
        blocks = sorted(self.sizes)
        starts = accumulate((self.sizes[block] for block in blocks[:-1]), initial=0)
        return dict(zip(blocks, starts, strict=True)) if blocks else {}

    def check(self) -> None:
        """Raise an error for the first invalid row of all blocks, or for data without rows."""
        if self.invalid is not None:
            block_index, invalid = self.invalid
            raise invalid.error(self.offsets()[block_index])
        if not self.n_kept:
            dropped = self.n_rows
            reason = f"none of the {dropped} rows of X is finite" if dropped else "X has no rows"
            raise InvalidInputError(reason, argument="X", remedy="pass at least one usable row")


@one_thread()
def _chunk_results(
    chunk: Callable[[ReadBlock, Any], Any], rows: ReadBlock, broadcast: Any
) -> BlockResults[Any]:
    """Return the results of one block."""
    value = rows.located(rows.problem or chunk(rows, broadcast))
    sizes = {rows.index: rows.read}
    if rows.block is None or isinstance(value, InvalidRow):
        return BlockResults(None, sizes, {rows.index: 0}, (rows.index, value))
    return BlockResults(value, sizes, {rows.index: len(rows.block)})


@one_thread()
def _combined_results(
    combine: Callable[[Sequence[Any]], Any], parts: Sequence[BlockResults[Any]]
) -> BlockResults[Any]:
    """Merge the results of neighbouring blocks."""
    invalid = [part.invalid for part in parts if part.invalid is not None]
    return BlockResults(
        None if invalid else combine([part.value for part in parts]),
        {block: rows for part in parts for block, rows in part.sizes.items()},
        {block: rows for part in parts for block, rows in part.kept.items()},
        min(invalid, key=lambda row: row[0]) if invalid else None,
    )


@dataclass(frozen=True, eq=False)
class Engine:
    """Reads of the same blocks: each as a graph, or at once.

    Attributes
    ----------
    blocks : RowBlocks
    split_every : int, default=16
        As in `daskcoreset.build`.
    lazy : bool, default=False
        Whether reads are defined, as `Lazy` values, or done at once, in memory.
    member : str, optional
        Whose work is applied, where several share the reads: errors begin with it.
    """

    blocks: RowBlocks
    split_every: int = 16
    lazy: bool = False
    member: str | None = None

    @classmethod
    def immediate(cls, blocks: RowBlocks, split_every: int = 16) -> Engine:
        """Return the engine for reads whose results are used at once, see `compute`."""
        return cls(blocks, split_every, lazy=not blocks.in_memory)

    def read(self, reduction: Reduction[T], broadcast: Any = None) -> Any:
        """Read all blocks once.

        Parameters
        ----------
        reduction : Reduction
        broadcast : object, optional
            A value that every block needs. When it is lazy, no block is read before it is there.

        Returns
        -------
        BlockResults, or Lazy of it
        """
        leaf = partial(_chunk_results, reduction.chunk)
        combine = partial(_combined_results, reduction.combine)
        run = self._read_as_graph if self.lazy else self._read_in_memory
        return run(leaf, combine, broadcast)

    def _read_as_graph(
        self,
        leaf: Callable[[ReadBlock, Any], BlockResults[T]],
        combine: Callable[[Sequence[BlockResults[T]]], BlockResults[T]],
        broadcast: Any,
    ) -> Lazy[BlockResults[T]]:
        """Define one task a block, and a tree of tasks that merge its results."""
        from dask._task_spec import List, Task, TaskRef
        from dask.highlevelgraph import HighLevelGraph

        token = uuid.uuid4().hex
        # A second axis has one block: kept, for a contracted index would not fuse.
        axes = "ij" if "X" in self.blocks.dask_arrays else "i"
        leaves = _map_blocks(
            self.blocks,
            leaf,
            broadcast,
            name=f"{LEAF}{token}",
            axes=axes,
            chunks=dict.fromkeys(axes, 1),
            dtype=object,
        )
        name = f"{OURS}fold-{token}"
        tasks: dict[Any, Any] = {}

        def merged(keys: Sequence[Any]) -> Any:
            key = (name, len(tasks))
            tasks[key] = Task(key, combine, List(*map(TaskRef, keys)))
            return key

        merger: Merger[Any] = self._merger(merged)
        for block in range(self.blocks.n_blocks):
            merger.add((leaves.name, block, *(0,) * (len(axes) - 1)))
        root = merged(merger.parts())
        return Lazy(HighLevelGraph.from_collections(name, tasks, dependencies=[leaves]), root)

    def _read_in_memory(
        self,
        leaf: Callable[[ReadBlock, Any], BlockResults[T]],
        combine: Callable[[Sequence[BlockResults[T]]], BlockResults[T]],
        broadcast: Any,
    ) -> BlockResults[T]:
        """Read the blocks one after another, without a scheduler: the same bits."""
        blocks, merger = self.blocks, self._merger(combine)
        for position in range(blocks.n_blocks):
            check_time(f"{position} of {blocks.n_blocks} blocks were read")
            merger.add(leaf(read_block(blocks[position], {}, blocks.schema), broadcast))
        return combine(merger.parts())

    def _merger(self, combine: Callable[[Sequence[Any]], Any]) -> Merger[Any]:
        levels = levels_below_root(self.blocks.n_blocks, self.split_every)
        return Merger(combine, self.split_every, levels)

    def apply(self, function: Callable[..., Any], *values: Any) -> Any:
        """Return ``function(*values)``, or define it as one task at the root."""
        if self.member is not None:
            function = partial(_for_member, self.member, function)
        return apply(function, *values) if self.lazy else _applied(function, *values)

    def compute(self, value: Any, progress: bool | None = False) -> Any:
        """Return a value that was read or applied, computed where it is lazy."""
        if not isinstance(value, Lazy):
            return value
        with show_progress(progress, value):
            return value.compute(**compute_options(self.blocks))


def _for_member(member: str, function: Callable[..., T], *values: Any) -> T:
    with about_member(member):
        return function(*values)


def map_reduce(
    blocks: RowBlocks,
    work: Callable[[Block, int, Any], T | InvalidRow],
    merge: Callable[[T, T], T],
    *,
    broadcast: Any = None,
    split_every: int = 16,
    progress: bool | None = False,
) -> BlockResults[T]:
    """Read all blocks once, now: in memory where the data are one block there.

    Parameters
    ----------
    blocks : RowBlocks
    work : callable
        ``work(block, block_index, broadcast)`` gives the value of a block, which may be empty, or
        the `InvalidRow` of it. Picklable.
    merge : callable
        ``merge(first, second)`` of neighbouring values, in the order of the blocks.
        Associative and picklable.
    broadcast : object, optional
        Values for every block, such as coefficients. They travel once to every worker,
        where a field of `work` would travel with every task.
    split_every : int, default=16
        As in `daskcoreset.build`.
    progress : bool or None, default=False
        As in `daskcoreset.build`. Off by default, for who reads many times shows progress of
        its own.

    Returns
    -------
    BlockResults

    Raises
    ------
    InvalidInputError
        Where the first invalid row is, counted over all blocks; or if there is no row.

    Examples
    --------
    >>> from operator import add
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> def total(block, block_index, factor):
    ...     return factor * float(block.points.sum())
    >>> map_reduce(row_blocks([[1.0], [2.0]]), total, add, broadcast=10.0).value
    30.0
    """
    engine = Engine.immediate(blocks, split_every)
    if broadcast is not None and engine.lazy:
        broadcast = apply(partial(_same, broadcast))
    reduction: Reduction[T] = Reduction(partial(_work_on, work), partial(reduce, merge))
    results: BlockResults[T] = engine.compute(engine.read(reduction, broadcast), progress)
    results.check()
    return results


def _work_on(work: Callable[[Block, int, Any], Any], rows: ReadBlock, broadcast: Any) -> Any:
    return work(rows.valid_block, rows.index, broadcast)


def _same(value: T) -> T:
    return value


# --- a read as a graph, and in memory ----------------------------------------------------


def read_block(rows: BlockRows, arrays: Mapping[str, Any], schema: BlockSchema) -> ReadBlock:
    """Read the parts of a block that are not there yet, and bring all to form.

    Parameters
    ----------
    rows : BlockRows
    arrays : mapping of str to array-like
        Parts that arrive as blocks of Dask arrays, by their names.
    schema : BlockSchema
    """
    parts = {name: part[0 : len(part)] for name, part in rows.parts.items()} | dict(arrays)
    read = validate_block(parts, schema, index=rows.index, size=rows.size)
    return replace(read, index=rows.index, start=rows.start, box=rows.box)


def apply(function: Callable[..., T], *values: Any) -> Lazy[T]:
    """Define ``function(*values)``, of values lazy or not, as one task at the root."""
    from dask._task_spec import Task, TaskRef
    from dask.highlevelgraph import HighLevelGraph

    name = f"{OURS}root-{uuid.uuid4().hex}"
    key = (name,)
    above: list[Any] = [value for value in values if isinstance(value, Lazy)]
    arguments = [TaskRef(v.__dask_keys__()[0]) if isinstance(v, Lazy) else v for v in values]
    task = Task(key, _applied, function, *arguments)
    graph = HighLevelGraph.from_collections(name, {key: task}, dependencies=above)
    return Lazy(graph, key)


@one_thread()
def _applied(function: Callable[..., T], *values: Any) -> T:
    return function(*values)


def map_rows(
    blocks: RowBlocks,
    function: Callable[[Block], Any],
    *,
    dtype: Any,
    columns: int | None = None,
    missing: float | None = None,
) -> Any:
    """Define `function` of every block, as a Dask array with a row for every row of the data.

    Parameters
    ----------
    blocks : RowBlocks
        Rows that no cost can be broadcast to are an error when their block runs, whatever the
        schema says, unless there is a value for them: a row left out would leave the result
        shorter than the data.
    function : callable
        ``function(block)`` gives an array of as many rows as the block, or the `InvalidRow` of
        one of them. Picklable, with a deterministic token.
    dtype : dtype
        Dtype of the result of `function`.
    columns : int or None, default=None
        Columns of what `function` returns. None for a vector.
    missing : float or None, default=None
        Value of rows that ``on_invalid="drop"`` leaves out.

    Returns
    -------
    dask.array.Array of shape (n,) or (n, columns)
        One task a block, fused with its read. The chunks are the blocks', of unknown sizes
        where theirs are. Nothing is computed. Of a cube an array of its sample dimensions, with
        NaN for the rows that are masked.
    """
    masked = blocks.cube is not None
    if masked:
        dtype, missing = masked_dtype(dtype), np.nan
    drops = masked or (missing is not None and blocks.schema.on_invalid == "drop")
    chunks: dict[str, Any] = {"i": blocks.sizes or (np.nan,) * blocks.n_blocks}
    new_axes: dict[str, int] = {}
    if columns is not None and "X" in blocks.dask_arrays:
        chunks["j"] = (columns,)  # in place of the columns of X, which are one block too
    elif columns is not None:
        new_axes["j"] = columns
    values = _map_blocks(
        replace(
            blocks,
            schema=replace(blocks.schema, on_invalid="drop" if drops else "raise"),
        ),
        partial(_row_values, function, (missing, np.dtype(dtype), columns) if drops else None),
        name=f"{LEAF}rows-{uuid.uuid4().hex}",
        axes="i" if columns is None else "ij",
        chunks=chunks,
        new_axes=new_axes,
        dtype=dtype,
    )
    return values if blocks.cube is None else unflattened(values, blocks.cube.chunks)


def masked_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype that holds all values of another one, and NaN.

    Examples
    --------
    >>> [masked_dtype(name).name for name in ("int32", "float32", "U3")]
    ['float64', 'float32', 'object']
    """
    plain = np.dtype(dtype)
    if plain.kind not in "biuf":
        return np.dtype(object)
    return np.result_type(plain, np.float32) if plain.kind != "f" else plain


@one_thread()
def _row_values(
    function: Callable[[Block], Any],
    dropped: tuple[float | None, np.dtype[Any], int | None] | None,
    rows: ReadBlock,
    broadcast: None,
) -> Any:
    """Return the values of a block.

    `dropped` has the value of rows that are left out, and the dtype and columns of the result. None
    if no row is.
    """
    del broadcast
    value = rows.problem
    if value is None and (dropped is None or len(rows.valid_block)):
        value = function(rows.valid_block)
    value = rows.located(value)
    if isinstance(value, InvalidRow):
        if rows.start is not None:
            raise value.error(rows.start)
        # Counted as far from the start as is known.
        row = "" if value.row is None else f" at row {value.row} of block {rows.index}"
        raise value.error_at(row)
    if dropped is None:
        return value
    missing, dtype, columns = dropped
    kept = rows.valid_block.rows
    if value is not None and kept is None:
        return np.asarray(value).astype(dtype, copy=False)
    values = np.full((rows.read,) if columns is None else (rows.read, columns), missing, dtype)
    if value is not None:
        values[kept] = value
    return values


def _map_blocks(
    blocks: RowBlocks,
    work: Callable[[ReadBlock, Any], Any],
    broadcast: Any = None,
    *,
    name: str,
    axes: str,
    chunks: dict[str, Any],
    dtype: Any,
    new_axes: dict[str, int] | None = None,
) -> Any:
    """Define `work` on every block as a Dask array, whose tasks fuse with the reads."""
    # Not of expressions, whatever Dask is set to.
    from dask.array.blockwise import blockwise
    from dask.layers import ArrayValuesDep

    from daskcoreset.execution.clone import clone_after

    _check_workers_see(blocks)
    # Workers compare themselves, for some may join later.
    expected = None if active_client() is None else own_versions()
    specs: Any = _Literals(name, blocks)
    operands: list[Any] = [ArrayValuesDep(((1,) * blocks.n_blocks,), specs), "i"]
    operands += [broadcast.as_array(), ""] if isinstance(broadcast, Lazy) else [broadcast, None]
    for array in clone_after(list(blocks.dask_arrays.values()), broadcast, name):
        operands += [array, "ij" if array.ndim == 2 else "i"]
    # Of an axis that the result has not, Dask hands over the list of its blocks: one.
    listed = "X" if "j" not in axes else None
    run: Any = partial(_run_block, work, blocks.schema, tuple(blocks.dask_arrays), listed, expected)
    return blockwise(
        run,
        axes,
        *operands,
        name=name,  # never of a result: hashing every spec would cost more
        new_axes=new_axes,
        adjust_chunks=chunks,
        align_arrays=False,
        concatenate=False,
        meta=np.empty((0,) * len(axes), dtype=dtype),
    )


def _check_workers_see(blocks: RowBlocks) -> None:
    """Check that what is stored can be read by the workers of the active client."""
    if blocks.are_views or not blocks.n_blocks or active_client() is None:
        return
    import cloudpickle

    in_process = any(part.in_process for part in blocks.row_arrays.values())
    problem = "X is stored in the memory of this process" if in_process else None
    try:
        if problem is None:
            cloudpickle.dumps(blocks[0].parts)
    except Exception as error:  # noqa: BLE001 - of every kind of store
        problem = f"X cannot be sent to other processes ({type(error).__name__})"
    if problem is not None:
        raise InvalidInputError(
            f"{problem}, and the workers of a cluster cannot see it",
            remedy="write it to a store that all of them can see, commit the session "
            "that it is in, pass the array, or close the client",
        )


def _run_block(  # noqa: PLR0917 - Dask gives them by position
    work: Callable[[ReadBlock, Any], Any],
    schema: BlockSchema,
    names: tuple[str, ...],
    listed: str | None,
    expected: Versions | None,
    rows: BlockRows,
    broadcast: Any,
    *arrays: Any,
) -> Any:
    """Read a block, of whose parts those with `names` arrive as Dask blocks, and work on it.

    The part `listed` arrives as a list of one block.
    """
    check_here(expected)
    parts = dict(zip(names, arrays, strict=True))
    if listed in parts:
        (parts[listed],) = parts[listed]
    return work(read_block(rows, parts, schema), broadcast)


@dataclass(frozen=True, eq=False)
class _Literals:
    """Literals of blocks, addressed as Dask addresses the values of an array."""

    name: str
    # Dask hashes what `repr` returns: with the values in it, every block would be printed,
    # at ten times the cost of the rest of the graph.
    values: Any = field(repr=False)

    def __getitem__(self, index: tuple[int, ...]) -> Any:
        return self.values[index[0]]
