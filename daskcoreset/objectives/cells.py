r"""Cells about which losses are bounded, and the scores of rows that follow from them.

Every row x lies in a cell, at a distance d from its center, with a divergence h from it if the
objective has a divergence. An objective bounds the loss of every row of a cell, drawn or not, by

.. math:: g_i(x) - \langle l_i, z \rangle \le f_Q(x) \le g_i(x) + \langle h_i, z \rangle,
          \qquad z = (1, d, d^2, h),

and rows are scored by

.. math:: s(x) = u(x) (\beta_i + \gamma d^2 + \eta h),

in which every cell, all distances and all divergences have equal shares. The largest
:math:`\langle h_i, z \rangle / s(x)` is finite and known, also for rows that were not drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.linalg import dense, one_thread, product, tiles
from daskcoreset.core.moments import moments_of, scatter_of
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.solvers.divergences.base import Divergence
from daskcoreset.solvers.kmeans import assign, rough_kmeans

# Columns up to which a matrix brings them to one scale; beyond, their variances do.
_MAX_COLUMNS = 512

_ROUNDING = 1.0 + 1e-9

# What rounding may leave of the deviations of equal values from their mean, relative to it.
_ROUNDING_OF_MEANS = 1e-12


class Placed(NamedTuple):
    """Cells of rows, and z: 1, distances, their squares and divergences, of shape (4, n)."""

    cells: IndexArray
    z: FloatArray


class Bracket(NamedTuple):
    """Two bounds of the losses of one solution about a control whose total is known.

    Attributes
    ----------
    control : ndarray of shape (4, k), float64
        The known part, by cell.
    low, high : ndarray of shape (alternatives, 4, k), float64
        Non-negative. Every alternative is a bound.
    """

    control: FloatArray
    low: FloatArray
    high: FloatArray


def bracket_below(*alternatives: FloatArray) -> Bracket:
    """Return upper bounds alone, each of shape (4, k), with a control of zero."""
    nothing = np.zeros_like(alternatives[0])
    return Bracket(nothing, nothing[np.newaxis], np.stack(alternatives))


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of rows, for bounds on losses.

    Attributes
    ----------
    centers : ndarray of shape (k, d), float64
    root : ndarray of shape (d, d) or (d,), float64, or None
        Distances are Euclidean after rows are multiplied by it.
    labels : ndarray of shape (k - 1,), or None
        Labels of all cells but the last, which has rows of any other label. Without labels the
        nearest center decides.
    divergence : Divergence or None
        The divergence of h. Without it h is zero.
    scores : ndarray of shape (4, k), float64
        Coefficients of z in the score of a row with weight one, non-negative.
    """

    centers: FloatArray
    root: FloatArray | None = None
    labels: AnyArray | None = None
    divergence: Divergence | None = None
    scores: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.centers)

    def scaled(self, gaps: FloatArray) -> FloatArray:
        """Differences of rows in the coordinates of the distances."""
        if self.root is None:
            return gaps
        return product(gaps, self.root) if self.root.ndim == 2 else gaps * self.root

    def slope(self, coef: FloatArray) -> float:
        r"""Largest change of :math:`\langle x, w \rangle` for each unit of distance."""
        assert self.root is not None  # noqa: S101 - classifiers have cells with one
        if self.root.ndim == 1:
            return float(np.linalg.norm(coef / self.root))
        return float(np.linalg.norm(np.linalg.solve(self.root, coef)))

    def place(self, block: Block) -> Placed:
        """Return cells and z of rows."""
        n = len(block)
        cells, z = np.zeros(n, dtype=np.int64), np.ones((4, n))
        if self.labels is not None:
            labels = labels_of(block)
            cells = np.searchsorted(self.labels, labels).clip(max=len(self.labels) - 1)
            cells = np.where(self.labels[cells] == labels, cells, len(self.labels))
        points: Any = block.points
        for part in tiles(n, self.centers.shape[1]):
            rows = dense(points[part])
            if self.labels is None:
                cells[part], z[2, part] = assign(rows, self.centers)
            else:
                gaps = self.scaled(rows - self.centers[cells[part]])
                z[2, part] = (gaps * gaps).sum(axis=1)
            if self.divergence is not None:
                counted = np.flatnonzero(block.weights[part] > 0.0)
                z[3, part] = 0.0
                centers = self.centers[cells[part][counted]]
                z[3, part][counted] = self.divergence.between(rows[counted], centers)
        z[1] = np.sqrt(z[2])
        if self.divergence is None:
            z[3] = 0.0
        return Placed(cells, z)

    def sums(self, block: Block, placed: Placed) -> FloatArray:
        """Weighted sums of z by cell, of shape (4, k)."""
        counted = block.weights > 0.0
        u, cells = block.weights[counted], placed.cells[counted]
        rows = [np.bincount(cells, u * z[counted], len(self)) for z in placed.z]
        return np.stack(rows)

    def scored(self, sums: FloatArray, weight: float) -> Cells:
        """Return the cells with scores in which all parts have equal shares of `sums`.

        Parameters
        ----------
        sums : ndarray of shape (4, k), float64
            Sums over the rows of the coreset.
        weight : float
            Weight of a cell without rows.
        """
        weights = np.where(sums[0] > 0.0, sums[0], weight)
        # Where all rows are centers, whatever is not one is far away.
        spread = float(np.square(self.scaled(self.centers - self.centers[0])).sum(axis=1).max())
        min_spread = max(1e-12 * spread * sums[0].sum(), 1e-200)
        parts = np.zeros((4, len(self)))
        squares, divergences = max(float(sums[2].sum()), min_spread), float(sums[3].sum())
        parts[0] = sums[2] / (weights * squares) + 1.0 / (len(self) * weights)
        parts[2] = 1.0 / squares
        if self.divergence is not None:
            parts[3] = 1.0 / max(divergences, 1e-200)
        return Cells(self.centers, self.root, self.labels, self.divergence, parts / 4.0)

    def score(self, placed: Placed) -> FloatArray:
        """Score of every row with weight one."""
        assert self.scores is not None  # noqa: S101 - `scored` gives them
        return np.asarray((self.scores[:, placed.cells] * placed.z).sum(axis=0))

    def ratio(self, bounds: FloatArray, scores: FloatArray, farthest: FloatArray) -> float:
        """Return the largest bound per unit of score of any row up to a distance.

        Parameters
        ----------
        bounds : ndarray of shape (alternatives, 4, k), float64
            Coefficients of z, as in `Bracket`.
        scores : ndarray of shape (4, k), float64
            Coefficients of z in the scores, positive for 1 and for squares.
        farthest : ndarray of shape (k,), float64
            Largest distance of the rows of a cell. Negative if the cell has no rows.
        """
        constant, _, square, by_divergence = scores
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            # The bound over the score rises up to one distance, and falls from there.
            linear = bounds[:, 1]
            gain = bounds[:, 2] * constant - bounds[:, 0] * square
            root = np.sqrt(gain**2 + linear**2 * constant * square)
            top = np.nan_to_num((gain + root) / (linear * square), nan=0.0, posinf=np.inf)
            top = np.clip(top, 0.0, np.maximum(farthest, 0.0))
            at_top = (bounds[:, 0] + linear * top + bounds[:, 2] * top**2) / (
                constant + square * top**2
            )
            largest = np.maximum(at_top, bounds[:, 0] / constant)
            divergence = np.where(bounds[:, 3] > 0.0, bounds[:, 3] / by_divergence, 0.0)
        largest = np.maximum(largest, divergence).min(axis=0)[farthest >= 0.0]
        return float(np.where(np.isnan(largest), np.inf, largest).max(initial=0.0)) * _ROUNDING


def cells_by_distance(
    block: Block, k: int, rng: np.random.Generator, divergence: Divergence | None = None
) -> Cells:
    """Cells of a rough clustering of the rows."""
    rough = rough_kmeans(block.points, block.weights, k, rng)
    return Cells(rough.centers, divergence=divergence)


@one_thread()
def cells_by_class(block: Block) -> Cells:
    """One cell for every class, with distances in which the covariance is about the identity."""
    labels = np.unique(labels_of(block))
    codes = np.searchsorted(labels, labels_of(block))
    own = [block.take(np.flatnonzero(codes == code)) for code in range(len(labels))]
    weights = np.array([part.weights.sum() for part in own])
    wide = block.points.shape[1] > _MAX_COLUMNS
    if wide:
        moments = [moments_of(part.points, part.weights) for part in own]
        means, variances = [one.mean for one in moments], sum(one.m2 for one in moments)
        variances = variances / weights.sum()
    else:
        scatters = [scatter_of(part.points, part.weights) for part in own]
        means = [one.mean for one in scatters]
        matrix = sum(one.matrix for one in scatters) / weights.sum()
        variances = matrix.diagonal()
    center = np.average(means, axis=0, weights=weights)
    centers = np.where(weights[:, np.newaxis] > 0.0, means, center)
    centers = np.concatenate([centers, center[np.newaxis]])
    # A column that never changes in the coreset may do so in the data.
    varies = variances > (_ROUNDING_OF_MEANS * np.abs(centers).max(axis=0)) ** 2
    scale = np.sqrt(np.where(varies, variances, max(float(variances.max()), 1e-200)))
    if wide:
        return Cells(centers, 1.0 / scale, labels)
    shape = matrix / scale / scale[:, np.newaxis] + np.diag(np.where(varies, 0.0, 1.0))
    # So few rows show variances of d directions with about this relative error.
    ridge = min(1.0, len(scale) * float(np.square(block.weights).sum()) / weights.sum() ** 2)
    values, vectors = np.linalg.eigh(shape)
    root = vectors / np.sqrt(np.maximum(values, 0.0) + ridge) / scale[:, np.newaxis]
    return Cells(centers, root, labels)
