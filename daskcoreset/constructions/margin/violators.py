r"""The rows of least margin in all the data, in one read.

A block returns the smallest margin of each class and a few of its violators, rows below the
floor that the core set determines. By Corollary 3.2 any violator will do, so that every block
may return some, and one read does the work of many.

**Which ones.** The worst rows of a block often lie side by side. So the worst one is taken,
the shortest vector moves towards it along a segment (as in Gilbert's method), products with
all other candidates are updated, and the next one is the worst for the new vector. Rows that
it no longer violates are not taken at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from daskcoreset.constructions.margin.core_set import Fit, floors_of
from daskcoreset.constructions.margin.rows import (
    SelectedRows,
    concatenate_rows,
    select_rows,
    signs_of,
    smallest,
)
from daskcoreset.core.blocks import Block
from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense_rows, inner_products, squared_lengths
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Violators compared for each that is taken.
_CANDIDATES = 8

# Rows whose products with all others are formed at a time.
_TILE = 256


@dataclass(frozen=True, eq=False)
class ViolatorQuery:
    r"""A separator, and which of the rows that violate its margin to return.

    Attributes
    ----------
    fit : Fit
        The separator of the core set.
    classes : ndarray of shape (2,)
        Labels of the classes -1 and +1.
    epsilon : float
        Rows violate a share :math:`1 - \epsilon` of the margin on the core set.
    intercept : bool
    per_block, in_all : int
        Violators to return.
    starts : dict of int to int
        Number of the first row of every block.
    center : ndarray of shape (d,), float64, or None
        Where R is measured from; None for the origin.
    measure : bool
        Whether to measure R.
    """

    fit: Fit
    classes: AnyArray
    epsilon: float
    intercept: bool
    per_block: int
    in_all: int
    starts: dict[int, int]
    center: FloatArray | None = None
    measure: bool = False


@dataclass(frozen=True, eq=False)
class ViolatorRows:
    r"""Margins and violators of some blocks.

    Attributes
    ----------
    levels : ndarray of shape (2,), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1; infinity for none.
    square : float
        Largest squared distance from the center, R squared; zero where it is not measured.
    rows : SelectedRows
        Violators; their values are how far they are above their floor, all negative.
    """

    levels: FloatArray
    square: float
    rows: SelectedRows


def find_violators(blocks: RowBlocks, query: ViolatorQuery) -> ViolatorRows:
    """Read all rows once for the margins of a separator, and for violators."""
    # Merging keeps more than are taken, for a choice of directions at the end.
    merge = partial(_merge, n_keep=4 * query.in_all)
    read: BlockResults[ViolatorRows] = map_reduce(
        blocks, _violators_of_block, merge, broadcast=query
    )
    rows = read.value.rows
    # As few as were asked for are all taken, whatever they pull at.
    chosen = _diverse(rows, query, query.in_all) if len(rows) > query.in_all else rows
    return replace(read.value, rows=chosen)


def _violators_of_block(block: Block, block_index: int, query: ViolatorQuery) -> ViolatorRows:
    separator, start = query.fit.separator, query.starts[block_index]
    signs = signs_of(block, query.classes)
    if not signs.any():
        none = np.flatnonzero(signs)
        return ViolatorRows(np.full(2, np.inf), 0.0, select_rows(block, none, signs[none]))
    products = signs * separator.projections(block.points)
    floors = floors_of(query.fit.hard, query.epsilon, intercept=query.intercept)
    values = np.where(signs > 0.0, products - floors[0], products - floors[1])
    levels = np.array([products[signs == sign].min(initial=np.inf) for sign in (1.0, -1.0)])
    square = 0.0
    if query.measure:
        kernel = separator.kernel
        squares = (
            squared_lengths(block.points, query.center)
            if kernel.is_linear
            else kernel.diagonal(block.points)
        )
        square = float(squares[signs != 0.0].max())
    values[(signs == 0.0) | (values >= 0.0)] = np.inf
    # More than are taken, so that rows which pull elsewhere are among them.
    below = smallest(values, _CANDIDATES * query.per_block)
    rows = select_rows(block, below, values[below], start)
    return ViolatorRows(levels, square, _diverse(rows, query, query.per_block))


def _merge(first: ViolatorRows, second: ViolatorRows, *, n_keep: int) -> ViolatorRows:
    return ViolatorRows(
        np.minimum(first.levels, second.levels),
        max(first.square, second.square),
        concatenate_rows(first.rows, second.rows).smallest(n_keep),
    )


def _diverse(rows: SelectedRows, query: ViolatorQuery, n_keep: int) -> SelectedRows:
    """Take some of the violators, which pull the shortest vector in different directions."""
    if len(rows) < 2:  # no row, or the only one
        return rows
    if n_keep == 1:
        return rows.take(np.array([rows.values.argmin()]))
    kernel, hard = query.fit.separator.kernel, query.fit.hard
    if kernel.is_linear:
        points = dense_rows(rows.block.points).astype(np.float64)
        if query.fit.middle is not None:
            points = points - query.fit.middle
        gram = np.empty((len(points), len(points)))
        for start in range(0, len(points), _TILE):
            check_time("violators of a margin were being compared", "pass fewer columns")
            gram[start : start + _TILE] = inner_products(points[start : start + _TILE], points)
    else:
        gram = kernel(rows.block.points, rows.block.points)
    signs, share = signs_of(rows.block, query.classes), 1.0 - query.epsilon
    gram = gram * np.outer(signs, signs)
    products = rows.values + share * hard.length
    return rows.take(choose_diverse(products * hard.length, gram, hard.length**2, share, n_keep))


def choose_diverse(
    products: FloatArray, gram: FloatArray, square: float, share: float, n_keep: int
) -> IndexArray:
    r"""Choose violators that pull the shortest vector in different directions.

    Parameters
    ----------
    products : ndarray of shape (c,), float64
        :math:`\langle x, z_i\rangle` of the candidates with the shortest vector x.
    gram : ndarray of shape (c, c), float64
        :math:`\langle z_i, z_j\rangle`.
    square : float
        :math:`|x|^2`.
    share : float
        A candidate violates where its product is below this share of the square.
    n_keep : int
        Violators to choose, at most.

    Returns
    -------
    ndarray of shape (at most `n_keep`,), int64
        Positions, increasing. The worst candidate is always among them.

    Examples
    --------
    Of two equal rows one is taken, and the row that pulls elsewhere.

    >>> z = np.array([[1.0, -1.0], [1.0, -1.0], [0.9, 1.5]])
    >>> choose_diverse(z @ [2.0, 0.0], z @ z.T, 4.0, 0.9, 2)
    array([0, 2])
    """
    products = products.copy()
    remaining = np.ones(len(products), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < n_keep and remaining.any():
        worst = int(np.where(remaining, products, np.inf).argmin())
        if chosen and products[worst] >= share * square:
            break
        chosen.append(worst)
        remaining[worst] = False
        # The shortest vector on the segment from x to the row.
        span = square - 2.0 * products[worst] + gram[worst, worst]
        step = float(np.clip((square - products[worst]) / span, 0.0, 1.0)) if span > 0 else 0.0
        square = (
            (1.0 - step) ** 2 * square
            + 2.0 * step * (1.0 - step) * products[worst]
            + step**2 * gram[worst, worst]
        )
        products = (1.0 - step) * products + step * gram[worst]
    return np.sort(np.array(chosen, dtype=np.int64))
