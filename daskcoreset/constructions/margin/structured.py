"""Maximum margin for structured output: core set of triples, solver and predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.margin.core_set import evidence_of
from daskcoreset.constructions.margin.examples import Examples
from daskcoreset.constructions.margin.rows import row_numbers
from daskcoreset.constructions.margin.separators import InseparableError
from daskcoreset.constructions.margin.triples import (
    Place,
    StructuredQuery,
    Triples,
    read_examples,
    rivals_of,
    worst_triples,
)
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.core.validation import check_share
from daskcoreset.execution.engine import map_reduce
from daskcoreset.solvers.hard_margin import hard_margin

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.examples import StructuredProblem
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks


@dataclass(frozen=True, eq=False)
class Solved:
    """The separator of some triples.

    Attributes
    ----------
    w : ndarray of shape (D,), float64
    margin : float
        With slacks.
    dual : ndarray of shape (m,), float64
    slacks : ndarray of shape (m,), float64
        What the example of each triple gains.
    """

    w: FloatArray
    margin: float
    dual: FloatArray
    slacks: FloatArray

    def slack_of(self, core: Triples) -> dict[Place, float]:
        """Return the slack of every example that has one."""
        places = map(tuple, core.places.tolist())
        return {p: s for p, s in zip(places, self.slacks.tolist(), strict=True) if s}


def solve_triples(core: Triples, numbers: IndexArray, C: float) -> Solved:
    """Find the separator of largest margin on some triples.

    Parameters
    ----------
    core : Triples
    numbers : ndarray of shape (m,), int64
        Of the first rows of their examples in the whole data.
    C : float
        As in `structured_margin`.

    Returns
    -------
    Solved

    Raises
    ------
    InseparableError
    """
    D, rows = core.differences.shape[1], core.differences
    slack_columns = np.zeros(len(core), dtype=np.int64)
    if math.isfinite(C):
        _, slack_columns = np.unique(core.places, axis=0, return_inverse=True)
        slack_columns = slack_columns.reshape(-1)
        own = np.equal.outer(slack_columns, np.arange(slack_columns.max() + 1)) / math.sqrt(C)
        rows = np.concatenate([rows, own], axis=1)
    hard = hard_margin(rows)  # from scratch: a start with many new rows takes longer
    if not hard.separable:
        raise _inseparable(core, numbers, hard.dual)
    assert hard.w is not None  # noqa: S101 - of explicit rows
    slacks = np.zeros(len(core))
    if math.isfinite(C):
        slacks = hard.w[D:][slack_columns] / math.sqrt(C)
    return Solved(hard.w[:D], hard.margin, hard.dual, slacks)


def _inseparable(core: Triples, numbers: IndexArray, dual: FloatArray) -> InseparableError:
    evidence = evidence_of(dual)
    shown = [
        f"{dual[i]:.3g} for row {numbers[i]}, label {_short(core.answers[i])} against "
        f"{_short(core.rivals[i])}"
        for i in evidence[:4]
    ]
    more = f", and {len(evidence) - 4} more" if len(evidence) > 4 else ""
    return InseparableError(
        f"y cannot be separated from other answers: a convex combination of differences is zero "
        f"({'; '.join(shown)}{more}); correct the labels, add features, or allow errors with a "
        f"finite C.",
        numbers[evidence],
        dual[evidence],
    )


def _short(y: IndexArray) -> str:
    return " ".join(map(str, y[:8].tolist())) + (" ..." if len(y) > 8 else "")


def run_numbers(groups: Any, n_rows: int) -> IndexArray:
    """Count up the runs of equal neighbours.

    Parameters
    ----------
    groups : array-like of shape (n,)
        Values of any kind.
    n_rows : int
        What n must be.

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
    groups = np.asarray(groups)
    if groups.shape != (n_rows,):
        raise InvalidInputError(
            f"groups has shape {groups.shape} where X has {n_rows} rows; pass one value a row."
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
    starts = np.append(np.flatnonzero(np.append(True, groups[1:] != groups[:-1])), n)
    nothing = np.zeros((len(starts) - 1, 2), dtype=np.int64)
    examples = Examples(points, np.zeros(n, dtype=np.int64), starts, nothing)
    return rivals_of(problem, w, examples, free=True)[0]


def _count_right(examples: Examples, query: StructuredQuery) -> tuple[int, int]:
    """Rows whose label is that of the best answer, and rows."""
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
    """Return the share of the rows whose label is that of the best answer; one read.

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
    read, cut = read_examples(blocks, query, _count_right, _add_counts)
    n_right, n_rows = _add_counts(read.value, _count_right(cut, query))
    return n_right / n_rows


_Cuts = tuple[int, float, float]

"""Boundaries that cut an example, the first group, and the last; NaN of an empty block."""


def _cuts(block: Block, _index: int, _: object) -> _Cuts:
    ends = (block.weights[0], block.weights[-1]) if len(block) else (np.nan, np.nan)
    return 0, float(ends[0]), float(ends[1])


def _count_cuts(first: _Cuts, second: _Cuts) -> _Cuts:
    if np.isnan(first[1]) or np.isnan(second[1]):
        return second if np.isnan(first[1]) else first
    return first[0] + second[0] + (first[2] == second[1]), first[1], second[2]


def check_whole(groups: RowBlocks) -> None:
    """Refuse blocks whose boundaries cut an example; one read of `groups`.

    Parameters
    ----------
    groups : RowBlocks
        Opened with the numbers of groups for `sample_weight`.

    Raises
    ------
    InvalidInputError
        If a boundary lies between two rows of one group.
    """
    cuts, _, _ = map_reduce(groups, _cuts, _count_cuts).value
    if cuts:
        raise InvalidInputError(
            f"groups: {cuts} block boundaries cut an example, so that it would be answered in "
            f"pieces; rechunk X and groups so that each block holds whole ones."
        )


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
    rivals : tuple of m ndarrays of int64
        The wrong answer of each.
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
    rivals: tuple[IndexArray, ...]
    differences: FloatArray
    dual: FloatArray
    n_examples: int
    converged: bool
    trace: tuple[StructuredStep, ...]

    @property
    def factor(self) -> float:
        """The certificate: at least this share of the largest margin there is."""
        return self.data_margin / self.margin

    @property
    def passes(self) -> int:
        """Reads of the data."""
        return len(self.trace)

    def size_bound(self, epsilon: float) -> float:
        r"""Most triples that Corollary 3.2 allows when one is added at a time.

        :math:`1 + 4 R^2 / (\\epsilon^2 \\rho^2)`, R the length of the longest one. More at a
        time need fewer reads, at most so many.
        """
        longest = float(np.square(self.differences).sum(axis=1).max())
        return 1.0 + 4.0 * longest / (epsilon * self.margin) ** 2


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
    report: Callable[[StructuredStep], None] | None = None,
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
    report : callable or None, default=None
        Gets a `StructuredStep` after every read.

    Returns
    -------
    StructuredMargin

    Raises
    ------
    InseparableError
        If no separator has a margin, and C is infinite: with the convex combination that shows
        it.
    InvalidInputError
        If epsilon or a label cannot be used.

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1 and the section on structured output; Crammer and
    Singer (2001) for its multi-class form.
    """
    check_share("epsilon", epsilon)
    core = Triples.none(problem.dimension)
    solved = None
    query = StructuredQuery(problem, np.zeros(problem.dimension), classes, grouped)
    margin, trace = math.inf, []
    while True:
        read = worst_triples(blocks, query, per_block)
        data_margin = read.value.margin
        trace.append(StructuredStep(len(core), margin, data_margin if solved else 0.0))
        if report is not None:
            report(trace[-1])
        converged = solved is not None and data_margin >= (1.0 - epsilon) * margin
        new = read.value.worst.below((1.0 - epsilon) * margin).missing_from(core)
        stopped = max_passes is not None and len(trace) >= max_passes and solved is not None
        if converged or not len(new) or stopped:
            break
        core = core.and_also(new)
        solved = solve_triples(core, row_numbers(read, *core.places.T), C)
        margin = solved.margin
        query = replace(query, w=solved.w, slacks=solved.slack_of(core))
    if solved is None:
        raise InvalidInputError("X holds no example; pass at least one.")
    return StructuredMargin(
        w=solved.w,
        margin=margin,
        data_margin=data_margin,
        examples=row_numbers(read, *core.places.T),
        rivals=core.rivals,
        differences=core.differences,
        dual=solved.dual,
        n_examples=read.value.n_examples,
        converged=converged,
        trace=tuple(trace),
    )
