"""Rows with labels, in the order in which they were given, and checks of labels."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.constructions.margin.separators import Separator
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# What a class may be: text, a finite number, or a truth value.
Label: TypeAlias = "str | int | float | bool"


class Phase(enum.IntEnum):
    """Purpose of a request for labels; the numbers are stored."""

    GIVEN = 0
    SEEDING = 1
    QUERYING = 2
    VERIFYING = 3
    DONE = 4


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with labels, in the order in which they were given.

    Attributes
    ----------
    indices : ndarray of shape (m,), int64
        Numbers of the rows in the pool.
    rows : ndarray of shape (m, d)
    codes : ndarray of shape (m,), int64
        Number of the label in `classes`.
    phases : ndarray of shape (m,), int64
        Purpose of the request for each.
    classes : tuple of Label
        Values of labels in the order of their appearance, at most two.
    declared : bool
        Whether the user fixed the classes.
    """

    indices: IndexArray
    rows: AnyArray
    codes: IndexArray
    phases: IndexArray
    classes: tuple[Label, ...] = ()
    declared: bool = False

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def position_of(self) -> dict[int, int]:
        """Position of every row by its number in the pool."""
        return {index: i for i, index in enumerate(self.indices.tolist())}

    @property
    def both(self) -> bool:
        """Whether both classes have rows."""
        return bool(len(self.codes)) and bool((self.codes != self.codes[0]).any())

    @property
    def signs(self) -> FloatArray:
        """+1 for the greater of two classes, -1 for the other."""
        classes: tuple[Any, ...] = self.classes
        positive = int(len(classes) > 1 and classes[1] > classes[0])
        return np.where(self.codes == positive, 1.0, -1.0)

    def encode(self, labels: Any, count: int) -> tuple[IndexArray, tuple[Label, ...]]:
        """Return labels of rows as numbers of classes, and the classes with those that are new.

        Parameters
        ----------
        labels : array-like of shape (count,), or one label
        count : int

        Returns
        -------
        codes : ndarray of shape (count,), int64
        classes : tuple of Label

        Raises
        ------
        InvalidInputError
            For another number of labels, for what is no class, for a third class, or for values
            that do not compare.

        Examples
        --------
        >>> none = np.empty(0, np.int64)
        >>> Labelled(none, none, none, none, ("spam",)).encode(["ham", "spam"], 2)
        (array([1, 0]), ('spam', 'ham'))
        """
        codes, classes = np.empty(count, dtype=np.int64), self.classes
        for i, label in enumerate(plain_labels(labels, count)):
            if label not in classes:
                _check_new(label, i, classes, declared=self.declared)
                classes = (*classes, label)
            codes[i] = classes.index(label)
        return codes, classes

    def with_rows(self, indices: IndexArray, rows: AnyArray, labels: Any, phase: Phase) -> Labelled:
        """Return these rows and further ones, with labels as users give them."""
        codes, classes = self.encode(labels, len(indices))
        return Labelled(
            np.concatenate([self.indices, indices]),
            np.concatenate([self.rows, rows]),
            np.concatenate([self.codes, codes]),
            np.concatenate([self.phases, np.full(len(indices), int(phase), dtype=np.int64)]),
            classes,
            self.declared,
        )

    def margins(self, separator: Separator) -> FloatArray:
        """Margin of every row, without slacks: negative where it is misclassified."""
        return np.asarray(self.signs * separator(self.rows))

    def corrected(self, index: int, label: Any) -> Labelled:
        """Return the rows with another label for one of them.

        Raises
        ------
        InvalidInputError
            If the row has no label yet, or the new one is neither class.
        """
        if index not in self.position_of:
            raise InvalidInputError(
                f"row {index} has no label yet; correct only rows that were told."
            )
        (code,), classes = self.encode(label, 1)
        codes = self.codes.copy()
        codes[self.position_of[index]] = code
        return replace(self, codes=codes, classes=classes)


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
    try:
        alone = isinstance(labels, str) or np.ndim(labels) == 0
    except ValueError as error:
        msg = f"labels cannot be used: {error}; give a flat list of labels."
        raise InvalidInputError(msg) from error
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
    is_plain = isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))
    if not is_plain:
        raise InvalidInputError(
            f"labels[{i}] is {value!r}, which is no class; give text, a finite number or a truth "
            f"value for every row. A row that cannot be labelled should not be in the pool: give "
            f"it sample_weight zero."
        )
    return value  # type: ignore[no-any-return] # one of the types of Label


def _check_new(label: Label, i: int, classes: tuple[Label, ...], *, declared: bool) -> None:
    if declared or len(classes) == 2:
        origin = "were declared" if declared else "are known"
        raise InvalidInputError(
            f"labels[{i}] is {label!r}, but the two classes {classes[0]!r} and {classes[1]!r} "
            f"{origin}; give one of these. If one of these was a slip, correct() changes it."
        )
    if classes and isinstance(label, str) != isinstance(classes[0], str):
        raise InvalidInputError(
            f"labels[{i}] is {label!r}, but the class told before is {classes[0]!r}; use text "
            f"for both classes, or numbers for both."
        )
