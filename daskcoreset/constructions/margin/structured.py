"""Maximum margin for structured output: triples of example, right and wrong answer; their loop."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.core_set import evidence_of, first_few
from daskcoreset.constructions.margin.examples import (
    Examples,
    FirstRow,
    StructuredQuery,
    read_examples,
    rivals_of,
)
from daskcoreset.constructions.margin.problems import StructuredProblem
from daskcoreset.constructions.margin.rows import row_numbers
from daskcoreset.core.blocks import plain_labels
from daskcoreset.core.errors import InvalidInputError, NotSeparableError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.execution.engine import BlockResults
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.solvers.hard_margin import HardMargin, hard_margin

# Triples of all blocks that a read returns at most.
_MAX_TRIPLES = 1000


@dataclass(frozen=True, eq=False)
class Triple:
    """An example, its right answer, and a wrong one.

    Attributes
    ----------
    first_row : tuple of int
        Block, and row in it, of the first row of the example.
    margin : float
        At the separator that it violated, with slacks.
    difference : ndarray of shape (D,), float64
        Of the joint features, divided by the loss.
    answer, rival : ndarray of int64
        The right and the wrong answer.
    row : ndarray of shape (d,), float64
        First row of the example.
    """

    first_row: FirstRow
    margin: float
    difference: FloatArray
    answer: IndexArray
    rival: IndexArray
    row: FloatArray

    @property
    def key(self) -> tuple[FirstRow, bytes]:
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
        The least margin of all; infinite without examples.
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
    first_rows = [(block, row) for block, row in examples.first_rows.tolist()]
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
    """Choose the worst example, the worst with other labels, and so on; then the next worst."""
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
) -> tuple[HardMargin, dict[FirstRow, float]]:
    """Find the separator of largest margin on some triples.

    Parameters
    ----------
    core : list of Triple
    numbers : ndarray of shape (m,), int64
        Of the first rows of their examples in the whole data.
    C : float
        As in `structured_margin`.

    Returns
    -------
    hard : HardMargin
        Its margin is with slacks.
    slacks : dict of (int, int) to float
        What each example gains by its slack; empty for an infinite C.

    Raises
    ------
    NotSeparableError
    """
    rows = np.stack([triple.difference for triple in core])
    D, first_rows = rows.shape[1], np.empty((0, 2), np.int64)
    if math.isfinite(C):
        # One more column for every example, in which its triples can be separated.
        of_triples = [triple.first_row for triple in core]
        first_rows, columns = np.unique(of_triples, axis=0, return_inverse=True)
        added = np.equal.outer(columns.reshape(-1), np.arange(len(first_rows))) / math.sqrt(C)
        rows = np.concatenate([rows, added], axis=1)
    hard = hard_margin(rows)  # from scratch: a start with many new rows takes longer
    if not hard.separable:
        raise _inseparable(core, numbers, hard.dual)
    slacks = (hard.w[D:] / math.sqrt(C)).tolist()
    of_examples = {
        (block, row): slack for (block, row), slack in zip(first_rows.tolist(), slacks, strict=True)
    }
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
        f"({first_few(shown, 4)}); correct the labels, add features, or allow errors with a "
        f"finite C.",
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
        On the core set; infinite before the first read.
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
        Of length one; with a finite C less, for the slacks of core examples are coordinates of
        the same vector.
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
        Whether `data_margin` is at least ``(1 - epsilon) * margin``; False after `max_passes`.
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
        Labels are numbered by their places in it; None takes whole numbers as they are.
    grouped : bool, default=False
        Whether neighbouring rows of one group are an example; then `blocks` was opened with
        the numbers of groups for `sample_weight`. False for one row an example.
    C : float, default=inf
        Infinite for data that can be separated. Otherwise every core example has a slack of its
        own, which all its wrong answers share, by the squared hinge loss with this C.
    per_block : int, default=10
        Triples that a block may add in a read, of different labels where there are such. With
        one a read, fewer triples are needed, and many more reads.
    max_passes : int or None, default=None
        Reads of the data at most; None for as many as it takes, which the bound of Lemma 3.1
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
    Har-Peled, Roth and Zimak (2007), Fig. 1 and the section on structured output; Crammer and
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
        numbers = row_numbers(read, *np.array([triple.first_row for triple in core]).T)
        solved, slacks = solve_triples(core, numbers, C)
        margin = solved.margin
        query = replace(query, w=solved.w, slacks=slacks)
    if solved is None:
        raise InvalidInputError("X holds no example; pass at least one.")
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
