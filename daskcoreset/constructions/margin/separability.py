"""What is told about rows that no hyperplane separates: the evidence, by row numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = ["InseparableError", "NotSeparableError", "opposite_duplicates"]

_MOST_NAMED = 6
"""Rows named in a message; all of them are attributes of the error."""


class InseparableError(InvalidInputError):
    """No separator agrees with all labels; the evidence is named.

    Attributes
    ----------
    indices : ndarray of int64
        Rows of the evidence: a convex combination of those of one class equals one of the
        other (without a bias: of rows times labels is zero). One of their labels is wrong, or
        the classes overlap.
    coefficients : ndarray of float64
        Of that combination.
    """

    def __init__(self, message: str, indices: IndexArray, coefficients: FloatArray) -> None:
        super().__init__(message)
        self.indices = indices
        self.coefficients = coefficients

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.indices, self.coefficients)


class NotSeparableError(InseparableError):
    r"""No hyperplane of the kind asked for separates the classes.

    The evidence can be checked by hand. Through the origin,
    :math:`\sum_i a_i y_i x_i` is zero up to `norm`, with :math:`a_i > 0` and sum one: for any w
    the mean of :math:`y_i \langle w, x_i\rangle` so weighted is then zero, so that not all are
    positive. With an intercept :math:`\sum_i a_i x_i` over one class equals that over the
    other, each with sum one: the hulls of the classes meet.

    Parameters
    ----------
    indices : ndarray of shape (s,), int64
        Row numbers.
    labels : ndarray of shape (s,)
    coefficients : ndarray of shape (s,), float64
        Positive.
    norm : float
        Length of the combination.
    intercept : bool
        Which of the two kinds.
    duplicates : tuple of int or None, default=None
        Numbers of two equal rows with opposite labels, where these are the reason.
    """

    def __init__(
        self,
        indices: IndexArray,
        labels: AnyArray,
        coefficients: FloatArray,
        norm: float,
        *,
        intercept: bool,
        duplicates: tuple[int, int] | None = None,
    ) -> None:
        self.labels = labels
        self.norm = norm
        self.intercept = intercept
        self.duplicates = duplicates
        self.indices, self.coefficients = indices, coefficients  # of which the message tells
        super().__init__(self._message(), indices, coefficients)

    def __reduce__(self) -> tuple[object, ...]:
        # By name, for an exception is otherwise made again from its message.
        return _again, (
            self.indices,
            self.labels,
            self.coefficients,
            self.norm,
            self.intercept,
            self.duplicates,
        )

    def _message(self) -> str:
        remedy = (
            "drop wrong rows, use a kernel, or use OutlierMaxMarginClassifier or a soft margin."
        )
        if self.duplicates is not None:
            first, second = self.duplicates
            return (
                f"X has equal rows with opposite labels, {first} and {second}, which nothing "
                f"separates; {remedy}"
            )
        if len(self.indices) == 1:
            return (
                f"X is zero at row {self.indices[0]}, which lies on every hyperplane through the "
                f"origin; use an intercept, or drop the row."
            )
        named = ", ".join(str(row) for row in self.indices[:_MOST_NAMED])
        more = len(self.indices) - _MOST_NAMED
        named += f" and {more} more" if more > 0 else ""
        found = (
            "the hulls of the two classes meet"
            if self.intercept
            else "a convex combination of rows times labels is zero"
        )
        kind = "" if self.intercept else " through the origin"
        other = "" if self.intercept else "use an intercept, "
        return (
            f"X and y are not separable by a hyperplane{kind}: {found}, with coefficients on the "
            f"rows {named} and length {self.norm:.2g}; {other}{remedy}"
        )


def _again(  # noqa: PLR0917 - called by pickle, by position
    indices: IndexArray,
    labels: AnyArray,
    coefficients: FloatArray,
    norm: float,
    intercept: bool,
    duplicates: tuple[int, int] | None,
) -> NotSeparableError:
    return NotSeparableError(
        indices, labels, coefficients, norm, intercept=intercept, duplicates=duplicates
    )


def opposite_duplicates(
    points: AnyArray, signs: FloatArray, indices: IndexArray
) -> tuple[int, int] | None:
    """Find two equal rows with opposite signs.

    Parameters
    ----------
    points : ndarray of shape (m, d)
    signs : ndarray of shape (m,), float64
    indices : ndarray of shape (m,), int64

    Returns
    -------
    tuple of int or None
        Their row numbers, the smaller one first.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [1.0]])
    >>> opposite_duplicates(rows, np.array([1.0, 1.0, -1.0]), np.array([4, 7, 2]))
    (2, 4)
    """
    order = np.lexsort([indices, *points.T[::-1]])
    same = (points[order[1:]] == points[order[:-1]]).all(axis=1)
    run = np.cumsum(np.concatenate([[True], ~same]))
    for number in np.unique(run[1:][same]):
        members = order[run == number]
        plus, minus = members[signs[members] > 0], members[signs[members] < 0]
        if len(plus) and len(minus):
            pair = sorted((int(indices[plus].min()), int(indices[minus].min())))
            return pair[0], pair[1]
    return None
