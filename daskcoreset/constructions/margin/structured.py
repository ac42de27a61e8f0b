r"""Maximum margin for structured output: problems, their constraints, and several classes.

An example is a row, or a run of rows of one group. Its constraints are its wrong answers: the right
one must be ahead of each of them.

**Several classes** (Crammer and Singer): :math:`\Phi(x, k)` is x in block k of a vector of K
blocks, so that w holds one vector per class. The class of x is the one of largest
:math:`\langle w_k, x\rangle`. The margin of a row is the lead of its own class over the next.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import add
from typing import Any

import numpy as np

from daskcoreset.constructions.class_summary import ClassSummary
from daskcoreset.constructions.margin.core_set import (
    TOLERANCE,
    CoreSet,
    Found,
    Pass,
    complete,
    floors_of,
    grow_core_set,
    not_separable,
)
from daskcoreset.core.block import Block, class_codes, labels_of
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.linalg import dense, inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.execution.select import SelectedRows, row_keys, row_numbers
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.solvers.hard_margin import HardMargin, hard_margin

# Triples of all blocks that a read returns at most.
_MAX_TRIPLES = 1000

# Rows whose scores are formed at a time.
_TILE = 4096


# --- problems --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rival:
    """The wrong answer of least margin.

    Attributes
    ----------
    y : ndarray of shape (t,), int64
    margin : float
        Lead of the right answer, divided by `loss`.
    loss : float
        How wrong `y` is, or 1 if all wrong answers are equally wrong.
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
        found = [
            self.separation_oracle(
                w, dense(points[start:stop]), None if labels is None else labels[start:stop]
            )
            for start, stop in itertools.pairwise(starts.tolist())
        ]
        rivals = np.concatenate([rival.y for rival in found])
        margins = np.array([rival.margin for rival in found], dtype=np.float64)
        return rivals, margins, np.array([rival.loss for rival in found], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ClassProblem(StructuredProblem, ABC):
    """A problem whose answers are classes of rows: w begins with one vector for every class.

    Parameters
    ----------
    n_features, n_classes : int
    bias : float, default=0.0
        A column of this value beside the rows, for classes with a bias. With 0 there is none.
    """

    n_features: int
    n_classes: int
    bias: float = 0.0

    @property
    def width(self) -> int:
        """Length of the vector of a class."""
        return self.n_features + (self.bias != 0.0)

    def hyperplanes(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the vectors and biases of the classes."""
        W = w[: self.n_classes * self.width].reshape(self.n_classes, self.width)
        return W[:, : self.n_features], W[:, self.n_features :].sum(axis=1) * self.bias

    def separation_oracle(self, w: FloatArray, x: AnyArray, y: IndexArray | None) -> Rival:
        """Find the answer other than y with the smallest margin to it."""
        rival, margins, losses = self.rivals(w, x, y, np.array([0, len(x)]))
        return Rival(rival, float(margins[0]), float(losses[0]))


@dataclass(frozen=True, eq=False)
class MultiClassProblem(ClassProblem):
    """One row an example, one of K classes its answer.

    Parameters
    ----------
    n_features, n_classes : int
    bias : float, default=0.0
        A column of this value beside the rows, for classes with a bias. With 0 there is none.
    center : ndarray of shape (d,) or None, default=None
        Subtracted from every row. None for the origin. With a bias it costs nothing, and the
        certificate gets better.

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

    center: FloatArray | None = None

    @classmethod
    def of(cls, summary: ClassSummary, *, intercept: bool) -> MultiClassProblem:
        """Return the problem of rows, by what the first read found of them."""
        shape = len(summary.moments.mean), len(summary.classes)
        if not intercept:
            return cls(*shape)
        return cls(*shape, math.sqrt(summary.total_variance) or 1.0, summary.moments.mean)

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
        W, b = self.planes_of_rows(w)
        for start in range(0, n, _TILE):
            part = slice(start, min(n, start + _TILE))
            scores = inner_products(points[part], W) + b
            rows = np.arange(len(scores))
            if labels is not None:
                right = scores[rows, labels[part]]
                scores[rows, labels[part]] = -np.inf
            rivals[part] = scores.argmax(axis=1)
            if labels is not None:
                margins[part] = right - scores[rows, rivals[part]]
        return rivals, margins, np.ones(n)

    def planes_of_rows(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return vectors and biases that are applied to rows as they are."""
        inner, constant = self.hyperplanes(w)
        W = np.ascontiguousarray(inner)
        if self.center is not None:
            # Of rows far from the origin as exact as the rows, for products are of 64 bits.
            constant = constant - np.einsum("kj,j->k", W, self.center)
        return W, constant


# --- examples --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Query:
    """A separator, and how labels are numbered.

    Attributes
    ----------
    problem : StructuredProblem
    w : ndarray of shape (D,), float64
    classes : ndarray of shape (K,), sorted, or None
        Labels are numbered by their places in it. None takes whole numbers as they are.
    slacks : mapping of int to float
        Slack of the examples of the core set, by the keys of their first rows.
    """

    problem: StructuredProblem
    w: FloatArray
    classes: AnyArray | None
    slacks: Mapping[int, float] = field(default_factory=dict)


# A block, and the groups of its first and last row.
_Ends = tuple[int, Any, Any]


def _starts_of(block: Block) -> IndexArray:
    """Positions where an example begins, and the number of rows."""
    if block.groups is None:
        return np.arange(len(block) + 1)
    new = np.ones(len(block), dtype=bool)
    new[1:] = block.groups[1:] != block.groups[:-1]
    return np.append(np.flatnonzero(new), len(block))


def _codes_of(block: Block, classes: AnyArray | None) -> IndexArray | InvalidRow:
    """Return the labels of a block as numbers, or the first one that cannot be a number."""
    labels = labels_of(block)
    if classes is not None:
        return class_codes(block, classes)
    whole = labels.astype(np.float64) if labels.dtype.kind in "biuf" else np.full(len(block), 0.5)
    if (whole == np.floor(whole)).all():
        return labels.astype(np.int64)
    row = int((whole != np.floor(whole)).argmax())
    problem = f"y is {labels[row]!r}{{row}}, which is no class"
    return InvalidRow(problem, block.number_of(row), "y", "pass labels of the classes only")


def check_whole(blocks: RowBlocks) -> None:
    """Raise an error if a boundary of blocks lies between two rows of one group. One read."""
    read = map_reduce(blocks, _ends, add)
    _refuse_cuts(read, read.value)


def _ends(block: Block, block_index: int, _: object = None) -> list[_Ends]:
    if block.groups is None or not len(block):
        return []
    return [(block_index, block.groups[0], block.groups[-1])]


def _refuse_cuts(read: BlockResults[Any], ends: list[_Ends]) -> None:
    cuts = [after for before, after in itertools.pairwise(ends) if before[2] == after[1]]
    if cuts:
        block_index, group, _ = cuts[0]
        raise InvalidInputError(
            f"groups: {len(cuts)} block boundaries cut an example, the first one group {group} "
            f"at row {read.offsets()[block_index]}",
            argument="groups",
            remedy="rechunk X, y and groups so that each block holds whole examples",
        )


def predict_examples(
    block: Block, *_: object, problem: StructuredProblem, w: FloatArray, classes: AnyArray | None
) -> AnyArray:
    """Predict the best answer to every example of a block, row by row."""
    codes = np.empty(0, dtype=np.int64)
    if len(block):
        codes = problem.rivals(w, block.points, None, _starts_of(block))[0]
    return codes if classes is None else classes[codes]


def share_right(blocks: RowBlocks, predict: Callable[[Block], AnyArray]) -> float:
    """Return the share of the rows whose label is predicted. One read.

    Parameters
    ----------
    blocks : RowBlocks
    predict : callable
        ``predict(block)`` gives a label for every row. Picklable.

    Returns
    -------
    float
    """
    read = map_reduce(blocks, partial(_count_right, predict=predict), _added)
    right, n_rows, ends = read.value
    _refuse_cuts(read, ends)
    return float(right / n_rows)


def _count_right(
    block: Block, block_index: int, _: object, *, predict: Callable[[Block], AnyArray]
) -> tuple[Any, ...]:
    right = int((labels_of(block) == predict(block)).sum())
    return right, len(block), _ends(block, block_index)


def _added(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(add, first, second))


# --- constraints -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Triples(SelectedRows):
    """Examples, each with its right answer and a wrong one.

    Rows are the first ones of the examples. Values are margins, with slacks, at the separator for
    which they were found.

    Attributes
    ----------
    differences : ndarray of shape (m, D), float64
        Differences of the joint features, divided by the loss.
    answers, rivals : ndarray of shape (m,), object
        The right and the wrong answer of each, as ndarrays of int64.
    """

    differences: FloatArray
    answers: AnyArray
    rivals: AnyArray

    def pairs(self) -> list[tuple[int, bytes]]:
        """Return what tells triples apart: example and wrong answer."""
        wrong = [rival.tobytes() for rival in self.rivals]
        return list(zip(self.keys.tolist(), wrong, strict=True))


@dataclass(frozen=True, eq=False)
class _Worst:
    """Triples of least margin, the least of all, number of examples, largest label, and ends."""

    triples: Triples
    margin: float
    n_examples: int
    largest: int
    ends: list[_Ends]

    def merged(self, other: _Worst) -> _Worst:
        return _Worst(
            # In the order of the data, so that merging stays associative.
            self.triples.joined(other.triples).smallest(_MAX_TRIPLES),
            min(self.margin, other.margin),
            self.n_examples + other.n_examples,
            max(self.largest, other.largest),
            self.ends + other.ends,
        )


def _worst_of_block(
    block: Block, block_index: int, query: _Query, *, count: int
) -> _Worst | InvalidRow:
    """Return `count` triples of least margin, of different labels where there are such."""
    if not block.weights.all():
        block = block.take(np.flatnonzero(block.weights))
    codes = _codes_of(block, query.classes)
    if isinstance(codes, InvalidRow):
        return codes
    problem, starts = query.problem, _starts_of(block)
    first, chosen, margins = starts[:-1], np.empty(0, dtype=np.int64), np.empty(0)
    gaps, answers, wrong = [], [], []
    if len(block):
        rivals, margins, losses = problem.rivals(query.w, block.points, codes, starts)
        if query.slacks:
            keys = row_keys(block, block_index)[first]
            margins = margins + np.array([query.slacks.get(key, 0.0) for key in keys.tolist()])
        chosen = _diverse(np.stack([codes[first], rivals[first]], axis=1), margins, count)
        for i in chosen.tolist():
            rows = slice(starts[i], starts[i + 1])
            x, y, rival = dense(block.points[rows]), codes[rows].copy(), rivals[rows].copy()
            gap = problem.joint_features(x, y) - problem.joint_features(x, rival)
            gaps.append(gap / losses[i])
            answers.append(y)
            wrong.append(rival)
    triples = Triples.of(
        block,
        block_index,
        first[chosen],
        margins[chosen],
        differences=np.array(gaps).reshape(len(gaps), problem.dimension),
        answers=np.fromiter(answers, dtype=object),
        rivals=np.fromiter(wrong, dtype=object),
    )
    least, largest = float(margins.min(initial=math.inf)), int(codes.max(initial=0))
    return _Worst(triples, least, len(first), largest, _ends(block, block_index))


def _diverse(labels: IndexArray, margins: FloatArray, count: int) -> IndexArray:
    """Choose the worst example, the worst with other labels, and so on. Then the next worst."""
    reach = min(len(margins), 50 * count)
    order = np.argpartition(margins, reach - 1)[:reach] if reach < len(margins) else None
    order = np.arange(len(margins)) if order is None else np.sort(order)
    order = order[np.argsort(margins[order], kind="stable")]
    _, new = np.unique(labels[order], axis=0, return_index=True)
    new = np.sort(new)[:count]
    repeated = np.setdiff1d(np.arange(len(order)), new)[: count - len(new)]
    chosen: IndexArray = order[np.sort(np.concatenate([new, repeated]))]
    return chosen


def _read_worst(blocks: RowBlocks, query: _Query, count: int) -> BlockResults[_Worst]:
    """Read once for the worst triples of every block."""
    work = partial(_worst_of_block, count=count)
    read = map_reduce(blocks, work, _Worst.merged, broadcast=query)
    _refuse_cuts(read, read.value.ends)
    return read


# --- the margin ------------------------------------------------------------------------------


def structured_margin(
    blocks: RowBlocks,
    problem: StructuredProblem,
    epsilon: float = 0.1,
    *,
    classes: AnyArray | None = None,
    C: float = math.inf,
    per_block: int = 10,
    max_passes: int | None = None,
    reads: int = 0,
) -> CoreSet[Triples]:
    """Find a separator whose margin is within ``1 - epsilon`` of the largest one.

    Parameters
    ----------
    blocks : RowBlocks
        Rows with labels. With groups, neighbouring rows of one group are an example.
    problem : StructuredProblem
    epsilon : float, default=0.1
    classes : ndarray of shape (K,), sorted, or None, default=None
        Labels are numbered by their places in it. None takes whole numbers as they are.
    C : float, default=inf
        Infinite for data that can be separated. Otherwise every core example has a slack, which
        all its wrong answers share, by the squared hinge loss with this C.
    per_block : int, default=10
        Triples that a block may add in a read, of different labels where there are such. With
        one a read, fewer triples are needed, and many more reads.
    max_passes : int or None, default=None
        Passes at most. None for no limit but the bound of Lemma 3.1.
    reads : int, default=0
        Reads before.

    Returns
    -------
    CoreSet
        With errors allowed, margins count slacks, and `w` is shorter than one: the slacks of core
        examples are coordinates of the same vector.

    Raises
    ------
    NotSeparableError
        If no separator has a margin, and C is infinite: with the convex combination that shows
        it.
    InvalidInputError
        If a label cannot be used, or a boundary of blocks cuts an example.

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1 and the section on structured output. Crammer and
    Singer (2001) for its multi-class form.
    """
    D = problem.dimension

    def read(core: Triples, hard: HardMargin) -> Found[Triples]:
        slacks: dict[int, float] = {}
        if math.isfinite(C):
            of_examples = (hard.w[D:] / math.sqrt(C)).tolist()
            slacks = dict(zip(np.unique(core.keys).tolist(), of_examples, strict=True))
        query = _Query(problem, hard.w[:D], classes, slacks)
        worst = _read_worst(blocks, query, per_block).value
        known = set(core.pairs())
        new = np.array([pair not in known for pair in worst.triples.pairs()], dtype=bool)
        new &= worst.triples.values < floors_of(hard, epsilon)[0]
        separator = replace(hard, w=hard.w[:D])
        return Found(separator, worst.margin, worst.triples.take(np.flatnonzero(new)))

    # Without a separator every example is a violator.
    first = _read_worst(blocks, _Query(problem, np.zeros(D), classes), per_block)
    loop = grow_core_set(
        first.value.triples,
        partial(_separate, C=C),
        epsilon=epsilon,
        max_passes=max_passes,
        reads=reads + 1,
        trace=(Pass(reads + 1, 0, math.inf, 0.0, 0.0),),
    )
    found = complete(loop, read)
    numbers = row_numbers(found.core.keys, first.offsets())
    if not found.bound.separable:
        answers = zip(numbers, found.core.answers, found.core.rivals, strict=True)
        raise not_separable(
            "y cannot be separated from other answers",
            found.bound.dual,
            numbers,
            [f"{i} ({_short(right)} against {_short(wrong)})" for i, right, wrong in answers],
            argument="y",
            remedy="correct the labels, add features, or allow errors with a finite C",
        )
    of_all = first.value
    return replace(found, indices=numbers, n_rows=of_all.n_examples, largest_label=of_all.largest)


def _separate(core: Triples, *, C: float) -> HardMargin:
    """Find the separator of largest margin on some triples."""
    rows = core.differences
    if math.isfinite(C):
        # One more column for every example, in which its triples can be separated.
        added = np.equal.outer(core.keys, np.unique(core.keys)) / math.sqrt(C)
        rows = np.concatenate([rows, added], axis=1)
    return hard_margin(rows, tol=TOLERANCE)


def _short(y: IndexArray) -> str:
    return " ".join(map(str, y[:8].tolist())) + (" ..." if len(y) > 8 else "")
