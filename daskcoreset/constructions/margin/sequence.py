r"""Labels for sequences: emission and transition features, and Viterbi as the oracle.

:math:`\Phi(x, y)` holds, for every class, the sum of the rows labelled so, and for every pair of
classes how often the second follows the first. All sequences of a block are decoded side by
side: a step of the recursion is one array operation over the sequences that are long enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.constructions.margin.examples import BatchProblem, Rival
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

_ROUNDS = 50
"""Steps of Dinkelbach's iteration at most; it needs about five."""


@dataclass(frozen=True)
class SequenceProblem(BatchProblem):
    r"""A sequence of rows an example, a class for each its answer.

    Parameters
    ----------
    n_features, n_classes : int
    bias : float, default=1.0
        A column of this value beside the rows, so that a class may be likely by itself; 0 for
        none.
    hamming : bool, default=False
        Whether the margin of a wrong answer grows with the number of wrong labels in it, as in
        max-margin Markov networks: ahead by :math:`\rho` for each. False for ahead of every
        wrong answer by the same.

    Examples
    --------
    >>> problem = SequenceProblem(1, 2, bias=0.0)
    >>> problem.joint_features(np.array([[3.0], [4.0], [5.0]]), np.array([0, 1, 1]))
    array([3., 9., 0., 1., 0., 1.])

    References
    ----------
    Viterbi (1967); Taskar, Guestrin and Koller (2004), Max-margin Markov networks; Dinkelbach
    (1967), On nonlinear fractional programming.
    """

    n_features: int
    n_classes: int
    bias: float = 1.0
    hamming: bool = False

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise InvalidInputError(
                f"n_classes is {self.n_classes}, and there is no wrong answer; pass two or more."
            )

    @property
    def _width(self) -> int:
        return self.n_features + (self.bias != 0.0)

    @property
    def dimension(self) -> int:
        """Length of the joint features."""
        return self.n_classes * (self._width + self.n_classes)

    def joint_features(self, x: AnyArray, y: IndexArray) -> FloatArray:
        """Return sums of rows by class, and numbers of transitions."""
        K = self.n_classes
        emission = np.zeros((K, self._width))
        np.add.at(emission[:, : self.n_features], y, x)
        emission[:, self.n_features :] = self.bias * np.bincount(y, minlength=K)[:, None]
        transition = np.bincount(y[:-1] * K + y[1:], minlength=K * K).astype(np.float64)
        return np.concatenate([emission.ravel(), transition])

    def separation_oracle(self, w: FloatArray, x: AnyArray, y: IndexArray | None) -> Rival:
        """Return the best path other than y."""
        rival, margin, loss = self.rivals(w, x, y, np.array([0, len(x)]))
        return Rival(rival, float(margin[0]), float(loss[0]))

    def rivals(
        self, w: FloatArray, points: Points, labels: IndexArray | None, starts: IndexArray
    ) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Return the best path other than the labels, for every sequence."""
        emission, transition = self._scores(w, points)
        steps = _Steps.of(starts)
        if labels is None:
            paths = _best(emission, transition, steps, None)
            return paths, np.zeros(len(starts) - 1), np.ones(len(starts) - 1)
        own = _path_scores(emission, transition, labels, starts)
        paths = _best(emission, transition, steps, labels)
        gaps = own - _path_scores(emission, transition, paths, starts)
        losses = np.ones(len(starts) - 1)
        if not self.hamming:
            return paths, gaps, losses
        losses = np.add.reduceat((paths != labels).astype(np.float64), starts[:-1])
        of_row = np.repeat(np.arange(len(losses)), np.diff(starts))
        wrong = np.ones(emission.shape)
        wrong[np.arange(len(wrong)), labels] = 0.0
        for _ in range(_ROUNDS):
            # The least gap / loss is reached when no path has gap - ratio * loss below zero.
            ratio = gaps / losses
            rated = emission + wrong * ratio[of_row][:, None]
            others = _best(rated, transition, steps, labels)
            gap = own - _path_scores(emission, transition, others, starts)
            loss = np.add.reduceat((others != labels).astype(np.float64), starts[:-1])
            better = gap / loss < ratio
            if not better.any():
                break
            paths = np.where(better[of_row], others, paths)
            gaps, losses = np.where(better, gap, gaps), np.where(better, loss, losses)
        return paths, gaps / losses, losses

    def _scores(self, w: FloatArray, points: Points) -> tuple[FloatArray, FloatArray]:
        K = self.n_classes
        W, transition = w[: K * self._width].reshape(K, -1), w[K * self._width :].reshape(K, K)
        inner = W[:, : self.n_features]
        return inner_products(points, inner) + W[:, self.n_features :].sum(
            axis=1
        ) * self.bias, transition


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
    left, before = _recursion(emission, transition, steps.rows)
    right, after = _recursion(emission, transition.T, steps.rows, backward=True)
    through = left + right - emission
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
    for here in reversed(steps.rows[1:]):  # from the turning row to the left
        rows = here[here <= turning[of_row[here]]]
        path[rows - 1] = before[rows, path[rows]]
    for here in steps.rows[1:]:  # and to the right
        rows = here[here > turning[of_row[here]]]
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
        here, there = (rows - 1, rows) if backward else (rows, rows - 1)
        reach = total[there][:, :, None] + transition[None, :, :]
        pointer[here] = reach.argmax(axis=1)
        total[here] = emission[here] + reach.max(axis=1)
    return total, pointer
