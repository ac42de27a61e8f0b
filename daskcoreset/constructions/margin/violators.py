r"""The rows of least margin in all the data, by one fold: the only read a pass needs.

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
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.constructions.margin.classes import signs_of
from daskcoreset.constructions.margin.core_set import SelectedRows, concatenate_rows, smallest
from daskcoreset.constructions.margin.separators import Separator
from daskcoreset.core.linalg import dense_rows, inner_products, squared_lengths
from daskcoreset.execution.engine import map_reduce

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
    from daskcoreset.execution.engine import BlockResults
    from daskcoreset.inputs.blocks import RowBlocks

_CANDIDATES = 8
"""Violators compared for each that is taken."""


@dataclass(frozen=True, eq=False)
class ViolatorQuery:
    r"""A separator, and which of the rows that violate its margin to return.

    Attributes
    ----------
    separator : Separator
    classes : ndarray of shape (2,)
        Labels of the classes -1 and +1.
    floors : ndarray of shape (2,), float64
        Of the classes +1 and -1: rows whose :math:`y \langle w, x\rangle` is below are
        violators.
    length : float
        Length :math:`\rho_C` of the shortest vector, by which diversity is measured.
    share : float
        :math:`1 - \epsilon`.
    per_block, in_all : int
        Violators to return.
    middle : ndarray of shape (d,), float64, or None
        A point on the hyperplane between the classes; None for the origin.
    center : ndarray of shape (d,), float64, or None
        Where R is measured from; None for the origin.
    measure : bool
        Whether to measure R.
    """

    separator: Separator
    classes: AnyArray
    floors: FloatArray
    length: float
    share: float
    per_block: int
    in_all: int
    middle: FloatArray | None = None
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
    rows : SelectedRows or None
        Violators; their values are how far they are above their floor, all negative.
    """

    levels: FloatArray
    square: float
    rows: SelectedRows | None


def find_violators(blocks: RowBlocks, query: ViolatorQuery) -> BlockResults[ViolatorRows]:
    """Read all rows once for the margins of a separator, and for violators."""
    merge = partial(_merge, n_keep=4 * query.in_all)
    read = map_reduce(blocks, _violators_of_block, merge, broadcast=query)
    rows = read.value.rows
    if rows is not None and len(rows) > query.in_all:
        rows = rows.take(_choose(rows, query, query.in_all))
    return replace(read, value=replace(read.value, rows=rows))


def _violators_of_block(block: Block, block_index: int, query: ViolatorQuery) -> ViolatorRows:
    signs = signs_of(block, query.classes)
    levels = np.full(2, np.inf)
    used = signs != 0.0
    if not used.any():
        return ViolatorRows(levels, 0.0, None)
    products = signs * query.separator.projections(block.points)
    values = np.where(signs > 0.0, products - query.floors[0], products - query.floors[1])
    for group, sign in enumerate((1.0, -1.0)):
        levels[group] = products[signs == sign].min(initial=np.inf)
    square = 0.0
    if query.measure:
        square = float(_squares(query, block)[used].max())
    below = np.flatnonzero(used & (values < 0.0))
    if not len(below):
        return ViolatorRows(levels, square, None)
    n_candidates = _CANDIDATES * query.per_block
    if len(below) > n_candidates:
        # The smallest, and of equal ones the first, whatever order a partition leaves.
        limit = np.partition(values[below], n_candidates - 1)[n_candidates - 1]
        below = below[values[below] <= limit]
        below = below[np.argsort(values[below], kind="stable")[:n_candidates]]
        below.sort()
    block_indices = np.full(len(below), block_index)
    rows = SelectedRows(block.take(below), block_indices, signs[below], values[below])
    return ViolatorRows(levels, square, rows.take(_choose(rows, query, query.per_block)))


def _squares(query: ViolatorQuery, block: Block) -> FloatArray:
    kernel = query.separator.kernel
    if kernel.is_linear:
        return squared_lengths(block.points, query.center)
    return kernel.diagonal(block.points)


def _merge(first: ViolatorRows, second: ViolatorRows, *, n_keep: int) -> ViolatorRows:
    parts = [part.rows for part in (first, second) if part.rows is not None]
    return ViolatorRows(
        np.minimum(first.levels, second.levels),
        max(first.square, second.square),
        smallest(concatenate_rows(parts), n_keep) if parts else None,
    )


def _choose(rows: SelectedRows, query: ViolatorQuery, n_keep: int) -> IndexArray:
    if len(rows) == 1 or n_keep == 1:
        return np.array([rows.values.argmin()])
    kernel = query.separator.kernel
    if kernel.is_linear:
        points = dense_rows(rows.block.points).astype(np.float64)
        if query.middle is not None:
            points = points - query.middle
        gram = inner_products(points, points)
    else:
        gram = kernel(rows.block.points, rows.block.points)
    gram = gram * np.outer(rows.signs, rows.signs)
    products = rows.values + query.share * query.length
    return choose_diverse(products * query.length, gram, query.length**2, query.share, n_keep)


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
