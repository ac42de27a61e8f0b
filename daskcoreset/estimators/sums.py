"""Weighted sums over all rows of data out of core, in one read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.gathering import gather

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block, Problem
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.core.typing import FloatArray

__all__ = ["weighted_sum"]


@dataclass(frozen=True, eq=False)
class _Sum:
    function: Callable[[Block], FloatArray]
    check: Callable[[Block], Problem | None] | None

    def __call__(self, block: Block, number: int, given: object) -> tuple[float, float] | Problem:
        del number, given
        if self.check is not None and (problem := self.check(block)) is not None:
            return problem
        counted = block.weights > 0
        if not counted.all():
            block = block.take(np.flatnonzero(counted))
        return float(block.weights.sum()), float(block.weights @ self.function(block))


def _added(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return first[0] + second[0], first[1] + second[1]


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
        ``check(block)`` returns what is wrong with a block, or None.

    Returns
    -------
    weight, total : float

    Raises
    ------
    InvalidInputError
        Where the first bad row is, counted over all blocks; if there is no row, or if all
        weights are zero.
    """
    weight, total = gather(blocks, _Sum(function, check), _added).value
    if not weight:
        raise InvalidInputError("sample_weight is zero for every row; give some row a weight.")
    return weight, total
