"""Who knows labels: any callable, and the checks of what it answers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray, IndexArray

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.pool import Pool

Label: TypeAlias = "str | int | float | bool"
"""What a class may be: text, a finite number, or a truth value."""

Oracle: TypeAlias = Callable[..., Any]
"""``oracle(rows)`` gives one label a row; one with a parameter `indices` is told their numbers.

`rows` is an ndarray of shape (q, d), of the dtype of the data, and ``indices=`` an int64 ndarray
of shape (q,): the numbers of the rows in the whole pool.
"""


def answer(oracle: Oracle, rows: AnyArray, indices: IndexArray) -> Any:
    """Ask an oracle, which gets copies and cannot change what is asked."""
    if "indices" in _parameters(oracle):
        return oracle(rows.copy(), indices=indices.copy())
    return oracle(rows.copy())


def _parameters(oracle: Oracle) -> Sequence[str]:
    try:
        return list(inspect.signature(oracle).parameters)
    except (TypeError, ValueError):  # built in, without a signature
        return ()


def plain_labels(labels: Any, count: int) -> list[Label]:
    """Bring labels to plain Python values.

    Parameters
    ----------
    labels : array-like of shape (count,), or one label
        One label alone will do for one row.
    count : int
        How many there must be.

    Returns
    -------
    list
        Of str, int, finite float or bool.

    Raises
    ------
    InvalidInputError
        For another number of labels, or one that is no class, such as None or NaN.

    Examples
    --------
    >>> plain_labels(np.array([1.0, 0.0]), 2), plain_labels("spam", 1)
    ([1.0, 0.0], ['spam'])
    """
    alone = isinstance(labels, str) or np.ndim(labels) == 0
    values = [labels] if alone else list(labels)
    if np.ndim(labels) > 1 or len(values) != count:
        shape = np.shape(labels) if not alone else (1,)
        raise InvalidInputError(
            f"labels has shape {shape} where {count} rows were asked for; give one label for "
            f"each row, in the same order."
        )
    return [_plain(value, i) for i, value in enumerate(values)]


def _plain(value: Any, i: int) -> Label:
    if isinstance(value, np.generic):
        value = value.item()
    known = isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))
    if not known:
        raise InvalidInputError(
            f"labels[{i}] is {value!r}, which is no class; give text, a finite number or a truth "
            f"value for every row. A row that cannot be labelled should not be in the pool: give "
            f"it sample_weight zero."
        )
    return value  # type: ignore[no-any-return] # one of the types of Label


def coded(
    labels: Sequence[Label], classes: tuple[Label, ...], *, declared: bool
) -> tuple[IndexArray, tuple[Label, ...]]:
    """Return labels as numbers of classes, and the classes with those that are new.

    Parameters
    ----------
    labels : sequence of Label
    classes : tuple of Label
        Values known so far, at most two.
    declared : bool
        Whether `classes` was fixed by the user.

    Returns
    -------
    codes : ndarray of shape (q,), int64
    classes : tuple of Label

    Raises
    ------
    InvalidInputError
        For a third value, or values that do not compare.

    Examples
    --------
    >>> coded(["ham", "spam"], ("spam",), declared=False)
    (array([1, 0]), ('spam', 'ham'))
    """
    codes = np.empty(len(labels), dtype=np.int64)
    for i, label in enumerate(labels):
        if label not in classes:
            _check_new(label, i, classes, declared=declared)
            classes = (*classes, label)
        codes[i] = classes.index(label)
    return codes, classes


def _check_new(label: Label, i: int, classes: tuple[Label, ...], *, declared: bool) -> None:
    if declared or len(classes) == 2:
        known = "were declared" if declared else "are known"
        raise InvalidInputError(
            f"labels[{i}] is {label!r}, but the two classes {classes[0]!r} and {classes[1]!r} "
            f"{known}; give one of these. If one of these was a slip, correct() changes it."
        )
    if classes and isinstance(label, str) != isinstance(classes[0], str):
        raise InvalidInputError(
            f"labels[{i}] is {label!r}, but the class told before is {classes[0]!r}; use text "
            f"for both classes, or numbers for both."
        )


class PoolLabels:
    """An oracle that reads labels from data, and counts how many it was asked for.

    Parameters
    ----------
    pool : Pool
        Opened with labels.

    Attributes
    ----------
    n_asked : int
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.n_asked = 0

    def __call__(self, rows: AnyArray, indices: IndexArray) -> AnyArray:
        """Return the labels of rows by their numbers."""
        del rows
        labels = self._pool.fetch(indices).block.labels
        self.n_asked += len(indices)
        assert labels is not None  # noqa: S101 - opened with labels
        return labels
