"""Examples of one row or several: how they are cut from blocks, read, and answered."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import add
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.problems import BatchProblem, StructuredProblem
from daskcoreset.constructions.margin.rows import rows_of_block
from daskcoreset.core.blocks import MAX_LABELS, Block, InvalidRow, labels_of
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Block, and row in it, of the first row of an example.
FirstRow = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Examples:
    """Some examples, one after another.

    Attributes
    ----------
    points : ndarray of shape (n, d) or csr_array
        All their rows.
    labels : ndarray of shape (n,), int64
    starts : ndarray of shape (q + 1,), int64
        Where each begins; the last entry is n.
    first_rows : ndarray of shape (q, 2), int64
        Block, and row in it, of the first row of each.
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


@dataclass(frozen=True, eq=False)
class _Piece:
    """Rows of one group at an end of a range of blocks."""

    group: float
    points: AnyArray
    labels: IndexArray
    first_row: FirstRow

    def joined(self, following: _Piece) -> _Piece:
        return _Piece(
            self.group,
            np.concatenate([self.points, following.points]),
            np.concatenate([self.labels, following.labels]),
            self.first_row,
        )


# Runs at the ends of a range of blocks, and runs that were cut within it, in order.
#
# The first and the last may go on outside of the range; those between are whole examples.
Runs = tuple[_Piece, ...]


def merge_runs(first: Runs, second: Runs) -> Runs:
    """Join the open runs of two neighbouring ranges; associative.

    Examples
    --------
    >>> def piece(group):
    ...     return _Piece(group, np.zeros((1, 1)), np.zeros(1, dtype=int), (0, 0))
    >>> both = merge_runs((piece(1.0), piece(2.0)), (piece(2.0), piece(3.0)))
    >>> [(run.group, len(run.labels)) for run in both]
    [(1.0, 1), (2.0, 2), (3.0, 1)]
    """
    if first and second and first[-1].group == second[0].group:
        return (*first[:-1], first[-1].joined(second[0]), *second[1:])
    return first + second


def _as_examples(runs: Runs, n_features: int, dtype: Any) -> Examples:
    """Return the runs as examples, with nothing before and after them: those at the ends last."""
    pieces = [*runs[1:-1], *runs[:1], *runs[1:][-1:]]
    none: list[AnyArray] = [np.empty((0, n_features), dtype)]
    return Examples(
        np.concatenate([piece.points for piece in pieces] or none),
        np.concatenate([piece.labels for piece in pieces] or [np.empty(0, np.int64)]),
        np.cumsum([0, *(len(piece.labels) for piece in pieces)]),
        np.array([piece.first_row for piece in pieces], dtype=np.int64).reshape(-1, 2),
    )


def cut_block(
    block: Block, block_index: int, labels: IndexArray, *, grouped: bool
) -> tuple[Examples, Runs]:
    """Cut a block into examples; with groups, those at its ends stay open.

    Parameters
    ----------
    block : Block
        With groups, they are its weights; without, rows of weight zero are left out.
    block_index : int
    labels : ndarray of shape (n,), int64
    grouped : bool

    Returns
    -------
    examples : Examples
        Whole ones.
    runs : tuple of pieces
        Those that a neighbouring block may continue.
    """
    n, rows = len(block), rows_of_block(block)
    if not grouped:
        used = np.flatnonzero(block.weights)
        if len(used) < n:
            block, labels, rows = block.take(used), labels[used], rows[used]
        first_rows = np.stack([np.full(len(rows), block_index), rows], axis=1)
        return Examples(block.points, labels, np.arange(len(rows) + 1), first_rows), ()
    bounds = np.flatnonzero(np.diff(block.weights)) + 1
    bounds = np.concatenate([[0], bounds, [n]]) if n else np.zeros(1, np.int64)
    n_runs = len(bounds) - 1
    open_runs = []
    for i in sorted({0, n_runs - 1}) if n else []:
        within = slice(int(bounds[i]), int(bounds[i + 1]))
        points: Any = block.points[within]
        dense = np.array(points) if isinstance(points, np.ndarray) else points.toarray()
        group, first_row = (
            float(block.weights[within.start]),
            (block_index, int(rows[within.start])),
        )
        open_runs.append(_Piece(group, dense, np.array(labels[within]), first_row))
    inner = bounds[1:-1] if n_runs > 2 else np.zeros(1, np.int64)
    within = slice(int(inner[0]), int(inner[-1]))
    first_rows = np.stack([np.full(len(inner) - 1, block_index), rows[inner[:-1]]], axis=1)
    whole = Examples(block.points[within], labels[within], inner - inner[0], first_rows)
    return whole, tuple(open_runs)


def encoded(block: Block, classes: AnyArray | None) -> IndexArray | InvalidRow:
    """Return the labels of a block as numbers of classes, or whole numbers as they are.

    Parameters
    ----------
    block : Block
    classes : ndarray of shape (K,), sorted, or None

    Returns
    -------
    ndarray of shape (n,), int64, or InvalidRow
        The first label that is no class, or no whole number.
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
    label = f"y is {labels[row]!r}".replace("{", "{{").replace("}", "}}")
    return InvalidRow(label + "{row}, which is no class; pass labels of the classes only.", row)


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
        Slack of the examples of the core set, by block and row in it.
    """

    problem: StructuredProblem
    w: FloatArray
    classes: AnyArray | None
    grouped: bool
    slacks: Mapping[FirstRow, float] = field(default_factory=dict)


Work = Callable[[Examples, StructuredQuery], Any]


def read_examples(
    blocks: RowBlocks,
    query: StructuredQuery,
    work: Work,
    merge: Callable[[Any, Any], Any],
) -> tuple[BlockResults[Any], Examples]:
    """Read once: ``work(examples, query)`` of the whole examples of every block, merged.

    Returns
    -------
    read : BlockResults
    cut : Examples
        Those that block boundaries cut, which are whole only now.
    """
    merge_parts = partial(_merge_parts, merge=merge)
    read = map_reduce(blocks, partial(_work_on_block, work=work), merge_parts, broadcast=query)
    value, runs = read.value
    cut = _as_examples(runs, blocks.schema.n_features, blocks.schema.dtype)
    return replace(read, value=value), cut


def _work_on_block(
    block: Block, block_index: int, query: StructuredQuery, *, work: Work
) -> tuple[Any, Runs] | InvalidRow:
    labels = encoded(block, query.classes)
    if isinstance(labels, InvalidRow):
        return labels
    examples, runs = cut_block(block, block_index, labels, grouped=query.grouped)
    return work(examples, query), runs


def _merge_parts(
    first: tuple[Any, Runs], second: tuple[Any, Runs], *, merge: Callable[[Any, Any], Any]
) -> tuple[Any, Runs]:
    return merge(first[0], second[0]), merge_runs(first[1], second[1])


def rivals_of(
    problem: StructuredProblem, w: FloatArray, examples: Examples, *, free: bool = False
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return the rival of every example; with `free`, the best of all answers."""
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
    try:
        groups = np.asarray(groups)
    except ValueError as error:
        raise InvalidTypeError(f"groups is no vector of values: {error}.") from error
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


def _group_ends(block: Block, _index: int, _: object) -> list[tuple[float, float]]:
    """First and last group of a block, if it has rows."""
    return [(float(block.weights[0]), float(block.weights[-1]))] if len(block) else []


def check_whole(groups: RowBlocks) -> None:
    """Check that no boundary of blocks cuts an example; one read of `groups`.

    Parameters
    ----------
    groups : RowBlocks
        Opened with the numbers of groups for `sample_weight`.

    Raises
    ------
    InvalidInputError
        If a boundary lies between two rows of one group.
    """
    ends = map_reduce(groups, _group_ends, add).value
    cuts = sum(previous[1] == following[0] for previous, following in itertools.pairwise(ends))
    if cuts:
        raise InvalidInputError(
            f"groups: {cuts} block boundaries cut an example, so that it would be answered in "
            f"pieces; rechunk X and groups so that each block holds whole ones."
        )


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
    block: Block, _index: int, _: object, *, grouped: bool
) -> ClassSurvey | InvalidRow:
    if not grouped and not block.weights.all():
        block = block.take(np.flatnonzero(block.weights))
    labels = labels_of(block)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        row = int(np.isnan(labels).argmax())
        reason = "y is NaN{row}; label such rows, or leave them out."
        return InvalidRow(reason, block.number_of(row))
    classes = np.unique(labels)
    if len(classes) > MAX_LABELS:
        return InvalidRow(
            f"y has more than {MAX_LABELS} values; pass class labels, not measurements."
        )
    weights = np.ones(len(block)) if grouped else block.weights
    return ClassSurvey(classes, moments_of(block.points, weights))


def _merge_surveys(first: ClassSurvey, second: ClassSurvey) -> ClassSurvey:
    parts = [part.classes for part in (first, second) if len(part.classes)]
    classes = np.unique(np.concatenate(parts)) if parts else first.classes
    return ClassSurvey(classes, merge_moments(first.moments, second.moments))


def survey(blocks: RowBlocks, *, grouped: bool = False) -> ClassSurvey:
    """Read the classes, and the mean and spread, of data with labels.

    Parameters
    ----------
    blocks : RowBlocks
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
    work = partial(_survey_block, grouped=grouped)
    merged: ClassSurvey = map_reduce(blocks, work, _merge_surveys).value
    if len(merged.classes) < 2:
        raise InvalidInputError(
            f"y has one class, {merged.classes[:1].tolist()[0]!r}, and a margin needs two; pass "
            f"rows of another."
        )
    return merged
