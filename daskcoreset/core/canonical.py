"""One form for weighted rows, whatever their order and however their weight is split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

__all__ = ["canonical", "spread_out"]

_SPREAD_NUMBERS = 2**25
"""Sparse rows of so many numbers, zeros included, fit beside a coreset: 256 MiB."""


def spread_out(points: Points) -> Points:
    """Return sparse rows as an array, where that is small: the solver's input is the same then.

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


def canonical(
    points: Points, weights: FloatArray, labels: AnyArray | None = None
) -> tuple[Points, FloatArray, AnyArray | None]:
    """Merge equal rows and put them in an order that their values alone determine.

    A weighted row and the same row repeated then give a solver the very same input, bit for
    bit, as do the same rows in another order: its answer cannot depend on either. Equal rows
    also cost a solver time for nothing.

    Parameters
    ----------
    points : ndarray of shape (m, d) or csr_array, float32 or float64
    weights : ndarray of shape (m,), float64
        Rows of weight zero are left out.
    labels : ndarray of shape (m,), optional
        Rows are equal when their labels are, too.

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
    >>> canonical(rows, np.array([1.0, 1.0, 2.0, 0.0]))[:2]
    (array([[1.],
           [2.]]), array([1., 3.]))
    """
    kept = np.flatnonzero(weights > 0)
    points = _plain(points[kept])
    labels = None if labels is None else labels[kept]
    group = _dense_groups(points) if isinstance(points, np.ndarray) else _sparse_groups(points)
    if labels is not None:
        codes = np.unique(labels, return_inverse=True)[1]
        group = np.unique(group * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
    first = np.unique(group, return_index=True)[1]
    # In the order of size: a sum must not depend on the order in which rows come.
    order = np.lexsort((weights[kept], group))
    added = np.bincount(group[order], weights=weights[kept][order], minlength=len(first))
    return points[first], added.astype(np.float64), None if labels is None else labels[first]


def _plain(points: Any) -> Any:
    """Write zeros in one way only, and the numbers of columns in the dtype that solvers take."""
    if isinstance(points, np.ndarray):
        return points + np.zeros((), points.dtype)  # turns -0.0 into 0.0
    points.sum_duplicates()
    points.eliminate_zeros()
    small = max(points.nnz, *points.shape) <= np.iinfo(np.int32).max
    dtype = np.int32 if small else np.int64
    points.indices = points.indices.astype(dtype, copy=False)
    points.indptr = points.indptr.astype(dtype, copy=False)
    return points


def _dense_groups(points: AnyArray) -> IndexArray:
    """Rank of every row among the distinct rows, in lexicographic order."""
    ranks = np.zeros(len(points), dtype=np.int64)
    open_rows = np.arange(len(points))
    # Most rows are told apart by their first columns; only those that are not go on.
    for column in points.T:
        if not len(open_rows):
            break
        values, rank = column[open_rows], ranks[open_rows]
        order = np.lexsort((values, rank))
        new_rank, new_value = (
            np.r_[True, part[order][1:] != part[order][:-1]] for part in (rank, values)
        )
        starts = np.flatnonzero(new_rank | new_value)
        firsts = np.flatnonzero(new_rank)
        # A group keeps the numbers of its members: the ranks within it are offsets.
        offsets = starts - firsts[np.searchsorted(firsts, starts, side="right") - 1]
        sizes = np.diff(np.r_[starts, len(order)])
        ranks[open_rows[order]] += np.repeat(offsets, sizes)
        open_rows = np.sort(open_rows[order][np.repeat(sizes > 1, sizes)])
    return np.unique(ranks, return_inverse=True)[1]


def _sparse_groups(points: Any) -> IndexArray:
    """Rank of every row among the distinct rows, in the order of their bytes."""
    columns = points.indices
    keys = np.empty(points.shape[0], dtype=object)
    for row, (start, stop) in enumerate(zip(points.indptr[:-1], points.indptr[1:], strict=True)):
        keys[row] = columns[start:stop].tobytes() + points.data[start:stop].tobytes()
    return np.unique(keys, return_inverse=True)[1]
