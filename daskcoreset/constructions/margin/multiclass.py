r"""Maximum margin between several classes: the joint features of Crammer and Singer.

:math:`\Phi(x, k)` is x in block k of a vector of K blocks, so that w holds one vector a class,
the class of x is the one of largest :math:`\langle w_k, x\rangle`, and the margin of a row is
what its own class is ahead of the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.constructions.margin.examples import BatchProblem, Rival
from daskcoreset.constructions.margin.structured import (
    StructuredMargin,
    StructuredStep,
    structured_margin,
)
from daskcoreset.core.blocks import MAX_LABELS, InvalidRow, labels_of
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.execution.fold import map_reduce

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["ClassSurvey", "MultiClassMargin", "MultiClassProblem", "multiclass_margin", "survey"]

_TILE = 4096
"""Rows whose scores are formed at a time."""


@dataclass(frozen=True, eq=False)
class MultiClassProblem(BatchProblem):
    """One row an example, one of K classes its answer.

    Parameters
    ----------
    n_features, n_classes : int
    center : ndarray of shape (d,) or None, default=None
        Taken off every row first; None for the origin. With a bias it costs nothing, and the
        certificate gets better.
    bias : float, default=0.0
        A column of this value beside the rows, for classes with a bias; 0 for none.

    Examples
    --------
    >>> problem = MultiClassProblem(2, 3)
    >>> problem.joint_features(np.array([[5.0, 7.0]]), np.array([1]))
    array([0., 0., 5., 7., 0., 0.])
    >>> w = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    >>> problem.separation_oracle(w, np.array([[5.0, 7.0]]), np.array([1]))
    Rival(y=array([0]), margin=2.0, loss=1.0)

    References
    ----------
    Crammer and Singer (2001), On the algorithmic implementation of multiclass kernel-based
    vector machines.
    """

    n_features: int
    n_classes: int
    center: FloatArray | None = field(default=None)
    bias: float = 0.0

    @property
    def dimension(self) -> int:
        """Length of the joint features: K times the columns."""
        return self.n_classes * self._width

    @property
    def _width(self) -> int:
        return self.n_features + (self.bias != 0.0)

    def joint_features(self, x: AnyArray, y: IndexArray) -> FloatArray:
        """Return the row in the block of its class."""
        joint = np.zeros((self.n_classes, self._width))
        joint[y[0], : self.n_features] = x[0] if self.center is None else x[0] - self.center
        joint[y[0], self.n_features :] = self.bias
        return joint.ravel()

    def separation_oracle(self, w: FloatArray, x: AnyArray, y: IndexArray | None) -> Rival:
        """Return the best other class."""
        rival, margin, _ = self.rivals(w, x, y, np.array([0, 1]))
        return Rival(rival, float(margin[0]))

    def rivals(
        self, w: FloatArray, points: Points, labels: IndexArray | None, starts: IndexArray
    ) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Return the best other class of every row, the first of equal ones."""
        n = len(starts) - 1
        rivals, margins = np.empty(n, dtype=np.int64), np.zeros(n)
        for start in range(0, n, _TILE):
            part = slice(start, min(n, start + _TILE))
            scores = self.scores(w, points[part])
            rows = np.arange(len(scores))
            if labels is not None:
                own = scores[rows, labels[part]]
                scores[rows, labels[part]] = -np.inf
            rivals[part] = scores.argmax(axis=1)
            if labels is not None:
                margins[part] = own - scores[rows, rivals[part]]
        return rivals, margins, np.ones(n)

    def scores(self, w: FloatArray, points: Points) -> FloatArray:
        """Return the score of every class, for every row, shape (n, K)."""
        W = w.reshape(self.n_classes, self._width)
        inner, constant = W[:, : self.n_features], W[:, self.n_features :].sum(axis=1) * self.bias
        scores = inner_products(points, inner)
        if self.center is not None:
            # Of rows far from the origin as exact as the rows, for products are of 64 bits.
            scores -= np.einsum("kj,j->k", inner, self.center)
        total: FloatArray = scores + constant
        return total


@dataclass(frozen=True, eq=False)
class ClassSurvey:
    """Classes and moments of the data, from one read.

    Attributes
    ----------
    classes : ndarray of shape (K,), sorted
    moments : Moments
        By weight, so that a row twice is a row of weight two; with groups every row once.
    """

    classes: AnyArray
    moments: Moments

    @property
    def spread(self) -> float:
        """Root of the mean squared distance from the mean; 1 if all rows are one point."""
        return math.sqrt(float(self.moments.m2.sum()) / (self.moments.weight or 1.0)) or 1.0


@dataclass(frozen=True)
class _Survey:
    moments: bool
    grouped: bool

    def __call__(self, block: Block, number: int, given: object) -> ClassSurvey | InvalidRow:
        del number, given
        if not self.grouped and not block.weights.all():
            block = block.take(np.flatnonzero(block.weights))
        labels = labels_of(block)
        if labels.dtype.kind == "f" and np.isnan(labels).any():
            at = int(np.isnan(labels).argmax())
            at = at if block.rows is None else int(block.rows[at])
            return InvalidRow("y is NaN{row}; label such rows, or leave them out.", at)
        classes = np.unique(labels)
        if len(classes) > MAX_LABELS:
            return InvalidRow(
                f"y has more than {MAX_LABELS} values; pass class labels, not measurements."
            )
        weights = np.ones(len(block)) if self.grouped else block.weights
        points = block.points if self.moments else np.empty((len(block), 0))
        return ClassSurvey(classes, moments_of(points, weights))


def _unite(first: ClassSurvey, second: ClassSurvey) -> ClassSurvey:
    parts = [part.classes for part in (first, second) if len(part.classes)]
    classes = np.unique(np.concatenate(parts)) if parts else first.classes
    return ClassSurvey(classes, merge_moments(first.moments, second.moments))


def survey(blocks: RowBlocks, *, moments: bool = True, grouped: bool = False) -> ClassSurvey:
    """Read the classes, and the mean and spread, of data with labels.

    Parameters
    ----------
    blocks : RowBlocks
    moments : bool, default=True
        False leaves out mean and spread.
    grouped : bool, default=False
        As in `structured_margin`. Without groups, rows of weight
        zero are left out.

    Returns
    -------
    ClassSurvey

    Raises
    ------
    InvalidInputError
        Without labels, with NaN among them, with one class or too many.
    """
    if not blocks.has_labels:
        raise InvalidInputError("y is missing; pass the label of every row.")
    found: ClassSurvey = map_reduce(blocks, _Survey(moments, grouped), _unite).value
    if len(found.classes) < 2:
        raise InvalidInputError(
            f"y has one class, {found.classes[0]!r}, and a margin needs two; pass rows of another."
        )
    return found


@dataclass(frozen=True, eq=False)
class MultiClassMargin:
    """One vector a class, with a certificate.

    Attributes
    ----------
    W : ndarray of shape (K, d), float64
    b : ndarray of shape (K,), float64
        The class of x is the one of largest ``W @ x + b``.
    classes : ndarray of shape (K,), sorted
    margin, data_margin : float
        What every row's own class is ahead by, on the core set and on all data, in units of the
        length of `found.w`, biases included.
    problem : MultiClassProblem
    found : StructuredMargin
        Core triples, certificate and trace.
    """

    W: FloatArray
    b: FloatArray
    classes: AnyArray
    margin: float
    data_margin: float
    problem: MultiClassProblem
    found: StructuredMargin


def multiclass_margin(
    blocks: RowBlocks,
    epsilon: float = 0.1,
    *,
    intercept: bool = True,
    C: float = math.inf,
    per_block: int = 10,
    max_passes: int | None = None,
    report: Callable[[StructuredStep], None] | None = None,
) -> MultiClassMargin:
    r"""Separate classes with the largest margin, up to ``1 - epsilon``.

    Parameters
    ----------
    blocks : RowBlocks
        Rows with labels of any kind.
    epsilon : float, default=0.1
    intercept : bool, default=True
        Whether classes have a bias: rows are moved to their mean and get one more column, of
        the root of their mean squared distance from it, which is part of the margin.
    C, per_block, max_passes, report
        As in `structured_margin`.

    Returns
    -------
    MultiClassMargin

    Raises
    ------
    InseparableError, InvalidInputError
        As in `structured_margin`; with one class, or NaN among the labels.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.1, 0.2]])
    >>> found = multiclass_margin(row_blocks(X, ["a", "b", "c", "b"]))
    >>> found.classes[(X @ found.W.T + found.b).argmax(axis=1)]
    array(['a', 'b', 'c', 'b'], dtype='<U1')
    >>> found.data_margin >= 0.9 * found.margin
    True
    """
    known = survey(blocks, moments=intercept)
    d, K = blocks.rules.n_features, len(known.classes)
    center, bias = (known.moments.mean, known.spread) if intercept else (None, 0.0)
    problem = MultiClassProblem(d, K, center, bias)
    found = structured_margin(
        blocks,
        problem,
        epsilon,
        classes=known.classes,
        C=C,
        per_block=per_block,
        max_passes=max_passes,
        report=report,
    )
    W, b = plain_weights(problem, found.w)
    return MultiClassMargin(W, b, known.classes, found.margin, found.data_margin, problem, found)


def plain_weights(problem: MultiClassProblem, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return vectors and biases that are applied to rows as they are."""
    blocks = w.reshape(problem.n_classes, -1)
    W = np.ascontiguousarray(blocks[:, : problem.n_features])
    b = blocks[:, problem.n_features :].sum(axis=1) * problem.bias
    if problem.center is not None:
        b = b - np.einsum("kj,j->k", W, problem.center)
    return W, b
