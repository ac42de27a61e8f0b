r"""The objective over all rows in one read: losses, gradients, Hessians, drawn rows.

A model of K problems, one class against the rest each, is a matrix of coefficients
:math:`\beta` of shape (r, K): :math:`w_k = \sum_j \beta_{jk} \varphi(c_j)`, and the margin of
row i is :math:`z_{ik} = y_{ik} \sum_j \beta_{jk} k(c_j, x_i)`, at the true row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from daskcoreset.core.blocks import Block, concatenate, labels_of
from daskcoreset.core.linalg import GramSum, one_thread, product
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.losses import MarginLoss


def n_problems(n_classes: int) -> int:
    """Binary problems that many classes make: one against the rest each, and one for two.

    Examples
    --------
    >>> n_problems(2), n_problems(3)
    (1, 3)
    """
    return 1 if n_classes == 2 else n_classes


def signs_of(labels: AnyArray, classes: AnyArray) -> FloatArray:
    """Signs of rows in every problem, of shape (n, K): +1 for the class, -1 for the rest.

    Examples
    --------
    >>> signs_of(np.array(["a", "b"]), np.array(["a", "b"])).ravel()
    array([-1.,  1.])
    """
    codes = np.searchsorted(classes, labels)  # a label that is not there has weight zero
    if len(classes) == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, np.newaxis]
    return np.where(codes[:, np.newaxis] == np.arange(len(classes)), 1.0, -1.0)


def squared_norms(gram: FloatArray, beta: FloatArray) -> FloatArray:
    """Squared norms of the combinations of core points with coefficients `beta`."""
    with one_thread():
        return np.asarray(np.einsum("jk,jk->k", beta, gram @ beta))


@dataclass(frozen=True)
class Draw:
    """Rows to be drawn from the blocks.

    Attributes
    ----------
    seed, fold : int
        Address of the random numbers.
    counts : dict of int to int, or None
        Draws from every block, with replacement, in proportion to weights; None for all rows.
    """

    seed: int
    fold: int
    counts: dict[int, int] | None


def draw_rows(block: Block, block_index: int, draw: Draw) -> Block:
    """Return the rows drawn from a block."""
    if draw.counts is None:
        return block.all_rows()
    rng = stream(draw.seed, Stage.DESCENT, block_index, draw.fold)
    return block.take(draw_with_replacement(block.weights, draw.counts.get(block_index, 0), rng))


def whole_matrix(triangle: FloatArray) -> FloatArray:
    """Return the symmetric matrix with this lower triangle, row by row.

    Examples
    --------
    >>> whole_matrix(np.array([1.0, 2.0, 3.0]))
    array([[1., 2.],
           [2., 3.]])
    """
    r = int(np.sqrt(2 * len(triangle)))
    matrix = np.zeros((r, r))
    rows, columns = np.tril_indices(r)
    matrix[rows, columns] = matrix[columns, rows] = triangle
    return matrix


@dataclass(frozen=True, eq=False)
class ObjectiveQuery:
    """The terms of a model that a read computes.

    Attributes
    ----------
    core : KernelMap
    loss : MarginLoss
    classes : ndarray of shape (n_classes,)
    beta : ndarray of shape (r, K), float64
    problems : ndarray of shape (K,), int64, or None
        Which of the problems the columns of `beta` are; None for all of them.
    move : ndarray of shape (r, K), float64, or None
        The step that led to `beta`: losses are summed at ``beta - (1 - t) move``, t of `lengths`.
    lengths : tuple of float
    truth : MarginLoss or None
        A second loss, which is summed at `beta`, as are the slopes of `loss`.
    gradient : {"none", "rows", "cells"}
        Sums of ``u a k(c, x)``, or of ``u a`` over the cell of every core point.
    hessian : ndarray of shape (K,), float64, or None
        Share of the rows that the second derivatives of every problem are estimated from.
    table : bool
        Whether the weight of every class in every cell is summed.
    draw : Draw or None
    seed, fold : int
    """

    core: KernelMap
    loss: MarginLoss
    classes: AnyArray
    beta: FloatArray
    problems: IndexArray | None = None
    move: FloatArray | None = None
    lengths: tuple[float, ...] = (1.0,)
    truth: MarginLoss | None = None
    gradient: str = "none"
    hessian: FloatArray | None = None
    table: bool = False
    draw: Draw | None = None
    seed: int = 0
    fold: int = 0


@dataclass(frozen=True, eq=False)
class ObjectiveTerms:
    """Sums over rows, weights included.

    Attributes
    ----------
    losses : ndarray of shape (len(lengths), K), float64
    truth, slopes : ndarray of shape (K,), float64
    gradient : ndarray of shape (r, K), float64
    hessian : ndarray of shape (K, r (r + 1) / 2), float64
        Lower triangles, row by row, for they travel; of no rows where the query has none.
    bent : ndarray of shape (K,), int64
        Rows that it was made from: those of its share that have a second derivative.
    table : ndarray of shape (r, n_classes), float64
        Of shape (r, 0) where the query has none.
    farthest : float
        Largest squared distance of a row from its core point, with `table`.
    drawn : Block or None
    """

    losses: FloatArray
    truth: FloatArray
    slopes: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    bent: IndexArray
    table: FloatArray
    farthest: float = 0.0
    drawn: Block | None = None

    def merged(self, other: ObjectiveTerms) -> ObjectiveTerms:
        """Return the sums over both sets of rows."""
        drawn = [part.drawn for part in (self, other) if part.drawn is not None]
        return ObjectiveTerms(
            self.losses + other.losses,
            self.truth + other.truth,
            self.slopes + other.slopes,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            self.bent + other.bent,
            self.table + other.table,
            max(self.farthest, other.farthest),
            concatenate(drawn) if drawn else None,
        )


@one_thread()
def evaluate_block(block: Block, block_index: int, query: ObjectiveQuery) -> ObjectiveTerms:
    """Evaluate the rows of one block, in tiles."""
    r, k = query.beta.shape
    n_classes = len(query.classes) if query.table else 0
    sums = ObjectiveTerms(
        losses=np.zeros((len(query.lengths), k)),
        truth=np.zeros(k),
        slopes=np.zeros(k),
        gradient=np.zeros((r, k)),
        hessian=np.zeros((0, r * (r + 1) // 2)),
        bent=np.zeros(k, dtype=np.int64),
        table=np.zeros((r, n_classes)),
    )
    grams = [] if query.hessian is None else [GramSum(r, k) for _ in range(k)]
    labels = labels_of(block)
    coins, farthest = _coins(block, block_index, query), 0.0
    needs_cells = query.table or query.gradient == "cells"
    for part, values, nearest in query.core.tiles(block.points, nearest=needs_cells):
        cells = None if nearest is None else nearest.cells
        signs = signs_of(labels[part], query.classes)
        if query.problems is not None:
            signs = signs[:, query.problems]
        tile = _Tile(query, sums, values, cells, signs, block.weights[part])
        margins = tile.add_losses()
        tile.add_gradient(margins)
        tile.add_hessian(grams, margins, coins[part])
        if query.table and nearest is not None:
            farthest = max(farthest, nearest.farthest)
            codes = np.searchsorted(query.classes, labels[part]).clip(max=n_classes - 1)
            flat = nearest.cells * n_classes + codes
            counts = np.bincount(flat, tile.weights, sums.table.size)
            sums.table[:] += counts.reshape(sums.table.shape)
    lower = np.tril_indices(r) if grams else ()
    return replace(
        sums,
        hessian=np.stack([gram.total()[lower] for gram in grams]) if grams else sums.hessian,
        farthest=farthest,
        drawn=None if query.draw is None else draw_rows(block, block_index, query.draw),
    )


def _coins(block: Block, block_index: int, query: ObjectiveQuery) -> FloatArray:
    """Uniform numbers, below its share for a row of the Hessian; zeros where all rows are."""
    if query.hessian is None or query.hessian.min() >= 1.0:
        return np.zeros(len(block))
    return stream(query.seed, Stage.DESCENT, block_index, query.fold).random(len(block))


@dataclass(frozen=True, eq=False)
class _Tile:
    """A few rows of a block, whose terms are added to `sums`."""

    query: ObjectiveQuery
    sums: ObjectiveTerms
    values: FloatArray  # (t, r)
    cells: IndexArray | None
    signs: FloatArray  # (t, K)
    weights: FloatArray  # (t,)

    def total(self, values: FloatArray) -> FloatArray:
        """Weighted sum over the rows."""
        return np.asarray(np.einsum("i,ik->k", self.weights, values))

    def add_losses(self) -> FloatArray:
        query, sums = self.query, self.sums
        margins = self.signs * product(self.values, query.beta)
        moved = None if query.move is None else self.signs * product(self.values, query.move)
        for i, t in enumerate(query.lengths):
            margins_on_line = margins if moved is None or t == 1.0 else margins - (1.0 - t) * moved
            sums.losses[i] += self.total(query.loss.value(margins_on_line))
        if query.truth is not None:
            sums.truth[:] += self.total(query.truth.value(margins))
            sums.slopes[:] += self.total(query.loss.slope(margins))
        return np.asarray(margins)

    def add_gradient(self, margins: FloatArray) -> None:
        if self.query.gradient == "none":
            return
        a = self.signs * self.query.loss.slope(margins) * self.weights[:, np.newaxis]
        gradient = self.sums.gradient
        if self.query.gradient == "rows":
            gradient[:] += product(self.values.T, a)
            return
        for k in range(a.shape[1]):
            gradient[:, k] += np.bincount(self.cells, a[:, k], len(gradient))  # type: ignore[arg-type] # there are cells

    def add_hessian(self, grams: list[GramSum], margins: FloatArray, coins: FloatArray) -> None:
        shares = self.query.hessian
        if shares is None:
            return
        bends = self.query.loss.curvature(margins) * self.weights[:, np.newaxis] / shares
        bends[coins[:, np.newaxis] >= shares] = 0.0
        for k, gram in enumerate(grams):
            active = np.flatnonzero(bends[:, k])
            self.sums.bent[k] += len(active)
            gram.add(self.values[active] * np.sqrt(bends[active, k])[:, np.newaxis])
