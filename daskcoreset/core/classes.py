"""Labels as classes: checked, brought to one form, and counted from zero."""

from __future__ import annotations

import numpy as np

from daskcoreset.core import blocks
from daskcoreset.core.blocks import Block, Problem
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray, IndexArray

__all__ = [
    "MOST_CLASSES",
    "MOST_LABELS",
    "check_classes",
    "class_codes",
    "label_problem",
    "plain_labels",
    "target_problem",
]

MOST_CLASSES = 256
"""Classes at most. More are likely numbers to be regressed on, or names of rows."""

MOST_LABELS = 10_000
"""The same where a class costs no more than a problem of its own."""


def plain_labels(block: Block) -> AnyArray:
    """Return the labels of a block in the form in which a coreset keeps them: numbers or text.

    Examples
    --------
    >>> labels = np.array([b"no", b"yes"], dtype=object)
    >>> plain_labels(Block(np.zeros((2, 1)), np.ones(2), labels)).tolist()
    ['no', 'yes']
    """
    assert block.labels is not None  # noqa: S101 - the front door asks for them
    return blocks.plain_labels(block.labels)


def label_problem(block: Block) -> Problem | None:
    """Return what makes the labels of a block unfit as classes, or None.

    Examples
    --------
    >>> label_problem(Block(np.zeros((2, 1)), np.ones(2), np.array([1.0, np.nan]))).row
    1
    """
    if block.labels is None:
        return Problem("y is missing; pass the labels of the rows, one for each.")
    missing = blocks.missing_label(block)
    if missing is not None:
        return missing
    if len(np.unique(plain_labels(block))) > MOST_CLASSES:
        return Problem(
            f"y holds more than {MOST_CLASSES} different labels; pass classes, not numbers."
        )
    return None


def target_problem(block: Block) -> Problem | None:
    """Return the first label that is missing, or a number to be regressed on; or None.

    Examples
    --------
    >>> target_problem(Block(np.zeros((2, 1)), np.ones(2), np.array([1.0, 2.5]))).row
    1
    """
    found = label_problem(block)
    if found is not None or block.labels is None or plain_labels(block).dtype.kind != "f":
        return found
    labels = plain_labels(block)
    broken = np.flatnonzero(labels != np.floor(labels))
    if not len(broken):
        return None
    row = int(broken[0])
    return Problem(
        f"y is {labels[row]}" + "{row}, a number and no class: a regression target has no labels; "
        "pass classes, for example y > y.mean(), or a method without labels.",
        row if block.rows is None else int(block.rows[row]),
    )


def check_classes(classes: AnyArray, n_rows: int) -> None:
    """Refuse labels of one class, and those most of which stand for one row only.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels of the rows with a positive weight.
    n_rows : int
        Such rows.

    Raises
    ------
    InvalidInputError
        If there is one class, or more than 16, and fewer than two rows to each.
    """
    if len(classes) < 2:
        raise InvalidInputError(
            f"y holds one class only, {classes[:1].tolist()}, among the rows with a positive "
            f"weight, and a classifier needs two; pass rows of both, whose sample_weight and "
            f"class_weight are not zero."
        )
    if len(classes) > 16 and 2 * len(classes) > n_rows:
        raise InvalidInputError(
            f"y holds {len(classes)} different labels for {n_rows} rows: these are names of rows, "
            f"or numbers to be regressed on; pass classes of several rows."
        )


def class_codes(block: Block, classes: AnyArray) -> IndexArray:
    """Return the place of every label among the sorted classes.

    Examples
    --------
    >>> block = Block(np.zeros((3, 1)), np.ones(3), np.array([5, 2, 5]))
    >>> class_codes(block, np.array([2, 5]))
    array([1, 0, 1])
    """
    codes = np.searchsorted(classes, plain_labels(block)).astype(np.int64, copy=False)
    # A class whose rows are all without weight is not among the classes: its place is no matter.
    return np.minimum(codes, len(classes) - 1)
