"""Maximum margin for structured output: examples, triples of right and wrong answer, their loop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import add
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.core_set import evidence_of, first_few
from daskcoreset.constructions.margin.problems import BatchProblem, StructuredProblem
from daskcoreset.constructions.margin.rows import mark, row_numbers, rows_of_block
from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.labels import plain_labels
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.errors import InvalidInputError, InvalidTypeError, NotSeparableError
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.solvers.hard_margin import HardMargin, hard_margin

# Triples of all blocks that a read returns at most.
_MAX_TRIPLES = 1000

# A block, and the groups of its first and last row.
Ends = tuple[int, float, float]


@dataclass(frozen=True, eq=False)
class Examples:
    """Some examples, one after another.

    Attributes
    ----------
    points : ndarray of shape (n, d) or csr_array
        All their rows.
    labels : ndarray of shape (n,), int64
    starts : ndarray of shape (q + 1,), int64
        Start of each example. The last entry is n.
    first_rows : ndarray of shape (q,), int64
        The first row of each, with the `mark` of its block.
    """

    points: Points
    labels: IndexArray
    starts: IndexArray
    first_rows: IndexArray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def example(self, i: int) -> tuple[AnyArray, IndexArray]:
        """Return the rows, dense float64, and the labels of an example."""
        rows: Any = self.points[self.starts[i] : self.starts[i + 1]]
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        return dense.astype(np.float64), self.labels[self.starts[i] : self.starts[i + 1]]


def cut_block(block: Block, block_index: int, labels: IndexArray, *, grouped: bool) -> Examples:
    """Cut a block into examples.

    Parameters
    ----------
    block : Block
        With groups, they are its weights. Without, rows of weight zero are left out.
    block_index : int
    labels : ndarray of shape (n,), int64
    grouped : bool

    Returns
    -------
    examples : Examples
    """
    rows = rows_of_block(block, mark(block_index))
    if not grouped:
        used = np.flatnonzero(block.weights)
        if len(used) < len(block):
            block, labels, rows = block.take(used), labels[used], rows[used]
    starts = _starts_of(block.weights) if grouped else np.arange(len(block) + 1)
    return Examples(block.points, labels, starts, rows[starts[:-1]])


def _starts_of(groups: FloatArray) -> IndexArray:
    """Positions where another group begins, and the number of rows."""
    new = np.ones(len(groups), dtype=bool)
    new[1:] = groups[1:] != groups[:-1]
    return np.append(np.flatnonzero(new), len(groups))


def encoded(block: Block, classes: AnyArray | None) -> IndexArray | InvalidRow:
    """Return the labels of a block as numbers of classes, or whole numbers as they are.

    Parameters
    ----------
    block : Block
    classes : ndarray of shape (K,), sorted, or None

    Returns
    -------
    ndarray of shape (n,), int64, or InvalidRow
        The first label that is not a class, or not a whole number.
    """
    labels = labels_of(block)
    if classes is None:
        whole = np.asarray(labels.astype(np.float64) if labels.dtype.kind in "biuf" else np.nan)
        bad = np.broadcast_to(whole != np.floor(whole), (len(block),))
        codes = np.zeros(len(block), np.int64) if bad.any() else labels.astype(np.int64)
    else:
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1).astype(np.int64)
        bad = classes[codes] != labels
    if not bad.any():
        return codes
    row = int(np.flatnonzero(bad)[0])
    problem = f"y is {labels[row]!r}{{row}}, which is no class"
    return InvalidRow(problem, row, "y", "pass labels of the classes only")


@dataclass(frozen=True, eq=False)
class StructuredQuery:
    """A separator, and how rows are cut into examples.

    Attributes
    ----------
    problem : StructuredProblem
    w : ndarray of shape (D,), float64
    classes : ndarray of shape (K,), sorted, or None
    grouped : bool
        Both as in `structured_margin`.
    slacks : mapping
        Slack of the examples of the core set, by their first rows.
    """

    problem: StructuredProblem
    w: FloatArray
    classes: AnyArray | None
    grouped: bool
    slacks: Mapping[int, float] = field(default_factory=dict)


Work = Callable[[Examples, StructuredQuery], Any]


def read_examples(
    blocks: RowBlocks, query: StructuredQuery, work: Work, merge: Callable[[Any, Any], Any]
) -> BlockResults[Any]:
    """Read once: ``work(examples, query)`` of the examples of every block, merged.

    Raises
    ------
    InvalidInputError
        If a boundary of blocks cuts an example.
    """
    merge_parts = partial(_merge_parts, merge=merge)
    read = map_reduce(blocks, partial(_work_on_block, work=work), merge_parts, broadcast=query)
    value, ends = read.value
    _refuse_cuts(read, ends)
    return replace(read, value=value)


def _work_on_block(
    block: Block, block_index: int, query: StructuredQuery, *, work: Work
) -> tuple[Any, list[Ends]] | InvalidRow:
    labels = encoded(block, query.classes)
    if isinstance(labels, InvalidRow):
        return labels
    examples = cut_block(block, block_index, labels, grouped=query.grouped)
    return work(examples, query), _ends(block, block_index) if query.grouped else []


def _merge_parts(
    first: tuple[Any, list[Ends]],
    second: tuple[Any, list[Ends]],
    *,
    merge: Callable[[Any, Any], Any],
) -> tuple[Any, list[Ends]]:
    return merge(first[0], second[0]), first[1] + second[1]


def check_whole(blocks: RowBlocks) -> None:
    """Check that no boundary of blocks cuts an example, in one read.

    Parameters
    ----------
    blocks : RowBlocks
        Opened with the numbers of groups for `sample_weight`.

    Raises
    ------
    InvalidInputError
        If a boundary lies between two rows of one group.
    """
    read = map_reduce(blocks, _ends, add)
    _refuse_cuts(read, read.value)


def _ends(block: Block, block_index: int, _: object = None) -> list[Ends]:
    """First and last group of a block, if it has rows."""
    if not len(block):
        return []
    return [(block_index, float(block.weights[0]), float(block.weights[-1]))]


def _refuse_cuts(read: BlockResults[Any], ends: list[Ends]) -> None:
    cuts = [after for before, after in itertools.pairwise(ends) if before[2] == after[1]]
    if cuts:
        block_index, group, _ = cuts[0]
        raise InvalidInputError(
            f"groups: {len(cuts)} block boundaries cut an example, the first one group {group:g} "
            f"at row {read.row(block_index, 0)}",
            argument="groups",
            remedy="rechunk X, y and groups so that each block holds whole examples",
        )


def rivals_of(
    problem: StructuredProblem, w: FloatArray, examples: Examples, *, free: bool = False
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return the rival of every example. With `free`, the best of all answers."""
    if isinstance(problem, BatchProblem):
        labels = None if free else examples.labels
        return problem.rivals(w, examples.points, labels, examples.starts)
    rivals = np.empty(len(examples.labels), dtype=np.int64)
    margins, losses = np.empty(len(examples)), np.empty(len(examples))
    for i in range(len(examples)):
        x, y = examples.example(i)
        rival = problem.separation_oracle(w, x, None if free else y)
        rivals[examples.starts[i] : examples.starts[i + 1]] = rival.y
        margins[i], losses[i] = rival.margin, rival.loss
    return rivals, margins, losses


def run_numbers(groups: Any, n_rows: int) -> IndexArray:
    """Return the number of the run of equal neighbours that each entry is in.

    Parameters
    ----------
    groups : array-like of shape (n,)
        Values of any kind.
    n_rows : int
        The expected n.

    Returns
    -------
    ndarray of shape (n,), int64

    Raises
    ------
    InvalidInputError
        For another shape.

    Examples
    --------
    >>> run_numbers(["b", "b", "a", "b"], 4)
    array([0, 0, 1, 2])
    """
    try:
        groups = np.asarray(groups)
    except ValueError as error:
        raise InvalidTypeError(
            f"groups is not a vector of values ({error})",
            argument="groups",
            remedy="pass one value per row",
        ) from error
    if groups.shape != (n_rows,):
        raise InvalidInputError(
            f"groups has shape {groups.shape}, but X has {n_rows} rows",
            argument="groups",
            remedy="pass one value per row",
        )
    new = np.ones(n_rows, dtype=np.int64)
    new[1:] = groups[1:] != groups[:-1]
    return np.asarray(np.cumsum(new) - 1)


def answers_of(
    problem: StructuredProblem, w: FloatArray, points: Points, groups: FloatArray
) -> IndexArray:
    """Return the best answer to every example, row by row.

    Parameters
    ----------
    problem : StructuredProblem
    w : ndarray of shape (D,), float64
    points : ndarray of shape (n, d) or csr_array
    groups : ndarray of shape (n,)
        Equal neighbours are an example.

    Returns
    -------
    ndarray of shape (n,), int64
    """
    n = len(groups)
    if not n:
        return np.empty(0, dtype=np.int64)
    starts = _starts_of(groups)
    none = np.zeros(n, dtype=np.int64)
    examples = Examples(points, none, starts, none[starts[:-1]])
    return rivals_of(problem, w, examples, free=True)[0]


def _count_right(examples: Examples, query: StructuredQuery) -> tuple[int, int]:
    """Count the rows whose label is that of the best answer, and all rows."""
    if not len(examples):
        return 0, 0
    answers, _, _ = rivals_of(query.problem, query.w, examples, free=True)
    return int((answers == examples.labels).sum()), len(examples.labels)


def _add_counts(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return first[0] + second[0], first[1] + second[1]


def share_right(
    blocks: RowBlocks,
    problem: StructuredProblem,
    w: FloatArray,
    classes: AnyArray | None,
    *,
    grouped: bool,
) -> float:
    """Return the share of the rows whose label is that of the best answer. One read.

    Parameters
    ----------
    blocks, problem, classes, grouped
        As in `structured_margin`.
    w : ndarray of shape (D,), float64

    Returns
    -------
    float
    """
    query = StructuredQuery(problem, w, classes, grouped)
    n_right, n_rows = read_examples(blocks, query, _count_right, _add_counts).value
    return float(n_right / n_rows)


@dataclass(frozen=True, eq=False)
class Triple:
    """An example, its right answer, and a wrong one.

    Attributes
    ----------
    first_row : int
        The first row of the example, with the `mark` of its block.
    margin : float
        At the separator that it violated, with slacks.
    difference : ndarray of shape (D,), float64
        Difference of the joint features, divided by the loss.
    answer, rival : ndarray of int64
        The right and the wrong answer.
    row : ndarray of shape (d,), float64
        First row of the example.
    """

    first_row: int
    margin: float
    difference: FloatArray
    answer: IndexArray
    rival: IndexArray
    row: FloatArray

    @property
    def key(self) -> tuple[int, bytes]:
        """Example and wrong answer, to be compared."""
        return self.first_row, self.rival.tobytes()


@dataclass(frozen=True, eq=False)
class WorstTriples:
    """Triples of least margin.

    Attributes
    ----------
    triples : list of Triple
        Some of every block.
    margin : float
        The least margin of all. Infinite without examples.
    n_examples : int
    """

    triples: list[Triple]
    margin: float
    n_examples: int


def _merge_worst(first: WorstTriples, second: WorstTriples) -> WorstTriples:
    triples = first.triples + second.triples
    if len(triples) > _MAX_TRIPLES:
        smallest = np.argsort([triple.margin for triple in triples], kind="stable")[:_MAX_TRIPLES]
        # In the order of the data, so that merging stays associative.
        triples = [triples[i] for i in np.sort(smallest)]
    n_examples = first.n_examples + second.n_examples
    return WorstTriples(triples, min(first.margin, second.margin), n_examples)


def worst_triples(
    blocks: RowBlocks, query: StructuredQuery, count: int
) -> BlockResults[WorstTriples]:
    """Find the triples of least margin, `count` of every block, in one read."""
    work = partial(_worst_of, count=count)
    return read_examples(blocks, query, work, _merge_worst)


def _worst_of(examples: Examples, query: StructuredQuery, count: int) -> WorstTriples:
    problem = query.problem
    if not len(examples):
        return WorstTriples([], math.inf, 0)
    rivals, margins, losses = rivals_of(problem, query.w, examples)
    first_rows = examples.first_rows.tolist()
    if query.slacks:
        margins = margins + np.array([query.slacks.get(first_row, 0.0) for first_row in first_rows])
    triples = []
    for i in _diverse(examples, rivals, margins, count).tolist():
        x, y = examples.example(i)
        rival = rivals[examples.starts[i] : examples.starts[i + 1]]
        gap = problem.joint_features(x, y) - problem.joint_features(x, rival)
        margin = float(margins[i])
        answers = np.array(y), np.array(rival)
        triples.append(Triple(first_rows[i], margin, gap / losses[i], *answers, np.array(x[0])))
    return WorstTriples(triples, float(margins.min()), len(examples))


def _diverse(examples: Examples, rivals: IndexArray, margins: FloatArray, count: int) -> IndexArray:
    """Choose the worst example, the worst with other labels, and so on. Then the next worst."""
    reach = min(len(margins), 50 * count)
    order = np.argpartition(margins, reach - 1)[:reach] if reach < len(margins) else None
    order = np.arange(len(margins)) if order is None else np.sort(order)
    order = order[np.argsort(margins[order], kind="stable")]
    first = examples.starts[order]
    pairs = np.stack([examples.labels[first], rivals[first]], axis=1)
    _, new = np.unique(pairs, axis=0, return_index=True)
    new = np.sort(new)[:count]
    repeated = np.setdiff1d(np.arange(len(order)), new)[: count - len(new)]
    chosen: IndexArray = order[np.sort(np.concatenate([new, repeated]))]
    return chosen


def solve_triples(
    core: list[Triple], numbers: IndexArray, C: float
) -> tuple[HardMargin, dict[int, float]]:
    """Find the separator of largest margin on some triples.

    Parameters
    ----------
    core : list of Triple
    numbers : ndarray of shape (m,), int64
        Numbers of the first rows of their examples in the whole data.
    C : float
        As in `structured_margin`.

    Returns
    -------
    hard : HardMargin
        Its margin is with slacks.
    slacks : dict of int to float
        The gain of each example by its slack. Empty for an infinite C.

    Raises
    ------
    NotSeparableError
    """
    rows = np.stack([triple.difference for triple in core])
    D, first_rows = rows.shape[1], np.empty(0, np.int64)
    if math.isfinite(C):
        # One more column for every example, in which its triples can be separated.
        of_triples = np.array([triple.first_row for triple in core])
        first_rows = np.unique(of_triples)
        added = np.equal.outer(of_triples, first_rows) / math.sqrt(C)
        rows = np.concatenate([rows, added], axis=1)
    hard = hard_margin(rows)  # from scratch: a start with many new rows takes longer
    if not hard.separable:
        raise _inseparable(core, numbers, hard.dual)
    slacks = (hard.w[D:] / math.sqrt(C)).tolist()
    of_examples = dict(zip(first_rows.tolist(), slacks, strict=True))
    return replace(hard, w=hard.w[:D]), of_examples


def _inseparable(core: list[Triple], numbers: IndexArray, dual: FloatArray) -> NotSeparableError:
    evidence = evidence_of(dual)
    shown = [
        f"{dual[i]:.3g} for row {numbers[i]}, label {_short(core[i].answer)} against "
        f"{_short(core[i].rival)}"
        for i in evidence
    ]
    return NotSeparableError(
        f"y cannot be separated from other answers: a convex combination of differences is zero "
        f"({first_few(shown, 4)})",
        argument="y",
        remedy="correct the labels, add features, or allow errors with a finite C",
        indices=numbers[evidence],
        coefficients=dual[evidence],
    )


def _short(y: IndexArray) -> str:
    return " ".join(map(str, y[:8].tolist())) + (" ..." if len(y) > 8 else "")


@dataclass(frozen=True)
class StructuredStep:
    """One read of the data.

    Attributes
    ----------
    n_core : int
        Triples in the core set on which the separator was found.
    margin : float
        On the core set. Infinite before the first read.
    data_margin : float
        On all data, of the same separator.
    """

    n_core: int
    margin: float
    data_margin: float


@dataclass(frozen=True, eq=False)
class StructuredMargin:
    """A separator of answers, and the core set that it is of.

    Attributes
    ----------
    w : ndarray of shape (D,), float64
        Unit vector. With a finite C it is shorter, because the slacks of core examples are
        coordinates of the same vector.
    margin : float
        On the core set: no separator has more on all data.
    data_margin : float
        On all data, with slacks.
    examples : ndarray of shape (m,), int64
        Number, in the data, of the first row of the example of each core triple.
    rows : ndarray of shape (m, d), float64
        That row.
    answers, rivals : tuple of m ndarrays of int64
        The right and the wrong answer of each.
    differences : ndarray of shape (m, D), float64
        Its vector, divided by the loss.
    dual : ndarray of shape (m,), float64
    n_examples : int
    converged : bool
        Whether `data_margin` is at least ``(1 - epsilon) * margin``. False after `max_passes`.
    trace : tuple of StructuredStep
        One for every read.
    """

    w: FloatArray
    margin: float
    data_margin: float
    examples: IndexArray
    rows: FloatArray
    answers: tuple[IndexArray, ...]
    rivals: tuple[IndexArray, ...]
    differences: FloatArray
    dual: FloatArray
    n_examples: int
    converged: bool
    trace: tuple[StructuredStep, ...]

    def core_rows(self, classes: AnyArray) -> WeightedPoints:
        """Return the rows of the core triples, each once, where every example is a row.

        Parameters
        ----------
        classes : ndarray of shape (K,)
            Labels by their numbers in answers.
        """
        indices, first = np.unique(self.examples, return_index=True)
        codes = np.array([self.answers[i][0] for i in first])
        weights = np.ones(len(first))
        return WeightedPoints(self.rows[first], weights, indices, plain_labels(classes)[codes])

    @property
    def factor(self) -> float:
        """The certificate: at least this share of the largest margin there is."""
        return self.data_margin / self.margin

    def describe(self) -> dict[str, Any]:
        """Facts for a provenance, plain JSON."""
        return {
            "margin": self.data_margin,
            "core_margin": self.margin,
            "factor": self.factor,
            "converged": self.converged,
            "reads": self.passes,
        }

    @property
    def passes(self) -> int:
        """Reads of the data."""
        return len(self.trace)


def structured_margin(
    blocks: RowBlocks,
    problem: StructuredProblem,
    epsilon: float = 0.1,
    *,
    classes: AnyArray | None = None,
    grouped: bool = False,
    C: float = math.inf,
    per_block: int = 10,
    max_passes: int | None = None,
) -> StructuredMargin:
    """Find a separator whose margin is within ``1 - epsilon`` of the largest one.

    Parameters
    ----------
    blocks : RowBlocks
        Rows with labels.
    problem : StructuredProblem
    epsilon : float, default=0.1
    classes : ndarray of shape (K,), sorted, or None, default=None
        Labels are numbered by their places in it. None takes whole numbers as they are.
    grouped : bool, default=False
        Whether neighbouring rows of one group are an example. Then `blocks` was opened with
        the numbers of groups for `sample_weight`. False for one row an example.
    C : float, default=inf
        Infinite for data that can be separated. Otherwise every core example has a slack of its
        own, which all its wrong answers share, by the squared hinge loss with this C.
    per_block : int, default=10
        Triples that a block may add in a read, of different labels where there are such. With
        one a read, fewer triples are needed, and many more reads.
    max_passes : int or None, default=None
        Reads of the data at most. None for as many as it takes, which the bound of Lemma 3.1
        limits.

    Returns
    -------
    StructuredMargin

    Raises
    ------
    NotSeparableError
        If no separator has a margin, and C is infinite: with the convex combination that shows
        it.
    InvalidInputError
        If epsilon or a label cannot be used.

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1 and the section on structured output. Crammer and
    Singer (2001) for its multi-class form.
    """
    core: list[Triple] = []
    solved = None
    query = StructuredQuery(problem, np.zeros(problem.dimension), classes, grouped)
    margin, trace = math.inf, []
    # Fig. 1: a separator of the core set, a read for its worst triples, and these join the set.
    while True:
        read = worst_triples(blocks, query, per_block)
        data_margin = read.value.margin
        trace.append(StructuredStep(len(core), margin, data_margin if solved else 0.0))
        level, core_keys = (1.0 - epsilon) * margin, {triple.key for triple in core}
        converged = solved is not None and data_margin >= level
        new = [
            triple
            for triple in read.value.triples
            if triple.margin < level and triple.key not in core_keys
        ]
        stopped = max_passes is not None and len(trace) >= max_passes and solved is not None
        if converged or not new or stopped:
            break
        core = core + new
        numbers = row_numbers(read, np.array([triple.first_row for triple in core]))
        solved, slacks = solve_triples(core, numbers, C)
        margin = solved.margin
        query = replace(query, w=solved.w, slacks=slacks)
    if solved is None:
        raise InvalidInputError("X has no examples", argument="X", remedy="pass at least one")
    return StructuredMargin(
        w=query.w,
        margin=margin,
        data_margin=data_margin,
        examples=numbers,
        rows=np.stack([triple.row for triple in core]),
        answers=tuple(triple.answer for triple in core),
        rivals=tuple(triple.rival for triple in core),
        differences=np.stack([triple.difference for triple in core]),
        dual=solved.dual,
        n_examples=read.value.n_examples,
        converged=converged,
        trace=tuple(trace),
    )
