"""The first invalid row of a block: how it is found, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskcoreset.core.linalg import one_thread, row_sums
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import column_shown
from daskcoreset.errors import InvalidInputError

# What weighted squared distances of one block may add up to: a hundred million blocks, and four
# times as much about a far center, still have a sum that float64 holds.
_LARGEST_SUM = 1e300

# Below it weights are to blame if a sum is too large, above it the value.
_LARGEST_VALUE = 1e140

# float64 holds every whole number up to it.
EXACT = 2**53

# What to do with rows that are not finite, for callers of every kind: a task knows none of them.
_REMEDY = (
    'clean the data, or pass on_invalid="drop" to build, to the estimator, or to the tree or '
    "stream when you create it (predictions need finite rows)"
)


@dataclass(frozen=True)
class InvalidRow:
    """The first invalid row of a block, and what is wrong with it.

    Attributes
    ----------
    problem : str
        ``{row}`` in it is replaced by the place of the row.
    row : int or None
    argument : str
        The argument that it is about.
    remedy : str or None
    """

    problem: str
    row: int | None = None
    argument: str = "X"
    remedy: str | None = None

    def error(self, offset: int) -> InvalidInputError:
        """Return the error, with the row counted from the start of the data."""
        return self.error_at("" if self.row is None else f" at row {self.row + offset}")

    def error_at(self, where: str) -> InvalidInputError:
        """Return the error, with words for where the row is."""
        problem = self.problem.replace("{row}", where)
        return InvalidInputError(problem, argument=self.argument, remedy=self.remedy)

    def at(self, place: str) -> InvalidRow:
        """Return the same, with words for where the row is in place of its number."""
        return replace(self, problem=self.problem.replace("{row}", f" at {place}"), row=None)


def refuse(problem: InvalidRow | None) -> None:
    """Raise the error of a row of data that are in memory as a whole."""
    if problem is not None:
        raise problem.error(0)


def first_of(*problems: InvalidRow | None) -> InvalidRow | None:
    """Return the problem whose row comes first."""
    found = [problem for problem in problems if problem is not None]
    return min(found, key=lambda problem: problem.row or 0, default=None)


def first_failing(values: Any, passes: Callable[[Any], Any]) -> tuple[int, Any, Any] | None:
    """Return row, column and value of the first number that fails a test, or None.

    Parameters
    ----------
    values : ndarray of shape (n, d) or (n,), or csr_array
        A vector has no columns.
    passes : callable
        The test of an array of numbers. Zeros that a sparse matrix does not store pass it.

    Examples
    --------
    >>> first_failing(np.array([[1.0], [np.nan]]), np.isfinite)
    (1, 0, np.float64(nan))
    """
    numbers = _stored(values)
    passed = passes(numbers)
    if passed.all():
        return None
    place = int(passed.argmin())
    if numbers is not values:
        row = int(np.searchsorted(values.indptr, place, "right")) - 1
        return row, int(values.indices[place]), numbers[place]
    row, column = divmod(place, values.shape[1]) if values.ndim == 2 else (place, None)
    return row, column, numbers.flat[place]


def _stored(values: Any) -> AnyArray:
    """Return the numbers that an array or a sparse matrix stores."""
    numbers: AnyArray = values if isinstance(values, np.ndarray) else values.data
    return numbers


def find_inexact(name: str, values: Any, columns: Sequence[str] | None = None) -> InvalidRow | None:
    """Return the first integer of rows, or of a vector, that float64 does not hold, or None.

    Examples
    --------
    >>> find_inexact("X", np.array([[1], [2**53 + 1]]), ["id"]).row
    1
    """
    values = values.tocsr() if hasattr(values, "tocsr") else np.ma.filled(values, 0)
    if values.dtype.kind in "iu":
        numbers = _stored(values)
        # The extremes clear the usual case.
        if max(-int(numbers.min(initial=0)), int(numbers.max(initial=0))) <= EXACT:
            return None
    elif values.dtype.kind != "O":  # estimators make numbers of objects, as scikit-learn does
        return None
    found = first_failing(values, np.vectorize(_is_exact, otypes=[bool]))
    if found is None:
        return None
    row, column, value = found
    where = name if column is None else f"{name} in {column_shown(column, columns)}"
    return inexact_row(where, value, row)


def _is_exact(value: Any) -> bool:
    """Whether an object is no integer of more bits than float64 holds."""
    size = abs(int(value)) if isinstance(value, (int, np.integer)) else 0
    return size // max(size & -size, 1) < EXACT


def inexact_row(name: str, value: Any, row: int | None = None) -> InvalidRow:
    """Return the problem of an integer that float64 does not hold, in an argument or a column."""
    return InvalidRow(
        f"{name} is {value}{{row}}, an integer that float64 cannot hold exactly",
        row,
        name,
        "subtract an offset, such as the smallest value, or leave out what only identifies rows",
    )


def find_bad_weight(weights: FloatArray, name: str = "sample_weight") -> InvalidRow | None:
    """Return the first weight that is negative or no number, or None. Sums are finite as well."""
    found = first_failing(weights, lambda u: (u >= 0.0) & (u < np.inf))
    if found is not None:
        row, _, value = found
        remedy = "pass weights that are finite and not negative"
        return InvalidRow(f"{name} is {value}{{row}}", row, name, remedy)
    with np.errstate(over="ignore"):
        total = weights.sum()
    if np.isfinite(total):
        return None
    return InvalidRow(f"{name} sums to {total}", None, name, "scale it down")


def no_weight_error() -> InvalidInputError:
    """Say that no row has a weight."""
    return InvalidInputError(
        "all rows were dropped, or sample_weight is zero on every row",
        argument="sample_weight",
        remedy="give at least one row a positive weight",
    )


def find_zero_row(lengths: FloatArray, weights: FloatArray) -> InvalidRow | None:
    """Return the first row of positive weight whose length is zero, or None.

    Examples
    --------
    >>> find_zero_row(np.array([1.0, 0.0]), np.ones(2)).row
    1
    """
    zeros = np.flatnonzero((lengths == 0.0) & (weights > 0.0))
    if not len(zeros):
        return None
    problem = "X is zero in all columns{row}, which has no direction by the metric cosine"
    return InvalidRow(problem, int(zeros[0]), remedy=_REMEDY)


def find_unusable_row(
    points: Any,
    weights: FloatArray,
    *,
    remedy: str = _REMEDY,
    columns: Sequence[str] | None = None,
    name: str = "X",
) -> InvalidRow | None:
    r"""Return the first row whose squared distances overflow or are not numbers, or None.

    That is a row with NaN or infinity; or one of positive weight with a value x such that
    :math:`U d x^2` is beyond float64, U the weight of all the rows or one, if that is more.
    For ordinary weights that is some :math:`10^{146}`.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
    remedy : str
        Remedy for a row that is not finite, if the caller is known.
    columns : sequence of str or None, default=None
        Names of the columns.
    name : str, default="X"
        The argument that holds the rows.

    Examples
    --------
    >>> find_unusable_row(np.array([[1e100], [1e200]]), np.ones(2)).row
    1
    """
    numbers, total = _stored(points), float(weights.sum())
    # Of NumPy's kind, since a float32 that is compared with a plain number would cast it.
    limit = np.float64(math.sqrt(_LARGEST_SUM / points.shape[1] / max(1.0, total)))
    # The sum of squares clears the usual case, in one pass.
    flat = numbers.ravel(order="K")
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        if np.dot(flat, flat) <= limit * limit:
            return None
    # A row without weight may hold any number.
    limits = np.where(weights == 0.0, np.finfo(np.float64).max, limit)
    of_row = points.shape[1] if numbers is points else np.diff(points.indptr)
    limits = limits.repeat(of_row).reshape(numbers.shape)
    found = first_failing(points, lambda x: abs(x) <= limits)
    if found is None:
        return None
    row, column, value = found[0], found[1], float(found[2])
    where = "{row}" if name == "y" else f" in {column_shown(column, columns)}{{row}}"
    problem = f"{name} is {value}{where}"
    if not np.isfinite(value):
        # The words of scikit-learn, which others look for.
        wrong = "NaN" if np.isnan(value) else f"infinity ({value})"
        problem = f"Input {name} contains {wrong}{where}"
    elif abs(value) > _LARGEST_VALUE:
        problem += ", and of values so large squared distances overflow"
        remedy = "scale the columns, for example with sklearn.preprocessing.MaxAbsScaler"
    else:
        problem += f", where sample_weight sums to {total:g}"
        problem += ", and weighted squared distances overflow"
        remedy = "scale sample_weight down"
    return InvalidRow(problem, row, name, remedy)


def finite_rows(points: Any) -> IndexArray:
    """Return the numbers of the rows without NaN or infinity.

    Examples
    --------
    >>> finite_rows(np.array([[1.0], [np.nan], [2.0]]))
    array([0, 2])
    """
    if isinstance(points, np.ndarray):
        return np.flatnonzero(np.isfinite(points).all(axis=1))
    return np.flatnonzero(row_sums(points, ~np.isfinite(points.data)) == 0)
