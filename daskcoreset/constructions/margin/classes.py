"""The two classes, and rows to start from, found in the first read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.margin.core_set import SelectedRows, concatenate_rows, smallest
from daskcoreset.core.blocks import Block, InvalidRow, labels_of
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import inner_products
from daskcoreset.execution.engine import BlockResults, map_reduce

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray
    from daskcoreset.inputs.blocks import RowBlocks


@dataclass(frozen=True, eq=False)
class FirstRead:
    """Classes, rows to start from, and number of rows, from the first read.

    Attributes
    ----------
    classes : ndarray of shape (c,)
        Labels of rows with a weight, sorted.
    firsts : tuple of SelectedRows
        For each label, rows to start from, in the order of the blocks.
    n_used : int
        Rows with a positive weight.
    """

    classes: AnyArray
    firsts: tuple[SelectedRows, ...]
    n_used: int


def signs_of(block: Block, classes: AnyArray) -> FloatArray:
    """+1 for the second of two classes, -1 for the first, and 0 for rows without a weight."""
    labels = labels_of(block)
    signs = np.where(labels == classes[1], 1.0, -1.0)
    signs[block.weights == 0.0] = 0.0
    return signs


def _first_read_of_block(
    block: Block, block_index: int, _: object, *, max_classes: int
) -> FirstRead | InvalidRow:
    """Labels of a block, and the worst row of each class for a rough guess.

    The guess separates the means of the classes within the block (or, through the origin, is
    the mean of rows times labels), which is no more than a good place to start.
    """
    used = block.weights > 0.0
    labels = labels_of(block)
    problem = _missing(labels, used)
    if problem is not None:
        return problem
    classes, codes = np.unique(labels[used], return_inverse=True)
    if len(classes) > max_classes:
        return InvalidRow(_too_many(classes, max_classes).replace("{", "{{").replace("}", "}}"))
    rows = np.flatnonzero(used)
    values = np.zeros(len(rows))
    if len(classes) == 2:
        signs = np.where(codes == 1, 1.0, -1.0)
        values = signs * _rough_projections(block, rows, signs)
    firsts = []
    for code in range(len(classes)):
        members = np.flatnonzero(codes == code)
        worst = members[[values[members].argmin()]]
        row = block.take(rows[worst])
        firsts.append(SelectedRows(row, np.full(1, block_index), np.zeros(1), values[worst]))
    return FirstRead(classes, tuple(firsts), len(rows))


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


def _missing(labels: AnyArray, used: Any) -> InvalidRow | None:
    if labels.dtype.kind in "fc":
        bad = ~np.isfinite(labels) & used
        if bad.any():
            row = int(bad.argmax())
            return InvalidRow(
                f"y is {labels[row]}" + "{row}; give every row a label, or drop such rows.", row
            )
    return None


def _merge(first: FirstRead, second: FirstRead, *, max_classes: int, n_keep: int) -> FirstRead:
    # An empty block may have labels of another dtype; NumPy would make text of numbers.
    parts = [part for part in (first, second) if len(part.classes)]
    n_used = first.n_used + second.n_used
    if len(parts) < 2:
        part = parts[0] if parts else first
        return FirstRead(part.classes, part.firsts, n_used)
    classes = np.unique(np.concatenate([part.classes for part in parts]))
    firsts = []
    for label in classes:
        rows = [
            part.firsts[int(position)]
            for part in parts
            for position in np.flatnonzero(part.classes == label)
        ]
        firsts.append(smallest(concatenate_rows(rows), n_keep))
    return FirstRead(classes[: max_classes + 1], tuple(firsts[: max_classes + 1]), n_used)


def find_classes(blocks: RowBlocks, *, most: int = 2, keep: int = 1) -> BlockResults[FirstRead]:
    """Read all rows once for the labels that there are.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    most : int, default=2
        Classes allowed.
    keep : int, default=1
        Rows of each class to start from, at most; one a block competes.

    Returns
    -------
    BlockResults of FirstRead

    Raises
    ------
    InvalidInputError
        If there is one class or more than `most`, if a label is missing, or if no row has a
        weight.
    """
    if not blocks.has_labels:
        raise InvalidInputError("y is missing; pass the labels that are to be separated.")
    work = partial(_first_read_of_block, max_classes=most)
    read = map_reduce(blocks, work, partial(_merge, max_classes=most, n_keep=keep))
    if not read.value.n_used:
        raise InvalidInputError("sample_weight is zero for every row; give some row a weight.")
    classes = read.value.classes
    if len(classes) < 2:
        raise InvalidInputError(
            f"y has one class, {classes[0]!r}; a margin needs rows of two classes."
        )
    if len(classes) > most:
        raise InvalidInputError(_too_many(classes, most))
    return read


def _too_many(classes: AnyArray, max_classes: int) -> str:
    return (
        f"y has more labels than the {max_classes} that are expected, such as "
        f"{classes[: max_classes + 1].tolist()}; select two classes, or use MaxMarginClassifier."
    )
