r"""A soft margin for rows that no hyperplane separates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize

from daskcoreset.constructions.margin.rows import (
    SelectedRows,
    concatenate_rows,
    row_numbers,
    select_rows,
    smallest,
)
from daskcoreset.core.blocks import Block, labels_of
from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense_rows, one_thread
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Rows that a soft margin is fitted to: more change a few coefficients little.
SOFT_ROWS = 10_000

# Up to which a matrix of second derivatives is formed.
_MAX_COLUMNS = 2000


@dataclass(frozen=True, eq=False)
class _Objective:
    rows: FloatArray
    signs: FloatArray
    weights: FloatArray
    intercept: bool

    def __call__(self, v: FloatArray) -> tuple[float, FloatArray]:
        check_time("a soft margin was being fitted", "pass fewer columns")
        w, b = v[:-1], v[-1] if self.intercept else 0.0
        short = np.maximum(0.0, 1.0 - self.signs * (self.rows @ w + b))
        pull = -2.0 * self.weights * self.signs * short
        gradient = np.append(w + self.rows.T @ pull, pull.sum() if self.intercept else 0.0)
        return float(w @ w) / 2 + float(self.weights @ short**2), gradient


@one_thread()
def soft_margin(
    rows: FloatArray, signs: FloatArray, weights: FloatArray, C: float, *, intercept: bool
) -> tuple[FloatArray, float]:
    r"""Minimise :math:`|w|^2/2 + C \sum_i u_i \max(0, 1 - y_i(\langle w, x_i\rangle + b))^2`.

    Columns are brought to zero mean (with an intercept) and unit spread first, in which the
    penalty is meant, too: no column counts more for its unit.

    Parameters
    ----------
    rows : ndarray of shape (n, d), float64
    signs : ndarray of shape (n,), float64
    weights : ndarray of shape (n,), float64
        As if so many rows; positive.
    C : float
    intercept : bool

    Returns
    -------
    w : ndarray of shape (d,), float64
    b : float
        For rows as they are.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> w, b = soft_margin(rows, np.array([-1.0, 1, -1, 1]), np.ones(4), 1.0, intercept=True)
    >>> bool(w[0] > 0), round(float(-b / w[0]), 6)
    (True, 1.5)
    """
    share = weights / weights.sum()
    center = share @ rows if intercept else np.zeros(rows.shape[1])
    spread = np.sqrt(share @ (rows - center) ** 2)
    spread[spread == 0.0] = 1.0
    scaled = (rows - center) / spread
    objective = _Objective(scaled, signs, C * weights, intercept)
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10}
    v = np.zeros(rows.shape[1] + 1)
    v = minimize(objective, v, jac=True, method="L-BFGS-B", options=options).x
    if rows.shape[1] <= _MAX_COLUMNS:
        v = _polished(objective, v)
    w = v[:-1] / spread
    b = float(v[-1] - w @ center) if intercept else 0.0
    return w, b


def _polished(objective: _Objective, v: FloatArray) -> FloatArray:
    """Take Newton steps while the objective falls; near the solution no row changes sides."""
    d = len(v) - 1
    rows = np.column_stack([objective.rows, np.full(len(objective.rows), objective.intercept)])
    gradient = objective(v)[1]
    while True:
        active = objective.signs * (rows @ v) < 1.0
        weighted = rows[active] * (2.0 * objective.weights[active])[:, None]
        hessian = rows[active].T @ weighted
        hessian[np.arange(d), np.arange(d)] += 1.0
        hessian[d, d] += 1e-12
        after = v - np.linalg.solve(hessian, gradient)
        gradient_after = objective(after)[1]
        if np.abs(gradient_after).max() >= np.abs(gradient).max():
            return v
        v, gradient = after, gradient_after


def soft_planes(
    rows: Block, classes: AnyArray, C: float, *, intercept: bool
) -> tuple[FloatArray, FloatArray]:
    """Fit a soft margin to rows.

    Parameters
    ----------
    rows : Block
        With labels, and positive weights.
    classes : ndarray of shape (n_classes,)
        Two of them have one hyperplane, more one each against all others.
    C : float
    intercept : bool

    Returns
    -------
    coef : ndarray of shape (1, d) or (n_classes, d), float64
    intercept : ndarray of shape (1,) or (n_classes,), float64
    """
    points, labels = dense_rows(rows.points).astype(np.float64), labels_of(rows)
    fits = [
        soft_margin(
            points, np.where(labels == one, 1.0, -1.0), rows.weights, C, intercept=intercept
        )
        for one in (classes[1:] if len(classes) == 2 else classes)
    ]
    return np.stack([w for w, _ in fits]), np.array([b for _, b in fits])


@dataclass(frozen=True, eq=False)
class UniformRows:
    """Rows drawn uniformly and without replacement, which stand for all.

    Attributes
    ----------
    rows : Block
        With labels, weights of the input times the rows that each stands for, and numbers in the
        whole data, in increasing order.
    n_rows, n_dropped : int
        Rows of the data, and those left out since they are not finite.
    weight : float
        Of all rows.
    """

    rows: Block
    n_rows: int
    n_dropped: int
    weight: float


def uniform_rows(
    blocks: RowBlocks, max_rows: int, seed: int
) -> tuple[FloatArray, AnyArray, FloatArray]:
    """Draw rows as `draw_uniform` does, and return what a fit needs of them.

    Parameters
    ----------
    blocks, max_rows, seed
        As there.

    Returns
    -------
    rows : ndarray of shape (m, d), float64
    labels : ndarray of shape (m,)
    weights : ndarray of shape (m,), float64
    """
    rows = draw_uniform(blocks, max_rows, seed).rows
    return dense_rows(rows.points).astype(np.float64), labels_of(rows), rows.weights


def draw_uniform(blocks: RowBlocks, max_rows: int, seed: int) -> UniformRows:
    """Draw rows uniformly and without replacement, in one read; all if they are few.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    max_rows : int
    seed : int

    Returns
    -------
    UniformRows
        Of rows with a positive weight.
    """
    blocks.refuse_zeros(max_rows if blocks.n_rows is None else min(max_rows, blocks.n_rows))
    draw = partial(_draw, max_rows=max_rows, seed=seed)
    read = map_reduce(blocks, draw, partial(_merge_draws, max_rows=max_rows))
    sample, (n_used, weight) = read.value
    block = sample.block
    numbers = row_numbers(read, sample.indices >> _WITHIN, sample.indices & (2**_WITHIN - 1))
    rows = replace(block, weights=block.weights * (n_used / max(1, len(sample))), rows=numbers)
    return UniformRows(rows, read.n_kept, read.n_rows - read.n_kept, float(weight))


# Rows drawn; how many have a weight, and the sum of these.
RowSample: TypeAlias = tuple[SelectedRows, FloatArray]

# Bits of the number of a row within its block: where blocks start is known after the read.
_WITHIN = 40


def _draw(
    block: Block, block_index: int, _broadcast: object, *, max_rows: int, seed: int
) -> RowSample:
    # The rows of smallest coins, of the block and of all: a sample without replacement.
    coins = stream(seed, Stage.DRAWS, block_index).random(len(block))
    used = block.weights > 0.0
    drawn = smallest(np.where(used, coins, np.inf), max_rows)
    totals = np.array([np.count_nonzero(used), block.weights.sum()], dtype=np.float64)
    return select_rows(block, drawn, coins[drawn], start=block_index << _WITHIN), totals


def _merge_draws(first: RowSample, second: RowSample, *, max_rows: int) -> RowSample:
    return concatenate_rows(first[0], second[0]).smallest(max_rows), first[1] + second[1]
