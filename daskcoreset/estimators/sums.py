"""Weighted sums over all rows of data out of core, in one read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.errors import InvalidInputError
from daskcoreset.passes import fold

if TYPE_CHECKING:
    from daskcoreset.blocks import Block, BlockRows, Problem
    from daskcoreset.inputs import RowBlocks
    from daskcoreset.typing import FloatArray

__all__ = ["gather", "weighted_sum"]


@dataclass(frozen=True, eq=False)
class _Part:
    """What was made of some blocks, and the first of them with a problem."""

    value: Any
    read: dict[int, int]
    problem: tuple[int, Problem] | None


@dataclass(frozen=True, eq=False)
class _Leaf:
    function: Callable[[Block], Any]
    check: Callable[[Block], Problem | None] | None

    def __call__(self, rows: BlockRows, number: int, given: object) -> _Part:
        del given
        block, problem = rows.block, rows.problem
        if block is not None and self.check is not None:
            problem = self.check(block)
        if block is None or problem is not None:
            found = None if problem is None else (number, problem)
            return _Part(None, {number: rows.read}, found)
        return _Part(self.function(block), {number: rows.read}, None)


@dataclass(frozen=True, eq=False)
class _Join:
    merge: Callable[[Any, Any], Any]

    def __call__(self, parts: Sequence[_Part]) -> _Part:
        values = [part.value for part in parts if part.value is not None]
        problems = [part.problem for part in parts if part.problem is not None]
        return _Part(
            reduce(self.merge, values) if values else None,
            {number: rows for part in parts for number, rows in part.read.items()},
            min(problems, key=lambda found: found[0]) if problems else None,
        )


@dataclass(frozen=True, eq=False)
class _Sum:
    function: Callable[[Block], FloatArray]

    def __call__(self, block: Block) -> tuple[float, float]:
        counted = block.weights > 0
        if not counted.all():
            block = block.take(np.flatnonzero(counted))
        return float(block.weights.sum()), float(block.weights @ self.function(block))


def _added(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return first[0] + second[0], first[1] + second[1]


def gather(
    blocks: RowBlocks,
    function: Callable[[Block], Any],
    merge: Callable[[Any, Any], Any],
    check: Callable[[Block], Problem | None] | None = None,
) -> Any:
    """Summarise all blocks, and merge what they give in the order of the blocks.

    Parameters
    ----------
    blocks : RowBlocks
    function : callable
        ``function(block)``, picklable.
    merge : callable
        ``merge(first, second)``, associative and picklable.
    check : callable, optional
        ``check(block)`` returns what is wrong with a block, or None.

    Returns
    -------
    object

    Raises
    ------
    InvalidInputError
        Where the first bad row is, counted over all blocks; or if there is no row.
    """
    part = fold(blocks, _Leaf(function, check), _Join(merge)).compute()
    if part.problem is not None:
        number, problem = part.problem
        raise problem.error(sum(rows for i, rows in part.read.items() if i < number))
    if not sum(part.read.values()):
        raise InvalidInputError("X has no rows; pass at least one usable row.")
    return part.value


def weighted_sum(
    blocks: RowBlocks,
    function: Callable[[Block], FloatArray],
    check: Callable[[Block], Problem | None] | None = None,
) -> tuple[float, float]:
    r"""Total weight, and :math:`\sum_x u(x) f(x)`.

    Parameters
    ----------
    blocks : RowBlocks
    function : callable
        ``function(block)`` returns f of every row, float64 of shape (n,); picklable. It sees
        rows of positive weight alone.
    check : callable, optional
        As in `gather`.

    Returns
    -------
    weight, total : float

    Raises
    ------
    InvalidInputError
        As in `gather`, or if all weights are zero.
    """
    weight, total = gather(blocks, _Sum(function), _added, check)
    if not weight:
        raise InvalidInputError("sample_weight is zero for every row; give some row a weight.")
    return weight, total
