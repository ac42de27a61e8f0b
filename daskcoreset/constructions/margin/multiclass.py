r"""Maximum margin between several classes: the joint features of Crammer and Singer.

:math:`\Phi(x, k)` is x in block k of a vector of K blocks, so that w holds one vector a class,
the class of x is the one of largest :math:`\langle w_k, x\rangle`, and the margin of a row is
what its own class is ahead of the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.constructions.margin.examples import BatchProblem, Rival
from daskcoreset.core.blocks import MAX_LABELS, InvalidRow, labels_of
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.execution.engine import map_reduce

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks

_TILE = 4096
"""Rows whose scores are formed at a time."""


@dataclass(frozen=True, eq=False)
class MultiClassProblem(BatchProblem):
    """One row an example, one of K classes its answer.

    Parameters
    ----------
    n_features, n_classes : int
    center : ndarray of shape (d,) or None, default=None
        Subtracted from every row; None for the origin. With a bias it costs nothing, and the
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
        return np.asarray(scores + constant)


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


def _survey_block(
    block: Block, _index: int, _: object, *, moments: bool, grouped: bool
) -> ClassSurvey | InvalidRow:
    if not grouped and not block.weights.all():
        block = block.take(np.flatnonzero(block.weights))
    labels = labels_of(block)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        row = int(np.isnan(labels).argmax())
        row = row if block.rows is None else int(block.rows[row])
        return InvalidRow("y is NaN{row}; label such rows, or leave them out.", row)
    classes = np.unique(labels)
    if len(classes) > MAX_LABELS:
        return InvalidRow(
            f"y has more than {MAX_LABELS} values; pass class labels, not measurements."
        )
    weights = np.ones(len(block)) if grouped else block.weights
    points = block.points if moments else np.empty((len(block), 0))
    return ClassSurvey(classes, moments_of(points, weights))


def _merge(first: ClassSurvey, second: ClassSurvey) -> ClassSurvey:
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
    work = partial(_survey_block, moments=moments, grouped=grouped)
    known: ClassSurvey = map_reduce(blocks, work, _merge).value
    if len(known.classes) < 2:
        raise InvalidInputError(
            f"y has one class, {known.classes[0]!r}, and a margin needs two; pass rows of another."
        )
    return known


def plain_weights(problem: MultiClassProblem, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return vectors and biases that are applied to rows as they are."""
    blocks = w.reshape(problem.n_classes, -1)
    W = np.ascontiguousarray(blocks[:, : problem.n_features])
    b = blocks[:, problem.n_features :].sum(axis=1) * problem.bias
    if problem.center is not None:
        b = b - np.einsum("kj,j->k", W, problem.center)
    return W, b
