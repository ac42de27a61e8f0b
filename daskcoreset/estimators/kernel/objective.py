r"""The objective over all rows in one pass: losses, gradients by core point, drawn rows.

A model of K problems has a matrix of coefficients :math:`\beta` of shape (r, K). Each problem is
one class against the rest, with :math:`w_k = \sum_j \beta_{jk} \varphi(c_j)`. The margin of row i
is :math:`z_{ik} = y_{ik} \sum_j \beta_{jk} k(c_j, x_i)`, at the true row.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskcoreset.core.block import Block, concatenate, labels_of
from daskcoreset.core.linalg import one_thread, product
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement, split_quota
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.kernel.kernels import KernelDecision, KernelMap, nearest
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.solvers.losses import MarginLoss

# Index of the root, at which no block of the data has random numbers.
ROOT = 2**31 + 1


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
        Draws from every block, with replacement, in proportion to weights. None takes all rows.
    """

    seed: int
    fold: int
    counts: dict[int, int] | None


ALL_ROWS = Draw(0, 0, None)


def draw_rows(block: Block, block_index: int, draw: Draw) -> Block:
    """Return the rows drawn from a block."""
    if draw.counts is None:
        return block.numbered()
    rng = stream(draw.seed, Stage.DESCENT, block_index, draw.fold)
    return block.take(draw_with_replacement(block.weights, draw.counts.get(block_index, 0), rng))


@dataclass(frozen=True, eq=False)
class ObjectiveTerms:
    """Sums over rows, weights included.

    Attributes
    ----------
    losses : ndarray of shape (K,), float64
    gradient : ndarray of shape (r, K), float64
        Sums of ``u a`` over the cell of every core point.
    farthest : float
        Largest squared distance of a row from its core point.
    drawn : Block or None
    """

    losses: FloatArray
    gradient: FloatArray
    farthest: float
    drawn: Block | None

    def merged(self, other: ObjectiveTerms) -> ObjectiveTerms:
        """Return the sums over both sets of rows."""
        drawn = [part.drawn for part in (self, other) if part.drawn is not None]
        return ObjectiveTerms(
            self.losses + other.losses,
            self.gradient + other.gradient,
            max(self.farthest, other.farthest),
            concatenate(drawn) if drawn else None,
        )


@one_thread()
def evaluate_block(
    block: Block, block_index: int, query: tuple[KernelDecision, MarginLoss, Draw | None]
) -> ObjectiveTerms:
    """Evaluate a model at the rows of one block, in tiles, and draw rows."""
    model, loss, draw = query
    losses, gradient, farthest = np.zeros(model.beta.shape[1]), np.zeros_like(model.beta), 0.0
    signs = signs_of(labels_of(block), model.classes)
    for part, squares in model.core.squares(block.points):
        cells, gap = nearest(squares)
        farthest = max(farthest, gap)
        u = block.weights[part]
        margins = signs[part] * product(model.core.values(squares), model.beta)
        losses += np.einsum("i,ik->k", u, loss.value(margins))
        a = signs[part] * loss.slope(margins) * u[:, np.newaxis]
        for k in range(a.shape[1]):
            gradient[:, k] += np.bincount(cells, a[:, k], len(gradient))
    drawn = None if draw is None else draw_rows(block, block_index, draw)
    return ObjectiveTerms(losses, gradient, farthest, drawn)


@dataclass(eq=False)
class KernelProblem:
    r"""The objective over the combinations of core points, for every class.

    .. math:: f(w) = \frac12 |w|^2 + \frac{\lambda}{M} \sum_i u_i\, l(z_i)

    Attributes
    ----------
    blocks : RowBlocks
        Rows to train on, with labels.
    classes : ndarray of shape (n_classes,)
    n_rows : int
    block_weights : dict of int to float
        Weight of every block by its number.
    core : KernelMap
    loss : MarginLoss
    lam : float
        Lambda.
    reads : int
        Passes over the rows.
    trace : list of dict
        Entries passed to `record`, with "reads" and "seconds" so far.
    radius : float
        Largest distance of a row from its nearest core point, after the first evaluation.
    """

    blocks: RowBlocks
    classes: AnyArray
    n_rows: int
    block_weights: dict[int, float]
    core: KernelMap
    loss: MarginLoss
    lam: float
    reads: int = 0
    trace: list[dict[str, Any]] = field(default_factory=list)
    radius: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    @property
    def factor(self) -> float:
        """Factor of the sum of losses."""
        return self.lam / sum(self.block_weights.values())

    def evaluate(self, beta: FloatArray, draw: Draw | None = None) -> ObjectiveTerms:
        """Read all rows once."""
        query = KernelDecision(self.core, beta, self.classes), self.loss, draw
        found = map_reduce(self.blocks, evaluate_block, ObjectiveTerms.merged, broadcast=query)
        terms: ObjectiveTerms = found.value
        self.radius = float(np.sqrt(terms.farthest))
        self.reads += 1
        return terms

    def draw(self, draw: Draw) -> Block:
        """Draw rows in one pass. They are in the order of the blocks."""
        drawn: Block = map_reduce(self.blocks, draw_rows, _joined, broadcast=draw).value
        self.reads += 1
        return drawn

    def quotas(self, seed: int, fold: int, count: int | None) -> Draw:
        """Split draws over the blocks, in proportion to weights. None takes all rows."""
        if count is None:
            return ALL_ROWS
        indices = sorted(self.block_weights)
        masses = np.array([self.block_weights[index] for index in indices])
        counts = split_quota(count, masses, stream(seed, Stage.DESCENT, ROOT, fold))
        return Draw(seed, fold, dict(zip(indices, counts.tolist(), strict=True)))

    def objectives(self, gram: FloatArray, beta: FloatArray, losses: FloatArray) -> FloatArray:
        """Objective of every problem, from the sums of losses."""
        return 0.5 * squared_norms(gram, beta) + self.factor * losses

    def record(self, **facts: float) -> None:
        """Add an entry to the trace."""
        seconds = time.perf_counter() - self.started
        self.trace.append({**facts, "reads": self.reads, "seconds": seconds})


def _joined(first: Block, second: Block) -> Block:
    return concatenate([first, second])


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients of the core points, and how they were found.

    Attributes
    ----------
    beta : ndarray of shape (r, K), float64
    objectives : ndarray of shape (K,), float64
        Objectives of the K problems at `beta`.
    n_iter : int
    gaps : ndarray of shape (K,), float64, or None
        Upper bounds of the excess of the objectives over the minima.
    """

    beta: FloatArray
    objectives: FloatArray
    n_iter: int
    gaps: FloatArray | None = None
