"""The best answers to examples: of a block, and compared with the truth over all blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.blocks import Problem
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.gathering import gather
from daskcoreset.constructions.margin.examples import Edges, Examples, cut_block, encoded, merge_edges
from daskcoreset.constructions.margin.triples import rivals_of
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.constructions.margin.problem import StructuredProblem

__all__ = ["answers_of", "check_whole", "run_numbers", "share_right"]


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
    numbers: IndexArray = np.cumsum(new) - 1
    return numbers


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


@dataclass(frozen=True, eq=False)
class _Right:
    right: int
    rows: int
    edges: Edges


@dataclass(frozen=True, eq=False)
class _Given:
    problem: StructuredProblem
    w: FloatArray
    classes: AnyArray | None


@dataclass(frozen=True)
class _Compare:
    grouped: bool

    def __call__(self, block: Block, number: int, given: _Given) -> _Right | Problem:
        labels = encoded(block, given.classes)
        if isinstance(labels, Problem):
            return labels
        examples, edges = cut_block(block, number, labels, grouped=self.grouped)
        return _Right(_right(examples, given), len(examples.labels), edges)


def _right(examples: Examples, given: _Given) -> int:
    if not len(examples):
        return 0
    found = rivals_of(given.problem, given.w, examples, free=True)[0]
    return int((found == examples.labels).sum())


def _merge(first: _Right, second: _Right) -> _Right:
    edges = merge_edges(first.edges, second.edges)
    return _Right(first.right + second.right, first.rows + second.rows, edges)


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
        As in `daskcoreset.constructions.margin.structured.structured_margin`.
    w : ndarray of shape (D,), float64

    Returns
    -------
    float
    """
    given = _Given(problem, w, classes)
    found = gather(blocks, _Compare(grouped), _merge, given=given).value
    cut = found.edges.closed(blocks.rules.n_features, blocks.rules.dtype)
    return (found.right + _right(cut, given)) / (found.rows + len(cut.labels))


_Cuts = tuple[int, float, float]
"""Boundaries that cut an example, the first group, and the last; NaN of an empty block."""


def _cuts(block: Block, number: int, given: object) -> _Cuts:
    del number, given
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
    cuts, _, _ = gather(groups, _cuts, _count_cuts).value
    if cuts:
        raise InvalidInputError(
            f"groups: {cuts} block boundaries cut an example, so that it would be answered in "
            f"pieces; rechunk X and groups so that each block holds whole ones."
        )
