r"""The rows of least margin in all the data, by one fold: the only read a pass needs.

A block tells the smallest margin of each class and hands over a few of its violators, rows
below the floor that the core set sets. By Corollary 3.2 any violator will do, so that every
block may give some, and one read does the work of many.

**Which ones.** The worst rows of a block often say the same thing: they lie side by side. So
the worst one is taken, the shortest vector moves towards it along a segment (as in Gilbert's
method), products with all other candidates are updated, and the next one is the worst for
what the vector has become. Rows that it no longer violates are not taken at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.constructions.margin.classes import signs_of
from daskcoreset.constructions.margin.core_set import SelectedRows, concatenate_rows, smallest
from daskcoreset.constructions.margin.separators import Separator
from daskcoreset.core.linalg import dense_rows, inner_products, squared_lengths
from daskcoreset.execution.fold import BlockResults, map_reduce

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["ViolatorQuery", "ViolatorRows", "choose_diverse", "find_violators"]

_CANDIDATES = 8
"""Violators compared for each that is taken."""


@dataclass(frozen=True, eq=False)
class ViolatorQuery:
    r"""What every block is asked.

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
        Violators wanted.
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
    r"""What some blocks answer.

    Attributes
    ----------
    levels : ndarray of shape (2,), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1; infinity for none.
    square : float
        Largest squared distance from the center, R squared; zero if it was not asked for.
    rows : Picked or None
        Violators; their values are how far they are above their floor, all negative.
    """

    levels: FloatArray
    square: float
    rows: SelectedRows | None


def find_violators(
    blocks: RowBlocks, question: ViolatorQuery, *, split_every: int = 16
) -> BlockResults[ViolatorRows]:
    """Read all rows once for the margins of a separator, and for violators.

    Parameters
    ----------
    blocks : RowBlocks
    question : Question
    split_every : int, default=16

    Returns
    -------
    Gathered of Worst
        Its `row` turns numbers of blocks and rows into row numbers.
    """
    merge = _Merge(4 * question.in_all)
    found = map_reduce(blocks, _answer, merge, given=question, split_every=split_every)
    rows = found.value.rows
    if rows is not None and len(rows) > question.in_all:
        chosen = rows.take(_choose(rows, question, question.in_all))
        found = BlockResults(
            ViolatorRows(found.value.levels, found.value.square, chosen), found.sizes
        )
    return found


def _answer(block: Block, number: int, question: ViolatorQuery) -> ViolatorRows:
    signs = signs_of(block, question.classes)
    levels = np.full(2, np.inf)
    used = signs != 0.0
    if not used.any():
        return ViolatorRows(levels, 0.0, None)
    products = signs * question.separator.projections(block.points)
    values = np.where(signs > 0.0, products - question.floors[0], products - question.floors[1])
    for group, sign in enumerate((1.0, -1.0)):
        levels[group] = products[signs == sign].min(initial=np.inf)
    square = 0.0
    if question.measure:
        square = float(_squares(question, block)[used].max())
    below = np.flatnonzero(used & (values < 0.0))
    if not len(below):
        return ViolatorRows(levels, square, None)
    wanted = _CANDIDATES * question.per_block
    if len(below) > wanted:
        # The smallest, and of equal ones the first, whatever order a partition leaves.
        limit = np.partition(values[below], wanted - 1)[wanted - 1]
        below = below[values[below] <= limit]
        below = below[np.argsort(values[below], kind="stable")[:wanted]]
        below.sort()
    rows = SelectedRows(block.take(below), np.full(len(below), number), signs[below], values[below])
    return ViolatorRows(levels, square, rows.take(_choose(rows, question, question.per_block)))


def _squares(question: ViolatorQuery, block: Block) -> FloatArray:
    kernel = question.separator.kernel
    if kernel.is_linear:
        return squared_lengths(block.points, question.center)
    return kernel.diagonal(block.points)


@dataclass(frozen=True)
class _Merge:
    most: int

    def __call__(self, first: ViolatorRows, second: ViolatorRows) -> ViolatorRows:
        parts = [part.rows for part in (first, second) if part.rows is not None]
        return ViolatorRows(
            np.minimum(first.levels, second.levels),
            max(first.square, second.square),
            smallest(concatenate_rows(parts), self.most) if parts else None,
        )


def _choose(rows: SelectedRows, question: ViolatorQuery, most: int) -> IndexArray:
    if len(rows) == 1 or most == 1:
        return np.array([rows.values.argmin()])
    kernel = question.separator.kernel
    if kernel.is_linear:
        points = dense_rows(rows.block.points).astype(np.float64)
        if question.middle is not None:
            points = points - question.middle
        gram = inner_products(points, points)
    else:
        gram = kernel(rows.block.points, rows.block.points)
    gram = gram * np.outer(rows.signs, rows.signs)
    products = rows.values + question.share * question.length
    return choose_diverse(
        products * question.length, gram, question.length**2, question.share, most
    )


def choose_diverse(
    products: FloatArray, gram: FloatArray, square: float, share: float, most: int
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
    most : int
        Number wanted.

    Returns
    -------
    ndarray of shape (at most `most`,), int64
        Positions, increasing. The worst candidate is always among them.

    Examples
    --------
    Of two equal rows one is taken, and the row that pulls elsewhere.

    >>> z = np.array([[1.0, -1.0], [1.0, -1.0], [0.9, 1.5]])
    >>> choose_diverse(z @ [2.0, 0.0], z @ z.T, 4.0, 0.9, 2)
    array([0, 2])
    """
    products = products.copy()
    left = np.ones(len(products), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < most and left.any():
        worst = int(np.where(left, products, np.inf).argmin())
        if chosen and products[worst] >= share * square:
            break
        chosen.append(worst)
        left[worst] = False
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
