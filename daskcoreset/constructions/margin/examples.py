"""Examples of one row or several: how they are cut from blocks, read, and answered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import add
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.problems import BatchProblem, StructuredProblem
from daskcoreset.constructions.margin.rows import rows_of_block
from daskcoreset.core.blocks import Block, InvalidRow, labels_of
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Block, and row in it, of the first row of an example.
FirstRow = tuple[int, int]

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


def cut_block(block: Block, block_index: int, labels: IndexArray, *, grouped: bool) -> Examples:
    """Cut a block into examples.

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
    """
    rows = rows_of_block(block)
    if not grouped:
        used = np.flatnonzero(block.weights)
        if len(used) < len(block):
            block, labels, rows = block.take(used), labels[used], rows[used]
    starts = _starts_of(block.weights) if grouped else np.arange(len(block) + 1)
    first_rows = np.stack([np.full(len(starts) - 1, block_index), rows[starts[:-1]]], axis=1)
    return Examples(block.points, labels, starts, first_rows)


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
            f"at row {read.row(block_index, 0)}; rechunk X, y and groups so that each block holds "
            f"whole examples."
        )


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
    starts = _starts_of(groups)
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
    n_right, n_rows = read_examples(blocks, query, _count_right, _add_counts).value
    return float(n_right / n_rows)
