"""What a picture needs of the data: two principal axes, and a histogram along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.execution.gathering import gather

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.core.typing import FloatArray

__all__ = ["MOST_COLUMNS", "Frame", "data_frame", "histogram", "rows_frame"]

MOST_COLUMNS = 1024
"""Above this a covariance matrix (8 MiB) is not gathered from the blocks."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Where rows are shown.

    Attributes
    ----------
    center : ndarray of shape (d,), float64
    axes : ndarray of shape (d, 1 or 2), float64
        Orthonormal columns.
    shares : tuple of float or None
        Share of the variance along each axis; None for data shown as they are.
    """

    center: FloatArray
    axes: FloatArray
    shares: tuple[float, ...] | None = None

    def of(self, points: Any) -> FloatArray:
        """Return the coordinates of rows, float64 of shape (n, 1 or 2)."""
        if self.shares is None:
            dense = points if isinstance(points, np.ndarray) else points.toarray()
            return np.asarray(dense, dtype=np.float64)
        if isinstance(points, np.ndarray):
            moved: FloatArray = (points - self.center) @ self.axes
            return moved
        return np.asarray(points @ self.axes - self.center @ self.axes, dtype=np.float64)


def rows_frame(points: Any, weights: FloatArray) -> Frame:
    """Two principal axes of weighted rows in memory; none for at most two columns."""
    d = int(points.shape[1])
    mean = np.asarray(weights @ points, dtype=np.float64) / weights.sum()
    if d <= 2:
        return Frame(np.zeros(d), np.eye(d))
    root = np.sqrt(weights / weights.sum())
    if min(points.shape) <= 3:
        dense = points if isinstance(points, np.ndarray) else points.toarray()
        moved = root[:, np.newaxis] * (dense - mean)
        _, spread, axes = np.linalg.svd(np.vstack([moved, np.zeros((2, d))]), full_matrices=False)
        return Frame(mean, *_upright(axes[:2].T, spread[:2] ** 2, float((spread**2).sum())))
    from scipy.sparse.linalg import LinearOperator, svds  # noqa: PLC0415 - slow to import

    # Never formed: rows less their mean, which would make sparse rows dense.
    operator = LinearOperator(
        points.shape,
        matvec=lambda v: root * (points @ v.ravel() - mean @ v.ravel()),
        rmatvec=lambda v: points.T @ (root * v.ravel()) - mean * (root @ v.ravel()),
        dtype=np.float64,
    )
    start = np.random.default_rng(0).normal(size=min(points.shape))
    _, spread, axes = svds(operator, k=2, v0=start)
    squares = points * points if isinstance(points, np.ndarray) else points.multiply(points)
    total = float((root**2 @ squares).sum() - mean @ mean)
    order = np.argsort(-spread)
    return Frame(mean, *_upright(axes[order].T, spread[order] ** 2, total))


def data_frame(blocks: RowBlocks, center: FloatArray) -> Frame:
    """Two principal axes of all rows, in one read.

    Parameters
    ----------
    blocks : RowBlocks
        Of three columns or more.
    center : ndarray of shape (d,), float64
        Near the mean, such as that of a coreset: products are formed about it, so that a
        large offset cancels nothing.
    """
    d = len(center)
    found = gather(blocks, _ProductsOfBlock(center), add).value
    weight, first, second = found[0], found[1 : d + 1], found[d + 1 :].reshape(d, d)
    gap = first / weight
    values, vectors = np.linalg.eigh(second / weight - np.outer(gap, gap))
    axes, shares = _upright(vectors[:, [-1, -2]], values[[-1, -2]], float(values.sum()))
    return Frame(center + gap, axes, shares)


def histogram(blocks: RowBlocks, frame: Frame, edges: Sequence[FloatArray]) -> FloatArray:
    """Weight of the rows in every cell of a grid, in one read.

    Parameters
    ----------
    blocks : RowBlocks
    frame : Frame
    edges : sequence of one or two ndarray of shape (bins + 1,), float64
        Evenly spaced. Rows outside are left out.

    Returns
    -------
    ndarray of shape (bins,) or (bins, bins), float64
    """
    counts: FloatArray = gather(blocks, _HistogramOfBlock(frame, tuple(edges)), add).value
    return counts.reshape([len(edge) - 1 for edge in edges])


def _upright(
    axes: FloatArray, variances: FloatArray, total: float
) -> tuple[FloatArray, tuple[float, ...]]:
    """Fix the signs, so that the same data always look the same; divide the variances."""
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    shares = np.maximum(variances, 0.0) / total if total > 0 else np.zeros(len(variances))
    return axes * np.where(largest < 0, -1.0, 1.0), tuple(float(share) for share in shares)


@dataclass(frozen=True, eq=False)
class _ProductsOfBlock:
    """Weight, weighted sum and weighted products of rows about a center, in one vector."""

    center: FloatArray

    def __call__(self, block: Block, number: int, given: object) -> FloatArray:
        del number, given
        d = len(self.center)
        values = np.zeros(1 + d + d * d)
        if len(block):
            points, u = block.points, block.weights
            dense = points if isinstance(points, np.ndarray) else points.toarray()
            moved = dense - self.center
            values[0] = u.sum()
            values[1 : d + 1] = u @ moved
            values[d + 1 :] = (moved.T @ (u[:, np.newaxis] * moved)).ravel()
        return values


@dataclass(frozen=True, eq=False)
class _HistogramOfBlock:
    frame: Frame
    edges: tuple[FloatArray, ...]

    def __call__(self, block: Block, number: int, given: object) -> FloatArray:
        del number, given
        shape = [len(edge) - 1 for edge in self.edges]
        values = np.zeros(int(np.prod(shape)))
        if len(block):
            shown = self.frame.of(block.points)
            cells = np.zeros(len(shown), dtype=np.int64)
            inside = np.ones(len(shown), dtype=bool)
            for j, edge in enumerate(self.edges):
                place = (shown[:, j] - edge[0]) / (edge[-1] - edge[0]) * shape[j]
                inside &= (place >= 0) & (place < shape[j])
                cells = cells * shape[j] + np.where(inside, place, 0.0).astype(np.int64)
            u = block.weights[inside]
            values += np.bincount(cells[inside], weights=u, minlength=len(values))
        return values
