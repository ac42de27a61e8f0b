"""One read of all rows here and now: a value per block, merged in the order of the blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from daskcoreset.core.blocks import Problem
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.passes import apply, fold, fold_now
from daskcoreset.execution.progress import showing

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block, BlockRows
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["Gathered", "gather"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Gathered(Generic[T]):
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
        >>> Gathered(None, {0: 10, 1: 5}).row(1, 2)
        12
        """
        return _offset(self.sizes, number) + position


@dataclass(frozen=True, eq=False)
class _Part:
    """What was made of some blocks, and the first of them with a problem."""

    value: Any
    sizes: dict[int, int]
    problem: tuple[int, Problem] | None = None


@dataclass(frozen=True)
class _Leaf:
    work: Callable[[Block, int, Any], Any]

    def __call__(self, rows: BlockRows, number: int, given: Any) -> _Part:
        found = rows.problem
        if rows.block is not None and found is None:
            found = self.work(rows.block, number, given)
        if isinstance(found, Problem):
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


def gather(
    blocks: RowBlocks,
    work: Callable[[Block, int, Any], T | Problem],
    merge: Callable[[T, T], T],
    *,
    given: Any = None,
    split_every: int = 16,
    progress: bool | None = False,
) -> Gathered[T]:
    """Read all blocks once, without a scheduler where the data are one block in memory.

    Parameters
    ----------
    blocks : RowBlocks
    work : callable
        ``work(block, number, given)`` gives the value of a block, which may be empty, or the
        `Problem` of one of its rows. Picklable.
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
    >>> gather(row_blocks([[1.0], [2.0]]), total, add, given=10.0).value
    30.0
    """
    leaf, join = _Leaf(work), _Join(merge)
    if blocks.need_no_scheduler:
        part = fold_now(blocks, leaf, join, given=given, split_every=split_every)
    else:
        known = None if given is None else apply(_Constant(given))
        lazy = fold(blocks, leaf, join, given=known, split_every=split_every)
        with showing(progress, lazy):
            part = lazy.compute()
    if part.problem is not None:
        number, problem = part.problem
        raise problem.error(_offset(part.sizes, number))
    if not sum(part.sizes.values()):
        raise InvalidInputError("X has no rows; pass at least one usable row.")
    return Gathered(part.value, part.sizes)


def _offset(sizes: dict[int, int], number: int) -> int:
    return sum(rows for i, rows in sizes.items() if i < number)
