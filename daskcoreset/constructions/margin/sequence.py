r"""Sequences: a class for every row of a run of rows.

:math:`\Phi(x, y)` holds, for every class, the sum of the rows labelled so, and for every pair of
classes how often the second follows the first. All sequences of a block are decoded side by side. A
step of Viterbi's recursion is one array operation over the sequences that are long enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.constructions.margin.structured import ClassProblem
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points


@dataclass(frozen=True, eq=False)
class SequenceProblem(ClassProblem):
    r"""A sequence of rows an example, a class for each its answer.

    Parameters
    ----------
    n_features, n_classes : int
    bias : float, default=1.0
        A column of this value beside the rows, so that a class may be likely by itself. With 0
        there is none.

    Examples
    --------
    >>> problem = SequenceProblem(1, 2, bias=0.0)
    >>> problem.joint_features(np.array([[3.0], [4.0], [5.0]]), np.array([0, 1, 1]))
    array([3., 9., 0., 1., 0., 1.])

    References
    ----------
    Viterbi (1967). Taskar, Guestrin and Koller (2004), Max-margin Markov networks.
    """

    bias: float = 1.0

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
        paths = _best_paths(emission, transition, starts, labels)
        margins, losses = np.zeros(len(starts) - 1), np.ones(len(starts) - 1)
        if labels is not None:
            margins = _path_scores(emission, transition, labels, starts)
            margins -= _path_scores(emission, transition, paths, starts)
        return paths, margins, losses


def _path_scores(
    emission: FloatArray, transition: FloatArray, path: IndexArray, starts: IndexArray
) -> FloatArray:
    scores = emission[np.arange(len(path)), path]
    steps = np.zeros(len(path))
    steps[1:] = transition[path[:-1], path[1:]]
    steps[starts[:-1]] = 0.0
    total: FloatArray = np.add.reduceat(scores + steps, starts[:-1])
    return total


def _rows_of_steps(starts: IndexArray) -> list[IndexArray]:
    """Rows of the t-th place of every sequence that is so long, the longest sequences first."""
    lengths = np.diff(starts)
    order = np.argsort(-lengths, kind="stable")
    first, lengths = starts[:-1][order], lengths[order]
    counts = np.searchsorted(-lengths, -np.arange(lengths.max(initial=0)), side="left")
    return [first[:count] + t for t, count in enumerate(counts)]


def _best_paths(
    emission: FloatArray, transition: FloatArray, starts: IndexArray, labels: IndexArray | None
) -> IndexArray:
    """Best path of every sequence, other than its labels where these are given.

    The best path through each place and class is the sum of a recursion from the left and one
    from the right. Any path other than y has some place with another class. So the best of these
    over the places and classes not in y is the best path that differs.
    """
    steps = _rows_of_steps(starts)
    forward, before = _recursion(emission, transition, steps)
    backward, after = _recursion(emission, transition.T, steps, backward=True)
    through = forward + backward - emission
    if labels is not None:
        through[np.arange(len(labels)), labels] = -np.inf
    pick = through.argmax(axis=1)
    height = through[np.arange(len(pick)), pick]
    top = np.maximum.reduceat(height, starts[:-1])
    of_row = np.repeat(np.arange(len(top)), np.diff(starts))
    hits = np.flatnonzero(height == top[of_row])
    _, first = np.unique(of_row[hits], return_index=True)
    turning = hits[first]  # a row of every sequence
    path = np.full(len(emission), -1, dtype=np.int64)
    path[turning] = pick[turning]
    for step_rows in reversed(steps[1:]):  # from the turning row to the left
        rows = step_rows[step_rows <= turning[of_row[step_rows]]]
        path[rows - 1] = before[rows, path[rows]]
    for step_rows in steps[1:]:  # and to the right
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
