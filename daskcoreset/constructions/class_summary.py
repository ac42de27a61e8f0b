"""The first read of labelled rows: classes, weights, moments, and rows to start from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.invalid import InvalidRow, no_weight_error
from daskcoreset.core.labels import MAX_LABELS, find_unusable_label
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.execution.select import SelectedRows
from daskcoreset.inputs.blocks import RowBlocks

# Rows of a block from which the difference of its classes is guessed.
_GUESS_ROWS = 2000


@dataclass(frozen=True, eq=False)
class ClassSummary:
    """Labels, weights and spread of rows.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Labels of rows with a positive weight, sorted.
    class_weights : ndarray of shape (k,), float64
    weights : dict of int to float
        Weight of every block, by its number.
    n_rows : int
        Rows that can be used.
    moments : Moments
    n_used : int
        Rows with a positive weight.
    n_read : int
        Rows as read.
    starts : dict of int to int
        Number of the first row of every block.
    near : SelectedRows
        Rows of each of two classes that may lie next to the boundary, if they were asked for.
    """

    classes: AnyArray
    class_weights: FloatArray
    weights: dict[int, float]
    n_rows: int
    moments: Moments
    n_used: int
    near: SelectedRows
    n_read: int = 0
    starts: dict[int, int] = field(default_factory=dict)

    @property
    def weight(self) -> float:
        """Total weight M."""
        return self.moments.weight

    @property
    def variance(self) -> float:
        """Weighted variance of all numbers, as ``X.var()`` has it."""
        within = self.moments.m2.sum() / self.weight
        return float((within / len(self.moments.mean)) + self.moments.mean.var())

    @property
    def total_variance(self) -> float:
        """Sum of the variances of the columns: half the mean squared distance of two rows."""
        return float(self.moments.m2.sum() / self.weight)

    def near_rows(self, count: int) -> SelectedRows:
        """Return some of the rows `near` of each class, the nearest ones, class after class."""
        codes = np.searchsorted(self.classes, labels_of(self.near.block))
        chosen = _smallest_of_each(self.near.values, codes, count)
        return self.near.take(chosen[np.argsort(codes[chosen], kind="stable")])


def summarise_classes(blocks: RowBlocks, *, n_near: int = 0) -> ClassSummary:
    """Read all rows once.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    n_near : int, default=0
        Rows near the boundary of two classes, at most, of each class. A block gives one of each.

    Returns
    -------
    ClassSummary

    Raises
    ------
    InvalidInputError
        If labels are missing, a label is not finite, there are more than 10,000 of them, or
        all weights are zero.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> found = summarise_classes(row_blocks([[0.0], [2.0], [4.0]], ["a", "b", "a"]))
    >>> found.classes, found.class_weights
    (array(['a', 'b'], dtype='<U1'), array([2., 1.]))
    """
    if not blocks.has_labels:
        raise InvalidInputError("y is missing", argument="y", remedy="pass the labels of the rows")
    work, merge = partial(_of_block, n_near=n_near), partial(_merge, n_near=n_near)
    found = map_reduce(blocks, work, merge)
    summary: ClassSummary = found.value
    if not summary.weight:
        raise no_weight_error()
    return replace(summary, n_read=found.n_rows, starts=found.offsets())


def _of_block(
    block: Block, block_index: int, _: object, *, n_near: int
) -> ClassSummary | InvalidRow:
    assert block.labels is not None  # noqa: S101 - `summarise_classes` requires them
    invalid = find_unusable_label(block.labels, block.rows)
    if invalid is not None:
        return invalid
    _, classes, codes = block.coded
    counts, masses = block.class_totals
    held = np.flatnonzero(counts)
    if len(held) > MAX_LABELS:
        return _too_many(len(held))
    used = np.flatnonzero(block.weights > 0)
    chosen, values = used[:0], np.zeros(len(used))
    if n_near and len(held) <= 2:
        if len(held) == 2:
            values = _rough_products(block, used, np.where(codes[used] == held[1], 1.0, -1.0))
        chosen = _smallest_of_each(values, codes[used], 1)
    return ClassSummary(
        classes[held],
        masses[held],
        {block_index: float(block.weights.sum())},
        len(block),
        moments_of(block.points, block.weights),
        len(used),
        SelectedRows.of(block, block_index, used[chosen], values[chosen]),
    )


def _rough_products(block: Block, rows: IndexArray, signs: FloatArray) -> FloatArray:
    """Labels times the products of rows with the difference of the class means in this block.

    The boundary is guessed to be at right angles to that difference.
    """
    step = max(1, len(rows) // _GUESS_ROWS)
    sample, sample_signs = rows[::step], signs[::step]
    direction = np.zeros(block.points.shape[1])
    for sign in (1.0, -1.0):
        members = sample[sample_signs == sign]
        if len(members):
            part: Any = block.points[members]
            # Dense or sparse, summed in float64 and in the order of the rows.
            total = np.asarray(part.sum(axis=0, dtype=np.float64)).ravel()
            direction += sign * total / len(members)
    products: FloatArray = signs * inner_products(block.points, direction[None])[rows, 0]
    return products


def _smallest_of_each(values: FloatArray, codes: IndexArray, count: int) -> IndexArray:
    """Positions of the smallest values of each class, in order."""
    order = np.lexsort([values, codes])
    of_class = codes[order]
    rank = np.arange(len(order)) - np.searchsorted(of_class, of_class)
    return np.sort(order[rank < count])


def _merge(first: ClassSummary, second: ClassSummary, *, n_near: int) -> ClassSummary:
    parts = [part.classes for part in (first, second) if len(part.classes)]
    labels = np.concatenate(parts) if parts else first.classes
    weights = np.concatenate([first.class_weights, second.class_weights])
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) > MAX_LABELS:
        raise _too_many(len(classes)).error(0)
    near = first.near.joined(second.near)
    chosen = np.empty(0, dtype=np.int64)
    if len(classes) <= 2:
        codes_near = np.searchsorted(classes, labels_of(near.block))
        chosen = _smallest_of_each(near.values, codes_near, n_near)
    return ClassSummary(
        classes,
        np.bincount(codes, weights=weights, minlength=len(classes)).astype(np.float64),
        first.weights | second.weights,
        first.n_rows + second.n_rows,
        merge_moments(first.moments, second.moments),
        first.n_used + second.n_used,
        near.take(chosen),
    )


def _too_many(count: int) -> InvalidRow:
    return InvalidRow(
        f"y has {count} classes or more, as if it held the numbers of a regression",
        argument="y",
        remedy="pass labels",
    )
