"""Associative summaries of blocks that the divergences need: box and scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.tiles import (dense, product)
from daskcoreset.core.moments import moments_of
from daskcoreset.core.typing import FloatArray, Points

__all__ = ["Box", "Scatter", "box_of", "merge_boxes", "merge_scatters", "scatter_of"]

_PRODUCT_ROWS = 256
"""Rows whose scatter is formed in one product."""


@dataclass(frozen=True, eq=False)
class Box:
    """Smallest box that holds the rows of positive weight.

    Attributes
    ----------
    low, high : ndarray of shape (d,), float64
        Infinity and minus infinity while there is no such row.
    """

    low: FloatArray
    high: FloatArray


def box_of(points: Points, weights: FloatArray) -> Box:
    """Box of one block; rows of weight zero do not count.

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


def scatter_of(points: Points, weights: FloatArray) -> Scatter:
    """Scatter of one block, in float64 and safe under a large common offset.

    Examples
    --------
    >>> scatter_of(np.array([[1e6], [1e6 + 2]], dtype=np.float32), np.ones(2)).covariance
    array([[1.]])
    """
    rows, u = _counted(points, weights)
    moments = moments_of(rows, u)
    matrix = np.zeros((len(moments.mean), len(moments.mean)))
    for start in range(0, len(u), _PRODUCT_ROWS):
        gap = dense(rows[start : start + _PRODUCT_ROWS]) - moments.mean
        matrix += product((gap * u[start : start + _PRODUCT_ROWS, None]).T, gap)
    return Scatter(moments.weight, moments.mean, matrix)


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
    return Scatter(weight, first.mean + delta * share, first.matrix + second.matrix + between)


def _counted(points: Points, weights: FloatArray) -> tuple[Any, FloatArray]:
    """Rows of positive weight: the others may hold anything, such as 1e20 for a missing value."""
    counts = weights > 0
    if counts.all():
        return points, weights
    return points[np.flatnonzero(counts)], weights[counts]
