"""The loops that touch every number of a block, compiled when they are first called.

All sums are float64 whatever the dtype of the points. Column sums are taken about a row
of their own tile and tiles are merged as in Chan, Golub and LeVeque (1983), so that a
common offset (mean 1e6, spread 1, float32) costs no digits and constant columns give
exactly zero. The kernels release the GIL, use one thread each and call no BLAS: their
bits depend neither on the number of threads nor on the scheduler.
Numba, which takes a second to import, is imported when the first loop is called.
"""

from __future__ import annotations

import threading

import numpy as np

from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

_TILE_NUMBERS = 8192
"""Numbers in a tile: two sweeps over it stay in the first-level cache."""


def _tile_rows(n_features: int) -> int:
    return max(8, _TILE_NUMBERS // max(1, n_features))


def column_moments(points: AnyArray, weights: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    r"""Weight, weighted mean and second moment about it of each column.

    Parameters
    ----------
    points : ndarray of shape (n, d), float32 or float64
    weights : ndarray of shape (n,), float64

    Returns
    -------
    weight : float
        :math:`W = \sum_i u_i`.
    mean : ndarray of shape (d,), float64
        :math:`\mu_j = \sum_i u_i x_{ij} / W`; zeros where ``W == 0``.
    m2 : ndarray of shape (d,), float64
        :math:`\sum_i u_i (x_{ij} - \mu_j)^2`.

    Examples
    --------
    >>> column_moments(np.array([[1e6], [1e6 + 2]], dtype=np.float32), np.ones(2))
    (2.0, array([1000001.]), array([2.]))

    References
    ----------
    Chan, Golub and LeVeque (1983), equations 2.1; tiles merged pairwise in order.
    """
    from daskcoreset.core import rowwise_numba as loops

    n_features = points.shape[1]
    mean, m2 = np.zeros(n_features), np.zeros(n_features)
    weight = loops.column_moments(points, weights, _tile_rows(n_features), mean, m2)
    return float(weight), mean, m2


def squared_distances(points: AnyArray, center: FloatArray) -> FloatArray:
    """Squared Euclidean distance of every row to one center.

    Parameters
    ----------
    points : ndarray of shape (n, d), float32 or float64
    center : ndarray of shape (d,), float64

    Returns
    -------
    ndarray of shape (n,), float64
        Differences are formed before they are squared: no cancellation under an offset.

    Examples
    --------
    >>> squared_distances(np.array([[3.0, 4.0], [0.0, 0.0]]), np.zeros(2))
    array([25.,  0.])
    """
    from daskcoreset.core import rowwise_numba as loops

    out = np.empty(points.shape[0])
    loops.squared_distances(points, center, out)
    return out


def first_nonfinite_row(points: AnyArray, most: float = np.inf) -> int:
    """Return the number of the first row with NaN, infinity or a value beyond `most`, or -1.

    Examples
    --------
    >>> first_nonfinite_row(np.array([[0.0], [np.nan]])), first_nonfinite_row(np.zeros((2, 1)))
    (1, -1)
    >>> first_nonfinite_row(np.array([[3.0], [-5.0]]), 4.0)
    1
    """
    from daskcoreset.core import rowwise_numba as loops

    limit = points.dtype.type(min(most, float(np.finfo(points.dtype).max)))
    found = int(loops.first_beyond(points.reshape(-1), limit))
    return found // points.shape[1] if found >= 0 else -1


def systematic_walk(inclusion: FloatArray, uniforms: FloatArray) -> IndexArray:
    r"""Select rows by Deville's systematic sampling with given inclusion probabilities.

    The inclusion probabilities are laid end to end and cut into units of length one. In every
    unit one point is drawn, uniformly, and the row at this point is taken. A row that lies
    across two units, with parts a and b, is taken at most once: where the first unit took it,
    the second one draws among its other rows; where not, the second one takes it with
    probability :math:`b / (1 - a)`. So every row has its inclusion probability
    :math:`a + b` exactly, and the number of rows is fixed.

    Parameters
    ----------
    inclusion : ndarray of shape (n,), float64
        Inclusion probabilities in [0, 1].
    uniforms : ndarray of shape (k,), float64
        Independent and uniform on [0, 1): one for every unit, k at least the sum of
        `inclusion` rounded up, and at least one.

    Returns
    -------
    ndarray of shape (m,), int64
        Rows taken, increasing; m is the sum of `inclusion` rounded up or down.

    Examples
    --------
    >>> systematic_walk(np.full(6, 0.5), np.array([0.25, 0.75, 0.25]))
    array([0, 3, 4])

    References
    ----------
    Deville (1998), Une nouvelle méthode de tirage à probabilités inégales. Chauvet (2012),
    On a characterization of ordered pivotal sampling, shows that the ordered pivotal method is
    the same; Chauvet and Ruiz-Gazen (2017) that its variance is never above that of as many
    independent draws, for any variable and in any order of the rows.
    """
    from daskcoreset.core import rowwise_numba as loops

    rows: IndexArray = loops.walk(inclusion, uniforms)
    return rows


_lock = threading.Lock()
