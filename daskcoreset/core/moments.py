"""Associative statistics of rows: moments, box and scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.linalg import dense, product, read_only, row_sums, squared_distances
from daskcoreset.core.typing import AnyArray, FloatArray, Points

if TYPE_CHECKING:
    import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Moments of weighted rows.

    Attributes
    ----------
    count : int
        Number of rows.
    weight : float
        :math:`W = \sum_i u_i`.
    mean : ndarray of shape (d,), float64
        :math:`\mu = \sum_i u_i x_i / W`.
    m2 : ndarray of shape (d,), float64
        :math:`\sum_i u_i (x_{ij} - \mu_j)^2` for every column j.
    """

    count: int
    weight: float
    mean: FloatArray
    m2: FloatArray

    @property
    def quantization_error(self) -> float:
        r""":math:`\phi_X(\{\mu\}) = \sum_i u_i |x_i - \mu|^2`."""
        return float(self.m2.sum())

    def quantization_error_about(self, center: FloatArray) -> float:
        r""":math:`\sum_i u_i |x_i - c|^2 = \phi_X(\{\mu\}) + W |\mu - c|^2`."""
        gap = self.mean - center
        return self.quantization_error + self.weight * float((gap * gap).sum())


def moments_of(points: Points, weights: FloatArray) -> Moments:
    """Moments of one block.

    Parameters
    ----------
    points : ndarray of shape (n, d) or scipy.sparse.csr_array
        Finite float32 or float64 rows.
    weights : ndarray of shape (n,), float64
        Non-negative weights.

    Returns
    -------
    Moments
        Accumulated in float64 and safe under a large common offset.

    Examples
    --------
    >>> block = moments_of(np.array([[0.0], [2.0]]), np.ones(2))
    >>> block.weight, block.mean, block.m2
    (2.0, array([1.]), array([2.]))

    References
    ----------
    Chan, Golub and LeVeque (1983).
    """
    if not isinstance(points, np.ndarray):
        return _sparse_moments(points, weights)
    return moments_and_costs(points, weights)[0]


def moments_and_costs(points: AnyArray, weights: FloatArray) -> tuple[Moments, FloatArray]:
    """Moments of dense rows, and their weighted squared distances to nearly the mean, in one pass.

    Examples
    --------
    >>> moments_and_costs(np.array([[0.0], [2.0]]), np.ones(2))[1]
    array([1., 1.])
    """
    from daskcoreset.core import loops_numba as loops

    n, d = points.shape
    weight, gaps, squares, costs = float(weights.sum()), np.zeros(d), np.zeros(d), np.zeros(n)
    if weight == 0.0:
        return Moments(n, 0.0, gaps, squares), costs
    center = _near_mean(points, weights)
    loops.add_gaps(read_only(points), weights, center, gaps, squares, costs)
    moved = gaps / weight
    return Moments(n, weight, center + moved, np.maximum(squares - gaps * moved, 0.0)), costs


# Rows whose mean is nearly that of a block.
_FEW_ROWS = 256


def _near_mean(points: AnyArray, weights: FloatArray) -> FloatArray:
    """Return the mean of some rows, formed by gaps from the heaviest row.

    An offset costs no digits, nor do light rows far away. A column whose values are all the same
    has exactly this value.
    """
    heaviest: FloatArray = points[weights.argmax()].astype(np.float64)
    step = -(-len(points) // _FEW_ROWS)
    u = weights[::step, np.newaxis]
    gaps = u * (points[::step] - heaviest)
    near: FloatArray = heaviest + gaps.sum(axis=0) / max(float(u.sum()), np.finfo(float).tiny)
    return near


def merged_mean(
    first: FloatArray, second: FloatArray, first_weight: float, second_weight: float
) -> FloatArray:
    """Mean of two sets of rows, from that of the heavier one on, whose digits it has.

    Examples
    --------
    >>> merged_mean(np.array([1e20]), np.array([0.5]), 1e-30, 1.0)
    array([0.5])
    """
    if second_weight > first_weight:
        first, second, first_weight, second_weight = second, first, second_weight, first_weight
    return first + (second - first) * (second_weight / (first_weight + second_weight))


def merge_moments(first: Moments, second: Moments) -> Moments:
    """Moments of the union of two disjoint sets of rows.

    Associative up to rounding. Blocks are always merged in the order of the tree.

    Examples
    --------
    >>> a = moments_of(np.array([[0.0]]), np.ones(1))
    >>> b = moments_of(np.array([[2.0]]), np.ones(1))
    >>> merge_moments(a, b).m2
    array([2.])

    References
    ----------
    Chan, Golub and LeVeque (1983), equation 2.1.
    """
    weight = first.weight + second.weight
    if first.weight == 0.0 or second.weight == 0.0:
        heavier = second if first.weight == 0.0 else first
        return Moments(first.count + second.count, weight, heavier.mean, heavier.m2)
    share = second.weight / weight
    delta = second.mean - first.mean
    return Moments(
        first.count + second.count,
        weight,
        merged_mean(first.mean, second.mean, first.weight, second.weight),
        first.m2 + second.m2 + delta * delta * (first.weight * share),
    )


def distances_to(points: Points, center: FloatArray) -> FloatArray:
    """Squared Euclidean distance of every row to `center`, float64 of shape (n,).

    Examples
    --------
    >>> distances_to(np.array([[3.0, 4.0]], dtype=np.float32), np.zeros(2))
    array([25.])
    """
    if isinstance(points, np.ndarray):
        return squared_distances(points, center)
    # |c|^2 over the zeros of a row is |c|^2 less what its stored entries replace. A column
    # that is stored in every row has no zeros: left out, its offset cancels nothing.
    columns = points.indices
    stored = points.data.astype(np.float64)
    full = np.bincount(columns, minlength=points.shape[1]) == points.shape[0]
    squares = np.where(full, 0.0, center * center)
    zeros = float(squares.sum()) - row_sums(points, squares[columns])
    distances = row_sums(points, (stored - center[columns]) ** 2)
    distances += np.maximum(zeros, 0.0)
    return distances


# Share of the largest weight below which a row is light: it may lie so far away that gaps from it
# have no digits.
_LIGHT = 1e-3


def _sparse_moments(points: sp.csr_array, weights: FloatArray) -> Moments:
    n, n_features = points.shape
    weight = float(weights.sum())
    if weight == 0.0:
        return Moments(n, 0.0, np.zeros(n_features), np.zeros(n_features))
    u = np.repeat(weights, np.diff(points.indptr))
    columns = points.indices
    stored = points.data.astype(np.float64)

    def by_column(values: FloatArray) -> FloatArray:
        return np.bincount(columns, weights=values, minlength=n_features).astype(np.float64)

    # Stored entries first, about one of their own: equal ones give exactly zero. It is the last, or
    # the heaviest where some are light.
    of_stored = by_column(u)
    center = np.zeros(n_features)
    used = np.flatnonzero(u > 0.0)
    if u[used].min(initial=np.inf) < _LIGHT * u[used].max(initial=0.0):
        used = used[np.argsort(u[used], kind="stable")]
    center[columns[used]] = stored[used]
    shift = by_column(u * (stored - center[columns]))
    center += np.divide(shift, of_stored, out=shift, where=of_stored > 0.0)
    m2 = by_column(u * (stored - center[columns]) ** 2)
    # Then the zeros, which a column that is stored in every row that counts has not.
    stored_rows = np.bincount(columns[u > 0.0], minlength=n_features)
    full = stored_rows == np.count_nonzero(weights)
    share = np.where(full, 1.0, np.minimum(of_stored / weight, 1.0))
    m2 += center**2 * (weight * share * (1.0 - share))
    return Moments(n, weight, center * share, m2)


# Rows whose scatter is formed in one product.
_PRODUCT_ROWS = 256


@dataclass(frozen=True, eq=False)
class Box:
    """Smallest box that holds the rows of positive weight.

    Attributes
    ----------
    low, high : ndarray of shape (d,), float64
        Infinity and minus infinity without such a row.
    """

    low: FloatArray
    high: FloatArray


def box_of(points: Points, weights: FloatArray) -> Box:
    """Box of one block. Rows of weight zero do not count.

    Examples
    --------
    >>> box = box_of(np.array([[1.0, 5.0], [2.0, 3.0], [9.0, 9.0]]), np.array([1.0, 1.0, 0.0]))
    >>> box.low, box.high
    (array([1., 3.]), array([2., 5.]))
    """
    rows, _ = _counted(points, weights)
    if not rows.shape[0]:
        return Box(np.full(rows.shape[1], np.inf), np.full(rows.shape[1], -np.inf))
    low, high = rows.min(axis=0), rows.max(axis=0)
    if not isinstance(rows, np.ndarray):
        low, high = low.toarray(), high.toarray()
    return Box(low.astype(np.float64), high.astype(np.float64))


def merge_boxes(first: Box, second: Box) -> Box:
    """Box of the union."""
    return Box(np.minimum(first.low, second.low), np.maximum(first.high, second.high))


@dataclass(frozen=True, eq=False)
class Scatter:
    r"""Weight, mean and scatter matrix of weighted rows.

    Attributes
    ----------
    weight : float
    mean : ndarray of shape (d,), float64
    matrix : ndarray of shape (d, d), float64
        :math:`\sum_i u_i (x_i - \mu)(x_i - \mu)^T`.
    """

    weight: float
    mean: FloatArray
    matrix: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Scatter over weight, of shape (d, d): the maximum-likelihood estimate."""
        return self.matrix / self.weight


def scatter_of(points: Points, weights: FloatArray, target: FloatArray | None = None) -> Scatter:
    """Scatter of one block, in float64 and safe under a large common offset.

    With a target, one number a row, that is a further column, the last.

    Examples
    --------
    >>> scatter_of(np.array([[1e6], [1e6 + 2]], dtype=np.float32), np.ones(2)).covariance
    array([[1.]])
    """
    rows, u = _counted(points, weights)
    moments = moments_of(rows, u)
    mean = moments.mean
    if target is not None:
        target = target[weights > 0, np.newaxis]
        mean = np.append(mean, moments_of(target, u).mean)
    matrix = np.zeros((len(mean), len(mean)))
    for start in range(0, len(u), _PRODUCT_ROWS):
        tile = slice(start, start + _PRODUCT_ROWS)
        values = dense(rows[tile])
        if target is not None:
            values = np.hstack([values, target[tile]])
        gap = values - mean
        matrix += product((gap * u[tile, None]).T, gap)
    return Scatter(moments.weight, mean, matrix)


def scatter_of_block(block: Block, _block_index: int, _broadcast: object) -> Scatter:
    """Scatter of one block, as a reduction over all blocks computes it."""
    return scatter_of(block.points, block.weights)


def merge_scatters(first: Scatter, second: Scatter) -> Scatter:
    """Scatter of the union of two disjoint sets of rows.

    References
    ----------
    Chan, Golub and LeVeque (1983), equation 2.1, for pairs of columns.
    """
    if first.weight == 0.0 or second.weight == 0.0:
        return second if first.weight == 0.0 else first
    weight = first.weight + second.weight
    share = second.weight / weight
    delta = second.mean - first.mean
    between = np.outer(delta, delta) * (first.weight * share)
    mean = merged_mean(first.mean, second.mean, first.weight, second.weight)
    return Scatter(weight, mean, first.matrix + second.matrix + between)


def _counted(points: Points, weights: FloatArray) -> tuple[Any, FloatArray]:
    """Rows of positive weight. Others may hold anything, such as 1e20 for a missing value."""
    counts = weights > 0
    if counts.all():
        return points, weights
    return points[np.flatnonzero(counts)], weights[counts]
