r"""Problems of structured output: several classes, sequences, and the protocol of any other.

**Several classes** (Crammer and Singer): :math:`\Phi(x, k)` is x in block k of a vector of K
blocks, so that w holds one vector a class, the class of x is the one of largest
:math:`\langle w_k, x\rangle`, and the margin of a row is what its own class is ahead of the next.

**Sequences**: :math:`\Phi(x, y)` holds, for every class, the sum of the rows labelled so, and for
every pair of classes how often the second follows the first. All sequences of a block are decoded
side by side: a step of Viterbi's recursion is one array operation over the sequences that are long
enough.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from daskcoreset.constructions.class_summary import ClassSummary
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.errors import InvalidInputError

# Rows whose scores are formed at a time.
_TILE = 4096


@dataclass(frozen=True, eq=False)
class Rival:
    """The wrong answer of the highest score.

    Attributes
    ----------
    y : ndarray of shape (t,), int64
    margin : float
        Lead of the right answer, divided by `loss`.
    loss : float
        How wrong `y` is; 1 where all wrong answers are equally wrong.
    """

    y: IndexArray
    margin: float
    loss: float = 1.0


class StructuredProblem(ABC):
    """Two functions that make a problem. Examples are runs of rows, answers labels of them.

    See :doc:`/guides/kernels`.

    Picklable, and without a state that changes.
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length D of the joint features."""

    @abstractmethod
    def joint_features(self, x: AnyArray, y: IndexArray) -> FloatArray:
        r"""Return :math:`\Phi(x, y)`.

        Parameters
        ----------
        x : ndarray of shape (t, d), float64
            The rows of an example.
        y : ndarray of shape (t,), int64
            A label for each.

        Returns
        -------
        ndarray of shape (D,), float64
        """

    @abstractmethod
    def separation_oracle(self, w: FloatArray, x: AnyArray, y: IndexArray | None) -> Rival:
        r"""Find the answer other than y with the smallest margin to it.

        Parameters
        ----------
        w : ndarray of shape (D,), float64
        x : ndarray of shape (t, d), float64
        y : ndarray of shape (t,), int64, or None
            None to find the best of all answers, whose margin is then 0.

        Returns
        -------
        Rival
            Exactly the one of least
            :math:`\langle w, \Phi(x, y) - \Phi(x, y')\rangle / \text{loss}(y, y')`.
        """


class BatchProblem(StructuredProblem, ABC):
    """A problem that also answers for many examples at a time."""

    @abstractmethod
    def rivals(
        self, w: FloatArray, points: Points, labels: IndexArray | None, starts: IndexArray
    ) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Do what `separation_oracle` does, for each of many examples.

        Parameters
        ----------
        w : ndarray of shape (D,), float64
        points : ndarray of shape (n, d) or csr_array
            Rows of all examples.
        labels : ndarray of shape (n,), int64, or None
        starts : ndarray of shape (q + 1,), int64
            Start of each example, and n.

        Returns
        -------
        rivals : ndarray of shape (n,), int64
            One answer after another.
        margins, losses : ndarray of shape (q,), float64
        """

    def separation_oracle(self, w: FloatArray, x: AnyArray, y: IndexArray | None) -> Rival:
        """Find the answer other than y with the smallest margin to it."""
        rival, margins, losses = self.rivals(w, x, y, np.array([0, len(x)]))
        return Rival(rival, float(margins[0]), float(losses[0]))


class ClassProblem(BatchProblem, ABC):
    """A problem whose answers are classes of rows: w begins with one vector for every class.

    Parameters
    ----------
    n_features, n_classes : int
    bias : float
        A column of this value beside the rows, for classes with a bias; 0 for none.
    """

    n_features: int
    n_classes: int
    bias: float

    @property
    def width(self) -> int:
        """Length of the vector of a class."""
        return self.n_features + (self.bias != 0.0)

    def hyperplanes(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the vectors and biases of the classes."""
        W = w[: self.n_classes * self.width].reshape(self.n_classes, self.width)
        return W[:, : self.n_features], W[:, self.n_features :].sum(axis=1) * self.bias


@dataclass(frozen=True, eq=False)
class MultiClassProblem(ClassProblem):
    """One row an example, one of K classes its answer.

    Parameters
    ----------
    n_features, n_classes : int
    center : ndarray of shape (d,) or None, default=None
        Subtracted from every row. None for the origin. With a bias it costs nothing, and the
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
        return self.n_classes * self.width

    def joint_features(self, x: AnyArray, y: IndexArray) -> FloatArray:
        """Return the row in the block of its class."""
        joint = np.zeros((self.n_classes, self.width))
        joint[y[0], : self.n_features] = x[0] if self.center is None else x[0] - self.center
        joint[y[0], self.n_features :] = self.bias
        return joint.ravel()

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
                right = scores[rows, labels[part]]
                scores[rows, labels[part]] = -np.inf
            rivals[part] = scores.argmax(axis=1)
            if labels is not None:
                margins[part] = right - scores[rows, rivals[part]]
        return rivals, margins, np.ones(n)

    def scores(self, w: FloatArray, points: Points) -> FloatArray:
        """Return the score of every class, for every row, shape (n, K)."""
        inner, constant = self.hyperplanes(w)
        scores = inner_products(points, inner)
        if self.center is not None:
            # Of rows far from the origin as exact as the rows, for products are of 64 bits.
            scores -= np.einsum("kj,j->k", inner, self.center)
        return np.asarray(scores + constant)

    def planes_of_rows(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return vectors and biases that are applied to rows as they are."""
        inner, constant = self.hyperplanes(w)
        W = np.ascontiguousarray(inner)
        if self.center is not None:
            constant = constant - np.einsum("kj,j->k", W, self.center)
        return W, constant


def centering(summary: ClassSummary) -> tuple[FloatArray, float]:
    """Return center and bias of a `MultiClassProblem` whose classes have a bias."""
    return summary.moments.mean, math.sqrt(summary.total_variance) or 1.0


@dataclass(frozen=True)
class SequenceProblem(ClassProblem):
    r"""A sequence of rows an example, a class for each its answer.

    Parameters
    ----------
    n_features, n_classes : int
    bias : float, default=1.0
        A column of this value beside the rows, so that a class may be likely by itself; 0 for
        none.

    Examples
    --------
    >>> problem = SequenceProblem(1, 2, bias=0.0)
    >>> problem.joint_features(np.array([[3.0], [4.0], [5.0]]), np.array([0, 1, 1]))
    array([3., 9., 0., 1., 0., 1.])

    References
    ----------
    Viterbi (1967). Taskar, Guestrin and Koller (2004), Max-margin Markov networks.
    """

    n_features: int
    n_classes: int
    bias: float = 1.0

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise InvalidInputError(
                f"n_classes is {self.n_classes}, so every answer would be right",
                argument="n_classes",
                remedy="pass at least two",
            )

    @property
    def dimension(self) -> int:
        """Length of the joint features."""
        return self.n_classes * (self.width + self.n_classes)

    def joint_features(self, x: AnyArray, y: IndexArray) -> FloatArray:
        """Return sums of rows by class, and numbers of transitions."""
        K = self.n_classes
        emission = np.zeros((K, self.width))
        np.add.at(emission[:, : self.n_features], y, x)
        emission[:, self.n_features :] = self.bias * np.bincount(y, minlength=K)[:, None]
        transition = np.bincount(y[:-1] * K + y[1:], minlength=K * K).astype(np.float64)
        return np.concatenate([emission.ravel(), transition])

    def rivals(
        self, w: FloatArray, points: Points, labels: IndexArray | None, starts: IndexArray
    ) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Return the best path other than the labels, for every sequence."""
        inner, constant = self.hyperplanes(w)
        emission = inner_products(points, inner) + constant
        transition = w[-(self.n_classes**2) :].reshape(self.n_classes, self.n_classes)
        steps = _Steps.of(starts)
        if labels is None:
            paths = _best(emission, transition, steps, None)
            return paths, np.zeros(len(starts) - 1), np.ones(len(starts) - 1)
        right = _path_scores(emission, transition, labels, starts)
        paths = _best(emission, transition, steps, labels)
        gaps = right - _path_scores(emission, transition, paths, starts)
        return paths, gaps, np.ones(len(starts) - 1)


@dataclass(frozen=True, eq=False)
class _Steps:
    """Rows of the t-th place of every sequence that is so long, the longest sequences first."""

    rows: list[IndexArray]
    starts: IndexArray

    @classmethod
    def of(cls, starts: IndexArray) -> _Steps:
        lengths = np.diff(starts)
        order = np.argsort(-lengths, kind="stable")
        first, lengths = starts[:-1][order], lengths[order]
        counts = np.searchsorted(-lengths, -np.arange(lengths.max(initial=0)), side="left")
        return cls([first[:count] + t for t, count in enumerate(counts)], starts)


def _path_scores(
    emission: FloatArray, transition: FloatArray, path: IndexArray, starts: IndexArray
) -> FloatArray:
    scores = emission[np.arange(len(path)), path]
    steps = np.zeros(len(path))
    steps[1:] = transition[path[:-1], path[1:]]
    steps[starts[:-1]] = 0.0
    total: FloatArray = np.add.reduceat(scores + steps, starts[:-1])
    return total


def _best(
    emission: FloatArray, transition: FloatArray, steps: _Steps, labels: IndexArray | None
) -> IndexArray:
    """Best path of every sequence, other than its labels where these are given.

    The best path through each place and class is the sum of a recursion from the left and one
    from the right. Any path other than y has some place with another class, so that the best
    of these over the places and classes not in y is the best path that differs.
    """
    forward, before = _recursion(emission, transition, steps.rows)
    backward, after = _recursion(emission, transition.T, steps.rows, backward=True)
    through = forward + backward - emission
    if labels is not None:
        through[np.arange(len(labels)), labels] = -np.inf
    pick = through.argmax(axis=1)
    height = through[np.arange(len(pick)), pick]
    starts = steps.starts
    top = np.maximum.reduceat(height, starts[:-1])
    of_row = np.repeat(np.arange(len(top)), np.diff(starts))
    hits = np.flatnonzero(height == top[of_row])
    _, first = np.unique(of_row[hits], return_index=True)
    turning = hits[first]  # a row of every sequence
    path = np.full(len(emission), -1, dtype=np.int64)
    path[turning] = pick[turning]
    for step_rows in reversed(steps.rows[1:]):  # from the turning row to the left
        rows = step_rows[step_rows <= turning[of_row[step_rows]]]
        path[rows - 1] = before[rows, path[rows]]
    for step_rows in steps.rows[1:]:  # and to the right
        rows = step_rows[step_rows > turning[of_row[step_rows]]]
        path[rows] = after[rows - 1, path[rows - 1]]
    return path


def _recursion(
    emission: FloatArray,
    transition: FloatArray,
    rows_of_step: list[IndexArray],
    *,
    backward: bool = False,
) -> tuple[FloatArray, IndexArray]:
    """Best score of a path up to every place and class, and the class before it."""
    total = emission.copy()
    pointer = np.zeros(emission.shape, dtype=np.int64)
    for t in range(len(rows_of_step) - 1, 0, -1) if backward else range(1, len(rows_of_step)):
        rows = rows_of_step[t]
        targets, sources = (rows - 1, rows) if backward else (rows, rows - 1)
        reach = total[sources][:, :, None] + transition[None, :, :]
        pointer[targets] = reach.argmax(axis=1)
        total[targets] = emission[targets] + reach.max(axis=1)
    return total, pointer
