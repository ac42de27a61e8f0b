"""Scores and weighted sums over data out of core, in one read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.blocks import Block, plain_labels
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.engine import map_reduce

if TYPE_CHECKING:
    from daskcoreset.core.blocks import InvalidRow
    from daskcoreset.core.typing import AnyArray, FloatArray, Points
    from daskcoreset.inputs.blocks import RowBlocks


@dataclass(frozen=True)
class Agreement:
    """How predictions agree with the truth, on some of the rows.

    Attributes
    ----------
    weight : float
        Total weight.
    right : float
        Weight of the rows whose prediction equals the truth.
    mean, spread : float
        Weighted mean of the truth, and weighted sum of squares about it.
    residual : float
        Weighted sum of squared errors.
    """

    weight: float = 0.0
    right: float = 0.0
    mean: float = 0.0
    spread: float = 0.0
    residual: float = 0.0

    @classmethod
    def of(
        cls, truth: AnyArray, predicted: AnyArray, weights: FloatArray, *, numbers: bool
    ) -> Agreement:
        """Compare values as numbers, or as they are.

        Examples
        --------
        >>> one = np.ones(2)
        >>> Agreement.of(np.array(["a", "b"]), np.array(["a", "c"]), one, numbers=False).right
        1.0
        """
        total = float(weights.sum())
        if not total:
            return cls()
        if not numbers:
            return cls(weight=total, right=float(weights[truth == predicted].sum()))
        mean = float(np.average(truth, weights=weights))
        spread = float(weights @ np.square(truth - mean))
        residual = float(weights @ np.square(truth - predicted))
        return cls(weight=total, mean=mean, spread=spread, residual=residual)

    def __add__(self, other: Agreement) -> Agreement:
        """Unite two disjoint sets of rows, as Chan, Golub and LeVeque (1979) do."""
        weight = self.weight + other.weight
        if not weight:
            return self
        gap, share = other.mean - self.mean, other.weight / weight
        return Agreement(
            weight,
            self.right + other.right,
            self.mean + gap * share,
            self.spread + other.spread + gap**2 * self.weight * share,
            self.residual + other.residual,
        )


def _compare(
    block: Block, _block_index: int, _broadcast: object, *, estimator: Any, numbers: bool
) -> Agreement:
    if not len(block):
        return Agreement()
    predicted = np.asarray(estimator.predict(block.points))
    truth: Any = block.labels
    if numbers:
        truth, predicted = truth.astype(np.float64), predicted.astype(np.float64)
    elif truth.dtype.kind in "OST":
        truth = plain_labels(truth)  # as the coreset, and so the estimator, has them
    return Agreement.of(truth, predicted, block.weights, numbers=numbers)


def _agreement(estimator: Any, blocks: RowBlocks, *, numbers: bool) -> Agreement:
    if not blocks.has_labels:
        raise InvalidInputError("y is missing; pass the labels that the score compares with.")
    compare = partial(_compare, estimator=estimator, numbers=numbers)
    agreement: Agreement = map_reduce(blocks, compare, add).value
    if not agreement.weight:
        raise InvalidInputError("sample_weight is zero for every row; give some row a weight.")
    return agreement


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
    agreement = _agreement(estimator, blocks, numbers=False)
    return agreement.right / agreement.weight


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
        At most one. Where the truth is constant, one if it is met exactly and else zero.
    """
    agreement = _agreement(estimator, blocks, numbers=True)
    if not agreement.spread:
        return 0.0 if agreement.residual else 1.0
    return 1.0 - agreement.residual / agreement.spread


def _sum_block(
    block: Block,
    _block_index: int,
    _broadcast: object,
    *,
    function: Callable[[Points], FloatArray],
    check: Callable[[Block], InvalidRow | None] | None,
) -> tuple[float, float] | InvalidRow:
    if check is not None and (problem := check(block)) is not None:
        return problem
    counted = block.weights > 0
    if not counted.all():
        block = block.take(np.flatnonzero(counted))
    return float(block.weights.sum()), float(block.weights @ function(block.points))


def _add_pairs(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return first[0] + second[0], first[1] + second[1]


def weighted_sum(
    blocks: RowBlocks,
    function: Callable[[Points], FloatArray],
    check: Callable[[Block], InvalidRow | None] | None = None,
) -> tuple[float, float]:
    r"""Total weight, and :math:`\sum_x u(x) f(x)`.

    Parameters
    ----------
    blocks : RowBlocks
    function : callable
        ``function(points)`` returns f of every row, float64 of shape (n,); picklable. It sees
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
    sum_block = partial(_sum_block, function=function, check=check)
    weight, total = map_reduce(blocks, sum_block, _add_pairs).value
    if not weight:
        raise InvalidInputError("sample_weight is zero for every row; give some row a weight.")
    return weight, total
