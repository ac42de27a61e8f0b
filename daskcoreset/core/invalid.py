"""The first invalid row of a block: how it is found, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.linalg import first_nonfinite_row, row_sums
from daskcoreset.core.typing import FloatArray, IndexArray, Points
from daskcoreset.core.validation import column_shown
from daskcoreset.errors import InvalidInputError

if TYPE_CHECKING:
    from daskcoreset.core.boxes import Box

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
        problem = self.problem.format(row=where)
        return InvalidInputError(problem, argument=self.argument, remedy=self.remedy)

    def within(self, box: Box) -> InvalidRow:
        """Return the same, in words of the dimensions of the block that it is in."""
        if self.row is None:
            return self
        return replace(
            self, problem=plain(self.error_at(f" at {box.describe(self.row)}").problem), row=None
        )


def plain(text: str) -> str:
    """Return text that stands for itself in a problem, which is a format."""
    return text.replace("{", "{{").replace("}", "}}")


def first_of(*problems: InvalidRow | None) -> InvalidRow | None:
    """Return the problem whose row comes first."""
    found = [problem for problem in problems if problem is not None]
    return min(found, key=lambda problem: problem.row or 0, default=None)


def find_inexact(name: str, values: Any, columns: Sequence[str] | None = None) -> InvalidRow | None:
    """Return the first integer of rows, or of a vector, that float64 does not hold, or None.

    Examples
    --------
    >>> find_inexact("X", np.array([[1], [2**53 + 1]]), ["id"]).row
    1
    """
    sparse = values.tocsr() if hasattr(values, "tocsr") else None
    if isinstance(values, np.ma.MaskedArray):
        values = values.filled(0)
    numbers = np.asarray(values if sparse is None else sparse.data)
    if numbers.dtype != object:  # estimators make numbers of objects, as scikit-learn does
        if numbers.dtype.kind not in "iu" or not numbers.size:
            return None
        # The extremes clear the usual case.
        if max(-int(numbers.min()), int(numbers.max())) <= EXACT:
            return None
    place = next((place for place, each in enumerate(numbers.flat) if _is_inexact(each)), None)
    if place is None:
        return None
    row = place
    if sparse is not None:
        row = int(np.searchsorted(sparse.indptr, place, "right")) - 1
        name = f"{name} in {column_shown(int(sparse.indices[place]), columns)}"
    elif numbers.ndim == 2:
        row, column = divmod(place, numbers.shape[1])
        name = f"{name} in {column_shown(column, columns)}"
    return inexact_row(name, numbers.flat[place], row)


def _is_inexact(value: Any) -> bool:
    """Whether an object is an integer of more bits than float64 holds."""
    if not isinstance(value, (int, np.integer)):
        return False
    size = abs(int(value))
    return size // max(size & -size, 1) >= EXACT


def inexact_row(name: str, value: Any, row: int | None = None) -> InvalidRow:
    """Return the problem of an integer that float64 does not hold, in an argument or a column."""
    return InvalidRow(
        f"{plain(name)} is {value}{{row}}, an integer that float64 cannot hold exactly",
        row,
        name,
        "subtract an offset, such as the smallest value, or leave out what only identifies rows",
    )


def find_bad_weight(weights: FloatArray) -> InvalidRow | None:
    """Return the first weight that is negative or no number, or None."""
    # One sum clears the usual case; NaN fails every comparison.
    if not len(weights) or (np.isfinite(weights.sum()) and weights.min() >= 0):
        return None
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if not len(bad):
        return InvalidRow(
            "sample_weight sums to infinity", argument="sample_weight", remedy="scale it down"
        )
    problem = f"sample_weight is {weights[bad[0]]}{{row}}"
    remedy = "pass weights that are finite and not negative"
    return InvalidRow(problem, int(bad[0]), "sample_weight", remedy)


def no_weight_error() -> InvalidInputError:
    """Say that no row has a weight."""
    return InvalidInputError(
        "sample_weight is zero on every row",
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
    points: Points,
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
    values: Any = points if isinstance(points, np.ndarray) else points.data
    total = float(weights.sum())
    # Of NumPy's kind, since a float32 that is compared with a plain number would cast it.
    limit = np.float64(math.sqrt(_LARGEST_SUM / points.shape[1] / max(1.0, total)))
    # One look clears the usual case; a row without weight may hold any number.
    if first_nonfinite_row(values if values.ndim == 2 else values[:, np.newaxis], limit) < 0:
        return None
    usable = rows_with(points, lambda x: abs(x) <= limit)
    usable |= (weights == 0.0) & rows_with(points, np.isfinite)
    if usable.all():
        return None
    first = int(usable.argmin())
    part: Any = points[[first]]
    row = (part if isinstance(part, np.ndarray) else part.toarray())[0].astype(np.float64)
    column = int((~(abs(row) <= limit)).argmax())
    value, where = row[column], "" if name == "y" else f" in {plain(column_shown(column, columns))}"
    if not np.isfinite(value):
        # The words of scikit-learn, which others look for.
        found = "NaN" if np.isnan(value) else f"infinity ({value})"
        return InvalidRow(f"Input {name} contains {found}{where}{{row}}", first, name, remedy)
    problem = f"{name} is {value}{where}{{row}}"
    if abs(value) > _LARGEST_VALUE:
        problem += ", and of values so large squared distances overflow"
        remedy = (
            "scale the columns, for example with sklearn.preprocessing.MaxAbsScaler, or clean the "
            "data"
        )
    else:
        problem += (
            f", where sample_weight sums to {total:g}, and weighted squared distances overflow"
        )
        remedy = "scale sample_weight down"
    return InvalidRow(problem, first, name, remedy)


def rows_with(points: Any, holds: Callable[[Any], Any]) -> Any:
    """Return rows all of whose values pass a test that zero passes."""
    if isinstance(points, np.ndarray):
        return holds(points).all(axis=1)
    return row_sums(points, ~holds(points.data)) == 0


def finite_rows(points: Any) -> IndexArray:
    """Return the numbers of the rows without NaN or infinity.

    Examples
    --------
    >>> finite_rows(np.array([[1.0], [np.nan], [2.0]]))
    array([0, 2])
    """
    return np.flatnonzero(rows_with(points, np.isfinite))
