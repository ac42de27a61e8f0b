"""Rows selected from blocks, and the first read of labelled rows: classes and where to start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from daskcoreset.core.block import Block, concatenate, labels_of
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.labels import MAX_LABELS
from daskcoreset.core.linalg import inner_products
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks

_TOO_MANY: dict[str, Any] = {
    "problem": f"y has more than {MAX_LABELS} classes",
    "argument": "y",
    "remedy": "pass labels of classes, not measurements",
}

# Bits of the number of a row within its block.
_WITHIN = 40

# Columns of more rows than these, at most: separating 2,000 of so many takes minutes.
_MAX_COLUMNS = 2**11


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """Rows selected from some blocks.

    Attributes
    ----------
    block : Block
        The rows, with their labels.
    indices : ndarray of shape (r,), int64
        Their numbers in the whole data.
    values : ndarray of shape (r,), float64
        By which they were selected: the smaller, the sooner.
    """

    block: Block
    indices: IndexArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def take(self, positions: IndexArray) -> SelectedRows:
        """Return some of the rows, in this order."""
        block = self.block.take(positions)
        return SelectedRows(block, self.indices[positions], self.values[positions])

    def in_order(self) -> SelectedRows:
        """Return the rows by their values, equal ones in the order they have."""
        return self.take(np.argsort(self.values, kind="stable"))

    def smallest(self, n_keep: int) -> SelectedRows:
        """Return the rows of smallest value, in the order they have."""
        return self if len(self) <= n_keep else self.take(smallest(self.values, n_keep))


def select_rows(
    block: Block, positions: IndexArray, values: FloatArray, start: int = 0
) -> SelectedRows:
    """Select rows of a block, whose first row has the number `start` in the whole data.

    Parameters
    ----------
    block : Block
    positions : ndarray of shape (r,), int64
    values : ndarray of shape (r,), float64
    start : int, default=0

    Returns
    -------
    SelectedRows
    """
    rows = block.take(positions)
    within: Any = rows.rows
    return SelectedRows(rows, within.astype(np.int64) + start, values)


def refuse_wide(blocks: RowBlocks, most: int | None = None) -> None:
    """Raise an error if rows are many and have too many columns to be separated by a hyperplane.

    Few rows may have any number of columns: the work is that of the fewer of both, cubed.

    Parameters
    ----------
    blocks : RowBlocks
    most : int or None, default=None
        Rows that are separated at most. None for all.
    """
    d, n_rows = blocks.schema.n_features, blocks.n_rows if most is None else most
    if d <= _MAX_COLUMNS or (n_rows is not None and n_rows <= _MAX_COLUMNS):
        return
    raise InvalidInputError(
        f"X has {d:,} columns, and the solver needs matrices of d x d numbers",
        argument="X",
        remedy=f"pass at most {_MAX_COLUMNS:,} columns, for example those of "
        "sklearn.decomposition.TruncatedSVD or of sklearn.feature_selection",
    )


def rows_of_block(block: Block, start: int = 0) -> IndexArray:
    """Return the numbers of the rows of a block, whose first row as read has the number `start`."""
    return start + (np.arange(len(block)) if block.rows is None else block.rows)


def concatenate_rows(*parts: SelectedRows) -> SelectedRows:
    """Put rows of neighbouring blocks after one another."""
    # An empty block may have labels of another dtype, which would make text of numbers.
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return filled[0] if filled else parts[0]
    return SelectedRows(
        concatenate([part.block for part in filled]),
        np.concatenate([part.indices for part in filled]),
        np.concatenate([part.values for part in filled]),
    )


def smallest(values: FloatArray, n_keep: int) -> IndexArray:
    """Return the positions of the smallest finite values in order, the first of equal ones.

    Examples
    --------
    >>> smallest(np.array([2.0, 1.0, np.inf, 1.0, 3.0]), 3)
    array([0, 1, 3])
    """
    near = np.arange(len(values))
    if len(values) > 4 * n_keep:  # a sort of all rows would take longer than the read
        near = np.flatnonzero(values <= np.partition(values, n_keep - 1)[n_keep - 1])
    near = near[np.isfinite(values[near])]
    return np.sort(near[np.argsort(values[near], kind="stable")[:n_keep]])


def mark(block_index: int) -> int:
    """Return a stand-in for the number of the first row of a block, before it is known."""
    return block_index << _WITHIN


def row_numbers(read: BlockResults[Any], marks: IndexArray) -> IndexArray:
    """Numbers, in the whole data, of rows that `read` selected, by the marks of their blocks.

    Examples
    --------
    >>> from daskcoreset.execution.engine import BlockResults
    >>> row_numbers(BlockResults(None, {0: 10, 1: 5}), np.array([mark(1) + 2, mark(0) + 3]))
    array([12,  3])
    """
    starts = np.array(list(read.offsets().items()), dtype=np.int64)
    places = np.searchsorted(starts[:, 0], marks >> _WITHIN)
    return np.asarray(starts[places, 1] + (marks & (mark(1) - 1)))


def signs_of(block: Block, classes: AnyArray) -> FloatArray:
    """+1 for the second of two classes, -1 for the first, and 0 for rows without a weight."""
    labels = labels_of(block)
    signs = np.where(labels == classes[1], 1.0, -1.0)
    signs[block.weights == 0.0] = 0.0
    return signs


@dataclass(frozen=True, eq=False)
class FirstRead:
    """Rows to start from, and number of rows, from the first read.

    Attributes
    ----------
    rows : SelectedRows
        A few rows of each class.
    n_used : int
        Rows with a positive weight.
    """

    rows: SelectedRows
    n_used: int

    @property
    def classes(self) -> AnyArray:
        """Labels of rows with a weight, sorted."""
        return np.unique(labels_of(self.rows.block))

    def first_rows(self, n_keep: int) -> SelectedRows:
        """Return the rows of smallest value of each class, class after class."""
        codes = np.unique(labels_of(self.rows.block), return_inverse=True)[1]
        chosen = _smallest_of_each(self.rows.values, codes, n_keep)
        return self.rows.take(chosen[np.argsort(codes[chosen], kind="stable")])


def _smallest_of_each(values: FloatArray, codes: IndexArray, n_keep: int) -> IndexArray:
    """Positions of the smallest values of each class, in order."""
    order = np.lexsort([values, codes])
    of_class = codes[order]
    rank = np.arange(len(order)) - np.searchsorted(of_class, of_class)
    return np.sort(order[rank < n_keep])


def _first_read_of_block(block: Block, block_index: int, _: object) -> FirstRead | InvalidRow:
    """Take the worst row of each class of a block, for a rough guess.

    The guess separates the means of the classes within the block (or, through the origin, is
    the mean of rows times labels), which is no more than a good place to start.
    """
    labels = labels_of(block)
    used = np.flatnonzero(block.weights > 0.0)
    if labels.dtype.kind in "fc" and not np.isfinite(labels[used]).all():
        row = int(used[~np.isfinite(labels[used])][0])
        remedy = "give every row a label, or drop such rows"
        return InvalidRow(f"y is {labels[row]}{{row}}", block.number_of(row), "y", remedy)
    classes, codes = np.unique(labels[used], return_inverse=True)
    if len(classes) > MAX_LABELS:
        return InvalidRow(**_TOO_MANY)
    values = np.zeros(len(used))
    if len(classes) == 2:
        signs = np.where(codes == 1, 1.0, -1.0)
        values = signs * _rough_projections(block, used, signs)
    worst = _smallest_of_each(values, codes, 1)
    rows = select_rows(block, used[worst], values[worst], mark(block_index))
    return FirstRead(rows, len(used))


def _rough_projections(block: Block, rows: Any, signs: FloatArray) -> FloatArray:
    """Product of rows with the difference of the class means in this block."""
    step = max(1, len(rows) // 2000)  # a few rows are enough for the means
    sample, sample_signs = rows[::step], signs[::step]
    direction = np.zeros(block.points.shape[1])
    for sign in (1.0, -1.0):
        members = sample[sample_signs == sign]
        if len(members):
            part: Any = block.points[members]
            # Dense or sparse, summed in float64 and in the order of the rows.
            total = np.asarray(part.sum(axis=0, dtype=np.float64)).ravel()
            direction += sign * total / len(members)
    projections: FloatArray = inner_products(block.points, direction[None])[rows, 0]
    return projections


def _merge(first: FirstRead, second: FirstRead, *, n_keep: int) -> FirstRead:
    rows = concatenate_rows(first.rows, second.rows)
    codes = np.unique(labels_of(rows.block), return_inverse=True)[1]
    kept = _smallest_of_each(rows.values, codes, n_keep)
    # One class more than are allowed is enough for the error.
    kept = kept[codes[kept] <= MAX_LABELS]
    return FirstRead(rows.take(kept), first.n_used + second.n_used)


def find_classes(blocks: RowBlocks, *, n_keep: int) -> BlockResults[FirstRead]:
    """Read all rows once for their classes.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    n_keep : int
        Rows of each class to start from, at most. One a block competes.

    Returns
    -------
    BlockResults of FirstRead

    Raises
    ------
    InvalidInputError
        If there is one class or more than 10,000, if a label is missing, or if no row has a
        weight.
    """
    if not blocks.has_labels:
        raise InvalidInputError("y is missing", argument="y", remedy="pass the labels of the rows")
    read = map_reduce(blocks, _first_read_of_block, partial(_merge, n_keep=n_keep))
    first = read.value
    if not first.n_used:
        raise InvalidInputError(
            "sample_weight is zero on every row",
            argument="sample_weight",
            remedy="give at least one row a positive weight",
        )
    classes = first.classes
    if len(classes) < 2:
        raise InvalidInputError(
            f"y has one class, {classes[:1].tolist()[0]!r}, and a margin needs two",
            argument="y",
            remedy="pass rows of two classes",
        )
    if len(classes) > MAX_LABELS:
        raise InvalidInputError(**_TOO_MANY)
    indices = row_numbers(read, first.rows.indices)
    return replace(read, value=replace(first, rows=replace(first.rows, indices=indices)))
