"""Weighted rows: concatenation, a canonical form, and their form as named arrays."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.invalid import find_bad_weight, first_failing, refuse
from daskcoreset.core.linalg import rows_at
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.core.validation import n_dims
from daskcoreset.errors import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    import numpy.typing as npt
    import scipy.sparse as sp


@dataclass(frozen=True, eq=False, repr=False)
class WeightedPoints:
    """Rows with weights, their row numbers in the whole data, and labels if there are any.

    See :doc:`/guides/clusters`.

    It is immutable: the arrays are read-only views of what you pass, without a copy if the dtype
    fits. ``==`` is true only for the same object. `equals` compares values. It may have zero rows,
    as a block may be empty, and is then false in a condition.

    Parameters
    ----------
    points : ndarray of shape (m, d) or scipy sparse, float32 or float64
        The rows, finite. Sparse input becomes a `scipy.sparse.csr_array` with sorted columns and
        without duplicates.
    weights : ndarray of shape (m,)
        Weight of each row, finite and non-negative. Integers and float32 become float64.
    indices : ndarray of shape (m,)
        Row number of each row in the whole data. Integers become int64. A row may occur more than
        once.
    labels : ndarray of shape (m,), optional
        Label of each row: booleans, integers, floats or text. Python objects are refused, because
        they could not be stored.

    Raises
    ------
    InvalidInputError
        If shapes disagree, a value is NaN or infinite, or a weight or row number is out of range.
    InvalidTypeError
        If a dtype is not supported.

    Examples
    --------
    >>> import numpy as np
    >>> drawn = WeightedPoints(np.eye(3), np.array([2.0, 1.0, 1.0]), np.array([7, 8, 9]))
    >>> drawn
    WeightedPoints(3 rows, 3 features, float64, total weight 4)
    >>> drawn.take(drawn.weights > 1).indices
    array([7])
    """

    points: Points
    weights: FloatArray
    indices: IndexArray
    labels: AnyArray | None = None

    def __post_init__(self) -> None:
        points = _read_points(self.points)
        m = points.shape[0]
        indices = _vector("indices", self.indices, m).astype(np.int64, copy=False)
        if indices.min(initial=0) < 0:
            raise InvalidInputError(
                f"indices holds {indices.min()}",
                argument="indices",
                remedy="pass numbers from 0 on",
            )
        labels = None if self.labels is None else _vector("labels", self.labels, m)
        self._keep(points, _read_weights(self.weights, m), indices, labels)

    def _keep(
        self, points: Points, weights: FloatArray, indices: IndexArray, labels: AnyArray | None
    ) -> None:
        arrays = {"points": points, "weights": weights, "indices": indices, "labels": labels}
        vars(self).update({name: _read_only(array) for name, array in arrays.items()})

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        # Through the constructor, because a pickled array forgets that it was read-only.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({counted(len(self), 'row')}, "
            f"{counted(self.n_features, 'feature')}, {self.points.dtype}, "
            f"total weight {self.total_weight:.6g})"
        )

    @property
    def n_features(self) -> int:
        """Number of columns, d."""
        return int(self.points.shape[1])

    @property
    def total_weight(self) -> float:
        """Sum of the weights, in float64."""
        return float(self.weights.sum())

    def take(self, rows: IndexArray | npt.NDArray[np.bool_] | slice) -> WeightedPoints:
        """Select rows by position.

        Parameters
        ----------
        rows : ndarray of int or bool, or slice
            Positions from 0 (not row numbers of the data), or a mask of shape (m,).

        Returns
        -------
        WeightedPoints
            The rows in the order of `rows`. It is not a `Coreset`, even if these rows are of one.

        Raises
        ------
        IndexError
            If a position is out of range, or the mask has another length.
        """
        if not isinstance(rows, slice) and not np.size(rows):
            # An empty list is float64 to NumPy, which then refuses it as an index.
            rows = slice(0)
        labels = None if self.labels is None else self.labels[rows]
        points = rows_at(self.points, rows)
        return from_checked(points, self.weights[rows], self.indices[rows], labels)

    def copied(self) -> WeightedPoints:
        """Copy the rows to new memory."""
        labels = None if self.labels is None else self.labels.copy()
        indices = self.indices.copy()
        return from_checked(self.points.copy(), self.weights.copy(), indices, labels)

    def reweighted(self, weights: FloatArray) -> WeightedPoints:
        """Return the same rows with other weights.

        Raises
        ------
        InvalidInputError
            If a weight is negative or not finite, or their sum overflows float64.
        """
        weights = _read_weights(weights, len(self))
        return from_checked(self.points, weights, self.indices, self.labels)

    def moved(self, start: int) -> WeightedPoints:
        """Return the same rows with `start` added to their row numbers."""
        return from_checked(self.points, self.weights, self.indices + start, self.labels)

    def equals(self, other: WeightedPoints) -> bool:
        """Return whether all arrays have the same dtype, shape and bits.

        Parameters
        ----------
        other : WeightedPoints
            Only its arrays are compared, so a coreset may equal plain points.

        Returns
        -------
        bool
            NaN equals the same NaN. 0.0 differs from -0.0.
        """
        arrays, _, shape = to_arrays(self)
        other_arrays, _, other_shape = to_arrays(other)
        return (arrays.keys(), shape) == (other_arrays.keys(), other_shape) and all(
            same_bits(arrays[name], other_arrays[name]) for name in arrays
        )


def concatenate(parts: Sequence[WeightedPoints]) -> WeightedPoints:
    """Concatenate the rows of several parts.

    Parameters
    ----------
    parts : sequence of WeightedPoints
        At least one. All have d columns, all are dense or all sparse. All or none have labels,
        and these are of one kind, because NumPy would turn 1 and "1" into the same text.

    Returns
    -------
    WeightedPoints
        The union, with weights and row numbers unchanged. It is float32 if all points are.

    Raises
    ------
    InvalidInputError
        If the parts do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> one = WeightedPoints(np.ones((2, 3)), np.ones(2), np.array([0, 1]))
    >>> concatenate([one, one.take(slice(1))]).indices
    array([0, 1, 0])
    """
    forms = {
        f"{part.n_features} features, {type(part.points).__name__}, "
        f"labels {'-' if part.labels is None else part.labels.dtype.kind}"
        for part in parts
    }
    if len(forms) > 1:
        problem = f"parts differ in their form: {sorted(forms)}"
        raise InvalidInputError(problem, remedy="bring them to one form first")
    weights = np.concatenate([part.weights for part in parts])
    return from_checked(
        joined_points([part.points for part in parts]),
        _read_weights(weights, len(weights)),
        np.concatenate([part.indices for part in parts]),
        joined([part.labels for part in parts]),
    )


def joined_points(parts: Sequence[Points]) -> Points:
    """Put rows after one another, which are sparse if some of them are."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    import scipy.sparse as sp

    # Dask does not always know that blocks are sparse, and some may be dense.
    return sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts], format="csr"))


def joined(parts: Sequence[AnyArray | None]) -> AnyArray | None:
    """Put vectors after one another, or return None if one is missing."""
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if len(present) == len(parts) else None


def from_checked(
    points: Points, weights: FloatArray, indices: IndexArray, labels: AnyArray | None
) -> WeightedPoints:
    """Return weighted rows of arrays that were checked already, because a check takes time."""
    made = object.__new__(WeightedPoints)
    made._keep(points, weights, indices, labels)
    return made


def _read_points(value: Any) -> Points:
    if hasattr(value, "tocsr"):
        points = _read_sparse(value)
    else:
        points = _as_array("points", value)
        if points.ndim != 2:
            raise InvalidInputError(
                f"points has shape {points.shape}",
                argument="points",
                remedy="pass a matrix of shape (m, d)",
            )
    if bad := first_failing(points, np.isfinite):
        problem = f"points holds {bad[2]} at row {bad[0]}"
        raise InvalidInputError(problem, argument="points", remedy="clean or drop the row")
    return points


def _read_sparse(value: Any) -> sp.csr_array:
    import scipy.sparse as sp

    points = sp.csr_array(value)  # a new object, whose arrays may be the caller's
    points.data = _as_array("points", points.data)
    try:
        points.check_format(full_check=True)
    except ValueError as error:
        raise InvalidInputError(
            f"points is not a valid CSR array ({error})", argument="points", remedy="build it again"
        ) from error
    if not points.has_canonical_format:
        # Done here because scipy and scikit-learn do it in place, which read-only arrays refuse.
        points = points.copy()
        points.sum_duplicates()
    return points


def _read_weights(value: Any, m: int) -> FloatArray:
    weights = _vector("weights", value, m).astype(np.float64, copy=False)
    refuse(find_bad_weight(weights, "weights"))
    return weights


def _vector(name: str, value: Any, m: int) -> AnyArray:
    array = _as_array(name, value)
    if array.shape != (m,):
        raise InvalidInputError(
            f"{name} has shape {array.shape} and points has {m} rows",
            argument=name,
            remedy="pass one value per row",
        )
    return array


_WHOLE = np.typecodes["AllInteger"]

# The codes of the dtypes that arrays may have, and how others are converted.
_CODES = {
    "points": ("fd", "to float32 or float64"),
    "weights": (_WHOLE + np.typecodes["Float"], "to float64"),
    "indices": (np.typecodes["Integer"] + "BHI", "to int64"),
    "labels": (f"?{_WHOLE}efdUT", "to numbers or, with .astype(str), to text"),
}


def _as_array(name: str, value: Any) -> AnyArray:
    """Return an argument as an array of one of its dtypes."""
    codes, form = _CODES[name]
    n_dims(name, value)  # which refuses lists of different lengths
    array = np.asarray(value)
    kind = f"dtype {array.dtype}"
    if isinstance(value, np.ma.MaskedArray):
        kind = "the type of a masked array"
    elif array.dtype.char in codes and not hasattr(array.dtype, "na_object"):
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    raise InvalidTypeError(f"{name} has {kind}", argument=name, remedy=f"convert it {form}")


def _read_only(values: Any) -> Any:
    if values is None:
        return None
    if isinstance(values, np.ndarray):
        values = values.view()
        values.setflags(write=False)
        return values
    shell = type(values)((values.data, values.indices, values.indptr), shape=values.shape)
    for name in ("data", "indices", "indptr"):
        setattr(shell, name, _read_only(getattr(shell, name)))
    return shell


def same_bits(a: AnyArray, b: AnyArray) -> bool:
    """Return whether arrays have the same dtype, shape and bits."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    # The bits of objects and of text of variable width are pointers, and say nothing.
    return bool(np.array_equal(a, b)) if a.dtype.kind in "OT" else a.tobytes() == b.tobytes()


# Sparse rows of so many numbers, zeros included, fit beside a coreset: 256 MiB.
_SPREAD_NUMBERS = 2**25


def spread_out(points: Points) -> Points:
    """Return sparse rows as an array if that is small, so that solvers get the same input.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> spread_out(sp.csr_array(np.eye(2)))
    array([[1., 0.],
           [0., 1.]])
    """
    rows: Any = points
    dense = isinstance(points, np.ndarray) or rows.shape[0] * rows.shape[1] > _SPREAD_NUMBERS
    return rows if dense else rows.toarray()


def deduplicate(
    points: Points, weights: FloatArray, labels: AnyArray | None = None
) -> tuple[Points, FloatArray, AnyArray | None]:
    """Merge equal rows, and sort them by their values.

    A solver then gets bit-identical input for a weighted row and for the same row repeated, and for
    rows in any order. It also saves the time that equal rows cost.

    Parameters
    ----------
    points : ndarray of shape (m, d) or csr_array, float32 or float64
    weights : ndarray of shape (m,), float64
        Rows of weight zero are left out.
    labels : ndarray of shape (m,), optional
        Equal rows also have equal labels.

    Returns
    -------
    points : ndarray of shape (r, d) or csr_array
        The r <= m distinct rows in lexicographic order (sparse ones in the order of their
        stored bytes), then by label. A copy, which the solver may write to.
    weights : ndarray of shape (r,), float64
        The weights of equal rows, added.
    labels : ndarray of shape (r,) or None

    Examples
    --------
    >>> rows = np.array([[2.0], [1.0], [2.0], [3.0]])
    >>> deduplicate(rows, np.array([1.0, 1.0, 2.0, 0.0]))[:2]
    (array([[1.],
           [2.]]), array([1., 3.]))
    """
    first, added = distinct_rows(points, weights, labels)
    rows: Any = points
    return _plain(rows[first]), added, None if labels is None else labels[first]


def distinct_rows(
    points: Any, weights: FloatArray, labels: AnyArray | None = None
) -> tuple[IndexArray, FloatArray]:
    """Return the positions of the rows that `deduplicate` keeps, and their weights.

    Of equal rows it is the first.

    Examples
    --------
    >>> rows = np.array([[2.0], [1.0], [2.0], [3.0]])
    >>> distinct_rows(rows, np.array([1.0, 1.0, 2.0, 0.0]))
    (array([1, 0]), array([1., 3.]))
    """
    kept = np.flatnonzero(weights > 0)
    weights = weights[kept]
    group = _groups(_plain(points[kept]))
    if labels is not None:
        codes = np.unique(labels[kept], return_inverse=True)[1]
        group = np.unique(group * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
    first = np.unique(group, return_index=True)[1]
    # In the order of size: a sum must not depend on the order in which rows come.
    order = np.lexsort((weights, group))
    added = np.bincount(group[order], weights=weights[order], minlength=len(first))
    return kept[first], added.astype(np.float64)


def have_own_sums(points: AnyArray, columns: IndexArray) -> bool:
    """Whether weighted sums of one or two columns tell all rows apart, so that no two are equal.

    Sums are sorted in a fraction of the time of rows.

    Examples
    --------
    >>> have_own_sums(np.eye(2), np.arange(2)), have_own_sums(np.ones((2, 2)), np.arange(2))
    (True, False)
    """
    parts = points[:, columns] * np.array([1.0, np.pi])[: len(columns)]
    sums = np.sort(parts.sum(axis=1))
    return bool((sums[1:] != sums[:-1]).all())


def _plain(points: Any) -> Any:
    """Write zeros in one way, and column numbers in the dtype that solvers take."""
    if isinstance(points, np.ndarray):
        return points + np.zeros((), points.dtype)  # turns -0.0 into 0.0
    points.sum_duplicates()
    points.eliminate_zeros()
    small = max(points.nnz, *points.shape) <= np.iinfo(np.int32).max
    dtype = np.int32 if small else np.int64
    points.indices = points.indices.astype(dtype, copy=False)
    points.indptr = points.indptr.astype(dtype, copy=False)
    return points


def _groups(points: Any) -> IndexArray:
    """Return which of the distinct rows every row is, counted in lexicographic order if dense."""
    if isinstance(points, np.ndarray):
        return np.unique(points, axis=0, return_inverse=True)[1].ravel()
    keys = np.empty(points.shape[0], dtype=object)
    for row, (start, stop) in enumerate(itertools.pairwise(points.indptr)):
        keys[row] = points.indices[start:stop].tobytes() + points.data[start:stop].tobytes()
    return np.unique(keys, return_inverse=True)[1]


_CSR = {"points_data": "nonzero", "points_indices": "nonzero", "points_indptr": "bound"}

_VECTORS = ("weights", "indices", "labels")


def to_arrays(
    part: WeightedPoints,
) -> tuple[dict[str, AnyArray], dict[str, tuple[str, ...]], dict[str, Any]]:
    """Name the arrays of weighted points, without copying.

    Returns
    -------
    arrays : dict of str to ndarray
        ``points`` of shape (m, d), or for sparse points the vectors ``points_data``,
        ``points_indices`` and ``points_indptr`` of their CSR form. Also ``weights``, ``indices``
        and, if there are any, ``labels``.
    dims : dict of str to tuple of str
        Dimension names of each array: ``row`` and ``feature``, or ``nonzero`` and ``bound`` in CSR.
    attributes : dict
        ``points_shape``, [m, d], for sparse points.

    Examples
    --------
    >>> import numpy as np
    >>> to_arrays(WeightedPoints(np.eye(2), np.ones(2), np.arange(2)))[1]["points"]
    ('row', 'feature')
    """
    if not isinstance(part.points, np.ndarray):
        points = {name: getattr(part.points, name.removeprefix("points_")) for name in _CSR}
        dims: dict[str, tuple[str, ...]] = {name: (dim,) for name, dim in _CSR.items()}
        attributes: dict[str, Any] = {"points_shape": list(part.points.shape)}
    else:
        points, dims, attributes = {"points": part.points}, {"points": ("row", "feature")}, {}
    vectors = {name: getattr(part, name) for name in _VECTORS if getattr(part, name) is not None}
    return points | vectors, dims | dict.fromkeys(vectors, ("row",)), attributes


def from_arrays(arrays: Mapping[str, AnyArray], attributes: Mapping[str, Any]) -> WeightedPoints:
    """Return the weighted points of the arrays that `to_arrays` named.

    Raises
    ------
    KeyError, TypeError
        An array is missing, or there is another one.
    InvalidInputError, InvalidTypeError, ValueError
        Arrays are not of this form or do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> part = WeightedPoints(np.eye(2), np.ones(2), np.arange(2))
    >>> from_arrays(*to_arrays(part)[::2]).equals(part)
    True
    """
    remaining = dict(arrays)
    if "points_shape" in attributes:
        import scipy.sparse as sp

        csr = tuple(remaining.pop(name) for name in _CSR)
        points = sp.csr_array(csr, shape=tuple(attributes["points_shape"]))
    else:
        points = remaining.pop("points")
    return WeightedPoints(points, **remaining)
