"""The engine: a read of the data, whose blocks every reduction gets that asked for it.

A block is read, validated and numbered once. Reductions see it as a `ReadBlock`, make a value of it
(`chunk`) and merge neighbouring values (`combine`); rows, and the first invalid one, are counted
here. The same chunks, merged in the same tree, give the same bits as a graph, on a scheduler or in
memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from daskcoreset.core.blocks import Block, InvalidRow, ReadBlock
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.fold import apply, tree_reduce, tree_reduce_in_memory
from daskcoreset.execution.lazy import Lazy
from daskcoreset.execution.progress import show_progress

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

T = TypeVar("T")


@dataclass(frozen=True)
class Reduction(Generic[T]):
    """What is made of a read of the data.

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


def together(*reductions: Reduction[Any]) -> Reduction[tuple[Any, ...]]:
    """Return one reduction that makes the values of several in the same read.

    What is broadcast is a tuple with an entry for each of them.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> count = Reduction(lambda rows, _: len(rows.block), sum)
    >>> total = Reduction(lambda rows, factor: factor * float(rows.block.points.sum()), sum)
    >>> engine = Engine(row_blocks([[1.0], [2.0]]))
    >>> engine.read(together(count, total), (None, 10.0)).value
    (2, 30.0)
    """
    return Reduction(partial(_chunks, reductions), partial(_combined, reductions))


def _chunks(
    reductions: tuple[Reduction[Any], ...], rows: ReadBlock, broadcast: tuple[Any, ...]
) -> tuple[Any, ...] | InvalidRow:
    values = []
    for reduction, own in zip(reductions, broadcast, strict=True):
        value = reduction.chunk(rows, own)
        if isinstance(value, InvalidRow):
            return value
        values.append(value)
    return tuple(values)


def _combined(
    reductions: tuple[Reduction[Any], ...], parts: Sequence[tuple[Any, ...]]
) -> tuple[Any, ...]:
    columns = zip(*parts, strict=True)
    return tuple(one.combine(values) for one, values in zip(reductions, columns, strict=True))


@dataclass(frozen=True, eq=False)
class BlockResults(Generic[T]):
    """What a read of some blocks gave.

    Attributes
    ----------
    value : object
        Merged over the blocks; None where a row is invalid.
    sizes : dict of int to int
        Rows of every block as read, by its index.
    kept : dict of int to int
        The same after invalid rows were dropped.
    invalid : tuple of (int, InvalidRow) or None
        The first block with an invalid row, and the row.
    """

    value: T
    sizes: dict[int, int]
    kept: dict[int, int] = field(default_factory=dict)
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
        starts = itertools.accumulate((self.sizes[block] for block in blocks), initial=0)
        return dict(zip(blocks, starts, strict=False))

    def row(self, block_index: int, position: int) -> int:
        """Return the number, in the whole data, of a row of a block.

        Examples
        --------
        >>> BlockResults(None, {0: 10, 1: 5}).row(1, 2)
        12
        """
        return self.offsets()[block_index] + position

    def check(self) -> None:
        """Raise the first invalid row, counted over all blocks, or that there are no rows."""
        if self.invalid is not None:
            block_index, invalid = self.invalid
            raise invalid.error(self.offsets()[block_index])
        if not self.n_kept:
            dropped = self.n_rows
            reason = f"none of the {dropped} rows of X is finite" if dropped else "X has no rows"
            raise InvalidInputError(f"{reason}; pass at least one usable row.")


@dataclass(frozen=True)
class _Chunk:
    """The work on one block; picklable, with a deterministic token."""

    chunk: Callable[[ReadBlock, Any], Any]

    def __call__(self, rows: ReadBlock, block_index: int, broadcast: Any) -> BlockResults[Any]:
        invalid, value = rows.problem, None
        if rows.block is not None and invalid is None:
            value = self.chunk(replace(rows, index=block_index), broadcast)
            if isinstance(value, InvalidRow):
                invalid, value = value, None
        n_kept = 0 if rows.block is None or invalid is not None else len(rows.block)
        return BlockResults(
            value,
            {block_index: rows.read},
            {block_index: n_kept},
            None if invalid is None else (block_index, invalid),
        )


@dataclass(frozen=True)
class _Combine:
    """The merge of neighbouring results; picklable, with a deterministic token."""

    combine: Callable[[Sequence[Any]], Any]

    def __call__(self, parts: Sequence[BlockResults[Any]]) -> BlockResults[Any]:
        invalid = [part.invalid for part in parts if part.invalid is not None]
        values = [part.value for part in parts if part.value is not None]
        return BlockResults(
            self.combine(values) if values and not invalid else None,
            {block: rows for part in parts for block, rows in part.sizes.items()},
            {block: rows for part in parts for block, rows in part.kept.items()},
            min(invalid, key=lambda one: one[0]) if invalid else None,
        )


@dataclass(frozen=True, eq=False)
class Engine:
    """Reads of the same blocks: each as a graph, or in memory where no graph is worth it.

    Attributes
    ----------
    blocks : RowBlocks
    split_every : int, default=16
        As in `daskcoreset.build`.
    lazy : bool, default=False
        Whether reads are defined, as `Lazy` values, or done in memory.
    """

    blocks: RowBlocks
    split_every: int = 16
    lazy: bool = False

    @classmethod
    def now(cls, blocks: RowBlocks, split_every: int = 16) -> Engine:
        """Return the engine for reads whose results are wanted at once, see `compute`."""
        return cls(blocks, split_every, lazy=not blocks.in_memory)

    def read(self, reduction: Reduction[T], broadcast: Any = None) -> Any:
        """Read all blocks once.

        Parameters
        ----------
        reduction : Reduction
        broadcast : object, optional
            What every block needs to know. When it is lazy, no block is read before it is there.

        Returns
        -------
        BlockResults, or Lazy of it
        """
        run: Callable[..., Any] = tree_reduce if self.lazy else tree_reduce_in_memory
        return run(
            self.blocks,
            _Chunk(reduction.chunk),
            _Combine(reduction.combine),
            broadcast=broadcast,
            split_every=self.split_every,
        )

    def apply(self, function: Callable[..., Any], *values: Any) -> Any:
        """Return ``function(*values)``, or define it as one task at the root."""
        return apply(function, *values) if self.lazy else function(*values)

    def compute(self, value: Any, progress: bool | None = False) -> Any:
        """Return a value that was read or applied, computed where it is lazy."""
        if not isinstance(value, Lazy):
            return value
        with show_progress(progress, value):
            return value.compute()


@dataclass(frozen=True)
class _Work:
    work: Callable[[Block, int, Any], Any]

    def __call__(self, rows: ReadBlock, broadcast: Any) -> Any:
        assert rows.block is not None  # noqa: S101 - the engine has seen to it
        return self.work(rows.block, rows.index, broadcast)


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
        ``merge(first, second)`` of neighbouring values, in the order of the blocks;
        associative and picklable.
    broadcast : object, optional
        What every block needs to know, such as coefficients. It travels once to every worker,
        where a field of `work` would travel with every task.
    split_every : int, default=16
        As in `daskcoreset.build`.
    progress : bool or None, default=False
        As in `daskcoreset.build`; off by default, for who reads many times shows progress of
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
    engine = Engine.now(blocks, split_every)
    if broadcast is not None and engine.lazy:
        broadcast = apply(_Constant(broadcast))
    reduction: Reduction[T] = Reduction(_Work(work), partial(reduce, merge))
    results: BlockResults[T] = engine.compute(engine.read(reduction, broadcast), progress)
    results.check()
    return results
