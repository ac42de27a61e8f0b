"""Scores and weighted sums over data out of core, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.invalid import InvalidRow, no_weight_error
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import FloatArray, Points
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks


def r_squared(estimator: Any, blocks: RowBlocks) -> float:
    """Weighted coefficient of determination, as `sklearn.metrics.r2_score` has it.

    Parameters
    ----------
    estimator : object
        Fitted, with ``predict``.
    blocks : RowBlocks
        Rows with labels.

    Returns
    -------
    float
        At most one. If all labels are equal, it is one for exact predictions and zero otherwise.
    """
    truth, residual = map_reduce(blocks, partial(_compare, estimator), _merge_comparisons).value
    if not truth.weight:
        raise no_weight_error()
    if not truth.m2[0]:
        return 0.0 if residual else 1.0
    return float(1.0 - residual / truth.m2[0])


def _compare(
    estimator: Any, block: Block, _index: int, _broadcast: object
) -> tuple[Moments, float]:
    """Moments of the truth, and the weighted sum of squared errors of the predictions."""
    truth = np.asarray(block.labels, dtype=np.float64)
    moments = moments_of(truth[:, np.newaxis], block.weights)
    if not len(block):
        return moments, 0.0
    predicted = np.asarray(estimator.predict(block.points), dtype=np.float64)
    return moments, float(block.weights @ np.square(truth - predicted))


def _merge_comparisons(
    first: tuple[Moments, float], second: tuple[Moments, float]
) -> tuple[Moments, float]:
    return merge_moments(first[0], second[0]), first[1] + second[1]


def accuracy(estimator: Any, blocks: RowBlocks) -> float:
    """Weighted share of the rows whose label `estimator` predicts.

    Parameters
    ----------
    estimator : object
        Fitted, with ``predict``.
    blocks : RowBlocks
        Rows with labels.

    Returns
    -------
    float
    """
    weight, right = _sums(blocks, partial(_weigh_right, estimator))
    return right / weight


def _weigh_right(estimator: Any, block: Block, _index: int, _broadcast: object) -> FloatArray:
    if not len(block):
        return np.zeros(2)
    # Labels as the coreset, and so the estimator, has them.
    right = labels_of(block) == np.asarray(estimator.predict(block.points))
    return np.array([block.weights.sum(), block.weights[right].sum()])


def weighted_sum(
    blocks: RowBlocks, function: Callable[[Points], FloatArray | InvalidRow]
) -> tuple[float, float]:
    r"""Total weight, and :math:`\sum_x u(x) f(x)`.

    Parameters
    ----------
    blocks : RowBlocks
    function : callable
        ``function(points)`` returns f of every row, float64 of shape (n,), or the `InvalidRow` of
        one of them. It must be picklable. It gets only rows of positive weight.

    Returns
    -------
    weight, total : float

    Raises
    ------
    InvalidInputError
        If a row is invalid, X is empty, or all weights are zero. The error names the first
        invalid row, counted over all blocks.
    """
    return _sums(blocks, partial(_sum_block, function))


def _sum_block(
    function: Callable[[Points], FloatArray | InvalidRow],
    block: Block,
    _index: int,
    _broadcast: object,
) -> FloatArray | InvalidRow:
    values = weighted_values(function, block)
    if isinstance(values, InvalidRow):
        return values
    return np.array([block.weights.sum(), values.sum()])


def weighted_values(
    function: Callable[[Points], FloatArray | InvalidRow], block: Block
) -> FloatArray | InvalidRow:
    """Return u(x) f(x) of every row of a block, and zero if u is zero. See `weighted_sum`.

    Examples
    --------
    >>> block = Block(np.array([[2.0], [5.0]]), np.array([3.0, 0.0]))
    >>> weighted_values(lambda points: points[:, 0], block)
    array([6., 0.])
    """
    weighted = np.zeros(len(block))
    counted = np.flatnonzero(block.weights > 0)
    values = apply_to_block(function, weighted[:0], block.take(counted))
    if isinstance(values, InvalidRow):
        return values
    weighted[counted] = block.weights[counted] * values
    return weighted


def apply_to_block(function: Callable[[Points], Any], nothing: Any, block: Block) -> Any:
    """Apply a function to the rows of a block, or return `nothing` for a block without rows.

    The `InvalidRow` of a row gets the number that the row has in the block as read.
    """
    values = function(block.points) if len(block) else nothing
    if isinstance(values, InvalidRow) and values.row is not None:
        return replace(values, row=block.number_of(values.row))
    return values


def _sums(blocks: RowBlocks, work: Callable[..., FloatArray | InvalidRow]) -> tuple[float, float]:
    """Add up two numbers of every block, of which the first is its weight."""
    weight, total = map_reduce(blocks, work, np.add).value
    if not weight:
        raise no_weight_error()
    return float(weight), float(total)
